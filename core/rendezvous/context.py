"""Everything that a decision may read: this node's memory, its operation, and the time.

`Held` is the node's memory between two turns, in parts: who it is, its view of the register and of the other nodes, its
contact to the store, its past, and what keeps it from trusting its view. Only `memory.py` makes a new one. `Operation` is
what the node is about. `Context` holds both, with the time, and names the questions that handlers ask. Every span counts
from when *this observer* first saw a fact, on its own clock.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from ..values import evolve, field, frozen
from ..violation import Finding
from ..world import Ending, Generation, Life, Node, Profile, Why, World, WorldId
from .actions import Action, Drain, Proposal
from .settings import Settings
from .sightings import Sightings
from .state import AWAY, MEMBERS, Failing, RendezvousState, Seat, Status, Token, later_start, lost_starts


class Fact(Enum):
    """A fact of the register, or of the sightings, whose age decides something."""

    QUORUM = "the open round has its minimum"
    OPEN = "the round is open"
    NEWCOMER = "a newcomer waits with its party and there is room"
    PART = "a newcomer waits without its whole party and there is room"
    GROWN = "the complete round began by an upscale"
    DEAD = "somebody seated is dead"
    FRUITLESS = "the round is complete, and may be a fruitless one"
    ADVANCE = "a worker of mine has passed all steps that were reached before my world"
    ASIDE = "my node is set aside"
    LATER = "a later start of my slot has a seat"
    BARRED = "nodes that have a seat keep me from one, if they live"

    __hash__ = object.__hash__  # as for Status


QUORATE_SHARE = 8
"""The part of its patience that a node without a seat has while a last call goes on."""
GROWN_RUNS = 4
"""A round that an upscale began runs for at least this many `upscale_after`, before it ends for another newcomer. But no
newcomer waits for that longer than half of its `join_timeout`."""
LEASE_S = 3.0
"""A heartbeat's lease lasts 2 s or a TTL, whichever is longer, and is ended up to 0.5 s late."""
NO_WORLDS = frozenset[WorldId]()

Spans: TypeAlias = Mapping[Fact, tuple[object, float]]
"""Fact -> (which instance of it, and when I first saw it)."""


@frozen
class Trouble:
    """A fault of the register that forbids all nodes to act."""

    why: Why
    text: str
    broken: Finding | None = None
    """The property that is broken, if that is the fault."""


@frozen
class Found:
    """The state that the store shows instead of mine. `restore` is the better of the two, and must be written back."""

    state: RendezvousState | None
    restore: RendezvousState
    at: float


@frozen
class Proposed:
    """A proposal of mine that was put down, when, and as which of its kind in its era, as far as the store can count (0: the
    store has not answered)."""

    proposal: Proposal
    at: float
    count: int
    others: Mapping[Node, Proposal] | None = None
    """What all propose, once I have read it to write for them."""


@frozen
class Suspect:
    """A node whose link to me ended without a goodbye, and that has shown no sign of life since."""

    since: float
    beaten_at: float = -math.inf
    """When I had sent my last acknowledged heartbeat, as the evidence of its death came; never: there is no evidence."""
    is_gone: bool = False
    """Its link gave evidence of its death, whether that counts or not."""
    counter: int | None = None
    """Its heartbeat in the first read that I sent since then."""
    read: bool = False


@frozen
class Who:
    """Names who a node is, from its start on."""

    node: Node
    profile: Profile
    """It says this of itself when it arrives; each join may bring another endpoint."""
    settings: Settings
    nonce: Life
    """Names the life that it would begin. The shell draws the first one, without `/`."""
    policy: Callable[[World], str] | None = field(default=None, eq=False, repr=False)
    """Returns the digest of this node's rank policy for a world."""


@frozen
class View:
    """Holds what the store has shown of the register and of the other nodes. Nothing of it counts in another life."""

    state: RendezvousState | None = None
    held_at: float | None = None
    """When I first held this state; None before the first answered read."""
    sightings: Sightings = Sightings()
    suspects: Mapping[Node, Suspect] = field(factory=dict)
    spans: Spans = field(factory=dict)
    proposed: Proposed | None = None


@frozen
class Contact:
    """When I asked the store, and whether it answers."""

    asked_at: float = -math.inf
    """When I sent the last request, other than a read of heartbeats, of those that the store has answered without a gap
    since the last such read. A gap is longer than two intervals."""
    confirmed_at: float | None = None
    """When I sent the last request whose answer showed a closed job."""
    silent_since: float | None = None
    """Since when the store does not answer; None while it does."""
    tried_at: float = -math.inf
    """When I sent the last question that the store left unanswered."""


