"""A small world as its agents run it, with the properties that need the nodes (docs/protocol.md#properties)."""

from __future__ import annotations

import math
from collections import Counter

from attrs import define, field
from seen import sometimes
from smallworld import Actor, Fate, SmallWorld, Told
from worlds import node

from elastic.core.properties.facts import Fact, Failed, Left, Reaped, Started, Succeeded, Wrote
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import (
    Fail,
    Operation,
    Raise,
    RendezvousState,
    Return,
    Settings,
    Settled,
    Violation,
    Wait,
    Write,
    blank,
    close,
    done,
    end,
    join,
    leave,
    linger,
    turn,
    watch,
)
from elastic.core.rendezvous.context import Handler
from elastic.core.world import Ending, Verdict, Why, World, WorldId

HANDLERS: tuple[Handler, ...] = (join, watch, end, done, leave, close, linger)


class Broken(AssertionError):
    """A property does not hold; the text begins with its number."""


@define
class Agents:
    """What a test may do to a few agents, at any time, and what must hold whatever it does."""

    settings: Settings
    world: SmallWorld = field(init=False)
    judge: Judge = field(factory=Judge)
    running: dict[str, WorldId] = field(factory=dict)
    """Whose workers live, and in which world."""
    succeeded: dict[str, WorldId] = field(factory=dict)
    """Whose workers have all succeeded, and in which world."""
    left: set[str] = field(factory=set)
    register: RendezvousState | None = None
    seen: Counter[str] = field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        self.world = SmallWorld(self.settings, tell=self._told)

    # --- what agents do

    def joins(self, who: str) -> None:
        """Its workers are reaped, whatever they did."""
        self.running.pop(who, None)
        self.succeeded.pop(who, None)
        self.left.discard(who)
        self.judge.left.discard(node(who))
        self._saw(Reaped(node(who)))
        self.world.begins(who, join)
        self.world.settle()

    def fails(self, who: str) -> None:
        self._saw(Failed(node(who), self.running[who]))
        self.world.begins(who, end, Why.FAILED)
        self.world.settle()

    def succeeds(self, who: str) -> None:
        self.succeeded[who] = self.running.pop(who)
        self._saw(Reaped(node(who)))
        self._saw(Succeeded(node(who), self.succeeded[who]))
        self.world.begins(who, done)
        self.world.settle()

    def leaves(self, who: str) -> None:
        self.world.begins(who, leave)
        self.world.settle()

    def closes(self, who: str, why: Why, ending: Ending) -> None:
        self.world.begins(who, close, why, ending)
        self.world.settle()

    def is_over(self, who: str) -> bool:
        """It has been told how the job ended, or that it cannot take part; or it was asked to leave."""
        actor = self.world.actor(who)
        return isinstance(actor.answer, Raise | Verdict) or who in self.left

    def converges(self) -> None:
        """No more faults, and every agent does what agents do: the world must come to rest. L1, L2."""
        self.world.away = False
        for who, actor in self.world.actors.items():
            actor.silent, actor.fate = False, Fate.ANSWERED
            while actor.late:
                self.world.lands(who)
        for _ in range(20):
            for who in [each for each, actor in self.world.actors.items() if actor.operation is None]:
                if not self.is_over(who):
                    self.joins(who)
            if not self._lost():
                return
            self.world.passes(self.world.now + 5)
        raise Broken(f"L2: {self._lost()} are in no complete round, no spares, told nothing: {self.world.register}")

    def _lost(self) -> list[str]:
        return [who for who in self.world.actors if not self._rests(who)]

    def _rests(self, who: str) -> bool:
        """In the one complete world, a spare, told, or waiting for a minimum that nobody here can make up."""
        state = self.world.register
        if self.is_over(who) or state is None or state.closed:
            return self.is_over(who)
        waits = state.complete or not (state.quorate or state.expected)
        return waits and node(who) in state.seats and self.world.actor(who).operation is not None

    # --- what must hold

    def _told(self, told: Told) -> None:
        match told.ask:
            case Write() if self.world.register is not self.register:
                self._written(told)
            case Write():
                self.seen["a refused write" if told.fate is Fate.ANSWERED else told.fate.value] += 1
            case Return(World() as world):
                self._joined(told.who, world)
            case Return(Settled()) if told.operation == "leave":
                self.has_left(told.who)
                self.world.actor(told.who).stopped = True
            case Raise(Fail(Why.ILLEGAL), text):
                raise Broken(f"a step that is not legal was wanted by {told.who}: {text}")
            case _:
                self.seen[f"{told.operation} {_answer(told)}"] += 1
                self.world.actor(told.who).stopped = isinstance(told.ask, Raise | Return) and _ends(told.ask)

    def has_left(self, who: str) -> None:
        self.left.add(who)
        self._saw(Left(node(who)))

    def _written(self, told: Told) -> None:
        before, after, edit = self.register, self.world.register, told.ask.edit if isinstance(told.ask, Write) else None
        assert after is not None and edit is not None
        self.register = after
        self._saw(Wrote(node(told.who), before, edit, after))
        self.seen.update(sometimes(before or blank(after.life, after.limits), edit, node(told.who), after))
        if told.fate is not Fate.ANSWERED:
            self.seen[told.fate.value] += 1
        if told.operation == "late write":
            self.seen["a late write lands"] += 1

    def _joined(self, who: str, world: World) -> None:
        self.seen["joined"] += 1
        self._saw(Started(node(who), world))
        self.running[who] = world.id

    def _saw(self, fact: Fact) -> None:
        """What must hold of it is the core's to say."""
        try:
            self.judge.saw(fact)
        except Violation as violation:
            raise Broken(str(violation)) from violation

    # --- what any handler may answer at any time

    def check_handlers(self) -> None:
        """Every handler, in the context of every node, now and past its deadline: legal, and no node spins."""
        for actor in self.world.actors.values():
            held = actor.held
            if (
                held.trouble
                or held.found
                or held.view.held_at is None
                or held.doubt.unsure_at is not None
                or held.doubt.woke_at is not None
            ):
                continue
            for handler in HANDLERS:
                for deadline in (math.inf, self.world.now):
                    self._check_answer(actor, handler, deadline)

    def _check_answer(self, actor: Actor, handler: Handler, deadline: float) -> None:
        ask = turn(Operation(handler, self.world.now, deadline), actor.held, self.world.now)
        match ask:
            case Wait(_, until) if until <= self.world.now and handler is not linger:  # which asks until it has seen
                raise Broken(f"{handler.__name__} waits until {until}, which is past: it would spin")
            case Raise(Fail(Why.ILLEGAL), text):
                raise Broken(f"{handler.__name__} wants what is not legal: {text}")
            case _:
                return


def _ends(answer: Raise | Return) -> bool:
    """The agent has nothing more to do here."""
    return isinstance(answer, Raise) or isinstance(answer.outcome, Verdict)


def _answer(told: Told) -> str:
    match told.ask:
        case Raise(failure):
            return f"fails ({failure.why.value})"
        case Return(Verdict(ending)):
            return f"is told {ending.value}"
        case Return(outcome):
            return type(outcome).__name__.lower()
        case other:
            return type(other).__name__
