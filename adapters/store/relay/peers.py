"""The process and the user at the other end of a unix socket, as the kernel names them."""

from __future__ import annotations

import socket
import struct

_CREDENTIALS = "3i"
"""Process, user and group."""


def peer_user(connection: socket.socket) -> int:
    """Return the effective user of the process that connected, or that listens."""
    return _peer(connection)[1]


def peer_process(connection: socket.socket) -> int:
    """Return the process that connected, or that listens; 0 if this process cannot see it, as from another container."""
    return _peer(connection)[0]


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_CREDENTIALS))
    process, user, group = struct.unpack(_CREDENTIALS, told)
    return process, user, group
