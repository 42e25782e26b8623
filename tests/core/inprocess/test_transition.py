"""The rules of one rank's call that are easiest to get wrong, one story for each. I numbers are laws of the simulator."""

from __future__ import annotations

from typing import cast

import pytest
from attrs import evolve
from calls import elapsed, ended, led, ready, told, verdict

from elastic.core.inprocess import Call, Event, OnInterrupt, Phase, Settings, deadlines, transition
from elastic.core.inprocess.exits import CANCELLED, EXIT_CODES, FINAL, exit_code
from elastic.core.inprocess.progress_limits import Limits, Marks
from elastic.core.inprocess.state import Aborting
from elastic.core.inprocess.timers import IDLE, passed, running, until
from elastic.core.inprocess.words import (
    Abort,
    AbortEnded,
    AtomicLeft,
    Cause,
    Close,
    Closed,
    End,
    Finish,
    GateRead,
    How,
    Inject,
    Interrupted,
    Join,
    Kill,
    Leave,
    Left,
    MarkDone,
    MarkReserve,
    Over,
    Raised,
    Reason,
    Record,
    Refused,
    Returned,
    Run,
    Span,
    SpanEnded,
    StoreBack,
    StoreLost,
    Terminated,
    Timer,
    Want,
    ended_as,
)
from elastic.core.world import Ending, Why

OK, EXC = How.RETURNED, How.FAILED
RUNNING = (ready(), OK)
RETURNED = (*RUNNING, OK)
SUCCEEDED = Closed(verdict(Ending.SUCCEEDED), counted=True)


def test_a_round_runs_initialize_then_the_function_then_completion() -> None:
    assert told() == (Call(), (Join(),))
    assert told(ready())[1] == (Run(Span.INITIALIZE, 1),)
    assert told(*RUNNING)[1] == (Run(Span.FUNCTION, 2),)
    assert told(*RETURNED)[1] == (MarkDone(0),)
    assert told(*RETURNED, SUCCEEDED)[1] == (Run(Span.COMPLETE, 3),)
    assert told(*RETURNED, SUCCEEDED, OK)[1] == (Finish(Returned(0)),)


def test_a_failure_ends_the_round_before_abort_starts() -> None:
    assert told(*RUNNING, EXC)[1] == (End(0, Cause.EXCEPTION), Abort())
    assert told(ready(), EXC)[1] == (End(0, Cause.INITIALIZE), Abort())


def test_after_a_failure_finalize_and_the_health_check_run_and_then_the_rank_joins() -> None:
    fault = (*RUNNING, EXC, AbortEnded())
    assert told(*fault)[1] == (Run(Span.FINALIZE, 3),)
    assert told(*fault, OK)[1] == (Run(Span.CHECK, 4),)
    assert told(*fault, OK, OK)[1] == (Join(),)
    assert told(*fault, OK, OK, ready(1))[1] == (Run(Span.INITIALIZE, 5),)


def test_a_function_whose_round_is_over_is_asked_at_the_gate_before_anything_is_sent() -> None:
    assert told(*RUNNING, Over(0))[1] == (Want(2),)
    assert told(*RUNNING, Over(0), GateRead(2, 0))[1] == (Abort(), Inject(2))


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ((), Phase.JOINING),
        ((ready(enough=False),), Phase.SHORT),
        (RUNNING, Phase.RUNNING),
        ((ready(active=False), OK), Phase.RESERVE),
        (RETURNED, Phase.RETURNED),
        ((*RUNNING, Over(0)), Phase.PENDING),
        ((*RETURNED, SUCCEEDED), Phase.COMPLETING),
        ((*RETURNED, SUCCEEDED, OK), Phase.ENDED),
    ],
)
def test_an_event_that_a_phase_does_not_wait_for_changes_nothing(events: tuple[Event | How, ...], phase: Phase) -> None:
    call = led(*events)
    assert call.phase is phase
    assert transition(call, AbortEnded()) == (call, ())


def test_a_gate_that_does_not_answer_has_its_process_killed() -> None:
    call = led(*RUNNING, Over(0))
    assert transition(call, elapsed(call, Timer.HARD)) == (call, (Kill(),))


def test_terminate_that_takes_too_long_is_asked_to_end() -> None:
    call = led(Terminated())
    assert (call.phase, transition(call, elapsed(call, Timer.LIMIT))[1]) == (Phase.LEAVING, (Want(1), Inject(1)))


