"""One whole node, as the enumerator moves it: the real `turn`, agenda, memory and `transition`, from one rest to the next.

A node rests when it wants a word with the register (an `Ask`) or waits. All that it does between two rests concerns nobody
else, and happens at once. Time stands at 0 for everybody: a span of a node's own clock has just begun, or it is over because
the enumerator said so; which of two spans is over first is the enumerator's choice too. A step that changes nothing in what
the node does (a span over on which it does not act) is not offered: it may as well come later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from attrs import define, field, frozen
from plainnode import LIFE, LONG_AGO, PROFILE, Behind, Local, aged, normal, renamed

from elastic.core.agent import follows, heard, wished
from elastic.core.evolving import evolve
from elastic.core.group import Group, Phase, begin, transition
from elastic.core.group.state import (
    Beaten,
    Command,
    Elapsed,
    Event,
    Exited,
    Reaped,
    Signalled,
    Start,
    Unstartable,
)
from elastic.core.rendezvous import (
    Ask,
    Held,
    Observe,
    Operation,
    Outcome,
    Raise,
    RendezvousState,
    Return,
    Settings,
    Settled,
    Violation,
    Wait,
    Write,
    join,
    leave,
    saw,
    turn,
    unanswered,
    watch,
)
from elastic.core.rendezvous import heard as heard_beats
from elastic.core.rendezvous.agenda import Agenda, answered, begun, submitted
from elastic.core.rendezvous.context import Fact
from elastic.core.rendezvous.sightings import Sighting, Sightings
from elastic.core.sim.properties import Judge, Started, Stepped
from elastic.core.world import Node, Why

Turn = Callable[[Operation, Held, float], Ask]

TURNS_MAX = 50


class News(Enum):
    """What others must know of a node's step, to judge it."""

    STARTED = "its workers start"
    FAILED = "a worker of it fails"
    SUCCEEDED = "its workers succeed"
    LEFT = "it has left"


class Cost(Enum):
    """What a move costs: nothing, or one of the faults; and what only those know who see all nodes."""

    FREE = "free"
    SUCCESS = "success"
    """Free, but nothing that a job's coming to rest may hang on."""
    FAIL = "fail"
    UNSTARTABLE = "unstartable"
    DRAIN = "drain"
    TIMEOUT = "timeout"
    OVERDUE = "overdue"
    """Free when those who are awaited are gone."""
    SUSPECT = "suspect"
    """Free when those who are suspected are gone."""
    CRASH = "crash"
    RESTART = "restart"
    """An agent is started on a slot: free where none lives, but nothing that a healed world may hang on."""
    LOSE_REPLY = "lose reply"
    LATE_WRITE = "late write"
    CANCEL = "cancel"


@frozen
class Step:
    """A move of a node: what it becomes (None: it has ended), and what others must know. `those` are the nodes that it takes
    for gone."""

    text: str
    cost: Cost
    after: Local | None
    news: tuple[News, ...] = ()
    those: tuple[Node, ...] = ()


