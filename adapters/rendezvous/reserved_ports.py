"""The workers' meeting place of one round: ports that this node holds free until its worker rank 0 listens there.

torch's agents share one store over all rounds, so a restarted worker meets the addresses of the last round. Here each agent
reserves a new port before it arrives, by a socket that never listens and shares with whoever sets SO_REUSEADDR: the kernel
hands the port to nobody else, and a worker's TCPStore (which sets it, both of its implementations) can still bind it.

Programs count on from there: nvidia-resiliency-ext's example has a store of its own on MASTER_PORT + 1 and the wrapper's on
MASTER_PORT + 2. Of these a kernel that hands out ports by parity (Linux) gives the first to connections, so it is often gone
by the time it is wanted. They are held with the port.
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

    def release(self) -> None:
        self._held.close()

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _in_a_row() -> tuple[int, ExitStack]:
    """A port, and what holds it and its neighbours; on a host so full that no such row was met, any port alone."""
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
    """Bound on every address of both families; on a host without IPv6, of the one. 0 is any port."""
    try:
        return _bind(socket.AF_INET6, "::", port)
    except OSError:
        return _bind(socket.AF_INET, "0.0.0.0", port)


def _bind(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    """It shares from when it is bound: before, it would take a port that another node of this host holds like this."""
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
