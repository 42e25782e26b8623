"""What the traces of several agents tell together: one life of a register, its versions, who wrote them, and when.

Agents of one job hold successive versions of one register, so what they did is put in order by that and by no clock: what a
node does after it has seen a version comes after that version's write, and before the write of any later one that it makes
itself. Traces may be missing, and one may stop in the middle (its agent was killed): then there are versions that nobody's
trace shows, and for what an unknown writer did the register's word is taken.

Points in time are compared within one boot of one host; between hosts they are put side by side by their wall clocks, which
is good enough to look at and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from attrs import frozen

from ..group.state import Gone, MarkDone, Record, RecordUnstartable
from ..rendezvous import Deed, RendezvousState, Status, Violation, Write, verify, verify_step
from ..world import Life, Node, WorldId
from .properties import Fact, Failed, Judge, Left, Reaped, Succeeded, Wrote
from .properties import Started as WorkersStarted
from .properties import Stepped as GroupStepped
from .replay import Moment, Replayed
from .trace import Saw, Started, Stepped, Turned


@frozen
class Written:
    """A write that landed, as its writer's trace shows it."""

    node: Node
    edit: Deed
    at: float


@frozen(eq=False)
class History:
    """One life of a register."""

    life: Life
    runs: tuple[Replayed, ...]
    """The agents whose traces are there, in the order in which they began."""

    @cached_property
    def sightings(self) -> Mapping[int, tuple[tuple[Node, float, RendezvousState], ...]]:
        """Version -> who saw it, when, and what it was for them."""
        found: dict[int, list[tuple[Node, float, RendezvousState]]] = {}
        for run in self.runs:
            for moment in run.moments:
                if isinstance(moment.step, Saw) and (state := moment.step.state) and state.life == self.life:
                    seen = run.trace.header.node, self.at(run, moment.at), state
                    found.setdefault(state.version, []).append(seen)
        return {version: tuple(found[version]) for version in sorted(found)}

    @cached_property
    def states(self) -> Mapping[int, RendezvousState]:
        """Version -> the register, as somebody saw it."""
        return {version: seen[0][2] for version, seen in self.sightings.items()}

    @cached_property
    def hosts(self) -> Mapping[Node, str]:
        """Every node that was ever seated, or whose trace is there -> its host."""
        seated = {node: seat.profile.host for state in self.states.values() for node, seat in state.seats.items()}
        return {**{run.trace.header.node: run.trace.header.host for run in self.runs}, **seated}

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Versions that nobody's trace shows."""
        return tuple(version for version in range(1, max(self.states, default=0)) if version not in self.states)

    @cached_property
    def writes(self) -> Mapping[int, Written]:
        """Version -> who wrote it, if a trace tells."""
        found: dict[int, Written] = {}
        for run in self.runs:
            for moment in run.moments:
                if (write := landed(moment, self.states)) and write.state.version not in found:
                    at = self.at(run, moment.at)
                    found[write.state.version] = Written(run.trace.header.node, write.edit, at)
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

    def seen_at(self, version: int) -> float:
        """When somebody first saw it."""
        return min(at for _, at, _ in self.sightings[version])


def histories(runs: Iterable[Replayed]) -> tuple[History, ...]:
    """One per life of a register, in the order in which they began."""
    lives: dict[Life, list[Replayed]] = {}
    for run in sorted(runs, key=lambda run: (run.trace.header.wall, run.trace.header.node)):
        lives.setdefault(_life(run), []).append(run)
    return tuple(History(life, tuple(part)) for life, part in lives.items())


def _life(run: Replayed) -> Life:
    """The register that this agent saw; for one that never saw any, the one it would have begun."""
    seen = (step.state.life for step in run.trace.steps if isinstance(step, Saw) and step.state)
    return next(seen, run.trace.header.nonce)


def landed(moment: Moment, states: Mapping[int, RendezvousState]) -> Write | None:
    """The write that this moment asked for, if the register came to hold just that."""
    match moment.step:
        case Turned(_, Write(state) as write) if states.get(state.version) == state:
            return write
        case _:
            return None


# --- what must hold


def broken(history: History) -> Violation | None:
    """The first property that does not hold, as far as these traces tell."""
    judge = Judge()
    try:
        _verify(history)
        for fact in _facts(history):
            judge.saw(fact)
    except Violation as violation:
        return violation
    return None


def _verify(history: History) -> None:
    """One version is one state, and each state and each step to the next is legal, whoever made it."""
    before: RendezvousState | None = None
    for version, seen in history.sightings.items():
        first, _, state = seen[0]
        for node, _, other in seen[1:]:
            if other != state:
                raise Violation("S7", f"version {version} is one state for {first} and another for {node}")
        verify(state)
        if before and before.version + 1 == version:
            verify_step(before, state)
        before = state


def _facts(history: History) -> Iterator[Fact]:
    """In an order that no agent could tell from the real one."""
    found = [*_of_register(history), *(fact for run in history.runs for fact in _of_agent(run, history.states))]
    for _, fact in sorted(found, key=lambda dated: dated[0]):
        yield fact


Dated = tuple[tuple[int, int], Fact]
"""A fact and its place: with the write of this version (0), or (1) somewhere after it."""


def _of_register(history: History) -> Iterator[Dated]:
    """The writes up to the first gap, and what the register says of those whose trace does not show that they wrote it."""
    before: RendezvousState | None = None
    for version, after in history.states.items():
        if version != (before.version + 1 if before else 1):
            return
        if written := history.writes.get(version):
            yield (version, 0), Wrote(written.node, before, written.edit, after)
        else:
            yield from (((version, 0), fact) for fact in _taken_at_its_word(before, after))
        before = after


def _taken_at_its_word(before: RendezvousState | None, after: RendezvousState) -> Iterator[Fact]:
    ended = after.ended
    if ended and after.failures > (before.failures if before else 0):
        yield Failed(ended.by, WorldId(after.life, ended.round))
    for node in after.those(Status.DONE):
        yield Succeeded(node, WorldId(after.life, after.round))


def _of_agent(run: Replayed, states: Mapping[int, RendezvousState]) -> Iterator[Dated]:
    known = 0
    for moment in run.moments:
        held = moment.after.held.state
        write = landed(moment, states)
        known = max(known, held.version if held else 0, write.state.version if write else 0)
        yield from (((known, 1), fact) for fact in _of_moment(moment))


def _of_moment(moment: Moment) -> Iterator[Fact]:
    before, after = moment.before.group, moment.after.group
    node, world = after.node, before.world
    match moment.step:
        case Started():
            assert world is not None
            yield WorkersStarted(node, world)
        case Stepped(event, commands, at) if event:
            yield GroupStepped(before, event, after, commands, at)
            if world and any(isinstance(command, Record | RecordUnstartable) for command in commands):
                yield Failed(node, world.id)
            if world and any(isinstance(command, MarkDone) for command in commands):
                yield Succeeded(node, world.id)
            if before.running and not after.running:
                yield Reaped(node)
            if isinstance(event, Gone):
                yield Left(node)
        case _:
            return
