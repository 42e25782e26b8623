"""Reserve the ports of one round's MASTER_PORT: this node holds them free until its worker rank 0 listens there.

torch's agents share one store over all rounds, so a restarted worker finds the addresses of the last round. Here each agent
reserves a new port before it arrives, by a socket that never listens and is bound with SO_REUSEADDR. The kernel gives the
port to nobody else, and a worker's TCPStore (both of its implementations set SO_REUSEADDR) can still bind it.

Programs count on from there: nvidia-resiliency-ext's example has a store of its own on MASTER_PORT + 1 and the wrapper's on
MASTER_PORT + 2. Linux hands out ports by parity and gives the first of these to connections, so it is often taken before it
is needed. Both are held with the port.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from types import TracebackType

from ...core.world import Endpoint

_NEIGHBOURS = 2
_TRIES = 64


class Reservation:
    """A port of this host, held until `release`, and with it the two after it where they can be had."""

    def __init__(self, address: str) -> None:
        """Reserve a port; `address` is how other nodes reach this host. Raises OSError if the host has none left."""
        port, self._held = _in_a_row()
        self.endpoint = Endpoint(address, port)

    def renew(self) -> None:
        """Hold another port instead. A host that has none for now leaves the last one, which no worker uses by then."""
        try:
            port, held = _in_a_row()
        except OSError:
            return
        self.release()
        self.endpoint, self._held = Endpoint(self.endpoint.address, port), held

    def release(self) -> None:
        self._held.close()

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _in_a_row() -> tuple[int, ExitStack]:
    """Reserve a port and its neighbours; on a host too full for such a row, any port alone."""
    for _ in range(_TRIES):
        # What is raised: somebody has a neighbour, or there is no such port.
        with suppress(OSError, OverflowError), ExitStack() as held:
            port = _port_of(held.enter_context(_bound(0)))
            for each in range(port + 1, port + 1 + _NEIGHBOURS):
                held.enter_context(_bound(each))
            return port, held.pop_all()
    held = ExitStack()
    return _port_of(held.enter_context(_bound(0))), held


def _port_of(holder: socket.socket) -> int:
    return int(holder.getsockname()[1])


def _bound(port: int) -> socket.socket:
    """Return a socket that is bound on every address, of IPv6 and IPv4 where the host has both. 0 is any port."""
    try:
        return _bind(socket.AF_INET6, "::", port)
    except OSError:
        return _bind(socket.AF_INET, "0.0.0.0", port)


def _bind(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    """Bind first and share then: a socket that shares already would take a port that another node here holds so."""
    holder = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        holder.bind((address, port))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except (OSError, OverflowError):
        holder.close()
        raise
    return holder
