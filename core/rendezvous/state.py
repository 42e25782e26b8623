"""The register's value, read as a glossary: seats, limits, rounds and what is derived from them.

One immutable value holds all that the nodes agree on. It carries no point in time and no setting but the limits, so that
whoever reads it can judge it alone. What it may become stands in `apply`, what it may never be in `verify`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from attrs import Attribute, Factory, field, frozen

from ..derived import Memo, beside, derived
from ..evolving import maker
from ..world import COUNT_MAX, Life, Member, Node, Profile, Verdict, Why, World, WorldId

NODES_MAX = 4_096
"""Most seats that a register holds: its size is bounded."""
BASE_MAX = 16
"""Longest base: so many times in a row may a store be lost before a world is complete again, and all of them count."""

Rank = tuple[tuple[int, int], ...]
"""(epoch, version) of the states that this one was made from, and of itself; compared as tuples."""
NOTHING: Rank = ((0, 0),)
"""The base of a register that was made out of nothing."""


class Status(Enum):
    """What a seat stands for. The values are what the register spells."""

    EXPECTED = "expected"
    """Member of the last world, not back yet."""
    IN = "in"
    """Participant of the round."""
    WAITING = "waiting"
    """Newcomer; a spare when it finds no room."""
    DONE = "done"
    """Its workers succeeded in this round."""
    GONE = "gone"
    """Left after it was done."""
    RESERVE = "reserve"
    """Member of the world, at hand but not active: nobody waits for its workers."""
    ABSENT = "absent"
    """Left while it was a reserve."""

    __hash__ = object.__hash__  # members are single objects; Enum's own hash is a call in Python, on the hottest path


_STATUSES = tuple(Status)
MEMBERS = (Status.IN, Status.DONE, Status.GONE, Status.RESERVE, Status.ABSENT)
"""What the seats of a complete round's world stand for."""
AWAY = (Status.GONE, Status.ABSENT)
"""Members that have left, and change nothing by it."""


@frozen
class Seat:
    """A node's entry in the register. `order` is the arrival number: never reused, it gives the ranks their order."""

    status: Status
    order: int
    profile: Profile

    def become(self, status: Status) -> Seat:
        """The same seat with another status; a round's end does this for every member."""
        return _seat(status, self.order, self.profile)


_seat = maker(Seat)


@frozen
class Limits:
    """What all agents of a job must agree on, written with the first state: nodes, and restarts of the whole job."""

    min_nodes: int = field(default=1)
    max_nodes: int = field(default=1)
    max_restarts: int = field(default=0)

    @min_nodes.validator
    def _at_least_one(self, attribute: Attribute[int], value: int) -> None:
        if value < 1:
            raise ValueError(f"min_nodes: at least 1, not {value}")

    @max_nodes.validator
    def _not_below_min(self, attribute: Attribute[int], value: int) -> None:
        if not self.min_nodes <= value <= NODES_MAX:
            raise ValueError(f"max_nodes: {self.min_nodes} (min_nodes) to {NODES_MAX}, not {value}")

    @max_restarts.validator
    def _not_negative(self, attribute: Attribute[int], value: int) -> None:
        if not 0 <= value < COUNT_MAX:
            raise ValueError(f"max_restarts: 0 or more and below {COUNT_MAX}, not {value}")


@frozen
class Ended:
    """Why the last round was over, and by whose write."""

    round: int
    why: Why
    by: Node


class Token(NamedTuple):
    """Names one state of one register: what a compare-and-set compares."""

    life: Life
    version: int


def _in_order(seats: Mapping[Node, Seat]) -> tuple[tuple[Node, Seat], ...]:
    return tuple(seats.items())


def _read_only(seats: Mapping[Node, Seat]) -> Mapping[Node, Seat]:
    return seats if isinstance(seats, MappingProxyType) else MappingProxyType(seats)


