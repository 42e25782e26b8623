"""Real torch in a wrapped function: ranks that wait in a collective for one that will not come, and the sum when all do.

Arguments: ITERATION:RANK:FAULT, as in restarts.py, where the others wait in an all_reduce.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import quick_torch  # noqa: F401
import stage
import torch
from torch import distributed

from elastic.inprocess import CallWrapper, Wrapper

MINE = int(os.environ["RANK"])
FAULTS = {(int(iteration), int(rank)): fault for iteration, rank, fault in (a.split(":") for a in sys.argv[1:])}

KEPT: list[object] = []
"""As a program may that does not know that its groups are destroyed."""


@Wrapper()
def train(call: CallWrapper) -> float:
    distributed.init_process_group("gloo")
    KEPT.append(distributed.group.WORLD)
    stage.tell("in", call.iteration, "of", distributed.get_world_size())
    total = torch.ones(1)
    distributed.all_reduce(total)
    fault = FAULTS.get((call.iteration, MINE))
    if fault == "exception":
        time.sleep(0.2)  # for the others to be where they wait
        raise ValueError("boom")
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if any(iteration == call.iteration for iteration, _ in FAULTS):
        distributed.all_reduce(torch.ones(1))
    distributed.barrier()
    distributed.destroy_process_group()
    return float(total[0])


stage.tell("returned", train())
