"""The watched side of one agent's links: its port accepts observers and answers their hellos.

A client of the port is not trusted. It has 1 KiB and 2 s for its hello, and of too many silent clients the oldest is closed
first. Nothing is expected of an observer that has said its hello; it sees this node's death by the end of the connection.
"""

from __future__ import annotations

import errno
import math
import selectors
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from ...core.values import define, evolve, frozen
from ...core.world import Endpoint, Node
from ..addresses import ANY, in_turn, none_left, resolved
from ..clock import Clock
from .link_hello import (
    BYTES_MAX,
    GOODBYE,
    HELLO_S,
    OBSERVER,
    WATCHED,
    Hello,
    belongs,
    challenge,
    heard,
    proof,
    proves,
    spoken,
)
from .reserved_ports import claim

if TYPE_CHECKING:
    from ..store.secret import Secret

PENDING_MAX = 64
"""At most this many connections wait for a whole hello."""
OBSERVERS_MAX = 256
"""At most this many nodes watch this one. Usually three do."""
_KEEPALIVE_MAX_S = 32_767
"""The kernel takes no longer span between two probes of a silent connection."""
_NO_DESCRIPTOR_S = 1.0
"""A host without a free descriptor accepts no connection for this many seconds."""


@frozen
class LinkAddress:
    """Says where an agent listens for its observers: at the host's address, and at one of these ports."""

    host: str
    ports: Sequence[int] = ANY


@define(eq=False)
class Watching:
    """A connection to this node's port."""

    socket: socket.socket
    until: float
    challenge: str = ""
    heard: bytes = b""
    hello: Hello | None = None
    slot: str | None = None
    """The slot of the observer. It is None until the observer has said its whole hello."""


