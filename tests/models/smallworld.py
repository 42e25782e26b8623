"""A few nodes, one register and one clock: the loop of the real `turn` and `memory`, driven step by step by a test.

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
    Ask,
    Gather,
    Held,
    Observe,
    Operation,
    Outcome,
    Propose,
    Raise,
    RendezvousState,
    Restore,
    Return,
    Settings,
    Token,
    Wait,
    Write,
    heard,
    join,
    joined,
    saw,
    turn,
    unanswered,
    watch,
    woke,
)
from elastic.core.rendezvous import operation as begin
from elastic.core.rendezvous.context import Handler
from elastic.core.rendezvous.handlers import done
from elastic.core.world import Ending, Life, Node, Why, World

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
    ask: Ask
    stands: RendezvousState | None = None
    fate: Fate = Fate.ANSWERED

    @property
    def written(self) -> bool:
        return isinstance(self.ask, Write) and self.ask.state is self.stands


@define
class Actor:
    """One node as its agent runs it: what it remembers, what it is about, and what it waits for."""

    held: Held
    operation: Operation | None = None
    wait: Wait | None = None
    silent: bool = False
    stopped: bool = False
    """Its agent has ended, and its heart with it."""
    fate: Fate = Fate.ANSWERED
    late: list[Write] = field(factory=list)
    beat_at: float = 0.0
    answer: Outcome | Raise | None = None


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
        actor.operation, actor.wait = begin(handler, actor.held.settings, self.now, why=why, ending=ending), None
        actor.answer = None

    def actor(self, who: str) -> Actor:
        """A node; a new one if there was none of this name."""
        if who not in self.actors:
            held = Held(node(who), profile(who), self.settings, Life(f"made by {who}"))
            self.actors[who] = Actor(held, beat_at=self.now)
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
        actor.silent, actor.held = False, woke(actor.held, self.now)
        actor.wait = None

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
        """One ask of a node, and its answer; whether there was one."""
        actor = self.actors[who]
        if actor.silent or self.away or actor.operation is None:
            return False
        if actor.wait and not self._is_due(actor.wait):
            return False
        if actor.wait:
            actor.held, actor.wait = self._seen(actor), None
        self._answer(who, actor, actor.operation, turn(actor.operation, actor.held, self.now))
        return True

    def _answer(self, who: str, actor: Actor, operation: Operation, ask: Ask) -> None:
        about = operation.handler.__name__
        match ask:
            case Wait():
                actor.wait = ask
            case Observe(nodes):
                counters = {each: self.counters.get(each) for each in nodes}
                life = self.register.life if self.register and self.here else None
                actor.held = heard(actor.held, counters, self.now, self.now, life)
            case Write():
                self._write(who, about, actor, ask)
            case Return(outcome):
                self.tell(Told(who, about, ask))
                self._finished(actor, operation, outcome)
            case Propose() | Gather():
                raise AssertionError("so few do not propose")
            case Raise():
                self.tell(Told(who, about, ask))
                actor.operation, actor.answer = None, ask

    def _write(self, who: str, about: str, actor: Actor, write: Write) -> None:
        fate, actor.fate = actor.fate, Fate.ANSWERED
        if fate in (Fate.ANSWERED, Fate.REPLY_LOST):
            self._commit(write)
        if fate in (Fate.LATE, Fate.CUT_OFF):
            actor.late.append(write)
        actor.silent = actor.silent or fate is Fate.CUT_OFF
        self.tell(Told(who, about, write, self.register, fate))
        if fate is Fate.ANSWERED:
            actor.held = self._seen(actor)
        else:
            actor.held = unanswered(actor.held, write.token, self.now)

    def _finished(self, actor: Actor, operation: Operation, outcome: Outcome) -> None:
        """As the agent does: who has joined or is done watches; whoever else is finished is idle."""
        actor.operation, actor.answer = None, outcome
        if isinstance(outcome, World):
            actor.held = joined(actor.held, outcome.id)
        if operation.handler in (join, done):
            actor.operation = begin(watch, actor.held.settings, self.now)

    # --- the register and the clock

    def _seen(self, actor: Actor) -> Held:
        return saw(actor.held, self.register, self.now, self.now, self.here)

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
                actor.beat_at += actor.held.settings.keep_alive_interval
                if not (actor.silent or actor.stopped or self.away):
                    self.counters[actor.held.node] = self.counters.get(actor.held.node, 0) + 1
