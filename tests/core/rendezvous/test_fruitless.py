"""Rounds that losses end: which are fruitless, when they count no longer, and when the job gives up for them."""

from __future__ import annotations

import math
import re

import pytest
from attrs import evolve
from worlds import action, arrived, circles, circling, edited, heard, holding, node, nodes, profile, returned

from elastic.core.rendezvous import (
    Arrive,
    Drain,
    Edit,
    End,
    Ended,
    Evict,
    Leave,
    Limits,
    Proceed,
    RendezvousState,
    Restore,
    Settings,
    Status,
    Sync,
    Violation,
    apply,
    joined,
    restored,
    saw,
    verify,
    verify_restore,
    verify_step,
    watch,
    woke,
)
from elastic.core.rendezvous.codec import decode, encode
from elastic.core.rendezvous.explain import explain
from elastic.core.rendezvous.memory import advanced, silent
from elastic.core.rendezvous.state import FRUITLESS_MAX
from elastic.core.world import Ending, Notice, Verdict, Why

LOST_B, FAILED, FENCED = Evict(nodes("b")), End(0, Why.FAILED), End(0, Why.FENCED)
SPANS = Settings(progress_after=300.0, patience=0.6)


def ends(state: RendezvousState) -> list[tuple[int, Why, tuple[str, ...]]]:
    return [(each.round, each.why, each.lost) for each in state.fruitless]


# --- which rounds are fruitless


@pytest.mark.parametrize(
    ("who", "edit", "counts"),
    [
        ("a", LOST_B, True),
        ("b#2", Arrive(profile("b#2")), True),
        ("a", FENCED, True),
        ("a", FAILED, False),
        ("b", Leave(), False),
    ],
    ids=["lost", "started again", "fenced", "failed", "left"],
)
def test_a_loss_makes_a_round_fruitless_and_a_failure_or_a_leave_does_not(who: str, edit: Edit, counts: bool) -> None:
    assert bool(edited(circling(), who, edit).fruitless) == counts
    assert edited(circling(give_up=0), who, edit).fruitless == ()


def test_failures_count_where_they_are_to() -> None:
    state = edited(circling(failures=True), "a", FAILED)
    assert ends(state) == [(0, Why.FAILED, ())]
    assert ends(edited(returned(state, "a b"), "a", End(1, Why.FAILED))) == [(0, Why.FAILED, ()), (1, Why.FAILED, ())]


def test_a_drained_node_s_leave_neither_counts_nor_forgives() -> None:
    state = edited(circles(1), "b#2", Drain(node("b#2"), Notice(5.0, "a test")))
    left = edited(state, "b#2", Leave())
    assert left.round == 2 and ends(left) == [(0, Why.LOST, ("b",))]


@pytest.mark.parametrize(("dead", "counts"), [("b", False), ("b c", True)])
def test_the_loss_of_drained_nodes_alone_makes_no_round_fruitless(dead: str, counts: bool) -> None:
    drained = edited(circling("a b c"), "b", Drain(node("b"), Notice(5.0, "a test")))
    lost = edited(drained, "a", Evict(nodes(dead)))
    assert lost.ended and (lost.ended.why, lost.ended.lost) == (Why.LOST, tuple(dead.split()))
    assert bool(lost.fruitless) == counts
    with pytest.raises(Violation, match="B7"):
        verify_step(drained, evolve(lost, fruitless=() if counts else (lost.ended,)))


def test_the_return_of_a_lost_node_makes_a_round_fruitless_and_that_of_any_other_does_not() -> None:
    alone = returned(edited(circling("a b"), "a", LOST_B), "a")
    assert ends(alone) == [(0, Why.LOST, ("b",))]
    again = edited(arrived(alone, "b#2"), "a", End(1, Why.UPSCALE))
    assert ends(again) == [(0, Why.LOST, ("b",)), (1, Why.UPSCALE, ())]
    other = edited(arrived(alone, "c"), "a", End(1, Why.UPSCALE))
    assert ends(other) == [(0, Why.LOST, ("b",))]
    first = edited(arrived(circling("a"), "b"), "a", End(0, Why.UPSCALE))
    assert first.fruitless == ()


