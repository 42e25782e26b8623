"""Reads from the traces of a job what came from outside, when, and how long things took.

The core decides anew what follows from that (`sim.what_if`), so nothing of what it decided is told here: no round, no
wait. A failure of a worker came from outside; the end of the others, for that failure, did not. Times are seconds since the
first agent began. Agents of one boot share a clock; those of several are placed by wall clocks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import reduce
from itertools import chain

from attrs import define, field

from .. import group
from ..goodput import (
    Book,
    Entry,
    Follower,
    Kind,
    Piece,
    added,
    booked,
    by_kind,
    cause,
    closed,
    follow,
    jobs,
    micros,
    take,
)
from ..goodput.book import Share
from ..group import Group, Phase
from ..group.state import (
    Beaten,
    Check,
    Checked,
    End,
    Exited,
    Noticed,
    Raised,
    Ready,
    ReadyToLeave,
    Reaped,
    Signal,
    Signalled,
    Start,
)
from ..rendezvous import (
    Did,
    Errand,
    Evict,
    Gather,
    Heartbeats,
    Linked,
    Look,
    Observe,
    Passed,
    Propose,
    Pushed,
    RendezvousState,
    Restore,
    Settings,
    Shown,
    Wait,
    Woke,
    Write,
)
from ..rendezvous.exchange import ANSWERS, UNANSWERED
from ..rendezvous.links import AGAIN_S, Says
from ..trace.steps import Asked, HangEnd, Header, Started, Step, Stepped, Trace, Working, step_at
from ..values import evolve, frozen
from ..work import OTHER, Mark, Saves, Worked, busy_s
from ..world import Ending, Node, Profile, Why

QUESTIONS = (Write, Look, Observe, Propose, Gather)
HANGS_LEAST_S = 1.0
"""Workers whose last progress was no longer before the end of a hang did not stand still."""
REAPED_S = 0.05
"""How long the workers of a killed agent take to die, if no link tells."""
LEGS_MAX = 1_000
"""The times of the last messages of an agent are kept, of this number."""
CHECKPOINT = "checkpoint"
"""The busy span in which a program saves."""
LATE_MOST = 0.5
"""A timer that passes later than this share of a heartbeat interval was not late: its agent stood still."""
LAST_BEATS = 3
"""An agent without an end, whose trace stops this many heartbeats before the last one does, was killed. So was one of a job
that is over, when a link told that it is gone."""


class Outside(Enum):
    """What comes from outside; the value is the verb of the simulator's operation."""

    START = "start"
    """An agent starts."""
    KILL = "kill"
    """An agent is gone, with its workers: its trace stops."""
    FAIL = "fail"
    """A worker fails. Its node ended the round for that."""
    HANG = "hang"
    """The workers of a node make no progress from then on, until one is ended for that."""
    SIGNAL = "drain"
    """The agent is told to stop by a signal."""
    NOTICE = "notice"
    """The node is drained: it must be gone `span` seconds later."""
    PAUSE = "pause"
    """The agent stands still for `span` seconds."""
    CUT = "cut"
    """The store answers the node nothing for `span` seconds."""
    EMPTY = "empty"
    """The store loses its memory."""
    CANCEL = "cancel"
    """An operator closes the job."""


@frozen
class Incident:
    """Something that came from outside, to this slot (to none: to the store, or the job)."""

    at: float
    kind: Outside
    slot: str = ""
    span: float = 0.0
    """How long it lasts. Of a worker that raises: until it has ended. Of an agent that starts: until the store has answered
    it for the first time. Of one that is killed: until its workers are dead, as links tell."""
    raises: bool = False
    """The worker that fails has raised."""
    quiet_s: float = 0.0
    """The worker hung: for this time before that no worker of the node made progress."""
    hung: bool = False
    ran_s: float = 0.0
    """For how long the workers of this slot had run by then, in all their runs."""
    run_s: float = 0.0
    """The same in this run."""
    step: int | None = None
    """The step that this node had reached, if its program tells steps."""
    spare: bool = False
    """The agent that starts found no place at first: a round was complete without it."""


@frozen
class Spans:
    """How long things took on one node, in seconds, each as often as it was seen."""

    execs: tuple[float, ...] = ()
    """From the command that starts workers until their processes were there, at the first start of an agent."""
    reexecs: tuple[float, ...] = ()
    """The same at each later start."""
    cold: tuple[float, ...] = ()
    """From there to the first progress of the last of them, at the first start of an agent."""
    warm: tuple[float, ...] = ()
    """The same at each later start of new processes."""
    standby: tuple[float, ...] = ()
    """The same at each later start whose workers had been standbys."""
    stops: tuple[float, ...] = ()
    """From SIGTERM to the end of the last of them."""
    ends: tuple[float, ...] = ()
    """From the last progress to the end of workers that succeed."""
    checks: tuple[float, ...] = ()
    readies: tuple[float, ...] = ()
    """From a notice until the workers said that they are ready to leave."""
    lost: tuple[int, ...] = ()
    """How many steps each restart of this node had to do again."""
    step_s: float | None = None
    """How long a step takes, on average; a save that a program tells of comes between two."""
    run_s: float | None = None
    """How long the workers ran that succeeded."""
    longest_s: float = 0.0
    """How long the longest of the other runs was."""
    total_s: float = 0.0
    """How long all runs were together."""


