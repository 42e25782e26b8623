"""The workers' meeting place of one round: a port that this node holds free until its worker rank 0 listens there.

torch's agents share one store over all rounds, so a restarted worker meets the addresses of the last round. Here each agent
reserves a new port before it arrives, by a socket that is bound with SO_REUSEADDR and never listens: the kernel hands the
port to nobody else, and a worker's TCPStore (which sets SO_REUSEADDR too, both of its implementations) can still bind it.
"""

from __future__ import annotations

import socket
from types import TracebackType

from ..core.world import Endpoint


class Reservation:
    """A port of this host, held until `release`."""

    def __init__(self, address: str) -> None:
        """Reserve a port; `address` is how other nodes reach this host. Raises OSError if the host has none left."""
        self._socket = _bound()
        self.endpoint = Endpoint(address, self._socket.getsockname()[1])

    def release(self) -> None:
        self._socket.close()

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _bound() -> socket.socket:
    """Bound on every address of both families; on a host without IPv6, of the one."""
    try:
        return _bind(socket.AF_INET6, "::")
    except OSError:
        return _bind(socket.AF_INET, "0.0.0.0")


def _bind(family: socket.AddressFamily, address: str) -> socket.socket:
    holder = socket.socket(family, socket.SOCK_STREAM)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        holder.bind((address, 0))
    except OSError:
        holder.close()
        raise
    return holder
