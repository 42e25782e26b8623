"""A wrapped function on a host that has no thread left: `threadless.py start|abort|monitor`, on the last rank, for good.

`start`: before the call. `abort`: when the function fails. `monitor`: in the monitor process, when its rank is killed.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import stage
from processes import held_by, monitor_of

from elastic.inprocess import CallWrapper, Wrapper

WHERE = sys.argv[1]
MINE, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
IS_SHORT = MINE == RANKS - 1
THREADS_OF_A_MONITOR = 3
PAGE = 4_096
STACK = 512 << 20
"""Threads with such a stack do not fit into what is left."""
LEFT = 256 << 20


def have_no_room(pid: int, left: int) -> None:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    resource.prlimit(pid, resource.RLIMIT_AS, (pages * PAGE + left, resource.RLIM_INFINITY))


def have_no_thread() -> None:
    threading.stack_size(STACK)
    have_no_room(os.getpid(), LEFT)


def sleeps(pid: int) -> bool:
    """Whether no thread of it runs. One that begins while memory is short ends before whoever starts it hears of it."""
    return all("\tS (sleeping)" in (task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir())


def be_killed_beside_a_monitor_without_a_thread() -> None:
    while (
        (monitor := monitor_of(os.getpid())) is None
        or held_by(monitor)[1] < THREADS_OF_A_MONITOR
        or not all(sleeps(monitor) for _ in range(5))
    ):
        time.sleep(0.01)
    have_no_room(monitor, PAGE)
    os.kill(os.getpid(), signal.SIGKILL)


@Wrapper()
def train(call: CallWrapper) -> None:
    stage.tell("in", call.iteration, "of", os.environ["WORLD_SIZE"])
    if call.iteration:
        return
    with call.disable_hang_protection():
        stage.wait_for_gate()
        if WHERE == "abort" and IS_SHORT:
            have_no_thread()
            raise ValueError("boom")
        if WHERE == "monitor" and IS_SHORT:
            be_killed_beside_a_monitor_without_a_thread()
        time.sleep(1_000)


if WHERE == "start" and IS_SHORT:
    have_no_thread()
try:
    train()
except BaseException as error:
    stage.tell("raised", type(error).__name__, error)
    raise