@frozen
class Checkpoints:
    """How a program saves. All are means, in seconds."""

    every_s: float
    """From one save to the next; to the first from when the first step began, as far as steps tell."""
    stop_s: float
    """How long a save stops the training: the longest busy span `checkpoint` of a node's workers that told of it."""
    busy_s: float
    """The time that a save adds to that span of the busiest worker of any node: others may not have it."""

    @property
    def are_apart(self) -> bool:
        """Return True if the program makes steps between two saves."""
        return self.stop_s < self.every_s


@frozen
class Program:
    """What the program says of its steps."""

    speaks: bool = False
    """It says that it makes progress."""
    first: int | None = None
    """The first step that any worker told; None: it tells no steps."""
    last: int | None = None
    """The last step of the workers that succeeded."""
    busy: tuple[tuple[str, float], ...] = ()
    """The share of the time of a run, by the name of the busy spans of its busiest worker."""
    busy_before: float = 0.0
    """The share of the time before the first progress in which it was busy."""
    checkpoints: Checkpoints | None = None
    """None: no worker that tells its steps told of a save."""
    lost: tuple[int, ...] | None = None
    """How many steps each restart did again, from the furthest of its nodes on; None: those of one round began with several
    steps, so each counts for itself."""
    begins: tuple[tuple[int, int], ...] = ()
    """The rounds, each with the step with which its workers began, if each restart began after the last save that all nodes
    of the rounds before it had told; else none."""

    @property
    def resumes(self) -> bool:
        return bool(self.begins)


@frozen
class Timing:
    """How long it took what is decided nowhere, in seconds."""

    legs: tuple[float, ...] = ()
    """Messages between an agent and the store, each way."""
    looks: tuple[float, ...] = ()
    """Those by which it looks at heartbeats."""
    errands: tuple[float, ...] = ()
    """Those by which it puts a failure on record, which it has to read first."""
    lags: tuple[float, ...] = ()
    """From the point in time for which an agent waited until it went on."""
    start_s: float = 0.0
    """From the word that a world is complete until its workers are started, beyond the two messages of a heartbeat."""


@frozen
class Chronicle:
    """What the traces of one job tell."""

    job: str
    until: float
    """The last step of any agent."""
    is_over: bool
    """The job has a verdict."""
    slots: tuple[str, ...]
    """In the order in which their first agents began."""
    profile: Profile
    """That of the first agent. Agents of other sizes are refused."""
    rendezvous: Settings
    workers: group.Settings
    incidents: tuple[Incident, ...]
    spans: Mapping[str, Spans]
    """Slot -> how long things took there."""
    program: Program
    timing: Timing
    recorded: Mapping[tuple[str, Kind], int]
    """Bucket and kind of cause -> the microseconds of all nodes."""
    ends: tuple[Kind, ...]
    """Why each round ended, in order."""
    run_id: str = ""
    """The name that the job's user gave it; empty where no trace tells."""

    @property
    def has_succeeded(self) -> bool:
        """Return True if any workers succeeded: else nobody knows how much there was to do."""
        return any(each.run_s is not None for each in self.spans.values())

    @property
    def has_links(self) -> bool:
        return self.profile.link_port > 0


def told(traces: Iterable[Trace]) -> Chronicle:
    """Return what these traces tell, of all nodes of one job. Traces of ranks are left out. Raises ValueError for those that
    tell too little, and for a job that cannot be run again."""
    return told_of((trace.header, trace.steps) for trace in traces)