@define
class Walk:
    """A node between two rests."""

    turn: Turn
    held: Held
    agenda: Agenda
    group: Group
    started: bool
    news: list[News] = field(factory=list)

    def rests(self) -> Local | None:
        """None: the agent has ended."""
        for _ in range(TURNS_MAX):
            if self.group.phase is Phase.ENDED:
                return None
            if self.held.trouble:
                raise Violation("S7", self.held.trouble.text)
            self.held, self.agenda, self.group = normal(self.held, self.agenda, self.group)
            if self.agenda.due:
                self.agenda, self.held, _ = begun(self.agenda, self.held, 0.0, 0.0)
                continue
            if not self.agenda.operation:
                return self._local(None)
            ask = self.turn(self.agenda.operation, self.held, 0.0)
            match ask:
                case Return(outcome):
                    self._told(self.agenda.operation, outcome)
                case Raise(failure, text):
                    if failure.why in (Why.ILLEGAL, Why.STORE_LOST):
                        raise Violation("S7", text)
                    self._told(self.agenda.operation, ask)
                case Observe(nodes):
                    self.held = heard_beats(self.held, dict.fromkeys(nodes, 1), 0.0, 0.0)
                case Wait() | Write():
                    self._has_an_end(self.agenda.operation, ask)
                    return self._local(ask)
        raise Violation("L6", f"{self.held.node} spins")

    def _local(self, ask: Ask | None) -> Local:
        return Local(self.held, self.agenda, self.group, self.started, ask)

    def _has_an_end(self, under_way: Operation, ask: Wait | Write) -> None:
        spare = self.held.state is not None and self.held.node in self.held.state.redundancy_list
        if isinstance(ask, Wait) and math.isinf(ask.until) and under_way.handler is join and not spare:
            raise Violation("L6", f"{self.held.node} waits to join without end")

    def _told(self, under_way: Operation, answer: Outcome | Raise) -> None:
        mine = self.held.mine
        self.agenda, self.held = answered(self.agenda, self.held, answer)
        self.started = self.started and self.held.mine == mine
        if event := heard(under_way.handler, answer, 0.0):
            self.hears(event)
        if under_way.handler is leave and isinstance(answer, Settled):
            self.news.append(News.LEFT)

    def hears(self, event: Event) -> None:
        before = self.group
        after, commands = transition(before, event)
        Judge().saw(Stepped(before, event, after, commands, 0.0))
        self.group = after
        for command in commands:
            self.does(command)
        if consequence := follows(event, after, 0.0):
            self.hears(consequence)

    def does(self, command: Command) -> None:
        if isinstance(command, Start):
            if self.started:
                raise Violation("S17", f"the workers of {self.held.node} start twice in one world")
            Judge().saw(Started(self.held.node, command.world))
            self.started = True
            self.news.append(News.STARTED)
        elif request := wished(command, PROFILE):
            self.agenda = submitted(self.agenda, request)