@frozen
class Past:
    """Holds what this node and its workers have done, and what became of it."""

    mine: WorldId | None = None
    """The world that my workers last ran in."""
    ran: frozenset[WorldId] = NO_WORLDS
    """The last world of each life in which they ran."""
    done_in: WorldId | None = None
    """The world in which they all succeeded, as the register has shown once."""
    reserve_in: WorldId | None = None
    """The world in which this node is a reserve, as the register has shown once."""
    advanced_in: WorldId | None = None
    """The world in which a worker of mine has passed the highest step that was reached before it."""
    still_since: float | None = None
    """Since when no worker of mine has made progress; None: one does, or nobody has looked."""
    failed_at: tuple[float, ...] = ()
    """When my last failures ended rounds, as the register has shown; empty without a limit of failures."""
    asides: int = 0
    """How often this node was set aside."""
    returns: bool = False
    """I had a seat, or may have had one, and lost it. Those who evicted me may have been told wrongly by a link."""
    spare_at: float | None = None
    """When I was last seen to be a spare."""


@frozen
class Doubt:
    """Holds what keeps me from trusting my view."""

    owed: Token | None = None
    """The state on which a write of mine with an unknown outcome was based (version 0: on nothing)."""
    unsure_at: float | None = None
    """Since when I do not know that outcome. I must read the register, by a later request, before I decide again."""
    woke_at: float | None = None
    """When I woke after my process stood still. My memory counts for nothing until a later request is answered."""
    instead: Found | Trouble | None = None
    """The store shows this instead of my state. It lost that, or came back with an older one: I decide nothing before the
    better one is restored. Or I cannot read what it shows."""


@frozen
class Held:
    """A node's memory."""

    who: Who
    view: View = View()
    contact: Contact = Contact()
    past: Past = Past()
    doubt: Doubt = Doubt()

    @property
    def token(self) -> Token | None:
        return self.view.state.token if self.view.state else None

    @property
    def found(self) -> Found | None:
        """The state that is to be restored before anything else."""
        instead = self.doubt.instead
        return instead if isinstance(instead, Found) else None

    @property
    def trouble(self) -> Trouble | None:
        """Why what the store shows cannot be read."""
        instead = self.doubt.instead
        return instead if isinstance(instead, Trouble) else None

    def is_behind(self, world: WorldId) -> bool:
        """Return True if this world is over for me.

        My workers ran in it, or in a later world of its life: the rounds of one life only rise.
        """
        return any(ran.life == world.life and ran.round >= world.round for ran in self.past.ran)


