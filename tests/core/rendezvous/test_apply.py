"""Edits and settle: the state that each makes (docs/protocol.md#edits)."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import arrived, edited, node, nodes, profile, register, running, seats

from elastic.core.rendezvous import (
    Arrive,
    Close,
    Complete,
    Done,
    Edit,
    End,
    Ended,
    Evict,
    Leave,
    Limits,
    Overdue,
    RendezvousState,
    Restore,
    apply,
    restored,
)
from elastic.core.rendezvous.state import LOST_MAX
from elastic.core.world import Ending, Verdict, Why

FAILED = End(0, Why.FAILED)


def returning(names: str, size: str = "", restarts: int = 1, back: str = "") -> RendezvousState:
    """Return round 1 after the first node's failure has ended round 0. The nodes in `back` have returned."""
    return arrived(edited(running(names, size, restarts), names.split()[0], FAILED), back)


def given_back(state: RendezvousState) -> RendezvousState:
    """Return what a survivor writes into an empty store."""
    return restored(Restore(state, "again"), None)


def leaves_unchanged(state: RendezvousState, who: str, edit: Edit) -> bool:
    return apply(state, edit, node(who)) is state


# --- every edit


def test_a_change_moves_the_version_by_one_and_no_change_returns_the_same_state() -> None:
    state = register("2")
    once = edited(state, "a", Arrive(profile("a")))
    assert once.version == state.version + 1
    assert apply(once, Arrive(profile("a")), node("a")) is once


