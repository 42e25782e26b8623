"""The restarts of a wrapped function: the fault that ended an iteration, and the times of the steps to the next one.

They are read from a history; nothing is judged here. One restart compares only ranks of one boot.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..inprocess import Event
from ..inprocess.words import AbortEnded, Run, Span, SpanEnded
from ..rendezvous import Arrive, Together
from ..trace.steps import CallStepped
from ..values import frozen
from ..world import Node
from .comparison import Moment
from .history import History, landed


@frozen
class Restart:
    """One restart, from the end of an iteration to the next calls of the function. The node `first` saw the end first, by
    `event`, while its main thread was in `span`. A time that no trace holds is None."""

    ended: int
    began: int
    first: Node
    event: Event
    span: Span | None
    detected_at: float
    interrupted_at: float | None
    """When the last rank had left user code."""
    aborted_at: float | None
    """When the last abort had ended."""
    joined_at: float | None
    """When the last rank had written its arrival."""
    complete_at: float | None
    called_at: float
    """When the last rank was ordered to call the function."""


@frozen
class _Deed:
    """One step of a restart in one rank's trace, and its time."""

    what: str
    round: int
    at: float
    node: Node
    event: Event | None = None
    span: Span | None = None


OVER, OUT, ABORTED, ARRIVED, COMPLETE, CALLED = "over", "out", "aborted", "arrived", "complete", "called"


def restarts(history: History) -> tuple[Restart, ...]:
    """Return the restarts in order, one for each boot whose ranks were in both iterations."""
    boots = dict.fromkeys(run.trace.header.boot for run in history.runs)
    found = [each for boot in boots for each in _on(list(_deeds(history, boot)))]
    return tuple(sorted(found, key=lambda each: (each.began, each.detected_at)))


def _on(deeds: list[_Deed]) -> Iterator[Restart]:
    for began in sorted({deed.round for deed in deeds if deed.what is CALLED}):
        ends = [deed for deed in deeds if deed.what is OVER and deed.round < began]
        if not ends:
            continue
        ended = max(deed.round for deed in ends)
        first = min((deed for deed in ends if deed.round == ended), key=lambda deed: deed.at)
        complete_at = min(_times(deeds, COMPLETE, began), default=None)
        joined = [at for at in _times(deeds, ARRIVED, began) if complete_at is None or at <= complete_at]
        assert first.event
        yield Restart(
            ended,
            began,
            first.node,
            first.event,
            first.span,
            first.at,
            max((at for at in _times(deeds, OUT, ended) if at >= first.at), default=None),
            max(_times(deeds, ABORTED, ended), default=None),
            max(joined, default=None),
            complete_at,
            max(_times(deeds, CALLED, began)),
        )


def _times(deeds: list[_Deed], what: str, round: int) -> list[float]:
    return [deed.at for deed in deeds if deed.what is what and deed.round == round]


def _deeds(history: History, boot: str) -> Iterator[_Deed]:
    for run in history.runs:
        if run.trace.header.boot == boot:
            for moment in run.moments:
                yield from _of(moment, history.at(run, moment.at), history)


def _of(moment: Moment, at: float, history: History) -> Iterator[_Deed]:
    node, state = moment.after.held.who.node, moment.after.held.view.state
    if state and state.complete and state is not moment.before.held.view.state:
        yield _Deed(COMPLETE, state.round, at, node)
    write = landed(moment, history.states)
    if write and isinstance(write.edit, Arrive | Together):
        yield _Deed(ARRIVED, write.state.round, at, node)
    if isinstance(moment.step, CallStepped):
        yield from _of_step(moment, moment.step, at)


def _of_step(moment: Moment, step: CallStepped, at: float) -> Iterator[_Deed]:
    before, after, event = moment.before.call, moment.after.call, step.event
    node, round = moment.after.held.who.node, after.round or 0
    if after.over and not before.over:
        yield _Deed(OVER, round, at, node, event, before.span)
    if isinstance(event, SpanEnded) and before.span in (Span.INITIALIZE, Span.FUNCTION):
        yield _Deed(OUT, round, at, node)
    if isinstance(event, AbortEnded):
        yield _Deed(ABORTED, round, at, node)
    if any(isinstance(command, Run) and command.span is Span.FUNCTION for command in step.commands):
        yield _Deed(CALLED, round, at, node)