def test_in_an_atomic_section_neither_abort_nor_signal_starts() -> None:
    inside = (*RUNNING, Over(0), GateRead(2, 1))
    assert told(*inside) == (led(*RUNNING, Over(0)), ())
    assert told(*inside, AtomicLeft(2))[1] == (Want(2),)
    assert told(*inside, AtomicLeft(2), GateRead(2, 2))[1] == ()
    assert told(*inside, AtomicLeft(2), GateRead(2, 0))[1] == (Abort(), Inject(2))


def test_a_result_that_arrives_while_the_gate_wants_the_end_is_dropped() -> None:
    late = led(*RUNNING, Over(0), OK)
    assert (late.phase, late.result, late.abort) == (Phase.UNWINDING, None, Aborting.RUNNING)


def test_finalize_waits_for_the_end_of_abort_and_of_user_code() -> None:
    both = (*RUNNING, Over(0), GateRead(2, 0))
    assert told(*both, AbortEnded())[1] == ()
    assert told(*both, AbortEnded(), How.INJECTED)[1] == (Run(Span.FINALIZE, 3),)
    assert told(*both, How.INJECTED)[1] == ()
    assert told(*both, How.INJECTED, AbortEnded())[1] == (Run(Span.FINALIZE, 3),)


def test_a_function_that_swallows_the_exception_gets_it_again_and_is_killed_in_the_end() -> None:
    call = led(*RUNNING, Over(0), GateRead(2, 0))
    unwind = elapsed(call, Timer.UNWIND)
    for tries in range(1, 14):
        again = elapsed(call, Timer.AGAIN)
        assert again.deadline.after_s == min(0.001 * 2 ** (tries - 1), 1.0)
        call, commands = transition(call, again)
        assert commands == (Inject(2),)
    assert elapsed(call, Timer.UNWIND) == unwind
    assert transition(call, unwind) == (call, (Kill(),))


def test_a_process_whose_abort_hangs_never_runs_another_round() -> None:
    call = led(*RUNNING, EXC)
    stuck, commands = transition(call, elapsed(call, Timer.ABORT))
    assert commands == (Record(0), Leave(), Run(Span.TERMINATE, 3))
    assert transition(stuck, AbortEnded())[1] == ()
    assert told(*RUNNING, EXC, elapsed(call, Timer.ABORT), Left(), OK)[1] == (Finish(Raised(Reason.ABORT_HUNG)),)


def test_an_abort_that_failed_means_that_this_process_never_runs_another_round() -> None:
    failed = (*RUNNING, EXC, AbortEnded(failed=True))
    assert told(*failed)[1] == (Record(0), Leave(), Run(Span.TERMINATE, 3))
    assert told(*failed, Left(), OK)[1] == (Finish(Raised(Reason.ABORT_FAILED)),)
    assert led(*RUNNING, Over(0), GateRead(2, 0), AbortEnded(failed=True)).phase is Phase.UNWINDING


def test_a_soft_limit_ends_the_round_and_a_hard_one_the_process() -> None:
    call = led(*RUNNING)
    assert transition(call, elapsed(call, Timer.SOFT))[1] == (End(0, Cause.SOFT_TIMEOUT), Want(2))
    assert transition(call, elapsed(call, Timer.HARD)) == (call, (Kill(),))


def test_a_reserve_says_that_it_is_one_before_it_initializes() -> None:
    assert told(ready(active=False))[1] == (MarkReserve(0), Run(Span.INITIALIZE, 1))
    assert led(ready(active=False), OK).phase is Phase.RESERVE


def test_a_reserve_recovers_as_an_active_rank_does() -> None:
    waits = (ready(active=False), OK)
    assert told(*waits, Over(0))[1] == (Abort(),)
    assert told(*waits, Over(0), AbortEnded(), OK, OK)[1] == (Join(),)


@pytest.mark.parametrize("how", [EXC, "soft"])
def test_an_unfit_reserve_leaves_and_ends_no_round(how: How | str) -> None:
    call = led(ready(active=False))
    event = elapsed(call, Timer.SOFT) if isinstance(how, str) else ended(call, how)
    left, commands = transition(call, event)
    assert left.leaving is Reason.UNFIT
    assert commands[:2] == (Record(0), Leave())


def test_a_reserve_returns_none_when_the_job_succeeds() -> None:
    reserve = (ready(active=False), OK)
    assert told(*reserve, Closed(verdict(Ending.SUCCEEDED)))[1] == (Run(Span.COMPLETE, 2),)
    assert told(*reserve, Closed(verdict(Ending.SUCCEEDED)), OK)[1] == (Finish(Returned(None)),)
    for other in (verdict(Ending.SUCCEEDED, round=1), verdict(Ending.FAILED)):
        assert told(*reserve, Closed(other))[1] == (Abort(),)


