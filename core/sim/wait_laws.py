"""The law of how long a node waits (O19): the judge works out when the first thing falls due, by what the node remembers."""

from __future__ import annotations

import math

from attrs import define, field

from ..properties.law import Law, Strength
from ..properties.outcome_laws import last_call
from ..rendezvous import Client, Held, RendezvousState, Seat, Status, Wait
from ..rendezvous.context import GROWN_RUNS, LEASE_S, Fact, Operation, dead, gone
from ..rendezvous.handlers import END_JITTER, close, end, join, watch
from ..rendezvous.refusals import barring
from ..rendezvous.state import AWAY, MEMBERS, later_start
from ..rendezvous.turn import RESTORE_JITTER_S
from ..violation import check
from ..world import Node, Why

O19 = Law(
    "O19",
    "A node waits for the register if nothing is due by what it remembers, and until the first thing is, no shorter and no "
    "longer: its deadline, its turn to do a chore, the next look at heartbeats, the end of a cool-down, or the word whether "
    "those live that keep it out; how long it waits for what it has proposed is left to O16.",
    "a node waits for the register",
)
SLACK_S = 1e-6


@define
class Waits:
    strength: Strength = field(factory=Strength)
    known: dict[Node, tuple[tuple[object, ...], float]] = field(factory=dict)
    """When something was due for each node, and by what: in most waits nothing of that has changed."""

    def waits(self, client: Client, wait: Wait, now: float) -> None:
        """Judge how long this node waits. Raises Violation."""
        held, operation = client.held, client.agenda.operation
        assert operation is not None
        self.strength.armed["O19"] += 1
        until = min(_looks_at(held, now), self._due_at(held, operation, now))
        if abs(wait.until - until) <= SLACK_S or wait.until == until or (wait.arm and wait.until <= now):
            return
        proposed, state = held.view.proposed, held.view.state
        if proposed is not None and state is not None and proposed.proposal.era == state.era:
            self.strength.excused["O19"] += 1
            return
        which = f"{operation.handler.__name__} waits until {wait.until:g}, and something is due at {until:g}"
        check([("O19", f"{held.who.node} {which} (now {now:g})")])

    def _due_at(self, held: Held, operation: Operation, now: float) -> float:
        if held.view.suspects or held.found is not None or not held.view.spans.keys().isdisjoint(UNSTEADY):
            return _due_at(held, operation, now)
        by = (
            held.view.state,
            held.view.spans,
            operation,
            held.past.spare_at,
            held.past.mine,
            held.past.done_in,
            held.past.reserve_in,
            held.past.failed_at,
        )
        before = self.known.get(held.who.node)
        if before is not None and before[0] == by:
            return before[1]
        due = _due_at(held, operation, now)
        if due > now:
            self.known[held.who.node] = by, due
        return due


UNSTEADY = (Fact.DEAD, Fact.LATER, Fact.BARRED)
"""The time of the wait decides what is due by these."""


def _looks_at(held: Held, now: float) -> float:
    """Return when the node must read heartbeats again; inf if it watches nobody."""
    state, me, sightings = held.view.state, held.who.node, held.view.sightings
    if held.found is not None:
        return math.inf
    if state is None or state.closed or me not in state.seats:
        watches = state is not None and (
            (later_start(state, me) is not None and me not in state.seats) or barring(held)
        )
    else:
        watches = len(state.present) > (me in state.present)
    if not watches:
        return math.inf if held.contact.silent_since is None else now
    return now if sightings.read_at is None else sightings.read_at + held.who.settings.keep_alive_interval


def _due_at(held: Held, operation: Operation, now: float) -> float:
    """Return when this operation has something to do, if the register does not change: now, or later; inf for never."""
    state, handler = held.view.state, operation.handler
    if held.found is not None:
        return held.found.at + operation.jitter * RESTORE_JITTER_S
    if handler is close and operation.why is Why.CANNOT_START and not (state is not None and state.complete):
        return min(operation.deadline, operation.since + last_call(held))
    if state is None or state.closed:
        return now
    seat = state.seats.get(held.who.node)
    if handler is join:
        return _join_at(held, state, seat, operation, now)
    if handler is watch:
        return _watch_at(held, state, seat, operation, now)
    if handler is end:
        return operation.since + operation.jitter * END_JITTER * (len(state.members) - 1)
    return now


