"""Ports of loopback for what a test starts later, while other tests look for ports too."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved() -> Iterator[int]:
    """A port that the kernel gives to nobody who does not ask for it: nobody listens there but who is told to."""
    with socket.socket(socket.AF_INET) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
