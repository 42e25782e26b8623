"""A wrapped function that one rank of each group calls; the others are reserves. `placed.py GROUP`: rack, role or host.

Rank 0 is killed in its first iteration when the test says so, and its next process waits. The others return in the second
iteration.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import stage

from elastic.inprocess import CallWrapper, FrozenState, Layer, Wrapper, by_host, by_label, by_role, tree

MINE = int(os.environ["RANK"])
KEYS = {"rack": by_label("rack"), "role": by_role(), "host": by_host()}


def waits(state: FrozenState) -> None:
    """Called at the beginning of each iteration, by the reserves too."""
    if state.active_rank is None:
        stage.tell("reserve in", state.iteration)


@Wrapper(rank_assignment=tree(Layer(KEYS[sys.argv[1]], at_most=1)), initialize=waits)
def train(call: CallWrapper) -> str:
    stage.tell("in", call.iteration, "of", os.environ["WORLD_SIZE"], "as", os.environ["RANK"])
    if call.iteration == 0:
        with call.disable_hang_protection():
            stage.wait_for_gate()
        if MINE == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1_000)
    return f"{MINE} in {call.iteration}"


if stage.gate_is_open():  # this process was started again
    stage.wait_for_gate(1)
stage.tell("returned", train())