def told_of(streams: Iterable[tuple[Header, Iterable[Step]]]) -> Chronicle:
    """Return the same for the header and the steps of each trace. A step is taken once, and none is kept."""
    read = (_read(header, steps) for header, steps in streams if isinstance(header.machine, Working))
    agents = sorted(read, key=lambda agent: (agent.header.wall, agent.header.node))
    if not agents:
        raise ValueError("no trace of an agent")
    book = reduce(added, (booked(agent.entries, agent.shift) for agent in agents), Book())
    if not (met := [job for job in jobs(book) if job]):
        raise ValueError("no node has been in a round yet")
    if len(met) > 1:
        raise ValueError(f"traces of {len(met)} jobs; name all those of one")
    _refuse(agents)
    if untold := sorted({node for agent in agents for node in agent.met} - {agent.header.node for agent in agents}):
        raise ValueError(f"no trace of {untold[0]}, which was in this job; name the traces of all nodes")
    origins = _origins([agent.header for agent in agents])
    for agent in agents:
        agent.origin = origins[agent.header.boot]
    until = max(agent.at(agent.last_at) for agent in agents)
    if outlived := next((agent for agent in agents if _is_outlived(agents, agent)), None):
        raise ValueError(f"the trace of {outlived.header.node} ends before the node does; what came later is not known")
    slots = tuple(dict.fromkeys(agent.slot for agent in agents))
    first = agents[0].header
    assert isinstance(first.machine, Working)
    program = _program(agents)
    return Chronicle(
        met[0],
        until,
        _is_over(agents),
        slots,
        first.profile,
        first.rendezvous,
        first.machine.settings,
        tuple(sorted(_incidents(agents, until), key=lambda each: (each.at, each.slot))),
        {slot: _spans([agent for agent in agents if agent.slot == slot], program.checkpoints) for slot in slots},
        program,
        _timing(agents),
        by_kind(book),
        round_ends(book, met[0]),
        first.run_id,
    )


def round_ends(book: Book, job: str) -> tuple[Kind, ...]:
    """Return why each round of this job ended, in order."""
    nobody = Node("nobody", 0)
    rounds = sorted(round for of, round in book.ends if of == job)
    return tuple(cause(book, Share(nobody, "", round, job)).kind for round in rounds)


def _origins(headers: Sequence[Header]) -> Mapping[str, float]:
    """Return what the clock of each boot showed when the first agent began, as far as wall clocks tell."""
    wall = min(header.wall for header in headers)
    return {header.boot: header.now - (header.wall - wall) for header in reversed(headers)}


def _is_outlived(agents: Sequence[_Agent], cut: _Agent) -> bool:
    """Return True if this trace ends before its agent did: others were in a round with it later, or succeeded with it."""
    if cut.is_ended or (cut.runs and cut.runs[-1].succeeded):
        return False
    enough = cut.at(cut.last_at) + LAST_BEATS * cut.header.rendezvous.keep_alive_interval
    for agent in agents:
        closed = agent.state.closed if agent.state else None
        succeeded_at = agent.last_at if closed and closed.ending is Ending.SUCCEEDED else -math.inf
        those = [run for run in agent.runs if cut.header.node in run.nodes]
        if any(agent.at(run.start_at) > enough for run in those):
            return True
        if those and those[-1] is agent.runs[-1] and agent.at(succeeded_at) > enough:
            return True
    return False


def _refuse(agents: Sequence[_Agent]) -> None:
    """Raise ValueError for a job that cannot be run again."""
    first = agents[0].header
    for header in (agent.header for agent in agents):
        machine = header.machine
        assert isinstance(machine, Working)
        if machine.settings.alone is not None:
            raise ValueError(
                f"{header.node}: its workers restart alone (--restart-scope=rank), and no trace tells which others wait "
                "meanwhile, so the job is not run again; record one with --restart-scope=group"
            )
        if header.profile.local_world_size != first.profile.local_world_size or header.profile.party:
            raise ValueError(f"{header.node}: nodes of several sizes, or of parties, are not run again")
        if not math.isinf(machine.settings.barrier_timeout):
            raise ValueError(f"{header.node}: an exit barrier that ends is not run again")
        if header.rendezvous != first.rendezvous or machine != first.machine:
            raise ValueError(f"{header.node}: has other settings than {first.node}")


# --- one agent --------------------------------------------------------------------------------------------------------


@define
class _Run:
    """One run of an agent's workers, by its clock."""

    start_at: float
    round: int
    nodes: Container[Node]
    is_cold: bool
    exec_at: float | None = None
    works: list[Worked] = field(factory=list)
    stop_at: float | None = None
    """When they were told to end."""
    end_at: float | None = None
    succeeded: bool = False

    @property
    def own(self) -> list[Worked]:
        return [work for work in self.works if work.start == 0]

    @property
    def first_at(self) -> float | None:
        return max((work.first.at for work in self.own if work.first), default=None)

    @property
    def steps(self) -> list[Worked]:
        return [work for work in self.own if work.step is not None]

    @property
    def saving(self) -> list[tuple[Worked, Mark, Saves]]:
        """The workers that told of steps and of saves, each with its first progress and its saves."""
        return [(work, work.first, work.saved) for work in self.steps if work.first and work.saved]

    @property
    def busiest(self) -> Worked | None:
        """The worker that was busy longest: the others wait for it, so the node was busy as it was."""
        return max(self.own, key=lambda work: (busy_s(work), -work.rank), default=None)

    def ran_until(self, at: float) -> float:
        return max(0.0, (at if self.end_at is None else self.end_at) - (self.exec_at or self.start_at))


