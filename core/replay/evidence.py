"""The facts that the traces of a history give to the judges, and the verdict of the judges.

The facts come in an order that no agent could tell from the real one. A fact has its place at the write of a version, or
after the last version that its node knew. The writes of a life are told up to its first gap. For a writer without a trace
the register's word is taken. S9 with the fence on is not judged, since it needs one clock for all agents.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise

from ..group import Group
from ..group.state import (
    Command,
    Elapsed,
    End,
    Event,
    Gone,
    MarkDone,
    Move,
    Noticed,
    Record,
    RecordUnstartable,
    Signalled,
)
from ..inprocess import words
from ..properties.facts import (
    Began,
    Decided,
    Fact,
    Failed,
    GaveUp,
    Holds,
    Left,
    Moved,
    Noted,
    Reaped,
    Slept,
    Succeeded,
    Wrote,
)
from ..properties.facts import Started as WorkersStarted
from ..properties.facts import Stepped as GroupStepped
from ..properties.judge import Judge
from ..properties.law import Strength
from ..rendezvous import (
    Input,
    Raise,
    RendezvousState,
    Restore,
    Status,
    Woke,
    Write,
    drain,
    verify,
    verify_step,
)
from ..rendezvous.exchange import ANSWERS, UNANSWERED
from ..trace.steps import Asked, CallStepped, Started, Stepped
from ..values import frozen
from ..violation import Violation
from ..world import WorldId
from . import call_judge as judging
from .comparison import Moment, Replayed
from .history import History, Place, Written, landed, place

BEFORE_ALL: Place = (0, 0, "")

Dated = tuple[tuple[Place, int], Fact]
"""A fact and its place: with the write of this version (0), or (1) somewhere after it."""


@frozen
class Judgement:
    """The first property that does not hold, as far as the traces of a history tell, and how often each law was armed."""

    violation: Violation | None
    strength: Strength


def broken(history: History) -> Violation | None:
    """Return the first property that does not hold, as far as these traces tell; None if all hold."""
    return judgement(history).violation


def judgement(history: History) -> Judgement:
    """Return what the judges say of these traces."""
    judge = Judge(jobs={state.life: state.job for state in history.states.values()})
    try:
        _verify(history)
        for fact in _facts(history):
            judge.saw(fact)
        if history.calls:
            judge_of_calls = judging.CallJudge()
            for told in call_facts(history):
                judge_of_calls.saw(told)
    except Violation as violation:
        return Judgement(violation, judge.strength)
    return Judgement(None, judge.strength)


def _verify(history: History) -> None:
    """Check that one version is one state, and that each state and each step to the next is legal. Raises Violation."""
    for (_, version, _), seen in history.sightings.items():
        first, _, state = seen[0]
        for node, _, other in seen[1:]:
            if other != state:
                raise Violation("S7", f"version {version} is one state for {first} and another for {node}")
        verify(state)
    for life in history.lives:
        for before, after in pairwise(life):
            if before.version + 1 == after.version:
                verify_step(before, after)


def _facts(history: History) -> Iterator[Fact]:
    """Yield the facts in an order that no agent could tell from the real one."""
    found = [*_of_register(history), *(fact for run in history.runs for fact in _of_agent(run, history.states))]
    for _, fact in sorted(found, key=lambda dated: dated[0]):
        yield fact


def call_facts(history: History) -> list[judging.Fact]:
    """Return the facts by which the laws of calls are judged, in an order that no rank could tell from the real one."""
    found = [*_of_versions(history), *(fact for run in history.runs for fact in _of_rank(run, history))]
    return [fact for _, fact in sorted(found, key=lambda dated: dated[0])]


def _of_versions(history: History) -> Iterator[tuple[tuple[Place, int], judging.Fact]]:
    before: RendezvousState | None = None
    for where, after in history.states.items():
        follows = before and before.life == after.life and before.version + 1 == after.version
        yield (where, 0), judging.Stands(before if follows else None, after)
        before = after


def _of_rank(run: Replayed, history: History) -> Iterator[tuple[tuple[Place, int], judging.Fact]]:
    node, known = run.trace.header.node, BEFORE_ALL
    for number, (known, _) in enumerate(_knowing(run, history.states)):
        yield from (((known, 1), fact) for fact in judging.facts(node, run.moments, number))
    if not run.ended:
        yield (known, 1), judging.BreaksOff(node)


def _of_register(history: History) -> Iterator[Dated]:
    """Yield the writes of each life up to its first gap. For nodes whose trace shows no write the register's word is
    taken."""
    told = set[Place]()
    for life in history.lives:
        before: RendezvousState | None = None
        for after in life:
            where = place(after.life, after.version)
            first = 1 if after.life.epoch == 1 else life[0].version
            if after.version != (before.version + 1 if before else first):
                break
            written = history.writes.get(where)
            if not written or _from_unknown(written, told):
                yield from (((where, 0), fact) for fact in _taken_at_its_word(before, after))
            if written:
                yield from (((where, 0), fact) for fact in _of_write(history, written, before, after))
            told.add(where)
            before = after


def _from_unknown(written: Written, told: Container[Place]) -> bool:
    """Return True if this restores a register whose facts nobody has told."""
    edit = written.edit
    return isinstance(edit, Restore) and place(edit.held.life, edit.held.version) not in told


def _of_write(
    history: History, written: Written, before: RendezvousState | None, after: RendezvousState
) -> Iterator[Fact]:
    token = written.based_on
    if isinstance(written.edit, Restore):
        before = history.states.get(place(token.life, token.version)) if token else None
        if token and not before:
            return
    yield Wrote(written.node, before, written.edit, after)


def _taken_at_its_word(before: RendezvousState | None, after: RendezvousState) -> Iterator[Fact]:
    if ended := after.ended:
        world = before.world_id if before else None
        for back in range(after.failures - (before.failures if before else 0)):
            yield Failed(ended.by, world or WorldId(after.life, ended.round - back))
    for node in after.those(Status.DONE):
        yield Succeeded(node, after.world_id or WorldId(after.life, after.round))


def _of_agent(run: Replayed, states: Mapping[Place, RendezvousState]) -> Iterator[Dated]:
    answered_at = tried_at = -math.inf
    for known, moment in _knowing(run, states):
        if isinstance(moment.step, Asked) and not run.calls:
            answered_at = moment.at if isinstance(moment.step.fed, ANSWERS) else answered_at
            failed = isinstance(moment.step.fed, UNANSWERED)
            tried_at = moment.before.client.asked_at if failed else tried_at
            yield from (((known, 1), fact) for fact in _of_client(moment, moment.step.fed, answered_at, tried_at))
        else:
            yield from (((known, 1), fact) for fact in _of_moment(moment))


def _knowing(run: Replayed, states: Mapping[Place, RendezvousState]) -> Iterator[tuple[Place, Moment]]:
    """Yield each step, with the last version that its node knew there."""
    known = BEFORE_ALL
    for moment in run.moments:
        write = landed(moment, states)
        for state in (moment.after.held.view.state, write.state if write else None):
            known = max(known, place(state.life, state.version)) if state else known
        yield known, moment


def _of_moment(moment: Moment) -> Iterator[Fact]:
    match moment.step:
        case Started():
            assert moment.before.group.world is not None
            yield WorkersStarted(moment.after.group.node, moment.before.group.world)
        case Stepped(event):
            if event:
                yield from _of_group(moment, event, moment.step)
            else:
                yield Began(moment.after.held.who.node, moment.at)
        case CallStepped():
            yield from _of_call(moment, moment.step)
        case _:
            return


def _of_client(moment: Moment, fed: Input, answered_at: float, tried_at: float) -> Iterator[Fact]:
    held = moment.after.held
    if isinstance(fed, Woke):
        yield Slept(held.who.node, moment.at)
    if held.view.state is not moment.before.held.view.state:
        yield Holds(held, moment.at)
    if isinstance(moment.step, Asked) and isinstance(moment.step.ask, Write):
        yield Decided(held, moment.step.ask.edit, moment.at)
    for told in moment.after.answers:
        if isinstance(told.answer, Raise):
            yield GaveUp(told.held, told.handler, told.answer.failure.why, moment.at, answered_at, tried_at)
        elif told.handler is drain:
            yield Noted(held.who.node)


def _of_call(moment: Moment, step: CallStepped) -> Iterator[Fact]:
    """Yield the facts of a rank's step by which its register is judged."""
    node, world = moment.after.held.who.node, moment.after.held.past.mine
    for command in step.commands:
        if world and isinstance(command, words.End):
            yield Failed(node, world)
        if world and isinstance(command, words.MarkDone):
            yield Succeeded(node, world)
    if isinstance(step.event, words.Left):
        yield Left(node)


def _fails(group: Group, commands: Sequence[Command]) -> bool:
    """Return True if the node's part in its world has failed. A worker that restarts alone is no failure of that."""
    failure = End if group.settings.alone is not None else Record | RecordUnstartable
    return any(isinstance(command, failure) for command in commands)


def _of_group(moment: Moment, event: Event, step: Stepped) -> Iterator[Fact]:
    before, after, commands = moment.before.group, moment.after.group, step.commands
    node = after.node
    moved = next((command.world for command in commands if isinstance(command, Move)), None)
    world = moved or before.world
    # The group's spans begin when these came, and not when the agent's thread had time for them.
    at = event.at if isinstance(event, Elapsed | Noticed | Signalled) else step.at
    yield GroupStepped(before, event, after, commands, at)
    if moved:
        yield Moved(node, moved)
    if world and _fails(before, commands):
        yield Failed(node, world.id)
    if world and any(isinstance(command, MarkDone) for command in commands):
        yield Succeeded(node, world.id)
    if before.running and not after.running:
        yield Reaped(node)
    if isinstance(event, Gone):
        yield Left(node)
