"""One step of an operation: what is asked of the backend next."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from attrs import evolve, fields
from worlds import arrived, but, edited, heard, holding, node, nodes, operation, profile, register, reseated, running

from elastic.core.rendezvous import Action as Answer
from elastic.core.rendezvous import (
    Arrive,
    Close,
    Comparison,
    Decision,
    Done,
    End,
    Evict,
    Fail,
    Held,
    Leave,
    Limits,
    Observe,
    Raise,
    RendezvousState,
    Restore,
    Return,
    Settings,
    Settled,
    Status,
    Sync,
    Token,
    Wait,
    Who,
    Write,
    end,
    join,
    leave,
    linger,
    restored,
    saw,
    silent,
    turn,
    unanswered,
    unreadable,
    verify,
    watch,
    woke,
)
from elastic.core.rendezvous import operation as begin
from elastic.core.rendezvous.context import Context, Found, Handler
from elastic.core.rendezvous.handlers import close, done
from elastic.core.world import COUNT_MAX, Ending, Endpoint, Life, Profile, Verdict, Why, WorldId


def asked(handler: Handler, held: Held, now: float = 0.0, deadline: float = math.inf) -> Decision:
    return turn(operation(handler, deadline=deadline, why=Why.FAILED), held, now)


def trouble(ask: Decision) -> tuple[Why, str]:
    assert isinstance(ask, Raise)
    return ask.failure.why, ask.text


# --- before the register is known


def test_the_first_thing_is_to_read_the_register() -> None:
    unread = Held(Who(node("a"), profile("a"), Settings(), Life("x")))
    assert asked(join, unread, now=3) == Wait(None, 3)
    assert trouble(asked(join, unread, now=3, deadline=3)) == (Why.UNCONFIRMED, "")


def test_after_a_write_with_an_unknown_outcome_the_register_is_read_before_anything_is_decided() -> None:
    state = arrived(register("3"), "a")
    held = unanswered(holding("b", state), state.token, 2)
    assert asked(join, held, now=2, deadline=9) == Wait(state.token, 2)
    assert trouble(asked(join, held, now=9, deadline=9)) == (Why.UNCONFIRMED, "")


def test_a_spare_waits_for_the_outcome_of_its_write_beyond_its_deadline() -> None:
    spare = arrived(running(), "c")
    held = unanswered(holding("c", spare, at=0), spare.token, 5000)
    assert asked(join, held, now=5000, deadline=600) == Wait(spare.token, 5000)


def test_what_the_first_answer_shows_that_is_no_state_is_raised() -> None:
    # Not read again and again until the deadline.
    unread = Held(Who(node("a"), profile("a"), Settings(), Life("x")))
    assert trouble(asked(join, unreadable(unread, "garbage at k", 0))) == (Why.ILLEGAL, "garbage at k")


def test_an_unreadable_register_is_raised_by_one_that_must_know_what_came_of_its_write() -> None:
    held = unreadable(unanswered(holding("a", running(), ran=0), Token(Life("life"), 2), 1), "garbage", 1)
    assert trouble(asked(watch, held)) == (Why.ILLEGAL, "garbage")


# --- writes


def test_an_edit_is_written_against_the_state_it_was_decided_on() -> None:
    state = arrived(register("2"), "a")
    assert asked(join, holding("b", state)) == Write(arrived(state, "b"), state.token, Arrive(profile("b")))


def test_the_first_write_makes_the_register_out_of_nothing_with_my_life_and_limits() -> None:
    held = but(holding("a", None, Settings(limits=register("2:3", 4).limits)), nonce=Life("mine"))
    ask = asked(join, held)
    assert isinstance(ask, Write)
    assert ask.token is None
    assert (ask.state.life, ask.state.limits, ask.state.version) == (Life("mine"), register("2:3", 4).limits, 1)
    verify(evolve(ask.state))  # a value of its own: this one has been judged


def test_a_write_that_would_break_an_invariant_is_not_sent() -> None:
    def close_as_succeeded(ctx: Context, deadline: float) -> Answer:
        lying = evolve(ctx.operation, ending=Ending.SUCCEEDED, why=Why.DONE)
        return close(evolve(ctx, operation=lying), deadline)

    why, text = trouble(turn(operation(close_as_succeeded), holding("a", running(), ran=0), 0))
    assert why is Why.ILLEGAL
    assert "S14" in text


def test_an_edit_that_changes_nothing_is_not_sent() -> None:
    def idle(ctx: Context, deadline: float) -> Answer:
        return Done(7)

    why, text = trouble(turn(operation(idle), holding("a", running(), ran=0), 0))
    assert (why, "S7" in text) == (Why.ILLEGAL, True)


# --- outcomes


def test_the_outcome_is_returned() -> None:
    assert asked(join, holding("a", running())) == Return(running().world)
    assert asked(leave, holding("c", running())) == Return(Settled())


EACH_LIMIT = {
    "min_nodes": (Limits(2, 4), Limits(3, 4)),
    "max_nodes": (Limits(2, 4), Limits(2, 5)),
    "max_restarts": (Limits(2, 4, max_restarts=1), Limits(2, 4, max_restarts=2)),
    "agreed": (Limits(2, 4, agreed="--a=1"), Limits(2, 4, agreed="--a=2")),
    "give_up_after": (Limits(2, 4, give_up_after=3), Limits(2, 4, give_up_after=4)),
    "counts_failures": (Limits(2, 4, give_up_after=3), Limits(2, 4, give_up_after=3, counts_failures=True)),
    "node_unit": (Limits(2, 4), Limits(2, 4, node_unit=2)),
    "segment": (Limits(2, 4, node_unit=2, segment="rack"), Limits(2, 4, node_unit=2, segment="row")),
}


@pytest.mark.parametrize("name", [each.name for each in fields(Limits)])
def test_a_node_that_is_refused_for_one_limit_reads_how_it_differs(name: str) -> None:
    its, mine = EACH_LIMIT[name]
    assert [each.name for each in fields(Limits) if getattr(its, each.name) != getattr(mine, each.name)] == [name]
    held = holding("c", evolve(arrived(register("2:4"), "a"), limits=its), Settings(limits=mine))
    why, text = trouble(asked(join, held))
    job, agent = text.split(", ")
    assert why is Why.LIMITS
    assert job.removeprefix("the job runs with ") != agent.removeprefix("this agent was given ")
    if name == "give_up_after":
        options = "--nnodes=2:4 --max-restarts=0"
        assert text == f"the job runs with {options} {name}=3, this agent was given {options} {name}=4"


def test_a_failure_says_why_in_words() -> None:
    held = holding("c", arrived(register("1:4"), "a"), Settings(limits=register("2:4", 3).limits))
    said = "the job runs with --nnodes=1:4 --max-restarts=0, this agent was given --nnodes=2:4 --max-restarts=3"
    assert trouble(asked(join, held)) == (Why.LIMITS, said)
    agreed = evolve(arrived(register("1"), "a"), limits=Limits(agreed="--restart-scope=group"))
    held = holding("c", agreed, Settings(limits=Limits(agreed="--restart-scope=rank")))
    said = "--max-restarts=0 --restart-scope=group, this agent was given --nnodes=1:1 --max-restarts=0 --restart-scope=rank"
    assert trouble(asked(join, held)) == (Why.LIMITS, f"the job runs with --nnodes=1:1 {said}")
    state = arrived(register("1:4"), "a")
    (seat,) = state.seats.values()
    state = evolve(state, seats={node("a"): evolve(seat, profile=evolve(seat.profile, program="train.py"))})
    held = but(holding("c", state), profile=evolve(profile("c"), program="eval.py"))
    assert trouble(asked(join, held)) == (Why.PROGRAM, "a#1 runs train.py, this node was given eval.py")
    state = evolve(state, seats={node("a"): evolve(seat, profile=Profile(Endpoint("localhost", 1), host="gpu-01"))})
    held = but(holding("c", state), profile=Profile(Endpoint("10.0.0.7", 1), host="gpu-02"))
    assert asked(join, held) == Observe((node("a"),))
    for second in range(11):
        held = heard(held, {node("a"): second}, float(second), float(second))
    said = "a#1 on gpu-01 has the address localhost, this node on gpu-02 has 10.0.0.7"
    assert trouble(asked(join, held, now=10.0)) == (Why.LOOPBACK, said)
    alike = evolve(profile("a"), program="train.py", arguments="1f")
    for full, said in (
        (running("a", "1"), "a#1 runs train.py in a job of one node"),
        (running("a b", "1:2"), "a#1 runs train.py with other arguments, and its job is complete"),
    ):
        state = evolve(full, seats={who: evolve(seat, profile=alike) for who, seat in full.seats.items()})
        held = holding("c", state, Settings(state.limits, same_program=Comparison.ARGUMENTS))
        held = but(held, profile=evolve(alike, arguments="2e"))
        for second in range(11):
            held = heard(held, dict.fromkeys(state.nodes, second), float(second), float(second))
        assert trouble(asked(join, held, now=10.0)) == (Why.ARGUMENTS, said)
    held = holding("a", arrived(register("1:2"), "a#2"))
    assert asked(join, held, deadline=99) == Observe((node("a#2"),))
    assert asked(join, but(held, mine=WorldId(Life("earlier"), 0))) == Raise(
        Fail(Why.SUPERSEDED), "a later start of a has taken its seat"
    )
    gone = reseated(running("a#2 b"), **{"a#2": Status.GONE})
    said = "the last start of a is dead, and was later than this one by its clock"
    assert trouble(asked(join, holding("a", gone))) == (Why.BEHIND, said)
    waiting = "round 0: waiting for 1 of 3 nodes · here: a, c · not yet seen: 1"
    for left in (arrived(register("3"), "a"), edited(arrived(register("3"), "a c"), "c", Leave())):
        assert trouble(asked(join, holding("c", left), now=9, deadline=9)) == (Why.TIMEOUT, waiting)
    alone = edited(arrived(register("2"), "c"), "c", Leave())
    waiting = "round 0: waiting for 1 of 2 nodes · here: c · not yet seen: 1"
    assert trouble(asked(join, holding("c", alone), now=9, deadline=9)) == (Why.TIMEOUT, waiting)
    assert trouble(asked(join, holding("c", None), now=9, deadline=9)) == (Why.TIMEOUT, "nobody has arrived yet")
    runs = holding("c", running("a b", size="1:3"))
    assert trouble(asked(join, runs, now=9, deadline=9)) == (Why.TIMEOUT, "round 0: 2 nodes running")


# --- what the store lost

WORLD = running("a b", size="1:3", restarts=3)
ALL = [join, watch, end, done, leave, close, linger]


def lost(shown: RendezvousState | None = None, mine: RendezvousState = WORLD, at: float = 1.0) -> Held:
    """It holds what counts more than what it was shown then."""
    return saw(holding("a", mine, ran=0), shown, at, at)


@pytest.mark.parametrize("handler", ALL, ids=lambda handler: handler.__name__)
def test_what_the_store_lost_is_restored_before_anything_else_is_decided(handler: Handler) -> None:
    held = lost()
    deed = Restore(WORLD, held.who.nonce.nonce)
    assert asked(handler, held, now=1) == Write(restored(deed, None), None, deed)


def test_it_is_restored_over_what_is_there_against_just_that() -> None:
    forming = evolve(arrived(register("3"), "c"), life=Life("new"), job="new")
    held = lost(forming)
    deed = Restore(WORLD, held.who.nonce.nonce)
    assert asked(watch, held, now=1) == Write(restored(deed, forming), forming.token, deed)


def test_a_copy_is_restored_by_one_that_held_nothing() -> None:
    held = saw(Held(Who(node("c"), profile("c"), Settings(limits=WORLD.limits), Life("c"))), WORLD, 1, 1, here=False)
    deed = Restore(WORLD, "c")
    assert asked(join, held, now=1) == Write(restored(deed, WORLD), WORLD.token, deed)


@pytest.mark.parametrize(("jitter", "at"), [(0.0, 1.0), (0.5, 1.01), (0.999, 1.01998)])
def test_survivors_spread_their_offers_within_20_ms(jitter: float, at: float) -> None:
    held, about = lost(), operation(watch, jitter=jitter)
    waits = turn(about, held, 1.0) if jitter else turn(about, held, 0.99)
    assert isinstance(waits, Wait)
    assert waits.token is None
    assert waits.until == pytest.approx(at)
    assert turn(about, held, waits.until - 1e-6) == waits
    assert isinstance(turn(about, held, waits.until), Write)


def test_who_waits_to_restore_waits_for_what_is_there_to_change() -> None:
    forming = evolve(arrived(register("3"), "c"), life=Life("new"), job="new")
    ask = turn(operation(watch, jitter=0.5), lost(forming), 1.0)
    assert ask == Wait(forming.token, 1.01)


def test_it_is_restored_although_the_operation_is_late() -> None:
    assert isinstance(asked(join, lost(), now=9, deadline=9), Write)


def test_after_a_restore_whose_outcome_is_unknown_the_register_is_read_first() -> None:
    held = unanswered(lost(), None, 2)
    assert asked(watch, held, now=3) == Wait(WORLD.token, 3)
    seen = saw(held, None, 3, 3)
    again = asked(watch, seen, now=3)
    assert isinstance(again, Write)
    assert again.state.life == Life("life/3", 2)


def test_over_a_forged_register_of_the_last_epoch_nothing_is_restored() -> None:
    forged = evolve(arrived(register("3"), "c"), life=Life("new", COUNT_MAX), job="new")
    why, text = trouble(asked(watch, lost(forged), now=1))
    assert (why, " breaks epoch: " in text) == (Why.ILLEGAL, True)


def test_a_restore_that_would_break_an_invariant_is_not_sent() -> None:
    forged = but(lost(), instead=Found(running("a b", size="1:3"), running("a", size="1:3"), 1.0))
    why, text = trouble(asked(watch, forged, now=1))
    assert why is Why.ILLEGAL
    assert text.startswith("not written: Restore(")
    assert " breaks R4: " in text


def test_nothing_is_restored_over_a_register_that_can_be_read_no_longer() -> None:
    held = unreadable(lost(mine=running("a", size="1")), "garbage at k", 0)
    assert isinstance(asked(watch, held, now=1), Wait)
    assert trouble(asked(end, held, now=1)) == (Why.ILLEGAL, "garbage at k")


# --- sleepers


@pytest.mark.parametrize("handler", ALL, ids=lambda handler: handler.__name__)
def test_who_has_slept_looks_before_it_decides(handler: Handler) -> None:
    held = woke(holding("a", WORLD, ran=0), 100)
    assert asked(handler, held, now=100) == Wait(WORLD.token, 100)
    assert asked(handler, woke(lost(), 100), now=100) == Wait(WORLD.token, 100)


def test_who_could_not_read_the_register_before_it_slept_looks_again() -> None:
    """It gave up as it woke, though somebody had put the register right meanwhile."""
    held = woke(unreadable(holding("a", WORLD, ran=0), "garbage at k", 5), 100)
    assert asked(watch, held, now=100) == Wait(WORLD.token, 100)
    assert trouble(asked(watch, unreadable(held, "garbage at k", 102, 101), now=102)) == (Why.ILLEGAL, "garbage at k")


# --- who knows the verdict

CLOSED = edited(WORLD, "a", Close(Verdict(Ending.CANCELLED, 0, node("b"), Why.ASKED)))


def test_who_knows_the_verdict_looks_until_an_answer_to_a_later_request_shows_it() -> None:
    held = saw(holding("a", WORLD, ran=0), CLOSED, 4, 5)
    lingers = operation(linger, since=5, deadline=20)
    assert turn(lingers, held, 5) == Wait(CLOSED.token, 5)
    assert turn(lingers, saw(held, CLOSED, 4.9, 5.1), 5.1) == Wait(CLOSED.token, 5.1)
    assert turn(lingers, saw(held, CLOSED, 5.1, 5.2), 5.2) == Return(Settled())


def test_who_knows_the_verdict_restores_it_and_is_done_when_it_stands() -> None:
    held = saw(saw(holding("a", WORLD, ran=0), CLOSED, 4, 5), None, 6, 6)
    lingers = operation(linger, since=5, deadline=20)
    ask = turn(lingers, held, 6)
    assert isinstance(ask, Write)
    assert ask.state.closed == CLOSED.closed
    assert turn(lingers, saw(held, ask.state, 6, 7), 7) == Return(Settled())


def test_who_knows_the_verdict_gives_up_in_the_end() -> None:
    held = saw(holding("a", WORLD, ran=0), CLOSED, 4, 5)
    assert isinstance(turn(begin(linger, held.who.settings, 5), held, 19.9), Wait)
    assert trouble(turn(begin(linger, held.who.settings, 5), held, 20))[0] is Why.UNCONFIRMED
    assert trouble(turn(begin(linger, held.who.settings, 5), silent(held, 6), 20))[0] is Why.UNCONFIRMED


# --- trouble


def test_workers_run_on_over_an_unreadable_register() -> None:
    assert isinstance(asked(watch, unreadable(holding("a", running("a", size="1"), ran=0), "garbage", 0)), Wait)


def test_an_operation_that_must_write_ends_over_an_unreadable_register() -> None:
    held = unreadable(holding("a", running(), ran=0), "garbage at k", 0)
    assert trouble(asked(end, held)) == (Why.ILLEGAL, "garbage at k")


# --- deadlines


def test_an_outcome_that_is_not_known_long_past_the_deadline_stays_unconfirmed() -> None:
    held = unanswered(holding("a", running(), ran=0), running().token, 2)
    assert trouble(asked(leave, held, now=10, deadline=10))[0] is Why.UNCONFIRMED
    assert trouble(asked(leave, held, now=99, deadline=10))[0] is Why.UNCONFIRMED


def test_a_spare_that_found_room_has_the_join_timeout_from_then() -> None:
    spare = arrived(running("a b", size="2"), "c")
    patient = Settings(limits=spare.limits, overdue_timeout=9_999)
    held = saw(holding("c", spare, patient, at=0), edited(spare, "b", Leave()), 5000, 5000)
    held = heard(held, {node("a"): 1}, 5599, 5599)
    ask = asked(join, held, now=5599, deadline=600)
    assert ask == Wait(held.token, 5600)
    assert isinstance(asked(join, heard(held, {node("a"): 2}, 5600, 5600), now=5600, deadline=600), Write)


def test_only_joining_is_prolonged_for_a_spare() -> None:
    held = holding("c", arrived(running(), "c"), at=9)
    assert trouble(asked(leave, held, now=9, deadline=9))[0] is Why.UNCONFIRMED


def test_joining_leaving_and_closing_have_deadlines_the_others_wait_for_the_register() -> None:
    settings = Settings(join_timeout=100, leave_timeout=3, close_timeout=4)
    deadlines = {handler: begin(handler, settings, 10).deadline for handler in ALL}
    assert deadlines == {
        join: 110,
        leave: 13,
        close: 14,
        linger: 25,
        watch: math.inf,
        end: math.inf,
        done: math.inf,
    }
    assert not [handler for handler in ALL if begin(handler, settings, 10).forced]


# --- who watches whom


def beating(held: Held, *reads: tuple[float, Mapping[str, int | None]]) -> Held:
    for at, counters in reads:
        held = heard(held, {node(who): counter for who, counter in counters.items()}, at, at)
    return held


THREE = running("a b c", size="3:4")


def test_the_coordinator_reads_all_heartbeats_but_its_own() -> None:
    assert asked(watch, holding("a", THREE, ran=0), now=1) == Observe((node("b"), node("c")))


def test_the_others_read_the_coordinators() -> None:
    assert asked(watch, holding("c", THREE, ran=0), now=1) == Observe((node("a"),))


def test_the_coordinator_is_the_first_in_the_order_of_seats_whatever_its_name() -> None:
    state = arrived(register("3:4"), "b a c")
    assert asked(join, holding("a", state)) == asked(join, holding("c", state)) == Observe((node("b"),))
    assert asked(join, holding("b", state)) == Observe((node("a"), node("c")))


def test_the_next_look_is_a_heartbeat_later() -> None:
    held = beating(holding("c", THREE, ran=0), (1.0, {"a": 1}))
    assert asked(watch, held, now=1.5) == Wait(THREE.token, 2.0)
    assert asked(watch, held, now=2.0) == Observe((node("a"),))


def test_a_wait_ends_before_the_next_look_if_the_handler_wants_it() -> None:
    held = beating(holding("a", arrived(register("2:3"), "a"), at=0))
    assert asked(join, held, now=3, deadline=3.5) == Wait(held.token, 3.5)
    held = beating(holding("a", arrived(register("3:4"), "a b"), at=0), (3, {"b": 1}))
    assert asked(join, held, now=3, deadline=3.5) == Wait(held.token, 3.5)


def test_a_node_that_has_not_been_read_yet_is_read_at_once() -> None:
    held = beating(holding("a", running("a b", size="2:4"), ran=0), (1.0, {"b": 1}))
    held = saw(held, arrived(running("a b", size="2:4"), "c"), 1.1, 1.1)
    assert asked(watch, held, now=1.2) == Observe((node("b"), node("c")))


def test_everybody_reads_all_when_the_coordinator_is_silent_for_half_a_ttl_until_it_is_gone() -> None:
    held = beating(holding("c", THREE, ran=0), *((at, {"a": 1}) for at in (0.0, 1.0, 2.0)))
    assert asked(watch, held, now=3) == Observe((node("a"),))
    assert asked(watch, beating(held, (2.5, {"a": 1})), now=3) == Observe((node("a"), node("b")))
    held = beating(held, (2.6, {"a": 1}))
    assert asked(watch, held, now=3) == Observe((node("a"), node("b")))
    held = beating(held, *((2.6 + at, {"a": 1, "b": at}) for at in (1, 2, 3)))
    assert asked(watch, held, now=5.7) == Wait(THREE.token, 6.6)
    assert asked(watch, held, now=6.6 + 0.9) == Write(edited(THREE, "c", gone := Evict(nodes("a"))), THREE.token, gone)


def test_a_node_that_had_no_heartbeat_is_read_until_it_has_one() -> None:
    # The coordinator's lease ran out, and the two nodes after it are dead as well: the silence of both counts from the same
    # read, and not that of the second from half a TTL after that of the first.
    held = beating(holding("d", running("b c d", size="3:4"), ran=0), (1.0, {"b": None, "c": None}))
    assert asked(watch, held, now=2) == Observe((node("b"), node("c")))
    held = beating(held, (2.0, {"b": 1, "c": None}))
    assert asked(watch, held, now=3) == Observe((node("b"), node("c")))
    held = beating(held, (3.0, {"b": 2, "c": 1}))
    assert asked(watch, held, now=4) == Observe((node("b"),))


def test_nobody_is_watched_by_one_that_has_no_seat() -> None:
    state = arrived(running(), "c")
    held = holding("d", evolve(state, seats=state.seats))
    assert asked(_waiting, held) == Wait(state.token, 9)


def test_those_who_have_gone_are_watched_no_longer() -> None:
    state = edited(edited(THREE, "b", Done(0)), "b", Leave())
    assert asked(watch, holding("a", state, ran=0)) == Observe((node("c"),))


def test_nobody_is_watched_when_i_am_alone() -> None:
    assert asked(watch, holding("a", running("a", size="1"), ran=0)) == Wait(running("a", size="1").token, math.inf)


def _waiting(ctx: Context, deadline: float) -> Answer:
    return Sync(9)


def test_a_turn_is_determined_by_its_arguments() -> None:
    held = holding("a", running(restarts=1), ran=0)
    ended = edited(running(restarts=1), "a", failed := End(0, Why.FAILED))
    assert asked(end, held) == asked(end, held) == Write(ended, held.token, failed)
