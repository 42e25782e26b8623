"""A wrapped function that fails in all iterations but the last, on one rank after the other.

    many_restarts.py ITERATIONS

Tells whether it was entered in order, each of its own failures once (an iteration of another's may be over before it is
entered here), and what the process and its monitor hold after a hundred and at the end. It remembers nothing of an
iteration itself.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from pathlib import Path
from statistics import median

import stage

from elastic.inprocess import CallWrapper, Wrapper

ITERATIONS = int(sys.argv[1])
WARM = min(100, ITERATIONS // 2)
SAMPLES = 9
"""In so many iterations in a row it looks at what is held: the median counts."""
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
trim = ctypes.CDLL(None).malloc_trim
last, of_its_own, in_order = -1, 0, True
samples: list[tuple[int, ...]] = []
is_warm = False


def held(process: Path) -> tuple[int, ...]:
    """Descriptors, threads, and kilobytes of memory of its own."""
    descriptors, threads = (len(list((process / each).iterdir())) for each in ("fd", "task"))
    rollup = (process / "smaps_rollup").read_text().splitlines()
    own = sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Dirty:", "Private_Clean:")))
    return descriptors, threads, own


def monitor() -> Path:
    tasks = Path("/proc/self/task").glob("*/children")
    (pid,) = (pid for task in tasks for pid in task.read_text().split())
    return Path("/proc") / pid


def look() -> None:
    gc.collect()
    trim(0)
    samples.append((*held(Path("/proc/self")), *held(monitor())))


def tell() -> None:
    stage.tell("holds", *(str(int(median(values))) for values in zip(*samples, strict=True)))
    samples.clear()


@Wrapper(completion_timeout=300.0)
def train(call: CallWrapper) -> None:
    global last, of_its_own, in_order, is_warm
    now = call.iteration
    in_order, last = in_order and now > last, now
    of_its_own += now % RANKS == RANK and now < ITERATIONS
    if now % 10 == 0:
        stage.tell(f"is in {now}")
    if now > (ITERATIONS if is_warm else WARM) - SAMPLES:
        with call.atomic():  # the other rank fails meanwhile
            look()
            if now >= (ITERATIONS if is_warm else WARM):
                tell()
                is_warm = True
    if now == ITERATIONS:
        return
    if now % RANKS == RANK:
        raise ValueError(f"iteration {now}")
    time.sleep(1000)


train()
stage.tell(f"ended: in order {in_order and last == ITERATIONS}, {of_its_own} of its own")