def test_each_node_that_is_lost_while_its_round_ends_is_counted_once_for_it() -> None:
    state = edited(circling("a b c"), "a", LOST_B)
    state = edited(state, "a", Evict(nodes("c")))
    assert ends(state) == [(0, Why.LOST, ("b", "c"))] and state.losses == {"b": 1, "c": 1}


def test_a_loss_after_an_end_that_does_not_count_makes_nothing_of_that() -> None:
    left = edited(circling("a b c"), "c", Leave())
    assert edited(left, "a", LOST_B).fruitless == ()


@pytest.mark.parametrize("failures", [False, True])
def test_a_failure_that_a_loss_explains_is_a_loss(failures: bool) -> None:
    """It counts once, also where failures count."""
    state = edited(edited(circles(1), "a", End(1, Why.FAILED)), "a", Evict(nodes("b#2")))
    if failures:
        state = edited(edited(circling(failures=True), "a", FAILED), "a", LOST_B)
    assert ends(state)[-1] == (state.round - 1, Why.LOST, ("b",))
    assert len(state.fruitless) == 1 + (not failures) and state.failures == 0


# --- when they count no longer


def test_a_member_of_a_round_that_has_grown_old_says_so_and_nobody_else() -> None:
    state = circles(2)
    assert edited(state, "a", Proceed(2)).fruitless == ()
    for who, edit in (("a", Proceed(1)), ("c", Proceed(2))):
        assert apply(state, edit, node(who)) is state
    forming = edited(state, "b#4", Arrive(profile("b#4")))
    assert forming.closed and apply(forming, Proceed(3), node("a")) is forming
    ended = edited(circles(1), "b#3", Arrive(profile("b#3")))
    assert apply(ended, Proceed(ended.round), node("b#3")) is ended
    proceeds = edited(circling(), "a", Proceed(0))
    assert proceeds.progressed and apply(proceeds, Proceed(0), node("a")) is proceeds
    never = circling(give_up=0)
    assert apply(never, Proceed(0), node("a")) is never


def test_the_first_member_says_so_at_its_time_and_the_next_one_after_its_patience() -> None:
    state = circles(1)
    for who, due in (("a", 300.0), ("b#2", 300.9)):
        held = holding(who, state, SPANS, ran=1)
        assert action(watch, held, 299.9) == Sync(due)
        assert action(watch, held, due) == Proceed(1)


def test_a_round_says_once_that_it_makes_progress_and_only_where_that_matters() -> None:
    assert action(watch, holding("a", circling(), SPANS, ran=0), 300.0) == Proceed(0)
    for state in (edited(circling(), "a", Proceed(0)), circling(give_up=0)):
        assert action(watch, holding("a", state, SPANS, ran=0), 1e6) == Sync(math.inf)


@pytest.mark.parametrize("dead", ["b", "a b"])
def test_a_round_that_made_progress_is_not_the_first_of_the_next_row(dead: str) -> None:
    state = edited(edited(circling("a b c", give_up=1), "a", Proceed(0)), "c", Evict(nodes(dead)))
    assert state.closed is None and state.fruitless == () and state.progressed
    assert edited(state, "c", Evict(nodes(dead))).closed is None
    again = returned(state, "a b c" if dead == "b" else "c")
    assert again.complete and not again.progressed
    was = edited(circling(), "a", Proceed(0))
    with pytest.raises(Violation, match="B7"):
        verify_step(was, evolve(edited(circling(), "a", LOST_B), version=was.version + 1))


def test_a_failure_of_a_round_that_made_progress_which_a_loss_explains_does_not_count() -> None:
    state = edited(edited(circling(failures=True), "a", Proceed(0)), "a", End(0, Why.FAILED))
    refunded = edited(state, "a", LOST_B)
    assert refunded.ended and (refunded.ended.why, refunded.fruitless) == (Why.LOST, ())


def test_no_progress_is_made_up_or_taken_back() -> None:
    state = edited(circling(), "a", Proceed(0))
    for wrong in (
        evolve(state, limits=circling(give_up=0).limits),
        evolve(state, fruitless=(Ended(0, Why.LOST, node("a")),)),
    ):
        with pytest.raises(Violation, match="B7"):
            verify(evolve(wrong, round=1))
    drained = edited(circling(), "a", Drain(node("b"), Notice(5.0, "a test")))
    with pytest.raises(Violation, match="B7"):
        verify_step(edited(circling(), "a", Proceed(0)), evolve(drained, version=state.version + 1))
    for was, now in ((circling(), True), (state, False)):
        ended = edited(was, "a", FENCED)
        with pytest.raises(Violation, match="B7"):
            verify_step(was, evolve(ended, progressed=now, fruitless=()))