@frozen
class Context:
    """The context of one decision. Only `context` makes one. What every decision reads is worked out at birth."""

    operation: Operation
    held: Held
    now: float
    state: RendezvousState | None
    seat: Seat | None
    status: Status | None
    """The status of my seat, if I have one."""
    me: Node
    settings: Settings
    dead: frozenset[Node]
    """The seated nodes whose silence reached the TTL, or whose link gives evidence of their death."""

    @property
    def profile(self) -> Profile:
        """Return what I say of myself when I arrive. If I return, I name no port of a link, so no evidence counts again."""
        mine = self.held.who.profile
        return evolve(mine, link_port=0) if self.held.past.returns else mine

    @property
    def failing(self) -> Failing | None:
        """Return what I tell of my failures when I end a round by one; None without a limit of them."""
        limit = self.settings.max_node_failures
        if limit is None:
            return None
        recent = [at for at in self.held.past.failed_at if at >= self.now - limit.within]
        return limit.told(len(recent) + 1, self.held.past.asides)

    @property
    def fails_too_often(self) -> bool:
        """True if I have failed too often, and am to leave."""
        limit = self.settings.max_node_failures
        return limit is not None and limit.is_over(self.held.past.failed_at)

    @property
    def was_lost_too_often(self) -> bool:
        """True if too many earlier starts of my slot were lost, and I am to leave before I take a seat."""
        limit, state = self.settings.max_node_failures, self.state
        if limit is None or not limit.leaves or state is None or self.seat is not None or self.held.past.mine:
            return False
        return lost_starts(state, self.me, limit.within) >= limit.failures

    @property
    def returns_at(self) -> float:
        """Return when my cool-down is over, if I am set aside."""
        seen, failing = self.held.view.spans.get(Fact.ASIDE), self.seat.failing if self.seat else None
        return seen[1] + failing.cooldown_s if seen and failing else self.now

    @property
    def spare(self) -> bool:
        return self.state is not None and self.state.is_spare(self.me)

    @property
    def owed(self) -> bool:
        """True if a write of mine may still land: it is based on the state that stands, or on one that I do not know."""
        owed = self.held.doubt.owed
        return owed is not None and (self.state is None or owed.version >= self.state.version)

    @property
    def left_behind(self) -> bool:
        """True if workers of mine live that are no part of the register's generation, or that have lost their seat, or their
        place to be a spare: they must stop first, or others may start the next ones beside them."""
        alive, state = self.operation.alive, self.state
        if alive is None:
            return False
        return (
            state is None or self.seat is None or alive != (state.job, state.generation) or state.passes_over(self.me)
        )

    @property
    def in_my_world(self) -> bool:
        """True if the world that my workers ran in stands, and I am a member of it."""
        state, mine = self.state, self.held.past.mine
        standing = state is not None and mine is not None and mine == state.world_id
        return standing and self.status in MEMBERS

    @property
    def later(self) -> Node | None:
        """The later start of my slot that has a seat, while I have none."""
        return later_start(self.state, self.me) if self.state is not None and self.seat is None else None

    @property
    def later_lives_at(self) -> float:
        """Return when that start is known to live, if it is not dead by then. One that has come since I first looked lives,
        and so did the one to which a node whose workers have run has lost its seat."""
        sighting = self.held.view.sightings.of.get(self.later) if self.later else None
        if self.held.past.mine is not None or (sighting and sighting.vouched):
            return self.now
        return self.lives_at(Fact.LATER)

    def lives_at(self, fact: Fact) -> float:
        """Return when those are known to live that keep me out, if they are not dead by then: two TTLs after I saw this fact
        first, and read their heartbeats, or three where leases say so: a cluster that is busy, or has another leader, ends
        them late."""
        sightings, settings = self.held.view.sightings, self.settings
        has_heard = sightings.read_at is not None and self.now - sightings.read_at <= 2 * settings.keep_alive_interval
        seen = self.held.view.spans.get(fact)
        after = (3 if settings.leased else 2) * max(settings.ttl, LEASE_S)
        return max(seen[1], sightings.since) + after if seen and has_heard else math.inf

    @property
    def awake(self) -> tuple[Node, ...]:
        """The seated nodes that are not dead, in the order of their seats. They do chores in this order."""
        if self.state is None:
            return ()
        present = self.state.present
        return tuple([node for node in present if node not in self.dead]) if self.dead else present

    @property
    def coordinator(self) -> Node | None:
        """The node that does common chores first. It has no authority, and safety never depends on it."""
        if self.state is None or not self.dead:
            return self.state.first if self.state else None
        return self.awake[0] if self.awake else None

    @property
    def patience(self) -> float:
        """How long I leave a due chore to others.

        The coordinator waits not at all, a later seat longer. A node that has left but still runs waits longest. A node
        without a seat does no chores.
        """
        if self.coordinator == self.me:
            return 0.0
        if self.seat is None:
            return math.inf
        if self.status in AWAY:
            return self.settings.patience * 2
        return self.settings.patience * self._share

    @property
    def patience_of_many(self) -> float:
        """How long I leave it to the others to write what I have proposed, while I am awake. A later seat waits longer."""
        return self.settings.helping_patience * self._share

    @property
    def _share(self) -> float:
        """How much longer than the first I leave to the others what every node that is awake could do."""
        state, seat, awake = self.state, self.seat, self.awake
        assert state is not None and seat is not None
        place = bisect_left(awake, seat.order, key=lambda node: state.seats[node].order)
        return 1 + place / len(awake)

    @property
    def entering(self) -> Proposed | None:
        """Return my proposal to enter, if it may still come true."""
        mine, state = self.held.view.proposed, self.state
        if mine is None or not mine.proposal.enters or state is None or state.complete or self.seat is not None:
            return None
        return mine if mine.proposal.era == state.era else None

    @property
    def entrants(self) -> int:
        """How many nodes may be about to enter the open round with this one: all that it has room for; of a party that many,
        once the first round is over."""
        state, party = self.state, self.held.who.profile.party
        assert state is not None
        if state.ended is None and state.target:
            return max(state.target - state.census[Status.IN], 0)
        room = max(state.room, 0)
        return min(room, party.size) if party else room

    @property
    def enters_with_many(self) -> bool:
        """True if this many may be about to enter the open round that one is to write for all. A short last call, or a write
        of mine that may still land, leaves no time for that."""
        state, settings = self.state, self.settings
        if state is None or state.complete or self.owed or self.entrants <= settings.helping_above:
            return False
        return not state.quorate or self.last_call >= 2 * settings.helping_patience

    def patience_to_enter(self, count: int) -> float:
        """Return how long the node of this number, which is below `entrants`, leaves it to the others to write its arrival.
        A last call goes on meanwhile, and must not end without it."""
        state = self.state
        span = self.settings.helping_patience * (1 + count / (count + self.entrants))
        return span / QUORATE_SHARE if state is not None and state.quorate else span

    @property
    def last_call(self) -> float:
        """How long the last call lasts."""
        first = self.settings.first_call_timeout
        is_first = self.state is not None and not self.state.ended
        return first if first is not None and is_first else self.settings.last_call_timeout

    @property
    def alike(self) -> tuple[Node, ...]:
        """The nodes whose seats have the status of mine."""
        return self.state.those(self.status) if self.state is not None and self.status is not None else ()

    @property
    def crowd(self) -> int:
        """How many they are."""
        return self.state.census[self.status] if self.state is not None and self.status is not None else 0

    def due(self, fact: Fact, after: float) -> float:
        """Return when I must act on a fact that has lasted for `after` seconds; inf while there is no such fact."""
        seen = self.held.view.spans.get(fact)
        return seen[1] + after + self.patience if seen else math.inf


