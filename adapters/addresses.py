"""Names, addresses and ports as this host sees them: where a name leads, which address is its own, from which one it speaks;
the ports at which a node may listen for others, in the order in which it tries them."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

_SIOCGIFADDR = 0x8915
_FAR = "192.0.2.1"
"""An address that nobody has (RFC 5737). Nothing is sent there."""
_ANSWER_S = 1.0
"""How long it takes at most until something answers, where a name leads to several addresses."""
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


def is_name(address: str) -> bool:
    """Return True if others must know this name to find the address behind it."""
    if address == "localhost":
        return False
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, address.partition("%")[0])
            return False
    return True


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
    """Return the address from which this host reaches another one. If that has several addresses, and its host answers at
    one of them, it is that of the connection; else of the first one with a route. Raises OSError without a route."""
    own = sources(host, port)
    spoken = (each for each, (family, where) in own.items() if len(own) == 1 or _answers(family, where))
    return next(spoken, next(iter(own)))


def sources(host: str, port: int) -> Mapping[str, tuple[int, Any]]:
    """Return this host's addresses from which it has a route to another host, each with the family and the socket address
    there. No packet is sent. Raises OSError if there is none."""
    own = dict[str, tuple[int, Any]]()
    failure: OSError | None = None
    for family, where in resolved(host, port):
        try:
            own.setdefault(_source(family, where), (family, where))
        except OSError as error:
            failure = failure or error
    if not own and failure:
        raise failure
    return own


def _source(family: int, where: Any) -> str:
    """Return the address from which this host reaches that one. No packet is sent. Raises OSError without a route."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(where)
        return str(probe.getsockname()[0])


def _answers(family: int, where: Any) -> bool:
    """Return True if the host at this address answers, be it that nobody listens there yet."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(where)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return True


def outward() -> set[str]:
    """Return this host's address on the default route, or the IPv4 addresses of its only interface but the loopback."""
    with suppress(OSError):
        return {_source(socket.AF_INET, (_FAR, 1))}
    others = [own for own in own_ipv4().values() if not any(map(is_loopback, own))]
    return others[0] if len(others) == 1 else set()


def own_ipv4() -> dict[str, set[str]]:
    """Return the IPv4 address of each interface by the interface's name."""
    found = dict[str, set[str]]()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no such address
                answer = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                found[name] = {socket.inet_ntoa(answer[20:24])}
    return found


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
