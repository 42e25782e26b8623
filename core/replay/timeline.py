"""When things happened: the rounds, the recovery from one round to the next, and the lanes of a picture.

All of it is read off a history; nothing is judged here. Times are seconds since the first agent began. The parts of one
recovery compare agents of one boot only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ..group import Phase
from ..group.state import Command, Event, Record, RecordUnfit, RecordUnstartable
from ..inprocess import Call
from ..rendezvous import Arrive, Deed, Evict, Together, Write
from ..trace.plain import word
from ..trace.steps import Asked, CallStepped, Started, Stepped, Worked
from ..values import frozen
from ..world import Node, Verdict, Why, World
from . import call_lanes as of_calls
from .comparison import Moment, Replayed
from .history import History, landed
from .lanes import SPANS, Lanes, Mark, Span, SpanKind, marked
from .replica import Replica


@frozen
class Round:
    """One round of the register; None where no trace tells the time."""

    number: int
    members: tuple[Node, ...]
    workers: int
    complete_at: float | None
    over_at: float | None
    why: Why | None
    """Why the round ended; None if it stands, or if no trace tells."""
    by: Node | None
    verdict: Verdict | None
    """The job's verdict, if the job ended with this round."""


@frozen
class Recovery:
    """The time from the end of one world to the start of the next, and on to the first progress of its last worker, on the
    agents of one boot. `first` is the node that saw the end, by `event`, and answered it by `commands`."""

    ended: int
    began: int
    first: Node
    event: Event
    commands: tuple[Command, ...]
    detected_at: float
    stopped_at: float | None
    """When the last worker of the old world was dead."""
    joined_at: float | None
    """When the last node had written that it is back, or new."""
    complete_at: float | None
    started_at: float
    progressed_at: float | None
    """When the last worker whose program says so had made its first progress; None if none says."""


# --- rounds


def rounds(history: History) -> tuple[Round, ...]:
    numbers = sorted({state.round for state in history.states.values()})
    return tuple(_round(history, number) for number in numbers)


def _round(history: History, number: int) -> Round:
    states = [state for state in history.states.values() if state.round == number]
    later = [state for state in history.states.values() if state.round > number]
    complete = next((state for state in states if state.complete), None)
    ended = next((state.ended for state in reversed(later) if state.ended and state.ended.round == number), None)
    closed = states[-1].closed
    over = states[-1] if closed else next(iter(later), None)
    members = complete.members if complete else ()
    return Round(
        number,
        members,
        sum(complete.seats[node].profile.local_world_size for node in members) if complete else 0,
        history.seen_at(complete) if complete else None,
        history.seen_at(over) if over else None,
        ended.why if ended else closed.why if closed else None,
        ended.by if ended else closed.by if closed else None,
        closed,
    )


# --- recoveries


def recoveries(history: History) -> tuple[Recovery, ...]:
    """Return the recoveries in the order of rounds: one per boot whose nodes had workers before and after. Wrapped calls
    have `restarts` instead."""
    boots = dict.fromkeys(run.trace.header.boot for run in history.runs if not run.calls)
    found = [each for boot in boots for each in _on(history, boot)]
    return tuple(sorted(found, key=lambda each: (each.began, each.detected_at)))


@frozen
class _Moments:
    """The times that tell of recoveries, on agents that share a clock."""

    arrivals: tuple[tuple[int, float], ...]
    """Pairs of a round and the time at which a node wrote that it is there."""
    complete: tuple[tuple[int, float], ...]
    started: tuple[tuple[int, float], ...]
    over: tuple[tuple[int, float, Node, Event, tuple[Command, ...]], ...]
    dead: tuple[tuple[int, float], ...]
    """Pairs of a round and the time at which the last of a node's workers of that round was dead."""
    progressed: tuple[tuple[int, float], ...]


def _on(history: History, boot: str) -> Iterator[Recovery]:
    moments = [
        (history.at(run, moment.at), moment)
        for run in history.runs
        for moment in run.moments
        if run.trace.header.boot == boot and isinstance(moment.step, Stepped | Started | Asked)
    ]
    progressed = [
        progress for run in history.runs if run.trace.header.boot == boot for progress in _progress(history, run)
    ]
    shown = [(at, moment.after.held.view.state) for at, moment in moments]
    told = _Moments(
        tuple((write.state.round, at) for at, moment in moments if (write := _arrival(moment, history))),
        tuple((state.round, at) for at, state in shown if state and state.complete),
        tuple((moment.step.round, at) for at, moment in moments if isinstance(moment.step, Started)),
        tuple(
            (world.round, at, moment.after.group.node, event, commands)
            for at, moment in moments
            for world, event, commands in _end(moment)
        ),
        tuple((world.round, at) for at, moment in moments if (world := moment.before.group.world) and _dies(moment)),
        tuple(progressed),
    )
    began = sorted({round for round, _ in told.started})
    for ended, next_ in pairwise(began):
        ends = sorted((found for found in told.over if found[0] == ended), key=lambda found: found[1:3])
        if ends:
            yield _recovery(told, *ends[0], next_)


