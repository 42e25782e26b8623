"""Ports of loopback for what a test starts later, while other tests look for ports too."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from random import randrange

_FIRST, _PARTS, _WIDTH = 10_000, 8, 2_750


@contextmanager
def reserved() -> Iterator[int]:
    """A port that the kernel gives to nobody who does not ask for it: nobody listens there but who is told to."""
    with socket.socket(socket.AF_INET) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket that listens at such a port. When it is closed, who connects there is refused: nobody else has the port."""
    with reserved() as port, socket.create_server(("127.0.0.1", port)) as server:
        yield server


def a_row_of(count: int) -> tuple[int, ...]:
    """Ports one after the other that nobody has, and that the kernel gives to nobody who asks for any port. Each runner of
    pytest-xdist takes them from a part of its own."""
    part = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PARTS
    while True:
        first = _FIRST + part * _WIDTH + randrange(_WIDTH - count)
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
