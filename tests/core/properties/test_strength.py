"""A law is armed by what it speaks of, and by nothing else."""

from __future__ import annotations

import pytest
from attrs import evolve
from groups import FENCED, beat, exited, led, ready
from worlds import arrived, come, edited, holding, node, profile, register, running

from elastic.core.group import transition
from elastic.core.group.state import Event, Signalled
from elastic.core.properties.facts import Decided, Fact, GaveUp, Left, Started, Stepped, WaitsForever, Wrote
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import (
    Arrive,
    Close,
    Complete,
    Done,
    Edit,
    End,
    Evict,
    Leave,
    Limits,
    Overdue,
    Proceed,
    Proposal,
    RendezvousState,
    Restore,
    Together,
    Violation,
    join,
    leave,
    restored,
)
from elastic.core.world import Ending, Life, Verdict, Why, world_of

TWO = running("a b", size="2:3", restarts=1)
OPEN = edited(TWO, "a", End(0, Why.FAILED))
A, B = node("a"), node("b")


def armed(*facts: Fact, judge: Judge | None = None) -> set[str]:
    """Return the laws that these facts arm."""
    judge = judge or Judge()
    for fact in facts:
        try:
            judge.saw(fact)
        except Violation:
            continue  # it was armed before it was judged
    return {number for number, often in judge.strength.armed.items() if often}


def wrote(before: RendezvousState | None, who: str, edit: Edit) -> Wrote:
    return Wrote(node(who), before, edit, edited(before or register("1:4"), who, edit))


BEGUN = arrived(register("3"), "a")
ENTERS = Proposal(BEGUN.era, Arrive(profile("b")), enters=True)
BACK = Proposal(OPEN.era, Arrive(profile("a")))

CIRCLES = evolve(TWO, limits=Limits(2, 3, give_up_after=3))

ALWAYS = {"S7"}
ON_COMPLETE = {*ALWAYS, "S4", "V1", "R3"}
ON_OPEN = {*ALWAYS, "V2", "V3", "V5"}
ON_END = {*ON_OPEN, "S5", "S6", "V7", "V10", "V21", "B2"}
SUCCESS = edited(TWO, "a", Done(0))
CANCEL = Close(Verdict(Ending.CANCELLED, 0, A, Why.ASKED))


@pytest.mark.parametrize(
    ("fact", "laws"),
    [
        (wrote(None, "a", Arrive(holding("a", None).who.profile)), {*ON_OPEN, "R2", "R9"}),
        (wrote(arrived(register("2:3"), "a b"), "a", Complete(0)), {*ON_COMPLETE, "R2", "S5", "S20"}),
        (
            wrote(arrived(register("2"), "a"), "b", Arrive(holding("b", None).who.profile)),
            {*ON_COMPLETE, "R2", "S5", "V6", "S20"},
        ),
        (wrote(TWO, "a", Done(0)), {*ON_COMPLETE, "S1", "S5", "S14b"}),
        (wrote(SUCCESS, "b", Done(0)), {*ON_COMPLETE, "S1", "S5", "S10", "S14", "S14b"}),
        (wrote(TWO, "a", CANCEL), {*ON_COMPLETE, "S1", "S5", "S10"}),
        (wrote(TWO, "a", End(0, Why.FAILED)), {*ON_END, "B4", "V12"}),
        (wrote(TWO, "a", Leave()), {*(ON_END - {"S5"}), "V8"}),
        (wrote(TWO, "a", Evict(frozenset({B}))), {*(ON_END - {"S5"}), "V8", "B8"}),
        (wrote(arrived(TWO, "c"), "a", End(0, Why.UPSCALE)), {*ON_END, "V9", "V12"}),
        (wrote(OPEN, "a", Evict(frozenset({B}))), {*ON_OPEN, "V7", "B2", "B8"}),
        (wrote(arrived(running("a b"), "c"), "d", Arrive(holding("d", None).who.profile)), {*ON_COMPLETE, "S1", "S5"}),
        (wrote(TWO, "b#2", Arrive(holding("b#2", None).who.profile)), {*ON_END, "S8", "V8", "B8"}),
        (wrote(arrived(register("2:3"), "a b"), "c", Leave()), {*ON_OPEN, "R2", "S5", "V11"}),
        (wrote(BEGUN, "b", Together({B: ENTERS})), {*ON_OPEN, "R2", "S5", "S19"}),
        (wrote(OPEN, "a", Together({A: BACK})), {*ON_OPEN, "S5", "B4"}),
        (
            wrote(arrived(register("2:4:2"), "a b c"), "a", Complete(0)),
            {*ON_COMPLETE, "R2", "S5", "S20", "S22", "V22", "V23"},
        ),
        (
            wrote(come(register("2:4:2", segment="rack"), "abc"), "a", Complete(0)),
            {*ON_COMPLETE, "R2", "S5", "S20", "S22", "S23", "V22", "V23"},
        ),
        (wrote(CIRCLES, "a", Evict(frozenset({B}))), {*(ON_END - {"S5"}), "V8", "B6", "B7", "B8"}),
        (wrote(arrived(CIRCLES, "b#2 a"), "a", Proceed(1)), {*ON_COMPLETE, "S1", "S5", "B7"}),
    ],
    ids=lambda each: str(each.edit) if isinstance(each, Wrote) else "",
)
def test_a_write_arms_what_speaks_of_it(fact: Wrote, laws: set[str]) -> None:
    assert armed(fact) - {"S15"} == laws


