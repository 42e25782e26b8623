"""The invariants of a call and of its steps.

I2, I3 and I13 are laws of the simulator too, which sees the threads themselves. The numbers with a C are the call's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..violation import Finding, check
from .state import Aborting, Call, Phase, deadlines
from .words import (
    Abort,
    Command,
    Elapsed,
    End,
    Event,
    Finish,
    Inject,
    Join,
    Raised,
    Reason,
    Refused,
    Run,
    Span,
    Timer,
    Want,
)

SPANS: Mapping[Phase, frozenset[Span | None]] = {
    Phase.JOINING: frozenset({None}),
    Phase.STARTING: frozenset({Span.INITIALIZE}),
    Phase.RUNNING: frozenset({Span.FUNCTION}),
    Phase.RESERVE: frozenset({None}),
    Phase.SHORT: frozenset({None}),
    Phase.RETURNED: frozenset({None}),
    Phase.PENDING: frozenset({Span.INITIALIZE, Span.FUNCTION}),
    Phase.UNWINDING: frozenset({Span.INITIALIZE, Span.FUNCTION, None}),
    Phase.FINALIZING: frozenset({Span.FINALIZE}),
    Phase.CHECKING: frozenset({Span.CHECK}),
    Phase.COMPLETING: frozenset({Span.COMPLETE}),
    Phase.LEAVING: frozenset({Span.TERMINATE, None}),
    Phase.ENDED: frozenset({None}),
}
"""The spans that the main thread may run in each phase; None: it waits."""

_WITH_RESULT = (Phase.RETURNED, Phase.COMPLETING, Phase.ENDED)
_WITHOUT_TIMER = (Phase.JOINING, Phase.RESERVE, Phase.ENDED)


def verify(call: Call) -> None:
    """Raise a Violation for the first invariant that this call breaks."""
    check(_of_call(call))


def verify_step(before: Call, event: Event, after: Call, commands: tuple[Command, ...]) -> None:
    """Raise a Violation for the first invariant that this step breaks. Both calls must pass `verify`."""
    findings = (*_of_step(before, after, commands), *_of_closing(before, event, after))
    check((number, f"{fact} (at {event})") for number, fact in findings)


def _of_call(call: Call) -> Iterator[Finding]:
    if call.span not in SPANS[call.phase]:
        yield "C1", f"{call.phase.value} while the main thread runs {call.span}"
    if call.abort is Aborting.RUNNING and call.phase is not Phase.UNWINDING:
        yield "I3", f"abort runs while {call.phase.value}"
    unknown = call.leaving is Reason.OUTCOME_UNKNOWN
    if call.result is not None and not (unknown or call.phase in _WITH_RESULT):
        yield "C2", f"a result is held while {call.phase.value}"
    if call.result is not None and (call.result != call.round or not call.active):
        yield "C2", f"the result of round {call.result} is held in round {call.round}"
    if (call.outcome is None) == (call.phase is Phase.ENDED):
        yield "C3", f"{call.phase.value} with outcome {call.outcome}"
    if call.phase is Phase.LEAVING and call.leaving is None:
        yield "C4", "leaving without a reason"
    if call.left and call.leaving is None:
        yield "C4", "gone, but it never left"
    if (call.repeats or call.barren) and call.mark is None:
        yield "C10", f"{call.repeats} repetitions of no failure, {call.barren} before any progress"
    limit = call.settings.max_repeats
    if limit is not None and call.repeats > limit and call.leaving is None:
        yield "C10", f"{call.repeats} repetitions, {limit} allowed, and it goes on"
    fresh_after = call.settings.fresh_after
    if fresh_after is not None and call.barren >= fresh_after and call.leaving is None:
        yield "C10", f"the same failure {call.barren} times before any progress, {fresh_after} allowed, and it goes on"
    if call.phase not in _WITHOUT_TIMER and not deadlines(call):
        yield "C5", f"{call.phase.value} without a timer"


def _of_step(before: Call, after: Call, commands: tuple[Command, ...]) -> Iterator[Finding]:
    kinds = [type(command) for command in commands]
    runs = [command for command in commands if isinstance(command, Run)]
    if len(runs) > 1 or (runs and (Finish in kinds or runs[0].token != before.token + 1)):
        yield "C6", f"more than one order, or an old token: {commands}"
    if after.token != before.token + len(runs) or (runs and after.span is not runs[0].span):
        yield "C6", f"token {before.token} became {after.token} by {commands}"
    if before.span is not None and after.token == before.token and after.span not in (before.span, None):
        yield "I2", f"the main thread was in {before.span} and is in {after.span}"
    if Abort in kinds and before.abort is not Aborting.NOT_BEGUN:
        yield "C7", f"abort begins again in round {before.round}"
    order = [kind for kind in kinds if kind in _ORDER]
    if order != sorted(order, key=_ORDER.index):
        yield "C8", f"out of order: {commands}"
    if before.leaving is not None and after.leaving is not before.leaving:
        yield "C9", f"left because {before.leaving}, now because {after.leaving}"
    if before.leaving is not None and Join in kinds:
        yield "I13", "who leaves joins again"
    if before.result is not None and after.result not in (before.result, None):
        yield "C2", f"the result of round {before.result} became that of round {after.result}"


def _of_closing(before: Call, event: Event, after: Call) -> Iterator[Finding]:
    """Yield what is wrong with the end of a call that has asked to close the job: only the verdict shows that the register
    knows, unless the register cannot be asked any longer."""
    if before.closing and not after.closing:
        yield "C9", "asked to close the job, and does not wait for that any longer"
    if not after.closing or before.left:
        return
    is_over = isinstance(event, Refused) or (isinstance(event, Elapsed) and event.deadline.timer is Timer.LEAVE)
    if after.left and not (after.verdict or is_over):
        yield "C9", "asked to close the job, and takes it for closed without a verdict"
    if isinstance(after.outcome, Raised) and not after.left:
        yield "C9", "asked to close the job, and ends before it is known to be closed"


_ORDER = [End, Want, Abort, Inject, Run]
"""The order in which these commands may come in one step."""
