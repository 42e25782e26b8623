"""The steps of a rank's call, taken again: real traces agree with the core, and the first difference is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from traced import finished
from traced_calls import ONE_ACTIVE, Rank, called_again, ranks

from elastic.core.group.state import Reaped
from elastic.core.inprocess import deadlines
from elastic.core.inprocess.words import (
    AbortEnded,
    Elapsed,
    Event,
    GateRead,
    How,
    MarkDone,
    Ready,
    Run,
    Span,
    SpanEnded,
    Terminated,
    Timer,
)
from elastic.core.rendezvous import Errand, Request, Submitted, Write
from elastic.core.replay.comparison import Replayed, replayed
from elastic.core.trace.lines import traces
from elastic.core.trace.steps import Asked, CallStepped, Step, Stepped, step_at

DONE, RUNNING = called_again().finish(), called_again()
TRACE = DONE.b.trace


def tampered(change: Callable[[Step], Step | None]) -> Replayed:
    """Return the trace with the first step changed that the change applies to."""
    index, changed = next((at, made) for at, step in enumerate(TRACE.steps) if (made := change(step)))
    return replayed(evolve(TRACE, steps=(*TRACE.steps[:index], changed, *TRACE.steps[index + 1 :])))


def hearing(kind: type[Event], **changes: Any) -> Replayed:
    def other(step: Step) -> Step | None:
        heard = step.event if isinstance(step, CallStepped) else None
        return evolve(step, event=evolve(heard, **changes)) if isinstance(heard, kind) else None  # type: ignore[arg-type]

    return tampered(other)


def told(*events: Event) -> Replayed:
    """Return the trace with these events after the first step, which bring no command."""
    steps = (TRACE.steps[0], *(CallStepped(event, (), 200.0) for event in events))
    return replayed(evolve(TRACE, steps=steps, lines=tuple(range(2, 2 + len(steps)))))


def difference(run: Replayed) -> str:
    assert run.differs
    return run.differs[1].what


@pytest.mark.parametrize("rank", [DONE.a, DONE.b, RUNNING.a, ranks(terms=ONE_ACTIVE).finish().b])
def test_the_trace_of_a_real_rank_agrees_with_the_core(rank: Rank) -> None:
    run = replayed(*traces(rank.lines))
    assert (run.differs, run.calls, run.ended) == (None, True, rank.call.outcome is not None)
    assert run.moments[-1].after.call == rank.call
    assert run.moments[-1].after.held == rank.held


def test_a_rank_that_ends_the_job_puts_its_failure_on_record_first() -> None:
    made = ranks()
    made.a.ends(How.GAVE_UP)
    made.finish()
    run = replayed(made.a.trace)
    assert (run.differs, run.ended) == (None, True)
    steps = made.a.trace.steps
    asked = [step for step in steps if isinstance(step, Asked) and isinstance(step.fed, Submitted)]
    record = next(step for step in asked if step.fed == Submitted((Errand(None),)))
    closing = next(step for step in asked[asked.index(record) + 1 :])
    assert isinstance(closing.fed, Submitted)
    assert isinstance(closing.fed.items[0], Request)
    unrecorded = evolve(made.a.trace, steps=tuple(step for step in steps if step is not record))
    assert difference(replayed(unrecorded)) == "what the agent requests"


def test_a_call_s_trace_comes_back_as_it_was() -> None:
    assert list(traces(DONE.a.lines)) == [DONE.a.trace]
    assert step_at(CallStepped(None, (), 3.0)) == 3.0


def test_a_command_that_the_core_would_not_have_given_is_found() -> None:
    def other(step: Step) -> Step | None:
        if not isinstance(step, CallStepped) or not any(isinstance(command, Run) for command in step.commands):
            return None
        return evolve(step, commands=(MarkDone(0),))

    assert difference(tampered(other)) == "what the call commands (0)"


def test_an_event_of_the_rendezvous_without_its_answer_is_found() -> None:
    assert difference(hearing(Ready, round=5)) == "what the call hears (round)"
    assert difference(told(Ready(0))) == "what the call hears"


def test_which_ranks_are_active_is_taken_at_the_rank_s_word() -> None:
    assert difference(hearing(Ready, active=False)) == "what the call commands"


@pytest.mark.parametrize("event", [SpanEnded(0, How.RETURNED), GateRead(0, 0), AbortEnded()])
def test_an_event_without_a_cause_is_found(event: Event) -> None:
    assert difference(told(event)) == "what the call hears"


@pytest.mark.parametrize(("after_s", "differs"), [(59.0, True), (61.0, False)])
def test_a_deadline_passes_no_sooner_than_it_does(after_s: float, differs: bool) -> None:
    made = ranks()
    made.b.ends(How.FAILED).ends(span=Span.FINALIZE)
    (limit,) = deadlines(made.b.call)
    assert (limit.timer, limit.after_s) == (Timer.LIMIT, 60.0)
    made.b.shared.now += after_s
    made.b.hears(Elapsed(limit))
    run = replayed(made.b.trace)
    assert (run.differs is not None) == differs
    assert not differs or difference(run) == "what the call hears"


def test_progress_may_move_a_deadline_and_one_that_runs_no_longer_says_nothing() -> None:
    made = ranks()
    soft, _ = deadlines(made.b.call)
    made.b.hears(Elapsed(evolve(soft, of=1)), Elapsed(soft))
    run = replayed(made.b.trace)
    assert run.differs is None
    assert run.moments[-1].after.call.over


def test_an_event_from_outside_may_come_at_any_time() -> None:
    assert difference(told(Terminated())) == "what the call commands"


def test_a_span_s_end_is_that_of_the_span_under_way() -> None:
    assert difference(hearing(SpanEnded, token=9)) == "what the call hears"
    assert difference(hearing(SpanEnded, how=How.INJECTED)).startswith("what the call commands")


def test_a_fault_is_put_on_record_behind_the_end_of_the_round() -> None:
    def nothing(step: Step) -> Step | None:
        match step:
            case Asked(Submitted((Errand(),))):
                return DONE.b.steps[1]
            case _:
                return None

    assert difference(tampered(nothing)).startswith("what the agent requests")


def test_only_the_rank_policy_s_part_of_a_write_is_taken_from_the_trace() -> None:
    def written(**changes: Any) -> Callable[[Step], Step | None]:
        def other(step: Step) -> Step | None:
            match step:
                case Asked(ask=Write(state) as write) if state.policy:
                    return evolve(step, ask=evolve(write, state=evolve(state, **changes)))
                case _:
                    return None

        return other

    assert tampered(written(policy="another")).differs is None
    assert difference(tampered(written(next_order=9))) == "what is asked for (state.next_order)"


def test_an_agent_s_steps_are_no_call_s_and_the_other_way_round() -> None:
    agent = finished().a.trace
    for trace, step in ((TRACE, Stepped(Reaped(1.0), (), 1.0)), (agent, CallStepped(AbortEnded(), (), 1.0))):
        assert difference(replayed(evolve(trace, steps=(step,), lines=(2,)))) == "whose step this is"
