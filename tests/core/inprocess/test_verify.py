"""Every broken invariant of a call, and of a step, is refused with its number."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from calls import led, ready, verdict

from elastic.core.inprocess import Call, Command, Phase, Settings, Violation, verify, verify_step
from elastic.core.inprocess.state import Aborting
from elastic.core.inprocess.words import (
    Abort,
    AbortEnded,
    Cause,
    Closed,
    Deadline,
    Elapsed,
    End,
    Finish,
    How,
    Inject,
    Interrupted,
    Join,
    Left,
    Over,
    Raised,
    Reason,
    Refused,
    Returned,
    Run,
    Span,
    Terminated,
    Timer,
    Want,
)
from elastic.core.world import Ending, Why

OK = How.RETURNED
RUNNING = led(ready(), OK)
RETURNED = led(ready(), OK, OK)
UNWINDING = led(ready(), OK, How.FAILED)
LEAVING = led(Terminated())
CLOSING = led(Interrupted())
JOINING = led()
REPEATED = evolve(led(ready(), OK, settings=Settings(max_repeats=2)), mark="a failure", repeats=2)


@pytest.mark.parametrize(
    ("number", "call", "changes"),
    [
        ("C1", RUNNING, {"span": None}),
        ("C1", JOINING, {"span": Span.FUNCTION}),
        ("I3", RUNNING, {"abort": Aborting.RUNNING}),
        ("C2", UNWINDING, {"result": 0}),
        ("C2", RETURNED, {"result": 1}),
        ("C2", evolve(RETURNED, round=1, result=1), {"result": 0}),
        ("C2", RETURNED, {"active": False}),
        ("C3", JOINING, {"outcome": Returned(None)}),
        ("C3", JOINING, {"phase": Phase.ENDED}),
        ("C4", LEAVING, {"leaving": None}),
        ("C4", JOINING, {"left": True}),
        ("C5", UNWINDING, {"abort": Aborting.ENDED}),
        ("C10", RUNNING, {"repeats": 1}),
        ("C10", REPEATED, {"repeats": 3}),
        ("C10", REPEATED, {"barren": 5}),
    ],
)
def test_a_call_that_cannot_be_is_refused(number: str, call: Call, changes: dict[str, Any]) -> None:
    verify(call)
    with pytest.raises(Violation, match=f"^{number}: "):
        verify(evolve(call, **changes))


@pytest.mark.parametrize(
    ("number", "before", "changes", "commands"),
    [
        ("C6", RUNNING, {}, (Run(Span.FUNCTION, 3),)),
        ("C6", JOINING, {"token": 2, "span": Span.FUNCTION}, (Run(Span.FUNCTION, 2),)),
        ("C6", JOINING, {"token": 1}, (Run(Span.FUNCTION, 1), Finish(Returned(None)))),
        ("C6", JOINING, {"token": 2, "span": Span.FUNCTION}, (Run(Span.FUNCTION, 1), Run(Span.FUNCTION, 2))),
        ("C6", JOINING, {"token": 2, "span": Span.FUNCTION}, (Run(Span.FUNCTION, 1),)),
        ("C6", JOINING, {"token": 1, "span": Span.FUNCTION}, (Run(Span.FUNCTION, 2),)),
        ("C6", JOINING, {"token": 1, "span": Span.FUNCTION}, (Run(Span.FUNCTION, 0),)),
        ("I2", RUNNING, {"span": Span.FINALIZE}, ()),
        ("I2", evolve(RUNNING, token=1_000), {"span": Span.FINALIZE, "token": int("1000")}, ()),
        ("C7", UNWINDING, {}, (Abort(),)),
        ("C8", RUNNING, {}, (Abort(), End(0, Cause.EXCEPTION))),
        ("C8", RUNNING, {}, (Inject(2), Want(2))),
        ("C9", LEAVING, {"leaving": Reason.EXITED}, ()),
        ("C9", CLOSING, {"closing": False}, ()),
        ("C9", CLOSING, {"left": True}, ()),
        ("C9", CLOSING, {"phase": Phase.ENDED, "outcome": Raised(Reason.CRASH_LOOP)}, ()),
        ("I13", LEAVING, {}, (Join(),)),
        ("C2", RETURNED, {"result": 4}, ()),
    ],
)
def test_a_step_that_cannot_be_is_refused(
    number: str, before: Call, changes: dict[str, Any], commands: tuple[Command, ...]
) -> None:
    with pytest.raises(Violation, match=f"^{number}: "):
        verify_step(before, Left(), evolve(before, **changes), commands)


def test_a_leaving_rank_may_hold_a_value_whose_outcome_is_unknown() -> None:
    verify(evolve(LEAVING, leaving=Reason.OUTCOME_UNKNOWN, round=0, active=True, result=0))


def test_a_legal_call_and_a_legal_step_are_not_refused() -> None:
    verify_step(RUNNING, Over(0), led(ready(), OK, Over(0)), (Want(2),))
    verify_step(UNWINDING, AbortEnded(), led(ready(), OK, How.FAILED, AbortEnded()), (Run(Span.FINALIZE, 3),))
    verify_step(RETURNED, Closed(verdict(Ending.SUCCEEDED)), evolve(RETURNED, result=None), ())


def test_a_call_that_has_asked_to_close_ends_by_the_verdict_a_refusal_or_when_its_time_is_over() -> None:
    closed = Closed(verdict(Ending.LIMIT))
    late, soon = (Elapsed(Deadline(timer, CLOSING.token, 1.0)) for timer in (Timer.LEAVE, Timer.LIMIT))
    verify_step(CLOSING, closed, evolve(CLOSING, left=True, verdict=closed.verdict), ())
    for event in (Refused(Why.TIMEOUT), late):
        verify_step(CLOSING, event, evolve(CLOSING, left=True), ())
        verify_step(
            CLOSING, event, evolve(CLOSING, left=True, phase=Phase.ENDED, outcome=Raised(Reason.CRASH_LOOP)), ()
        )
    with pytest.raises(Violation, match=r"^C9: "):
        verify_step(CLOSING, soon, evolve(CLOSING, left=True), ())
    verify_step(evolve(CLOSING, left=True), Left(), evolve(CLOSING, left=True), ())


def test_a_thousand_rounds_in_a_legal_call_is_still_legal() -> None:
    verify(evolve(RETURNED, round=1_000, result=int("1000")))
    joining = evolve(JOINING, token=1_000)
    verify_step(joining, Left(), evolve(joining, token=1_001, span=Span.FUNCTION), (Run(Span.FUNCTION, int("1001")),))


def test_a_failure_may_repeat_less_often_than_it_is_allowed() -> None:
    verify(evolve(REPEATED, repeats=1))
