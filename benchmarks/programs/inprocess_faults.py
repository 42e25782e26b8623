"""A rank whose function goes wrong as it is told, under one wrapper or the other; prints points in time, one line each.

    inprocess_faults.py elastic|peer default|fast FAULT COUNT

Each line begins with the rank. `in I T`: the function was entered in iteration I; `fault I T`: what is to go wrong does now;
`end I T`: the function returns; `out T`: the call has returned. T is monotonic seconds of this host. In each of COUNT
iterations one rank fails (FAULT@RANK, or rank 1) some time after all are in; then all return at one point in time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch

WRAPPER, SETTINGS, FAULT, COUNT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
SOFT_S, HARD_S = 1.0, 20.0
SETTLE_S = 0.4
FIRST_S = 2.0
"""The first time: every monitor process has begun by then, on a busy machine too."""
RANK = int(os.environ["RANK"])
LONG_S = 3_600


def fail() -> None:
    raise ValueError("as it was told")


FAULTS: dict[str, Callable[[], object]] = {
    "exception": fail,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "sleep": lambda: time.sleep(LONG_S),
    "c": lambda: ctypes.CDLL(None).sleep(LONG_S),
    "gil": lambda: ctypes.PyDLL(None).sleep(LONG_S),
    "none": lambda: None,
}
WHO = int(FAULT.partition("@")[2] or 1)
HOW = FAULT.partition("@")[0]


def say(*words: object) -> None:
    os.write(1, f"{RANK} {' '.join(map(str, words))} {time.monotonic()}\n".encode())


def options() -> dict[str, Any]:
    """Hangs are looked for with one soft limit; fast: what the peer's user can turn down."""
    made: dict[str, Any] = {"fresh_after": None} if WRAPPER == "elastic" else {}
    if HOW in ("sleep", "c", "gil"):
        interval = timedelta(milliseconds=100)
        made |= {"soft_timeout": timedelta(seconds=SOFT_S), "hard_timeout": timedelta(seconds=HARD_S)}
        if WRAPPER == "peer":  # it only ever kills a rank that hangs in C
            made["hard_timeout"] = timedelta(seconds=SOFT_S + 0.1)
        names = ("monitor_thread_interval", "monitor_process_interval", "progress_watchdog_interval")
        made |= dict.fromkeys(names, interval)
    if SETTINGS == "fast":
        interval = timedelta(milliseconds=10)
        names = ("monitor_thread_interval", "monitor_process_interval", "progress_watchdog_interval")
        made |= dict.fromkeys(names, interval) | {"last_call_wait": timedelta(0)}
        if WRAPPER == "peer":
            made["heartbeat_interval"] = interval
    return made


def wrapper() -> Callable[..., Any]:
    if WRAPPER == "elastic":
        from elastic.inprocess import Wrapper

        return Wrapper(**options())
    import nvidia_resiliency_ext.inprocess as peer

    return peer.Wrapper(**options())  # type: ignore[no-any-return]


_iteration = -1


@wrapper()
def train() -> float:
    global _iteration
    _iteration += 1
    say("in", _iteration)
    goes_on_at = time.monotonic() + (SETTLE_S if _iteration else FIRST_S)
    while time.monotonic() < goes_on_at:
        time.sleep(0.01)
    if _iteration < COUNT:
        if RANK == WHO:
            say("fault", _iteration)
            FAULTS[HOW]()
        while True:  # the peer interrupts only what runs bytecode
            time.sleep(0.001)
    say("end", _iteration)
    return float(torch.zeros(1)[0])


train()
say("out")
time.sleep(SETTLE_S)  # the end of a process that has torch takes time that others, on few cores, need for their way out