@pytest.mark.parametrize(
    "closed",
    [
        Closed(verdict(Ending.SUCCEEDED), counted=False),
        Closed(verdict(Ending.SUCCEEDED, round=1), counted=True),
        Closed(verdict(Ending.CANCELLED), counted=True),
    ],
)
def test_a_result_counts_only_by_a_success_of_its_round_in_which_the_seat_was_done(closed: Closed) -> None:
    call, commands = told(*RETURNED, closed)
    assert (call.result, commands) == (None, (Abort(),))


def test_the_end_of_the_round_drops_a_result_and_a_timer_does_not() -> None:
    waits = led(*RETURNED)
    late, commands = transition(waits, elapsed(waits, Timer.COMPLETION))
    assert commands == (End(0, Cause.COMPLETION_TIMEOUT),)
    assert late.result == 0
    assert transition(late, SUCCEEDED)[1] == (Run(Span.COMPLETE, 3),)
    assert transition(late, Over(0))[0].result is None


def test_a_rank_that_cannot_hear_the_verdict_raises_unknown_with_the_value() -> None:
    waits = led(*RETURNED)
    asked, _ = transition(waits, elapsed(waits, Timer.COMPLETION))
    unknown, commands = transition(asked, elapsed(asked, Timer.CONFIRM))
    assert commands == (Leave(), Abort())
    call = unknown
    for event in (AbortEnded(), Left()):
        call, _ = transition(call, event)
    assert transition(call, ended(call))[1] == (Finish(Raised(Reason.OUTCOME_UNKNOWN, 0)),)


def test_a_world_that_stays_too_small_closes_the_job() -> None:
    short = led(ready(enough=False))
    assert (short.phase, short.began) == (Phase.SHORT, False)
    assert transition(short, Over(0))[1] == (Join(),)
    asked, commands = transition(short, elapsed(short, Timer.SHORT))
    assert commands == (Close(Ending.LIMIT),)
    assert transition(asked, elapsed(asked, Timer.CONFIRM))[0].leaving is Reason.OUTCOME_UNKNOWN
    assert transition(asked, Closed(verdict(Ending.LIMIT)))[0].leaving is Reason.TOO_FEW
    assert transition(short, Closed(verdict(Ending.LIMIT)))[0].leaving is Reason.JOB_LIMIT
    assert transition(asked, Closed(verdict(Ending.FAILED)))[0].leaving is Reason.JOB_FAILED


def test_a_round_beyond_max_iterations_closes_the_job() -> None:
    asked, commands = told(ready(3), settings=Settings(max_iterations=3))
    assert commands == (Close(Ending.LIMIT),)
    assert transition(asked, Closed(verdict(Ending.LIMIT)))[0].leaving is Reason.ITERATIONS_SPENT
    assert told(ready(2), settings=Settings(max_iterations=3))[1] == (Run(Span.INITIALIZE, 1),)


def test_a_rank_whose_first_round_is_beyond_max_iterations_closes_the_job_too() -> None:
    asked, commands = told(ready(5), settings=Settings(max_iterations=3))
    assert commands == (Close(Ending.LIMIT),)
    assert transition(asked, Closed(verdict(Ending.LIMIT)))[0].leaving is Reason.ITERATIONS_SPENT


def test_a_world_that_stays_too_small_before_max_iterations_is_reached_says_so() -> None:
    short = led(ready(1, enough=False), settings=Settings(max_iterations=3))
    asked, _ = transition(short, elapsed(short, Timer.SHORT))
    assert transition(asked, Closed(verdict(Ending.LIMIT)))[0].leaving is Reason.TOO_FEW


def test_a_rank_with_too_many_failures_closes_the_job() -> None:
    once = Settings(max_faults=1)
    again = (*RUNNING, EXC, AbortEnded(), OK, OK, ready(1), OK, EXC)
    assert told(*RUNNING, EXC, settings=once)[1] == (End(0, Cause.EXCEPTION), Abort())
    assert told(*again, settings=once)[1] == (Close(Ending.LIMIT), Abort())
    assert told(*RUNNING, EXC, settings=Settings(max_faults=2))[1] == (End(0, Cause.EXCEPTION), Abort())


ONCE_MORE = Settings(max_repeats=1)
HERE, THERE = "ValueError here", "ValueError there"


def failing(*marks: str) -> tuple[Event | How, ...]:
    """Return the events of a call whose function fails in one round after the other."""
    rounds = [(ready(round), OK, mark) for round, mark in enumerate(marks)]
    called, tokens = list[Event | How](), 0
    for world, initialized, mark in rounds:
        called += [world, initialized, SpanEnded(tokens + 2, How.FAILED, mark), AbortEnded(), OK, OK]
        tokens += 4
    return tuple(called[:-3])


