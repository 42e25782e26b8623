"""All that a decision may read: what this node remembers, what it is about, and the time.

`Held` is the node's memory between two turns; only `memory.py` makes a new one. `Operation` is what the node is about.
`Context` puts both beside the time and gives the questions that handlers ask their names. Everything is counted from when
*this observer* first saw a fact, on its own clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from attrs import field, frozen

from ..evolving import maker
from ..world import Ending, Life, Node, Profile, Why, World, WorldId
from .actions import Action, Wish
from .settings import Settings
from .sightings import Sightings
from .state import AWAY, MEMBERS, RendezvousState, Seat, Status, Token


class Fact(Enum):
    """A fact of the register or of the sightings whose age decides something."""

    QUORUM = "the open round has its minimum"
    OPEN = "the round is open"
    NEWCOMER = "a newcomer waits and there is room"
    DEAD = "somebody seated is dead"

    __hash__ = object.__hash__  # as for Status


NO_WORLDS = frozenset[WorldId]()

Spans: TypeAlias = Mapping[Fact, tuple[object, float]]
"""Fact -> (which instance of it, my time when I first saw it)."""


@frozen
class Trouble:
    """What the register showed that no node may act on."""

    why: Why
    text: str


@frozen
class Found:
    """What the store shows instead of what it should; `restore` is the better of the two, which must be written back."""

    state: RendezvousState | None
    restore: RendezvousState
    at: float


@frozen
class Wished:
    """A wish of mine that was put down, when, and as which of its kind in its era, as far as the store can count."""

    wish: Wish
    at: float
    count: int
    others: Mapping[Node, Wish] | None = None
    """What all wish, once I have read it to write for them."""


@frozen
class Held:
    """What a node remembers. `nonce` names the life that it would begin; the shell draws it, without `/`."""

    node: Node
    profile: Profile
    settings: Settings
    nonce: Life
    state: RendezvousState | None = None
    held_at: float | None = None
    """My time when I first held this state; None before the first answered read."""
    sightings: Sightings = Sightings()
    spans: Spans = field(factory=dict)
    mine: WorldId | None = None
    """The world that my workers last ran in."""
    ran: frozenset[WorldId] = NO_WORLDS
    """Of each life the last world that they ran in."""
    done_in: WorldId | None = None
    """The world in which they have all succeeded, as the register has known once."""
    reserve_in: WorldId | None = None
    """The world in which this node is a reserve, as the register has known once."""
    policy: Callable[[World], str] | None = field(default=None, eq=False, repr=False)
    """The digest of what this node's rank policy makes of a world."""
    owed: Token | None = None
    """The state that a write of mine with an unknown outcome was based on (of version 0: on nothing)."""
    unsure_at: float | None = None
    """When I began not to know its outcome: it must be read, by a request sent later, before I decide again."""
    spare_at: float | None = None
    """When I was last seen to be a spare."""
    wished: Wished | None = None
    found: Found | None = None
    """The store lost what I hold, or was given back something older: nothing is decided before it is restored."""
    woke_at: float | None = None
    """When I woke from a sleep: what I hold counts for nothing until an answer to a request that was sent later."""
    confirmed_at: float | None = None
    """When I sent the last request whose answer showed that the job is closed."""
    silent_since: float | None = None
    """When the store began not to answer; None while it does."""
    trouble: Trouble | None = None

    @property
    def token(self) -> Token | None:
        return self.state.token if self.state else None

    def is_behind(self, world: WorldId) -> bool:
        """My workers ran in it, or in a later one of its life: rounds of one life only rise, so it is over for me."""
        return any(ran.life == world.life and ran.round >= world.round for ran in self.ran)


@frozen
class Context:
    """What a handler reads; only `context` makes one. What every decision reads is derived at birth, the rest when asked."""

    operation: Operation
    held: Held
    now: float
    state: RendezvousState | None
    seat: Seat | None
    status: Status | None
    """My seat's, if I have one."""
    me: Node
    settings: Settings
    dead: frozenset[Node]
    """The seated nodes whose silence reached the TTL."""

    @property
    def spare(self) -> bool:
        return self.state is not None and self.me in self.state.redundancy_list

    @property
    def owed(self) -> bool:
        """A write of mine may still land: its compare-and-set names the state that stands, or one that I do not know."""
        owed = self.held.owed
        return owed is not None and (self.state is None or owed.version >= self.state.version)

    @property
    def in_my_world(self) -> bool:
        """The world that my workers ran in stands, and I am a member of it."""
        state, mine = self.state, self.held.mine
        standing = state is not None and mine is not None and mine == state.world_id
        return standing and self.status in MEMBERS

    @property
    def awake(self) -> tuple[Node, ...]:
        """The seated nodes that are not dead, in the order of arrival: who does chores, and in which order."""
        if self.state is None:
            return ()
        return tuple(node for node in self.state.present if node not in self.dead)

    @property
    def coordinator(self) -> Node | None:
        """Who does common chores first. It has no authority: safety never depends on who it is."""
        if self.state is None or not self.dead:
            return self.state.first if self.state else None
        return self.awake[0] if self.awake else None

    @property
    def patience(self) -> float:
        """How long I leave a due chore to others: nothing for the coordinator, more for a later seat, most for one that has
        left after it was done but is still here, and a node without a seat does none."""
        if self.coordinator == self.me:
            return 0.0
        if self.seat is None:
            return math.inf
        awake = self.awake
        if self.me not in awake:
            return self.settings.patience * 2
        return self.patience_of_many

    @property
    def patience_of_many(self) -> float:
        """How long any of those who are awake leaves to others what each of them could do: a later seat for longer."""
        return self.settings.patience * (1 + self.awake.index(self.me) / len(self.awake))

    @property
    def alike(self) -> tuple[Node, ...]:
        """Those whose seats have the status of mine."""
        return self.state.those(self.status) if self.state is not None and self.status is not None else ()

    def due(self, fact: Fact, after: float) -> float:
        """When it is mine to act on a fact that has lasted `after` seconds; never while the fact is not there."""
        seen = self.held.spans.get(fact)
        return seen[1] + after + self.patience if seen else math.inf


NOBODY = frozenset[Node]()

Handler: TypeAlias = Callable[[Context, float], Action]


@frozen
class Operation:
    """What a node is about, since when and until when, on its own clock."""

    handler: Handler
    since: float
    deadline: float
    jitter: float = 0.0
    """In [0, 1), drawn by the shell once per operation, because core draws no chance."""
    why: Why = Why.ASKED
    """What an `end` or `close` gives as its reason."""
    ending: Ending = Ending.CANCELLED
    """What a `close` is to say."""


def context(operation: Operation, held: Held, now: float) -> Context:
    state, me = held.state, held.node
    seat = state.seats.get(me) if state is not None else None
    status = seat.status if seat is not None else None
    return _born(operation, held, now, state, seat, status, me, held.settings, dead(held, now))


_born = maker(Context)


def dead(held: Held, now: float) -> frozenset[Node]:
    """Not me, not those who have left, but everybody else who was silent for a TTL when I last asked; and nobody if that
    was so long ago that I was not there to hear."""
    state, sightings, settings = held.state, held.sightings, held.settings
    read_at = sightings.read_at
    if state is None or read_at is None or now - read_at > 2 * settings.keep_alive_interval:
        return NOBODY
    silent_since = read_at - settings.ttl
    if sightings.oldest > silent_since:
        return NOBODY
    silent = [node for node, seen in sightings.of.items() if seen.moved_at <= silent_since and node != held.node]
    return frozenset(node for node in silent if node in state.seats and state.seats[node].status not in AWAY)
