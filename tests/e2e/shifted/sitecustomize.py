"""A host whose wall clock is wrong: on PYTHONPATH, this shifts what a program takes for the time of day, nothing else."""

from __future__ import annotations

import os
import time

true_time = time.time
shift_s = float(os.environ["ELASTIC_TEST_SHIFT_S"])
time.time = lambda: true_time() + shift_s