def test_a_rank_that_repeats_one_failure_too_often_closes_the_job() -> None:
    assert told(*failing(HERE, HERE), settings=ONCE_MORE)[1] == (End(1, Cause.EXCEPTION), Abort())
    call, commands = told(*failing(HERE, HERE, HERE), settings=ONCE_MORE)
    assert (call.leaving, commands) == (Reason.CRASH_LOOP, (Close(Ending.LIMIT), Abort()))
    anew = ["".join(HERE) for _ in range(3)]  # equal, and not the same object
    assert led(*failing(*anew), settings=ONCE_MORE).leaving is Reason.CRASH_LOOP


def test_another_failure_in_between_begins_the_count_anew() -> None:
    for marks in ((HERE, HERE, THERE, THERE), (HERE, THERE, HERE, THERE), (HERE, HERE, THERE, HERE)):
        assert told(*failing(*marks), settings=ONCE_MORE)[0].leaving is None
    assert told(*failing(THERE, HERE, HERE, HERE), settings=ONCE_MORE)[0].leaving is Reason.CRASH_LOOP


def test_without_a_limit_no_failure_is_remembered() -> None:
    call = led(*failing(*[HERE] * 20), settings=Settings(fresh_after=None))
    assert (call.mark, call.repeats, call.leaving) == (None, 0, None)


THREE = Settings(fresh_after=3)


def test_the_same_failure_before_any_progress_hands_over_to_a_fresh_process() -> None:
    assert told(*failing(HERE, HERE), settings=THREE)[1] == (End(1, Cause.EXCEPTION), Abort())
    call, commands = told(*failing(HERE, HERE, HERE), settings=THREE)
    assert (call.leaving, commands) == (Reason.STUCK, (Record(2), Leave(), Abort()))
    assert EXIT_CODES[Reason.STUCK] not in FINAL
    waits = told(*failing(HERE, HERE, HERE), settings=evolve(THREE, replace_wait=0.5))
    assert (waits[0].replaced, waits[1]) == (True, (End(2, Cause.EXCEPTION), Abort()))
    assert led(*failing(*[HERE] * 4)).leaving is None and led(*failing(*[HERE] * 5)).leaving is Reason.STUCK


def following(call: Call, *events: Event | How) -> Call:
    """Return the call after these events."""
    for event in events:
        call, _ = transition(call, ended(call, event) if isinstance(event, How) else event)
    return call


def hanging(count: int, settings: Settings) -> tuple[Call, tuple[object, ...]]:
    """Return the call after hangs in a row, and what the last one commands."""
    call, commands = led(ready(0), OK, settings=settings), tuple[object, ...]()
    for round in range(count):
        if round:
            call = following(call, SpanEnded(call.token, How.INJECTED), AbortEnded(), OK, OK, ready(round), OK)
        call, commands = transition(call, elapsed(call, Timer.SOFT))
    return call, commands


def test_hangs_in_a_row_hand_over_to_a_fresh_process() -> None:
    call, commands = hanging(2, THREE)
    assert (call.leaving, call.barren, commands[0]) == (None, 2, End(1, Cause.SOFT_TIMEOUT))
    call, commands = hanging(3, THREE)
    assert (call.leaving, commands[:2]) == (Reason.STUCK, (Record(2), Leave()))
    assert hanging(9, Settings(fresh_after=None))[0].leaving is None
    waits, commands = hanging(3, evolve(THREE, replace_wait=0.5))
    assert (waits.replaced, commands[0]) == (True, End(2, Cause.SOFT_TIMEOUT))


@pytest.mark.parametrize("before", [(), (Over(1),), (Over(1), GateRead(6, 0))])
def test_a_hang_that_only_the_monitor_saw_counts_too(before: tuple[Event, ...]) -> None:
    call = following(hanging(1, THREE)[0], SpanEnded(2, How.INJECTED), AbortEnded(), OK, OK, ready(1), OK, *before)
    assert (call.token, call.barren) == (6, 1)
    assert following(call, SpanEnded(6, How.INJECTED)).barren == 1
    assert (following(call, SpanEnded(6, How.INJECTED, hung=True)).barren, call.leaving) == (2, None)
    last, commands = transition(evolve(call, barren=2), SpanEnded(6, How.INJECTED, hung=True))
    assert (last.leaving, commands[:2]) == (Reason.STUCK, (Record(1), Leave()))
    leaves = following(call, Terminated(), SpanEnded(6, How.INJECTED, hung=True))
    assert (leaves.leaving, leaves.barren) == (Reason.DRAINED, 1)