@define
class _Failure:
    """The failure of a worker, by the agent's clock."""

    at: float
    round: int
    run: _Run
    raises: bool
    hung: bool
    ran_s: float
    run_s: float
    span_s: float = 0.0

    def incident(self, at: float, slot: str) -> Incident:
        """Return the incident at this time, when all that the workers of this run came to is known."""
        last = _quiet_at(self.run) if self.hung else None
        step = max((work.step for work in self.run.steps if work.step is not None), default=None)
        return Incident(
            at,
            Outside.FAIL,
            slot,
            self.span_s if self.raises else 0.0,
            self.raises,
            0.0 if last is None else max(self.at - last, 0.0),
            self.hung,
            self.ran_s,
            self.run_s,
            step,
        )


@define
class _Contact:
    """What passed between an agent and the store, by the agent's clock."""

    able_at: float
    """When it began, or its first check was over: from then on it asks the store."""
    is_answered: bool = False
    """The store has ever answered."""
    waited_s: float = 0.0
    """How long it had to wait for that."""
    asked_at: float | None = None
    """When it asked the question that is under way."""
    errand_at: float | None = None
    """The same of an errand."""
    until: float = math.inf
    """It waits until then, if for nothing else."""
    silent_since: float | None = None
    heard_at: float = 0.0
    """When it had sent what the store answered after its last silence."""
    unheard_at: float = 0.0
    """When it asked the last question without an answer."""
    legs: deque[float] = field(factory=lambda: deque(maxlen=LEGS_MAX))
    looks: deque[float] = field(factory=lambda: deque(maxlen=LEGS_MAX))
    """Those by which it looked at heartbeats."""
    errands: deque[float] = field(factory=lambda: deque(maxlen=LEGS_MAX))
    lags: deque[float] = field(factory=lambda: deque(maxlen=LEGS_MAX))
    cuts: list[tuple[float, float]] = field(factory=list)
    """Each silence: when it began, and how long it was."""

    def takes(self, asked: Asked) -> None:
        """Note how long the store takes to answer the node, or leaves it without an answer: from the first question without
        one until the middle between the last such and the next."""
        sent_at = self.asked_at
        if sent_at is not None and isinstance(asked.fed, ANSWERS):
            if not self.is_answered:
                self.is_answered, self.waited_s = True, asked.now - self.able_at
            else:
                legs = self.looks if isinstance(asked.fed, Heartbeats) else self.legs
                legs.append(max(asked.now - sent_at, 0.0) / 2)
            self.is_heard(sent_at)
        elif sent_at is not None and isinstance(asked.fed, UNANSWERED) and self.is_answered:
            self._is_unheard(sent_at)
        if isinstance(asked.fed, Did) and self.errand_at is not None:
            self.errands.append(max(asked.now - self.errand_at, 0.0) / 2)
        if isinstance(asked.fed, Passed) and asked.now > self.until:
            self.lags.append(asked.now - self.until)
        if asked.ask is not None:
            self.asked_at = asked.now if isinstance(asked.ask, QUESTIONS) else None
            self.errand_at = asked.now if isinstance(asked.ask, Errand) else None
            self.until = max(asked.ask.until, asked.now) if isinstance(asked.ask, Wait) else math.inf

    def _is_unheard(self, sent_at: float) -> None:
        """Note that the store has not answered what was sent then. A later heartbeat may be answered already."""
        self.unheard_at = sent_at
        if self.silent_since is None and self.cuts and self.heard_at > sent_at:
            since, _ = self.cuts[-1]
            self.cuts[-1] = since, (sent_at + self.heard_at) / 2 - since
        elif self.silent_since is None:
            self.silent_since = sent_at

    def is_heard(self, sent_at: float) -> None:
        """Note that the store has answered what was sent then."""
        if (since := self.silent_since) is not None and sent_at > self.unheard_at:
            self.cuts.append((since, (sent_at + self.unheard_at) / 2 - since))
            self.silent_since, self.heard_at = None, sent_at

    def ends(self, at: float) -> None:
        """Note that the agent writes no more: a silence lasts until then at least."""
        if (since := self.silent_since) is not None and at > since:
            self.cuts.append((since, at - since))


@define
class _Sights:
    """What an agent saw of others."""

    restores: list[tuple[int, float]] = field(factory=list)
    """Each epoch that it began, and when."""
    links: list[tuple[Node, float, Says]] = field(factory=list)
    """When a link told something of another node, and what."""
    peers: set[Node] = field(factory=set)
    """Those with which it was in a round."""
    counters: dict[Node, tuple[int | None, int]] = field(factory=dict)
    """The heartbeat of each node as it saw it last, and how many looks had shown the same before."""
    found: list[int] = field(factory=list)
    """By which look after that a silent node was found to be lost."""
    shown_at: float = 0.0
    """When it was shown the register last."""
    ready_at: float | None = None
    """The same, where that told it of its world, whose workers it has not started yet."""
    hops: list[float] = field(factory=list)
    """From there to the start."""

    def looks(self, asked: Asked) -> None:
        """Take a look at heartbeats, and what follows from it."""
        if not isinstance(asked.fed, Heartbeats):
            return
        for node, counter in asked.fed.counters.items():
            before, many = self.counters.get(node, (None, 0))
            self.counters[node] = counter, many + 1 if before == counter else 0
        if isinstance(asked.ask, Write) and isinstance(asked.ask.edit, Evict):
            self.found += [self.counters[node][1] for node in sorted(asked.ask.edit.dead) if node in self.counters]


