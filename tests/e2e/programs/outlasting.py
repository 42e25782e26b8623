"""Data-parallel training on gloo in a wrapped function, whose ranks meet trouble at one step. Arguments: WORLD WAY, and
NAME=VALUE for the wrapper.

The mean gradient of a step is its number + (WORLD - 1) / 2 if the whole world takes part. So the last weight tells whether
it took part in each step. A rank that comes anew gets step and weight from rank 0. The trouble:

- `loss`: rank 0 stays in Python, and the others wait for it in gloo, until it is called back; so it is in each iteration
  whose world is not whole, and in the first one.
- `stop`, `raise`: the last rank stops its own process, or fails, again and again in the launcher's round 0. In `raise` the
  others stay in Python meanwhile: in gloo they could fail of their own, because the last rank's connections are closed.
- `halt`: the last rank stops its own process once, and rank 0 waits as for `loss`.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import averaging
import stage
import torch
from torch import distributed, nn

from elastic.inprocess import CallWrapper, Wrapper

WORLD, WAY = int(sys.argv[1]), sys.argv[2]
OPTIONS = {name: float(text) if "." in text else int(text) for name, text in (a.split("=") for a in sys.argv[3:])}
STEPS, TROUBLE_AT = 6, 3
IS_LAST = int(os.environ["RANK"]) == WORLD - 1


def trouble(call: CallWrapper) -> None:
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    awaits_call = WAY in ("loss", "halt") and rank == 0 and (call.iteration == 0 or world_size < WORLD)
    if awaits_call or (WAY == "raise" and not IS_LAST and stage.round == 0):
        with call.disable_hang_protection():
            while True:
                time.sleep(0.01)
    if IS_LAST and ((WAY == "stop" and stage.round == 0) or (WAY == "halt" and call.iteration == 0)):
        os.kill(os.getpid(), signal.SIGSTOP)
    if WAY == "raise" and IS_LAST and stage.round == 0:
        raise ValueError("boom")


@Wrapper(**OPTIONS)  # type: ignore[arg-type]
def train(model: nn.Linear, done: torch.Tensor, call: CallWrapper | None = None) -> float:
    assert call
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    averaging.take_over(model, done)
    for step in range(int(done), STEPS):
        if step == TROUBLE_AT:
            stage.tell("in", call.iteration, "of", distributed.get_world_size(), "at", step)
            trouble(call)
        averaging.step(model, float(rank + step))
        done += 1
    distributed.destroy_process_group()
    return float(model.weight.detach())


torch.set_num_threads(1)
linear = nn.Linear(1, 1, bias=False)
nn.init.zeros_(linear.weight)
stage.tell("begins")
stage.tell("returned", train(linear, torch.zeros(1)))
