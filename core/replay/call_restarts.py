"""How a wrapped function was called again: what went wrong in one iteration, and when the next one had what it needs.

Read off a history; nothing is judged here. The moments of one restart compare ranks of one boot only.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from ..inprocess import Event
from ..inprocess.words import AbortEnded, Run, Span, SpanEnded
from ..rendezvous import Arrive, Together
from ..world import Node
from .comparison import Moment
from .history import History, landed
from .steps import CallStepped


@frozen
class Restart:
    """From the end of one iteration to the next calls of the function. `first` saw the end, by `event`, when its main
    thread was in `span`; a point in time that no trace tells is none."""

    ended: int
    began: int
    first: Node
    event: Event
    span: Span | None
    detected_at: float
    interrupted_at: float | None
    """When the last of the ranks was out of the user's code."""
    aborted_at: float | None
    """When the last abort had ended."""
    joined_at: float | None
    """When the last rank had written that it is back, or new."""
    complete_at: float | None
    called_at: float
    """When the function was ordered on the last of them."""


@frozen
class _Deed:
    """What one rank's trace tells of a round, and when."""

    what: str
    round: int
    at: float
    node: Node
    event: Event | None = None
    span: Span | None = None


OVER, OUT, ABORTED, ARRIVED, COMPLETE, CALLED = "over", "out", "aborted", "arrived", "complete", "called"


def restarts(history: History) -> tuple[Restart, ...]:
    """In their order; one per boot whose ranks were in both iterations."""
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
    node, state = moment.after.held.node, moment.after.held.state
    if state and state.complete and state is not moment.before.held.state:
        yield _Deed(COMPLETE, state.round, at, node)
    write = landed(moment, history.states)
    if write and isinstance(write.edit, Arrive | Together):
        yield _Deed(ARRIVED, write.state.round, at, node)
    if isinstance(moment.step, CallStepped):
        yield from _of_step(moment, moment.step, at)


def _of_step(moment: Moment, step: CallStepped, at: float) -> Iterator[_Deed]:
    before, after, event = moment.before.call, moment.after.call, step.event
    node, round = moment.after.held.node, after.round or 0
    if after.over and not before.over:
        yield _Deed(OVER, round, at, node, event, before.span)
    if isinstance(event, SpanEnded) and before.span in (Span.INITIALIZE, Span.FUNCTION):
        yield _Deed(OUT, round, at, node)
    if isinstance(event, AbortEnded):
        yield _Deed(ABORTED, round, at, node)
    if any(isinstance(command, Run) and command.span is Span.FUNCTION for command in step.commands):
        yield _Deed(CALLED, round, at, node)
