"""A wrapped function whose last rank meets trouble: `troubled.py WORLD WAY`, and NAME=VALUE for the wrapper.

- `stop`, `raise`: it stops its own process, or fails, again and again in the launcher's round 0.
- `halt`: it stops its own process once.

The others stay in the function until they are called back, in each iteration that has trouble or a world that is not whole.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import stage

from elastic.inprocess import CallWrapper, Wrapper

WORLD, WAY = int(sys.argv[1]), sys.argv[2]
OPTIONS = {name: float(text) if "." in text else int(text) for name, text in (a.split("=") for a in sys.argv[3:])}
IS_LAST = int(os.environ["RANK"]) == WORLD - 1


@Wrapper(**OPTIONS)  # type: ignore[arg-type]
def train(call: CallWrapper) -> str:
    world_size = int(os.environ["WORLD_SIZE"])
    stage.tell("in", call.iteration, "of", world_size)
    has_trouble = call.iteration == 0 if WAY == "halt" else stage.round == 0
    if has_trouble and IS_LAST:
        if WAY == "raise":
            raise ValueError("boom")
        os.kill(os.getpid(), signal.SIGSTOP)
    with call.disable_hang_protection():
        while has_trouble or world_size < WORLD:
            time.sleep(0.01)
    return "well"


stage.tell("begins")
stage.tell("returned", train())
