"""Plausible bugs, one at a time: each must break the property of its number (docs/protocol.md#properties).

A mutant is a small wrapper around the real rule. Mutants of `apply` run over every state of a small world. Mutants of what a
node does run in the shortest history that shows them. Other mutants need more of the system: test_core_mutants.py has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from agents import Agents, Broken
from attrs import evolve
from explore import Apply, explore
from group_rules import Judge
from groups import FAIL, FENCED, RUN, beat, closed, led, over, ready
from smallworld import Fate
from worlds import arrived, but, edited, heard, holding, node, register, running

from elastic.core.group import Group, Phase, Step, transition
from elastic.core.group import Settings as Settings_
from elastic.core.group.state import Beaten, Event, Join, Signalled, Start
from elastic.core.rendezvous import (
    Action,
    Arrive,
    Complete,
    Done,
    Edit,
    End,
    Evict,
    Finish,
    RendezvousState,
    Restore,
    Seat,
    Settings,
    Settled,
    Status,
    Sync,
    apply,
    done,
    join,
    leave,
    restored,
    saw,
    watch,
)
from elastic.core.rendezvous.apply import settle
from elastic.core.rendezvous.context import Context, Handler, dead
from elastic.core.rendezvous.sightings import Sightings, observe
from elastic.core.world import Ending, Node, Verdict, Why

EXPECTED, IN, WAITING, DONE, GONE, *_ = Status


Change = Callable[[RendezvousState], RendezvousState]


def after(state: RendezvousState, made: RendezvousState, change: Change) -> RendezvousState:
    """Return what was made of the state with a mutation, or the state if nothing was made."""
    return made if made is state else change(made)


def completed(state: RendezvousState) -> RendezvousState:
    return evolve(state, complete=True, completed_in=state.life, base=())


def seated(state: RendezvousState, was: Status, now: Status) -> RendezvousState:
    seats = {who: evolve(seat, status=now) if seat.status is was else seat for who, seat in state.seats.items()}
    return evolve(state, seats=seats)


def at_ends(change: Change) -> Apply:
    def mutant(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
        made = apply(state, edit, me)
        return change(made) if made.round > state.round else made

    return mutant


def waiters_take_expected_seats(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    def promoted(made: RendezvousState) -> RendezvousState:
        return made if made.complete or made.closed else seated(made, WAITING, IN)

    return after(state, apply(state, edit, me), promoted)


def no_promotion(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    made = apply(state, edit, me)
    waited = {who for who, seat in state.seats.items() if seat.status is WAITING}
    lucky = [who for who in made.participants if who in waited]
    if made is state or made.complete or made.closed or not lucky:
        return made
    return evolve(made, seats={**made.seats, **{who: state.seats[who] for who in lucky}})


def budget_not_judged(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    made = apply(state, edit, me)
    judged = made.closed and made.closed.why is Why.FAILED
    return completed(evolve(made, closed=None)) if judged and made is not state else made


def failed_at_the_end_itself(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    made = apply(state, edit, me)
    over = made.round > state.round and made.over_budget
    return evolve(made, closed=Verdict(Ending.FAILED, state.round, me, Why.FAILED)) if over else made


def no_supersede(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    if not isinstance(edit, Arrive) or me in state.seats or state.closed:
        return apply(state, edit, me)
    seats = {**state.seats, me: Seat(WAITING, state.next_order, edit.profile)}
    arrived = evolve(state, seats=seats, next_order=state.next_order + 1, version=state.version + 1)
    return settle(arrived, me)


def end_of_whichever_round_by_whomever(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    if not isinstance(edit, End) or not state.complete:
        return apply(state, edit, me)
    made = apply(state, evolve(edit, round=state.round), state.members[0])
    return evolve(made, ended=evolve(made.ended, by=me)) if made.ended and made is not state else made


def every_failing_agent_counts(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    late = isinstance(edit, End) and not state.complete and not state.closed and me in state.expected
    return evolve(state, failures=state.failures + 1, version=state.version + 1) if late else apply(state, edit, me)


def last_call_completes_over_expected(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    over = isinstance(edit, Complete) and state.expected and state.quorate and not state.complete and not state.closed
    return completed(evolve(state, version=state.version + 1)) if over else apply(state, edit, me)


def a_done_members_death_ends_the_round(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    made = apply(state, edit, me)
    died = edit.dead & set(state.those(DONE)) if isinstance(edit, Evict) else frozenset()
    if not died or made.round > state.round or not state.complete:
        return made
    ended = apply(state, End(state.round, Why.FENCED), state.members[0])
    return evolve(ended, ended=evolve(ended.ended, why=Why.LOST)) if ended.ended else made


def evict_shrinks_a_complete_round(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    if not isinstance(edit, Evict) or not state.complete or state.closed or not edit.dead & set(state.members):
        return apply(state, edit, me)
    seats = {who: seat for who, seat in state.seats.items() if who not in edit.dead}
    return evolve(state, seats=seats, version=state.version + 1)


def first_done_closes(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    made = apply(state, edit, me)
    first = isinstance(edit, Done) and made is not state
    return evolve(made, closed=Verdict(Ending.SUCCEEDED, made.round, me, Why.DONE)) if first else made


def last_call_restarts_at_each_arrival(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    def restarted(made: RendezvousState) -> RendezvousState:
        arrived = isinstance(edit, Arrive) and made.quorum_at is not None
        return evolve(made, quorum_at=made.version) if arrived else made

    return after(state, apply(state, edit, me), restarted)


def version_stands_still(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    return after(state, apply(state, edit, me), lambda made: evolve(made, version=state.version, stale_before=0))


def everybody_is_refunded(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    """The culprit's own death is refunded too, and so is the arrival of its next incarnation."""
    made = apply(state, edit, me)
    charged = state.ended is not None and state.ended.why is Why.FAILED and made.round == state.round
    lost = set(state.expected) - set(made.seats)
    if not charged or not lost or made.failures < state.failures or made.closed or not made.ended:
        return made
    return evolve(made, failures=made.failures - 1, ended=evolve(made.ended, why=Why.LOST))


