"""Ports of loopback for what a test starts later, while other tests look for ports too."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from random import randrange


@contextmanager
def reserved() -> Iterator[int]:
    """A port that the kernel gives to nobody who does not ask for it: nobody listens there but who is told to."""
    with socket.socket(socket.AF_INET) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def a_row_of(count: int) -> tuple[int, ...]:
    """Ports one after the other that nobody has, and that the kernel gives to nobody who asks for any port."""
    while True:
        first = randrange(10_000, 32_000)
        ports = tuple(range(first, first + count))
        if not any(map(is_taken, ports)):
            return ports


def is_taken(port: int) -> bool:
    """True if somebody has the port, on whichever address, or the kernel remembers connections there."""
    with socket.socket(socket.AF_INET) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False