@define
class _Agent:
    """What one trace tells, by the agent's clock."""

    header: Header
    follower: Follower
    contact: _Contact
    last_at: float
    sights: _Sights = field(factory=_Sights)
    entries: list[Entry] = field(factory=list)
    runs: list[_Run] = field(factory=list)
    came: list[Incident] = field(factory=list)
    failures: list[_Failure] = field(factory=list)
    checks: list[float] = field(factory=list)
    readies: list[float] = field(factory=list)
    check_at: float | None = None
    noticed_at: float | None = None
    hung: set[int] = field(factory=set)
    """The ranks that the hang watch has ended in this run."""
    origin: float = 0.0
    """What its clock showed when the first agent began."""

    @property
    def state(self) -> RendezvousState | None:
        return self.follower.account.state

    @property
    def met(self) -> frozenset[Node]:
        """Return the nodes that it was in a round with, and those of the last register that it saw, spares too."""
        return frozenset(self.sights.peers.union(self.state.seats if self.state else ()))

    @property
    def is_ended(self) -> bool:
        group = self.follower.account.group
        return group is not None and group.phase is Phase.ENDED

    @property
    def slot(self) -> str:
        return self.header.node.slot

    @property
    def is_spare(self) -> bool:
        """Return True if it found no place at first."""
        pieces = sorted((each for each in self.entries if isinstance(each, Piece)), key=lambda each: each.start)
        return [each.bucket for each in pieces if each.bucket != "waiting"][:1] == ["spare"]

    @property
    def shift(self) -> int:
        return micros(self.header.wall) - micros(self.header.now)

    def at(self, now: float) -> float:
        return now - self.origin


def _read(header: Header, steps: Iterable[Step]) -> _Agent:
    now = header.now
    agent = _Agent(header, follow(header), _Contact(now), now)
    for step in steps:
        before = agent.follower.account.group
        agent.follower, more = take(agent.follower, step)
        agent.entries += more
        _hears(agent, step, before, agent.follower.account.group)
        agent.last_at = max(agent.last_at, step_at(step))
    agent.entries += closed(agent.follower.account)
    agent.contact.ends(agent.last_at)
    return agent


def _hears(agent: _Agent, step: Step, before: Group | None, after: Group | None) -> None:
    match step:
        case Stepped():
            _steps(agent, step, before, after)
        case Started(at=at) if agent.runs:
            agent.runs[-1].exec_at = at
        case Worked() if agent.runs:
            agent.runs[-1].works.append(step)
        case HangEnd(rank=rank):
            agent.hung.add(rank)
        case Asked(fed, now, ask):
            if isinstance(fed, Woke):
                agent.came.append(Incident(agent.last_at, Outside.PAUSE, agent.slot, now - agent.last_at))
            if isinstance(ask, Write) and isinstance(ask.edit, Restore):
                agent.sights.restores.append((ask.state.life.epoch, now))
            if isinstance(fed, Shown | Pushed):
                agent.sights.shown_at = now
            if isinstance(fed, Linked):
                agent.sights.links.append((fed.node, now, fed.says))
            agent.sights.looks(step)
            agent.contact.takes(step)
        case _:
            pass


def _steps(agent: _Agent, step: Stepped, before: Group | None, after: Group | None) -> None:
    event, at = step.event, step.at
    if start := next((each for each in step.commands if isinstance(each, Start)), None):
        agent.runs.append(_Run(at, start.world.round, start.world.nodes, is_cold=not agent.runs))
        agent.sights.hops += [] if agent.sights.ready_at is None else [at - agent.sights.ready_at]
        agent.sights.peers.update(start.world.nodes)
        agent.hung.clear()
    if any(isinstance(each, Check) for each in step.commands):
        agent.check_at = at
    agent.sights.ready_at = agent.sights.shown_at if isinstance(event, Ready) and agent.sights.shown_at else None
    run = agent.runs[-1] if agent.runs else None
    if before is not None and run is not None and run.end_at is None:
        _runs_on(agent, run, step, before, after)
    match event:
        case Beaten(sent_at):
            agent.contact.is_heard(sent_at)
        case Checked() if agent.check_at is not None:
            agent.checks.append(at - agent.check_at)
            agent.contact.able_at = at
        case Signalled() if before is None or before.signum is None:
            agent.came.append(Incident(at, Outside.SIGNAL, agent.slot))
        case Noticed(notice) if agent.noticed_at is None:
            agent.noticed_at = at
            agent.came.append(Incident(at, Outside.NOTICE, agent.slot, notice.deadline_s))
        case ReadyToLeave() if agent.noticed_at is not None:
            agent.readies.append(at - agent.noticed_at)
        case _:
            pass


