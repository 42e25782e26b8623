"""A whole node between two rests: the real `turn`, agenda, memory and `transition` in their loop, as an agent runs them.

It rests when it wants a word with the register or waits, or when what it has asked is under way. All that it does in between
concerns nobody else, and happens at once. It judges what its own steps show (G1 to G6, S3, S17, L6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

from attrs import define, field
from plainnode import PROFILE, Local, normal
from worlds import but

from elastic.core import agent as core
from elastic.core.group import Group, Phase
from elastic.core.group.state import Start
from elastic.core.properties import group_laws
from elastic.core.properties.facts import Started, Stepped
from elastic.core.properties.judge import Judge
from elastic.core.properties.law import Strength, asked, findings, laws_of
from elastic.core.rendezvous import (
    Agenda,
    Client,
    Decision,
    Drawn,
    Gather,
    Heartbeats,
    Held,
    Input,
    Look,
    Observe,
    Operation,
    Passed,
    Propose,
    Raise,
    Request,
    Settled,
    Told,
    Violation,
    Wait,
    Write,
    join,
    leave,
    linger,
    step,
)
from elastic.core.rendezvous.agenda import submitted
from elastic.core.values import evolve
from elastic.core.violation import check
from elastic.core.world import Why, WorldId

Turn = Callable[[Operation, Held, float], Decision]
Normal = Callable[[Held, Agenda, Group], tuple[Held, Agenda, Group]]

TURNS_MAX = 50
OF_GROUP = asked(laws_of(group_laws))


class News(Enum):
    """What others must know of a node's step, to judge it."""

    STARTED = "its workers start"
    FAILED = "a worker of it fails"
    SUCCEEDED = "its workers succeed"
    LEFT = "it has left"


def known(client: Client, input: Input) -> Client:
    """After an input, and nothing else: what has to be done waits."""
    client, _, _ = step(evolve(client, agenda=Agenda()), input, 0.0)
    return client


@define
class Walk:
    """A node between two rests."""

    turn: Turn
    held: Held
    agenda: Agenda
    group: Group
    started: bool
    sent: Write | None = None
    """What it has asked: it asks nothing else before the answer."""
    normal: Normal = normal
    """What makes states one that differ in nothing that matters."""
    lingers: bool = False
    """Who knows the verdict sees to it that the store knows it; needless where a store forgets nothing."""
    over: bool = False
    news: list[News] = field(factory=list)

    def rests(self) -> Local | None:
        """None: the agent has ended."""
        for _ in range(TURNS_MAX):
            if self.over:
                return None
            if self.held.trouble:
                raise Violation("S7", self.held.trouble.text)
            self.held, self.agenda, self.group = self.normal(self.held, self.agenda, self.group)
            if self.sent:
                return self._local(self.sent)
            if not (self.agenda.operation or self.agenda.due):
                return self._local(None)
            if ask := self._steps():
                return self._local(ask)
        raise Violation("L6", f"{self.held.who.node} spins")

    def _steps(self) -> Wait | Write | None:
        """What it wants a word about now, or waits for; None while nobody else is concerned."""
        mine, input = self.held.past.mine, Drawn(0.0) if self.agenda.due else Passed()
        client, ask, notices = step(Client(self.held, self.agenda), input, 0.0, self.turn)
        if isinstance(ask, Observe):
            life = client.held.view.state.life if client.held.view.state else None
            self.held = known(client, Heartbeats(dict.fromkeys(ask.nodes, 1), life)).held
        else:
            self.held = client.held
        self.agenda = client.agenda
        match ask:
            case Write() | Wait():
                self._has_an_end(ask)
                return ask
            case Look():
                return Wait(self.held.token, 0.0)
            case Propose() | Gather():
                raise AssertionError("so few do not propose")
            case _:
                for notice in notices:
                    if isinstance(notice, Told):
                        self._told(notice, mine)
                return None

    def _local(self, ask: Decision | None) -> Local:
        return Local(self.held, self.agenda, self.group, self.started, ask, self.sent is not None)

    def _has_an_end(self, ask: Wait | Write) -> None:
        spare = self.held.view.state is not None and self.held.who.node in self.held.view.state.redundancy_list
        joins = self.agenda.operation is not None and self.agenda.operation.handler is join
        if isinstance(ask, Wait) and math.isinf(ask.until) and joins and not spare:
            raise Violation("L6", f"{self.held.who.node} waits to join without end")

    def _told(self, told: Told, mine: WorldId | None) -> None:
        """`mine` is the world that its workers ran in when it was told."""
        handler, answer = told.handler, told.answer
        if isinstance(answer, Raise) and answer.failure.why is Why.ILLEGAL:
            raise Violation("S7", answer.text)
        if isinstance(answer, Raise) and self.group.phase is Phase.RUNNING:
            raise Violation("L2", f"{self.held.who.node} gives up a world that runs: {answer.failure.why.value}")
        if handler is not linger:
            self.started = self.started and self.held.past.mine == mine
        self.hears(told)
        if handler is leave and isinstance(answer, Settled):
            self.news.append(News.LEFT)

    def hears(self, event: core.Event) -> None:
        """Let its agent hear this, and do what follows. An agent holds what its client holds, and one that has ended and is
        still there lingers."""
        before = core.Agent(self.group, state=self.held.view.state, lingers=self.group.phase is Phase.ENDED)
        after, effects = core.step(before, event, 0.0)
        self.group = after.group
        for effect in effects:
            self.does(effect)
        if self.group.phase is Phase.ENDED and not (after.lingers and self.lingers):
            self.over = True

    def does(self, effect: core.Effect) -> None:
        match effect:
            case core.Stepped(core_event, before, after, commands) if core_event is not None:
                step = Stepped(before, core_event, after, commands, 0.0)
                # not how it ends: a walk remembers no past of its node
                check(findings(OF_GROUP, Judge(), step, Strength()))
            case Start(world):
                if self.started:
                    raise Violation("S17", f"the workers of {self.held.who.node} start twice in one world")
                Judge().saw(Started(self.held.who.node, world))
                self.started = True
                self.news.append(News.STARTED)
            case core.Submit(Request() as request):
                self._submits(request)
            case core.Hear(consequence):
                self.hears(consequence)
            case _:
                pass

    def _submits(self, request: Request) -> None:
        if request.handler is linger and not self.lingers:
            return
        if request.handler is join:
            request = evolve(request, profile=PROFILE)
        self.agenda = submitted(self.agenda, request)
        if request.handler is linger:
            self.held = but(self.held, confirmed_at=None)
