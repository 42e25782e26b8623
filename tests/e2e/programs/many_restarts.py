"""Ranks that take turns to fail, COUNT times; tell what their process holds, each EVERY iterations and at the end."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from pathlib import Path

import stage

from elastic.inprocess import CallWrapper, Wrapper

COUNT, EVERY = int(sys.argv[1]), int(sys.argv[2])
logging.getLogger("elastic.inprocess").setLevel(logging.CRITICAL)
entered: list[int] = []


def held() -> tuple[int, int, int]:
    """Threads, descriptors, KiB of memory."""
    (resident,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return threading.active_count(), len(os.listdir("/proc/self/fd")), int(resident.split()[1])


@Wrapper()
def train(call: CallWrapper) -> int:
    """A rank may miss an iteration that is over before it has begun there."""
    if call.iteration // EVERY > (entered[-1] if entered else -1) // EVERY or call.iteration == COUNT:
        stage.tell("holds", *held())
    entered.append(call.iteration)
    if call.iteration == COUNT:
        return call.iteration
    if call.iteration % call.state.world_size == call.state.rank:
        raise ValueError("once more")
    time.sleep(1_000)
    return -1


returned = train()
stage.tell("returned", returned, sorted(set(entered)) == entered)
