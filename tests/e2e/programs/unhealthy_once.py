"""unhealthy_once.py WAY NAME=VALUE…: rank 1 fails in iteration 0, and then WAY (health_check, finalize, abort) raises on it.

Its process ends, and is started again. The others run on until all are in one iteration again. Each tells that it is in.
"""

from __future__ import annotations

import os
import sys
import time

import stage

from elastic.inprocess import CallWrapper, FrozenState, Wrapper

WAY, *OPTIONS = sys.argv[1:]
GIVEN = {name: float(text) for name, text in (each.split("=") for each in OPTIONS)}
FAILED: list[int] = []


def way(state: FrozenState) -> None:
    if FAILED:
        raise OSError("past help")


@Wrapper(**{WAY: way}, **GIVEN)  # type: ignore[arg-type]
def train(call: CallWrapper | None = None) -> None:
    assert call
    stage.tell("in", call.iteration, "of", os.environ["WORLD_SIZE"])
    with call.disable_hang_protection():
        if call.iteration == 0 and stage.rank == 1:
            stage.wait_for_gate()
            FAILED.append(1)
            raise ValueError("boom")
        while call.iteration == 0 or os.environ["WORLD_SIZE"] != "2":
            time.sleep(0.02)


train()
stage.tell("returned")
