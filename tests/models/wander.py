"""Random runs of agents: one source of chance, `choose(n)`, decides what happens next.

Hypothesis is the source where a failure must be shrunk, and a seeded generator where runs are long. `happened` has the run
in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from agents import Agents
from attrs import define, field
from smallworld import Fate
from worlds import register

from elastic.core.rendezvous import Settings, watch
from elastic.core.world import Ending, Why

T = TypeVar("T")
Choose = Callable[[int], int]
"""Returns a whole number from 0 to n - 1."""

NAMES = ("a", "b", "c", "d", "a#2", "c#2")
SIZES = ("1:1", "1:2", "2:2", "1:3", "2:3", "3:3", "2:4")
SPANS = (0.1, 0.7, 1.0, 3.0, 6.0, 30.0)
FATES = tuple(fate for fate in Fate if fate is not Fate.ANSWERED)
CLOSES = ((Why.ASKED, Ending.CANCELLED), (Why.CANNOT_START, Ending.FAILED))


@define
class Wanderer:
    """One random run."""

    choose: Choose
    agents: Agents = field(init=False)
    happened: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        size, restarts = self._one(SIZES), self.choose(5)
        self.happened.append(f"job {size} restarts={restarts}")
        self.agents = Agents(Settings(limits=register(size, restarts).limits, join_timeout=60, overdue_timeout=20))

    def runs(self, steps: int) -> None:
        for step in range(steps):
            self._one(self._possible())()
            if step % 3 == 0:
                self.agents.check_handlers()

    def _possible(self) -> Sequence[Callable[[], None]]:
        """Return what can happen now. What should be chosen more often occurs more often."""
        usual = [self._time_passes, self._time_passes, self._joins, self._all_join, self._fault, self._recovers]
        if self._watching():
            usual += [self._workers_fail, self._workers_succeed]
        rare = [self._store, self._leaves, self._leaves_while_it_owes, self._all_workers_succeed, self._dies]
        return [*usual * 4, *rare, *([self._closes] if self.choose(8) == 7 else [])]

    # --- things that happen

    def _time_passes(self) -> None:
        span = self._one(SPANS)
        self.happened.append(f"time {self.agents.world.now + span:g}")
        self.agents.world.passes(self.agents.world.now + span)

    def _joins(self) -> None:
        if idle := self._idle():
            self._said("joins", self.agents.joins, self._one(idle))

    def _all_join(self) -> None:
        for who in [each for each in self._idle() if "#" not in each]:
            self._said("joins", self.agents.joins, who)

    def _workers_fail(self) -> None:
        self._said("workers fail", self.agents.fails, self._one(self._watching()))

    def _workers_succeed(self) -> None:
        self._said("workers succeed", self.agents.succeeds, self._one(self._watching()))

    def _all_workers_succeed(self) -> None:
        for who in self._watching():
            if who in self._watching():
                self._said("workers succeed", self.agents.succeeds, who)

    def _leaves(self) -> None:
        if living := self._living():
            self._said("leaves", self.agents.leaves, self._one(living))

    def _leaves_while_it_owes(self) -> None:
        if idle := self._idle():
            who = self._one(idle)
            self.agents.world.actor(who).fate = Fate.CUT_OFF
            self.happened.append(f"{who} next write: {Fate.CUT_OFF.value}")
            self._said("joins", self.agents.joins, who)
            self._said("leaves", self.agents.leaves, who)

    def _closes(self) -> None:
        if living := self._living():
            why, ending = self._one(CLOSES)
            self._said(f"closes {ending.value}", lambda who: self.agents.closes(who, why, ending), self._one(living))

    def _fault(self) -> None:
        if living := self._living():
            actor, fault = self.agents.world.actor(who := self._one(living)), self.choose(len(FATES) + 1)
            self.happened.append(f"{who} {'is silent' if fault == len(FATES) else f'next write: {FATES[fault].value}'}")
            if fault == len(FATES):
                actor.silent = True
            else:
                actor.fate = FATES[fault]

    def _dies(self) -> None:
        """An agent falls silent for longer than a TTL: one whose workers have succeeded, if there is one."""
        done = [who for who in self._living() if who in self.agents.succeeded]
        if living := done or self._living():
            self._said(
                "is silent", lambda who: setattr(self.agents.world.actor(who), "silent", True), self._one(living)
            )
            self.agents.world.passes(self.agents.world.now + 7)

    def _recovers(self) -> None:
        """Late writes land and silent nodes go on, each by chance."""
        for who, actor in self.agents.world.actors.items():
            if actor.late and self.choose(2):
                self._said("write lands", self.agents.world.lands, who)
            elif actor.silent and self.choose(2):
                self.happened.append(f"{who} is back")
                actor.silent = False
        self.agents.world.settle()

    def _store(self) -> None:
        self.agents.world.away = self.choose(3) == 2
        self.happened.append(f"the store is {'away' if self.agents.world.away else 'back'}")
        self.agents.world.settle()

    # --- to whom

    def _said(self, what: str, act: Callable[[str], None], who: str) -> None:
        self.happened.append(f"{who} {what}")
        act(who)

    def _one(self, of: Sequence[T]) -> T:
        return of[self.choose(len(of))]

    def _living(self) -> list[str]:
        """Return the agents that have not ended. One that has ended never starts again under the same name."""
        return [who for who in self.agents.world.actors if not self.agents.is_over(who)]

    def _idle(self) -> list[str]:
        actors = self.agents.world.actors
        new = [who for who in NAMES if who not in actors]
        return new + [who for who in self._living() if actors[who].operation is None]

    def _watching(self) -> list[str]:
        actors = self.agents.world.actors
        return [who for who in self.agents.running if (op := actors[who].operation) and op.handler is watch]
