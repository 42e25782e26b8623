"""Rank 1 fails in the same way each time, before any progress, in its first process: `barren.py ValueError|hang|…`."""

from __future__ import annotations

import builtins
import ctypes
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import stage

from elastic.inprocess import CallWrapper, Wrapper

MINE = int(os.environ["RANK"])
MARK = Path(os.environ[stage.FOLDER], f"rank{MINE}.was.here")
IS_FIRST = not MARK.exists()
MARK.touch()
WAYS = {"hang": time.sleep, "section": time.sleep, "interpreter": lambda _: ctypes.PyDLL(None).usleep(5_000_000)}
HANGS = WAYS.get(sys.argv[1])
LIMITS: dict[str, Any] = {"soft_timeout": 2, "fresh_after": 2, "repeat_window": 0.5} if HANGS else {"soft_timeout": 300}


@Wrapper(**LIMITS, hard_timeout=400, barrier_timeout=500)
def train(call: CallWrapper) -> str:
    if MINE == 1 and IS_FIRST:
        stage.tell("fails")
        if HANGS:
            with call.section("loads", 3) if sys.argv[1] == "section" else nullcontext():
                HANGS(3600)
        raise getattr(builtins, sys.argv[1])("not here")
    with call.disable_hang_protection():
        if MINE == 1:
            stage.tell("is another process")
        stage.wait_for_gate()
    return "well"


stage.tell("returned", train())