def _watch_at(held: Held, state: RendezvousState, seat: Seat | None, operation: Operation, now: float) -> float:
    """Return when a node has something to do whose workers run, or are done."""
    world, status = state.world_id, seat.status if seat is not None else None
    owes = status is Status.IN and world in (held.past.done_in, held.past.reserve_in)
    if status not in MEMBERS or held.past.mine is None or held.past.mine != world or owes or _is_to_evict(held, now):
        return now
    barrier = operation.deadline if status is Status.DONE else math.inf
    return min(barrier, _upscale_at(held, state, now), _proceeds_at(held, now))


def _join_at(held: Held, state: RendezvousState, seat: Seat | None, operation: Operation, now: float) -> float:
    """Return when a node has something to do that waits for a world."""
    settings, deadline, status = held.who.settings, operation.deadline, seat.status if seat is not None else None
    if held.past.spare_at is not None:
        deadline = (
            math.inf if state.is_spare(held.who.node) else max(deadline, held.past.spare_at + settings.join_timeout)
        )
    if status is Status.LEAVING:
        return deadline
    if seat is None and (kept_out := [fact for fact in (Fact.LATER, Fact.BARRED) if _keeps_out(held, fact, now)]):
        return min(deadline, _lives_at(held, kept_out[0], now))
    if _is_to_evict(held, now):
        return now
    chore = math.inf
    if seat is None:
        return deadline if state.complete and operation.holds_back else now
    if seat.status is Status.ASIDE and seat.failing is not None:
        return held.view.spans[Fact.ASIDE][1] + seat.failing.cooldown_s
    if status is Status.EXPECTED:
        limit = settings.max_node_failures
        if limit is None or not limit.is_over(held.past.failed_at) or state.over_budget:
            return now
        chore = _chore_at(held, Fact.OPEN, settings.overdue_timeout, now)
    elif status in (Status.IN, Status.WAITING) and state.expected:
        chore = _chore_at(held, Fact.OPEN, settings.overdue_timeout, now)
    elif status is Status.IN:
        chore = now if state.complete else _chore_at(held, Fact.QUORUM, last_call(held), now)
    return min(deadline, chore)


def _keeps_out(held: Held, fact: Fact, now: float) -> bool:
    """Return True if this fact keeps a node without a seat from one: of those that bar it only who is not dead does."""
    return fact in held.view.spans and (fact is Fact.LATER or not barring(held).keys() <= dead(held, now))


def _is_to_evict(held: Held, now: float) -> bool:
    """Return True if it is this node's turn to evict the dead."""
    if not dead(held, now):
        return False
    return bool(gone(held, now)) or now >= _chore_at(held, Fact.DEAD, 0.0, now)


def _lives_at(held: Held, fact: Fact, now: float) -> float:
    settings, sightings = held.who.settings, held.view.sightings
    if sightings.read_at is None or now - sightings.read_at > 2 * settings.keep_alive_interval:
        return math.inf
    spans = 3 if settings.leased else 2
    return max(held.view.spans[fact][1], sightings.since) + spans * max(settings.ttl, LEASE_S)


def _upscale_at(held: Held, state: RendezvousState, now: float) -> float:
    settings, after = held.who.settings, held.who.settings.upscale_after
    at = _chore_at(held, Fact.NEWCOMER, after, now)
    if Fact.PART in held.view.spans:
        at = _chore_at(held, Fact.PART, max(after, settings.party_timeout), now)
    if Fact.GROWN in held.view.spans and len(state.wait_list) < state.room:
        at = max(at, _chore_at(held, Fact.GROWN, min(GROWN_RUNS * after, settings.join_timeout / 2), now))
    return at


def _proceeds_at(held: Held, now: float) -> float:
    old = _chore_at(held, Fact.FRUITLESS, held.who.settings.progress_after, now)
    return min(old, _chore_at(held, Fact.ADVANCE, 0.0, now))


def _chore_at(held: Held, fact: Fact, after: float, now: float) -> float:
    """Return when it is this node's turn to do a chore that is due this span after the fact."""
    span = held.view.spans.get(fact)
    return math.inf if span is None else span[1] + after + _patience(held, now)


def _patience(held: Held, now: float) -> float:
    """Return how long this node leaves a chore to those before it."""
    state, me, patience = held.view.state, held.who.node, held.who.settings.patience
    assert state is not None
    those = dead(held, now)
    awake = [node for node in state.present if node not in those]
    if awake[:1] == [me]:
        return 0.0
    seat = state.seats.get(me)
    if seat is None:
        return math.inf
    return 2 * patience if seat.status in AWAY else patience * (1 + awake.index(me) / len(awake))