def test_a_hang_and_a_failure_do_not_count_as_one_another() -> None:
    call, _ = hanging(2, evolve(THREE, max_repeats=0))
    call = following(call, SpanEnded(call.token, How.INJECTED), AbortEnded(), OK, OK, ready(2), OK)
    failed = transition(call, SpanEnded(call.token, How.FAILED, HERE))[0]
    assert (failed.leaving, failed.barren, failed.repeats) == (None, 1, 0)


def test_user_code_that_marks_progress_for_long_before_it_hangs_begins_the_count_anew() -> None:
    """Whatever the limit of the section in which it hangs: to run on shows nothing, a mark does."""
    settings = evolve(THREE, repeat_window=40.0)
    call = following(hanging(1, settings)[0], SpanEnded(2, How.INJECTED), AbortEnded(), OK, OK, ready(1), OK)
    began = running(IDLE, call, 100.0)
    section = Limits(600.0, 630.0)
    for mark_at, due in ((139.0, [Timer.SOFT]), (140.0, [Timer.MOVING, Timer.SOFT])):
        marks = Marks(mark_at, section)
        assert until(began, marks) == (mark_at + 600.0 if len(due) == 1 else 140.0)
        events = passed(began, mark_at + 600.0, marks)[1]
        assert [each.deadline.timer for each in events] == due
        assert following(call, *events).barren == (2 if len(due) == 1 else 1)
    assert until(began) == 100.0 + settings.soft_timeout, "no mark, no progress"


@pytest.mark.parametrize("is_echo", [False, True])
def test_neither_a_failure_after_progress_nor_an_echo_counts_as_one_before_any_progress(is_echo: bool) -> None:
    rounds = [*failing(HERE, HERE, HERE)]
    rounds[-1] = evolve(cast(SpanEnded, rounds[-1]), is_echo=is_echo, got_on=not is_echo)
    call = led(*rounds, settings=THREE)
    assert (call.leaving, call.barren) == (None, 2 if is_echo else 0)


@pytest.mark.parametrize("how", [How.FAILED, How.INJECTED])
@pytest.mark.parametrize("before", [(), (GateRead(2, 0),)])
def test_code_that_was_failing_as_it_was_called_back_says_so(how: How, before: tuple[Event, ...]) -> None:
    """Its connections were closed by a `finally`, and a peer that lost them has ended the round."""
    over = (*RUNNING, Over(0), *before)
    after = told(*over, SpanEnded(2, how))[1]
    assert told(*over, SpanEnded(2, how, HERE))[1] == (Record(0, if_open=True), *after)
    assert told(*over, SpanEnded(2, how, HERE, is_echo=True))[1] == after
    reserve = (ready(active=False), Over(0), SpanEnded(1, how, HERE))
    assert told(*reserve)[1] == (Abort(),)
    leaves = (*RUNNING, Terminated(), *before, SpanEnded(2, how, HERE))
    assert not [each for each in told(*leaves)[1] if isinstance(each, Record)]


def test_a_rank_that_cancels_the_job_ends_with_the_code_of_those_that_hear_of_it() -> None:
    assert exit_code(Reason.INTERRUPTED, closing=True) == EXIT_CODES[Reason.JOB_CANCELLED]
    assert {exit_code(Reason.INTERRUPTED, closing=True)} == CANCELLED <= FINAL
    assert exit_code(Reason.INTERRUPTED, closing=False) == EXIT_CODES[Reason.INTERRUPTED]


def test_user_code_that_runs_for_long_has_made_progress_without_saying_so() -> None:
    running = led(*failing(HERE, HERE), AbortEnded(), OK, OK, ready(2), OK, settings=THREE)
    steady = transition(running, elapsed(running, Timer.STEADY))[0]
    assert transition(steady, SpanEnded(steady.token, How.FAILED, HERE))[0].leaving is None


def test_a_lack_of_memory_is_left_to_a_fresh_process_sooner() -> None:
    def lacks(settings: Settings) -> Call:
        rounds = failing(HERE, HERE)
        return led(*(_lacking(each) for each in rounds), settings=settings)

    assert lacks(Settings()).leaving is Reason.STUCK
    assert lacks(Settings(fresh_after=None)).leaving is None
    once = led(*(_lacking(each) for each in failing(HERE)), settings=Settings(fresh_after=1))
    assert once.leaving is Reason.STUCK


def _lacking(event: Event | How) -> Event | How:
    return evolve(event, no_memory=True) if isinstance(event, SpanEnded) else event