def life_goes_on_after_the_verdict(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    reopened = evolve(state, closed=None)
    made = apply(reopened, edit, me)
    return state if made is reopened else evolve(made, closed=state.closed or made.closed)


MUTANTS: list[tuple[Apply, str]] = [
    (waiters_take_expected_seats, "V3"),
    (no_promotion, "V4"),
    (budget_not_judged, "B1"),
    (failed_at_the_end_itself, "B3"),
    (no_supersede, "S8"),
    (end_of_whichever_round_by_whomever, "V12"),
    (every_failing_agent_counts, "B2"),
    (last_call_completes_over_expected, "V1"),
    (a_done_members_death_ends_the_round, "V8"),
    (evict_shrinks_a_complete_round, "S1"),
    (first_done_closes, "S14"),
    (last_call_restarts_at_each_arrival, "V11"),
    (version_stands_still, "S7"),
    (everybody_is_refunded, "B2"),
    (life_goes_on_after_the_verdict, "S10"),
]
AT_ENDS: dict[str, tuple[Change, str]] = {
    "end forgets the target": (lambda made: evolve(made, target=0), "V7"),
    "members stay in at an end": (
        lambda made: evolve(seated(made, EXPECTED, IN), quorum_at=made.version),
        "V10",
    ),
    "end keeps the quorum": (lambda made: evolve(made, quorum_at=1), "V5"),
    "end leaves no record": (lambda made: evolve(made, ended=None), "S6"),
    "end passes over a round": (lambda made: evolve(made, round=made.round + 1), "S6"),
}


def catches(number: str, mutant: Apply) -> bool:
    """Return True if this property is broken in small worlds: with a spare, full, with room, with a second incarnation."""
    worlds = (("1:1", "a b"), ("1:2", "a b"), ("1:3", "a b"), ("1:2", "a a#2"))
    found = (explore(register(size, 0), [node(name) for name in names.split()], mutant, True) for size, names in worlds)
    return any(number in each.violations for each in found)


@pytest.mark.parametrize(("mutant", "number"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_a_mutated_edit_is_caught_by_its_number(mutant: Apply, number: str) -> None:
    assert catches(number, mutant)


@pytest.mark.parametrize(("change", "number"), AT_ENDS.values(), ids=AT_ENDS)
def test_a_mutated_end_is_caught_by_its_number(change: Change, number: str) -> None:
    assert catches(number, at_ends(change))


# --- what a node does


def agents(size: str = "2", **spans: float) -> Agents:
    return Agents(Settings(limits=register(size, restarts=3).limits, **spans))  # type: ignore[arg-type]


def both_running(**spans: float) -> Agents:
    made = agents("2", **spans)
    made.joins("a")
    made.joins("b")
    return made


def begins(made: Agents, who: str, handler: Handler) -> None:
    made.world.begins(who, handler)
    made.world.settle()


def test_join_that_finishes_with_the_round_just_run_is_caught_by_S17() -> None:
    def mutant(ctx: Context, deadline: float) -> Action:
        return join(evolve(ctx, held=but(ctx.held, mine=None, ran=frozenset())), deadline)

    with pytest.raises(Broken, match="S17"):
        begins(both_running(), "a", mutant)


def test_join_that_starts_while_others_are_expected_is_caught_by_S9() -> None:
    # b's agent never notices that the round is over: its workers run on, and it is not evicted.
    made = both_running()
    b = made.world.actor("b")
    b.remembers(b.held)
    made.fails("a")
    (ran,) = made.judge.worlds.values()
    with pytest.raises(Broken, match="S9"):
        made._joined("a", evolve(ran, id=ran.id._replace(round=1)))


def test_upscale_over_done_is_caught_by_V9() -> None:
    def mutant(ctx: Context, deadline: float) -> Action:
        waits = ctx.state is not None and ctx.state.complete and ctx.state.census[WAITING]
        return End(ctx.state.round, Why.UPSCALE) if waits and ctx.state else watch(ctx, deadline)

    made = agents("2:3", last_call_timeout=0.0)
    made.joins("a")
    made.joins("b")
    made.succeeds("b")
    made.joins("c")
    with pytest.raises(Broken, match="V9"):
        begins(made, "a", mutant)


def test_leave_without_the_bump_is_caught_by_S15() -> None:
    def mutant(ctx: Context, deadline: float) -> Action:
        return Finish(Settled()) if ctx.seat is None else leave(ctx, deadline)

    made = agents("3")
    made.joins("a")
    made.world.actor("b").fate = Fate.CUT_OFF
    made.joins("b")
    made.world.begins("b", mutant)
    made.world.actor("b").silent = False
    made.world.settle()
    made.has_left("b")
    with pytest.raises(Broken, match="S15"):
        made.world.lands("b")


def test_done_that_is_not_bound_to_its_round_is_caught_by_S14b() -> None:
    def mutant(ctx: Context, deadline: float) -> Action:
        return Done(ctx.state.round) if ctx.state and ctx.status is IN else done(ctx, deadline)

    made = both_running()
    made.fails("a")
    made.joins("a")
    made.joins("b")
    with pytest.raises(Broken, match="S14b"):
        begins(made, "b", mutant)


def test_a_barrier_that_does_not_watch_is_caught_by_L2() -> None:
    def asleep(ctx: Context, deadline: float) -> Action:
        return Sync(math.inf)

    made = both_running(overdue_timeout=9_999)
    made.succeeds("a")
    made.world.begins("a", asleep)
    made.fails("b")
    with pytest.raises(Broken, match="L2"):
        made.converges()


# --- what a node remembers: the same reads, by the rule and by its mutant


def test_sightings_that_do_not_start_afresh_are_caught_by_L3() -> None:
    """The coordinator was paused for a minute. b sent heartbeats all the time, but no new one has been read yet."""
    b, held = node("b"), holding("a", running(), ran=0)
    reads = [(0.0, 0.1), (60.0, 60.1)]
    mutant = Sightings()
    for sent_at, answered_at in reads:
        held = heard(held, {b: 1}, sent_at, answered_at)
        mutant = observe(mutant, {b: 1}, sent_at, answered_at, afresh_after=math.inf, ttl=5.0)
    assert dead(held, 60.1) == frozenset()
    assert dead(but(held, sightings=mutant), 60.1) == {b}


def test_a_seat_change_that_is_no_sign_of_life_is_caught_by_L3() -> None:
    """b's heartbeats are late, but b itself has just written."""
    b, state = node("b"), edited(running(restarts=1), "a", End(0, Why.FAILED))
    held = holding("a", state, ran=0)
    for second in range(5):
        held = heard(held, {b: 1}, float(second), float(second))
    back = saw(held, arrived(state, "b"), 4.5, 4.5)
    mutant = but(back, sightings=held.view.sightings)
    assert dead(heard(back, {b: 1}, 5.0, 5.0), 5.0) == frozenset()
    assert dead(heard(mutant, {b: 1}, 5.0, 5.0), 5.0) == {b}


def test_a_lease_that_ran_out_while_its_node_wrote_is_no_death_or_its_rounds_have_no_end_L4() -> None:
    """b is cut off from its lease but not from the register. It would be evicted at once from each round that it returns to.

    One random run in a thousand shows this, as more rounds than causes for them.
    """
    b, state = node("b"), edited(running(restarts=1), "a", End(0, Why.FAILED))
    held = heard(holding("a", state, ran=0), {b: 1}, 0.0, 0.0)
    back = saw(held, arrived(state, "b"), 0.5, 0.5)
    mutant = but(back, sightings=held.view.sightings)
    assert dead(heard(back, {b: None}, 1.0, 1.0), 1.0) == frozenset()
    assert dead(heard(mutant, {b: None}, 1.0, 1.0), 1.0) == {b}


# --- the worker group


def judged(mutant: Callable[[Group, Event], Step], *events: Event) -> None:
    """The group of node a, fenced, under a mutated transition."""
    group, judge = led(settings=FENCED), Judge()
    for event in events:
        after, commands = mutant(group, event)
        judge.step(group, event, after, commands, event.at)
        group = after


def starts_on_an_old_heartbeat(group: Group, event: Event) -> Step:
    after, commands = transition(evolve(group, settings=Settings_(ttl=1e9)), event)
    return evolve(after, settings=group.settings), commands


def joins_before_all_are_reaped(group: Group, event: Event) -> Step:
    after, commands = transition(group, event)
    return (evolve(after, phase=Phase.JOINING), (Join(),)) if after.phase is Phase.STOPPING else (after, commands)


def stops_before_it_tells(group: Group, event: Event) -> Step:
    after, commands = transition(group, event)
    return after, tuple(reversed(commands))


def starts_at_each_heartbeat(group: Group, event: Event) -> Step:
    after, commands = transition(group, event)
    again = isinstance(event, Beaten) and group.phase is Phase.RUNNING and group.world
    return (after, (Start(group.world),)) if again and group.world else (after, commands)


def a_second_signal_waits(group: Group, event: Event) -> Step:
    return (group, ()) if group.phase is Phase.LEAVING else transition(group, event)


def ended_is_not_the_end(group: Group, event: Event) -> Step:
    after, commands = transition(group, event)
    return (evolve(after, verdict=None), commands) if group.phase is Phase.ENDED else (after, commands)


GROUP_MUTANTS: list[tuple[Callable[[Group, Event], Step], str, tuple[Event, ...]]] = [
    (starts_on_an_old_heartbeat, "F1", (ready(), beat(0.0, 2.0))),
    (joins_before_all_are_reaped, "G1|G2", (*RUN, over())),
    (stops_before_it_tells, "G3", FAIL),
    (starts_at_each_heartbeat, "S17", (*RUN, beat(1.0))),
    (a_second_signal_waits, "G6", (*RUN, Signalled(15, 1.0), Signalled(15, 2.0))),
    (ended_is_not_the_end, "G5", (closed(), over())),
]


@pytest.mark.parametrize(
    ("mutant", "number", "events"), GROUP_MUTANTS, ids=[made.__name__ for made, *_ in GROUP_MUTANTS]
)
def test_a_mutated_group_is_caught(
    mutant: Callable[[Group, Event], Step], number: str, events: tuple[Event, ...]
) -> None:
    judged(transition, *events)
    with pytest.raises(Broken, match=number):
        judged(mutant, *events)


# --- a store that comes back empty


def test_who_gives_way_has_nothing_left_to_restore() -> None:
    held = saw(holding("a", running("a b", size="2")), None, 1, 1)
    assert held.found is not None and held.view.state is not None
    by_another = restored(Restore(held.view.state, "of another"), None)
    given_way = saw(held, by_another, 2, 2)
    assert (given_way.view.state, given_way.found) == (by_another, None)