@pytest.mark.parametrize(
    "edit",
    [
        Arrive(profile("a")),
        Leave(),
        FAILED,
        Done(0),
        Evict(nodes("a b")),
        Complete(0),
        Overdue(0),
        Close(Verdict(Ending.LIMIT, 0, node("a"), Why.ASKED)),
    ],
    ids=lambda edit: type(edit).__name__,
)
def test_once_closed_every_edit_is_nothing(edit: Edit) -> None:
    closed = edited(running(), "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)))
    assert leaves_unchanged(closed, "a", edit)


@pytest.mark.parametrize("round", [999, 1_001])
def test_an_edit_of_an_earlier_or_a_later_round_does_nothing(round: int) -> None:
    # A thousand rounds in: numbers that Python does not keep as single objects.
    runs, waits, returns = running(size="1:2"), arrived(register("1:2"), "a"), returning("a b", back="a")
    for state, edits in (
        (runs, (lambda of: End(of, Why.FAILED), Done)),
        (waits, (Complete,)),
        (returns, (Overdue,)),
    ):
        late = evolve(state, round=1_000)
        for edit in edits:
            assert leaves_unchanged(late, "a", edit(round))
            assert not leaves_unchanged(late, "a", edit(int("1000")))


# --- arrive


def test_arrive_seats_a_newcomer_behind_all_others() -> None:
    state = arrived(running("b a", size="2"), "c")
    assert seats(state) == {"b": "in", "a": "in", "c": "waiting"}
    assert state.next_order == 3


def test_arrive_takes_an_expected_node_back_with_its_new_endpoint_and_its_old_order() -> None:
    state = edited(returning("a b c"), "b", Arrive(profile("b", port=1234)))
    assert seats(state) == {"a": "expected", "b": "in", "c": "expected"}
    assert state.seats[node("b")].profile.endpoint.port == 1234
    assert state.seats[node("b")].order == 1


def test_arrive_does_nothing_for_a_node_that_is_seated_and_not_expected() -> None:
    assert leaves_unchanged(running(), "a", Arrive(profile("a", port=1)))


def test_arrive_evicts_the_earlier_incarnation_of_its_slot() -> None:
    state = edited(arrived(register("3"), "a b"), "a#2", Arrive(profile("a")))
    assert seats(state) == {"b": "in", "a#2": "in"}


def test_arrive_of_a_later_incarnation_ends_the_round_that_the_earlier_one_is_in() -> None:
    state = edited(running(), "a#2", Arrive(profile("a")))
    assert state.round == 1
    assert state.ended == Ended(0, Why.LOST, node("a#2"))
    assert seats(state) == {"b": "expected", "a#2": "in"}


def test_arrive_does_nothing_when_a_later_incarnation_of_its_slot_is_seated() -> None:
    assert leaves_unchanged(arrived(register("3"), "a#2"), "a", Arrive(profile("a")))


def test_arrive_of_a_later_incarnation_does_not_end_the_round_that_the_earlier_one_is_done_with() -> None:
    state = edited(edited(running(), "a", Done(0)), "a#2", Arrive(profile("a")))
    assert state.round == 0
    assert seats(state) == {"a": "gone", "b": "in", "a#2": "waiting"}


def test_arrive_of_the_next_incarnation_of_a_dead_node_refunds_nothing() -> None:
    # A hang that kills its own agent, again and again, would cost nothing for ever.
    state = edited(returning("a b", size="1:2"), "b#2", Arrive(profile("b")))
    assert (state.failures, state.ended) == (1, Ended(0, Why.FAILED, node("a")))


def test_arrive_of_the_next_incarnation_refunds_a_failure_in_a_restored_life() -> None:
    # The node may have served the store, and have died with it.
    state = edited(given_back(returning("a b", size="1:2", restarts=0)), "b#2", Arrive(profile("b")))
    assert (state.failures, state.ended) == (0, Ended(0, Why.LOST, node("a")))
    assert seats(edited(state, "a", Arrive(profile("a")))) == {"a": "in", "b#2": "in"}


def test_arrive_of_the_culprits_next_incarnation_refunds_nothing_in_a_restored_life() -> None:
    state = edited(given_back(returning("a b", size="1:2")), "a#2", Arrive(profile("a")))
    assert (state.failures, state.ended) == (1, Ended(0, Why.FAILED, node("a")))


# --- leave


def test_leave_of_a_running_member_ends_the_round_as_left_without_it() -> None:
    state = edited(running("a b", size="1:2", restarts=0), "a", Leave())
    assert (state.round, state.complete, state.failures) == (1, False, 0)
    assert state.ended == Ended(0, Why.LEFT, node("a"))
    assert seats(state) == {"b": "expected"}
    assert state.target == 1


def test_leave_of_a_done_member_keeps_its_place_in_the_world_as_gone() -> None:
    state = edited(edited(running(), "a", Done(0)), "a", Leave())
    assert seats(state) == {"a": "gone", "b": "in"}
    assert state.complete


def test_leave_of_a_gone_member_changes_nothing() -> None:
    state = edited(edited(running(), "a", Done(0)), "a", Leave())
    assert leaves_unchanged(state, "a", Leave())


def test_leave_of_an_expected_member_lowers_the_target() -> None:
    state = edited(returning("a b c", size="1:3"), "b", Leave())
    assert seats(state) == {"a": "expected", "c": "expected"}
    assert state.target == 2


def test_leave_of_one_that_is_back_in_an_open_round_drops_the_seat_and_keeps_the_target() -> None:
    state = edited(returning("a b c", size="1:3", back="b"), "b", Leave())
    assert seats(state) == {"a": "expected", "c": "expected"}
    assert state.target == 3


def test_leave_of_a_spare_drops_its_seat_only() -> None:
    before = arrived(running(), "c")
    state = edited(before, "c", Leave())
    assert (seats(state), state.round, state.complete) == ({"a": "in", "b": "in"}, 0, True)


def test_leave_of_a_node_that_is_not_seated_is_a_bump_that_voids_its_writes_in_flight() -> None:
    before = arrived(register("3"), "a")
    state = edited(before, "b", Leave())
    assert state.version == before.version + 1
    assert state.stale_before == state.version
    assert state == evolve(before, version=state.version, stale_before=state.version)


# --- end


def test_end_expects_every_member_back_and_counts_one_failure() -> None:
    state = edited(edited(running("a b c", restarts=1), "b", Done(0)), "c", FAILED)
    assert (state.round, state.complete, state.failures, state.target) == (1, False, 1, 3)
    assert seats(state) == {"a": "expected", "b": "expected", "c": "expected"}
    assert (state.quorum_at, state.ended) == (None, Ended(0, Why.FAILED, node("c")))
    assert state.stale_before == state.version


@pytest.mark.parametrize("version", [7, 8])
def test_end_voids_all_proposals_of_the_round_that_it_ends(version: int) -> None:
    assert edited(evolve(running(), version=version, stale_before=3), "a", FAILED).stale_before == version + 1


def test_end_drops_a_member_that_has_gone_after_it_was_done() -> None:
    state = edited(edited(running("a b", size="1:2", restarts=1), "a", Done(0)), "a", Leave())
    state = edited(state, "b", FAILED)
    assert (seats(state), state.target) == ({"b": "expected"}, 1)


@pytest.mark.parametrize("why", [Why.UPSCALE, Why.FENCED])
def test_end_for_another_reason_than_a_failure_costs_nothing(why: Why) -> None:
    assert edited(running(), "a", End(0, why)).failures == 0


def test_end_does_nothing_for_another_round_an_open_round_or_one_that_is_no_member() -> None:
    state = arrived(running(), "c")
    assert leaves_unchanged(state, "a", End(1, Why.FAILED))
    assert leaves_unchanged(state, "c", FAILED)
    assert leaves_unchanged(state, "d", FAILED)
    assert leaves_unchanged(arrived(register("2"), "a"), "a", FAILED)


def test_end_leaves_spares_waiting_while_the_members_are_expected_back() -> None:
    state = edited(arrived(running(restarts=1), "c"), "a", FAILED)
    assert seats(state) == {"a": "expected", "b": "expected", "c": "waiting"}


# --- done


def test_done_marks_a_member_of_the_running_round() -> None:
    assert seats(edited(running(), "a", Done(0))) == {"a": "done", "b": "in"}


def test_done_does_nothing_for_another_round_an_open_round_or_one_that_does_not_run() -> None:
    state = arrived(edited(running(), "a", Done(0)), "c")
    assert leaves_unchanged(state, "b", Done(1))
    assert leaves_unchanged(state, "a", Done(0))
    assert leaves_unchanged(state, "c", Done(0))
    assert leaves_unchanged(arrived(register("2"), "a"), "a", Done(0))


# --- evict


def test_evict_of_a_running_member_ends_the_round_as_lost_without_it() -> None:
    state = edited(arrived(running(), "c"), "a", Evict(nodes("b")))
    assert (state.round, state.failures, state.target) == (1, 0, 1)
    assert state.ended == Ended(0, Why.LOST, node("a"))
    assert seats(state) == {"a": "expected", "c": "in"}


def test_evict_names_those_who_are_lost_for_people_in_every_round_that_ended() -> None:
    ended = edited(running("a b c d", size="4"), "a", Evict(nodes("c b"))).ended
    assert ended is not None and ended.lost == ("b", "c")
    later = edited(returning("a b c", size="1:4"), "c", Evict(nodes("a b")))
    again = edited(later, "c", Evict(nodes("c"))).ended
    assert again is not None and again.lost == ("a", "b", "c")
    assert edited(arrived(register("3"), "a b"), "a", Evict(nodes("b"))).ended is None


def test_the_register_names_a_lost_node_once_and_a_few_of_many() -> None:
    names = [f"n{number:02d}" for number in range(LOST_MAX + 3)]
    state = edited(running(f"a {' '.join(names)}", size=str(LOST_MAX + 4)), "a", Evict(nodes(" ".join(names))))
    assert state.ended is not None and state.ended.lost == tuple(names[-LOST_MAX:])
    state = edited(edited(state, names[-1], Arrive(profile(names[-1]))), "a", Evict(nodes(names[-1])))
    assert state.ended is not None and state.ended.lost == tuple(names[-LOST_MAX:])


def test_evict_of_a_done_member_or_a_spare_does_not_end_the_round() -> None:
    before = arrived(edited(running(), "a", Done(0)), "c d")
    state = edited(before, "b", Evict(nodes("a c")))
    assert (state.round, seats(state)) == (0, {"a": "gone", "b": "in", "d": "waiting"})


def test_evict_of_all_the_dead_at_once_leaves_none_of_them_seated() -> None:
    before = arrived(edited(running("a b c", size="1:3"), "a", Done(0)), "d")
    state = edited(before, "c", Evict(nodes("a b d")))
    assert (state.ended, seats(state), state.target) == (Ended(0, Why.LOST, node("c")), {"c": "expected"}, 1)


def test_evict_in_an_open_round_drops_seats_and_lowers_the_target_by_the_expected_ones() -> None:
    state = edited(returning("a b c", size="1:4", back="b"), "c", Evict(nodes("a b")))
    assert (seats(state), state.target, state.round) == ({"c": "expected"}, 2, 1)


@pytest.mark.parametrize("dead", ["d", "", "a"])
def test_evict_does_nothing_when_none_of_them_is_seated_or_all_of_them_are_gone(dead: str) -> None:
    state = edited(edited(running(), "a", Done(0)), "a", Leave())
    assert leaves_unchanged(state, "b", Evict(nodes(dead)))


def test_evict_refunds_the_failure_when_a_member_never_came_back() -> None:
    # It died unseen, and that made the workers of its peer fail: the loss was the cause.
    state = edited(returning("a b", size="1:2"), "a", Evict(nodes("b")))
    assert (state.failures, state.ended) == (0, Ended(0, Why.LOST, node("a")))


def test_evict_refunds_one_failure_however_many_members_are_dead() -> None:
    state = returning("a b c", size="1:3")
    state = edited(edited(state, "a", Evict(nodes("b"))), "a", Evict(nodes("c")))
    assert state.failures == 0


def test_evict_refunds_one_failure_of_many() -> None:
    state = evolve(returning("a b c", restarts=9), failures=4)
    assert apply(state, Evict(nodes("b")), node("a")).failures == 3


def test_evict_refunds_when_the_culprit_is_dead_beside_another() -> None:
    assert edited(returning("a b c", size="1:3"), "c", Evict(nodes("a b"))).failures == 0


def test_evict_refunds_nothing_for_the_culprits_own_death() -> None:
    state = edited(returning("a b", size="1:2"), "b", Evict(nodes("a")))
    assert (state.failures, state.ended) == (1, Ended(0, Why.FAILED, node("a")))


def test_evict_refunds_nothing_for_one_that_had_come_back() -> None:
    assert edited(returning("a b c", size="1:3", back="b"), "a", Evict(nodes("b"))).failures == 1


def test_evict_refunds_nothing_when_the_round_did_not_end_by_a_failure() -> None:
    state = edited(running("a b c", size="1:3", restarts=1), "a", Leave())
    assert edited(state, "c", Evict(nodes("b"))).ended == Ended(0, Why.LEFT, node("a"))


def test_evict_in_a_first_round_that_has_not_begun_has_nothing_to_refund() -> None:
    assert seats(edited(arrived(register("3"), "a b"), "a", Evict(nodes("b")))) == {"a": "in"}


def test_evict_refunds_also_over_budget_so_that_the_job_goes_on() -> None:
    state = returning("a b", size="1:2", restarts=0, back="a")
    assert state.over_budget
    state = edited(state, "a", Evict(nodes("b")))
    assert (state.failures, state.closed, state.complete) == (0, None, True)


# --- complete, overdue, close


def test_complete_makes_a_world_of_the_nodes_that_are_in() -> None:
    state = edited(arrived(register("1:3"), "a b"), "a", Complete(0))
    assert state.complete
    assert [member.node for member in state.world.members] == [node("a"), node("b")]


def test_complete_does_nothing_below_the_minimum_or_for_another_round_or_while_somebody_is_expected() -> None:
    assert leaves_unchanged(arrived(register("2:3"), "a"), "a", Complete(0))
    assert leaves_unchanged(arrived(register("1:3"), "a"), "a", Complete(1))
    assert leaves_unchanged(returning("a b", size="1:2", back="a"), "a", Complete(1))
    assert leaves_unchanged(running(), "a", Complete(0))


def test_overdue_drops_the_expected_and_goes_on_with_the_nodes_that_are_back() -> None:
    state = edited(returning("a b c", size="2:4", back="a b"), "a", Overdue(1))
    assert (seats(state), state.target, state.complete) == ({"a": "in", "b": "in"}, 2, True)


def test_overdue_does_nothing_in_another_round_or_when_nobody_is_expected() -> None:
    state = returning("a b", back="a")
    assert leaves_unchanged(state, "a", Overdue(0))
    assert leaves_unchanged(arrived(register("3"), "a"), "a", Overdue(0))


def test_one_that_was_overdue_gets_a_seat_again_when_it_arrives() -> None:
    state = edited(returning("a b c", size="2:3", restarts=1, back="a b"), "a", Overdue(1))
    assert seats(arrived(state, "c")) == {"a": "in", "b": "in", "c": "waiting"}


def test_close_writes_the_verdict() -> None:
    verdict = Verdict(Ending.FAILED, 0, node("a"), Why.CANNOT_START)
    state = edited(running(), "a", Close(verdict))
    assert (state.closed, state.complete, seats(state)) == (verdict, True, {"a": "in", "b": "in"})


# --- settle


def test_settle_a_complete_round_closes_as_succeeded_when_all_members_are_done_or_gone() -> None:
    state = edited(edited(running(), "a", Done(0)), "a", Leave())
    state = edited(state, "b", Done(0))
    assert state.closed == Verdict(Ending.SUCCEEDED, 0, node("b"), Why.DONE)


def test_settle_1_promotes_the_longest_waiting_while_there_is_room() -> None:
    state = edited(arrived(running("a b", size="2"), "c d e"), "b", Leave())
    assert seats(state) == {"a": "expected", "c": "in", "d": "waiting", "e": "waiting"}


def test_settle_2_sets_the_quorum_when_the_minimum_is_reached_and_never_moves_it() -> None:
    state = arrived(register("2:4"), "a")
    assert state.quorum_at is None
    state = arrived(state, "b")
    assert state.quorum_at == state.version
    assert arrived(state, "c").quorum_at == state.version


def test_settle_2_clears_the_quorum_below_the_minimum() -> None:
    state = edited(arrived(register("2:4"), "a b"), "b", Leave())
    assert state.quorum_at is None
    assert arrived(state, "c").quorum_at == state.version + 1


def test_settle_3_closes_as_failed_over_budget_when_the_survivors_are_back() -> None:
    state = returning("a b", restarts=0, back="a")
    assert state.closed is None
    state = arrived(state, "b")
    assert state.closed == Verdict(Ending.FAILED, 0, node("a"), Why.FAILED)
    assert not state.complete


def test_settle_4_completes_at_the_maximum_by_the_last_arrivers_own_write() -> None:
    assert arrived(register("1:2"), "a b").complete


def test_settle_4_waits_for_a_last_call_below_the_maximum_in_the_first_round() -> None:
    assert not arrived(register("1:3"), "a b").complete


def test_settle_4_completes_a_re_rendezvous_without_last_call_when_all_are_back() -> None:
    first = edited(arrived(register("1:3", restarts=1), "a b"), "a", Complete(0))
    state = arrived(edited(first, "a", FAILED), "b")
    assert not state.complete
    assert arrived(state, "a").complete


def test_settle_4_completes_with_newcomers_beside_all_that_are_back() -> None:
    state = arrived(returning("a b", size="2:4"), "c a")
    assert not state.complete
    assert seats(arrived(state, "b")) == {"a": "in", "b": "in", "c": "in"}
    assert arrived(state, "b").complete


def test_settle_4_completes_at_a_maximum_of_many_and_expects_as_many_back() -> None:
    names = [f"n{index}" for index in range(300)]
    state = arrived(register("300"), " ".join(names[:-1]))
    assert not state.complete
    state = arrived(state, names[-1])
    assert state.complete
    assert edited(state, "n0", FAILED).target == 300


def test_settle_4_completes_when_the_last_expected_one_is_dropped() -> None:
    state = returning("a b", size="1:2", restarts=1, back="a")
    assert edited(state, "a", Evict(nodes("b"))).complete


def test_settle_4_does_not_complete_below_the_minimum_although_all_that_can_are_back() -> None:
    state = edited(running("a b", size="2"), "b", Leave())
    state = arrived(state, "a")
    assert (state.target, state.complete, state.quorum_at) == (1, False, None)


def test_a_newcomer_gets_no_seat_of_a_node_on_its_way_back() -> None:
    state = arrived(returning("a b", restarts=1), "c")
    assert (state.room, seats(state)["c"]) == (0, "waiting")


def test_a_newcomer_takes_the_free_seat_of_a_round_whose_members_are_on_the_way_back() -> None:
    first = edited(arrived(register("1:3", restarts=1), "a b"), "a", Complete(0))
    state = arrived(edited(first, "a", FAILED), "c")
    assert seats(state) == {"a": "expected", "b": "expected", "c": "in"}


def test_losing_the_only_member_hands_the_round_to_the_spare_in_the_same_write() -> None:
    state = edited(arrived(running("a", size="1"), "b"), "b", Evict(nodes("a")))
    assert (state.round, state.complete, seats(state)) == (1, True, {"b": "in"})


def test_the_limits_of_the_first_write_stay() -> None:
    assert arrived(register("1:2", restarts=3), "a").limits == Limits(1, 2, 3)
