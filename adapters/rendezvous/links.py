"""The links of one agent: the connections to the nodes that it watches, and its own port (`link_server.py`).

One thread serves all of them. It decides nothing: each event of a connection goes through the core's ladder
(`core/rendezvous/links.py`), and the client hears what the ladder tells. A host that cannot have a port has no links.
"""

from __future__ import annotations

import errno
import math
import os
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, assert_never

from ...core.rendezvous import Linked, RendezvousState
from ...core.rendezvous.links import (
    Answered,
    Connect,
    Ended,
    Event,
    Failed,
    Link,
    Refused,
    Tell,
    followed,
    transition,
)
from ...core.values import define, evolve, frozen
from ...core.world import Endpoint, Node
from .. import threads
from ..clock import Clock, poll_ms
from .link_hello import (
    ALIVE,
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
from .link_server import LinkAddress, LinkServer, addresses, end_when_silent

if TYPE_CHECKING:
    from ..store.secret import Secret


@frozen
class _Stop:
    """The agent is done."""


@frozen
class _Known:
    """The register, as far as the agent knows it, and whether the store is silent."""

    state: RendezvousState | None
    is_silent: bool


@define(eq=False)
class _Watched:
    """A node that this one watches."""

    link: Link
    addresses: list[tuple[int, Any]]
    """The families and addresses at which it may be reached. They are read once: a link that ends is tried again at once."""
    connect_at: float
    socket: socket.socket | None = None
    until: float = math.inf
    """At this time the connection, or its hello, has taken too long."""
    challenge: str = ""
    heard: bytes = b""


class Links:
    """The links of one agent, and their thread. The thread calls `tell` with what a link tells of its node."""

    def __init__(
        self,
        node: Node,
        run_id: str,
        at: LinkAddress,
        interval_s: float,
        ttl_s: float,
        clock: Clock,
        tell: Callable[[Linked], None],
        token: Secret | None = None,
    ) -> None:
        """Listen. Raises OSError."""
        self.node = node
        self.run_id = run_id
        self.at = at
        self.interval_s = interval_s
        self.ttl_s = ttl_s
        self.clock = clock
        self.tell = tell
        self.token = token
        self.stand: Mapping[Node, bool] = {}
        """The nodes that this one watches, and if the link stands. Any thread may read this."""
        self._beaten_at: float | None = None
        self._alive_at = 0.0
        self._watched: dict[Node, _Watched] = {}
        self._known = _Known(None, is_silent=False)
        self._inbox: SimpleQueue[_Known | _Stop] = SimpleQueue()
        self._selector = selectors.DefaultSelector()
        try:
            self.server = LinkServer(node, run_id, at, ttl_s, clock, self._selector, token)
        except OSError:
            self._selector.close()
            raise
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._wake, selectors.EVENT_READ, self._wakes)
        self._thread = threading.Thread(target=self._run, name="elastic-links", daemon=True)

    def start(self) -> None:
        """Begin to serve the links. Raises NoThread."""
        threads.start(self._thread)

    def follow(self, state: RendezvousState | None, is_silent: bool) -> None:
        """Watch the neighbours that this register names; while the store is silent, those behind dead ones too."""
        self._inbox.put(_Known(state, is_silent))
        os.eventfd_write(self._wake, 1)

    def beaten(self, sent_at: float) -> None:
        """Take note of an acknowledged heartbeat."""
        self._beaten_at = sent_at

    def stop(self) -> None:
        """Say goodbye on all links, and close them. Idempotent."""
        if self._wake == -1:
            return
        if self._thread.ident is not None:
            self._inbox.put(_Stop())
            os.eventfd_write(self._wake, 1)
            self._thread.join()
        self._close()

    def _close(self) -> None:
        for watched in [*self._watched.values()]:
            self._leaves(watched)
        self.server.close()
        self._selector.close()
        os.close(self._wake)
        self._wake = -1

    # --- the thread

    def _run(self) -> None:
        while not self._is_told_to_stop():
            now = self.clock.now()
            for key, _ in self._selector.select(poll_ms(self._due() - now) / 1000):
                key.data()
            self._passes(self.clock.now())

    def _is_told_to_stop(self) -> bool:
        try:
            while not isinstance(told := self._inbox.get_nowait(), _Stop):
                self._known = told
                self._follows()
            return True
        except Empty:
            return False

    def _wakes(self) -> None:
        os.eventfd_read(self._wake)

    def _due(self) -> float:
        """Return the time at which `_passes` is to be called though nothing happens."""
        of_watched = (min(each.connect_at, each.until) for each in self._watched.values())
        return min(self._alive_at, self.server.due, *of_watched)

    def _passes(self, now: float) -> None:
        self.server.passes(now)
        for watched in [*self._watched.values()]:
            if now >= watched.until:
                self._happened(watched, Failed())
            elif now >= watched.connect_at:
                self._connects(watched)
        if self._known.is_silent and any(each.link.over or each.link.is_gone for each in self._watched.values()):
            self._follows()
        if now >= self._alive_at:
            self._alive_at = now + self.interval_s
            for watched in [each for each in self._watched.values() if each.link.up]:
                self._sends(watched, ALIVE)

    # --- the nodes that this one watches

    def _follows(self) -> None:
        state, is_silent = self._known.state, self._known.is_silent
        wanted = followed({node: each.link for node, each in self._watched.items()}, state, self.node, is_silent)
        for node in [node for node, each in self._watched.items() if wanted.get(node) is not each.link]:
            self._leaves(self._watched.pop(node))
        for node, link in wanted.items():
            if state and node not in self._watched:
                profile = state.seats[node].profile
                found = addresses(Endpoint(profile.endpoint.address, profile.link_port))
                self._watched[node] = _Watched(link, found, self.clock.now())
        self._shows()

    def _shows(self) -> None:
        self.stand = {node: each.link.up for node, each in self._watched.items()}

    def _leaves(self, watched: _Watched) -> None:
        if watched.link.up and watched.socket:
            with suppress(OSError):
                watched.socket.send(GOODBYE)
        self._disconnects(watched)

    def _disconnects(self, watched: _Watched) -> None:
        if watched.socket:
            self._selector.unregister(watched.socket)
            watched.socket.close()
        watched.socket, watched.until, watched.heard = None, math.inf, b""

    def _happened(self, watched: _Watched, event: Event) -> None:
        """Take one step of the ladder; a connection goes on only if its node has answered as it should."""
        watched.link, commands = transition(watched.link, event, self.clock.now(), self._known.is_silent)
        self._shows()
        if not watched.link.up:
            self._disconnects(watched)
        for command in commands:
            match command:
                case Connect(at):
                    watched.connect_at = at
                case Tell(says):
                    self.tell(Linked(watched.link.node, says, self._beaten_at))
                case other:
                    assert_never(other)

    def _connects(self, watched: _Watched) -> None:
        watched.connect_at = math.inf
        if not watched.addresses:
            self._happened(watched, Failed())
            return
        family, address = watched.addresses[watched.link.tries % len(watched.addresses)]
        try:
            made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError:
            self._happened(watched, Failed())
            return
        end_when_silent(made, self.ttl_s)
        watched.socket, watched.until = made, self.clock.now() + HELLO_S
        self._selector.register(made, selectors.EVENT_WRITE, lambda: self._is_connected(watched))
        code = made.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            self._happened(watched, _failure(code))

    def _is_connected(self, watched: _Watched) -> None:
        made = watched.socket
        assert made is not None
        if code := made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._happened(watched, _failure(code))
            return
        if (
            watched.link.suspected
        ):  # an agent that accepts and is silent is dying, or stopped: the end of this tells more
            watched.until = math.inf
        watched.challenge = challenge(self.token)
        self._selector.modify(made, selectors.EVENT_READ, lambda: self._hears(watched))
        self._sends(watched, spoken(Hello(self.run_id, self.node, watched.challenge)))

    def _sends(self, watched: _Watched, data: bytes) -> None:
        try:
            if watched.socket:
                watched.socket.send(data)
        except BlockingIOError:
            pass  # it does not read; its silence is not ours to judge
        except OSError:
            self._happened(watched, Ended())

    def _hears(self, watched: _Watched) -> None:
        assert watched.socket is not None
        try:
            data = watched.socket.recv(BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not watched.link.up and data:
            self._hears_hello(watched, watched.heard + data)
        elif GOODBYE in data or not data:
            self._happened(watched, Ended(goodbye=GOODBYE in data))

    def _hears_hello(self, watched: _Watched, data: bytes) -> None:
        line, end, rest = data.partition(b"\n")
        watched.heard = data
        if not end and len(data) <= BYTES_MAX:
            return
        try:
            hello = heard(line)
        except ValueError:
            self._happened(watched, Failed())
            return
        known = belongs(hello, self.run_id, self.token) and hello.node.slot == watched.link.node.slot
        if not known or not proves(self.token, WATCHED, hello, watched.challenge):
            self._happened(watched, Failed())
            return
        watched.heard, watched.until = b"", math.inf
        self._happened(watched, Answered(hello.node.incarnation))
        if watched.link.up and self.token:
            mine = Hello(self.run_id, self.node)
            self._sends(watched, spoken(evolve(mine, proof=proof(self.token, OBSERVER, mine, hello.challenge))))
        if watched.link.up and GOODBYE in rest:
            self._happened(watched, Ended(goodbye=True))


def _failure(code: int) -> Event:
    return Refused() if code == errno.ECONNREFUSED else Failed()
