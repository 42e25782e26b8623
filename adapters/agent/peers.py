"""This node among the others: its name and ports, its rendezvous, its heartbeats, its links, and what it tells the store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, TypeAlias

from ...core import agent as core
from ...core.agent import Agent
from ...core.node import lost_parties, ranks_of
from ...core.rendezvous import Held, Prepared, Request, Who, handlers
from ...core.values import evolve
from ...core.world import Life, Node, Unfit, World, name_of
from ..addresses import is_name, resolved
from ..clock import Clock
from ..launch_settings import LaunchSettings
from ..rendezvous.heart import Heart
from ..rendezvous.loop import RendezvousLoop
from ..rendezvous.reserved_ports import Reservation
from ..report.news import Remark
from ..store.port import Backend, Record, Shelf, StoreError
from ..terminal import why
from ..threads import NoThread, start
from ..workers.start.environment import agent_serves
from .inbox import Inbox
from .node_time import NodeTime
from .note_teller import NoteTeller
from .parts import Part
from .time_teller import TimeTeller

if TYPE_CHECKING:
    from ..rendezvous.evictions import Awaited, Parties
    from ..rendezvous.links import Links
    from ..store.connection import RoundHost

Evict: TypeAlias = "Callable[[Parties, Node, Awaited], None]"
"""Take the ranks of these parties out of the workers' registers, in the name of this node."""