def _recovery(
    told: _Moments, ended: int, at: float, first: Node, event: Event, commands: tuple[Command, ...], began: int
) -> Recovery:
    stopped = [when for round, when in told.dead if round == ended and when >= at]
    complete_at = min((when for round, when in told.complete if round == began), default=None)
    joined = [when for round, when in told.arrivals if round == began and (complete_at is None or when <= complete_at)]
    started = [when for round, when in told.started if round == began]
    return Recovery(
        ended,
        began,
        first,
        event,
        commands,
        at,
        max(stopped, default=None),
        max(joined, default=None),
        complete_at,
        max(started),
        max((when for round, when in told.progressed if round == began), default=None),
    )


def _progress(history: History, run: Replayed) -> Iterator[tuple[int, float]]:
    """Yield each round in which workers of this agent have said that they make progress, and when all that do had begun."""
    began: dict[int, float] = {}
    for moment in run.moments:
        if isinstance(work := moment.step, Worked) and work.first and not work.start:
            began[work.round] = max(began.get(work.round, work.first.at), work.first.at)
    yield from ((round, history.at(run, at)) for round, at in began.items())


def _arrival(moment: Moment, history: History) -> Write | None:
    write = landed(moment, history.states)
    return write if write and isinstance(write.edit, Arrive | Together) else None


def _end(moment: Moment) -> Iterator[tuple[World, Event, tuple[Command, ...]]]:
    """Yield the world that ends for a node in this step, with the event that ended it and what it made the node do."""
    before, after, step = moment.before.group, moment.after.group, moment.step
    leaves = before.phase in _AT_WORK and after.phase not in _AT_WORK
    if leaves and before.world and isinstance(step, Stepped) and step.event:
        yield before.world, step.event, step.commands


_AT_WORK = (Phase.RUNNING, Phase.BARRIER)


def _dies(moment: Moment) -> bool:
    return bool(moment.before.group.running and not moment.after.group.running)


# --- lanes


def lanes(history: History) -> Lanes:
    """Return one lane per agent, in the order in which they began."""
    return Lanes(
        tuple(run.trace.header.node for run in history.runs),
        tuple(span for run in history.runs for span in _spans(history, run)),
        tuple(mark for run in history.runs for mark in _marks(history, run)),
    )


def _spans(history: History, run: Replayed) -> Iterator[Span]:
    abouts = [(history.at(run, moment.at), *_about(moment.after)) for moment in run.moments]
    begins = [now for index, now in enumerate(abouts) if not index or abouts[index - 1][1:] != now[1:]]
    ends = [*(at for at, _, _ in begins[1:]), *(at for at, _, _ in abouts[-1:])]
    for (start, kind, label), end in zip(begins, ends, strict=True):
        yield Span(run.trace.header.node, start, end, kind, label)


def _about(replica: Replica) -> tuple[SpanKind, str]:
    if isinstance(replica.machine, Call):
        return of_calls.about(replica.machine)
    group, state = replica.group, replica.held.view.state
    if group.phase is Phase.JOINING and state and state.is_spare(group.node):
        return "waiting", ""
    return SPANS[group.phase], f"round {group.world.round}" if group.world else ""


def _marks(history: History, run: Replayed) -> Iterator[Mark]:
    node = run.trace.header.node
    for moment in run.moments:
        at = history.at(run, moment.at)
        if isinstance(moment.step, Stepped):
            yield from (Mark(node, at, "fault", _fault(command)) for command in moment.step.commands if _fault(command))
        if isinstance(moment.step, CallStepped):
            faults = map(of_calls.fault, moment.step.commands)
            yield from (Mark(node, at, "fault", text) for text in faults if text)
        if write := landed(moment, history.states):
            yield marked(node, at, _did(write.edit), (moment.after.held.view.state, write.edit, write.state))
    for round, at in _progress(history, run):
        yield Mark(node, at, "progress", f"first progress of round {round}")
    if run.differs:
        yield Mark(node, history.at(run, run.ended_at), "violation", str(run.differs[1]))
    elif run.moments and not run.ended:
        yield Mark(node, history.at(run, run.ended_at), "fault", "its trace breaks off")


def _did(edit: Deed) -> str:
    evicted = sorted(edit.dead) if isinstance(edit, Evict) else ()
    return f"evicts {', '.join(node.slot for node in evicted)}" if evicted else word(type(edit))


def _fault(command: Command) -> str:
    match command:
        case Record(local_rank, code):
            return f"worker {local_rank} failed ({code})"
        case RecordUnstartable(text) | RecordUnfit(text):
            return text
        case _:
            return ""
