"""Data-parallel training on gloo in a wrapped function, which stays at a step of its first two iterations until called
back.

The mean gradient of a step is its number + 1.5 if four ranks take part, + 0.5 if two do. So the last weight tells how many
took part in each step. A rank that comes anew gets step and weight from rank 0.
"""

from __future__ import annotations

import time

import averaging
import stage
import torch
from torch import distributed, nn

from elastic.inprocess import CallWrapper, Wrapper

STEPS, STAYS = 6, ((0, 3), (1, 5))
"""The iterations and steps in which all stay."""


@Wrapper()
def train(model: nn.Linear, done: torch.Tensor, call: CallWrapper | None = None) -> float:
    assert call
    distributed.init_process_group("gloo")
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    averaging.take_over(model, done)
    for step in range(int(done), STEPS):
        if (call.iteration, step) in STAYS:
            stage.tell("in", call.iteration, "of", world_size, "at", step)
            with call.disable_hang_protection():
                while True:
                    time.sleep(0.01)
        averaging.step(model, float(rank + step))
        done += 1
    distributed.destroy_process_group()
    return float(model.weight.detach())


torch.set_num_threads(1)
linear = nn.Linear(1, 1, bias=False)
nn.init.zeros_(linear.weight)
stage.tell("returned", train(linear, torch.zeros(1)))
