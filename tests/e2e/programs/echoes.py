"""Rank 2 fails while the others are in collectives of gloo with it, once in each way: `echoes.py raises|closes|dies…`.

`closes`: it closes its connections before the wrapper hears of its failure, as a `finally` does. In each later iteration
each rank tells the records of the last one: first the rank and its message, then the ranks of those that are echoes.
"""

from __future__ import annotations

import os
import signal
import sys

import quick_torch  # noqa: F401
import stage
import torch
from torch import distributed

from elastic.inprocess import CallWrapper, Wrapper

MINE, CULPRIT = int(os.environ["RANK"]), 2
HOWS = sys.argv[1:]
STEPS_MAX = 1_000_000


@Wrapper(soft_timeout=300, hard_timeout=400, barrier_timeout=500)
def train(call: CallWrapper) -> None:
    if call.iteration:
        last = [fault for fault in call.faults if fault.round == call.iteration - 1]
        echoes = sorted(int(fault.node.slot) for fault in last if fault.remark.startswith("an echo"))
        assert not {int(fault.node.slot) for fault in last[len(last) - len(echoes) :]} - set(echoes)
        stage.tell("in", call.iteration, "after", last[0].node.slot, last[0].message)
    if call.iteration == len(HOWS):
        return
    how = HOWS[call.iteration]
    distributed.init_process_group("gloo")
    try:
        for step in range(STEPS_MAX):
            distributed.all_reduce(torch.ones(1))
            call.ping()
            if step == 20 and int(os.environ["RANK"]) == CULPRIT:
                fail(how)
    finally:
        if how == "closes" and distributed.is_initialized():
            distributed.destroy_process_group()


def fail(how: str) -> None:
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError("the true cause")


train()