class Peers:
    """Ties one node to the others of its job."""

    def __init__(
        self,
        settings: LaunchSettings,
        backend: Backend,
        clock: Clock,
        inbox: Inbox,
        trace: NodeTime,
        evict: Evict,
        rounds: RoundHost | None = None,
        node: Node | None = None,
    ) -> None:
        """`rounds` serves the rounds' stores, if this agent serves the job's. `node`: who this agent is; None: a new start.
        Raises OSError if the host has no port or descriptor left."""
        self._settings = settings
        self._clock = clock
        self._inbox = inbox
        self._evict = evict
        self._rounds = rounds
        self._served = 0
        """The port of the store that was served at the last join; 0 for none."""
        beside = 1 + settings.listening.links  # the next round's port, and that of the links
        self._reserved = Reservation(settings.address, settings.listening.ports, beside=beside)
        self.host = os.uname().nodename
        slot = settings.slot or f"{settings.address}/{os.urandom(4).hex()}"
        self.node = node or Node(slot, int(clock.wall() * 1000))
        introduced = settings.profile(self._reserved.endpoint, self.host)  # reads the program's file, once
        self._looked_up = set[str]()
        self.links = self._made_links()
        self._introduced = evolve(introduced, link_port=self.links.server.port) if self.links else introduced
        self.held = Held(Who(self.node, self._introduced, settings.rendezvous, Life(os.urandom(8).hex())))
        self.rendezvous = RendezvousLoop(backend, self.held, clock, inbox.post, inbox.failed, trace.took)
        self._beats = backend.clone()
        self._teller = NoteTeller(self._beats.notes, self.node)
        self.time = TimeTeller(self._beats.notes, self.node, trace, clock, inbox.post)
        interval_s = settings.rendezvous.keep_alive_interval
        self._heart = Heart(self._beats, self.node, interval_s, clock, self._has_beaten, inbox.failed)
        self.beat = self._heart.beat

    @property
    def parts(self) -> Sequence[Part]:
        """Return its parts. The links say goodbye first, the heart stops last."""
        links = [Part(self.links.stop, self.links.start)] if self.links else []
        loops = Part(self._heart.stop, self._heart.start), Part(self.rendezvous.stop, self.rendezvous.start)
        return (Part(self._reserved.release), *loops, *links)

    def submit(self, item: Request | Prepared | Unfit) -> bool:
        """Submit this to the rendezvous; return True if this node joins a round. It joins each with a port that no worker
        has used."""
        if not (isinstance(item, Request) and item.handler is handlers.join):
            self.rendezvous.submit(item)
            return False
        self._reserved.renew()
        endpoint = self._reserved.endpoint
        serves = bool(self._rounds and not self._rounds.has_given_up)
        self._served = 0
        if serves and self._settings.group.alone is None:
            with suppress(OSError):  # tried again if this node is the first
                self._serve(endpoint.port)
        profile = evolve(self._introduced, endpoint=endpoint, serves_store=serves or None)
        self.rendezvous.submit(evolve(item, profile=profile))
        return True

    def serve(self, world: World) -> None:
        """Serve the store of this world if that is up to this agent. It was done at the join as a rule: another node's
        worker that is sooner than this node's is not refused then. Raises OSError."""
        port = world.profiles[0].endpoint.port
        if world.nodes[0] == self.node and agent_serves(self._settings, world) and port != self._served:
            self._serve(port)

    def tell(self, shelf: Shelf[Record], note: Record) -> None:
        """Tell this beside the next heartbeat."""
        self._teller.tell(shelf, note)

    def tell_end(self) -> None:
        """Tell the store at once where the time of this node went, whose workers have ended for good."""
        if self.time.end():
            self.beat()

    def beaten(self, sent_at: float) -> None:
        """Let the links know that the store has acknowledged the heartbeat of this time."""
        if self.links:
            self.links.beaten(sent_at)

    def follow(self, agent: Agent) -> None:
        """Watch the neighbours of this node."""
        if self.links:
            self.links.follow(agent.state, is_silent=agent.silent_since is not None)

    def look_up(self, world: World) -> None:
        """Have a thread look up the name at which this world's workers meet, if it is one. If this host does not know it, a
        remark says so."""
        first, address = world.nodes[0], world.profiles[0].endpoint.address
        if first == self.node or address in self._looked_up or not is_name(address):
            return
        self._looked_up.add(address)

        def looks_up() -> None:
            try:
                resolved(address)
            except OSError as error:
                whose = f"{name_of(first, world.profiles[0].host)} has the address {address}"
                remedy = "its workers cannot reach rank 0; on that node write --local-addr=ADDRESS"
                self._inbox.post(Remark(f"{whose}, which this host does not know ({why(error)}): {remedy}"))

        with suppress(NoThread):
            start(Thread(target=looks_up, name="name of rank 0", daemon=True))

    def throw_out(self, agent: Callable[[], Agent]) -> None:
        """Throw the ranks of lost nodes out of the workers' registers. Another thread asks for the agent as it stands."""

        def ranks() -> Mapping[str, int]:
            state = agent().state
            return ranks_of(state) if state else {}

        self._evict(lambda: lost_parties(agent().lost), self.node, ranks)

    def absent(self, agent: Agent, world: World) -> Sequence[Node]:
        """Return the members of this world that are dead or out of reach, or have no work. Any thread may ask."""
        links = self.links.stand if self.links else {}
        return core.absent(agent, world, links, self._clock.now(), self._settings.rendezvous.ttl)

    def _serve(self, port: int) -> None:
        if self._rounds:
            self._rounds.serve_round(self._reserved.listening(port))
            self._served = port

    def _has_beaten(self, sent_at: float, life: Life | None) -> None:
        """Take an acknowledged heartbeat, in the heart's thread."""
        self._inbox.beaten(sent_at, life)
        self._teller.beaten(life)
        self.time.beaten(life)
        with suppress(StoreError):  # nobody can read it now; the next heartbeat brings it again
            if query := self._beats.notes.query:
                self._inbox.post(core.Queried(query.id, query.round, query))

    def _made_links(self) -> Links | None:
        """Return this node's links; None if it wants none, or, with a remark, if its host has no port for them."""
        if not self._settings.listening.links:
            return None
        from ..rendezvous.link_server import LinkAddress  # a node alone needs none
        from ..rendezvous.links import Links

        settings, spans = self._settings, self._settings.rendezvous
        try:
            return Links(
                self.node,
                settings.run_id,
                LinkAddress(settings.address, settings.listening.ports),
                spans.keep_alive_interval,
                spans.ttl,
                self._clock,
                lambda linked: self.rendezvous.hear_of_link(linked),  # noqa: PLW0108  which is made later
                settings.token,
            )
        except OSError as error:
            self._inbox.post(Remark(f"no links, heartbeats tell of deaths here: {why(error)}"))
            return None
