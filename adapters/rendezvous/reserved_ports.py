"""Reserve the ports of one round's MASTER_PORT: this node holds them until the round's store is served there.

torch's agents share one store over all rounds, so a restarted worker finds the addresses of the last round. Here each agent
reserves a new port before it arrives, by a socket that is bound with SO_REUSEADDR. The kernel gives the port to nobody else.
Where the agent serves the round's store, this very socket listens. Where worker rank 0 does, it never listens, and the
worker's TCPStore (both of its implementations set SO_REUSEADDR) can still bind the port.

Programs count on from there: nvidia-resiliency-ext's example has a store of its own on MASTER_PORT + 1 and the wrapper's on
MASTER_PORT + 2. Linux hands out ports by parity and gives the first of these to connections, so it is often taken before it
is needed. Both are held with the port.

Behind a firewall a node may listen at some ports only. It takes them in turn, and those of the last round come
last: a worker of that round may still ask there. A port is had although the kernel remembers connections of its last owner.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import repeat
from types import TracebackType

from ...core.world import Endpoint
from ..addresses import ANY, in_turn, none_left

_NEIGHBOURS = 2
_BESIDE = 1
"""The next round's port."""
_TRIES = 64
_BACKLOG = 4_096


class Reservation:
    """A port of this host, held until `release`, and with it the two after it where they can be had."""

    def __init__(
        self, address: str, ports: Sequence[int] = ANY, neighbours: int = _NEIGHBOURS, beside: int = _BESIDE
    ) -> None:
        """Reserve one of these ports; `address` is how other nodes reach this host. It takes no row where that would leave
        the node less than `beside` of them. Raises OSError if none is left."""
        scarce = ports[-1] != 0 and len(ports) <= neighbours + beside
        self._ports, self._neighbours = ports, 0 if scarce else neighbours
        self._first, self._held = self._in_a_row(0)
        self.endpoint = Endpoint(address, _port_of(self._first))

    def renew(self) -> None:
        """Hold another port instead. A host that has none for now leaves the last one, which no worker uses by then."""
        try:
            first, held = self._in_a_row(self.endpoint.port)
        except OSError:
            return
        self.release()
        self._first, self._held = first, held
        self.endpoint = Endpoint(self.endpoint.address, _port_of(first))

    def listening(self, port: int) -> socket.socket:
        """Return a socket that listens at this port, which the node holds, or held before. The caller closes it. Raises
        OSError."""
        listening = self._first.dup() if port == self.endpoint.port else _shared(port)
        try:
            listening.listen(_BACKLOG)
        except OSError:
            listening.close()
            raise
        return listening

    def release(self) -> None:
        self._held.close()

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _in_a_row(self, last: int) -> tuple[socket.socket, ExitStack]:
        """Reserve a port and its neighbours; on a host too full for such a row, one port alone."""
        reason = none_left(self._ports)
        for first, neighbours in self._tries(last):
            bind = _shared if first else _bound
            try:
                with ExitStack() as held:
                    holder = held.enter_context(bind(first))
                    port = _port_of(holder)
                    for each in range(port + 1, port + 1 + neighbours):
                        held.enter_context(bind(each))
                    return holder, held.pop_all()
            except (OSError, OverflowError) as error:  # somebody has it, or a neighbour, or there is no such port
                if isinstance(error, OSError) and not (first and error.errno == errno.EADDRINUSE):
                    reason = error
        try:
            raise reason
        finally:
            del reason  # else the error keeps this frame, which keeps the error, and with it whatever the callers hold

    def _tries(self, last: int) -> Iterator[tuple[int, int]]:
        """Yield ports, with the number of neighbours that each is to have, in the order in which they are tried."""
        named = [port for port in in_turn(self._ports, last) if port]
        open_to = {*named}
        for first in named:
            if open_to.issuperset(range(first, first + self._neighbours + 1)):
                yield first, self._neighbours
        if self._neighbours:
            yield from ((first, 0) for first in named)
        if len(named) < len(self._ports):
            yield from repeat((0, self._neighbours), _TRIES)
            yield 0, 0


def _port_of(holder: socket.socket) -> int:
    return int(holder.getsockname()[1])


def _bound(port: int) -> socket.socket:
    """Return a socket that is bound on every address, of IPv6 and IPv4 where the host has both. 0 is any port."""
    try:
        return _bind(socket.AF_INET6, "::", port)
    except OSError:
        return _bind(socket.AF_INET, "0.0.0.0", port)


def _shared(port: int) -> socket.socket:
    """Return such a socket also where the kernel remembers connections of the port's last owner: one that shares."""
    with claim(port):
        try:
            return _bind(socket.AF_INET6, "::", port, shares=True)
        except OSError:
            return _bind(socket.AF_INET, "0.0.0.0", port, shares=True)


def claim(port: int) -> socket.socket:
    """Return a socket that keeps this port for who shares it next. Raises OSError if somebody has it: the loopback's port,
    which remembers no connections of other hosts, tells."""
    return _bind(socket.AF_INET, "127.0.0.1", port)


def _bind(family: socket.AddressFamily, address: str, port: int, shares: bool = False) -> socket.socket:
    """Bind first and share then: a socket that shares already would take a port that another node here holds so."""
    holder = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shares)
        holder.bind((address, port))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except (OSError, OverflowError):
        holder.close()
        raise
    return holder
