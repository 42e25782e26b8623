"""A wrapped function that fails in all iterations but the last, on one rank after the other.

    many_restarts.py ITERATIONS [gloo]

With `gloo` each iteration has a process group and a DistributedDataParallel of its own, and a rank that does not fail waits
in a collective.

Tells whether it was entered in order, each of its own failures once (an iteration of another's may be over before it is
entered here), and what the process and its monitor hold after WARM iterations and at the end. It remembers nothing of an
iteration itself.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable
from statistics import median

import stage
from processes import held_by, monitor_of

from elastic.inprocess import CallWrapper, Wrapper

ITERATIONS = int(sys.argv[1])
GLOO = sys.argv[2:] == ["gloo"]
WARM = min(100, ITERATIONS // 2)
"""The first iterations, in which what is kept for good is made."""
SAMPLES = 9
"""In so many iterations in a row it looks at what is held: the median counts."""
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
trim = ctypes.CDLL(None).malloc_trim
last, of_its_own, in_order, is_warm = -1, 0, True, False
samples: list[tuple[int, ...]] = []


def look(iteration: int) -> None:
    """When it is due; from iteration WARM on it is, until it was told: that one may not have been entered here."""
    global is_warm
    if iteration <= WARM - SAMPLES or (is_warm and iteration <= ITERATIONS - SAMPLES):
        return
    while (monitor := monitor_of(os.getpid())) is None:
        time.sleep(0.01)
    gc.collect()
    trim(0)
    samples.append((*held_by(os.getpid()), *held_by(monitor)))
    if iteration == ITERATIONS or (iteration >= WARM and not is_warm):
        is_warm = True
        stage.tell("holds", *(int(median(values)) for values in zip(*samples, strict=True)))
        samples.clear()


def sleep() -> None:
    time.sleep(1000)


def communicate() -> Callable[[], object]:
    """Take one step of a model on all ranks. Return a wait for the other rank."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.ones(2, 4)).sum().backward()
    return dist.barrier


@Wrapper(completion_timeout=300.0, fresh_after=None)
def train(call: CallWrapper) -> None:
    global last, of_its_own, in_order
    now = call.iteration
    in_order, last = in_order and now > last, now
    of_its_own += now % RANKS == RANK and now < ITERATIONS
    wait = communicate() if GLOO else sleep
    with call.atomic():
        if now % 10 == 0:
            stage.tell(f"is in {now}")
        look(now)
    if now == ITERATIONS:
        return
    if now % RANKS == RANK:
        raise ValueError(f"iteration {now}")
    wait()


train()
stage.tell(f"ended: in order {in_order and last == ITERATIONS}, {of_its_own} of its own")