def _runs_on(agent: _Agent, run: _Run, step: Stepped, before: Group, after: Group | None) -> None:
    """Note what this step does to a run that has not ended."""
    event, at = step.event, step.at
    if any(isinstance(each, End) and each.why is Why.FAILED for each in step.commands):
        agent.failures.append(_failure(agent, run, before, event, at))
    if run.stop_at is None and after is not None and after.running:
        run.stop_at = at if any(isinstance(each, Signal) for each in step.commands) else None
    if isinstance(event, Exited) and agent.failures and not agent.failures[-1].span_s:
        agent.failures[-1].span_s = max(event.died_at - agent.failures[-1].at, 0.0)
    if isinstance(event, Reaped) or after is None or not after.running:
        run.end_at = at
        run.succeeded = after is not None and after.phase is Phase.BARRIER


def _failure(agent: _Agent, run: _Run, group: Group, event: object, at: float) -> _Failure:
    """Return the failure for which this node ends its round: the first that it knows."""
    known = event.died_at if isinstance(event, Exited) else event.raised_at if isinstance(event, Raised) else at
    failed_at = known if group.failures.echo_at is None else group.failures.echo_at
    ran_s = sum(each.ran_until(failed_at) for each in agent.runs)
    round = group.world.round if group.world else 0
    return _Failure(failed_at, round, run, isinstance(event, Raised), bool(agent.hung), ran_s, run.ran_until(failed_at))


def _is_over(agents: Sequence[_Agent]) -> bool:
    return any(agent.state is not None and agent.state.closed is not None for agent in agents)


# --- what came from outside -------------------------------------------------------------------------------------------


def _incidents(agents: Sequence[_Agent], until: float) -> Iterator[Incident]:
    epochs, cancelled = dict[int, float](), list[float]()
    leg_s = mean([leg for agent in agents for leg in agent.contact.legs])
    is_over = _is_over(agents)
    for agent in agents:
        waited_s = max(agent.contact.waited_s - 2 * leg_s, 0.0)  # when it runs again, it asks once more
        yield Incident(agent.at(agent.header.now), Outside.START, agent.slot, waited_s, spare=agent.is_spare)
        ended_at, interval = agent.at(agent.last_at), agent.header.rendezvous.keep_alive_interval
        unlinked_at, reaped_s = _unlinked(agents, agent, ended_at, interval, until)
        if not agent.is_ended and (ended_at < until - LAST_BEATS * interval or (is_over and unlinked_at is not None)):
            at = ended_at + interval / 2 if unlinked_at is None else unlinked_at
            yield Incident(at, Outside.KILL, agent.slot, reaped_s)
        for epoch, at in agent.sights.restores:
            epochs[epoch] = min(epochs.get(epoch, agent.at(at)), agent.at(at))
        yield from (evolve(each, at=agent.at(each.at)) for each in agent.came)
        yield from (Incident(agent.at(at), Outside.CUT, agent.slot, span) for at, span in agent.contact.cuts)
        verdict = agent.state.closed if agent.state else None
        if verdict and verdict.ending is Ending.CANCELLED:
            cancelled.append(ended_at)
    yield from _first_failures(agents)
    yield from (Incident(at, Outside.EMPTY) for at in epochs.values())
    if cancelled:
        yield Incident(min(cancelled), Outside.CANCEL)


def _unlinked(
    agents: Sequence[_Agent], killed: _Agent, last_at: float, interval: float, until: float
) -> tuple[float | None, float]:
    """Return when a link told something of an agent after its last line: that it is gone. None: no link did, so it was
    killed half a heartbeat after that line, as far as anyone knows. And for how long its workers outlived it: when they are
    dead, its port refuses twice. If no link told of that, they did for as long as anyone knows."""
    told = [
        (other.at(at), says) for other in agents for node, at, says in other.sights.links if node == killed.header.node
    ]
    first_at = min((at for at, _ in told if last_at <= at <= last_at + 2 * interval), default=None)
    gone_at = min((at for at, says in told if says is Says.GONE), default=None)
    if first_at is None:
        return None, REAPED_S
    return first_at, until - first_at if gone_at is None else max(gone_at - first_at - AGAIN_S, 0.0)