def test_a_lost_node_that_is_back_and_finds_no_room_makes_no_round_fruitless_that_ends_for_another_one() -> None:
    alone = returned(edited(circling("a b", size="1:2"), "a", Evict(nodes("b"))), "a")
    again = edited(arrived(alone, "c b#2"), "a", End(1, Why.UPSCALE))
    assert ends(again) == [(0, Why.LOST, ("b",))]


# --- a newcomer that dies of the round that began for it


def test_a_newcomer_that_is_lost_before_the_next_world_makes_the_round_fruitless_that_ended_for_it() -> None:
    state = circling("a", size="1:2")
    for count in range(1, 4):
        ended = edited(arrived(state, f"b#{count}"), "a", End(state.round, Why.UPSCALE))
        lost = edited(ended, "a", Evict(nodes(f"b#{count}")))
        assert [why for _, why, _ in ends(lost)] == [Why.UPSCALE] * count
        state = lost if lost.closed else returned(lost, "a")
    assert state.closed and state.closed.why is Why.FRUITLESS and state.losses == {"b": 2}


@pytest.mark.parametrize("started_again", [False, True])
def test_one_that_is_started_again_meanwhile_counts_once(started_again: bool) -> None:
    state = edited(arrived(circling("a", size="1:2"), "b"), "a", End(0, Why.UPSCALE))
    lost = edited(state, "b#2", Arrive(profile("b#2"))) if started_again else edited(state, "a", Evict(nodes("b")))
    assert len(lost.fruitless) == 1
    assert len(edited(lost, "a", Evict(nodes("b#2"))).fruitless) == 1 if started_again else True


def test_a_newcomer_that_is_lost_with_a_drained_one_counts() -> None:
    ended = edited(arrived(circling("a"), "b c"), "a", End(0, Why.UPSCALE))
    drained = edited(ended, "b", Drain(node("b"), Notice(30.0, "a test")))
    assert ends(edited(drained, "a", Evict(nodes("b c")))) == [(0, Why.UPSCALE, ("b", "c"))]


def test_a_drained_newcomer_and_one_of_a_round_that_made_progress_do_not_count() -> None:
    for before in (edited(circling("a", size="1:2"), "a", Proceed(0)), circling("a", size="1:2", give_up=0)):
        ended = edited(arrived(before, "b"), "a", End(0, Why.UPSCALE))
        assert edited(ended, "a", Evict(nodes("b"))).fruitless == ()
    ended = edited(arrived(circling("a", size="1:2"), "b"), "a", End(0, Why.UPSCALE))
    drained = edited(ended, "b", Drain(node("b"), Notice(9.0, "a test")))
    assert edited(drained, "a", Evict(nodes("b"))).fruitless == ()


# --- steps


def test_a_member_whose_worker_is_ahead_of_all_steps_before_its_world_says_so_at_its_turn() -> None:
    state = circles(1)
    for who, due in (("a", 10.0), ("b#2", 10.9)):
        held = advanced(holding(who, state, SPANS, ran=1), 1, 10.0)
        assert action(watch, held, due) == Proceed(1)
        assert who == "a" or action(watch, held, 10.5) == Sync(due)


def test_a_worker_that_is_ahead_is_no_answer_of_a_silent_store() -> None:
    held = silent(holding("a", circles(1), SPANS, ran=1), 9.0)
    assert advanced(held, 1, 10.0).contact.silent_since == 9.0


def test_a_worker_of_another_round_says_nothing_of_this_one() -> None:
    held = advanced(holding("a", circles(1), SPANS, ran=1), 0, 10.0)
    assert held.past.advanced_in is None and action(watch, held, 10.0) == Sync(300.0)
    done = saw(
        advanced(holding("a", circles(1), SPANS, ran=1), 1, 10.0), edited(circles(1), "a", Proceed(1)), 11.0, 11.0
    )
    assert action(watch, done, 12.0) == Sync(math.inf)


