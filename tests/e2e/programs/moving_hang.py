"""Make progress until a gate opens, then wait for the next one: `moving_hang.py FOLDER`. Rank 5 hangs instead, on its first
start."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import stage

HUNG = Path(sys.argv[1]) / "hung"

stage.tell("begun")
while not stage.gate_is_open():
    print("gets on", flush=True)
    time.sleep(0.1)
if stage.rank == 5 and not HUNG.exists():
    HUNG.touch()
    time.sleep(1_000)
stage.wait_for_gate(1)
