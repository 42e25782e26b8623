"""A terminal, a pipe or a file that others share, to which the launcher writes without ever waiting for its reader.

A pipe or a terminal is opened once more, through /proc: the new description can be made non-blocking without the workers,
which share the old one, noticing. What it does not take at once is kept, and offered again when it can take more. Lines that
fit into PIPE_BUF reach it whole, between the lines of whoever else writes there.
"""

from __future__ import annotations

import os
import select
import socket
import stat
from collections.abc import Callable
from functools import partial

from ...clock import poll_ms

AGAIN = "/proc/self/fd/{}"
"""The path at which a descriptor's pipe or terminal can be opened anew."""


UNFINISHED: dict[tuple[int, int], object] = {}
"""By its place, who wrote the unfinished line that is the last one there. Whoever writes there next ends it first, or goes
on with it. Each thread takes or leaves an entry in one step."""


class Console:
    """A destination that one thread uses."""

    def __init__(self, descriptor: int) -> None:
        self._owned: int | None = None
        self._pending = bytearray()
        self._failed = False
        self.number, self._write = self._opened(descriptor)

    @property
    def pending(self) -> int:
        """The number of bytes that are kept."""
        return len(self._pending)

    def put(self, text: bytes) -> None:
        """Write what it takes now, keep the rest. One that has failed takes all and shows nothing."""
        if not self._failed:
            self._pending += text
            self.flush()

    def flush(self) -> None:
        """Write what it takes now."""
        try:
            while self._pending:
                written = self._write(self._piece())
                del self._pending[:written]
        except BlockingIOError:
            pass
        except OSError:
            self._failed = True
            self._pending.clear()

    def wait(self, timeout_s: float) -> None:
        """Wait until it takes more, at most this long."""
        poll = select.poll()
        poll.register(self.number, select.POLLOUT)
        poll.poll(poll_ms(timeout_s))

    def close(self) -> None:
        if self._owned is not None:
            os.close(self._owned)
            self._owned = None

    def _piece(self) -> bytes:
        """Return whole lines that the kernel takes whole or not at all, if there are such."""
        end = self._pending.rfind(b"\n", 0, select.PIPE_BUF) + 1
        return bytes(self._pending[: end or select.PIPE_BUF])

    def _opened(self, descriptor: int) -> tuple[int, Callable[[bytes], int]]:
        """Return a descriptor to wait on, and a function that writes without waiting."""
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISSOCK(mode):
            self._owned = os.dup(descriptor)
            return self._owned, partial(_send, self._owned)
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
            try:
                how = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
                self._owned = os.open(AGAIN.format(descriptor), how)
            except OSError:
                return descriptor, partial(_write_if_ready, descriptor)
            return self._owned, partial(os.write, self._owned)
        return descriptor, partial(os.write, descriptor)


def identity(descriptor: int) -> tuple[int, int]:
    """Return a value that two descriptors of one terminal, pipe or file have in common."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _send(descriptor: int, data: bytes) -> int:
    borrowed = socket.socket(fileno=descriptor)
    try:
        return borrowed.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    finally:
        borrowed.detach()


def _write_if_ready(descriptor: int, data: bytes) -> int:
    """Write to what may not be opened again (another user's terminal): it takes PIPE_BUF when it is ready."""
    ready = select.poll()
    ready.register(descriptor, select.POLLOUT)
    if not ready.poll(0):
        raise BlockingIOError
    return os.write(descriptor, data)
