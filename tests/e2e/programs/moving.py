"""A wrapped function that stays in each iteration until it is called back, and returns when the test opens the gate.

With LATE in its environment, the program never calls it. In round 0, the second gate makes it say that all have given up.
"""

from __future__ import annotations

import os
import time

import stage

from elastic.inprocess import CallWrapper, Wrapper


@Wrapper()
def train(call: CallWrapper) -> int:
    stage.tell("in", call.iteration, "of", os.environ["WORLD_SIZE"])
    with call.disable_hang_protection():
        while not stage.gate_is_open():
            if stage.round == 0 and stage.gate_is_open(1):
                os._exit(71)
            time.sleep(0.01)
    return call.iteration


if "LATE" in os.environ:
    stage.tell("late")
    time.sleep(1_000)
stage.tell("returned", train())
