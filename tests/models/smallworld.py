"""A few nodes, one register and one clock: the real client, driven step by step by a test.

Nothing here decides. What an adapter does with threads and a store is done with plain values: asks are answered at once,
unless a test says that a node is silent, that an answer is lost, or that a write is late.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

from attrs import define, field, frozen
from worlds import node, profile

from elastic.core.rendezvous import (
    Agenda,
    Ask,
    Client,
    Decision,
    Draw,
    Drawn,
    Gather,
    Heartbeats,
    Held,
    Idle,
    Input,
    Look,
    Observe,
    Operation,
    Outcome,
    Passed,
    Propose,
    Pushed,
    Raise,
    RendezvousState,
    Restore,
    Return,
    Settings,
    Shown,
    Token,
    Unknown,
    Wait,
    Who,
    Woke,
    Write,
    exchange,
    operation,
    step,
)
from elastic.core.rendezvous.context import Handler
from elastic.core.world import Ending, Life, Node, Why

STEPS_MAX = 1_000
"""More turns than this without time passing: a node spins."""


class Fate(Enum):
    """What becomes of a node's next write."""

    ANSWERED = "answered"
    REPLY_LOST = "reply lost"
    LOST = "lost"
    LATE = "late"
    CUT_OFF = "late, and nothing is heard meanwhile"


@frozen
class Told:
    """What happened: an ask, and what came of it."""

    who: str
    operation: str
    ask: Decision
    stands: RendezvousState | None = None
    fate: Fate = Fate.ANSWERED

    @property
    def written(self) -> bool:
        return isinstance(self.ask, Write) and self.ask.state is self.stands


@define
class Actor:
    """One node as its agent runs it: its client, what that asks for, and what came of it already."""

    client: Client
    ask: Ask = Idle()
    input: Input | None = None
    silent: bool = False
    stopped: bool = False
    """Its agent has ended, and its heart with it."""
    fate: Fate = Fate.ANSWERED
    late: list[Write] = field(factory=list)
    beat_at: float = 0.0
    answer: Outcome | Raise | None = None

    @property
    def held(self) -> Held:
        return self.client.held

    @property
    def operation(self) -> Operation | None:
        return self.client.agenda.operation

    @property
    def wait(self) -> Wait | None:
        return self.ask if isinstance(self.ask, Wait) else None

    def remembers(self, held: Held, agenda: Agenda | None = None) -> None:
        """This, and it is about this."""
        self.client, self.ask, self.input = Client(held, agenda or Agenda()), Idle(), Passed()