def test_a_round_that_has_grown_old_does_before_a_loss_or_a_newcomer_ends_it() -> None:
    state = arrived(circles(1), "c")
    held = holding("a", state, SPANS, ran=1)
    assert action(watch, held, 300.0) == Proceed(1)
    silent = held
    for at in (294.0, 295.0, 296.0, 297.0, 298.0, 299.2):
        silent = heard(silent, {node("b#2"): 1}, at, at)
    assert action(watch, silent, 299.5) == Evict(nodes("b#2"))
    assert action(watch, silent, 300.5) == Proceed(1)


def test_the_age_of_a_round_counts_from_when_this_node_saw_it_awake() -> None:
    state = circles(1)
    held = holding("a", state, SPANS, ran=1)
    slept = saw(woke(held, 200.0), state, 201.0, 201.0)
    assert action(watch, slept, 500.0) == Sync(501.0)


def test_the_age_of_a_round_is_its_own_though_nobody_saw_the_one_before_it_end() -> None:
    held = holding("a", circles(1), SPANS, ran=1)
    later = joined(saw(held, circles(2), 200.0, 200.0), circles(2).world.id)
    assert action(watch, later, 499.0) == Sync(500.0)


# --- when the job gives up


def test_the_last_fruitless_round_that_is_allowed_ends_the_job_at_once_in_the_name_of_who_ended_it() -> None:
    state = circles(2)
    assert state.closed is None and not state.gives_up
    over = edited(state, "b#4", Arrive(profile("b#4")))
    assert over.closed == Verdict(Ending.FAILED, 2, node("b#4"), Why.FRUITLESS)
    assert ends(over) == [(round, Why.LOST, ("b",)) for round in range(3)] and over.losses == {"b": 3}


def test_a_job_whose_rounds_grow_old_never_gives_up() -> None:
    state = circles(1)
    for again in range(3, 20):
        state = edited(state, "a", Proceed(state.round))
        state = returned(edited(state, f"b#{again}", Arrive(profile(f"b#{again}"))), "a")
        assert state.fruitless == () and state.closed is None


def test_a_job_without_a_limit_goes_on() -> None:
    assert circles(20, give_up=0).closed is None


def test_a_failure_over_the_budget_waits_for_all_who_come_back_and_may_still_be_a_loss() -> None:
    state = evolve(circling(give_up=1, failures=True), limits=Limits(1, 3, 0, give_up_after=1, counts_failures=True))
    failed = edited(state, "a", FAILED)
    assert failed.closed is None and failed.over_budget
    assert edited(failed, "a", LOST_B).closed == Verdict(Ending.FAILED, 0, node("a"), Why.FRUITLESS)
    closed = arrived(failed, "a b").closed
    assert closed and closed.why is Why.FAILED


# --- what no write may do


def test_B6_a_job_is_closed_as_fruitless_exactly_when_it_must_be() -> None:
    over = edited(circles(2), "b#4", Arrive(profile("b#4")))
    early = evolve(circles(2), closed=over.closed)
    for wrong in (evolve(over, closed=None), early):
        with pytest.raises(Violation, match="B6"):
            verify(wrong)


def test_a_job_that_is_closed_for_another_reason_may_have_any_number() -> None:
    verify(evolve(circles(2), closed=Verdict(Ending.CANCELLED, 2, node("a"), Why.ASKED)))


ONE = circles(1)
LOST = edited(ONE, "a", Evict(nodes("b#2")))
LEFT = edited(ONE, "b#2", Leave())
THIS = Ended(1, Why.FENCED, node("b#2"))
OPEN = arrived(LOST, "a")
LATER = returned(LEFT, "a")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ONE, evolve(LOST, fruitless=ONE.fruitless)),
        (ONE, evolve(LOST, fruitless=LOST.fruitless[1:])),
        (ONE, evolve(LEFT, fruitless=(*LEFT.fruitless, THIS))),
        (ONE, evolve(LEFT, fruitless=())),
        (LOST, evolve(OPEN, fruitless=())),
        (LOST, evolve(OPEN, fruitless=OPEN.fruitless[:1])),
        (LATER, evolve(LATER, version=LATER.version + 1, fruitless=(*LATER.fruitless, THIS))),
    ],
    ids=["forgotten", "the first forgotten", "no loss", "forgiven at an end", "forgiven while open", "less", "more"],
)
def test_B7_no_step_makes_other_rounds_fruitless(before: RendezvousState, after: RendezvousState) -> None:
    verify(after)
    with pytest.raises(Violation, match="B7"):
        verify_step(before, after)