NOBODY = frozenset[Node]()

Handler: TypeAlias = Callable[[Context, float], Action]


@frozen
class Operation:
    """A task of a node in the rendezvous, with its beginning and its deadline on the node's own clock."""

    handler: Handler
    since: float
    deadline: float
    jitter: float = 0.0
    """A number in [0, 1). The shell draws it once per operation, because the core draws no chance."""
    why: Why = Why.ASKED
    """The reason of an `end` or a `close`."""
    ending: Ending = Ending.CANCELLED
    """The ending that a `close` writes."""
    drain: Drain | None = None
    """The edit that a `drain` wants."""
    forced: bool = False
    """This `drain` is wanted also where the others would be too few."""
    holds_back: bool = False
    """This `join` asks for no seat while a world runs: the node's workers cannot start at once yet."""
    alive: Generation | None = None
    """Workers of this generation run on while this node joins."""
    is_open: bool = False
    """The failure for which this `end` is wanted may have begun on another node: it does not count against this one."""


def context(operation: Operation, held: Held, now: float) -> Context:
    state, me = held.view.state, held.who.node
    seat = state.seats.get(me) if state is not None else None
    status = seat.status if seat is not None else None
    return Context(operation, held, now, state, seat, status, me, held.who.settings, dead(held, now))


def dead(held: Held, now: float) -> frozenset[Node]:
    """Return the seated nodes, other than me, that are dead for me: by their silence, or by evidence."""
    return _silent(held, now) | gone(held, now) if held.view.suspects else _silent(held, now)


def gone(held: Held, now: float) -> frozenset[Node]:
    """Return the seated nodes of whose death a link gives evidence that counts.

    Evidence counts while my own last acknowledged heartbeat is not older than two intervals: who is cut off evicts nobody.
    It counts against a node that names its link's port, and for one that has a seat itself.
    """
    state = held.view.state
    if state is None or held.who.node not in state.seats:
        return NOBODY
    after = now - 2 * held.who.settings.keep_alive_interval
    return frozenset(
        node
        for node, suspect in held.view.suspects.items()
        if suspect.beaten_at >= after and _counts(state.seats.get(node))
    )


def stranded(held: Held, now: float) -> tuple[Node, ...]:
    """Return the other members of my world, if their links say of all that they are dead, and no worker of mine has made
    progress for `join_timeout`; else nobody."""
    state, since = held.view.state, held.past.still_since
    if state is None or since is None or now - since < held.who.settings.join_timeout:
        return ()
    others = tuple([node for node in state.members if node != held.who.node and state.seats[node].status not in AWAY])
    return others if all((was := held.view.suspects.get(node)) and was.is_gone for node in others) else ()


def _counts(seat: Seat | None) -> bool:
    return seat is not None and seat.status not in AWAY and seat.profile.link_port > 0


def _silent(held: Held, now: float) -> frozenset[Node]:
    """Return the seated nodes, other than me, that were silent for a TTL when I last asked.

    Nodes that have left do not count. If I last asked too long ago, I could not hear, and no node is dead.
    """
    view, settings = held.view, held.who.settings
    state, sightings = view.state, view.sightings
    read_at = sightings.read_at
    if state is None or read_at is None or now - read_at > 2 * settings.keep_alive_interval:
        return NOBODY
    silent_since = read_at - settings.ttl
    if sightings.oldest > silent_since:
        return NOBODY
    silent = [node for node, seen in sightings.of.items() if seen.moved_at <= silent_since and node != held.who.node]
    return frozenset(node for node in silent if node in state.seats and state.seats[node].status not in AWAY)
