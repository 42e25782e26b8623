"""One whole node, as the enumerator moves it: the real `turn`, agenda, memory and `transition`, from one rest to the next.

A node rests when it wants a word with the register (an `Ask`) or waits. All that it does between two rests concerns nobody
else, and happens at once. Time stands at 0 for everybody: a span of a node's own clock has just begun, or it is over because
the enumerator said so; which of two spans is over first is the enumerator's choice too. A step that changes nothing in what
the node does (a span over on which it does not act) is not offered: it may as well come later.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from enum import Enum

from attrs import define
from plainnode import LIFE, LONG_AGO, PROFILE, Behind, Local, aged, normal, renamed
from walk import News, Normal, Turn, Walk, known
from worlds import but

from elastic.core import agent as core
from elastic.core.group import Group, Phase
from elastic.core.group import Settings as GroupSettings
from elastic.core.group.state import (
    Beaten,
    Elapsed,
    Event,
    Exited,
    Reaped,
    Signalled,
    Unstartable,
)
from elastic.core.rendezvous import (
    Client,
    Evict,
    Heartbeats,
    Held,
    Input,
    Observe,
    Operation,
    Passed,
    Pushed,
    Question,
    RendezvousState,
    Settings,
    Unknown,
    Wait,
    Who,
    Woke,
    Write,
    step,
    turn,
    watch,
)
from elastic.core.rendezvous.agenda import Agenda
from elastic.core.rendezvous.context import Fact
from elastic.core.rendezvous.sightings import Sighting, Sightings
from elastic.core.rendezvous.state import later_start
from elastic.core.values import evolve, frozen
from elastic.core.world import Life, Node


class Cost(Enum):
    """What a move costs: nothing, or one of the faults; and what only those know who see all nodes."""

    FREE = "free"
    SUCCESS = "success"
    """Free, but nothing that a job's coming to rest may hang on."""
    FAIL = "fail"
    UNSTARTABLE = "unstartable"
    FENCE = "fence"
    """No heartbeat of the node was acknowledged for so long that its workers must not run."""
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
    SLEEP = "sleep"
    """A node wakes that stood still for longer than a TTL, and knows it."""
    EMPTY = "empty"
    """The store comes back, and holds nothing."""
    OLDER = "older"
    """It comes back with what it held once."""


Happening = tuple[str, Cost, tuple[Event, ...], News | None]


@frozen
class Step:
    """A move of a node: what it becomes (None: it has ended), and what others must know. `those` are the nodes that it takes
    for gone."""

    text: str
    cost: Cost
    after: Local | None
    news: tuple[News, ...] = ()
    those: tuple[Node, ...] = ()
    beaten: bool = False
    """It takes an answer to its heartbeat."""


def knows(held: Held, input: Input, out: Question | None = None) -> Held:
    """What it remembers after an input."""
    return known(Client(held, out=out), input).held


