"""What the traces of several agents tell together: a job's register, its versions, who wrote them, and when.

Agents of one job hold successive versions of one register, so what they did is put in order by that and by no clock: what a
node does after it has seen a version comes after that version's write, and before the write of any later one that it makes
itself. A store that lost its memory begins another life of the register; lives follow each other by their epochs. Traces may
be missing, and one may stop in the middle (its agent was killed): then there are versions that nobody's trace shows, and for
what an unknown writer did the register's word is taken.

Points in time are compared within one boot of one host; between hosts they are put side by side by their wall clocks, which
is good enough to look at and for nothing else.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby, pairwise
from typing import TypeAlias

from attrs import frozen

from ..group.state import End, Event, Gone, MarkDone, Record, RecordUnstartable
from ..inprocess import Violation as CallViolation
from ..inprocess import words
from ..rendezvous import Deed, RendezvousState, Restore, Status, Token, Violation, Write, verify, verify_step
from ..world import Life, Node, WorldId
from .calls import judging
from .calls.ranks import Broken
from .facts import Fact, Failed, Left, Reaped, Succeeded, Wrote
from .facts import Started as WorkersStarted
from .facts import Stepped as GroupStepped
from .judge import Judge
from .replay import Moment, Replayed
from .trace import CallStepped, Saw, Started, Stepped, Turned

Place: TypeAlias = tuple[int, int, str]
"""Where a state stands in the history of its job: epoch, version, and the nonce of the life, should two have one epoch."""


def place(life: Life, version: int) -> Place:
    return life.epoch, version, life.nonce


@frozen
class Written:
    """A write that landed, as its writer's trace shows it, and the state that it was based on."""

    node: Node
    edit: Deed
    at: float
    based_on: Token | None


@frozen(eq=False)
class History:
    """One job's register."""

    job: str
    runs: tuple[Replayed, ...]
    """The agents (or the ranks that call) whose traces are there, in the order in which they began."""

    @property
    def calls(self) -> bool:
        """It is the register of a wrapped function."""
        return self.runs[0].calls

    @cached_property
    def sightings(self) -> Mapping[Place, tuple[tuple[Node, float, RendezvousState], ...]]:
        """Place -> who saw it, when, and what it was for them."""
        found: dict[Place, list[tuple[Node, float, RendezvousState]]] = {}
        for run in self.runs:
            for moment in run.moments:
                if isinstance(moment.step, Saw) and (state := moment.step.state) and state.job == self.job:
                    seen = run.trace.header.node, self.at(run, moment.at), state
                    found.setdefault(place(state.life, state.version), []).append(seen)
        return {where: tuple(found[where]) for where in sorted(found)}

    @cached_property
    def states(self) -> Mapping[Place, RendezvousState]:
        """Place -> the register, as somebody saw it; in their order."""
        return {where: seen[0][2] for where, seen in self.sightings.items()}

    @cached_property
    def lives(self) -> tuple[tuple[RendezvousState, ...], ...]:
        """The states of each life, in the order of lives and versions."""
        states = sorted(self.states.values(), key=lambda state: (state.life.epoch, state.life.nonce, state.version))
        return tuple(tuple(each) for _, each in groupby(states, key=lambda state: state.life))

    @cached_property
    def hosts(self) -> Mapping[Node, str]:
        """Every node that was ever seated, or whose trace is there -> its host."""
        seated = {node: seat.profile.host for state in self.states.values() for node, seat in state.seats.items()}
        return {**{run.trace.header.node: run.trace.header.host for run in self.runs}, **seated}

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Versions that nobody's trace shows."""
        found = list[int]()
        for life in self.lives:
            known = {state.version for state in life}
            first = 1 if life[0].life.epoch == 1 else life[0].version
            found += (version for version in range(first, life[-1].version) if version not in known)
        return tuple(found)

    @cached_property
    def writes(self) -> Mapping[Place, Written]:
        """Place -> who wrote it, if a trace tells."""
        found: dict[Place, Written] = {}
        for run in self.runs:
            for moment in run.moments:
                if write := landed(moment, self.states):
                    at = self.at(run, moment.at)
                    written = Written(run.trace.header.node, write.edit, at, write.token)
                    found.setdefault(place(write.state.life, write.state.version), written)
        return found

    @cached_property
    def origins(self) -> Mapping[str, float]:
        """Boot -> the reading of its clocks when the first of all agents began, as far as wall clocks tell."""
        headers = [run.trace.header for run in self.runs]
        wall = min(header.wall for header in headers)
        return {header.boot: header.now - (header.wall - wall) for header in reversed(headers)}

    def at(self, run: Replayed, now: float) -> float:
        """Seconds since the first agent began."""
        return now - self.origins[run.trace.header.boot]

    def seen_at(self, state: RendezvousState) -> float:
        """When somebody first saw it."""
        return min(at for _, at, _ in self.sightings[place(state.life, state.version)])


