"""The state that counts when a store has lost its memory, and what is restored of it.

See docs/protocol.md#when-the-store-loses-its-memory.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from attrs import evolve
from worlds import LIFE, arrived, edited, node, profile, register, running, seats

from elastic.core.rendezvous import (
    Close,
    Done,
    Edit,
    End,
    Ended,
    Evict,
    Limits,
    Overdue,
    RendezvousState,
    Restore,
    Seat,
    Status,
    Violation,
    outranks,
    restored,
    verify,
    verify_restore,
    verify_step,
)
from elastic.core.rendezvous.state import BASE_MAX, NOTHING, Precedence
from elastic.core.world import Ending, Life, Node, Verdict, Why

EXPECTED, IN, WAITING, DONE, GONE, *_ = Status
VERDICT = Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)
OTHER_VERDICT = Verdict(Ending.LIMIT, 0, node("b"), Why.ASKED)

FORMING = arrived(register("3"), "a b")
"""Provisional: nothing was completed in this life yet."""
PINNED = running("a b", size="1:3", restarts=3)
LATER = edited(PINNED, "a", End(0, Why.FAILED))
CLOSED = edited(PINNED, "a", Close(VERDICT))


def of_job(job: str, state: RendezvousState, **changes: Any) -> RendezvousState:
    """Return the same state in the first life of another job."""
    completed_in = Life(job) if state.complete else None
    return evolve(state, **{"life": Life(job), "job": job, "completed_in": completed_in, **changes})


def back(held: RendezvousState, found: RendezvousState | None = None, nonce: str = "again") -> RendezvousState:
    """Return the restored state. Raises Violation."""
    deed = Restore(held, nonce)
    after = restored(deed, found)
    verify_restore(deed, found, after)
    return after


# --- which one counts

AGAIN = back(PINNED)
"""Provisional, made from a pinned one."""
AFRESH = of_job("new", FORMING)
REPLACED = of_job("new", PINNED)

RULES: dict[str, tuple[RendezvousState | None, RendezvousState | None, bool]] = {
    "1 nothing is held, nothing is there": (None, None, False),
    "1 nothing is held": (None, FORMING, False),
    "2 nothing is there": (FORMING, None, True),
    "2 nothing is there any longer, and the verdict is held": (CLOSED, None, True),
    "3 my job has its verdict": (LATER, evolve(CLOSED, version=1), False),
    "3 my job has its verdict, and another one is held": (evolve(CLOSED, closed=OTHER_VERDICT), CLOSED, False),
    "3 another job has its verdict, after a world": (LATER, edited(REPLACED, "a", Close(OTHER_VERDICT)), False),
    "3 another job has its verdict, before any world": (LATER, edited(AFRESH, "a", Close(OTHER_VERDICT)), True),
    "4 a verdict of my job is held": (evolve(CLOSED, version=3), evolve(LATER, version=9), True),
    "4 a verdict of my job is held, and what is there was made from more": (CLOSED, back(back(LATER)), True),
    "4 more is held": (LATER, PINNED, True),
    "4 the same is held": (PINNED, PINNED, False),
    "4 less is held": (PINNED, LATER, False),
    "4 what is there was made from what is held": (PINNED, AGAIN, False),
    "4 what is held was made from what is there": (AGAIN, PINNED, True),
    "4 what is there was made from less than is held": (LATER, AGAIN, True),
    "4 a world was completed in a later life": (LATER, evolve(AGAIN, base=(), completed_in=AGAIN.life), False),
    "5 another job has a world": (LATER, REPLACED, False),
    "5 another job has a world, and the verdict is held": (CLOSED, REPLACED, False),
    "5 another job is forming": (PINNED, AFRESH, True),
    "5 another job is forming, and mine was too, for as long": (FORMING, AFRESH, False),
    "5 another job is forming, and mine was too, for longer": (evolve(FORMING, version=3), AFRESH, True),
    "5 another job is forming, and mine was too, for less": (evolve(FORMING, version=1), AFRESH, False),
    "5 another job is forming, and the verdict of mine is held": (CLOSED, AFRESH, True),
    "5 another job was restored from more": (
        FORMING,
        of_job("new", AGAIN, life=Life("x", 2), completed_in=Life("new")),
        False,
    ),
}


@pytest.mark.parametrize(("held", "found", "counts"), RULES.values(), ids=RULES)
def test_what_is_held_counts_more_or_does_not(
    held: RendezvousState | None, found: RendezvousState | None, counts: bool
) -> None:
    for state in (held, found):
        if state:
            verify(state)
    assert outranks(held, found) is counts


def _states() -> list[RendezvousState]:
    bases: tuple[Precedence, ...] = (NOTHING, (), ((1, 1),), ((1, 2),), ((1, 1), (2, 2)))
    every = product(("job", "other"), (1, 2, 3), (1, 2), bases, (None, VERDICT, OTHER_VERDICT))
    first = arrived(register("3"), "a")
    return [
        evolve(
            first,
            job=job,
            life=Life(f"{job} {epoch}", epoch),
            version=version,
            quorum_at=None,
            base=base,
            closed=closed,
        )
        for job, epoch, version, base, closed in every
    ]


def test_of_two_states_at_most_one_counts_more_and_restored_it_counts_more_than_both() -> None:
    """This holds for every pair in a small world, so two survivors never replace each other's state for ever."""
    states, replaced = _states(), 0
    for held, found in product(states, states):
        assert held is not found or not outranks(held, found)
        if not outranks(held, found):
            continue
        replaced += 1
        assert not outranks(found, held)
        after = back(held, found)
        assert outranks(after, found)
        assert not outranks(found, after)
        assert not outranks(held, after)
    assert 0 < replaced < len(states) ** 2


