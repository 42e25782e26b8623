"""What the workers of a test do: tell the test where they are, and wait for its word.

Told is a line in one write to a named pipe, so lines of several workers stay whole. The gate is a file that the test holds
locked, byte by byte, until it opens the gate of that number. The folder of both is named by the environment.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

FOLDER = "ELASTIC_TEST_STAGE"
TOLD, GATE = "told", "gate"

rank = int(os.environ.get("RANK", "-1"))
round = int(os.environ.get("ELASTIC_ROUND", "-1"))


def tell(*words: object) -> None:
    """Let the test know: who (round, rank, pid) and what."""
    line = " ".join(map(str, (round, rank, os.getpid(), *words)))
    descriptor = os.open(os.path.join(os.environ[FOLDER], TOLD), os.O_WRONLY)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def wait_for_gate(number: int = 0) -> None:
    """Until the test opens this gate; at once when it has."""
    with open(os.path.join(os.environ[FOLDER], GATE), "rb") as gate:
        fcntl.lockf(gate, fcntl.LOCK_SH, 1, number)


def gate_is_open(number: int = 0) -> bool:
    with open(os.path.join(os.environ[FOLDER], GATE), "rb") as gate:
        try:
            fcntl.lockf(gate, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, number)
        except BlockingIOError:
            return False
    return True


def wait_for_signal() -> NoReturn:
    """For ever: only a signal ends it. Its handler is called, also if it comes when Python has looked for signals and the
    wait has not begun: `signal.pause` would sleep on."""
    come, coming = os.pipe()
    os.set_blocking(coming, False)
    signal.set_wakeup_fd(coming)
    while True:
        os.read(come, 1)


def tell_signals(*, and_end: bool) -> None:
    """From now on tell of each signal, and end in order with the first or live on."""

    def told(signum: int, frame: FrameType | None) -> None:
        tell("got", signal.Signals(signum).name)
        if and_end:
            sys.exit(0)

    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, told)