@define
class Nodes:
    """What nodes do, by these settings and this `turn`."""

    settings: Settings
    turn: Turn = turn

    def born(self, node: Node) -> Local:
        group, commands = begin(Group(node), 0.0)
        walk = Walk(self.turn, Held(node, PROFILE, self.settings, LIFE), Agenda(), group, False)
        for command in commands:
            walk.does(command)
        return _alive(walk.rests())

    def looks(self, local: Local, behind: Behind, register: RendezvousState | None) -> Step:
        """It is answered with the register that stands."""
        old = aged(local, behind)
        return self._rests("", Cost.FREE, old, held=saw(old.held, register, 0.0, 0.0))

    def not_answered(self, local: Local) -> Step:
        """It does not know what became of its write."""
        return self._rests("", Cost.FREE, local, held=unanswered(local.held, local.held.token, 0.0))

    def renamed(self, local: Local, names: Mapping[Node, Node]) -> Local:
        """The node that would be in its place if all had other names."""
        held, group = local.held, local.group
        beats = {names[node]: seen for node, seen in held.sightings.of.items()}
        held = evolve(
            held,
            node=names[held.node],
            state=held.state and renamed(held.state, names),
            sightings=Sightings(beats, 0.0),
        )
        if group.world:
            members = tuple(evolve(member, node=names[member.node]) for member in group.world.members)
            group = evolve(group, world=evolve(group.world, members=members))
        group = evolve(group, node=held.node)
        return _alive(self._rests("", Cost.FREE, evolve(local, held=held, group=group)).after)

    def steps(self, local: Local) -> Iterator[Step]:
        """What it can do by itself, or suffer, whatever the register is."""
        yield from self._worker_steps(local)
        for step in (*self._spans(local), *self._suspicions(local), *self._deadlines(local)):
            if _wants(step.after) != _wants(local):
                yield step

    def _worker_steps(self, local: Local) -> Iterator[Step]:
        phase, running = local.group.phase, local.group.running
        if phase is Phase.HELD:
            yield self._hears("its heartbeat is answered", Cost.FREE, local, Beaten(0.0, 0.0))
            unstartable = Unstartable("no such program", 0.0), Reaped(0.0)
            yield self._hears("its workers cannot be started", Cost.UNSTARTABLE, local, Beaten(0.0, 0.0), *unstartable)
        if phase is Phase.RUNNING:
            yield self._hears("its workers succeed", Cost.SUCCESS, local, Exited(0, 0, 0.0, 0.0), news=News.SUCCEEDED)
            yield self._hears("a worker fails", Cost.FAIL, local, Exited(0, 1, 0.0, 0.0), news=News.FAILED)
        elif running:
            yield self._hears("its workers stop", Cost.FREE, local, Exited(0, -15, 1.0, 1.0))
        again = " again" if phase is Phase.LEAVING else ""
        yield self._hears(f"it is told to stop{again}", Cost.DRAIN, local, Signalled(15, 0.0))
        waits_for = {Phase.HELD: local.group.start_by, Phase.LEAVING: local.group.leave_by}.get(phase)
        if waits_for is not None and not local.group.left:
            yield self._hears("it has waited long enough", Cost.TIMEOUT, local, Elapsed(waits_for))

    def _spans(self, local: Local) -> Iterator[Step]:
        for fact, (which, at) in local.held.spans.items():
            if at > LONG_AGO:
                held = evolve(local.held, spans={**local.held.spans, fact: (which, LONG_AGO)})
                late = local.held.state.expected if fact is Fact.OPEN and local.held.state else ()
                cost = Cost.OVERDUE if late else Cost.FREE
                yield self._rests(f"it knows for long enough: {fact.value}", cost, local, held=held, those=late)

    def _suspicions(self, local: Local) -> Iterator[Step]:
        """A look at the heartbeats is due, and finds that some have been silent for a TTL; and its patience is over."""
        if not isinstance(local.ask, Wait) or not local.agenda.operation:
            return
        sightings = local.held.sightings
        due = evolve(sightings, read_at=-local.held.settings.keep_alive_interval)
        ask = self.turn(local.agenda.operation, evolve(local.held, sightings=due), 0.0)
        watched = ask.nodes if isinstance(ask, Observe) else ()
        for those in _some(watched):
            silent = {node: Sighting(0, LONG_AGO if node in those else 0.0) for node in sightings.of}
            held = evolve(local.held, sightings=evolve(due, of=silent))
            held = heard_beats(held, {node: 0 if node in those else 1 for node in watched}, 0.0, 0.0)
            spans = {fact: (which, LONG_AGO if fact is Fact.DEAD else at) for fact, (which, at) in held.spans.items()}
            text = f"it has not heard for a TTL: {' '.join(map(str, those))}"
            yield self._rests(text, Cost.SUSPECT, local, held=evolve(held, spans=spans), those=those)

    def _deadlines(self, local: Local) -> Iterator[Step]:
        under_way = local.agenda.operation
        if under_way and not math.isinf(under_way.deadline):
            cost = Cost.FREE if under_way.handler is watch else Cost.TIMEOUT
            agenda = evolve(local.agenda, operation=evolve(under_way, deadline=0.0))
            yield self._rests("its deadline is over", cost, local, agenda=agenda)

    def _hears(self, text: str, cost: Cost, local: Local, *events: Event, news: News | None = None) -> Step:
        walk = Walk(self.turn, local.held, local.agenda, local.group, local.started)
        walk.news += [news] if news else []
        for event in events:
            walk.hears(event)
        return Step(text, cost, walk.rests(), tuple(walk.news))

    def _rests(
        self,
        text: str,
        cost: Cost,
        local: Local,
        held: Held | None = None,
        agenda: Agenda | None = None,
        those: tuple[Node, ...] = (),
    ) -> Step:
        walk = Walk(self.turn, held or local.held, agenda or local.agenda, local.group, local.started)
        return Step(text, cost, walk.rests(), tuple(walk.news), those)


def _alive(local: Local | None) -> Local:
    assert local is not None
    return local


def _wants(local: Local | None) -> object:
    """What a node is at, as far as others can see it."""
    if local is None:
        return None
    return "wait" if isinstance(local.ask, Wait) else local.ask, local.group.phase


def _some(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """All sets of them but the empty one."""
    for bits in range(1, 2 ** len(nodes)):
        yield tuple(node for index, node in enumerate(nodes) if bits >> index & 1)
