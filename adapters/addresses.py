"""Names and addresses as this host sees them: where a name leads, which address is its own, from which one it speaks."""

from __future__ import annotations

import socket
from typing import Any


def resolved(host: str, port: int = 0) -> list[tuple[int, Any]]:
    """Return the families and socket addresses to which a name or an address leads. Raises OSError if nobody knows it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # no name can be written so
        raise socket.gaierror(socket.EAI_NONAME, str(error)) from error
    return [(family, where) for family, _, _, _, where in found]


def is_loopback(address: str) -> bool:
    """Return True if only processes of this host reach this address."""
    return address == "::1" or address.startswith("127.")


def check_own(family: int, where: Any) -> None:
    """Raise OSError if this host does not have the address."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((where[0], 0, *where[2:]))


def is_own(family: int, where: Any) -> bool:
    """Return True if this host has the address."""
    try:
        check_own(family, where)
    except OSError:
        return False
    return True


def source(host: str, port: int) -> str:
    """Return the address from which this host reaches another one. No packet is sent. Raises OSError without a route."""
    family, where = resolved(host, port)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(where)
        return str(probe.getsockname()[0])
