"""A whole node between two rests: the real `turn`, agenda, memory and `transition` in their loop, as an agent runs them.

It rests when it wants a word with the register (an `Ask`) or waits, or when what it has asked is under way. All that it does
in between concerns nobody else, and happens at once. It judges what its own steps show (G1 to G6, S3, S17, L6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

from attrs import define, field
from plainnode import PROFILE, Local, normal

from elastic.core.evolving import evolve
from elastic.core.group import Group, Phase, transition
from elastic.core.group.state import (
    Command,
    Event,
    Start,
)
from elastic.core.node import farewell, follows, heard, requested
from elastic.core.properties.facts import Started, Stepped
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import (
    Ask,
    Gather,
    Held,
    Observe,
    Operation,
    Outcome,
    Propose,
    Raise,
    Return,
    Settled,
    Violation,
    Wait,
    Write,
    join,
    leave,
    linger,
)
from elastic.core.rendezvous import heard as heard_beats
from elastic.core.rendezvous.agenda import Agenda, answered, begun, submitted
from elastic.core.world import Why

Turn = Callable[[Operation, Held, float], Ask]
Normal = Callable[[Held, Agenda, Group], tuple[Held, Agenda, Group]]

TURNS_MAX = 50


class News(Enum):
    """What others must know of a node's step, to judge it."""

    STARTED = "its workers start"
    FAILED = "a worker of it fails"
    SUCCEEDED = "its workers succeed"
    LEFT = "it has left"


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
                    if failure.why is Why.ILLEGAL:
                        raise Violation("S7", text)
                    self._told(self.agenda.operation, ask)
                case Observe(nodes):
                    life = self.held.state.life if self.held.state else None
                    self.held = heard_beats(self.held, dict.fromkeys(nodes, 1), 0.0, 0.0, life)
                case Propose() | Gather():
                    raise AssertionError("so few do not propose")
                case Wait() | Write():
                    self._has_an_end(self.agenda.operation, ask)
                    return self._local(ask)
        raise Violation("L6", f"{self.held.node} spins")

    def _local(self, ask: Ask | None) -> Local:
        return Local(self.held, self.agenda, self.group, self.started, ask, self.sent is not None)

    def _has_an_end(self, under_way: Operation, ask: Wait | Write) -> None:
        spare = self.held.state is not None and self.held.node in self.held.state.redundancy_list
        if isinstance(ask, Wait) and math.isinf(ask.until) and under_way.handler is join and not spare:
            raise Violation("L6", f"{self.held.node} waits to join without end")

    def _told(self, under_way: Operation, answer: Outcome | Raise) -> None:
        if under_way.handler is linger:
            self.over = True
            return
        if isinstance(answer, Raise) and self.group.phase is Phase.RUNNING:
            raise Violation("L2", f"{self.held.node} gives up a world that runs: {answer.failure.why.value}")
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
        if after.phase is Phase.ENDED and before.phase is not Phase.ENDED:
            self._ends()
        if consequence := follows(event, after, 0.0):
            self.hears(consequence)

    def _ends(self) -> None:
        outcome = self.group.outcome
        last = farewell(outcome) if self.lingers and outcome else None
        if last is None:
            self.over = True
        else:
            self.agenda, self.held = submitted(self.agenda, last), evolve(self.held, confirmed_at=None)

    def does(self, command: Command) -> None:
        if isinstance(command, Start):
            if self.started:
                raise Violation("S17", f"the workers of {self.held.node} start twice in one world")
            Judge().saw(Started(self.held.node, command.world))
            self.started = True
            self.news.append(News.STARTED)
        elif request := requested(command, PROFILE):
            self.agenda = submitted(self.agenda, request)
