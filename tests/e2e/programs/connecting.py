"""Rank 0 fails, or is killed, before it serves the store of the process group, for which the others wait in torch.

Arguments: raises or dies, for each iteration but the last.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

import quick_torch  # noqa: F401
import stage
from torch import distributed

from elastic.inprocess import CallWrapper, Wrapper

WAITS = ("distributed/rendezvous.py", "inprocess/rank/master_wait.py")
MINE = int(os.environ["RANK"])


def tell_when_waiting() -> None:
    """Tell when the main thread waits for rank 0's store."""
    while not any(frame.f_code.co_filename.endswith(WAITS) for frame in main_frames()):
        time.sleep(0.01)
    stage.tell("waits")


def main_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back


@Wrapper()
def train(call: CallWrapper) -> int:
    stage.tell("in", call.iteration, "of", os.environ["WORLD_SIZE"])
    ways = sys.argv[1:]
    fails = call.iteration < len(ways)
    if fails and MINE == 0:
        stage.wait_for_gate(call.iteration)
        if ways[call.iteration] == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("boom")
    if fails:
        threading.Thread(target=tell_when_waiting, daemon=True).start()
    distributed.init_process_group("gloo")
    distributed.barrier()
    distributed.destroy_process_group()
    return call.iteration


stage.tell("returned", train())