OVER = edited(circles(2), "b#4", Arrive(profile("b#4")))
MORE = (*OVER.fruitless, Ended(3, Why.LOST, node("a")))


def forged(*ends: tuple[int, Why], limit: int = 9, failures: bool = False) -> RendezvousState:
    """Return the complete round 4 of a job, after these ends of rounds as somebody wrote them."""
    limits = Limits(1, 3, 5, give_up_after=limit, counts_failures=failures)
    fruitless = tuple([Ended(round, why, node("a")) for round, why in ends])
    return decode(encode(evolve(circling(), round=4, limits=limits, fruitless=fruitless)))


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (forged((2, Why.LOST), (1, Why.LOST)), "fruitless rounds [2, 1], and this is round 4"),
        (forged((1, Why.LOST), (1, Why.LOST)), "fruitless rounds [1, 1], and this is round 4"),
        (forged((4, Why.LOST)), "fruitless rounds [4], and this is round 4"),
        (forged((3, Why.LOST), limit=0), "fruitless rounds [3], and the job ends after 0"),
        (evolve(OVER, fruitless=MORE, round=4), "fruitless rounds [0, 1, 2, 3], and the job ends after 3"),
        *[
            (forged((1, Why.LOST), (3, why)), f"a round is fruitless that ended because {why.value}")
            for why in Why
            if why not in (Why.LOST, Why.FENCED, Why.UPSCALE)
        ],
    ],
)
def test_B7_a_register_with_fruitless_rounds_that_no_write_makes_is_illegal(state: RendezvousState, says: str) -> None:
    with pytest.raises(Violation, match=re.escape(f"B7: {says}")):
        verify(state)


@pytest.mark.parametrize("last", [Why.LOST, Why.FENCED, Why.UPSCALE, Why.FAILED])
def test_B7_fruitless_rounds_that_rise_to_the_last_one_are_legal(last: Why) -> None:
    verify(forged((1, Why.LOST), (3, last), failures=last is Why.FAILED))


def test_a_job_that_never_gives_up_counts_no_failures_for_that() -> None:
    with pytest.raises(ValueError, match="counts_failures: only with give_up_after"):
        Limits(counts_failures=True)


def test_B7_a_refund_keeps_the_round_among_the_fruitless() -> None:
    failed = edited(ONE, "a", End(1, Why.FAILED))
    refunded = edited(failed, "a", Evict(nodes("b#2")))
    with pytest.raises(Violation, match="B7"):
        verify_step(failed, evolve(refunded, fruitless=failed.fruitless))


def test_a_restore_keeps_them() -> None:
    deed = Restore(ONE, "again")
    after = restored(deed, None)
    assert after.fruitless == ONE.fruitless
    verify_restore(deed, None, after)
    with pytest.raises(Violation, match="R7"):
        verify_restore(deed, None, evolve(after, fruitless=()))


@pytest.mark.parametrize("rounds", [-1, FRUITLESS_MAX + 1])
def test_a_limit_that_no_register_holds_is_refused(rounds: int) -> None:
    with pytest.raises(ValueError, match=f"give_up_after: 0 to {FRUITLESS_MAX}, not {rounds}"):
        Limits(give_up_after=rounds)


# --- what people are told


@pytest.mark.parametrize(("rounds", "says"), [(2, ""), (3, " · no progress in 3 rounds, the job ends after 9")])
def test_a_few_fruitless_rounds_are_worth_a_word(rounds: int, says: str) -> None:
    assert explain(circles(rounds, give_up=9), None) == f"round {rounds}: 2 nodes running{says}"


def test_a_closed_job_says_so() -> None:
    over = edited(circles(2), "b#4", Arrive(profile("b#4")))
    assert explain(over, None) == "closed: failed in round 2 (no progress)"
    assert over.seats[node("a")].status is Status.EXPECTED


def test_the_operation_of_a_member_goes_on_after_that() -> None:
    state = edited(circles(1), "a", Proceed(1))
    assert action(watch, holding("a", state, SPANS, ran=1), 1e6) == Sync(math.inf)
