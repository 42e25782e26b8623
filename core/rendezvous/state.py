"""The value of the register: seats, limits, rounds, and what follows from them. It reads as a glossary.

One immutable value holds everything that the nodes agree on. It has no point in time and no setting but the limits, so every
reader can judge it by itself. `apply` says what a state may become, and `verify` what no state may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import compress
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..derived import Memo, beside, derived
from ..values import evolve, field, frozen
from ..world import COUNT_MAX, NAME_MAX, Generation, Life, Node, Notice, Profile, Verdict, Why, World, WorldId, name_of

if TYPE_CHECKING:
    from attrs import Attribute

NODES_MAX = 4_096
"""The most seats of a register, whose size is bounded."""
LOST_MAX = 8
"""The most nodes that the end of a round names as lost."""
STARTS_MAX = 32
"""The most lost starts that a register remembers."""
FRUITLESS_MAX = 100
"""The most fruitless rounds in a row after which a job may end."""
STAND_INS = 8
"""This many nodes read all heartbeats while the coordinator is silent."""
BASE_MAX = 16
"""The longest base: how many consecutive store losses can be told apart before a world is complete again."""

Each = TypeVar("Each")

_SCATTERS = 2_654_435_769
"""2^32 divided by the golden ratio: the products of consecutive numbers lie far apart, modulo 2^32."""

Precedence = tuple[tuple[int, int], ...]
"""The (epoch, version) of the states that one was made from, and of itself. Of two states of a job the higher one counts."""
NOTHING: Precedence = ((0, 0),)
"""The base of a register that genesis made."""


class Status(Enum):
    """The status of a seat. The register spells it by its value."""

    EXPECTED = "expected"
    """A member of the last world that is not back yet."""
    IN = "in"
    """A participant of the round."""
    WAITING = "waiting"
    """A newcomer, or a spare if it finds no room."""
    DONE = "done"
    """A member whose workers succeeded in this round."""
    GONE = "gone"
    """A member that left after it was DONE."""
    RESERVE = "reserve"
    """A member that is at hand but not active. Nobody waits for its workers."""
    ABSENT = "absent"
    """A member that left while it was a RESERVE."""
    LEAVING = "leaving"
    """A drained node on its way out. It is in no world, and nobody waits for it."""
    ASIDE = "aside"
    """A node that is set aside, because it failed too often: a spare that gets no place before its time."""

    __hash__ = object.__hash__  # members are single objects; Enum's own hash is a call in Python, on the hottest path


_STATUSES = tuple(Status)
MEMBERS = (Status.IN, Status.DONE, Status.GONE, Status.RESERVE, Status.ABSENT)
"""The statuses of the members of a complete round."""
AWAY = (Status.GONE, Status.ABSENT)
"""The statuses of members that have left without an effect on the round."""
_OUT = (*AWAY, Status.LEAVING)
_PRESENT = tuple(status for status in Status if status not in AWAY)
"""The statuses of nodes that have not left."""
_PLACELESS = (Status.WAITING, Status.LEAVING, Status.ASIDE)
"""The statuses of nodes that take no place of the round."""


COOLDOWN_MAX_S = 1e6
"""The longest time for which a node is set aside."""


@frozen
class Failing:
    """What a node tells of itself when it ends a round by a failure: the number of its failures within its window, this one
    included. With a `cooldown_s` above 0 they are too many: it is to be set aside for this long."""

    failures: int = field()
    cooldown_s: float = field(default=0.0)

    @failures.validator
    def _is_a_count(self, attribute: Attribute[int], value: int) -> None:
        if not 1 <= value <= COUNT_MAX:
            raise ValueError(f"failures: 1 to {COUNT_MAX}, not {value}")

    @cooldown_s.validator
    def _is_a_span(self, attribute: Attribute[float], value: float) -> None:
        if not 0 <= value <= COOLDOWN_MAX_S:
            raise ValueError(f"cooldown_s: 0 to {COOLDOWN_MAX_S:g} seconds, not {value}")

    @property
    def is_too_often(self) -> bool:
        return self.cooldown_s > 0


@frozen
class Seat:
    """A node's entry in the register. `order` is its arrival number, until a world is completed: then its members change
    their orders with one another, so that they stand in the order of the ranks.

    A node whose seat has a `notice` is drained. `failing` is what the node told of its failures last, if it tells of them.
    """

    status: Status
    order: int
    profile: Profile
    notice: Notice | None = None
    failing: Failing | None = None

    def become(self, status: Status) -> Seat:
        """Return the same seat with another status. The end of a round does this for every member."""
        return evolve(self, status=status)


_order, _profile = attrgetter("order"), attrgetter("profile")


@frozen
class Limits:
    """The limits that all agents of a job must agree on: nodes, and restarts of the whole job. Genesis writes them.

    `agreed` spells what else all were given alike. It is compared, and decides nothing more.
    """

    min_nodes: int = field(default=1)
    max_nodes: int = field(default=1)
    max_restarts: int = field(default=0)
    agreed: str = field(default="")
    give_up_after: int = field(default=0)
    """The job ends after this number of fruitless rounds in a row. 0: it does not."""
    counts_failures: bool = field(default=False)
    """A round that ends as FAILED is a fruitless one too."""
    node_unit: int = field(default=1)
    """A world has a multiple of this number of nodes."""
    segment: str = field(default="")
    """The label that all nodes of a unit have one value of: units are segments. Empty: a unit has any nodes."""

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

    @give_up_after.validator
    def _is_bounded(self, attribute: Attribute[int], value: int) -> None:
        if not 0 <= value <= FRUITLESS_MAX:
            raise ValueError(f"give_up_after: 0 to {FRUITLESS_MAX}, not {value}")

    @counts_failures.validator
    def _counts_for_a_limit(self, attribute: Attribute[bool], value: bool) -> None:
        if value and not self.give_up_after:
            raise ValueError("counts_failures: only with give_up_after")

    @node_unit.validator
    def _divides(self, attribute: Attribute[int], value: int) -> None:
        if value < 1 or self.min_nodes % value or self.max_nodes % value:
            bounds = f"min_nodes ({self.min_nodes}) and max_nodes ({self.max_nodes})"
            raise ValueError(f"node_unit: a divisor of {bounds}, not {value}")

    @segment.validator
    def _is_a_label(self, attribute: Attribute[str], value: str) -> None:
        if len(value) > NAME_MAX or not value.isprintable():
            raise ValueError(f"segment: at most {NAME_MAX} printable characters, not {value!r}")
        if value and self.node_unit == 1:
            raise ValueError(f"segment: {value!r} needs a node_unit above 1")

    @property
    def option(self) -> str:
        """The options of the launcher that say how many nodes these are, and in what segments."""
        nodes = f"--nnodes={self.min_nodes}:{self.max_nodes}"
        if self.segment:
            return f"{nodes} --segment={self.segment}:{self.node_unit}"
        return nodes + (f":{self.node_unit}" if self.node_unit > 1 else "")

    def whole(self, count: int) -> int:
        """Return how many of this many nodes a world has: whole units of them."""
        return min(count, self.max_nodes) // self.node_unit * self.node_unit

    def fit(self, values: Mapping[Each, str], most: int) -> list[Each]:
        """Return the nodes of whole segments, at most this many nodes, in their order; `values` has each node's value of the
        label. The nodes of one value make segments in their order, and segments are taken by their first nodes. A node
        without a value is in none."""
        forming, segments = dict[str, list[Each]](), list[list[Each]]()
        for node, value in values.items():
            if not value:
                continue
            if value not in forming:
                segments.append(forming.setdefault(value, []))
            forming[value].append(node)
            if len(forming[value]) == self.node_unit:
                del forming[value]
        whole = [segment for segment in segments if len(segment) == self.node_unit]
        taken = {node for segment in whole[: most // self.node_unit] for node in segment}
        return [node for node in values if node in taken]

    def lacking(self, values: Iterable[str]) -> int:
        """Return how many more nodes, at least, make the minimum of whole segments with nodes that have these values."""
        unit, counts = self.node_unit, Counter(filter(None, values)).values()
        segments = max(self.min_nodes // unit - sum(count // unit for count in counts), 0)
        parts = sorted((count % unit for count in counts), reverse=True)[:segments]
        return segments * unit - sum(parts)

    @agreed.validator
    def _is_text(self, attribute: Attribute[str], value: str) -> None:
        if len(value) > NAME_MAX or not value.isprintable():
            raise ValueError(f"agreed: at most {NAME_MAX} printable characters, not {value!r}")


@frozen
class Ended:
    """The end of the last round: why it ended, and by whose write.

    `lost` names the nodes that this end or a later eviction threw out. It is for people and decides nothing, so two ends
    that differ in it alone are equal.
    """

    round: int
    why: Why
    by: Node
    lost: tuple[str, ...] = field(default=(), eq=False)

    @lost.validator
    def _are_names(self, attribute: Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
        if len(value) > LOST_MAX or not all(name.isprintable() for name in value):
            raise ValueError(f"lost: at most {LOST_MAX} printable names, not {value!r}")


class Token(NamedTuple):
    """The name of one state of one register. A compare-and-set compares it."""

    life: Life
    version: int


def _in_order(seats: Mapping[Node, Seat]) -> tuple[tuple[Node, Seat], ...]:
    return tuple(seats.items())


def _read_only(seats: Mapping[Node, Seat]) -> Mapping[Node, Seat]:
    return seats if isinstance(seats, MappingProxyType) else MappingProxyType(seats)


@frozen
class RendezvousState:
    """The register.

    `seats` is sorted by `order`. `version` counts the writes. `quorum_at` is the version at which the open round reached the
    minimum. `target` is the number of nodes that a round waits for without a last call (0: the maximum).

    `job` is the nonce of genesis, and never changes. `base` is the precedence of the state that this life was made from. The
    life counts for that until a world is complete in it (`provisional`). `completed_in` is the life in which the standing
    world was completed.
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
    job: str = field()
    base: Precedence = NOTHING
    completed_in: Life | None = None
    generation: int = 0
    """The round since which no round has ended as FAILED: where workers restart alone, processes are as old as that."""
    policy: str = ""
    """The digest of the standing world's ranks, from the policy of the node that completed it; empty if it had no policy."""
    progressed: bool = False
    """The complete round has made progress, or the one before the open round had: it is no fruitless one."""
    fruitless: tuple[Ended, ...] = ()
    """The ends of the fruitless rounds in a row: those that a loss ended, or the return of a node that was lost in them."""
    lost_starts: tuple[Node, ...] = ()
    """The last nodes that were lost, and had no notice, in their order. A node that leaves takes those of its slot along."""
    memo: Memo = beside()
    """What was worked out from this very value, and what `verify` has found about it."""

    @job.default
    def _of_genesis(self) -> str:
        return self.life.nonce

    @derived
    def token(self) -> Token:
        return Token(self.life, self.version)

    @derived
    def era(self) -> Token:
        """In which a proposal was made: it is void in another life, and once a round has ended or somebody has bumped."""
        return Token(self.life, self.stale_before)

    @derived
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self.seats)

    @derived
    def orders(self) -> tuple[int, ...]:
        """The order of each seat."""
        return tuple(map(_order, self.seats.values()))

    @derived
    def profiles(self) -> tuple[Profile, ...]:
        """The profile of each seat."""
        return tuple(map(_profile, self.seats.values()))

    @derived
    def census(self) -> Mapping[Status, int]:
        """How many seats there are of each status."""
        counted = dict.fromkeys(_STATUSES, 0)
        for seat in self.seats.values():
            counted[seat.status] += 1
        return counted

    def those(self, *statuses: Status) -> tuple[Node, ...]:
        """Return the nodes whose seat has one of these statuses, in the order of their seats."""
        census, count = self.census, 0
        for status in statuses:
            count += census[status]
        if count in (0, len(self.seats)):
            return self.nodes if count else ()
        return tuple([node for node, seat in self.seats.items() if seat.status in statuses])

    @derived
    def present(self) -> tuple[Node, ...]:
        """The nodes that have not left."""
        return self.those(*_PRESENT)

    @derived
    def first(self) -> Node | None:
        return self.present[0] if self.present else None

    @derived
    def stand_ins(self) -> tuple[Node, ...]:
        """The nodes that watch all others when the first one is silent: the next one, which will be the first, and some from
        all over. One rack holds them all only if it holds most of the job. A seat that goes makes room for one of them."""
        return (*self.present[1:2], *sorted(self.present[2:], key=self._scattered)[: STAND_INS - 1])

    def _scattered(self, node: Node) -> int:
        return self.seats[node].order * _SCATTERS % 2**32

    @derived
    def participants(self) -> tuple[Node, ...]:
        return self.those(Status.IN)

    @derived
    def expected(self) -> tuple[Node, ...]:
        return self.those(Status.EXPECTED)

    @derived
    def members(self) -> tuple[Node, ...]:
        """The members of a complete round, in the order of their seats."""
        return self.those(*MEMBERS)

    @derived
    def room(self) -> int:
        """How many more nodes the round can take. A seat of a node that is expected back is taken."""
        return self.limits.max_nodes - (len(self.seats) - sum(self.census[status] for status in _PLACELESS))

    @derived
    def noticed(self) -> tuple[Node, ...]:
        """The drained nodes."""
        return tuple([node for node, seat in self.seats.items() if seat.notice])

    @derived
    def draining(self) -> tuple[Node, ...]:
        """The drained nodes whose workers run in the standing world."""
        return tuple([node for node in self.noticed if self.seats[node].status is Status.IN])

    @derived
    def finishing(self) -> bool:
        """True if the workers of some member have succeeded in this round. No newcomer may end it then."""
        return self.census[Status.DONE] + self.census[Status.GONE] > 0

    @derived
    def wait_list(self) -> tuple[Node, ...]:
        """The waiting nodes that the next round has room for, in whole units, and for which this round may be ended. Nobody
        ends it while a drained member is at work: its script may be saving a checkpoint, and it ends the round itself in
        time."""
        if not self.census[Status.WAITING] or self.finishing or self.draining:
            return ()
        waiting, unit = self.those(Status.WAITING), self.limits.node_unit
        if self.limits.segment:
            return tuple(self.limits.fit(self.values(waiting), max(self.room, 0)))
        return waiting[: min(len(waiting), max(self.room, 0)) // unit * unit]

    def value(self, node: Node) -> str:
        """Return this node's value of the label of the segments; empty if it has none, or worlds have no segments."""
        segment = self.limits.segment
        return self.seats[node].profile.groups((segment,))[0] if segment else ""

    def values(self, nodes: Iterable[Node]) -> Mapping[Node, str]:
        """Return that value of each of these nodes."""
        return {node: self.value(node) for node in nodes}

    def fit(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return those of these nodes that are in a world which they make now, in their order: whole units."""
        if not self.limits.segment:
            return nodes[: self.limits.whole(len(nodes))]
        return self.limits.fit(self.values(nodes), self.limits.max_nodes)

    def makes(self, *statuses: Status) -> int:
        """Return how many nodes a world has that those with these statuses make now."""
        if not self.limits.segment:
            return self.limits.whole(sum([self.census[status] for status in statuses]))
        return len(self.fit(self.those(*statuses)))

    @derived
    def made(self) -> int:
        """How many nodes a world has that the participants make now."""
        return self.makes(Status.IN)

    @property
    def lacks(self) -> Mapping[str, int]:
        """How many more nodes must wait until those that do make whole units, where there is room for one more: by their
        value of the segments' label, or of all together."""
        unit = self.limits.node_unit
        if len(self.wait_list) + unit > self.room:
            return {}
        counts = Counter(self.values(self.those(Status.WAITING)).values())
        return {value: unit - count % unit for value, count in counts.items() if count % unit}

    @property
    def unseen(self) -> int:
        """How many more nodes, at least, must come that nobody expects, until an open round has its minimum."""
        here = self.those(Status.IN, Status.EXPECTED)
        if self.limits.segment:
            return self.limits.lacking(self.values(here).values())
        return max(self.limits.min_nodes - len(here), 0)

    @property
    def fills_up(self) -> bool:
        """True if the next round has no room beside the nodes that wait for it."""
        return len(self.wait_list) >= self.room

    @derived
    def with_loopback(self) -> tuple[Node, ...]:
        """The nodes whose address leads each host to itself."""
        return tuple([node for node, seat in self.seats.items() if seat.profile.has_loopback])

    @derived
    def redundancy_list(self) -> tuple[Node, ...]:
        """The spares: waiting nodes without room, or that make no whole unit, or behind a round that is finishing or has a
        drained member at work, and the nodes that are set aside."""
        if not self.census[Status.WAITING] and not self.census[Status.ASIDE]:
            return ()
        coming = frozenset(self.wait_list)
        spares = [node for node in self.those(Status.WAITING) if node not in coming]
        return (*spares, *self.those(Status.ASIDE))

    def needs(self, node: Node) -> bool:
        """Return True if the nodes that may be in the next world would be too few without this one."""
        others = [(each, seat) for each, seat in self.seats.items() if each.slot != node.slot]
        stay = [each for each, seat in others if seat.status not in _OUT and not seat.notice]
        return len(self.fit(stay)) < self.limits.min_nodes

    def is_spare(self, node: Node | None) -> bool:
        """Return True if this node, when it joins, waits for a later round: it is a spare, or a reserve that was held for
        lost, and its round goes on."""
        seat = self.seats.get(node) if node is not None else None
        return seat is not None and (seat.status is Status.ABSENT or node in self.redundancy_list)

    def passes_over(self, node: Node) -> bool:
        """Return True if this node waits, and a world stands without it."""
        return self.complete and status_of(self, node) is Status.WAITING

    @derived
    def party_is_whole(self) -> bool:
        """True if a newcomer has its whole party with it."""
        here = Counter(seat.profile.party.name for seat in self._present_seats if seat.profile.party)
        parties = (self.seats[node].profile.party for node in self.wait_list)
        return any(party is None or here[party.name] >= party.size for party in parties)

    @property
    def _present_seats(self) -> tuple[Seat, ...]:
        return tuple(self.seats[node] for node in self.present)

    @property
    def provisional(self) -> bool:
        """True if no world was completed in this life yet. It counts for what it was made from."""
        return bool(self.base)

    @property
    def precedence(self) -> Precedence:
        return (*self.base, (self.life.epoch, self.version))

    @derived
    def world_id(self) -> WorldId | None:
        """The identity of the standing world."""
        return WorldId(self.completed_in, self.round) if self.completed_in else None

    @property
    def over_budget(self) -> bool:
        return self.failures > self.limits.max_restarts

    @property
    def gives_up(self) -> bool:
        """True if the job has had as many fruitless rounds in a row as its limits allow, and is within its budget."""
        return 0 < self.limits.give_up_after <= len(self.fruitless) and not self.over_budget

    @property
    def losses(self) -> Mapping[str, int]:
        """In how many of the fruitless rounds in a row each node was lost, by name."""
        return Counter(name for ended in self.fruitless for name in ended.lost)

    @property
    def quorate(self) -> bool:
        return self.made >= self.limits.min_nodes

    @derived
    def member_profiles(self) -> tuple[Profile, ...]:
        """The profiles of the members."""
        if len(self.members) == len(self.seats):
            return self.profiles
        return tuple([self.seats[node].profile for node in self.members])

    @derived
    def world(self) -> World:
        """The world of a complete round. Its members have stood in the order of the ranks since it was completed."""
        id, generation = WorldId(self.completed_in or self.life, self.round), Generation(self.job, self.generation)
        return World(id, self.members, self.member_profiles, self.failures, self.policy, generation)


def status_of(state: RendezvousState, node: Node) -> Status | None:
    """Return the status of this node's seat; None if it has none."""
    seat = state.seats.get(node)
    return seat.status if seat is not None else None


def later_start(state: RendezvousState, me: Node) -> Node | None:
    """Return the last incarnation of my slot with a seat, if it is later than mine."""
    later = [node for node in state.seats if node.slot == me.slot and node.incarnation > me.incarnation]
    return max(later, default=None)


def lost_starts(state: RendezvousState, me: Node, within_s: float) -> int:
    """Return how many earlier starts of my slot were lost, or have a seat that I take over, that began at most
    `within_s` before me. A start is named by its time on its own host's clock, so no clocks of two hosts are compared but
    where another host has taken the slot over."""
    seated = [node for node, seat in state.seats.items() if seat.status not in AWAY and not seat.notice]
    starts = {node for node in (*state.lost_starts, *seated) if node.slot == me.slot and node < me}
    return sum(me.incarnation - node.incarnation <= within_s for node in starts)


def successor(state: RendezvousState | None, me: Node) -> Node | None:
    """Return the node that this agent begins anew as, so that it follows the later start of its slot. That may have lost its
    seat meanwhile. Two agents of one slot that do this at once should differ: so the last digits of my own start are added;
    one pair in a thousand is one node all the same. None: no number is left above the later start's."""
    later = later_start(state, me) if state is not None else None
    incarnation = later.incarnation + 1 + me.incarnation % 1_000 if later else me.incarnation + 1
    return Node(me.slot, incarnation) if incarnation <= COUNT_MAX else None


def shows_over(state: RendezvousState | None, node: Node, round: int) -> bool:
    """Return True if this state shows that this round of this node is over, or the job.

    A state that is older, or not complete yet, may be one that was read before the round began: it shows nothing. A complete
    one of this round without this node is of another world: the store forgot the round's own.
    """
    if state is None or state.closed is not None or state.round > round:
        return state is not None
    return state.round == round and state.complete and node not in state.seats


def known_as(state: RendezvousState, nodes: Iterable[Node]) -> list[str]:
    """Return the names that people know: `name_of` each node, or its slot if several slots share that name."""
    names = {node: name_of(node, seat.profile.host, seat.profile.labels) for node, seat in state.seats.items()}
    shared = Counter(name for name, _ in dict.fromkeys((name, node.slot) for node, name in names.items()))
    return [names[node] if shared[names[node]] == 1 else node.slot for node in nodes]


def note_columns(
    state: RendezvousState,
    nodes: tuple[Node, ...],
    profiles: tuple[Profile, ...],
    statuses: tuple[Status, ...],
    orders: tuple[int, ...],
    notices: Sequence[object],
) -> None:
    """Note beside the state what is known of it to whoever has made its seats from these columns."""
    census = dict.fromkeys(_STATUSES, 0) | {status: statuses.count(status) for status in dict.fromkeys(statuses)}
    noticed = tuple(compress(nodes, notices))
    state.memo.update(nodes=nodes, profiles=profiles, census=census, orders=orders, noticed=noticed)


def blank(life: Life, limits: Limits, target: int = 0) -> RendezvousState:
    """Return the register before genesis: version 0, round 0, and no seats. Its first round waits for `target` nodes."""
    return RendezvousState(life, limits, target=target)
