"""The names of numbers in the enumerator: nodes and registers that differ in names only are one.

The register that stands has round ROUND and version HELD, whatever it is called in a real run, its seats are counted from 0,
and a span of a node's clock has just begun, or it is over since LONG_AGO. What a node holds has these names too, while it is
the register that stands; `Behind` says how far it is behind, and `aged` gives it back the older names for its next look.
"""

from __future__ import annotations

from collections.abc import Mapping

from worlds import but

from elastic.core.group import Group, Phase
from elastic.core.rendezvous import Decision, Ended, Held, RendezvousState, Seat, Status, Token, Write, join
from elastic.core.rendezvous.agenda import Agenda
from elastic.core.rendezvous.context import NO_WORLDS, Fact, dead
from elastic.core.rendezvous.sightings import Sighting, Sightings
from elastic.core.rendezvous.state import later_start
from elastic.core.values import evolve, frozen
from elastic.core.world import Ending, Endpoint, Life, Node, Profile, Verdict, Why, WorldId

LONG_AGO = -1e9
ROUND, HELD, BEFORE = 8, 100, 50
QUORUM, OTHER_QUORUM = 40, 30
"""The version at which the quorum began: of the register that stands, or of one that was since lost and found."""
LIFE = Life("life")
PROFILE = Profile(Endpoint("host", 1))
SOMEBODY = Node("somebody", 1)


@frozen(eq=False)
class Local:
    """A node at rest. `started`: its workers have been started in `mine`. `sent`: what it asks is under way, whatever the
    node may have come to want since."""

    held: Held
    agenda: Agenda
    group: Group
    started: bool = False
    ask: Decision | None = None
    sent: bool = False


@frozen
class Behind:
    """How far what a node holds is behind the register: the same, or so many rounds, and whether the quorum has changed."""

    same: bool = True
    rounds: int = 0
    quorum: bool = False


def plain(state: RendezvousState) -> RendezvousState:
    """The register without names: whatever no rule can tell apart is the same. After the verdict only that counts. No worker
    restarts alone in these worlds, so all generations are one."""
    if state.closed:
        return _plainly_closed(state, state.closed)
    seats = {node: Seat(seat.status, order, PROFILE) for order, (node, seat) in enumerate(state.seats.items())}
    charged = state.ended if state.ended and state.ended.why is Why.FAILED else None
    return evolve(
        state,
        life=LIFE,
        version=HELD,
        round=ROUND,
        generation=0,
        seats=seats,
        next_order=len(seats),
        quorum_at=None if state.quorum_at is None else QUORUM,
        ended=Ended(ROUND - 1, Why.FAILED, charged.by) if charged else None,
        stale_before=0,
        job=LIFE.nonce,
        base=(),
        completed_in=LIFE if state.complete else None,
    )


def _plainly_closed(state: RendezvousState, verdict: Verdict) -> RendezvousState:
    limits, succeeded = state.limits, verdict.ending is Ending.SUCCEEDED
    seats = {Node("somebody", 1 + i): Seat(Status.GONE, i, PROFILE) for i in range(limits.min_nodes * succeeded)}
    return RendezvousState(
        LIFE,
        limits,
        HELD,
        ROUND,
        complete=succeeded,
        closed=Verdict(verdict.ending, 0, SOMEBODY, verdict.why),
        seats=seats,
        next_order=len(seats),
        failures=0 if succeeded else limits.max_restarts + 1,
        base=(),
        completed_in=LIFE if succeeded else None,
    )


def state_key(state: RendezvousState | None) -> object:
    """What of a plain register can be told apart."""
    if state is None:
        return None
    return (
        state.complete,
        state.closed and (state.closed.ending, state.closed.why),
        tuple((node, seat.status) for node, seat in state.seats.items()),
        state.target,
        state.quorum_at,
        state.failures,
        state.ended and state.ended.by,
    )


def local_key(local: Local) -> object:
    held = local.held
    spans = tuple((fact.value, at) for fact, (_, at) in sorted(held.view.spans.items(), key=lambda item: item[0].value))
    beats = tuple((node, seen.moved_at) for node, seen in held.view.sightings.of.items())
    unsure = held.view.held_at is None, held.doubt.owed, held.doubt.unsure_at, held.trouble
    sent = local.ask.edit if local.sent and isinstance(local.ask, Write) else None
    mine = held.past.mine, local.started
    return held.who.node, state_key(held.view.state), spans, beats, mine, unsure, local.agenda, local.group, sent


