"""A worker's report: one packet over a socket, before its end (startup/sitecustomize.py, function.py).

It says that an exception is uncaught, or that the interpreter begins to end, and when that was. The end itself may take
long: atexit handlers and threads run first, and a process group may wait for its peers. A worker is not trusted: one packet
is read, of bounded length, and its time counts only if it is within the worker's life.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from enum import Enum

from ....core.values import frozen

_PACKET_MAX = 1 << 16


class What(Enum):
    """The kinds of a report."""

    RAISE = "raise"
    ENDING = "ending"


@frozen
class Report:
    """`at` is the host's monotonic time, `after_s` how long the worker had run by then. `record` is what would be in the
    error file, if that could not be written."""

    what: What
    at: float
    after_s: float
    record: bytes = b""


def channel() -> tuple[socket.socket, socket.socket]:
    """Return the agent's end and the worker's. Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.setblocking(False)
    return ours, theirs


def read(ours: socket.socket, started_at: float, now: float) -> Report | None:
    """Return what the worker has reported by now; None if nothing, or nonsense."""
    with suppress(OSError, ValueError):  # ValueError: no such kind, no text or no number; OSError: nothing is there
        head, _, record = ours.recv(_PACKET_MAX, socket.MSG_DONTWAIT).partition(b"\n")
        what, at = head.decode().split(" ")
        told_at = float(at)
        when = told_at if started_at <= told_at <= now else now
        return Report(What(what), when, when - started_at, record)
    return None
