"""One step of data-parallel training, by hand: DistributedDataParallel and torch.optim import torch's compiler, which takes
longer than all that a test asks of them. programs/many_restarts.py and the examples use the real ones."""

from __future__ import annotations

import quick_torch  # noqa: F401
import torch
from torch import distributed, nn


def take_over(model: nn.Linear, done: torch.Tensor) -> None:
    """Take the weight, and the number of steps that are done, from rank 0."""
    with torch.no_grad():
        distributed.broadcast(model.weight, 0)
    distributed.broadcast(done, 0)


def step(model: nn.Linear, value: float) -> None:
    """Lower the weight by the mean of all ranks' gradients, which are their values."""
    model.zero_grad()
    model(torch.full((1, 1), value)).sum().backward()
    gradient = model.weight.grad
    assert gradient is not None
    distributed.all_reduce(gradient)
    with torch.no_grad():
        model.weight -= gradient / distributed.get_world_size()
