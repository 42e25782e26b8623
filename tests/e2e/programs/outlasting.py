"""Data-parallel training on gloo in a wrapped function, whose ranks lose others: `outlasting.py WORLD`.

The mean gradient of a step is its number + (WORLD - 1) / 2 if the whole world takes part. So the last weight tells whether
it took part in each step. A rank that comes anew gets step and weight from rank 0. At one step rank 0 stays in Python, and
the others wait for it in gloo, until it is called back: in the first iteration, and in each whose world is not whole.
"""

from __future__ import annotations

import sys
import time

import averaging
import stage
import torch
from torch import distributed, nn

from elastic.inprocess import CallWrapper, Wrapper

WORLD = int(sys.argv[1])
STEPS, STAYS_AT = 6, 3


def stay(call: CallWrapper) -> None:
    """Until it is called back."""
    with call.disable_hang_protection():
        while True:
            time.sleep(0.01)


@Wrapper()
def train(model: nn.Linear, done: torch.Tensor, call: CallWrapper | None = None) -> float:
    assert call
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    averaging.take_over(model, done)
    for step in range(int(done), STEPS):
        if step == STAYS_AT:
            world_size = distributed.get_world_size()
            stage.tell("in", call.iteration, "of", world_size, "at", step)
            if rank == 0 and (call.iteration == 0 or world_size < WORLD):
                stay(call)
        averaging.step(model, float(rank + step))
        done += 1
    distributed.destroy_process_group()
    return float(model.weight.detach())


torch.set_num_threads(1)
linear = nn.Linear(1, 1, bias=False)
nn.init.zeros_(linear.weight)
stage.tell("returned", train(linear, torch.zeros(1)))