class LinkServer:
    """The port of one agent's links. One thread calls its methods, and the data of each key that its selector returns."""

    def __init__(
        self,
        node: Node,
        run_id: str,
        at: LinkAddress,
        ttl_s: float,
        clock: Clock,
        selector: selectors.BaseSelector,
        token: Secret | None = None,
    ) -> None:
        """Listen. Raises OSError."""
        self.node = node
        self.run_id = run_id
        self.at = at
        self.ttl_s = ttl_s
        self.clock = clock
        self.selector = selector
        self.token = token
        self.pending: dict[Watching, None] = {}
        """The connections that have said no whole hello yet. The oldest comes first."""
        self.observers: dict[str, Watching] = {}
        """The connections of the observers, by slot."""
        self._accept_at = math.inf
        self.listener = _listening(at.host, at.ports)
        self.selector.register(self.listener, selectors.EVENT_READ, self._accepts)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def due(self) -> float:
        """The time at which `passes` is to be called though nothing happens."""
        first = next(iter(self.pending), None)
        return min(self._accept_at, first.until if first else math.inf)

    def passes(self, now: float) -> None:
        """Close the connections whose time for a hello is over; accept again if that is due."""
        if now >= self._accept_at:
            self._accept_at = math.inf
            self.selector.register(self.listener, selectors.EVENT_READ, self._accepts)
        for watching in [each for each in self.pending if now >= each.until]:
            self._drops(watching)

    def close(self) -> None:
        """Say goodbye to all observers, and close the port."""
        for watching in [*self.pending, *self.observers.values()]:
            with suppress(OSError):
                watching.socket.send(GOODBYE)
            self._drops(watching)
        self.listener.close()

    def _accepts(self) -> None:
        try:
            made, _ = self.listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:  # no descriptor is left: the clients in the queue wait on
            self.selector.unregister(self.listener)
            self._accept_at = self.clock.now() + _NO_DESCRIPTOR_S
            return
        made.setblocking(False)
        end_when_silent(made, self.ttl_s)
        watching = Watching(made, self.clock.now() + HELLO_S)
        self.pending[watching] = None
        self.selector.register(made, selectors.EVENT_READ, lambda: self._hears_observer(watching))
        if len(self.pending) > PENDING_MAX:
            self._drops(next(iter(self.pending)))

    def _drops(self, watching: Watching) -> None:
        self.selector.unregister(watching.socket)
        watching.socket.close()
        self.pending.pop(watching, None)
        if watching.slot is not None and self.observers.get(watching.slot) is watching:
            del self.observers[watching.slot]

    def _hears_observer(self, watching: Watching) -> None:
        if watching.socket.fileno() < 0:
            return  # it was ready together with the client that took its place
        try:
            data = watching.socket.recv(BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drops(watching)
        elif watching.slot is None:
            watching.heard += data
            try:
                self._greets(watching)
            except (ValueError, OSError):
                self._drops(watching)

    def _greets(self, watching: Watching) -> None:
        """Answer what an observer has said. Raises ValueError for what is no hello, and OSError."""
        while b"\n" in watching.heard and watching.slot is None:
            line, _, watching.heard = watching.heard.partition(b"\n")
            hello = heard(line)
            if watching.hello is None:
                if not belongs(hello, self.run_id, self.token):
                    raise ValueError("another run, or one of the two has no token")
                watching.hello, watching.challenge = hello, challenge(self.token)
                mine = Hello(self.run_id, self.node, watching.challenge)
                signed = evolve(mine, proof=proof(self.token, WATCHED, mine, hello.challenge))
                watching.socket.send(spoken(signed))
                if self.token:
                    continue
            if (hello.run, hello.node) != (self.run_id, watching.hello.node) or not proves(
                self.token, OBSERVER, hello, watching.challenge
            ):
                raise ValueError("no proof")
            self._is_watched_by(watching, hello.node.slot)
        if len(watching.heard) > BYTES_MAX:
            raise ValueError("too long")

    def _is_watched_by(self, watching: Watching, slot: str) -> None:
        if earlier := self.observers.get(slot):
            self._drops(earlier)
        if len(self.observers) >= OBSERVERS_MAX:
            raise ValueError("too many")
        watching.slot = slot
        self.observers[slot] = watching
        del self.pending[watching]


def addresses(endpoint: Endpoint) -> list[tuple[int, Any]]:
    """Return the families and addresses at which this endpoint may be reached. A name that nobody knows has none."""
    try:
        return resolved(endpoint.address, endpoint.port)
    except OSError:
        return []


def _listening(address: str, ports: Sequence[int]) -> socket.socket:
    """Return a socket that listens on this address, at one of these ports. It listens on every address if this one is not
    this host's own, or is a name that only this host takes for its loopback (as Debian's /etc/hosts has it). Raises
    OSError."""
    family = int(socket.AF_INET)
    for family, where in addresses(Endpoint(address, 1)):
        host = str(where[0])
        if not host.startswith("127.") or address in (host, "localhost"):
            with suppress(OSError):
                return _bound(family, host, ports)
    return _bound(family, "::" if family == socket.AF_INET6 else "", ports)


def _bound(family: int, host: str, ports: Sequence[int]) -> socket.socket:
    reason = none_left(ports)
    for port in in_turn(ports, 0):
        try:
            return _bound_at(family, host, port)
        except OSError as error:
            if not (port and error.errno == errno.EADDRINUSE):
                reason = error
    raise reason


def _bound_at(family: int, host: str, port: int) -> socket.socket:
    """Return a socket that listens there, also where the kernel remembers connections of the port's last owner."""
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with ExitStack() as claimed:
            try:
                made.bind((host, port))
            except OSError as error:
                if not port or error.errno != errno.EADDRINUSE:
                    raise
                claimed.enter_context(claim(port))
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                made.bind((host, port))
            made.listen(PENDING_MAX)
    except OSError:
        made.close()
        raise
    return made


def end_when_silent(made: socket.socket, ttl_s: float) -> None:
    """Let the kernel end a connection whose other host is silent: a host that lost its power closes nothing."""
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    probes_after_s = round(min(max(ttl_s / 5, 1), _KEEPALIVE_MAX_S))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, probes_after_s)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, probes_after_s)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(min(ttl_s * 1000, 2**31 - 1)))
