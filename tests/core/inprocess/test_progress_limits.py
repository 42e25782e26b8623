"""The limits of progress, and the deadlines of a call on a clock."""

from __future__ import annotations

import math

import pytest
from calls import led, ready

from elastic.core.inprocess import Settings
from elastic.core.inprocess.progress_limits import UNGUARDED, Limits, Marks, guarded, of_span, within
from elastic.core.inprocess.timers import IDLE, passed, resumed, running, until, unwind_at
from elastic.core.inprocess.words import AtomicLeft, GateRead, How, Over, Span, Timer

SETTINGS = Settings(soft_timeout=2.0, hard_timeout=5.0)
LIMITS = guarded(SETTINGS)
ASKED = ready(), How.RETURNED, Over(0)


def test_a_span_whose_progress_does_not_count_has_the_limit_of_a_callback() -> None:
    settings = Settings(soft_timeout=2.0, hard_timeout=5.0, callback_timeout=3.0, unwind_timeout=4.0)
    assert of_span(settings, Span.FUNCTION) == of_span(settings, Span.INITIALIZE) == LIMITS
    assert of_span(settings, Span.FINALIZE) == of_span(settings, None) == Limits(math.inf, 7.0)


def test_a_section_moves_the_soft_and_the_hard_limit() -> None:
    assert within(LIMITS, 100.0) == Limits(100.0, 103.0)
    assert within(LIMITS, 0.5) == Limits(0.5, 3.5)
    assert within(UNGUARDED, 100.0) == Limits(100.0, math.inf)
    for span in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"section: a limit above 0 seconds, not {span:g}"):
            within(LIMITS, span)


def test_a_deadline_runs_from_when_it_is_first_seen_and_rings_once() -> None:
    call = led(ready(), settings=SETTINGS)
    timers = running(IDLE, call, 1.0)
    assert until(timers) == 3.0
    timers = running(timers, call, 2.0)
    assert until(timers) == 3.0
    assert passed(timers, 2.9) == (timers, ())
    timers, events = passed(timers, 6.0)
    assert [each.deadline.timer for each in events] == [Timer.SOFT, Timer.HARD]
    assert passed(timers, 7.0) == (timers, ())
    assert until(timers) == math.inf


def test_marks_move_the_soft_and_the_hard_limit_only() -> None:
    call = led(ready(), settings=SETTINGS)
    timers = running(IDLE, call, 0.0)
    assert until(timers, Marks(1.5, LIMITS)) == 3.5
    assert until(timers, Marks(1.5, within(LIMITS, 100.0))) == 101.5
    _, events = passed(timers, 6.5, Marks(1.5, Limits(2.0, 5.0)))
    assert [each.deadline.timer for each in events] == [Timer.SOFT, Timer.HARD]
    unwinding = running(timers, led(*ASKED, GateRead(2, 0), settings=SETTINGS), 2.0)
    late = {each.deadline.timer for each in passed(unwinding, 31.9, Marks(20.0, LIMITS))[1]}
    assert late == {Timer.AGAIN}
    gone, events = passed(unwinding, 32.0, Marks(20.0, LIMITS))
    assert {each.deadline.timer for each in events} == {Timer.AGAIN, Timer.UNWIND, Timer.ABORT}
    assert (unwind_at(timers), unwind_at(unwinding), unwind_at(gone)) == (math.inf, 32.0, math.inf)


def test_an_atomic_section_that_a_round_waits_for_has_the_limit_of_progress_and_no_other() -> None:
    inside = running(IDLE, led(*ASKED, GateRead(2, 1), settings=SETTINGS), 2.0)
    assert until(inside, Marks(20.0, LIMITS)) == 25.0
    assert until(inside, Marks(20.0, within(LIMITS, 100.0))) == 123.0
    left = led(*ASKED, GateRead(2, 1), AtomicLeft(2), GateRead(2, 0), settings=SETTINGS)
    assert Timer.UNWIND in {each.timer for each in running(inside, left, 60.0).began_at}
    assert until(resumed(inside, 32.0, 40.0), Marks(20.0, LIMITS)) == 45.0


def test_after_a_standstill_progress_has_all_its_time_again_and_a_passed_deadline_stays_passed() -> None:
    timers = running(IDLE, led(ready(), settings=SETTINGS), 1.0)
    assert resumed(timers, 3.0, 4.0) == timers
    assert until(resumed(timers, 3.0, 4.1)) == 6.1
    rung, _ = passed(timers, 3.0)
    assert until(resumed(rung, 6.0, 10.0)) == 15.0
    unwinding = running(timers, led(*ASKED, GateRead(2, 0), settings=SETTINGS), 2.0)
    assert resumed(unwinding, 32.0, 40.0) == unwinding


def test_no_deadline_runs_while_the_call_joins() -> None:
    assert until(running(IDLE, led(), 0.0)) == math.inf


def test_progress_puts_off_the_hard_limit_too() -> None:
    timers = running(IDLE, led(ready(), settings=SETTINGS), 0.0)
    marks = Marks(4.0, Limits(100.0, 5.0))
    assert until(timers, marks) == 9.0
    assert passed(timers, 8.9, marks) == (timers, ())
