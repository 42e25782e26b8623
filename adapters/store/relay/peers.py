"""The user at the other end of a unix socket, as the kernel says it."""

from __future__ import annotations

import socket
import struct

_CREDENTIALS = "3i"
"""Process, user and group."""


def peer_user(connection: socket.socket) -> int:
    """Return the effective user of the process that connected, or that listens."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_CREDENTIALS))
    return int(struct.unpack(_CREDENTIALS, told)[1])