@define
class Nodes:
    """What nodes do, by these settings and this `turn`."""

    settings: Settings
    turn: Turn = turn
    group: GroupSettings = GroupSettings()
    normal: Normal = normal
    lingers: bool = False

    def born(self, node: Node, nonce: Life = LIFE) -> Local:
        agent, effects = core.begin(core.Agent(Group(node, self.group)), 0.0)
        held = Held(Who(node, PROFILE, self.settings, nonce))
        walk = self._walks(held, Agenda(), agent.group, False)
        for effect in effects:
            walk.does(effect)
        return _alive(walk.rests())

    def looks(self, local: Local, behind: Behind, register: RendezvousState | None) -> Step:
        """It is answered with the register that stands."""
        old = aged(local, behind)
        return self._rests("", Cost.FREE, old, held=knows(old.held, Pushed(register, 0.0)))

    def sees(self, local: Local, register: RendezvousState | None, here: bool) -> Step:
        """The same where a register may be lost, and things keep their names."""
        return self._rests("", Cost.FREE, local, held=knows(local.held, Pushed(register, 0.0, here)))

    def wakes(self, local: Local) -> Step:
        return self._rests("", Cost.SLEEP, local, held=knows(local.held, Woke()))

    def not_answered(self, local: Local) -> Step:
        """It does not know what became of its write."""
        assert isinstance(local.ask, Write)
        write = evolve(local.ask, token=local.held.token)
        return self._rests("", Cost.FREE, local, held=knows(local.held, Unknown(), write))

    def renamed(self, local: Local, names: Mapping[Node, Node]) -> Local:
        """The node that would be in its place if all had other names."""
        held, group = local.held, local.group
        beats = {names[node]: seen for node, seen in held.view.sightings.of.items()}
        held = but(
            held,
            node=names[held.who.node],
            state=held.view.state and renamed(held.view.state, names),
            sightings=Sightings(beats, 0.0),
        )
        if group.world:
            nodes = tuple(names[node] for node in group.world.nodes)
            group = evolve(group, world=evolve(group.world, nodes=nodes))
        group = evolve(group, node=held.who.node)
        if local.sent and isinstance(local.ask, Write):
            edit = local.ask.edit
            if isinstance(edit, Evict):
                edit = Evict(frozenset(names[node] for node in edit.dead))
            ask = evolve(local.ask, state=renamed(local.ask.state, names), edit=edit)
            return evolve(local, held=held, group=group, ask=ask)
        return _alive(self._rests("", Cost.FREE, evolve(local, held=held, group=group)).after)

    def steps(self, local: Local, kinds: Container[Cost]) -> Iterator[Step]:
        """What it can do by itself, or suffer, whatever the register is."""
        for happening in self._happenings(local):
            if happening[1] in kinds:
                yield from self._hears(local, happening)
        if not local.sent:
            for step in self._hours(local, kinds):
                if _wants(step.after) != _wants(local):
                    yield step

    def _hours(self, local: Local, kinds: Container[Cost]) -> Iterator[Step]:
        if Cost.FREE in kinds:
            yield from self._spans(local)
            yield from self._hears_a_later_start(local)
        if Cost.SUSPECT in kinds:
            yield from self._suspicions(local)
        under_way = local.agenda.operation
        if under_way and not math.isinf(under_way.deadline):
            yield from self._deadline(local, under_way, kinds)

    def _hears(self, local: Local, happening: Happening) -> Iterator[Step]:
        """Before it asks what it wants to ask; or while that is under way, if it would want something else now."""
        asks = local.ask if isinstance(local.ask, Write) else None
        unsent = None if local.sent else self._heard(local, happening, None)
        if unsent:
            yield unsent
        if asks and not (unsent and (unsent.after is None or unsent.after.ask == asks)):
            yield self._heard(local, happening, asks)

    def _heard(self, local: Local, happening: Happening, sent: Write | None) -> Step:
        text, cost, events, news = happening
        walk = self._walks(local.held, local.agenda, local.group, local.started, sent)
        walk.news += [news] if news else []
        for event in events:
            walk.hears(event)
        beaten = isinstance(events[0], Beaten)
        said = f"{text}, its write is under way" if sent else text
        return Step(said, cost, walk.rests(), tuple(walk.news), beaten=beaten)

    def _walks(self, held: Held, agenda: Agenda, group: Group, started: bool, sent: Write | None = None) -> Walk:
        return Walk(self.turn, held, agenda, group, started, sent, self.normal, self.lingers)

    def _happenings(self, local: Local) -> Iterator[Happening]:
        """What its workers, its heart and its signals may tell it."""
        phase, running, fence_at = local.group.phase, local.group.running, local.group.fence_at
        if phase is Phase.ENDED:
            return
        if phase is Phase.HELD:
            beaten, unstartable = Beaten(0.0, 0.0), Unstartable("no such program", 0.0)
            yield "its heartbeat is answered", Cost.FREE, (beaten,), None
            yield "its workers cannot be started", Cost.UNSTARTABLE, (beaten, unstartable, Reaped(0.0)), None
            if fence_at is not None:
                yield "it is heard again", Cost.FENCE, (Beaten(2 * fence_at, 2 * fence_at),), None
        if phase is Phase.RUNNING:
            yield "its workers succeed", Cost.SUCCESS, (Exited(0, 0, 0.0, 0.0),), News.SUCCEEDED
            yield "a worker fails", Cost.FAIL, (Exited(0, 1, 0.0, 0.0),), News.FAILED
            if fence_at is not None:
                yield "it is not heard", Cost.FENCE, (Elapsed(fence_at),), None
        elif running:
            yield "its workers stop", Cost.FREE, (Exited(0, -15, 1.0, 1.0),), None
        again = " again" if phase is Phase.LEAVING else ""
        yield f"it is told to stop{again}", Cost.DRAIN, (Signalled(15, 0.0),), None
        until = local.group.wait.until if local.group.wait else None
        waits_for = {Phase.HELD: until, Phase.LEAVING: local.group.leave_by}.get(phase)
        if waits_for is not None:
            last_try = (Elapsed(waits_for + local.group.settings.ttl),) if phase is Phase.HELD else ()
            yield "it has waited long enough", Cost.TIMEOUT, (Elapsed(waits_for), *last_try), None

    def _spans(self, local: Local) -> Iterator[Step]:
        for fact, (which, at) in local.held.view.spans.items():
            if at > LONG_AGO:
                held = but(local.held, spans={**local.held.view.spans, fact: (which, LONG_AGO)})
                late = local.held.view.state.expected if fact is Fact.OPEN and local.held.view.state else ()
                cost = Cost.OVERDUE if late else Cost.FREE
                yield self._rests(f"it knows for long enough: {fact.value}", cost, local, held=held, those=late)

    def _hears_a_later_start(self, local: Local) -> Iterator[Step]:
        """It has listened for long enough to a later start of its slot, which lives."""
        held, state = local.held, local.held.view.state
        later = later_start(state, held.who.node) if state and held.who.node not in state.seats else None
        if later and isinstance(local.ask, Wait):
            of = {**held.view.sightings.of, later: Sighting(1, 0.0)}
            sightings = evolve(held.view.sightings, of=of, read_at=0.0, since=LONG_AGO)
            held = but(held, sightings=sightings, spans={**held.view.spans, Fact.LATER: (later, LONG_AGO)})
            yield self._rests("it hears a later start of its slot for long", Cost.FREE, local, held=held)

    def _suspicions(self, local: Local) -> Iterator[Step]:
        """A look at the heartbeats is due, and finds that some have been silent for a TTL; and its patience is over."""
        if not isinstance(local.ask, Wait) or not local.agenda.operation:
            return
        sightings = local.held.view.sightings
        due = evolve(sightings, read_at=-local.held.who.settings.keep_alive_interval)
        client = Client(but(local.held, sightings=due), local.agenda)
        _, ask, _ = step(client, Passed(), 0.0, self.turn)
        watched = ask.nodes if isinstance(ask, Observe) else ()
        for those in _some(watched):
            silent = {node: Sighting(0, LONG_AGO if node in those else 0.0) for node in sightings.of}
            held = but(local.held, sightings=evolve(due, of=silent))
            counters = {node: 0 if node in those else 1 for node in watched}
            life = held.view.state.life if held.view.state else None
            held = knows(held, Heartbeats(counters, life), Observe(watched))
            spans = {
                fact: (which, LONG_AGO if fact is Fact.DEAD else at) for fact, (which, at) in held.view.spans.items()
            }
            text = f"it has not heard for a TTL: {' '.join(map(str, those))}"
            yield self._rests(text, Cost.SUSPECT, local, held=but(held, spans=spans), those=those)

    def _deadline(self, local: Local, under_way: Operation, kinds: Container[Cost]) -> Iterator[Step]:
        cost = Cost.FREE if under_way.handler is watch else Cost.TIMEOUT
        if cost in kinds:
            agenda = evolve(local.agenda, operation=evolve(under_way, deadline=0.0))
            yield self._rests("its deadline is over", cost, local, agenda=agenda)

    def _rests(
        self,
        text: str,
        cost: Cost,
        local: Local,
        held: Held | None = None,
        agenda: Agenda | None = None,
        those: tuple[Node, ...] = (),
    ) -> Step:
        walk = self._walks(held or local.held, agenda or local.agenda, local.group, local.started)
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