def histories(runs: Iterable[Replayed]) -> tuple[History, ...]:
    """One per job, in the order in which they began. An agent that met several belongs to each of them."""
    jobs: dict[str, list[Replayed]] = {}
    for run in sorted(runs, key=lambda run: (run.trace.header.wall, run.trace.header.node)):
        for job in _jobs(run):
            jobs.setdefault(job, []).append(run)
    return tuple(History(job, tuple(part)) for job, part in jobs.items())


def _jobs(run: Replayed) -> Iterable[str]:
    """Whose registers this agent saw; for one that never saw any, the one it would have begun."""
    seen = dict.fromkeys(step.state.job for step in run.trace.steps if isinstance(step, Saw) and step.state)
    return seen or (run.trace.header.nonce.nonce,)


def landed(moment: Moment, states: Mapping[Place, RendezvousState]) -> Write | None:
    """The write that this moment asked for, if the register came to hold just that."""
    match moment.step:
        case Turned(_, Write(state) as write) if states.get(place(state.life, state.version)) == state:
            return write
        case _:
            return None


# --- what must hold


def broken(history: History) -> Violation | CallViolation | Broken | None:
    """The first property that does not hold, as far as these traces tell."""
    judge = Judge(jobs={state.life: state.job for state in history.states.values()})
    try:
        _verify(history)
        for fact in _facts(history):
            judge.saw(fact)
        if history.calls:
            judge_of_calls = judging.CallJudge()
            for told in call_facts(history):
                judge_of_calls.saw(told)
    except (Violation, CallViolation, Broken) as violation:
        return violation
    return None


def _verify(history: History) -> None:
    """One version is one state, and each state and each step to the next is legal, whoever made it."""
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
    """In an order that no agent could tell from the real one."""
    found = [*_of_register(history), *(fact for run in history.runs for fact in _of_agent(run, history.states))]
    for _, fact in sorted(found, key=lambda dated: dated[0]):
        yield fact


def call_facts(history: History) -> list[judging.Fact]:
    """What the laws of calls are judged by, in an order that no rank could tell from the real one."""
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


Dated = tuple[tuple[Place, int], Fact]
"""A fact and its place: with the write of this version (0), or (1) somewhere after it."""


def _of_register(history: History) -> Iterator[Dated]:
    """The writes of each life up to its first gap, and what the register says of those whose trace does not show that they
    wrote it."""
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
    """It restores what nothing was told of."""
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
    for known, moment in _knowing(run, states):
        yield from (((known, 1), fact) for fact in _of_moment(moment))


BEFORE_ALL: Place = (0, 0, "")


def _knowing(run: Replayed, states: Mapping[Place, RendezvousState]) -> Iterator[tuple[Place, Moment]]:
    """Each moment, and the last version that its node knows there."""
    known = BEFORE_ALL
    for moment in run.moments:
        write = landed(moment, states)
        for state in (moment.after.held.state, write.state if write else None):
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
        case CallStepped():
            yield from _of_call(moment, moment.step)
        case _:
            return


def _of_call(moment: Moment, step: CallStepped) -> Iterator[Fact]:
    """What its register is judged by."""
    node, world = moment.after.held.node, moment.after.held.mine
    for command in step.commands:
        if world and isinstance(command, words.End):
            yield Failed(node, world)
        if world and isinstance(command, words.MarkDone):
            yield Succeeded(node, world)
    if isinstance(step.event, words.Left):
        yield Left(node)


def _of_group(moment: Moment, event: Event, step: Stepped) -> Iterator[Fact]:
    before, after, commands = moment.before.group, moment.after.group, step.commands
    node, world = after.node, before.world
    yield GroupStepped(before, event, after, commands, step.at)
    alone = before.settings.alone is not None and End not in map(type, commands)
    if world and not alone and any(isinstance(command, Record | RecordUnstartable) for command in commands):
        yield Failed(node, world.id)
    if world and any(isinstance(command, MarkDone) for command in commands):
        yield Succeeded(node, world.id)
    if before.running and not after.running:
        yield Reaped(node)
    if isinstance(event, Gone):
        yield Left(node)
