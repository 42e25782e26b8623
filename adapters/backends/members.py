"""The members of one etcd cluster, as one process speaks to them: a connection per member, and what all its clients share.

Every client (`line.py`) has calls of its own over these connections; the last one that goes closes them.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from attrs import frozen

from .access import Access
from .etcdrpc import grpc, method
from .wire import Address

MESSAGE_MAX = 16 * 2**20
"""A larger answer is refused unread."""
OPTIONS = (
    ("grpc.keepalive_time_ms", 6_000),  # etcd ends a connection that is pinged more often than every 5 s
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", MESSAGE_MAX),
    ("grpc.max_send_message_length", MESSAGE_MAX),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
)


class Call(Protocol):
    """A question that is under way."""

    def result(self) -> Any: ...

    def cancel(self) -> bool: ...


Begin = Callable[..., Call]
"""(request, timeout=, metadata=) -> the call."""
Method = Callable[["Stubs"], Begin]


@frozen
class Stubs:
    """What can be asked of a member; by gRPC's word, each of these methods can be called."""

    address: Address
    channel: Any
    range: Any
    transact: Any
    grant: Any
    revoke: Any
    keep_alive: Any
    watch: Any
    authenticate: Any

    def renew(self, request: Any, **how: Any) -> Call:
        """Keep a lease alive once, over a stream that ends with the answer."""
        return _First(self.keep_alive(request, **how))


ASKED = (
    ("KV", "Range"),
    ("KV", "Txn"),
    ("Lease", "LeaseGrant"),
    ("Lease", "LeaseRevoke"),
    ("Lease", "LeaseKeepAlive"),
    ("Watch", "Watch"),
    ("Auth", "Authenticate"),
)
"""Service and method, in the order of the stubs."""


@frozen
class _First:
    """The first answer of a stream."""

    stream: Any

    def result(self) -> Any:
        return next(self.stream)

    def cancel(self) -> bool:
        return bool(self.stream.cancel())


def ranged(stubs: Stubs) -> Begin:
    return stubs.range.future  # type: ignore[no-any-return]


def transacted(stubs: Stubs) -> Begin:
    return stubs.transact.future  # type: ignore[no-any-return]


def granted(stubs: Stubs) -> Begin:
    return stubs.grant.future  # type: ignore[no-any-return]


def revoked(stubs: Stubs) -> Begin:
    return stubs.revoke.future  # type: ignore[no-any-return]


def renewed(stubs: Stubs) -> Begin:
    return stubs.renew


def authenticated(stubs: Stubs) -> Begin:
    return stubs.authenticate.future  # type: ignore[no-any-return]


class Members:
    """What all clients of one process share: the connections, which member answered last, and the token."""

    def __init__(self, addresses: Sequence[Address], access: Access, timeout_s: float, prefix: str) -> None:
        """Connects when first asked something. `timeout_s` is how long one member may take to answer; `prefix` is what our
        keys begin with, for the texts."""
        self.addresses = tuple(addresses)
        self.access = access
        self.timeout_s = timeout_s
        self.prefix = prefix
        self.lock = threading.Lock()
        self.token: str | None = None if access.user else ""
        self.failures = 0
        """Of connections: after one it may be another cluster that is reached."""
        self._first = random.randrange(len(self.addresses))
        self._stubs: dict[Address, Stubs] = {}
        self._lines = 0

    def __str__(self) -> str:
        return ",".join(map(str, self.addresses))

    def enter(self) -> None:
        """A client comes."""
        with self.lock:
            self._lines += 1

    def leave(self) -> None:
        """A client is closed; the last one closes the connections."""
        with self.lock:
            self._lines -= 1
            left = list(self._stubs.values()) if not self._lines else []
            if left:
                self._stubs.clear()
        for stubs in left:
            stubs.channel.close()

    def in_turn(self) -> tuple[Address, ...]:
        """All members, the one that answered last before the others."""
        first = self._first
        return (*self.addresses[first:], *self.addresses[:first])

    def answered(self, address: Address) -> None:
        self._first = self.addresses.index(address)

    def failed(self, address: Address) -> None:
        with self.lock:
            self.failures += 1
            if self.addresses[self._first] == address:
                self._first = (self._first + 1) % len(self.addresses)

    def stubs(self, address: Address) -> Stubs:
        with self.lock:
            stubs = self._stubs.get(address)
            if stubs is None:
                channel = self._channel(address)
                stubs = self._stubs[address] = Stubs(address, channel, *(method(channel, *each) for each in ASKED))
        return stubs

    def _channel(self, address: Address) -> Any:
        if not self.access.tls:
            return grpc.insecure_channel(str(address), OPTIONS)
        credentials = grpc.ssl_channel_credentials(self.access.authorities, *self.access.own)
        return grpc.secure_channel(str(address), credentials, OPTIONS)