# --- what is written back


def test_a_world_is_restored_as_it_was_in_another_life() -> None:
    after = back(PINNED)
    assert seats(after) == seats(PINNED)
    assert (after.life, after.version, after.stale_before) == (Life("again", 2), 4, 4)
    assert (after.world, after.world_id, after.job) == (PINNED.world, PINNED.world_id, PINNED.job)
    assert after.provisional
    assert after.precedence == ((1, 3), (2, 4))


def test_a_restored_open_round_takes_no_node_for_present() -> None:
    half = arrived(LATER, "b")
    assert seats(half) == {"a": "expected", "b": "in"}
    after = back(half)
    assert seats(after) == {"a": "expected", "b": "expected"}
    assert (after.quorum_at, after.target) == (None, 2)
    assert seats(arrived(after, "a b")) == {"a": "in", "b": "in"}


def test_a_first_round_that_was_forming_is_expected_back() -> None:
    after = back(FORMING)
    assert seats(after) == {"a": "expected", "b": "expected"}
    assert (after.round, after.target, after.precedence) == (0, 0, ((0, 0), (1, 2), (2, 3)))


@pytest.mark.parametrize("edit", [Overdue(0), Evict(frozenset({node("a"), node("b")}))], ids=["overdue", "dead"])
def test_a_first_round_waited_for_nobody_and_does_not_wait_for_less_when_they_stay_away(edit: Edit) -> None:
    after = edited(back(FORMING), "c", edit)
    assert (after.target, seats(after)) == (0, {})


def test_a_restore_drops_the_waiting_nodes() -> None:
    spare = arrived(running("a b", size="2"), "c")
    assert seats(back(spare)) == {"a": "in", "b": "in"}


@pytest.mark.parametrize("state", [PINNED, edited(PINNED, "a", Done(0))], ids=["in", "done"])
def test_in_a_complete_round_every_member_stays_what_it_is(state: RendezvousState) -> None:
    assert back(state).seats == state.seats


def test_a_verdict_is_restored_with_the_seats_as_they_stood() -> None:
    half = edited(arrived(evolve(FORMING, limits=Limits(1, 3)), ""), "a", Close(VERDICT))
    assert not half.complete
    after = back(half)
    assert seats(after) == {"a": "in", "b": "in"}
    assert (after.closed, after.quorum_at) == (VERDICT, half.quorum_at)


def test_over_what_is_there_the_version_is_one_higher_and_the_epoch_higher_than_both() -> None:
    fork = evolve(AGAIN, life=Life("fork", 5), version=40, base=((1, 1),))
    assert outranks(LATER, fork)
    after = back(LATER, fork)
    assert (after.version, after.stale_before, after.life) == (41, 41, Life("again", 6))
    assert after.base == LATER.precedence
    assert seats(after) == seats(LATER)


def test_over_a_forming_job_mine_is_restored_with_its_own_name() -> None:
    after = back(PINNED, AFRESH)
    assert (after.job, after.version, after.life.epoch) == (PINNED.job, AFRESH.version + 1, 2)


def test_a_copy_is_restored_as_another_life_before_anybody_edits_it() -> None:
    after = back(PINNED, PINNED)
    assert (after.version, after.life, after.base) == (PINNED.version + 1, Life("again", 2), PINNED.precedence)


def test_a_world_that_is_completed_pins_the_life_it_was_restored_in() -> None:
    whole = arrived(back(LATER), "a b")
    assert whole.complete
    assert (whole.base, whole.completed_in, whole.precedence) == ((), Life("again", 2), ((2, whole.version),))
    assert whole.world.id.round == LATER.round


def test_an_ordinary_edit_keeps_what_a_restored_life_counts_for() -> None:
    after = back(LATER)
    verify_step(after, one := arrived(after, "a"))
    assert (one.base, one.job, one.life) == (LATER.precedence, LATER.job, after.life)


def test_what_a_life_was_made_from_is_bounded_and_its_rank_still_rises() -> None:
    state = LATER
    for loss in range(3 * BASE_MAX):
        after = back(state, nonce=f"loss {loss}")
        assert after.precedence > state.precedence
        assert outranks(after, state)
        assert len(after.base) == min(loss + 1, BASE_MAX)
        state = after
    assert state.base[0] == LATER.precedence[0]


# --- what no restore may be

OVER = evolve(AGAIN, life=Life("fork", 2), version=9, base=((1, 1),))
LOST = back(PINNED, OVER)
OPENED = back(LATER, OVER)
NOBODY: dict[Node, Seat] = {}

