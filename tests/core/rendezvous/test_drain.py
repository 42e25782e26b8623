"""A drained node: what its notice makes of the register, what must hold of that, and who may give it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve
from worlds import action, arrived, edited, holding, node, nodes, operation, register, reseated, running, seats

from elastic.core.rendezvous import (
    Action,
    Agenda,
    Arrive,
    Close,
    Done,
    Drain,
    Edit,
    End,
    Evict,
    Fail,
    Finish,
    Leave,
    Overdue,
    Raise,
    RendezvousState,
    Request,
    Restore,
    Settled,
    Status,
    Sync,
    Violation,
    drain,
    join,
    restored,
    verify,
    verify_restore,
    verify_step,
    watch,
)
from elastic.core.rendezvous.agenda import answered, begun, submitted
from elastic.core.rendezvous.codec import Refused, decode, encode
from elastic.core.rendezvous.context import context
from elastic.core.rendezvous.state import AWAY
from elastic.core.world import NAME_MAX, NOTICE_MAX_S, Ending, Notice, Verdict, Why

SOON, LATER = Notice(10.0, "an operator"), Notice(60.0, "the signal SIGUSR1")


def drained(state: RendezvousState, who: str, notice: Notice = SOON) -> RendezvousState:
    return edited(state, "operator", Drain(node(who), notice))


THREE = running("a b c", "1:3", restarts=1)
B_DRAINED = drained(THREE, "b")

# --- what the edit makes


def test_a_member_stays_one_until_it_leaves_and_the_others_form_the_next_world_at_once() -> None:
    assert B_DRAINED.world == THREE.world and B_DRAINED.draining == (node("b"),)
    left = edited(B_DRAINED, "b", Leave())
    assert (left.round, left.failures, seats(left)) == (1, 0, {"a": "expected", "c": "expected"})
    together = arrived(left, "a c")
    assert together.complete and together.members == (node("a"), node("c"))


@pytest.mark.parametrize("why", [Why.FAILED, Why.UPSCALE, Why.FENCED])
def test_nobody_waits_for_a_drained_member_when_its_round_ends(why: Why) -> None:
    ended = edited(B_DRAINED, "a", End(0, why))
    assert seats(ended) == {"a": "expected", "b": "leaving", "c": "expected"} and ended.target == 2
    assert edited(ended, "b", Arrive(THREE.seats[node("b")].profile)) == ended
    together = arrived(ended, "a c")
    assert together.complete and node("b") not in together.members
    assert seats(edited(together, "b", Leave())) == {"a": "in", "c": "in"}


def test_a_spare_takes_the_place_of_a_drained_node_in_the_write_by_which_it_leaves() -> None:
    left = edited(drained(arrived(running("a b"), "c"), "b"), "b", Leave())
    assert seats(left) == {"a": "expected", "c": "in"}


def test_beside_a_drained_member_every_waiter_is_a_spare_and_has_no_deadline() -> None:
    waits = arrived(running("a b", "1:3"), "c")
    assert waits.wait_list == (node("c"),) and waits.redundancy_list == ()
    notice = drained(waits, "b", LATER)
    assert notice.wait_list == () and notice.redundancy_list == (node("c"),) and notice.is_spare(node("c"))
    assert isinstance(action(join, holding("c", notice), now=10, deadline=10), Sync)
    assert action(join, holding("c", waits), now=10, deadline=10) == Leave()
    assert seats(edited(notice, "b", Leave())) == {"a": "expected", "c": "in"}
    assert edited(notice, "b", Done(0)).redundancy_list == (node("c"),)  # the round is finishing


def test_a_node_without_a_world_is_on_its_way_out_at_once() -> None:
    ended = arrived(edited(THREE, "a", End(0, Why.FAILED)), "a")
    assert seats(drained(ended, "b")) == {"a": "in", "b": "leaving", "c": "expected"}
    assert drained(ended, "b").target == 2
    assert seats(drained(ended, "a")) == {"a": "leaving", "b": "expected", "c": "expected"}
    assert seats(drained(arrived(running("a b"), "c"), "c"))["c"] == "leaving"
    last = drained(arrived(ended, "b"), "c")
    assert last.complete and last.members == nodes_in_order("a b")


def nodes_in_order(names: str) -> tuple[object, ...]:
    return tuple(node(name) for name in names.split())


def test_a_drain_lowers_no_target_that_a_restored_round_has_already_given_up() -> None:
    late = edited(arrived(edited(running("a b c", "3:5", restarts=1), "b", End(0, Why.FAILED)), "b"), "b", Overdue(1))
    again = restored(Restore(arrived(late, "a"), "another"), None)
    assert seats(again) == {"b": "expected", "a": "expected"} and again.target == 1
    both = drained(drained(again, "a"), "b")
    assert seats(both) == {"b": "leaving", "a": "leaving"} and both.target == 0


def test_a_done_member_stays_done_and_goes_without_an_end() -> None:
    done = drained(edited(THREE, "b", Done(0)), "b")
    assert seats(done)["b"] == "done" and done.draining == ()
    assert seats(edited(done, "b", Leave()))["b"] == "gone"


def test_only_a_sooner_notice_changes_anything_and_nobody_who_has_left_gets_one() -> None:
    assert drained(B_DRAINED, "b", LATER) is B_DRAINED
    sooner = drained(drained(THREE, "b", LATER), "b")
    assert sooner.seats[node("b")].notice == SOON
    assert drained(THREE, "z") is THREE
    gone = edited(edited(THREE, "b", Done(0)), "b", Leave())
    assert drained(gone, "b") is gone


def test_a_leaving_node_takes_no_room_and_its_death_is_no_news() -> None:
    leaving = edited(B_DRAINED, "a", End(0, Why.UPSCALE))
    assert leaving.room == 1
    assert seats(edited(arrived(leaving, "a c"), "a", Evict(nodes("b")))) == {"a": "in", "c": "in"}


def test_the_failure_that_a_drained_nodes_death_led_to_is_refunded() -> None:
    failed = edited(B_DRAINED, "a", End(0, Why.FAILED))
    assert failed.failures == 1
    lost = edited(failed, "a", Evict(nodes("b")))
    assert lost.failures == 0 and lost.ended is not None and lost.ended.why is Why.LOST


def test_a_restore_drops_who_was_on_its_way_out_and_keeps_the_notice_of_a_member() -> None:
    for held, left in ((B_DRAINED, "a b c"), (edited(B_DRAINED, "a", End(0, Why.UPSCALE)), "a c")):
        deed = Restore(held, "another")
        back = restored(deed, None)
        verify_restore(deed, None, back)
        assert list(back.seats) == list(nodes_in_order(left))
    assert restored(Restore(B_DRAINED, "another"), None).draining == (node("b"),)


# --- what must hold

LEAVING = edited(B_DRAINED, "a", End(0, Why.UPSCALE))


def broken(state: RendezvousState) -> str:
    with pytest.raises(Violation) as caught:
        verify(state)
    return caught.value.number


def with_seat(state: RendezvousState, who: str, **changes: Any) -> RendezvousState:
    seats = {**state.seats, node(who): evolve(state.seats[node(who)], **changes)}
    return evolve(state, seats=seats)


@pytest.mark.parametrize(
    "state",
    [
        with_seat(LEAVING, "b", status=Status.EXPECTED),
        with_seat(LEAVING, "b", notice=None),
        with_seat(arrived(LEAVING, "a"), "a", notice=SOON),
        with_seat(arrived(running("a b"), "c"), "c", notice=SOON),
    ],
    ids=["expected back", "without notice", "in an open round", "as a spare"],
)
def test_V15_a_drained_seat_is_a_members_or_on_its_way_out(state: RendezvousState) -> None:
    assert broken(state) == "V15"


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        (B_DRAINED, {"notice": None}),
        (B_DRAINED, {"notice": LATER}),
        (arrived(LEAVING, "a c"), {"status": Status.IN}),
        (arrived(LEAVING, "a c"), {"status": Status.DONE}),
    ],
    ids=["taken back", "later", "in a world again", "done"],
)
def test_V16_a_notice_stands_until_its_node_has_no_seat(before: RendezvousState, changes: dict[str, object]) -> None:
    with pytest.raises(Violation) as caught:
        verify_step(before, with_seat(evolve(before, version=before.version + 1), "b", **changes))
    assert caught.value.number == "V16"


def test_V7_counts_a_drained_member_that_is_lost_once() -> None:
    before = drained(THREE, "b")
    verify_step(before, edited(before, "a", Evict(nodes("b"))))


def test_V10_and_V7_hold_for_the_members_without_notice() -> None:
    waiting = with_seat(LEAVING, "c", status=Status.WAITING)
    for made, number in ((evolve(LEAVING, target=3), "V7"), (waiting, "V10")):
        with pytest.raises(Violation) as caught:
            verify_step(B_DRAINED, made)
        assert caught.value.number == number


# --- who gives it


def asks(state: RendezvousState | None, who: str, edit: Drain, forced: bool = False, now: float = 0.0) -> Action:
    held = holding(who, state)
    wants = evolve(operation(drain), drain=edit, forced=forced)
    return drain(context(wants, held, now), 5.0)


def test_an_operator_drains_a_node_that_the_job_does_not_need() -> None:
    edit = Drain(node("b"), SOON)
    assert asks(THREE, "operator", edit) == edit
    assert asks(B_DRAINED, "operator", edit) == Finish(Settled())
    assert asks(THREE, "operator", edit, now=5.0) == asks(THREE, "operator", edit, now=9.0) == Fail(Why.UNCONFIRMED)
    assert asks(None, "operator", edit) == Fail(Why.NO_JOB)
    assert asks(THREE, "operator", Drain(node("z"), SOON)) == Fail(Why.NO_NODE)
    verdict = Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)
    assert asks(edited(THREE, "a", Close(verdict)), "operator", edit) == Finish(verdict)


@pytest.mark.parametrize("status", AWAY)
@pytest.mark.parametrize("forced", [False, True])
def test_a_node_that_has_gone_is_none_that_can_be_given_notice(status: Status, forced: bool) -> None:
    assert asks(reseated(THREE, b=status), "operator", Drain(node("b"), SOON), forced) == Fail(Why.NO_NODE)


def test_an_operator_who_does_not_insist_leaves_the_job_the_nodes_that_it_needs() -> None:
    edit = Drain(node("b"), SOON)
    assert asks(running("a b"), "operator", edit) == Fail(Why.NEEDED)
    assert asks(running("a b"), "operator", edit, forced=True) == edit
    assert asks(running("a b"), "b", edit) == edit
    assert asks(running("a b"), "a", edit) == Fail(Why.NEEDED)
    assert [asks(running("a b c", "3"), "z", Drain(node(who), SOON)) for who in "abc"] == [Fail(Why.NEEDED)] * 3
    assert [asks(running("a b c", "2:3"), "z", Drain(node(who), SOON)) for who in "abc"] == [
        Drain(node(who), SOON) for who in "abc"
    ]
    assert asks(arrived(running("a b"), "c"), "operator", edit) == edit  # the spare takes its place
    assert asks(drained(arrived(running("a b"), "c"), "c"), "operator", edit) == Fail(Why.NEEDED)
    three = running("a b c", "2:3")
    assert asks(three, "operator", edit) == edit
    assert asks(drained(three, "c"), "operator", edit) == Fail(Why.NEEDED)  # c is in, and has notice
    for status in (Status.GONE, Status.ABSENT):
        assert asks(reseated(three, c=status), "operator", edit) == Fail(Why.NEEDED)


def test_a_leaving_node_neither_joins_nor_does_chores() -> None:
    together = arrived(LEAVING, "a c")
    assert action(join, holding("b", together, ran=0), deadline=9.0) == Sync(9.0)
    for now in (9.0, 99.0):
        assert action(join, holding("b", together, ran=0), now=now, deadline=9.0) == Leave()


def test_no_newcomer_ends_the_round_of_a_drained_member() -> None:
    held = holding("a", arrived(drained(running("a b", "1:3"), "b"), "c"), ran=0)
    assert action(watch, held, now=99.0) == Sync(math.inf)
    held = holding("a", arrived(running("a b", "1:3"), "c"), ran=0)
    assert action(watch, held, now=99.0) == End(0, Why.UPSCALE)


@pytest.mark.parametrize("answer", [Settled(), Raise(Fail(Why.UNCONFIRMED))])
def test_a_node_that_has_drained_itself_goes_on_as_it_was(answer: Settled | Raise) -> None:
    held = holding("b", THREE, ran=0)
    agenda = submitted(Agenda(watching=True), Request(drain, drain=Drain(node("b"), SOON)))
    agenda, held, _ = begun(agenda, held, 0.0, 0.0)
    assert agenda.operation and agenda.operation.drain == Drain(node("b"), SOON)
    agenda = submitted(agenda, Request(join))
    assert answered(agenda, held, answer)[0] == Agenda((Request(join),), watching=True)


# --- on the wire


def test_a_notice_goes_through_the_store_and_costs_nobody_else_a_byte() -> None:
    assert decode(encode(B_DRAINED)) == B_DRAINED
    assert b"notice" not in encode(THREE) and encode(B_DRAINED).count(b"notice") == 1


@pytest.mark.parametrize("told", [b'[-1,"x"]', b'[1e7,"x"]', b'[1,""]', b'["soon","x"]', b"[1]"])
def test_a_forged_notice_is_refused(told: bytes) -> None:
    data = encode(B_DRAINED).replace(b'[10.0,"an operator"]', told)
    assert told in data
    with pytest.raises(Refused):
        decode(data)


@pytest.mark.parametrize(
    ("deadline", "source"),
    [(-1.0, "x"), (math.nan, "x"), (2 * NOTICE_MAX_S, "x"), (1.0, ""), (1.0, "x" * (NAME_MAX + 1))],
)
def test_a_notice_refuses_bad_values(deadline: float, source: str) -> None:
    with pytest.raises(ValueError, match=r"deadline_s|source"):
        Notice(deadline, source)


def test_every_edit_but_a_drain_leaves_a_seat_without_notice() -> None:
    edits: tuple[Edit, ...] = (End(0, Why.FAILED), Done(0), Leave(), Evict(nodes("b")))
    made = [edited(THREE, "a", edit) for edit in edits]
    assert not [state for state in made if any(seat.notice for seat in state.seats.values())]
    assert reseated(register("1")) == register("1")
