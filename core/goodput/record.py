"""Keeps the record that each node puts into the store of where its time went: all nodes' records add up to the job.

A node has one record, which it replaces. When the seat of a node has gone, the first node of the register takes over what
its record says: so there are no more records than seats, whatever came and went, and each time is in one of them. The node
itself may live. If it comes back, it puts nothing until the first one has had time to read. Then it looks whether its record
is still there: if not, it counts from there.

A run's time is told apart until its workers have told what they came to: only then is known what of it was training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from ..rendezvous import RendezvousState
from ..rendezvous.state import NODES_MAX
from ..values import evolve, field, frozen
from ..work import OTHER
from ..world import COUNT_MAX, SHARES_MAX, Node
from .book import by_kind
from .entries import Kind
from .ledger import Ledger, whole
from .runs import pieces

Shares: TypeAlias = Mapping[tuple[str, str], int]
"""Microseconds by bucket and cause. What another record has already may be taken off one of them: so it may be negative."""
GONE_MAX = 64
"""A record names the last nodes whose time was taken over: somebody may have died before it had dropped their records."""
SHORT = 60_000_000
"""The end of a node that was there for fewer microseconds says nothing of them."""
EVERY = 3_600_000_000
"""A record is put anew after these microseconds: of a run no more is missing in it if the agent is killed."""
HELD_BEATS = 15
"""A node that has lost its seat puts nothing beside this many heartbeats."""
TAKEN_AT_ONCE = 32
"""The most nodes whose time is taken over beside one heartbeat, which must not come late. `last` names all of them."""
GROWN_MAX = 2 * SHARES_MAX
"""The most counters of one node: a record may name others each time."""


@frozen
class Spent:
    """Says where the time of a node went."""

    shares: Shares = field(factory=dict)
    run: int = 0
    """The microseconds for which workers have run that have not told what they came to."""
    trains: bool = False
    """The program has told of its progress before: that run is training."""

    @property
    def whole(self) -> Shares:
        """Return the shares with that run."""
        name = "training" if self.trains else "running"
        return _sum(self.shares, {(name, Kind.NONE.value): self.run} if self.run else {})


def spent(ledger: Ledger) -> Spent:
    """Return where the time of this agent's node went."""
    account, shares = ledger.account, Counter[tuple[str, str]]()
    for (bucket, kind), micros in by_kind(whole(ledger)).items():
        shares[bucket, kind.value] += micros
    run = account.run
    if run is None or run.tally.ended >= run.size:
        return Spent(shares)
    those = pieces(run, account.node, account.at)
    length = sum(piece.end - piece.start for piece in those if piece.bucket == "running")
    shares["running", Kind.NONE.value] -= length
    return Spent({key: micros for key, micros in shares.items() if micros}, length, run.says_steps)


@frozen
class NodeRecord:
    """Says where the time of one node went, and that of nodes whose seats have gone."""

    node: Node
    own: Spent = Spent()
    taken: Shares = field(factory=dict)
    """The time of nodes whose seats have gone."""
    gone: int = 0
    """How many these were."""
    last: tuple[tuple[Node, int], ...] = ()
    """The last of these, each with the part of its time."""
    part: int = 0
    """How often this node had lost its seat. What it had told before is in another record."""
    ended: bool = False
    """Its workers have ended for good."""
    at: int = 0
    """When this was so, in microseconds of the time of day on the node's host."""


@frozen
class Keeper:
    """Holds what a node must remember to keep its record."""

    node: Node
    job: str = ""
    seats: frozenset[Node] = frozenset()
    """The nodes that had seats when it looked last."""
    is_first: bool = False
    """It is the first node: it takes over the time of those that are `due`."""
    due: tuple[Node, ...] = ()
    """The last nodes whose seats have gone."""
    taken: Shares = field(factory=dict)
    gone: int = 0
    last: tuple[tuple[Node, int], ...] = ()
    told: Shares = field(factory=dict)
    """All of its time that it has put into the store."""
    left: Shares = field(factory=dict)
    """As much of that stands in another node's record."""
    part: int = 0
    held: int = 0
    """It puts nothing beside this number of heartbeats."""
    has_gone: bool = False
    """It has lost its seat, and what it had told may be in another node's record."""

    @property
    def owed(self) -> tuple[Node, ...]:
        """The nodes whose time this one is to take over: first those whose time it has and whose records may still be there,
        then the last that went, whose records may name those before."""
        if not self.is_first or not self.due:
            return ()
        known, late = {node for node, _ in self.last}, self.due[::-1]
        return tuple(sorted(late, key=lambda node: node not in known))


def looked(keeper: Keeper, state: RendezvousState) -> Keeper:
    """Take a look at the register. Nothing goes from one job to another."""
    me, seats, is_first = keeper.node, frozenset(state.seats), state.first == keeper.node
    keeper, before = evolve(keeper, job=state.job, seats=seats, is_first=is_first), keeper
    if state.job != before.job:
        return evolve(keeper, due=(), taken={}, gone=0, last=())
    if me in before.seats and me not in seats:
        return evolve(keeper, due=(), held=HELD_BEATS, has_gone=True)
    stays = keeper.due if is_first else tuple(node for node in keeper.due if node not in seats)
    return evolve(keeper, due=(*stays, *sorted(before.seats - seats))[-NODES_MAX:])