RESTORES: dict[str, tuple[str, RendezvousState, RendezvousState | None, RendezvousState]] = {
    "a state that breaks an invariant": ("S5", PINNED, OVER, evolve(LOST, next_order=0)),
    "an epoch that stands still": ("R4", PINNED, None, evolve(back(PINNED), life=Life("x", 1))),
    "an epoch that is not above the one that is there": ("R4", PINNED, OVER, evolve(LOST, life=Life("x", 2))),
    "less over more": ("R4", PINNED, LATER, back(PINNED)),
    "another verdict": (
        "R5",
        evolve(CLOSED, closed=OTHER_VERDICT),
        CLOSED,
        back(evolve(CLOSED, closed=OTHER_VERDICT), evolve(CLOSED, closed=None)),
    ),
    "a round over a verdict": ("R5", LATER, evolve(CLOSED, version=1), back(LATER, OVER)),
    "a job over another one's world": ("R6", LATER, REPLACED, back(LATER, AFRESH)),
    "a job over another one's world and verdict": (
        "R6",
        LATER,
        edited(REPLACED, "a", Close(OTHER_VERDICT)),
        back(LATER, AFRESH),
    ),
    "a version that stands still": ("S7", PINNED, OVER, evolve(LOST, version=9, stale_before=9)),
    "a version that is passed over": ("S7", PINNED, None, evolve(back(PINNED), version=5, stale_before=5)),
    "a life that counts by itself": ("R2", PINNED, OVER, evolve(OPENED, base=())),
    "a life that counts by itself over nothing": ("R2", LATER, None, evolve(back(LATER), base=())),
    "a life that was made out of nothing": ("R2", LATER, None, evolve(back(LATER), base=NOTHING)),
    "another job's name": ("R7", PINNED, OVER, evolve(LOST, job="x")),
    "other limits": ("R7", PINNED, OVER, evolve(LOST, limits=Limits(1, 4, 3))),
    "another generation": ("R7", LATER, OVER, evolve(OPENED, generation=0)),
    "another round": ("R7", PINNED, OVER, evolve(LOST, round=1)),
    "another target": ("R7", LATER, OVER, evolve(OPENED, target=1)),
    "a world of another identity": ("R7", PINNED, OVER, evolve(LOST, completed_in=Life("x"))),
    "a forgotten verdict": ("R7", CLOSED, None, evolve(back(CLOSED), closed=None)),
    "a forgotten failure": ("R7", LATER, OVER, evolve(OPENED, failures=0)),
    "another end": ("R7", LATER, OVER, evolve(OPENED, ended=Ended(0, Why.FAILED, node("b")))),
    "an order that is given again": ("R7", LATER, OVER, evolve(OPENED, next_order=7)),
    "old proposals that stay valid": ("R7", PINNED, OVER, evolve(LOST, stale_before=0)),
    "a member that is left out": ("R7", LATER, OVER, evolve(OPENED, seats=NOBODY)),
    "somebody that was not there": (
        "R7",
        LATER,
        OVER,
        evolve(OPENED, seats={**OPENED.seats, node("c"): Seat(EXPECTED, 2, profile("c"))}, next_order=3),
    ),
    "one that is taken for present": (
        "R7",
        arrived(LATER, "b"),
        None,
        evolve(arrived(back(arrived(LATER, "b")), "b"), version=arrived(LATER, "b").version + 1),
    ),
    "one that waits": (
        "R7",
        (waits := arrived(running("a", size="1"), "c")),
        None,
        evolve(back(waits), seats={**back(waits).seats, node("c"): Seat(WAITING, 1, profile("c"))}),
    ),
    "a member with another endpoint": (
        "R7",
        PINNED,
        OVER,
        evolve(LOST, seats={**LOST.seats, node("a"): Seat(IN, 0, profile("a", port=1))}),
    ),
    "a member that is done, and was not": (
        "R7",
        PINNED,
        OVER,
        evolve(LOST, seats={**LOST.seats, node("a"): Seat(DONE, 0, profile("a"))}),
    ),
}


@pytest.mark.parametrize(
    ("number", "held", "found", "after"), RESTORES.values(), ids=[f"{of[0]} {name}" for name, of in RESTORES.items()]
)
def test_an_illegal_restore_is_refused_with_its_number(
    number: str, held: RendezvousState, found: RendezvousState | None, after: RendezvousState
) -> None:
    with pytest.raises(Violation) as refused:
        verify_restore(Restore(held, after.life.nonce), found, after)
    assert refused.value.number == number


def test_every_number_of_a_restore_is_tested_here() -> None:
    assert {number for number, *_ in RESTORES.values()} == {"S5", "S7", "R2", "R4", "R5", "R6", "R7"}


def test_a_verdict_may_be_restored_over_a_state_that_counts_more() -> None:
    more = back(back(LATER))
    assert back(CLOSED, more).closed == VERDICT
    assert back(CLOSED, more).life.epoch == 4


def test_the_same_verdict_may_be_restored_over_a_copy_of_it() -> None:
    assert back(CLOSED, CLOSED).closed == VERDICT
    assert CLOSED.life == LIFE
