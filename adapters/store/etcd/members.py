"""The members of one etcd cluster, for one process: a connection per member, and the values that all clients share.

Every client (`cluster_client.py`) has channels of its own over these connections, and ends its calls by closing them: a call
that blocks needs no thread of gRPC's, and can be ended in no other way. A connection is closed with its last channel.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any
from uuid import uuid4

from ....core.values import frozen
from ..tcpstore.wire import Address
from .access import Access
from .rpc import grpc, method, stream

MESSAGE_MAX = 16 * 2**20
"""Bytes. A larger answer is refused unread."""
OPTIONS = (
    ("grpc.keepalive_time_ms", 6_000),  # etcd ends a connection that is pinged more often than every 5 s
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", MESSAGE_MAX),
    ("grpc.max_send_message_length", MESSAGE_MAX),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
)
_CONNECTS = 0.75
"""The part of the time for an answer that a new connection may take. If it takes longer, nothing was asked."""


Begin = Callable[..., Any]
"""(request, timeout=, metadata=) -> the answer."""
Method = Callable[["Stubs"], Begin]


@frozen
class Stubs:
    """The requests that one client can make of a member."""

    address: Address
    channel: Any
    watch: Any
    """This request has a stream of answers."""
    range: Begin
    transact: Begin
    grant: Begin
    revoke: Begin
    renew: Begin
    authenticate: Begin


ASKED = (
    ("KV", "Range"),
    ("KV", "Txn"),
    ("Lease", "LeaseGrant"),
    ("Lease", "LeaseRevoke"),
    ("Lease", "LeaseKeepAlive"),
    ("Auth", "Authenticate"),
)
"""Service and method of each request, in the order of the stubs."""


ranged: Method = attrgetter("range")
transacted: Method = attrgetter("transact")
granted: Method = attrgetter("grant")
revoked: Method = attrgetter("revoke")
renewed: Method = attrgetter("renew")
authenticated: Method = attrgetter("authenticate")


class Members:
    """The values that all clients of one process share: connections, the member that answered last, and the token."""

    def __init__(self, addresses: Sequence[Address], access: Access, timeout_s: float, prefix: str) -> None:
        """The first question connects. `timeout_s` is how long one member may take to answer. `prefix` begins all our
        keys; it is for the texts. Raises Unusable for a file of the credentials that cannot be read."""
        self.addresses = tuple(addresses)
        self.access = access
        self.timeout_s = timeout_s
        self.prefix = prefix
        self.lock = threading.Lock()
        self.token: str | None = None if access.user else ""
        self.failures = 0
        """Counts failed connections: after a failure we may reach another cluster."""
        self._first = random.randrange(len(self.addresses))
        self._credentials = grpc.ssl_channel_credentials(*access.read()) if access.tls else None
        self._options = (
            *OPTIONS,
            (
                "grpc.min_reconnect_backoff_ms",
                int(_CONNECTS * timeout_s * 1_000),
            ),  # for how long one may try to connect
            ("elastic.members", uuid4().hex),  # channels of the same options share a connection
        )

    def __str__(self) -> str:
        return ",".join(map(str, self.addresses))

    def in_turn(self) -> tuple[Address, ...]:
        """Return all members, beginning with the one that answered last."""
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
        """Return stubs for one client, which closes the channel."""
        channel = self._channel(address)
        return Stubs(address, channel, stream(channel, "Watch", "Watch"), *(method(channel, *each) for each in ASKED))

    def _channel(self, address: Address) -> Any:
        if self._credentials is None:
            return grpc.insecure_channel(str(address), self._options)
        return grpc.secure_channel(str(address), self._credentials, self._options)