@frozen
class RendezvousState:
    """The register. `seats` is sorted by arrival; a version counts one write; `quorum_at` is the version at which the open
    round reached the minimum; `target` is how many nodes a round waits for without a last call (0 in the first round).

    `job` is the nonce of the write that made round 0 out of nothing, and never changes. `base` says what this life counts
    for until a world is complete in it (`provisional`): it was made from a state of that rank. `completed_in` is the life
    in which the standing world was completed.
    """

    life: Life
    limits: Limits
    version: int = 0
    round: int = 0
    complete: bool = False
    closed: Verdict | None = None
    seats: Mapping[Node, Seat] = field(factory=dict, converter=_read_only, eq=_in_order)
    next_order: int = 0
    target: int = 0
    quorum_at: int | None = None
    failures: int = 0
    ended: Ended | None = None
    stale_before: int = 0
    job: str = Factory(lambda self: self.life.nonce, takes_self=True)
    base: Rank = NOTHING
    completed_in: Life | None = None
    policy: str = ""
    """What the rank policy made of the standing world, as its completer saw it; empty: nobody said."""
    memo: Memo = beside()
    """What was worked out from this very value, and what `verify` has found of it."""

    @derived
    def token(self) -> Token:
        return Token(self.life, self.version)

    @derived
    def era(self) -> Token:
        """In which a wish was made: it is void in another life, and once a round has ended or somebody has bumped."""
        return Token(self.life, self.stale_before)

    @derived
    def census(self) -> Mapping[Status, int]:
        """How many seats there are of each status."""
        counted = dict.fromkeys(_STATUSES, 0)
        for seat in self.seats.values():
            counted[seat.status] += 1
        return counted

    def those(self, *statuses: Status) -> tuple[Node, ...]:
        """The nodes whose seat has one of these statuses, in the order of arrival."""
        return tuple([node for node, seat in self.seats.items() if seat.status in statuses])

    @derived
    def present(self) -> tuple[Node, ...]:
        """Those who have not left."""
        return tuple([node for node, seat in self.seats.items() if seat.status not in AWAY])

    @derived
    def first(self) -> Node | None:
        return self.present[0] if self.present else None

    @derived
    def participants(self) -> tuple[Node, ...]:
        return self.those(Status.IN)

    @derived
    def expected(self) -> tuple[Node, ...]:
        return self.those(Status.EXPECTED) if self.census[Status.EXPECTED] else ()

    @derived
    def members(self) -> tuple[Node, ...]:
        """Who makes up the world of a complete round, in rank order."""
        return self.those(*MEMBERS)

    @derived
    def room(self) -> int:
        """Seats of the round that nobody holds and nobody is on the way back to."""
        return self.limits.max_nodes - (len(self.seats) - self.census[Status.WAITING])

    @derived
    def finishing(self) -> bool:
        """Somebody's workers have succeeded in this round: no newcomer may end it."""
        return self.census[Status.DONE] + self.census[Status.GONE] > 0

    @derived
    def wait_list(self) -> tuple[Node, ...]:
        """The waiting nodes that the next round has room for."""
        if self.finishing or not self.census[Status.WAITING]:
            return ()
        return self.those(Status.WAITING)[: max(self.room, 0)]

    @derived
    def redundancy_list(self) -> tuple[Node, ...]:
        """The spares: waiting nodes that find no room, or that wait behind a finishing round."""
        return self.those(Status.WAITING)[len(self.wait_list) :] if self.census[Status.WAITING] else ()

    @property
    def provisional(self) -> bool:
        """No world was completed in this life yet: what it was made from is what it counts for."""
        return bool(self.base)

    @property
    def rank(self) -> Rank:
        """Which of two states of a job knows more."""
        return (*self.base, (self.life.epoch, self.version))

    @derived
    def world_id(self) -> WorldId | None:
        """The identity of the standing world."""
        return WorldId(self.completed_in, self.round) if self.completed_in else None

    @property
    def over_budget(self) -> bool:
        return self.failures > self.limits.max_restarts

    @property
    def quorate(self) -> bool:
        return self.census[Status.IN] >= self.limits.min_nodes

    @derived
    def world(self) -> World:
        """The world of a complete round."""
        members = tuple(Member(node, self.seats[node].profile) for node in self.members)
        return World(WorldId(self.completed_in or self.life, self.round), members, self.failures, self.policy)


def blank(life: Life, limits: Limits) -> RendezvousState:
    """The register before its first write: version 0, round 0, nobody seated."""
    return RendezvousState(life, limits)
