"""Rank 1 fails in the same way each time, before any progress, in its first process: `barren.py ValueError|MemoryError`."""

from __future__ import annotations

import builtins
import os
import sys
from pathlib import Path

import stage

from elastic.inprocess import CallWrapper, Wrapper

MINE = int(os.environ["RANK"])
MARK = Path(os.environ[stage.FOLDER], f"rank{MINE}.was.here")
IS_FIRST = not MARK.exists()
MARK.touch()


@Wrapper(soft_timeout=300, hard_timeout=400, barrier_timeout=500)
def train(call: CallWrapper) -> str:
    if MINE == 1 and IS_FIRST:
        stage.tell("fails")
        raise getattr(builtins, sys.argv[1])("not here")
    if MINE == 1:
        stage.tell("is another process")
    with call.disable_hang_protection():
        stage.wait_for_gate()
    return "well"


stage.tell("returned", train())