def missed(keeper: Keeper) -> Keeper:
    """Note that another node has taken over what this one had told: its record is not there any more."""
    part = keeper.part + bool(keeper.told)
    return evolve(keeper, has_gone=False, left=keeper.told, part=part, taken={}, gone=0, last=())


def took(keeper: Keeper, records: Mapping[Node, NodeRecord]) -> Keeper:
    """Take over what these records of no more than TAKEN_AT_ONCE nodes say. What is in one of them, or was taken over
    before, is not taken again. They may be forged, so no number becomes too large for a record."""
    known = {*keeper.last, *(mark for each in records.values() for mark in each.last)}
    anew = [each for each in records.values() if (each.node, each.part) not in known]
    taken = Counter(keeper.taken)
    for each in anew:
        taken = _sum(taken, _all(each))
    bounded = {key: min(max(micros, -COUNT_MAX), COUNT_MAX) for key, micros in few(taken).items()}
    gone = min(keeper.gone + sum(map(_nodes, anew)), COUNT_MAX)
    marks, due = [(each.node, each.part) for each in anew], frozenset(keeper.due)
    others = (mark for each in anew for mark in each.last if mark[0] in due)
    return evolve(keeper, taken=bounded, gone=gone, last=(*keeper.last, *others, *marks)[-GONE_MAX:])


def settled(keeper: Keeper, nodes: Collection[Node]) -> Keeper:
    """Note that these nodes' records are removed."""
    return evolve(keeper, due=tuple(node for node in keeper.due if node not in nodes))


def told(keeper: Keeper, own: Spent) -> Keeper:
    """Note that the store has this node's time."""
    return evolve(keeper, told=own.whole)


def record(keeper: Keeper, own: Spent, ended: bool = False, at: int = 0) -> NodeRecord:
    """Return the record of this node, whose time went there until then."""
    shares = _sum(own.shares, {key: -micros for key, micros in keeper.left.items()})
    own = evolve(own, shares=few(shares))
    return NodeRecord(keeper.node, own, keeper.taken, keeper.gone, keeper.last, keeper.part, ended, at)


def lasting(record: NodeRecord, now: int) -> NodeRecord:
    """Return the record as it is at this time of day, if the node's workers have run since. Clocks of two hosts differ, and
    one may be wrong: so it grows by no more than a record may be old."""
    more = min(max(now - record.at, 0), EVERY) if record.at else 0
    return evolve(record, own=evolve(record.own, run=record.own.run + more))


def few(shares: Shares) -> Shares:
    """Return the shares, of too many the longest, and the others by their cause."""
    shares = {key: micros for key, micros in shares.items() if micros}
    if len(shares) <= SHARES_MAX:
        return shares
    order = sorted(shares, key=lambda key: (-abs(shares[key]), key))
    kept = {key: shares[key] for key in order[: SHARES_MAX - len(Kind)]}
    rest = Counter[tuple[str, str]]()
    for key in order[SHARES_MAX - len(Kind) :]:
        rest[OTHER, key[1]] += shares[key]
    return _sum(kept, rest)


@frozen
class JobTime:
    """Says where the time of a job's nodes went, as far as their records tell."""

    shares: Shares = field(factory=dict)
    nodes: int = 0
    """How many agents are in it, those that have gone included. A host whose agent was killed and came back has had two."""
    ended: frozenset[Node] = frozenset()
    """The nodes whose workers have ended for good."""

    @property
    def is_told(self) -> bool:
        """Return False if it is so short that nobody needs to be told."""
        return sum(self.shares.values()) >= SHORT


def job_time(records: Iterable[NodeRecord]) -> JobTime:
    """Return the sum of these records."""
    shares, nodes, ended = Counter[tuple[str, str]](), 0, set[Node]()
    for each in records:
        shares = _sum(shares, _all(each))
        nodes += _nodes(each)
        ended |= {each.node} if each.ended else set()
    return JobTime({key: micros for key, micros in sorted(shares.items()) if micros > 0}, nodes, frozenset(ended))


def grown(before: Shares, now: Shares) -> Shares:
    """Return the most that either has of each. Of a time it may become known later what it was, and no counter goes back.
    Of more than GROWN_MAX the first are kept."""
    return {key: max(before.get(key, 0), now.get(key, 0)) for key in [*{**before, **now}][:GROWN_MAX]}


def _nodes(record: NodeRecord) -> int:
    """Return how many nodes' time is in the record. One that has come back is counted where its first part is."""
    return record.gone + (record.part == 0)


def _all(record: NodeRecord) -> Counter[tuple[str, str]]:
    return _sum(record.own.whole, record.taken)


def _sum(one: Shares, other: Shares) -> Counter[tuple[str, str]]:
    found = Counter(one)
    for key, micros in other.items():
        found[key] += micros
    return found
