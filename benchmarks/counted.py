"""Clients of real stores that count what goes through their connections: requests, and bytes both ways."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import define, field, frozen

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.etcd.access import Access
from elastic.adapters.store.etcd.etcd_register import EtcdBackend
from elastic.adapters.store.etcd.members import Members, Stubs
from elastic.adapters.store.etcd.run_keys import prefix_of
from elastic.adapters.store.port import Backend
from elastic.adapters.store.tcpstore import link
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address, WireClient
from elastic.core.rendezvous import Settings

LOOKS_S = 600.0
"""How often a waiter reads the register untold. In a job it is once a second; here that would count the machine's load."""
ANSWER_S = 120.0
"""How long a store may take to answer: one that serves thousands on two cores is slow, and not dead."""


class _Asking(threading.local):
    regular = False


ASKING: _Asking = _Asking()


@define(eq=False)
class Traffic:
    """The traffic of one connection."""

    regular: bool = field(factory=lambda: ASKING.regular)
    """Its questions come once per interval, whatever happens: heartbeats, and looks at those of others."""
    requests: int = 0
    bytes: int = 0


TRAFFIC: list[Traffic] = []
"""The traffic of each connection that this process has opened."""


@contextmanager
def regularly() -> Iterator[None]:
    """Count what this thread asks over connections that it opens here as regular."""
    ASKING.regular = True
    try:
        yield
    finally:
        ASKING.regular = False


@frozen
class Total:
    """The traffic of all connections of this process."""

    requests: int
    bytes: int
    regular: int
    """Requests beside these, which come once per interval."""

    def __sub__(self, other: Total) -> Total:
        return Total(self.requests - other.requests, self.bytes - other.bytes, self.regular - other.regular)


def total() -> Total:
    every = [(each.requests, each.bytes, each.regular) for each in list(TRAFFIC)]
    asked = [each for each in every if not each[2]]
    return Total(
        sum(each[0] for each in asked), sum(each[1] for each in asked), sum(each[0] for each in every if each[2])
    )


def _counted() -> Traffic:
    TRAFFIC.append(Traffic())
    return TRAFFIC[-1]


class CountedWire(WireClient):
    """A connection to a TCPStore that counts."""

    def __init__(self, address: Address, timeout_s: float, bytes_max: int) -> None:
        self._traffic = _counted()
        super().__init__(address, timeout_s, bytes_max)

    def _send(self, request: bytes) -> None:
        self._traffic.requests += 1
        self._traffic.bytes += len(request)
        super()._send(request)

    def _read(self, size: int) -> bytes:
        self._traffic.bytes += size
        return super()._read(size)


class CountedMembers(Members):
    """The members of an etcd, asked over connections that count messages."""

    def stubs(self, address: Address) -> Stubs:
        made, traffic = super().stubs(address), _counted()
        begins = (made.watch, made.range, made.transact, made.grant, made.revoke, made.renew, made.authenticate)
        return Stubs(made.address, made.channel, *(_counting(begin, traffic) for begin in begins))


def _counting(begin: Callable[..., Any], traffic: Traffic) -> Callable[..., Any]:
    def ask(request: Any, **given: Any) -> Any:
        traffic.requests += 1
        traffic.bytes += request.ByteSize()
        answer = begin(request, **given)
        if hasattr(answer, "ByteSize"):
            traffic.bytes += answer.ByteSize()
            return answer
        return _CountedStream(answer, traffic)

    return ask


@frozen
class _CountedStream:
    stream: Any
    traffic: Traffic

    def __iter__(self) -> Any:
        for each in self.stream:
            self.traffic.bytes += each.ByteSize()
            yield each

    def cancel(self) -> None:
        self.stream.cancel()


link.WireClient = CountedWire  # type: ignore[attr-defined]


def client(kind: str, addresses: Sequence[Address], run_id: str) -> Backend:
    """Return a client of the store for one agent."""
    clock = SystemClock()
    if kind == "tcpstore":
        return TCPStoreBackend(addresses[0], run_id, clock, LOOKS_S, timeout_s=ANSWER_S)
    members = CountedMembers(addresses, Access(), ANSWER_S, prefix_of(run_id))
    return EtcdBackend(members, run_id, clock, round(Settings().ttl), LOOKS_S)
