"""A node that fails again and again: what it tells of its failures, when it is set aside for them, and how it comes back."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve
from worlds import (
    action,
    arrived,
    but,
    edited,
    holding,
    name,
    node,
    nodes,
    operation,
    profile,
    register,
    reseated,
    running,
    seats,
)

from elastic.core.rendezvous import (
    Arrive,
    Done,
    Drain,
    Edit,
    End,
    Ended,
    Evict,
    Fail,
    Failing,
    FailureLimit,
    Finish,
    Held,
    Leave,
    Limits,
    Overdue,
    RendezvousState,
    Restore,
    Seat,
    Settings,
    Settled,
    Status,
    Sync,
    Violation,
    Who,
    end,
    join,
    leave,
    restored,
    saw,
    verify,
    verify_step,
    woke,
)
from elastic.core.rendezvous.actions import Proposal, Together
from elastic.core.rendezvous.codec import Refused, decode, encode
from elastic.core.rendezvous.context import context
from elastic.core.rendezvous.explain import explain, set_aside
from elastic.core.rendezvous.refusals import words
from elastic.core.rendezvous.settings import FAILURES_MAX
from elastic.core.rendezvous.state import COOLDOWN_MAX_S, STARTS_MAX, lost_starts
from elastic.core.rendezvous.verify import _of_step
from elastic.core.world import COUNT_MAX, Ending, Life, Notice, Verdict, Why

FEW, MANY = Failing(1), Failing(2, 60.0)
"""What a node tells of its failures: that they are within the limit, and that they are not."""


def failed(state: RendezvousState, who: str, failing: Failing | None = MANY) -> RendezvousState:
    return edited(state, who, End(state.round, Why.FAILED, failing))


def seat(state: RendezvousState, who: str) -> Any:
    return state.seats[node(who)]


THREE = running("a b c", "1:3", restarts=5)
FAILED = failed(THREE, "b")
ASIDE = arrived(FAILED, "a b c")

# --- who is set aside, and when


def test_a_node_that_failed_too_often_is_set_aside_when_everybody_is_back_and_the_others_go_on() -> None:
    assert seats(arrived(FAILED, "b c")) == {"a": "expected", "b": "in", "c": "in"}
    assert ASIDE.complete and seats(ASIDE) == {"a": "in", "c": "in", "b": "aside"}
    assert ASIDE.members == (node("a"), node("c")) and ASIDE.target == 2 and ASIDE.failures == 1
    assert ASIDE.redundancy_list == (node("b"),) and ASIDE.room == 1 and ASIDE.wait_list == ()


def test_it_loses_its_place_among_the_ranks_so_that_it_leads_nobody() -> None:
    aside = arrived(failed(THREE, "a"), "a b c")
    assert aside.first == node("b") and seat(aside, "a").order == 3 and aside.next_order == 4


@pytest.mark.parametrize("failing", [None, FEW])
def test_a_node_within_its_limit_stays(failing: Failing | None) -> None:
    back = arrived(failed(THREE, "b", failing), "a b c")
    assert back.complete and seats(back) == {"a": "in", "b": "in", "c": "in"} and seat(back, "b").failing == failing


def test_a_node_that_the_job_needs_stays() -> None:
    back = arrived(failed(running("a b", restarts=5), "b"), "a b")
    assert back.complete and seats(back) == {"a": "in", "b": "in"}
    alone = arrived(failed(running("a", restarts=5), "a"), "a")
    assert alone.complete and seats(alone) == {"a": "in"}


def test_a_spare_takes_the_place_of_a_node_that_is_set_aside() -> None:
    two = failed(arrived(running("a b", restarts=5), "c"), "b")
    back = arrived(two, "a b")
    assert back.complete and seats(back) == {"a": "in", "c": "in", "b": "aside"}


def test_of_two_spares_only_as_many_count_as_find_room() -> None:
    one = arrived(failed(arrived(running("a", restarts=5), "b c"), "a"), "a")
    assert one.complete and seats(one) == {"b": "in", "c": "waiting", "a": "aside"}


def test_a_newcomer_that_comes_while_the_round_forms_sets_a_failing_node_free_to_go() -> None:
    """The world waits for c, who is gone. The minimum needs b until somebody else comes."""
    three = edited(failed(running("a b c", restarts=5), "b"), "a", Arrive(profile("a")))
    waits = edited(arrived(three, "b"), "a", Evict(nodes("c")))
    assert seats(waits) == {"a": "in", "b": "in"} and not waits.complete
    assert seats(arrived(waits, "d")) == {"a": "in", "b": "in", "d": "in"}  # three are needed
    two = failed(running("a b", "2:3", restarts=5), "b")
    assert seats(arrived(two, "a d b")) == {"a": "in", "d": "in", "b": "aside"}


def test_a_failing_node_goes_only_if_more_than_the_minimum_are_back_or_wait() -> None:
    left = edited(failed(running("a b c", restarts=5), "a"), "c", Leave())
    few = arrived(left, "a b")
    assert seats(few) == {"a": "in", "b": "in"}
    assert seats(arrived(few, "d")) == {"a": "in", "b": "in", "d": "in"}
    with_a_spare = failed(arrived(running("a b c", restarts=5), "d"), "a")
    assert seats(arrived(with_a_spare, "a b c")) == {"b": "in", "c": "in", "d": "in", "a": "aside"}


def test_a_world_of_which_one_member_is_left_is_complete_without_a_last_call() -> None:
    lonely = failed(running("a", "1:3", restarts=5), "a")
    assert lonely.target == 1
    assert seats(arrived(lonely, "b a")) == {"b": "in", "a": "aside"} and arrived(lonely, "b a").complete
    late = edited(arrived(FAILED, "b"), "b", Overdue(1))
    assert seats(late) == {"b": "in"} and late.complete


def test_a_target_that_was_given_up_stays_given_up() -> None:
    wide = arrived(edited(arrived(failed(running("a b", "1:4", restarts=5), "b"), "d"), "d", Evict(nodes("a b"))), "b")
    assert wide.target == 0 and seats(wide) == {"d": "in", "b": "in"}


def test_no_target_is_lowered_that_a_restored_round_has_already_given_up() -> None:
    late = edited(arrived(failed(running("a b c", "3:5", restarts=5), "b"), "b"), "b", Overdue(1))
    again = restored(Restore(arrived(late, "a"), "another"), None)
    assert seats(again) == {"b": "expected", "a": "expected"} and again.target == 1
    back = arrived(edited(again, "a", Leave()), "b c d e")
    assert seats(back) == {"c": "in", "d": "in", "e": "in", "b": "aside"} and back.target == 0


def test_nobody_is_set_aside_when_the_failure_ends_the_job() -> None:
    over = arrived(failed(running("a b c", "1:3"), "b"), "a b c")
    assert over.closed and over.closed.by == node("b") and seats(over)["b"] == "in"


def test_only_the_first_cause_of_the_failure_is_judged() -> None:
    told = failed(failed_again := arrived(failed(THREE, "b", FEW), "a b c"), "a")
    assert failed_again.complete and seats(arrived(told, "a b c"))["a"] == "aside"
    upscaled = edited(edited(ASIDE, "a", End(1, Why.FENCED)), "c", Arrive(profile("c")))
    assert seats(arrived(upscaled, "a")) == {"a": "in", "c": "in", "b": "aside"}


def test_a_node_that_is_gone_or_drained_meanwhile_is_not_set_aside() -> None:
    gone = edited(FAILED, "b", Leave())
    assert seats(arrived(gone, "a c")) == {"a": "in", "c": "in"}
    drained = edited(FAILED, "operator", Drain(node("b"), Notice(9.0, "a test")))
    assert seats(arrived(drained, "a c")) == {"a": "in", "b": "leaving", "c": "in"}


def test_a_failure_that_a_lost_node_explains_counts_for_nothing() -> None:
    lost = edited(arrived(FAILED, "a b"), "a", Evict(nodes("c")))
    assert lost.complete and seats(lost) == {"a": "in", "b": "in"} and lost.failures == 0
    assert seat(lost, "b").failing is None
    untold = failed(THREE, "b", None)
    assert seat(edited(untold, "a", Evict(nodes("c"))), "b") is seat(untold, "b")
    alone = edited(edited(FAILED, "b", Leave()), "a", Evict(nodes("c")))
    assert seats(alone) == {"a": "expected"} and alone.failures == 0


def test_what_a_node_proposed_before_it_was_set_aside_brings_it_back_no_longer() -> None:
    proposal = Proposal(FAILED.era, Arrive(profile("b")))
    assert edited(ASIDE, "a", Together({node("b"): proposal})) is ASIDE
    assert ASIDE.stale_before == ASIDE.version


def test_what_a_node_has_told_stands_until_its_next_failure() -> None:
    told = arrived(failed(THREE, "b", FEW), "a b c")
    assert seat(edited(told, "b", End(1, Why.FENCED)), "b").failing == FEW
    assert seat(edited(told, "b", End(1, Why.FAILED)), "b").failing is None
    assert seat(failed(told, "b", MANY), "b").failing == MANY


def test_a_member_that_has_gone_tells_nothing_by_its_end() -> None:
    gone = edited(edited(THREE, "b", Done(0)), "b", Leave())
    assert seats(failed(gone, "b")) == {"a": "expected", "c": "expected"}


def test_who_leaves_by_its_own_failure_tells_nothing_more() -> None:
    assert edited(ASIDE, "z", End(1, Why.FAILED, MANY)) is ASIDE


# --- how it comes back


def test_it_comes_back_as_a_newcomer_that_is_charged_with_nothing() -> None:
    back = arrived(ASIDE, "b")
    assert seats(back) == {"a": "in", "c": "in", "b": "waiting"} and seat(back, "b").failing is None
    assert back.wait_list == (node("b"),)
    grown = edited(back, "a", End(1, Why.UPSCALE))
    assert seats(grown) == {"a": "expected", "c": "expected", "b": "in"}


def test_it_is_called_back_when_the_others_are_too_few() -> None:
    three = arrived(failed(running("a b c", "2:3", restarts=5), "b"), "a b c")
    lost = edited(three, "a", Evict(nodes("c")))
    assert seats(lost) == {"a": "expected", "b": "expected"} and lost.target == 2 and seat(lost, "b").failing is None
    both = arrived(lost, "a b")
    assert both.complete and both.members == (node("a"), node("b"))


def test_only_as_many_are_called_back_as_are_missing() -> None:
    four = arrived(failed(running("a b c d", "2:4", restarts=5), "b"), "a b c d")
    both = arrived(failed(four, "d"), "a c d")
    assert seats(both) == {"a": "in", "c": "in", "b": "aside", "d": "aside"} and both.complete
    lost = edited(both, "a", Leave())
    assert seats(lost) == {"c": "expected", "b": "expected", "d": "aside"} and lost.target == 2


def test_it_is_called_back_although_there_are_still_too_few() -> None:
    three = arrived(failed(running("a b c d", "3:4", restarts=5), "b"), "a b c d")
    lost = edited(three, "d", Evict(nodes("a c")))
    assert seats(lost) == {"d": "expected", "b": "expected"} and not lost.quorate


def test_nodes_that_are_expected_back_count_as_there() -> None:
    many, few = running("a b c d e", "4:5", restarts=5), running("a b c d", "3:4", restarts=5)
    for state, names, left in ((many, "a b c d e", "a c d"), (few, "a b c d", "c d")):
        aside = arrived(failed(state, "b"), names)
        gone = edited(aside, "e" if state is many else "a", Leave())
        assert seats(gone) == dict.fromkeys([*left.split(), "b"], "expected")


def test_it_is_called_back_to_an_open_round_too() -> None:
    three = edited(arrived(failed(running("a b c", "2:3", restarts=5), "b"), "a b c"), "a", End(1, Why.FENCED))
    late = edited(edited(three, "a", Arrive(profile("a"))), "a", Overdue(2))
    assert seats(late) == {"a": "in", "b": "expected"} and late.target == 2
    assert arrived(late, "b").complete


def test_it_stays_aside_when_a_round_ends_and_the_others_suffice() -> None:
    assert seats(edited(ASIDE, "a", End(1, Why.FENCED))) == {"a": "expected", "c": "expected", "b": "aside"}


def test_its_death_and_its_leave_are_no_news_and_its_next_start_is_another_node() -> None:
    assert seats(edited(ASIDE, "a", Evict(nodes("b")))) == {"a": "in", "c": "in"}
    assert seats(edited(ASIDE, "b", Leave())) == {"a": "in", "c": "in"}
    assert seats(arrived(ASIDE, "b#2")) == {"a": "in", "c": "in", "b#2": "waiting"}
    drained = edited(ASIDE, "operator", Drain(node("b"), Notice(9.0, "a test")))
    assert seats(drained)["b"] == "leaving"


def test_a_restore_drops_it_since_only_its_presence_can_attest_it() -> None:
    assert seats(restored(Restore(ASIDE, "another"), None)) == {"a": "in", "c": "in"}


# --- what it does itself

LIMIT = FailureLimit(2, 60.0)


def settings(limits: Limits) -> Settings:
    return Settings(limits, max_node_failures=LIMIT)


def told(held: Held, now: float) -> Failing | None:
    edit = action(end, held, now, why=Why.FAILED)
    assert isinstance(edit, End)
    return edit.failing


def of_b(state: RendezvousState, now: float = 0.0) -> Held:
    """Return what node b holds of this state, with a limit of failures."""
    return holding("b", state, settings(state.limits), now, ran=state.round)


def shown(held: Held, state: RendezvousState, now: float) -> Held:
    """Return what the node holds after it has read this state and runs in its world."""
    seen = saw(held, state, now, now)
    return but(seen, mine=state.world_id) if state.complete else seen


def test_a_node_without_a_limit_tells_nothing_of_its_failures() -> None:
    held = shown(holding("b", THREE, ran=0), FAILED, 1.0)
    assert held.past.failed_at == ()
    assert told(holding("b", THREE, ran=0), 1.0) is None
    assert action(end, of_b(THREE), 1.0, why=Why.FENCED) == End(0, Why.FENCED)


def test_a_node_counts_its_failures_within_the_window_this_one_included() -> None:
    held = of_b(THREE)
    assert told(held, 10.0) == Failing(1)
    held = shown(shown(held, failed(THREE, "b", FEW), 10.0), arrived(failed(THREE, "b", FEW), "a b c"), 11.0)
    assert held.past.failed_at == (10.0,)
    assert told(held, 69.0) == told(held, 70.0) == Failing(2, 60.0)
    assert told(held, 70.5) == told(held, 130.0) == Failing(1)


def test_the_failures_of_others_and_other_ends_count_for_nothing() -> None:
    for state in (
        failed(THREE, "a"),
        failed(THREE, "c"),
        edited(THREE, "b", End(0, Why.FENCED)),
        edited(THREE, "b", Leave()),
    ):
        assert shown(of_b(THREE), state, 1.0).past.failed_at == ()
    back = arrived(failed(THREE, "b", FEW), "a b c")
    held = shown(shown(of_b(THREE), failed(THREE, "b", FEW), 1.0), back, 2.0)
    assert shown(held, failed(back, "a"), 3.0).past.failed_at == (1.0,)  # though its own last one counts


def test_a_failure_that_is_refunded_is_counted_no_longer() -> None:
    held = shown(of_b(THREE), FAILED, 1.0)
    assert held.past.failed_at == (1.0,)
    assert shown(held, edited(FAILED, "a", Evict(nodes("c"))), 2.0).past.failed_at == ()
    assert shown(held, arrived(FAILED, "a"), 2.0).past.failed_at == (1.0,)
    assert shown(held, edited(ASIDE, "a", End(1, Why.FENCED)), 2.0).past.failed_at == (1.0,)


def test_a_failure_whose_cause_is_open_counts_for_nothing_nor_does_its_refund() -> None:
    wanted = operation(end, deadline=math.inf, why=Why.FAILED)
    assert isinstance(end(context(wanted, of_b(THREE), 1.0), math.inf), End)
    assert end(context(evolve(wanted, is_open=True), of_b(THREE), 1.0), math.inf) == End(0, Why.FAILED)
    counted = shown(shown(of_b(THREE), failed(THREE, "b", FEW), 1.0), arrived(failed(THREE, "b", FEW), "a b c"), 2.0)
    ended = edited(counted.view.state, "b", End(1, Why.FAILED))  # type: ignore[arg-type]
    held = shown(counted, ended, 3.0)
    assert held.past.failed_at == (1.0,)
    assert shown(held, edited(ended, "a", Evict(nodes("c"))), 4.0).past.failed_at == (1.0,)
    assert seat(ended, "b").failing is None


def test_a_refund_a_thousand_rounds_in_is_read_anew() -> None:
    far = evolve(FAILED, round=1_001, ended=evolve(BY_B, round=1_000))
    lost = edited(far, "a", Evict(nodes("c")))
    held = but(of_b(far), failed_at=(1.0, 2.0))
    anew = evolve(lost, ended=Ended(int("1000"), Why.LOST, node("b")))
    assert shown(held, anew, 3.0).past.failed_at == (1.0,)


def test_a_node_that_ends_a_round_as_lost_or_fenced_keeps_its_count() -> None:
    held = shown(shown(of_b(THREE), failed(THREE, "b", FEW), 1.0), arrived(failed(THREE, "b", FEW), "a b c"), 2.0)
    assert shown(held, edited(held.view.state, "b", End(1, Why.FENCED)), 3.0).past.failed_at == (1.0,)  # type: ignore[arg-type]


def test_only_as_many_failures_are_remembered_as_the_limit_allows() -> None:
    state, held = THREE, of_b(THREE)
    for now in (1.0, 2.0, 3.0):
        ended = failed(state, "b", FEW)
        held, state = shown(held, ended, now), arrived(ended, "a b c")
        held = shown(held, state, now + 0.5)
    assert held.past.failed_at == (2.0, 3.0)


def test_each_cool_down_is_twice_as_long_as_the_last_and_bounded() -> None:
    assert [LIMIT.told(2, asides).cooldown_s for asides in (0, 1, 2)] == [60.0, 120.0, 240.0]
    assert LIMIT.told(1, 5) == Failing(1) and LIMIT.told(3, 0) == Failing(3, 60.0)
    assert LIMIT.told(2, 10**6).cooldown_s == COOLDOWN_MAX_S


def test_a_node_counts_how_often_it_was_set_aside() -> None:
    held = shown(of_b(THREE), ASIDE, 1.0)
    assert held.past.asides == 1
    again = shown(held, edited(ASIDE, "a", End(1, Why.FENCED)), 2.0)
    assert again.past.asides == 1 and shown(holding("a", THREE), ASIDE, 1.0).past.asides == 0
    assert saw(Held(Who(node("b"), profile("b"), settings(THREE.limits), Life("x"))), ASIDE, 0.0, 0.0).past.asides == 1
    assert context_of(again).failing == Failing(1)
    assert shown(but(of_b(THREE), asides=1), ASIDE, 1.0).past.asides == 2


def context_of(held: Held, now: float = 99.0) -> Any:
    return context(operation(end), held, now)


def test_a_node_that_is_set_aside_waits_for_its_cool_down_and_arrives_then() -> None:
    held = shown(of_b(FAILED), ASIDE, 10.0)
    assert action(join, held, now=10.0) == Sync(70.0)
    assert action(join, held, now=69.9, deadline=20.0) == Sync(70.0)  # a spare has no deadline
    assert action(join, held, now=70.0) == Arrive(profile("b"))
    assert context_of(of_b(THREE)).returns_at == 99.0
    assert context_of(of_b(arrived(failed(THREE, "b", FEW), "a b c"))).returns_at == 99.0


def test_its_cool_down_goes_on_while_the_rounds_of_the_others_change() -> None:
    held = shown(shown(of_b(FAILED), ASIDE, 10.0), edited(ASIDE, "a", End(1, Why.FENCED)), 30.0)
    assert action(join, held, now=30.0) == Sync(70.0)


def test_its_cool_down_begins_anew_when_it_has_slept() -> None:
    held = woke(shown(of_b(FAILED), ASIDE, 10.0), 500.0)
    assert action(join, shown(held, ASIDE, 501.0), now=501.0) == Sync(561.0)


def test_a_node_that_is_called_back_arrives_at_once() -> None:
    three = arrived(failed(running("a b c", "2:3", restarts=5), "b"), "a b c")
    held = shown(of_b(three), edited(three, "a", Evict(nodes("c"))), 1.0)
    assert action(join, held, now=1.0) == Arrive(profile("b"))


# --- what must hold


@pytest.mark.parametrize(
    ("number", "state"),
    [
        ("V17", reseated(ASIDE, a=Status.ASIDE)),
        ("V17", evolve(ASIDE, seats={**ASIDE.seats, node("b"): evolve(seat(ASIDE, "b"), failing=FEW)})),
        ("V15", evolve(ASIDE, seats={**ASIDE.seats, node("b"): evolve(seat(ASIDE, "b"), notice=Notice(1.0, "x"))})),
        ("V18", evolve(edited(ASIDE, "a", End(1, Why.FENCED)), limits=Limits(3, 3, 5))),
    ],
)
def test_a_state_that_breaks_a_law_of_those_set_aside_is_refused(number: str, state: RendezvousState) -> None:
    with pytest.raises(Violation, match=number):
        verify(state)


def test_a_closed_job_may_have_nodes_set_aside_that_it_needed() -> None:
    cancelled = Verdict(Ending.CANCELLED, 2, node("a"), Why.ASKED)
    verify(evolve(edited(ASIDE, "a", End(1, Why.FENCED)), limits=Limits(3, 3, 5), closed=cancelled))


def after(before: RendezvousState, made: RendezvousState, **seats_: Seat) -> RendezvousState:
    changed = {node(who): its for who, its in seats_.items()}
    return evolve(made, version=before.version + 1, seats={**made.seats, **changed})


ALL_BACK = arrived(FAILED, "a b")
"""All but c are back."""
BY_B = Ended(0, Why.FAILED, node("b"))


@pytest.mark.parametrize(
    ("number", "before", "made"),
    [
        ("V19", evolve(ALL_BACK, ended=evolve(BY_B, by=node("a"))), ASIDE),
        ("V19", evolve(ALL_BACK, ended=evolve(BY_B, by=node("c"))), ASIDE),
        ("V19", evolve(ALL_BACK, ended=None), ASIDE),
        ("V19", evolve(ALL_BACK, ended=evolve(BY_B, why=Why.LEFT)), ASIDE),
        ("V19", evolve(ALL_BACK, seats={**ALL_BACK.seats, node("b"): evolve(seat(ALL_BACK, "b"), failing=FEW)}), ASIDE),
        ("V19", evolve(ALL_BACK, failures=6), evolve(ASIDE, failures=6)),
        ("V19", evolve(ALL_BACK, limits=Limits(3, 3, 5)), evolve(ASIDE, limits=Limits(3, 3, 5))),
        ("V19", THREE, evolve(ASIDE, round=0, version=THREE.version + 1)),
        ("V19", FAILED, evolve(reseated(ASIDE, a=Status.EXPECTED), complete=False, version=FAILED.version + 1)),
    ],
)
def test_a_node_is_set_aside_for_its_own_failures_only_when_all_are_back_and_the_others_suffice(
    number: str, before: RendezvousState, made: RendezvousState
) -> None:
    made = evolve(made, ended=before.ended, stale_before=before.stale_before)
    findings = broken(before, evolve(made, version=before.version + 1))
    assert number in findings


def broken(before: RendezvousState, made: RendezvousState) -> str:
    """Return the numbers of what a step breaks."""
    return " ".join(number for number, _ in _of_step(before, made))


def test_a_step_that_sets_aside_as_it_should_breaks_nothing() -> None:
    assert broken(ALL_BACK, ASIDE) == broken(decode(encode(ALL_BACK)), decode(encode(ASIDE))) == ""


def test_nobody_is_called_back_without_need_and_who_comes_back_is_charged_with_nothing() -> None:
    ended = edited(ASIDE, "a", End(1, Why.FENCED))
    with pytest.raises(Violation, match="V20"):
        verify_step(ASIDE, after(ASIDE, ended, b=evolve(seat(ASIDE, "b"), status=Status.EXPECTED, failing=None)))
    one = edited(ended, "a", Arrive(profile("a")))
    called = evolve(seat(one, "b"), status=Status.EXPECTED, failing=None)
    assert "V20" in broken(one, after(one, edited(one, "c", Leave()), b=called))
    with pytest.raises(Violation, match="V20"):
        verify_step(ASIDE, after(ASIDE, ASIDE, b=evolve(seat(ASIDE, "b"), status=Status.WAITING)))
    with pytest.raises(Violation, match="V7"):
        verify_step(ASIDE, evolve(ended, target=3))


# --- on the wire, and for people


def test_what_a_node_tells_goes_through_the_store_and_costs_nobody_else_a_byte() -> None:
    assert decode(encode(ASIDE)) == ASIDE and decode(encode(FAILED)) == FAILED
    assert b"failing" not in encode(THREE) and encode(ASIDE).count(b"failing") == 1
    many = arrived(register("1:90", restarts=5), " ".join(f"n{each}" for each in range(90)))
    wide = arrived(failed(many, "n7"), " ".join(f"n{each}" for each in range(90)))
    assert decode(encode(wide)) == wide and seats(wide)["n7"] == "aside" and encode(wide)[:1] == b"\x78"


@pytest.mark.parametrize("forged", [b"[0,60.0]", b"[2,-1.0]", b"[2,1e7]", b'["2",60.0]', b"[2]"])
def test_forged_failures_are_refused(forged: bytes) -> None:
    data = encode(ASIDE).replace(b"[2,60.0]", forged)
    assert forged in data
    with pytest.raises(Refused):
        decode(data)


@pytest.mark.parametrize(
    ("failures", "cooldown_s"), [(0, 1.0), (COUNT_MAX + 1, 1.0), (1, -1.0), (1, math.nan), (1, 2 * COOLDOWN_MAX_S)]
)
def test_what_a_node_tells_refuses_bad_values_only(failures: int, cooldown_s: float) -> None:
    with pytest.raises(ValueError, match=r"failures|cooldown_s"):
        Failing(failures, cooldown_s)
    assert Failing(COUNT_MAX, COOLDOWN_MAX_S).is_too_often and not Failing(1, 0.0).is_too_often


@pytest.mark.parametrize(("failures", "within"), [(0, 1.0), (FAILURES_MAX + 1, 1.0), (1, 0.0), (1, math.inf)])
def test_a_limit_refuses_bad_values(failures: int, within: float) -> None:
    with pytest.raises(ValueError, match=r"failures|within"):
        FailureLimit(failures, within)


@pytest.mark.parametrize("failures", [1, FAILURES_MAX])
def test_a_limit_may_be_low_or_high(failures: int) -> None:
    assert FailureLimit(failures, 1.0).told(failures, 0).is_too_often


def test_people_read_who_is_set_aside_and_why() -> None:
    assert explain(ASIDE, node("b")) == "round 1: spare, set aside after 2 failures, for 01:00"
    assert explain(ASIDE, None) == "round 1: 2 nodes running · set aside: b"
    once = evolve(seat(ASIDE, "b"), failing=Failing(1, 60.0))
    assert set_aside(once) == "set aside after 1 failure, for 01:00"
    assert set_aside(seat(THREE, "b")) == "set aside"


def test_every_edit_but_a_failure_leaves_a_seat_without_failures() -> None:
    edits: tuple[Edit, ...] = (End(0, Why.FENCED), Leave(), Evict(nodes("a")))
    assert not [name(who) for edit in edits for who, its in edited(THREE, "b", edit).seats.items() if its.failing]


# --- a node that leaves instead of being set aside

LEAVES = FailureLimit(2, 60.0, leaves=True)
CHARGED = failed(THREE, "b", Failing(2))


def leaving(state: RendezvousState, *failed_at: float, late_since: float | None = None) -> Held:
    """Return what node b holds of this state, whose failures were at these times."""
    held = but(holding("b", state, Settings(state.limits, max_node_failures=LEAVES), 0.0), failed_at=failed_at)
    return held if late_since is None else saw(held, state, late_since, late_since)


def test_a_node_that_is_to_leave_tells_no_cool_down() -> None:
    assert told(but(leaving(THREE, 5.0), mine=THREE.world_id), 10.0) == Failing(2)
    assert ASIDE.census[Status.ASIDE] and not arrived(CHARGED, "a b c").census[Status.ASIDE]


def test_it_leaves_once_all_others_are_back_since_a_death_may_explain_its_last_failure() -> None:
    both = leaving(CHARGED, -20.0, 40.0)
    assert isinstance(action(join, both, 41.0), Sync)
    back = arrived(CHARGED, "a c")
    assert action(join, leaving(back, 1.0, 61.0), 62.0) == Fail(Why.UNFIT)
    for failed_at in ((1.0, 61.5), (61.0,)):
        assert isinstance(action(join, leaving(back, *failed_at), 62.0), Arrive)


def test_it_waits_for_the_others_no_longer_than_they_may_take() -> None:
    held = leaving(CHARGED, 1.0, 2.0, late_since=3.0)
    until = action(join, held, 3.0)
    assert isinstance(until, Sync) and 45.0 <= until.until <= 48.0
    assert action(join, held, until.until) == Fail(Why.UNFIT)


def test_a_failure_that_ends_the_job_ends_it_as_ever() -> None:
    last = arrived(failed(running("a b c", "1:3"), "b", Failing(2)), "a c")
    assert isinstance(action(join, leaving(last, 1.0, 2.0), 3.0), Arrive)


def starts(*lost: str, of: str = "a c") -> RendezvousState:
    """Return the register of a complete round in which these starts of b were lost, one after the other."""
    state = running(of, "1:3", restarts=5)
    for each in lost:
        state = edited(arrived(state, each), "a", Evict(nodes(each)))
    return state


def comes(state: RendezvousState, who: str, limit: FailureLimit = LEAVES) -> Any:
    held = holding(who, state, Settings(state.limits, max_node_failures=limit), 0.0)
    return action(join, held, 1.0)


def test_a_start_that_follows_lost_ones_too_soon_leaves_before_it_takes_a_seat() -> None:
    assert starts("b#10", "b#20").lost_starts == (node("b#10"), node("b#20"))
    assert comes(starts("b#10", "b#20"), "b#70") == Fail(Why.UNFIT)
    assert comes(arrived(starts("b#10"), "b#20"), "b#70") == Fail(Why.UNFIT), "the start that it takes over is lost"
    assert isinstance(comes(starts("b#10", "b#20"), "b#71"), Arrive)
    assert isinstance(comes(starts("b#20"), "b#70"), Arrive)
    assert isinstance(comes(starts("b#10", "b#20"), "d#30"), Arrive)
    assert isinstance(comes(starts("b#10", "b#20"), "b#70", LIMIT), Arrive)


def test_what_it_says_of_itself_tells_both_reasons() -> None:
    of = Settings(THREE.limits, max_node_failures=LEAVES)
    lost = context(operation(join), holding("b#70", starts("b#10", "b#20"), of, 0.0), 1.0)
    assert words(Why.UNFIT, lost) == "it was lost and started again 2 times within 60 s"
    fails = context(operation(join), leaving(CHARGED, 1.0, 2.0), 3.0)
    assert words(Why.UNFIT, fails) == "it was the first cause of 2 failures within 60 s"


def test_a_node_that_leaves_takes_its_lost_starts_along_so_that_the_next_one_may_come() -> None:
    state = starts("b#10", "d#10", "b#20")
    held = holding("b#70", state, Settings(state.limits, max_node_failures=LEAVES), 0.0)
    assert action(leave, held, 1.0) == Leave()
    left = edited(state, "b#70", Leave())
    assert left.lost_starts == (node("d#10"),) and isinstance(comes(left, "b#71"), Arrive)
    assert action(leave, holding("b#70", left), 1.0) == Finish(Settled())


def test_the_register_forgets_the_oldest_of_too_many_lost_starts_and_keeps_none_that_was_drained() -> None:
    many = starts(*(f"b#{each}" for each in range(1, STARTS_MAX + 3)))
    assert many.lost_starts == tuple(node(f"b#{each}") for each in range(3, STARTS_MAX + 3))
    assert decode(encode(many)) == many
    drained = edited(THREE, "b", Drain(node("b"), Notice(9.0, "a test")))
    assert edited(drained, "a", Evict(nodes("b"))).lost_starts == ()


def test_a_seat_with_notice_that_a_start_takes_over_is_no_lost_start() -> None:
    state = running("a b#10")
    assert lost_starts(state, node("b#20"), 100.0) == 1
    drained = edited(state, "b#10", Drain(node("b#10"), Notice(30.0, "a test")))
    assert lost_starts(drained, node("b#20"), 100.0) == 0


def test_one_that_has_lost_its_seat_is_refused() -> None:
    without = edited(arrived(CHARGED, "a c"), "a", Evict(nodes("b")))
    assert action(join, leaving(without, 1.0, 2.0), 3.0) == Fail(Why.UNFIT)
