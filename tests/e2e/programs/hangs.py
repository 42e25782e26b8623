"""All ranks but the first meet in a collective of gloo, but for the last ones: `hangs.py HOW[,HOW…] [whole]`.

Each HOW is what one of the last ranks does, by rank: a function of this program, or `step` as the others.

Rank 0 fails when it may. It is no member of their group, so that its death does not end the collective before anybody has
looked. In a `whole` job it waits with the others. Else the others ignore SIGTERM: the first node that stops its workers
would end the collective before the other node has looked.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import signal
import sys
import threading
import time
from typing import NoReturn

import quick_torch  # noqa: F401
import stage
import torch
import torch.distributed as dist

LONG_S = 1_000


def asleep() -> None:
    time.sleep(LONG_S)


def lock_of_python() -> None:
    while True:  # a signal ends it
        ctypes.PyDLL(None).sleep(LONG_S)


def spinning() -> None:
    sum(itertools.repeat(0))  # in C, which never gives the lock away


def own_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def stopped() -> None:
    while True:  # it is resumed when it is asked for its stack, and when it is to end: it must not join the others then
        os.kill(os.getpid(), signal.SIGSTOP)


class Slow(torch.utils.data.Dataset[int]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        time.sleep(LONG_S)
        return index


def loader() -> None:
    importlib.import_module("torch._meta_registrations")  # its process makes a generator, for which torch needs them
    for _ in torch.utils.data.DataLoader(Slow(), num_workers=1):
        raise AssertionError


def step(group: dist.ProcessGroup) -> None:
    dist.all_reduce(torch.ones(1), group=group)


def main() -> NoReturn:
    dist.init_process_group("gloo")
    first = 0 if "whole" in sys.argv else 1
    if stage.rank >= first > 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    group = dist.new_group(range(first, dist.get_world_size()))
    stage.tell("begins")
    ways = {each.__name__: each for each in (asleep, lock_of_python, spinning, own_lock, stopped, loader)}
    for rank, how in enumerate(reversed(sys.argv[1].split(","))):
        if stage.rank == dist.get_world_size() - 1 - rank and how != "step":
            ways[how]()
    if stage.rank < first:
        stage.wait_for_gate()
        sys.exit(3)
    step(group)
    raise AssertionError


if __name__ == "__main__":
    main()
