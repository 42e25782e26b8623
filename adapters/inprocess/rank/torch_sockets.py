"""The sockets of torch.distributed in this process: they are found among all its descriptors, and shut down.

gloo has no abort: a collective that waits for a dead peer waits for its own time-out. It raises at once when its socket is
shut down. A socket of gloo is recognised by a combination that no other program needs: it shares an epoll instance with a
listening socket, and it has time-outs for sending and receiving although it never blocks. The listening socket stays open:
without it gloo ends the process. A TCPStore's sockets are recognised by their port, which belongs to this iteration alone.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FDINFO = Path("/proc/self/fdinfo")
FDS = "/proc/self/fd"
TIMEVAL_BYTES = 16


def shut_gloo() -> int:
    """Shut down gloo's sockets: every wait for them raises. Return how many there were."""
    return sum(_shut(descriptor, _is_gloos) for descriptor in sorted(set(_served())))


def shut_store(port: int) -> int:
    """Shut down the sockets to a TCPStore on that port: every wait for a key raises. Return how many there were."""
    return sum(_shut(descriptor, lambda it: it.getpeername()[1] == port) for descriptor in _descriptors("socket:"))


def _served() -> Iterator[int]:
    """Yield the descriptors of every epoll instance that watches a listening socket."""
    for epoll in _descriptors("anon_inode:[eventpoll]"):
        members = _members(epoll)
        if any(_is(member, lambda it: _option(it, socket.SO_ACCEPTCONN)) for member in members):
            yield from members


def _descriptors(kind: str) -> list[int]:
    found = []
    for name in os.listdir(FDS):
        try:
            if os.readlink(f"{FDS}/{name}").startswith(kind):
                found.append(int(name))
        except OSError:
            continue  # closed meanwhile
    return sorted(found)


def _members(epoll: int) -> list[int]:
    """Return the descriptors that an epoll instance watches. Raises OSError if the process has no descriptor left."""
    try:
        lines = (FDINFO / str(epoll)).read_text().splitlines()
    except FileNotFoundError:
        return []  # closed meanwhile
    return [int(line.split()[1]) for line in lines if line.startswith("tfd:")]


def _is_gloos(it: socket.socket) -> bool:
    timeouts = (
        it.getsockopt(socket.SOL_SOCKET, each, TIMEVAL_BYTES) for each in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
    )
    return not _option(it, socket.SO_ACCEPTCONN) and all(any(timeout) for timeout in timeouts)


def _option(it: socket.socket, option: int) -> bool:
    return bool(it.getsockopt(socket.SOL_SOCKET, option))


def _is(descriptor: int, claim: Callable[[socket.socket], bool]) -> bool:
    with _tcp(descriptor) as it:
        return it is not None and _holds(claim, it)


def _shut(descriptor: int, claim: Callable[[socket.socket], bool]) -> bool:
    """Judge the socket and shut it down through a descriptor of our own: another file may get the number meanwhile."""
    with _tcp(descriptor) as it:
        if it is None or not _holds(claim, it):
            return False
        try:
            it.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False  # it had ended already
        return True


def _holds(claim: Callable[[socket.socket], bool], it: socket.socket) -> bool:
    try:
        return claim(it)
    except OSError:
        return False  # not connected


@contextmanager
def _tcp(descriptor: int) -> Iterator[socket.socket | None]:
    """A socket of our own for this descriptor; None if it is no TCP socket, or was closed meanwhile.

    Raises OSError if the process has no descriptor left.
    """
    try:
        duplicate = os.dup(descriptor)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        yield None  # closed meanwhile
        return
    try:
        it = socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        yield None  # no socket
        return
    try:
        yield it if it.family in (socket.AF_INET, socket.AF_INET6) and it.type == socket.SOCK_STREAM else None
    finally:
        it.close()