def test_a_write_over_the_budget_and_one_of_a_policy_arm_what_speaks_of_them() -> None:
    over = edited(running("a b"), "a", End(0, Why.FAILED))
    assert "B1" in armed(wrote(over, "a", Arrive(holding("a", None).who.profile)))
    last = arrived(over, "a")
    assert {"B3", "S10"} <= armed(wrote(last, "b", Arrive(holding("b", None).who.profile)))
    signed = evolve(TWO, policy="abc")
    assert "V13" in armed(wrote(signed, "a", Done(0)))
    waits = edited(arrived(running("a b", restarts=1), "c"), "a", End(0, Why.FAILED))
    assert "V4" in armed(wrote(waits, "a", Arrive(holding("a", None).who.profile)))


def test_a_restore_arms_what_speaks_of_it() -> None:
    deed = Restore(TWO, "again")
    assert armed(Wrote(A, None, deed, restored(deed, None))) == {"S7", "R2", "R7", "R9"}
    other = evolve(arrived(register("2:3", 1), "c"), life=Life("other", 1), job="other", base=((1, 1),))
    forming = Wrote(A, other, deed, restored(deed, other), here=False)
    assert armed(forming) >= {"R4", "R6", "R8"}
    closed = Restore(edited(TWO, "a", CANCEL), "again")
    assert "R5" in armed(Wrote(A, TWO, closed, restored(closed, TWO)))
    assert "R5" in armed(Wrote(A, closed.held, deed, restored(deed, closed.held)))


def test_a_start_arms_what_speaks_of_it() -> None:
    first, second, later = Started(A, TWO.world), Started(B, TWO.world), arrived(OPEN, "a b").world
    assert armed(first) == {"S17", "S21", "S3"}
    assert armed(first, second) == {"S17", "S21", "S3", "S2"}
    judge = Judge(fenced=True)
    assert armed(first, Started(A, later), judge=judge) == {"S17", "S21", "S3", "S9"}
    assert judge.strength.excused.total() == 0


def test_S9_strong_is_armed_where_a_node_of_an_earlier_world_is_no_member() -> None:
    first, without_a = (
        Started(A, TWO.world),
        Started(B, world_of(TWO.world.id._replace(round=1), TWO.world.members[1:])),
    )
    assert "S9 strong" not in armed(first, without_a)
    assert "S9 strong" in armed(first, without_a, judge=Judge(fenced=True))


def test_S9_is_excused_by_an_agent_that_leaves() -> None:
    judge = Judge(leaving={A}, fenced=True)
    armed(Started(A, TWO.world), Started(B, arrived(OPEN, "a b").world), judge=judge)
    assert judge.strength.excused == {"S9": 1}


def group_stepped(events: tuple[Event, ...], last: Event) -> Stepped:
    before = led(*events, settings=FENCED)
    return Stepped(before, last, *transition(before, last), 1.0)


@pytest.mark.parametrize(
    ("events", "last", "laws"),
    [
        ((), ready(), {"G1"}),
        ((ready(),), beat(), {"G1", "G10", "F1", "F2"}),
        ((ready(), beat()), exited(0, 1), {"G1", "G3", "G4", "G6", "G13"}),
        ((ready(), beat(), exited(0)), exited(1), {"G1", "G4"}),
        ((), Signalled(15, 1.0), {"G1", "G6"}),
        ((Signalled(15, 1.0),), Signalled(15, 1.0), {"G1", "G5", "G6", "O1", "O3"}),
    ],
    ids=["ready", "starts", "fails", "succeeds", "told to go", "told again"],
)
def test_a_step_arms_what_speaks_of_it(events: tuple[Event, ...], last: Event, laws: set[str]) -> None:
    assert armed(group_stepped(events, last)) == laws


@pytest.mark.parametrize(
    ("edit", "laws"),
    [
        (Overdue(1), {"O4"}),
        (Complete(1), {"O4"}),
        (End(0, Why.UPSCALE), {"O4"}),
        (Proceed(0), {"O4"}),
        (Leave(), {"O5"}),
        (End(0, Why.FENCED), {"O6"}),
        (Close(Verdict(Ending.FAILED, 0, A, Why.CANNOT_START)), {"O6"}),
        (End(0, Why.FAILED), {"B5"}),
        (CANCEL, {"O6"}),
    ],
    ids=str,
)
def test_a_decision_arms_what_speaks_of_it(edit: Edit, laws: set[str]) -> None:
    assert armed(Decided(holding("a", TWO), edit, 1.0)) == laws


def test_a_refusal_arms_the_law_of_its_operation() -> None:
    held = holding("a", TWO)
    assert armed(GaveUp(held, join, Why.TIMEOUT, 1.0, 0.0)) == {"L7"}
    assert armed(GaveUp(held, join, Why.CLOSED, 1.0, 0.0)) == {"O2"}
    assert armed(GaveUp(held, leave, Why.UNCONFIRMED, 1.0, 0.0)) == {"O2"}


def test_what_a_store_forgets_excuses_those_who_owe() -> None:
    judge = Judge()
    owes = group_stepped((ready(), beat()), exited(0, 1))
    assert {"S15", "L6"} <= armed(owes, Left(B), WaitsForever(holding("a", TWO), leave), judge=judge)
    judge.forgets()
    assert judge.strength.excused == {"B5": 1}
    assert judge.strength.armed["S15"] == 1