def normal(held: Held, agenda: Agenda, group: Group) -> tuple[Held, Agenda, Group]:
    """Without what can make no difference any more, and in the names of the register that it holds."""
    held, agenda, group = tidy(held, agenda, group)
    state = held.view.state
    shift = ROUND - state.round if state else 0
    mine = held.past.mine and WorldId(LIFE, held.past.mine.round + shift)
    if group.world and shift:
        group = evolve(group, world=evolve(group.world, id=WorldId(LIFE, group.world.round + shift)))
    if mine and group.world is None:
        mine = WorldId(LIFE, max(mine.round, ROUND - 1))
    canonical = plain(state) if state else None
    held = but(
        held,
        nonce=LIFE,
        state=canonical,
        mine=mine,
        ran=frozenset((mine,)) if mine else NO_WORLDS,
        done_in=None,
        confirmed_at=None,
        owed=held.doubt.owed and Token(LIFE, HELD if state else 0),
        spans=_named(held, canonical),
    )
    return held, agenda, group


def tidy(held: Held, agenda: Agenda, group: Group) -> tuple[Held, Agenda, Group]:
    """Without what can make no difference any more, whatever things are called."""
    state = held.view.state
    stops = group.phase not in (Phase.JOINING, Phase.HELD) and group.stop.at is not None
    spares = group.stop.spares_children and group.children_by is not None
    stop = evolve(group.stop, at=0.0 if stops else None, spares_children=spares)
    group = evolve(group, heart=evolve(group.heart, acked_at=0.0), stop=stop)
    if group.refused:
        group = evolve(group, refused=evolve(group.refused, text=""))
    under_way, spare = agenda.operation, state is not None and held.who.node in state.redundancy_list
    if under_way and under_way.handler is join and held.past.spare_at is not None and not spare:
        deadline = max(under_way.deadline, held.who.settings.join_timeout)
        agenda = evolve(agenda, operation=evolve(under_way, deadline=deadline))
    dead_ones = dead(held, 0.0)
    seats = state.seats if state and not state.closed else ()
    beats = {node: Sighting(0, LONG_AGO if node in dead_ones else 0.0) for node in seats if node != held.who.node}
    return but(held, spare_at=0.0 if spare else None, sightings=Sightings(beats, 0.0)), agenda, group


def _named(held: Held, state: RendezvousState | None) -> Mapping[Fact, tuple[object, float]]:
    if state is None:
        return {}
    names: Mapping[Fact, object] = {
        Fact.OPEN: state.round,
        Fact.QUORUM: (state.round, state.quorum_at),
        Fact.NEWCOMER: state.round,
        Fact.GROWN: state.round,
        Fact.DEAD: True,
        Fact.LATER: later_start(state, held.who.node),
    }
    return {fact: (names[fact], at) for fact, (_, at) in held.view.spans.items()}


def aged(local: Local, behind: Behind) -> Local:
    """The node in the names of the register that stands now."""
    held, group, back = local.held, local.group, behind.rounds
    state = held.view.state
    if behind.same or state is None:
        return local
    quorum = state.quorum_at and (OTHER_QUORUM if behind.quorum or back else QUORUM)
    old = evolve(state, version=BEFORE, round=ROUND - back, quorum_at=quorum)
    mine = held.past.mine and WorldId(LIFE, held.past.mine.round - back)
    held = but(
        held,
        state=old,
        spans=_named(held, old),
        mine=mine,
        ran=frozenset((mine,)) if mine else NO_WORLDS,
        owed=held.doubt.owed and Token(LIFE, BEFORE),
    )
    if group.world:
        group = evolve(group, world=evolve(group.world, id=WorldId(LIFE, group.world.round - back)))
    return evolve(local, held=held, group=group)


def renamed(state: RendezvousState, names: Mapping[Node, Node]) -> RendezvousState:
    """The register, if all nodes had other names."""
    ended, closed = state.ended, state.closed
    return evolve(
        state,
        seats={names.get(node, node): seat for node, seat in state.seats.items()},
        ended=ended and evolve(ended, by=names[ended.by]),
        closed=closed and evolve(closed, by=names.get(closed.by, closed.by)),
    )
