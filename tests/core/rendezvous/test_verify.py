"""Each broken state and each broken step is refused with its number (docs/protocol.md#properties)."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve
from worlds import LIFE, arrived, edited, node, nodes, profile, register, reseated, running

from elastic.core.rendezvous import (
    Arrive,
    Close,
    Complete,
    Done,
    End,
    Ended,
    Evict,
    Leave,
    Limits,
    RendezvousState,
    Restore,
    Seat,
    Status,
    Violation,
    restored,
    verify,
    verify_step,
)
from elastic.core.rendezvous.codec import decode, encode
from elastic.core.rendezvous.verify import LEGAL
from elastic.core.world import Ending, Life, Node, Verdict, Why

EXPECTED, IN, WAITING, DONE, GONE, *_ = Status


def refused(state: RendezvousState) -> str:
    with pytest.raises(Violation) as caught:
        verify(state)
    return caught.value.number


def step_refused(before: RendezvousState, after: RendezvousState) -> str:
    """Return the number of the refused step between two legal states."""
    verify(before)
    with pytest.raises(Violation) as caught:
        verify_step(before, after)
    return caught.value.number


def closed(ending: Ending, why: Why) -> Verdict:
    return Verdict(ending, 0, node("a"), why)


def with_order(state: RendezvousState, **orders: int) -> RendezvousState:
    changed = {node(who): evolve(state.seats[node(who)], order=order) for who, order in orders.items()}
    return evolve(state, seats={**state.seats, **changed})


def returning(names: str = "a b c", size: str = "1:3", restarts: int = 1, back: str = "") -> RendezvousState:
    return arrived(edited(running(names, size, restarts), "a", End(0, Why.FAILED)), back)


def test_a_violation_carries_its_number_and_says_what_is_wrong() -> None:
    with pytest.raises(Violation, match="S5: order 1 is not below the next one, 1") as caught:
        verify(evolve(running(), next_order=1))
    assert caught.value.number == "S5"


# --- one state

ONE_STATE: Mapping[str, tuple[str, RendezvousState]] = {
    "two seats of one order": ("S5", with_order(running(), b=0)),
    "two seats of one order before another": ("S5", with_order(running("a b c"), b=0)),
    "seats that are not in their order": ("S5", with_order(running(), a=1, b=0)),
    "an order that will be given again": ("S5", evolve(running(), next_order=1)),
    "an order far beyond the next one": ("S5", evolve(running(), next_order=0)),
    "two incarnations of one slot": (
        "S8",
        evolve(running(), seats={node("a"): Seat(IN, 0, profile("a")), node("a#2"): Seat(IN, 1, profile("a"))}),
    ),
    "proposals void beyond this version": ("S7", evolve(running(), stale_before=3)),
    "a world below the minimum": ("S4", evolve(running("a", size="1"), limits=Limits(2, 2))),
    "a world above the maximum": ("S4", evolve(running(), limits=Limits(1, 1))),
    "a world of broken units": ("S22", evolve(running("a b c"), limits=Limits(2, 4, node_unit=2))),
    "complete while somebody is expected": ("V1", reseated(running("a b", size="1:2"), b=EXPECTED)),
    "complete over budget": ("B1", evolve(running(), failures=1)),
    "done in an open round": ("V2", reseated(arrived(register("2:3"), "a b"), a=DONE)),
    "gone in an open round": ("V2", reseated(arrived(register("2:3"), "a b"), a=GONE)),
    "more seats than the maximum": ("V3", evolve(returning(back="a"), limits=Limits(1, 2))),
    "two seats for one": (
        "V3",
        evolve(reseated(returning("a b", "1:2", back="a"), b=EXPECTED), limits=Limits(1, 1, 1)),
    ),
    "more seats than the maximum, although closed": (
        "V3",
        evolve(returning(back="a"), limits=Limits(1, 2), closed=closed(Ending.CANCELLED, Why.ASKED)),
    ),
    "a waiter beside a free seat": ("V4", reseated(arrived(register("1:3"), "a b"), b=WAITING)),
    "a waiter beside the last free seat": (
        "V4",
        reseated(evolve(arrived(register("1:3"), "a b"), limits=Limits(1, 2)), b=WAITING),
    ),
    "the minimum without a quorum": ("V5", evolve(arrived(register("1:3"), "a b"), quorum_at=None)),
    "a quorum without the minimum": ("V5", evolve(arrived(register("3:4"), "a b"), quorum_at=2)),
    "open at the maximum with nobody expected": ("V6", evolve(running(), complete=False, completed_in=None)),
    "a generation later than its round": ("V21", evolve(running(), generation=1)),
    "more states that it was made from than count": (
        "R2",
        evolve(register("1:2"), base=tuple((1, version) for version in range(17))),
    ),
    "complete, and nobody knows since when": ("R3", evolve(running(), completed_in=None)),
    "open, but its world was completed": ("R3", evolve(arrived(register("3"), "a"), completed_in=LIFE)),
    "completed in this life, which is provisional all the same": ("R3", evolve(running(), base=((1, 1),))),
    "failed within the budget": ("B3", evolve(running(), closed=closed(Ending.FAILED, Why.FAILED))),
    "failed before the survivors are back": (
        "B3",
        evolve(returning(restarts=0, back="a"), closed=closed(Ending.FAILED, Why.FAILED)),
    ),
    "succeeded while a member's workers run": (
        "S14",
        evolve(reseated(running(), a=DONE), closed=closed(Ending.SUCCEEDED, Why.DONE)),
    ),
    "cancelled in an operator's name by a node": (
        "V14",
        evolve(running(), closed=closed(Ending.CANCELLED, Why.OPERATOR)),
    ),
    "failed in an operator's name": (
        "V14",
        evolve(running(), closed=Verdict(Ending.LIMIT, 0, node("op"), Why.OPERATOR)),
    ),
    "succeeded in an open round": ("S14", evolve(register("1:2"), closed=closed(Ending.SUCCEEDED, Why.DONE))),
}


@pytest.mark.parametrize(
    ("number", "state"), ONE_STATE.values(), ids=[f"{of[0]} {name}" for name, of in ONE_STATE.items()]
)
def test_a_broken_state_is_refused_with_its_number(number: str, state: RendezvousState) -> None:
    assert refused(state) == number


def test_S8_a_gone_seat_of_the_same_slot_is_no_second_incarnation() -> None:
    verify(edited(edited(running(), "a", Done(0)), "a#2", Arrive(profile("a"))))


@pytest.mark.parametrize("ending", [Ending.CANCELLED, Ending.LIMIT])
def test_V4_to_V6_hold_no_longer_once_closed(ending: Ending) -> None:
    verdict = closed(ending, Why.ASKED)
    waiting = evolve(reseated(arrived(register("1:3"), "a b"), b=WAITING), quorum_at=None)
    full = evolve(running(), complete=False, completed_in=None)
    for broken in (waiting, full):
        assert refused(broken) in ("V4", "V5", "V6")
        verify(evolve(broken, closed=verdict))


def test_R2_as_many_states_as_count_may_have_been_its_origin() -> None:
    verify(evolve(register("1:2"), base=tuple((1, version) for version in range(16))))


def test_R3_a_restored_world_stands_although_its_life_is_provisional() -> None:
    verify(evolve(running(), life=Life("later", 2), base=((1, 2),)))


def test_B3_a_program_that_cannot_start_closes_as_failed_within_the_budget() -> None:
    verify(edited(running(restarts=3), "a", Close(closed(Ending.FAILED, Why.CANNOT_START))))


# --- one step

BEFORE = running("a b c", size="1:3", restarts=1)
ENDED = edited(BEFORE, "a", End(0, Why.FAILED))
LOST = edited(BEFORE, "a", Evict(nodes("b")))
OPEN = arrived(register("1:3"), "a b")
MANY = evolve(ENDED, failures=4, limits=Limits(1, 3, 9))
OVER_BUDGET = returning(restarts=0, back="a")


def after(state: RendezvousState, **changes: Any) -> RendezvousState:
    """Return the state one version later, with these changes."""
    return evolve(state, version=state.version + 1, **changes)


def without(state: RendezvousState, names: str) -> Mapping[Node, Seat]:
    return {who: seat for who, seat in state.seats.items() if who not in nodes(names)}


CANCELLED = edited(BEFORE, "a", Close(closed(Ending.CANCELLED, Why.ASKED)))

STEPS: Mapping[str, tuple[str, RendezvousState, RendezvousState]] = {
    "a write that leaves the version": ("S7", BEFORE, reseated(BEFORE, a=DONE)),
    "a version that is passed over": ("S7", BEFORE, evolve(ENDED, version=ENDED.version + 1)),
    "another life": ("S7", OPEN, after(OPEN, life=Life("other"))),
    "other limits": ("S7", OPEN, after(OPEN, limits=Limits(1, 4))),
    "another job": ("S7", OPEN, after(OPEN, job="other")),
    "a base that becomes another one": ("R2", OPEN, after(OPEN, base=((1, 3),))),
    "a base that goes although no world was completed": ("R2", OPEN, after(OPEN, base=())),
    "a base that stays although a world was completed": (
        "R2",
        evolve(OPEN, life=Life("later", 2)),
        after(OPEN, life=Life("later", 2), complete=True, completed_in=LIFE),
    ),
    "a world that says it was completed in another life": (
        "R3",
        OPEN,
        after(OPEN, complete=True, completed_in=Life("other"), base=()),
    ),
    "a world that says it was completed in a third life": (
        "R3",
        OPEN,
        after(OPEN, complete=True, completed_in=Life("a third"), base=()),
    ),
    "a write after the verdict": ("S10", CANCELLED, after(CANCELLED)),
    "a round that goes back": ("S6", returning(), after(returning(), round=0)),
    "a round that is passed over": ("S6", BEFORE, evolve(ENDED, round=2)),
    "a next round before this one was complete": ("S6", OPEN, after(OPEN, round=1)),
    "a next round, on record, before this one was complete": (
        "S6",
        OPEN,
        after(OPEN, round=1, ended=Ended(0, Why.FENCED, node("a")), quorum_at=None, seats={}),
    ),
    "an end that is not on record": ("S6", BEFORE, evolve(ENDED, ended=None)),
    "an end on record of an earlier round": (
        "S6",
        evolve(BEFORE, round=5),
        evolve(ENDED, round=6, ended=Ended(2, Why.FAILED, node("a"))),
    ),
    "an end on record of another round": ("S6", BEFORE, evolve(ENDED, ended=Ended(7, Why.FAILED, node("a")))),
    "an order that is given again": ("S5", OPEN, after(OPEN, next_order=1, seats=without(OPEN, "b"))),
    "a bound on proposals that goes back": (
        "S5",
        edited(OPEN, "d", Leave()),
        after(edited(OPEN, "d", Leave()), stale_before=0),
    ),
    "a complete world that shrinks": ("S1", BEFORE, after(BEFORE, seats=without(BEFORE, "c"))),
    "a complete round that opens again": ("S1", BEFORE, after(BEFORE, complete=False, seats=without(BEFORE, "c"))),
    "a complete world of another identity": ("S1", BEFORE, after(BEFORE, completed_in=Life("other"))),
    "a complete world of a third identity": ("S1", BEFORE, after(BEFORE, completed_in=Life("a third"))),
    "a member with another endpoint": (
        "S1",
        BEFORE,
        after(BEFORE, seats={**BEFORE.seats, node("a"): Seat(IN, 0, profile("a", port=1))}),
    ),
    "a quorum that moves while it stands": ("V11", OPEN, after(OPEN, quorum_at=3)),
    "an end put on record in a first round": ("B2", OPEN, after(OPEN, ended=Ended(0, Why.FAILED, node("a")))),
    "a failure counted within a round": ("B2", ENDED, after(ENDED, failures=2)),
    "a failure counted in a round that nothing came before": ("B2", BEFORE, after(BEFORE, failures=1)),
    "a failure forgotten within a round": ("B2", ENDED, after(ENDED, failures=0)),
    "a failure forgiven although nobody is lost": (
        "B2",
        ENDED,
        after(ENDED, failures=0, ended=Ended(0, Why.LOST, node("a"))),
    ),
    "a failure forgiven for the culprit's own death": (
        "B2",
        ENDED,
        after(ENDED, failures=0, ended=Ended(0, Why.LOST, node("a")), seats=without(ENDED, "a"), target=2),
    ),
    "a failure forgiven by the arrival of a next incarnation": (
        "B2",
        ENDED,
        after(
            ENDED,
            failures=0,
            ended=Ended(0, Why.LOST, node("a")),
            seats={**without(ENDED, "b"), node("b#2"): Seat(IN, 3, profile("b"))},
            next_order=4,
        ),
    ),
    "two failures forgiven for one loss": (
        "B2",
        evolve(ENDED, failures=2, limits=Limits(1, 3, 2)),
        after(
            evolve(ENDED, failures=2, limits=Limits(1, 3, 2)),
            failures=0,
            ended=Ended(0, Why.LOST, node("a")),
            seats=without(ENDED, "b"),
        ),
    ),
    "half of all failures forgiven": (
        "B2",
        MANY,
        after(MANY, failures=2, ended=Ended(0, Why.LOST, node("a")), seats=without(MANY, "b"), target=2),
    ),
    "a loss that is found in time, and charged": (
        "B2",
        MANY,
        after(MANY, ended=Ended(0, Why.LOST, node("a")), seats=without(MANY, "b"), target=2),
    ),
    "a refund that changes who ended the round": (
        "B2",
        ENDED,
        after(ENDED, failures=0, ended=Ended(0, Why.LOST, node("c")), seats=without(ENDED, "b")),
    ),
    "a refund that changes which round had ended": (
        "B2",
        ENDED,
        after(ENDED, failures=0, ended=Ended(7, Why.LOST, node("a")), seats=without(ENDED, "b")),
    ),
    "a refund in a complete round": (
        "B2",
        arrived(ENDED, "a b c"),
        after(arrived(ENDED, "a b c"), failures=0, ended=Ended(0, Why.LOST, node("a"))),
    ),
    "an end by failure that costs nothing": ("B2", BEFORE, evolve(ENDED, failures=0)),
    "an end by loss that costs a restart": ("B2", BEFORE, evolve(LOST, failures=1)),
    "a member that stays in at an end": ("V10", BEFORE, reseated(ENDED, b=IN)),
    "a member that waits at an end": ("V10", BEFORE, reseated(ENDED, b=WAITING)),
    "an end that forgets the target": ("V7", BEFORE, evolve(ENDED, target=0)),
    "an end that waits for one that cannot come back": ("V7", BEFORE, evolve(LOST, target=3)),
    "lost, but nobody is gone": (
        "V8",
        BEFORE,
        evolve(ENDED, failures=0, generation=0, ended=Ended(0, Why.LOST, node("a"))),
    ),
    "lost, but the one that is gone was done": (
        "V8",
        edited(BEFORE, "b", Done(0)),
        evolve(LOST, version=LOST.version + 1, stale_before=LOST.version + 1),
    ),
    "an upscale over one that is done": (
        "V9",
        edited(BEFORE, "b", Done(0)),
        evolve(ENDED, version=ENDED.version + 1, failures=0, generation=0, ended=Ended(0, Why.UPSCALE, node("a"))),
    ),
    "a failure of one that is no member": ("V12", BEFORE, evolve(ENDED, ended=Ended(0, Why.FAILED, node("d")))),
    "an upscale by one that is no member": (
        "V12",
        BEFORE,
        evolve(ENDED, failures=0, generation=0, ended=Ended(0, Why.UPSCALE, node("d"))),
    ),
    "a failure that begins no generation": ("V21", BEFORE, evolve(ENDED, generation=0)),
    "a generation that another end begins": ("V21", BEFORE, evolve(LOST, generation=1)),
    "a generation that goes back within a round": ("V21", ENDED, after(ENDED, generation=0)),
    "a generation that begins within a round": ("V21", LOST, after(LOST, generation=1)),
    "a fencing by one that is no member": (
        "V12",
        BEFORE,
        evolve(ENDED, failures=0, generation=0, ended=Ended(0, Why.FENCED, node("d"))),
    ),
}


@pytest.mark.parametrize(
    ("number", "before", "now"), STEPS.values(), ids=[f"{of[0]} {name}" for name, of in STEPS.items()]
)
def test_a_broken_step_is_refused_with_its_number(number: str, before: RendezvousState, now: RendezvousState) -> None:
    assert step_refused(before, now) == number


def test_the_life_of_the_first_write_is_the_one_that_stays() -> None:
    first = arrived(register("1:2"), "a")
    assert first.life == LIFE
    assert step_refused(first, after(first, life=Life("x"))) == "S7"


def test_B2_a_refund_is_no_violation() -> None:
    refunded = edited(ENDED, "a", Evict(nodes("b")))
    assert refunded.failures == 0


def test_B2_a_next_incarnation_refunds_in_a_restored_life_only() -> None:
    before = restored(Restore(ENDED, "again"), None)
    refunded = edited(before, "b#2", Arrive(profile("b")))
    assert refunded.failures == 0
    pinned = [evolve(state, base=(), life=ENDED.life) for state in (before, refunded)]
    assert step_refused(*pinned) == "B2"


def test_B2_one_failure_of_many_is_refunded() -> None:
    assert edited(MANY, "a", Evict(nodes("b"))).failures == 3


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (evolve(running("a b c"), next_order=1), "order 2 is not below the next one, 1"),
        (reseated(running("a b", size="1:2"), b=EXPECTED), "complete while b#1 are still expected"),
        (evolve(BEFORE, failures=2), "complete after 2 failures with 1 restarts allowed"),
        (evolve(BEFORE, completed_in=None), "complete, but its world was completed in None"),
        (evolve(OPEN, completed_in=LIFE), "open, but its world was completed in Life"),
        (evolve(BEFORE, base=((1, 1),)), "this life still counts for what it was made from"),
        (evolve(BEFORE, completed_in=Life("other")), "this life no longer counts for what it was made from"),
    ],
)
def test_a_violation_names_the_broken_fact(state: RendezvousState, says: str) -> None:
    with pytest.raises(Violation, match=says):
        verify(state)


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (BEFORE, evolve(ENDED, round=2), r"round 2 after round 0 \(complete\)"),
        (OPEN, after(OPEN, round=1), r"round 1 after round 0 \(open\)"),
    ],
)
def test_a_violation_names_the_value_before(before: RendezvousState, now: RendezvousState, says: str) -> None:
    with pytest.raises(Violation, match=says):
        verify_step(before, now)


def test_V3_says_how_many_seats_there_are_for_how_many_nodes() -> None:
    state = evolve(arrived(returning("a b c", size="3", back="a b"), "d"), limits=Limits(2, 2, 1))
    with pytest.raises(Violation, match="3 seats for at most 2 nodes"):
        verify(state)


def test_V6_a_full_round_of_many_is_complete() -> None:
    many = arrived(register("300"), " ".join(f"n{index}" for index in range(300)))
    assert refused(evolve(many, complete=False, completed_in=None)) == "V6"


def anew(state: RendezvousState) -> RendezvousState:
    """Return the state as another node reads it: equal, but with no object in common."""
    return decode(encode(state))


def test_a_state_that_was_read_is_judged_as_if_it_was_written() -> None:
    # Far on, where numbers are no single objects either.
    far = evolve(BEFORE, version=1_000, round=1_000, failures=1_000, limits=Limits(1, 3, 9_999))
    ended = edited(far, "a", End(1_000, Why.FAILED))
    verify_step(anew(far), anew(ended))
    verify_step(anew(ended), anew(edited(ended, "b", Arrive(profile("b")))))
    refunded = edited(ended, "a", Evict(nodes("b")))
    assert refunded.failures == 1_000
    verify_step(anew(ended), anew(refunded))
    verify_step(anew(far), anew(edited(far, "a", Done(1_000))))
    verify_step(anew(OPEN), anew(edited(OPEN, "a", Complete(0))))
    again = evolve(far, life=Life("later", 2), base=((1, 3),))
    verify_step(anew(again), anew(edited(again, "a", Done(1_000))))
    signed = evolve(BEFORE, policy="a digest")
    verify_step(anew(signed), anew(edited(signed, "a", Done(0))))


def test_every_number_of_one_state_and_one_step_is_tested_here() -> None:
    tested = {number for number, *_ in (*ONE_STATE.values(), *STEPS.values())}
    states = {"S5", "S8", "S4", "S22", "V1", "B1", "V2", "V3", "V4", "V5", "V6", "V14", "R2", "R3"}
    steps = {"S7", "S6", "S10", "S1", "V7", "V8", "V9", "V10", "V11", "V12", "V21", "B2", "B3", "S14"}
    assert tested == states | steps


@pytest.mark.parametrize("gone", ["a", "a#2"])
def test_S8_who_had_left_and_is_back_beside_its_next_incarnation(gone: str) -> None:
    seats = {
        node(who): Seat(GONE if who == gone else IN, order, profile("a")) for order, who in enumerate(("a", "a#2"))
    }
    left = evolve(running("a", "1:2"), seats=seats, next_order=2)
    verify(left)
    back = evolve(left, seats={who: evolve(seat, status=IN) for who, seat in seats.items()})
    with pytest.raises(Violation, match="S8"):
        verify(back, left)


def test_a_state_that_was_not_judged_says_nothing_of_the_next() -> None:
    twins = evolve(running(), seats={node("a"): Seat(IN, 0, profile("a")), node("a#2"): Seat(IN, 1, profile("a"))})
    with pytest.raises(Violation, match="S8"):
        verify(evolve(twins, version=twins.version + 1), twins)


def test_a_step_that_was_judged_says_nothing_of_another_one_to_the_same_state() -> None:
    before = running("a b", "1:2")
    after = edited(before, "a", Done(0))
    verify_step(before, after)
    verify_step(before, after)
    assert step_refused(evolve(before, version=before.version + 1), after) == "S7"


def test_states_that_were_judged_do_not_keep_alive_all_that_came_before() -> None:
    first = evolve(running("a b", "1:2"))
    second = edited(first, "a", Done(0))
    third = edited(second, "b", Done(0))
    gone = weakref.ref(first)
    del first
    assert gone() is None
    assert LEGAL in second.memo
    assert LEGAL in third.memo
