"""stay.py: tell the job's restarts and size, then stay until this node's gate is opened, and succeed."""

from __future__ import annotations

import os

import stage

stage.tell("restart", os.environ["TORCHELASTIC_RESTART_COUNT"], "of", os.environ["WORLD_SIZE"], "workers")
stage.wait_for_gate()