def _first_failures(agents: Sequence[_Agent]) -> Iterator[Incident]:
    """Yield the first failure of each round: others, on other nodes, followed from it."""
    first = dict[int, Incident]()
    ran_s = dict[str, float]()
    for agent in agents:
        before_s = ran_s.get(agent.slot, 0.0)
        ran_s[agent.slot] = before_s + sum(run.ran_until(agent.last_at) for run in agent.runs)
        for failure in agent.failures:
            alone = failure.incident(agent.at(failure.at), agent.slot)
            incident = evolve(alone, ran_s=before_s + alone.ran_s)
            first[failure.round] = min(first.get(failure.round, incident), incident, key=lambda each: each.at)
    yield from first.values()
    hangs = {round: failure.at for round, failure in first.items() if failure.hung}
    for agent in agents:
        for run in (run for run in agent.runs if run.round in hangs):
            last_at = _quiet_at(run)
            if last_at is not None and hangs[run.round] - agent.at(last_at) > HANGS_LEAST_S:
                yield Incident(agent.at(last_at), Outside.HANG, agent.slot)


# --- how long things took ---------------------------------------------------------------------------------------------


def _spans(agents: Sequence[_Agent], checkpoints: Checkpoints | None) -> Spans:
    runs = [run for agent in agents for run in agent.runs]
    execed = [run for run in runs if run.exec_at is not None]
    starts = [(run, run.first_at - run.exec_at) for run in execed if run.first_at and run.exec_at]
    later = [(run, span) for run, span in starts if not run.is_cold]
    won = [run for run in execed if run.succeeded and run.end_at is not None]
    others = [(agent, run) for agent in agents for run in agent.runs if not run.succeeded]
    return Spans(
        execs=tuple(run.exec_at - run.start_at for run in execed if run.exec_at and run.is_cold),
        reexecs=tuple(run.exec_at - run.start_at for run in execed if run.exec_at and not run.is_cold),
        cold=tuple(span for run, span in starts if run.is_cold),
        warm=tuple(span for run, span in later if not any(work.standby for work in run.own)),
        standby=tuple(span for run, span in later if any(work.standby for work in run.own)),
        stops=tuple(run.end_at - run.stop_at for run in runs if run.end_at and run.stop_at),
        ends=tuple(run.end_at - last for run in won if run.end_at and (last := _last_at(run))),
        checks=tuple(span for agent in agents for span in agent.checks),
        readies=tuple(span for agent in agents for span in agent.readies),
        lost=tuple(_lost(runs)),
        step_s=_step_s(runs, checkpoints),
        run_s=max((run.ran_until(0.0) for run in won), default=None),
        longest_s=max((run.ran_until(agent.last_at) for agent, run in others), default=0.0),
        total_s=sum(run.ran_until(agent.last_at) for agent in agents for run in agent.runs),
    )