@define
class SmallWorld:
    settings: Settings
    tell: Callable[[Told], None] = lambda told: None
    now: float = 0.0
    register: RendezvousState | None = None
    here: bool = True
    """The register was written in the store as it is now."""
    past: list[RendezvousState] = field(factory=list)
    """All that was ever written."""
    away: bool = False
    counters: dict[Node, int] = field(factory=dict)
    actors: dict[str, Actor] = field(factory=dict)

    # --- what a test says

    def begins(self, who: str, handler: Handler, why: Why = Why.ASKED, ending: Ending = Ending.CANCELLED) -> None:
        """The agent has an operation carried out; one that is under way gives way to it."""
        actor = self.actor(who)
        about = operation(handler, actor.held.who.settings, self.now, why=why, ending=ending)
        actor.remembers(actor.held, Agenda(operation=about))
        actor.answer = None

    def actor(self, who: str) -> Actor:
        """A node; a new one if there was none of this name."""
        if who not in self.actors:
            held = Held(Who(node(who), profile(who), self.settings, Life(f"made by {who}")))
            self.actors[who] = Actor(Client(held), beat_at=self.now)
        return self.actors[who]

    def lands(self, who: str) -> None:
        """The first of a node's late writes reaches the register."""
        write = self.actors[who].late.pop(0)
        self._commit(write)
        self.tell(Told(who, "late write", write, self.register))

    def empties(self) -> None:
        self.register, self.here, self.counters = None, True, {}

    def is_older(self, version: int) -> None:
        """The store is restored from a backup that was made at the last state of this version: a copy of another store."""
        self.empties()
        self.register = next(state for state in reversed(self.past) if state.version == version)
        self.here = False

    def wakes(self, who: str) -> None:
        """It goes on after it stood still for more than a TTL, and knows that it did."""
        actor = self.actor(who)
        actor.silent = False
        self._feeds(who, actor, Woke())
        actor.input = Passed() if actor.wait else actor.input

    def settle(self) -> None:
        """Turns, until everybody waits for something."""
        for _ in range(STEPS_MAX):
            if not [who for who in list(self.actors) if self.step(who)]:
                return
        raise AssertionError("a node spins")

    def passes(self, until: float) -> None:
        """Time passes, from one thing that is due to the next."""
        self.settle()
        while (at := self._next_at()) <= until:
            self.now = max(at, self.now)
            self._beat()
            self.settle()
        self.now = until
        self.settle()

    # --- one node

    def step(self, who: str) -> bool:
        """One step of a node's client; whether there was one."""
        actor = self.actors[who]
        input = None if actor.silent or self.away else self._comes_of(actor)
        if input is None:
            return False
        actor.input = None
        self._feeds(who, actor, input)
        return True

    def _comes_of(self, actor: Actor) -> Input | None:
        match actor.ask:
            case _ if actor.input:
                return actor.input
            case Draw():
                return Drawn(0.0)
            case Look():
                return self._shown
            case Wait() as wait if self._is_due(wait):
                return Pushed(self.register, self.now, self.here)
            case _:
                return None

    def _feeds(self, who: str, actor: Actor, input: Input) -> None:
        actor.client, ask, notices = step(actor.client, input, self.now)
        actor.ask = ask or actor.ask
        for notice in notices:
            if isinstance(notice, exchange.Told):
                actor.answer = answer = notice.answer
                end = answer if isinstance(answer, Raise) else Return(answer)
                self.tell(Told(who, notice.handler.__name__, end))
        match ask:
            case Observe(nodes):
                actor.input = Heartbeats({each: self.counters.get(each) for each in nodes}, self._shown.life)
            case Write():
                self._write(who, actor, ask)
            case Propose() | Gather():
                raise AssertionError("so few do not propose")
            case _:
                pass

    def _write(self, who: str, actor: Actor, write: Write) -> None:
        assert actor.operation
        fate, actor.fate = actor.fate, Fate.ANSWERED
        if fate in (Fate.ANSWERED, Fate.REPLY_LOST):
            self._commit(write)
        if fate in (Fate.LATE, Fate.CUT_OFF):
            actor.late.append(write)
        actor.silent = actor.silent or fate is Fate.CUT_OFF
        self.tell(Told(who, actor.operation.handler.__name__, write, self.register, fate))
        if fate is Fate.CUT_OFF:
            self._feeds(who, actor, Unknown())
        else:
            actor.input = self._shown if fate is Fate.ANSWERED else Unknown()

    # --- the register and the clock

    @property
    def _shown(self) -> Shown:
        return Shown(self.register, self.here)

    def _commit(self, write: Write) -> None:
        """Whoever edits a copy leaves it one; only a restore makes it the store's own."""
        if write.token == self._token():
            self.register, self.here = write.state, self.here or isinstance(write.edit, Restore)
            self.past.append(write.state)

    def _token(self) -> Token | None:
        return self.register.token if self.register else None

    def _is_due(self, wait: Wait) -> bool:
        return wait.token != self._token() or self.now >= wait.until

    def _next_at(self) -> float:
        beats = [actor.beat_at for actor in self.actors.values()]
        waits = [actor.wait.until for actor in self.actors.values() if actor.wait and not actor.silent]
        return min([*beats, *([] if self.away else waits)], default=math.inf)

    def _beat(self) -> None:
        for actor in self.actors.values():
            if self.now >= actor.beat_at:
                actor.beat_at += actor.held.who.settings.keep_alive_interval
                if not (actor.silent or actor.stopped or self.away):
                    self.counters[actor.held.who.node] = self.counters.get(actor.held.who.node, 0) + 1
