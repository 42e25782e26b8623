"""The history of a job, merged from the traces of several agents: the register's versions, who wrote them, and when.

Agents of one job hold successive versions of one register. That order, and no clock, sorts what they did: a step that a node
took after it saw a version comes after that version's write, and before any later version that the node writes itself. A
store that lost its memory begins another life of the register; epochs order the lives. Traces may be missing, and a trace
stops in the middle when its agent is killed. Then there are versions that no trace shows.

Times are compared within one boot of one host. Between hosts they are placed side by side by wall clocks, for display only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TypeAlias

from ..derived import Memo, beside, derived
from ..rendezvous import Deed, RendezvousState, Token, Write
from ..trace.steps import Asked, shown
from ..values import frozen
from ..world import Life, Node
from .comparison import Moment, Replayed

Place: TypeAlias = tuple[int, int, str]
"""The place of a state in the history of its job: epoch, version, and the life's nonce in case two lives share an epoch."""


def place(life: Life, version: int) -> Place:
    return life.epoch, version, life.nonce


@frozen
class Written:
    """A write that landed, as its writer's trace shows it, with the state that it was based on."""

    node: Node
    edit: Deed
    at: float
    based_on: Token | None


@frozen(eq=False)
class History:
    """The history of one job's register."""

    job: str
    runs: tuple[Replayed, ...]
    """The agents, or the ranks of a call, whose traces are there, in the order in which they began."""
    memo: Memo = beside()

    @property
    def calls(self) -> bool:
        """Return True if this is the register of a wrapped function's ranks."""
        return self.runs[0].calls

    @derived
    def sightings(self) -> Mapping[Place, tuple[tuple[Node, float, RendezvousState], ...]]:
        """Place -> the nodes that saw this state, when, and what they saw."""
        found: dict[Place, list[tuple[Node, float, RendezvousState]]] = {}
        for run in self.runs:
            for moment in run.moments:
                if (state := shown(moment.step)) and state.job == self.job:
                    seen = run.trace.header.node, self.at(run, moment.at), state
                    found.setdefault(place(state.life, state.version), []).append(seen)
        return {where: tuple(found[where]) for where in sorted(found)}

    @derived
    def states(self) -> Mapping[Place, RendezvousState]:
        """Place -> the register there, as a node saw it; sorted by place."""
        return {where: seen[0][2] for where, seen in self.sightings.items()}

    @derived
    def lives(self) -> tuple[tuple[RendezvousState, ...], ...]:
        """Return the states of each life, in the order of lives and versions."""
        states = sorted(self.states.values(), key=lambda state: (state.life.epoch, state.life.nonce, state.version))
        return tuple(tuple(each) for _, each in groupby(states, key=lambda state: state.life))

    @derived
    def hosts(self) -> Mapping[Node, str]:
        """Each node that was ever seated, or whose trace is there -> its host."""
        seated = {node: seat.profile.host for state in self.states.values() for node, seat in state.seats.items()}
        return {**{run.trace.header.node: run.trace.header.host for run in self.runs}, **seated}

    @derived
    def missing(self) -> tuple[int, ...]:
        """Return the versions that no trace shows."""
        found = list[int]()
        for life in self.lives:
            known = {state.version for state in life}
            first = 1 if life[0].life.epoch == 1 else life[0].version
            found += (version for version in range(first, life[-1].version) if version not in known)
        return tuple(found)

    @derived
    def writes(self) -> Mapping[Place, Written]:
        """Place -> its writer, if a trace tells."""
        found: dict[Place, Written] = {}
        for run in self.runs:
            for moment in run.moments:
                if write := landed(moment, self.states):
                    at = self.at(run, moment.at)
                    written = Written(run.trace.header.node, write.edit, at, write.token)
                    found.setdefault(place(write.state.life, write.state.version), written)
        return found

    @derived
    def origins(self) -> Mapping[str, float]:
        """Boot -> what its clock showed when the first agent of the job began, as far as wall clocks tell."""
        headers = [run.trace.header for run in self.runs]
        wall = min(header.wall for header in headers)
        return {header.boot: header.now - (header.wall - wall) for header in reversed(headers)}

    def at(self, run: Replayed, now: float) -> float:
        """Return the seconds between the start of the first agent and `now` on this agent's clock."""
        return now - self.origins[run.trace.header.boot]

    def seen_at(self, state: RendezvousState) -> float:
        """Return when a node first saw this state, in seconds since the first agent began."""
        return min(at for _, at, _ in self.sightings[place(state.life, state.version)])


def histories(runs: Iterable[Replayed]) -> tuple[History, ...]:
    """Return one history per job, in the order in which the jobs began. An agent that met several jobs belongs to each."""
    jobs: dict[str, list[Replayed]] = {}
    for run in sorted(runs, key=lambda run: (run.trace.header.wall, run.trace.header.node)):
        for job in _jobs(run):
            jobs.setdefault(job, []).append(run)
    return tuple(History(job, tuple(part)) for job, part in jobs.items())


def _jobs(run: Replayed) -> Iterable[str]:
    """Return the jobs whose registers this agent saw; if it saw none, the job that it would have begun."""
    seen = dict.fromkeys(state.job for step in run.trace.steps if (state := shown(step)))
    return seen or (run.trace.header.nonce.nonce,)


def landed(moment: Moment, states: Mapping[Place, RendezvousState]) -> Write | None:
    """Return the write that this step asked for, if the register came to hold exactly that."""
    match moment.step:
        case Asked(ask=Write(state) as write) if states.get(place(state.life, state.version)) == state:
            return write
        case _:
            return None
