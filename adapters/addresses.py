"""Names, addresses and ports as this host sees them: where a name leads, which address is its own, from which one it speaks;
the ports at which a node may listen for others, in the order in which it tries them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Sequence
from typing import Any

ANY = (0,)
"""Any port that is free. A 0 at the end of other ports is any, too."""
PORTS = "ELASTIC_PORTS"
"""The variable of a worker that says at which ports its node may listen, as `29401-29420,29430`. Unset: any."""


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


def in_turn(ports: Sequence[int], last: int) -> Iterator[int]:
    """Yield the ports in the order in which they are tried after `last`; a 0, which is any free one, after all others."""
    named = ports[:-1] if ports[-1] == 0 else ports
    place = named.index(last) + 1 if last in named else 0
    yield from (*named[place:], *named[:place], *ports[len(named) :])


def ports_spelled(ports: Sequence[int]) -> str:
    """Return the ports as text: `29401-29420,29430`."""
    runs: list[list[int]] = []
    for port in ports:
        if port and runs and runs[-1][1] == port - 1:
            runs[-1][1] = port
        else:
            runs.append([port, port])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def ports_read(text: str) -> tuple[int, ...]:
    """Read what `ports_spelled` has written. Raises ValueError."""
    runs = [each.partition("-") for each in text.split(",")]
    return tuple(port for low, _, high in runs for port in range(int(low), int(high or low) + 1))


def none_left(ports: Sequence[int]) -> OSError:
    """Return the error that says so of these ports."""
    return OSError(
        errno.EADDRINUSE,
        f"of the ports {ports_spelled(ports)}, none is free on this host; open more of them "
        "(for a minute after a connection over the loopback its port is not free)",
    )