def _timing(agents: Sequence[_Agent]) -> Timing:
    legs = tuple(leg for agent in agents for leg in agent.contact.legs)
    hops = [hop for agent in agents for hop in agent.sights.hops]
    looks = tuple(leg for agent in agents for leg in agent.contact.looks)
    slowest_s = min(max(looks), 2 * sorted(looks)[len(looks) // 2]) if looks else 0.0  # not one slow answer
    lags = _lags(agents, 2 * slowest_s)
    errands = tuple(leg for agent in agents for leg in agent.contact.errands)
    return Timing(legs, looks, errands, lags, max(mean(hops) - 2 * mean(legs), 0.0))


def _lags(agents: Sequence[_Agent], answered_s: float) -> tuple[float, ...]:
    """Return how late timers pass. A silent node is lost a TTL after an answer showed its last heartbeat. The look that is
    sent a TTL after the question finds it only if the timers between were late by as much as the answer took. No run tells
    which comes first: that is as it was for the nodes that looks have found."""
    settings = agents[0].header.rendezvous
    beats, late_s = settings.keep_alive_max_attempt, settings.keep_alive_interval * LATE_MOST
    lags = tuple(lag for agent in agents for lag in agent.contact.lags if lag <= late_s)
    found = {many for agent in agents for many in agent.sights.found}
    if found == {beats}:
        return tuple(max(lag, answered_s / beats) for lag in lags)
    return () if found == {beats + 1} else lags


def mean(spans: Sequence[float]) -> float:
    """Return the mean of these spans; 0 for none."""
    return sum(spans) / len(spans) if spans else 0.0


def _last_at(run: _Run) -> float | None:
    return max((work.last.at for work in run.own if work.last), default=None)


def _quiet_at(run: _Run) -> float | None:
    """Return when the workers of a run told anything last: of a step, or of a save."""
    saved = [work.saved.at for work in run.own if work.saved]
    return max((at for at in (_last_at(run), *saved) if at is not None), default=None)


def _step_s(runs: Sequence[_Run], checkpoints: Checkpoints | None) -> float | None:
    """Return how long a step takes, on average."""
    told = [_stepping(work, checkpoints) for run in runs for work in run.steps]
    steps = sum(many for _, many in told)
    return sum(span for span, _ in told) / steps if steps else None


def _stepping(work: Worked, checkpoints: Checkpoints | None = None) -> tuple[float, int]:
    """Return how long a worker that tells its steps made them, up to the last progress and without its saves, and how many.
    One that does not tell of any save waits for those of others."""
    assert work.first and work.last and work.step is not None and work.first_step is not None  # it tells its steps
    span, busy = work.last.at - work.first.at, busy_s(work)
    if work.saved:
        span -= (work.last.busy_s - work.first.busy_s) * (_saving_s(work) / busy if busy else 0.0)
    elif checkpoints and checkpoints.are_apart:
        span -= span * checkpoints.stop_s / checkpoints.every_s
    return span, work.step - work.first_step


def _program(agents: Sequence[_Agent]) -> Program:
    runs = [run for agent in agents for run in agent.runs]
    works = [work for run in runs for work in run.own]
    steps = [work for work in works if work.step is not None]
    last = max((work.step or 0 for run in runs if run.succeeded for work in run.steps), default=None)
    first = min((work.first_step for work in steps if work.first_step is not None), default=None)
    hangs = {failure.round for agent in agents for failure in agent.failures if failure.hung}
    paces = [work for run in runs if (work := run.busiest)]
    busy, total = dict[str, float](), sum(_lived(work, work.round in hangs) for work in paces)
    for work in paces:
        share = _lived_busy(work) if work.round in hangs else 1.0
        for name, seconds in work.spans:
            busy[name or OTHER] = busy.get(name or OTHER, 0.0) + share * seconds
    before = [(work.first.busy_s, work.first.at - work.began_at) for work in paces if work.first]
    spent = sum(span for _, span in before)
    return Program(
        any(work.first for work in works),
        first,
        last,
        tuple((name, seconds / total) for name, seconds in sorted(busy.items())) if total else (),
        sum(seconds for seconds, _ in before) / spent if spent else 0.0,
        _checkpoints(runs),
        *_restarts(runs, first),
    )


def _checkpoints(runs: Sequence[_Run]) -> Checkpoints | None:
    """Return how often the program saves, and what a save takes; None if no worker that tells its steps told of one after
    its first progress."""
    told, in_round = [run.saving for run in runs if run.saving], dict[int, int]()
    for teller, _, saved in chain.from_iterable(told):
        in_round[teller.round] = max(in_round.get(teller.round, 0), saved.number)
    if not (span := sum(max(max(saved.at - first.at, 0.0) for _, first, saved in run) for run in told)):
        return None
    for run in told:
        stepped, steps = _stepping(run[0][0])
        span += stepped / steps if steps else 0.0
    saves = sum(max(saved.number for _, _, saved in run) for run in told)
    stopped = sum(max(_saving_s(work) for work, _, _ in run) for run in told)
    paces = [work for run in runs if (work := run.busiest)]
    return Checkpoints(
        span / saves,
        stopped / saves,
        sum(map(_saving_s, paces)) / sum(in_round.get(work.round, 0) for work in paces),
    )


def _saving_s(work: Worked) -> float:
    return dict(work.spans).get(CHECKPOINT, 0.0)


def _lived(work: Worked, hung: bool) -> float:
    """Return for how long a worker did anything: one that hung, until its last progress."""
    return (work.last.at if hung and work.last else work.ended_at) - work.began_at


def _lived_busy(work: Worked) -> float:
    """Return which share of its busy time a worker that hung had had by its last progress. What came after hangs too."""
    return work.last.busy_s / busy_s(work) if work.last and busy_s(work) else 1.0


def _restarts(runs: Sequence[_Run], first: int | None) -> tuple[tuple[int, ...] | None, tuple[tuple[int, int], ...]]:
    """Return how many steps each restart did again (`Program.lost`), and with which each began (`Program.begins`)."""
    rounds = dict[int, list[Worked]]()
    for work in (work for run in runs for work in run.steps):
        rounds.setdefault(work.round, []).append(work)
    lost, safe, follows, began = list[int](), None, True, list[tuple[int, int]]()
    for round, works in sorted(rounds.items()):
        begins = {work.first_step for work in works if work.first_step is not None}
        if len(begins) > 1:
            return None, ()
        began += [(round, step) for step in sorted(begins)]
        reached = max((work.before for work in works if work.before is not None), default=None)
        lost += [max(reached + 1 - step, 0) for step in sorted(begins) if reached is not None]
        follows &= begins == {first if safe is None else safe + 1}
        saved = [work.saved.step for work in works if work.saved]
        if saved and len(saved) == len(works):
            safe = max(min(saved), min(saved) if safe is None else safe)
    return tuple(lost), tuple(began) if follows and safe is not None and lost else ()


def _lost(runs: Sequence[_Run]) -> Iterator[int]:
    """Yield for each run that followed another one how many of its steps had been done before."""
    for run in runs:
        again = [
            work.before + 1 - work.first_step
            for work in run.steps
            if work.before is not None and work.first_step is not None
        ]
        if again:
            yield max(*again, 0)
