"""The events and requests between a rank's call and its rendezvous."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import arrived, edited, holding, node, profile, running

from elastic.core.caller import (
    HELPING_ABOVE,
    HELPING_PATIENCE_S,
    Terms,
    culprits,
    entered,
    heard,
    in_order,
    is_open,
    requested,
    signature,
)
from elastic.core.inprocess import words
from elastic.core.policies import LineUp, Policy, at_most, multiple_of, place, shift
from elastic.core.rendezvous import (
    Close,
    Done,
    End,
    Ended,
    Evict,
    Fail,
    Leave,
    Outcome,
    Over,
    Raise,
    RendezvousState,
    Reserve,
    Settings,
    Settled,
    handlers,
)
from elastic.core.rendezvous.agenda import Request
from elastic.core.rendezvous.context import Handler
from elastic.core.world import Ending, Fault, Origin, Verdict, Why

A, B = node("a"), node("b")
TERMS = Terms(at_most(1), min_world_size=2)
WORLD = running("a b", "1:3").world


def told(
    answer: Outcome | Raise, state: RendezvousState | None = None, handler: Handler = handlers.watch, who: str = "a"
) -> words.Event | None:
    return heard(handler, answer, TERMS, holding(who, state, ran=0))


def test_a_world_is_active_or_reserve_and_big_enough_or_not() -> None:
    assert told(WORLD) == words.Ready(0, active=True, enough=True)
    assert entered(TERMS, WORLD, B) == words.Ready(0, active=False, enough=True)
    assert entered(Terms(), WORLD, A).enough and entered(Terms(), running("a").world, A).enough
    assert not entered(Terms(min_world_size=3), WORLD, A).enough
    assert not entered(Terms(at_most(1), min_active_world_size=2), WORLD, A).enough
    assert not entered(Terms(multiple_of(3)), WORLD, A).enough


def failure(slot: str, round: int, message: str, exit_code: int | None = None, origin: Origin = Origin.RAISE) -> Fault:
    return Fault(node(slot), round, int(slot), 0, 1, exit_code, 1.0, message=message, origin=origin)


GLOO = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer"


def test_the_cause_of_an_iteration_is_read_first_and_its_echoes_last() -> None:
    echoes = [failure(slot, 0, GLOO) for slot in "13"]
    killed = failure("2", 0, "killed by SIGKILL", -9, Origin.END)
    hung = failure("0", 0, "soft timeout", origin=Origin.END)
    later = failure("1", 1, "ValueError: boom")
    assert in_order([later, echoes[0], hung, echoes[1], killed]) == (killed, hung, *echoes, later)
    by_echo = Ended(0, Why.FAILED, node("1"))
    assert culprits([echoes[0], killed, later], by_echo) == (node("2"),)
    assert culprits(echoes, by_echo) == (node("1"), node("3"))
    assert culprits([later], by_echo) == (node("1"),)
    assert in_order([]) == ()
    assert is_open(echoes, 0) and is_open([killed], 1)
    assert not is_open([*echoes, killed], 0)


def test_ranks_help_one_another_sooner_than_nodes_do() -> None:
    of_ranks = Settings(helping_above=HELPING_ABOVE, helping_patience=HELPING_PATIENCE_S)
    assert of_ranks.helping_above < Settings().helping_above
    assert of_ranks.helping_patience < Settings().helping_patience


def test_a_rank_with_another_policy_has_not_agreed() -> None:
    signed = evolve(WORLD, policy=signature(TERMS, WORLD))
    assert entered(TERMS, signed, A).agreed
    assert not entered(Terms(shift()), signed, A).agreed


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_a_completer_whose_policy_raises_signs_nothing(error: type[BaseException]) -> None:
    def raises(line: LineUp) -> LineUp:
        raise error

    assert signature(Terms(Policy("broken", raises)), WORLD) == ""


def test_the_policy_is_asked_once_by_who_has_asked_it() -> None:
    placing = place(TERMS.policy, WORLD)
    assert entered(TERMS, WORLD, A, placing) == entered(TERMS, WORLD, A)
    raises = evolve(TERMS.policy, apply=lambda line: line.nothing)  # type: ignore[attr-defined]
    assert entered(evolve(TERMS, policy=raises), WORLD, A, placing) == entered(TERMS, WORLD, A)


def test_the_call_hears_what_the_register_answers() -> None:
    assert told(Over(3, None)) == words.Over(3)
    assert told(Settled(), handler=handlers.leave) == words.Left()
    for state in (None, running("a b", "1:3")):
        assert told(Settled(), state, handlers.done) is None
    assert told(Settled(), None, handlers.end) is None
    assert told(Raise(Fail(Why.TIMEOUT), "")) == words.Refused(Why.TIMEOUT)


def test_a_rank_that_ended_its_round_hears_that_it_is_over_or_the_verdict() -> None:
    ended = edited(running("a b", "1:3"), "a", End(0, Why.FAILED))
    assert told(Settled(), ended, handlers.end) == words.Over(0)
    succeeded = edited(edited(running("a b", "1:3"), "a", Done(0)), "b", Done(0))
    assert succeeded.closed is not None
    assert told(Settled(), succeeded, handlers.end) == words.Closed(succeeded.closed, counted=True)


def test_a_verdict_counts_for_a_rank_whose_seat_is_done() -> None:
    done = edited(running("a b c", "1:3"), "a", Done(0))
    gone = edited(done, "a", Leave())
    for state, counted in [(done, True), (gone, True)]:
        closed = edited(edited(state, "b", Done(0)), "c", Reserve(0))
        assert closed.closed is not None
        assert told(closed.closed, closed) == words.Closed(closed.closed, counted)
        assert told(Raise(Fail(Why.CLOSED, closed.closed), ""), closed) == words.Closed(closed.closed, counted)
        assert told(closed.closed, closed, who="c") == words.Closed(closed.closed, False)
        assert told(closed.closed, closed, who="d") == words.Closed(closed.closed, False)


def test_a_verdict_that_is_read_anew_a_thousand_rounds_in_counts_too() -> None:
    done = edited(evolve(running("a b", "1:3"), round=1_000), "a", Done(1_000))
    closed = edited(done, "b", Close(Verdict(Ending.CANCELLED, int("1000"), B, Why.ASKED)))
    assert closed.closed is not None
    assert told(evolve(closed.closed), closed) == words.Closed(closed.closed, True)


def test_a_verdict_on_an_earlier_round_counts_for_no_rank() -> None:
    cancelled = Verdict(Ending.CANCELLED, 0, B, Why.ASKED)
    again = arrived(edited(running("a b c", "1:3"), "b", Evict(frozenset({A}))), "b c")
    again = edited(edited(again, "b", Done(1)), "c", Close(cancelled))
    assert told(cancelled, again, who="b") == words.Closed(cancelled, False)
    later = edited(edited(running("a b", "1:3"), "b", Evict(frozenset({A}))), "b", Close(cancelled))
    assert told(cancelled, later) == words.Closed(cancelled, False)
    assert told(cancelled, None) == words.Closed(cancelled, False)


@pytest.mark.parametrize(
    ("command", "request_"),
    [
        (words.Join(), Request(handlers.join, profile=profile("a"))),
        (words.End(0, words.Cause.EXCEPTION), Request(handlers.end, Why.FAILED)),
        (words.MarkDone(0), Request(handlers.done)),
        (words.MarkReserve(0), Request(handlers.reserve)),
        (words.Leave(), Request(handlers.leave)),
        (words.Close(Ending.LIMIT), Request(handlers.close, Why.ASKED, Ending.LIMIT)),
        (words.Abort(), None),
    ],
)
def test_each_command_of_the_call_is_a_request_or_none(command: words.Command, request_: Request | None) -> None:
    assert requested(command, profile("a")) == request_