def test_the_limit_of_the_job_comes_before_the_fresh_process() -> None:
    both = Settings(fresh_after=2, max_repeats=0)
    assert led(*failing(HERE, HERE), settings=both).leaving is Reason.CRASH_LOOP


def again(*before: Event | How) -> Call:
    """Return the call after two equal failures, these events, and the same failure once more."""
    call = led(*failing(HERE, HERE), AbortEnded(), OK, OK, *before, settings=ONCE_MORE)
    return transition(call, SpanEnded(call.token, How.FAILED, HERE))[0]


def test_progress_ends_the_count_of_repetitions() -> None:
    running = (ready(2), OK)
    call = led(*failing(HERE, HERE), AbortEnded(), OK, OK, *running, settings=ONCE_MORE)
    assert again(*running).leaving is Reason.CRASH_LOOP
    steady = elapsed(call, Timer.STEADY)
    assert steady.deadline.after_s == ONCE_MORE.repeat_window
    assert Timer.STEADY not in [each.timer for each in deadlines(transition(call, steady)[0])]
    assert again(*running, steady).leaving is None
    soft = elapsed(call, Timer.SOFT)
    later = (GateRead(call.token, 0), How.INJECTED, AbortEnded(), OK, OK, ready(3), OK)
    assert again(*running, soft, *later).leaving is None
    assert again(*running, OK, Over(2), AbortEnded(), OK, OK, ready(3), OK).leaving is None


def test_a_failure_of_initialize_counts_like_one_of_the_function() -> None:
    assert again(ready(2)).leaving is Reason.CRASH_LOOP
    assert Timer.STEADY in [
        each.timer for each in deadlines(led(*failing(HERE), AbortEnded(), OK, OK, ready(1), settings=ONCE_MORE))
    ]


def test_a_failure_after_the_end_of_the_round_is_no_repetition() -> None:
    assert again(ready(2), OK, Over(2)).repeats == 1


def test_ranks_with_different_policies_close_the_job() -> None:
    call, commands = told(ready(agreed=False))
    assert (call.leaving, commands[0]) == (Reason.OTHER_POLICY, Close(Ending.LIMIT))


@pytest.mark.parametrize(
    ("how", "reason", "command"),
    [
        (How.EXITED, Reason.EXITED, Leave()),
        (How.HUNG, Reason.HUNG, Leave()),
        (How.INTERRUPTED, Reason.INTERRUPTED, Close(Ending.CANCELLED)),
        (How.GAVE_UP, Reason.GAVE_UP, Close(Ending.LIMIT)),
    ],
)
def test_user_code_that_exits_is_interrupted_or_gives_up_makes_this_rank_leave(
    how: How, reason: Reason, command: object
) -> None:
    for before in ((ready(),), RUNNING, (*RUNNING, Over(0))):
        call, commands = told(*before, how)
        assert (call.leaving, commands) == (reason, (command, Abort()))
    assert told(*RETURNED, SUCCEEDED, how)[1] == (Finish(Raised(reason)),)


def test_ctrl_c_makes_only_this_rank_leave_if_the_settings_say_so() -> None:
    alone = Settings(on_interrupt=OnInterrupt.LEAVE)
    assert told(*RUNNING, How.INTERRUPTED, settings=alone)[1][0] == Leave()
    assert told(Interrupted())[1][0] == Close(Ending.CANCELLED)


def test_a_drained_rank_leaves_and_its_function_is_ended() -> None:
    assert told(*RUNNING, Terminated())[1] == (Leave(), Want(2))
    assert told(*RUNNING, Terminated(), GateRead(2, 0))[1] == (Abort(), Inject(2))
    left = (*RUNNING, Terminated(), GateRead(2, 0), How.INJECTED, AbortEnded())
    assert told(*left)[1] == (Run(Span.TERMINATE, 3),)
    assert told(*left, OK)[1] == ()
    assert told(*left, OK, Left())[1] == (Finish(Raised(Reason.DRAINED)),)
    assert told(*left, Left(), OK)[1] == (Finish(Raised(Reason.DRAINED)),)


def test_a_rank_that_its_monitor_ends_is_not_drained() -> None:
    assert told(*RUNNING, Terminated(hung=True))[0].leaving is Reason.HUNG
    assert [ended_as(how, is_terminated=True) for how in (How.EXITED, How.INTERRUPTED, How.FAILED)] == [How.HUNG] * 3
    assert [ended_as(how, is_terminated=True) for how in (How.RETURNED, How.GAVE_UP)] == [How.RETURNED, How.GAVE_UP]
    assert ended_as(How.EXITED, is_terminated=False) is How.EXITED
    assert EXIT_CODES[Reason.HUNG] not in FINAL


