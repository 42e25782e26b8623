"""Data-parallel training on gloo in a wrapped function: the rank that is named is killed at a step, once.

Arguments: the rank, and NAME=VALUE for the wrapper. The mean gradient of a step is 1.5 + its number if there are four ranks,
so the last weight tells how many took part in each step. A rank that comes anew gets step and weight from rank 0.
"""

from __future__ import annotations

import os
import signal
import sys

import averaging
import stage
import torch
from torch import distributed, nn

from elastic.inprocess import CallWrapper, Wrapper

STEPS, KILLED_AT = 6, 3
MINE = int(os.environ["RANK"])
KILLED = int(sys.argv[1])
OPTIONS = dict(argument.split("=") for argument in sys.argv[2:])


@Wrapper(**{name: float(text) for name, text in OPTIONS.items()})  # type: ignore[arg-type]
def train(model: nn.Linear, done: torch.Tensor, call: CallWrapper | None = None) -> float:
    assert call
    distributed.init_process_group("gloo")
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    averaging.take_over(model, done)
    stage.tell("in", call.iteration, "of", world_size, "at", int(done))
    for step in range(int(done), STEPS):
        if (call.iteration, step, MINE) == (0, KILLED_AT, KILLED):
            stage.wait_for_gate()
            stage.tell("dies")
            os.kill(os.getpid(), signal.SIGKILL)
        averaging.step(model, float(rank + step))
        done += 1
    distributed.destroy_process_group()
    return float(model.weight.detach())


torch.set_num_threads(1)
linear = nn.Linear(1, 1, bias=False)
nn.init.zeros_(linear.weight)
stage.tell("returned", train(linear, torch.zeros(1)))
