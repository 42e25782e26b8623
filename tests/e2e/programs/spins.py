"""spins.py [all]: tell the job's restarts and size, and stay until this node's gate is opened. Rank 0, or all ranks, use the
processor meanwhile, without a word."""

from __future__ import annotations

import os
import sys

import stage

stage.tell("restart", os.environ["TORCHELASTIC_RESTART_COUNT"], "of", os.environ["WORLD_SIZE"], "workers")
while (stage.rank == 0 or "all" in sys.argv) and not stage.gate_is_open():
    sum(range(100_000))
stage.wait_for_gate()