WAITS = Settings(replace_wait=0.5)


def test_a_rank_that_the_launcher_replaces_keeps_its_seat() -> None:
    hung = (*RUNNING, Over(0), How.HUNG)
    call, commands = told(*hung, settings=WAITS)
    assert (call.replaced, commands) == (True, (Abort(),))
    unhealthy = (*RUNNING, EXC, AbortEnded(), EXC)
    assert told(*unhealthy, settings=WAITS)[1][0] == Record(0)
    assert Leave() not in told(*unhealthy, settings=WAITS)[1]
    assert told(*hung, AbortEnded(), settings=WAITS)[1] == (Run(Span.TERMINATE, 3),)
    assert told(*hung, AbortEnded(), OK, settings=WAITS)[1] == (Finish(Raised(Reason.HUNG)),)
    assert told(*hung)[1] == (Leave(), Abort())
    assert told(*RUNNING, How.EXITED, settings=WAITS)[1] == (Leave(), Abort())
    reserve = (ready(active=False), How.HUNG)
    assert told(*reserve, settings=WAITS)[1] == (Leave(), Abort())
    assert told(*RUNNING, Closed(verdict()), How.HUNG, settings=WAITS)[0].replaced is False


def test_a_rank_that_is_replaced_and_closes_the_job_waits_for_the_verdict() -> None:
    closes = (*RUNNING, Over(0), Terminated(hung=True), How.INTERRUPTED, AbortEnded(), OK)
    assert told(*closes, settings=WAITS)[1] == ()
    assert told(*closes, Closed(verdict()), settings=WAITS)[1] == (Finish(Raised(Reason.HUNG)),)


def test_the_first_reason_to_leave_stands_and_a_cancel_is_still_sent() -> None:
    call, commands = told(*RUNNING, Terminated(), How.INTERRUPTED)
    assert (call.leaving, commands) == (Reason.DRAINED, (Close(Ending.CANCELLED), Abort()))


def test_a_rank_that_closes_the_job_waits_for_the_verdict() -> None:
    cancels = (Terminated(), Interrupted(), OK, Left())
    assert told(*RUNNING, Terminated(), How.INTERRUPTED, Left(), AbortEnded(), OK)[1] == ()
    assert told(*RUNNING, Terminated(), How.INTERRUPTED, Left(), AbortEnded(), OK, Closed(verdict()))[1] == (
        Finish(Raised(Reason.DRAINED)),
    )
    assert told(*cancels)[1] == (Finish(Raised(Reason.DRAINED)),)


def test_a_rank_that_has_two_reasons_to_leave_tells_the_register_once() -> None:
    assert told(*RUNNING, Terminated(), Terminated())[1] == ()
    assert told(*RUNNING, Terminated(), How.EXITED)[1] == (Abort(),)


def test_a_rank_that_the_register_shows_as_gone_waits_for_it_again_only_to_close_the_job() -> None:
    gone = (*RUNNING, Terminated(), Left())
    assert told(*gone, How.EXITED, AbortEnded(), OK)[1] == (Finish(Raised(Reason.DRAINED)),)
    assert told(*gone, How.INTERRUPTED, AbortEnded(), OK)[1] == ()
    assert told(*gone, How.INTERRUPTED, AbortEnded(), OK, Closed(verdict()))[1] == (Finish(Raised(Reason.DRAINED)),)


def test_a_leave_that_is_not_confirmed_ends_by_its_timer() -> None:
    call = led(Terminated(), OK)
    assert transition(call, elapsed(call, Timer.LEAVE))[1] == (Finish(Raised(Reason.DRAINED)),)
    assert transition(call, Refused(Why.UNCONFIRMED))[1] == (Finish(Raised(Reason.DRAINED)),)


def test_a_verdict_while_leaving_is_a_confirmation() -> None:
    assert told(Terminated(), Closed(verdict()), OK)[1] == (Finish(Raised(Reason.DRAINED)),)
    assert told(Terminated(), OK, Closed(verdict()))[1] == (Finish(Raised(Reason.DRAINED)),)


def test_the_call_raises_the_reason_for_which_the_job_ended() -> None:
    assert told(Closed(verdict(Ending.FAILED)))[1] == (Run(Span.TERMINATE, 1),)
    assert told(Closed(verdict(Ending.FAILED)), OK)[1] == (Finish(Raised(Reason.JOB_FAILED)),)


