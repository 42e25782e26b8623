"""A wrapped function that fails in all iterations but the last, on one rank after the other.

    many_restarts.py ITERATIONS

Tells whether it was entered in order, each of its own failures once (an iteration of another's may be over before it is
entered here), and what the process and its monitor hold after a hundred and at the end.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path

import stage

from elastic.inprocess import CallWrapper, Wrapper

ITERATIONS = int(sys.argv[1])
WARM = min(100, ITERATIONS // 2)
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
entered: list[int] = []
told: list[int] = []
"""The first iteration from the hundredth on that was entered before it was over."""


def held(process: Path) -> str:
    """Descriptors, threads, and kilobytes of memory of its own."""
    descriptors, threads = (len(list((process / each).iterdir())) for each in ("fd", "task"))
    rollup = (process / "smaps_rollup").read_text().splitlines()
    own = sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Dirty:", "Private_Clean:")))
    return f"{descriptors} {threads} {own}"


def monitor() -> Path:
    tasks = Path("/proc/self/task").glob("*/children")
    (pid,) = (pid for task in tasks for pid in task.read_text().split())
    return Path("/proc") / pid


def tell() -> None:
    gc.collect()
    stage.tell(f"holds {held(Path('/proc/self'))}")
    stage.tell(f"monitor holds {held(monitor())}")


@Wrapper(completion_timeout=300.0)
def train(call: CallWrapper) -> None:
    entered.append(call.iteration)
    if call.iteration >= WARM and not told:
        with call.atomic():  # the other rank fails meanwhile
            tell()
            told.append(call.iteration)
    elif call.iteration % WARM == 0:
        stage.tell(f"is in {call.iteration}")
    if call.iteration == ITERATIONS:
        tell()
        return
    if call.iteration % RANKS == RANK:
        raise ValueError(f"iteration {call.iteration}")
    time.sleep(1000)


train()
own = [iteration for iteration in entered if iteration % RANKS == RANK and iteration < ITERATIONS]
in_order = entered == sorted(set(entered)) and entered[-1] == ITERATIONS
stage.tell(f"ended: in order {in_order}, {len(own)} of its own")