def test_a_rank_that_cannot_join_says_why() -> None:
    for why, reason in [
        (Why.TIMEOUT, Reason.TIMED_OUT),
        (Why.SUPERSEDED, Reason.SUPERSEDED),
        (Why.BEHIND, Reason.SUPERSEDED),
        (Why.LIMITS, Reason.REFUSED),
        (Why.UNCONFIRMED, Reason.STORE_LOST),
    ]:
        assert told(Refused(why))[1] == (Run(Span.TERMINATE, 1),)
        assert told(Refused(why), OK)[1] == (Finish(Raised(reason)),)


def test_a_rank_that_is_unhealthy_after_a_failure_leaves() -> None:
    fault = (*RUNNING, EXC, AbortEnded())
    for before in (fault, (*fault, OK)):
        for how in (EXC, How.INJECTED):
            call, commands = told(*before, how)
            assert (call.leaving, commands[:2]) == (Reason.UNHEALTHY, (Record(0), Leave()))


def test_events_while_a_callback_runs_wait_for_its_end() -> None:
    fault = (*RUNNING, EXC, AbortEnded())
    assert told(*fault, Terminated())[1] == (Leave(),)
    assert told(*fault, Terminated(), OK)[1] == (Run(Span.TERMINATE, 4),)
    assert told(*fault, OK, Closed(verdict(Ending.SUCCEEDED)))[1] == ()
    assert told(*fault, OK, Closed(verdict(Ending.SUCCEEDED)), OK)[1] == (Finish(Returned(None)),)


def test_a_callback_that_hangs_is_made_to_end() -> None:
    call = led(*RUNNING, EXC, AbortEnded())
    call, commands = transition(call, elapsed(call, Timer.LIMIT))
    assert commands == (Want(3), Inject(3))
    call, commands = transition(call, elapsed(call, Timer.AGAIN))
    assert commands == (Inject(3),)
    assert transition(call, elapsed(call, Timer.UNWIND))[1] == (Kill(),)


def test_completion_may_fail_or_hang_and_the_result_is_returned() -> None:
    call = led(*RETURNED, SUCCEEDED)
    assert transition(call, ended(call, EXC))[1] == (Finish(Returned(0)),)
    call, commands = transition(call, elapsed(call, Timer.LIMIT))
    assert commands == (Want(3), Inject(3))
    assert transition(call, ended(call, How.INJECTED))[1] == (Finish(Returned(0)),)
    assert transition(call, Terminated()) == (call, ())


def test_a_reserve_gives_a_lost_store_up_after_its_timeout() -> None:
    lost = led(ready(active=False), OK, StoreLost())
    assert transition(lost, elapsed(lost, Timer.STORE))[0].leaving is Reason.STORE_LOST
    assert led(ready(active=False), OK, StoreLost(), StoreBack()).store_lost is False


def test_a_reserve_whose_store_answers_waits_for_ever() -> None:
    assert deadlines(led(ready(active=False), OK)) == ()


@pytest.mark.parametrize("round", [0, 1, 1_000])
def test_a_timer_of_a_round_is_named_by_the_round(round: int) -> None:
    short, returned = led(ready(round, enough=False)), led(ready(round), OK, OK)
    reserve = led(ready(round, active=False), OK, StoreLost())
    timers = [(each.timer, each.of) for call in (short, returned, reserve) for each in deadlines(call)]
    assert timers == [(Timer.SHORT, round), (Timer.COMPLETION, round), (Timer.STORE, round)]


def test_an_exception_that_the_monitor_injected_is_no_failure_of_this_rank() -> None:
    call, commands = told(*RUNNING, How.INJECTED)
    assert (call.faults, commands) == (0, (Abort(),))


def test_an_event_with_an_old_token_or_round_changes_nothing() -> None:
    call = led(*RUNNING)
    stale: list[Event] = [
        Over(1),
        ended(led(ready())),
        GateRead(1, 0),
        AtomicLeft(1),
        elapsed(led(ready()), Timer.SOFT),
    ]
    for event in stale:
        assert transition(call, event) == (call, ())


def test_an_event_of_the_thousandth_round_and_token_is_not_stale() -> None:
    call = evolve(led(*RUNNING), round=1_000, token=1_000)
    assert transition(call, Over(int("1000")))[1] == (Want(1_000),)
    assert transition(call, SpanEnded(int("1000"), OK))[1] == (MarkDone(1_000),)


def test_the_first_verdict_stands() -> None:
    call = led(*RUNNING, Closed(verdict(Ending.CANCELLED)), Closed(verdict(Ending.SUCCEEDED)))
    assert call.verdict == verdict(Ending.CANCELLED)
