"""The teller of register stories: it takes a line of a story, and returns what the nodes do, in the words of telling.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from attrs import define, field
from smallworld import Actor, Fate, SmallWorld, Told
from telling import state_line, told_line
from worlds import but, register

from elastic.core.rendezvous import Settings, close, done, end, explain, join, leave, linger
from elastic.core.rendezvous.context import Handler
from elastic.core.world import Ending, Why

FATES = {"lose the reply of": Fate.REPLY_LOST, "lose": Fate.LOST, "delay": Fate.LATE, "cut off at": Fate.CUT_OFF}


@define
class RegisterTeller:
    """One story. The first pattern that matches the whole line decides what the line does."""

    lines: list[str] = field(factory=list)
    world: SmallWorld = field(init=False)

    def __call__(self, command: str) -> list[str]:
        self.lines = []
        for pattern, act in self._commands():
            if found := re.fullmatch(pattern, command):
                act(*found.groups())
                return self.lines
        raise AssertionError(f"no command: {command}")

    def _commands(self) -> list[tuple[str, Callable[..., None]]]:
        who, point = r"(\w+(?:#\d)?)", r"(\d+(?:\.\d+)?)"
        return [
            (r"job (\S+)((?: \w+=\S+)*)", self._job),
            (rf"{who} was given (\S+)((?: \w+=\S+)*)", self._given),
            (r"((?:\S+ )+)joins?", self._all(join)),
            (r"((?:\S+ )+)leaves?", self._all(leave)),
            (rf"{who} cancels", lambda one: self._begin(one, close, Why.ASKED)),
            (r"((?:\S+ )+?)?(\S+)'s workers fail", self._workers_fail),
            (rf"{who}'s workers succeed", lambda one: self._begin(one, done)),
            (rf"{who}'s workers cannot start", lambda one: self._begin(one, close, Why.CANNOT_START, Ending.FAILED)),
            (rf"time {point}", lambda at: self.world.passes(float(at))),
            (rf"{who} is (silent|back)", self._silence),
            (rf"(lose the reply of|lose|delay|cut off at) {who}'s next write", self._fate),
            (rf"{who}'s write lands", self._lands),
            (r"the store is (away|back|empty)", self._store),
            (r"the store is older (\d+)", self._older),
            (rf"{who} slept", self._wakes),
            (r"((?:\S+ )+)lingers?", self._all(linger)),
            (r"show register", lambda: self.lines.append(state_line(self.world.register))),
            (rf"show {who}", lambda one: self.lines.append(f"{one} {self._seen_by(self.world.actor(one))}")),
        ]

    def _job(self, size: str, settings: str) -> None:
        self.world = SmallWorld(_settings(size, settings), tell=self._tell)

    def _given(self, who: str, size: str, settings: str) -> None:
        actor = self.world.actor(who)
        actor.remembers(but(actor.held, settings=_settings(size, settings)))

    def _tell(self, told: Told) -> None:
        self.lines.append(f"{self.world.now:g}  {told_line(told)}")

    def _all(self, handler: Handler) -> Callable[[str], None]:
        return partial(self._begin, handler=handler)

    def _begin(self, names: str, handler: Handler, why: Why = Why.ASKED, ending: Ending = Ending.CANCELLED) -> None:
        for who in names.split():
            self.world.begins(who, handler, why, ending)
        self.world.settle()

    def _workers_fail(self, others: str | None, last: str) -> None:
        self._begin(f"{others or ''} {last}", end, Why.FAILED)

    def _silence(self, who: str, how: str) -> None:
        self.world.actor(who).silent = how == "silent"
        self.world.settle()

    def _fate(self, how: str, who: str) -> None:
        self.world.actor(who).fate = FATES[how]

    def _lands(self, who: str) -> None:
        self.world.lands(who)
        self.world.settle()

    def _store(self, how: str) -> None:
        if how == "empty":
            self.world.empties()
        self.world.away = how == "away"
        self.world.settle()

    def _older(self, version: str) -> None:
        self.world.is_older(int(version))
        self.world.settle()

    def _wakes(self, who: str) -> None:
        self.world.wakes(who)
        self.world.settle()

    def _seen_by(self, actor: Actor) -> str:
        sentence = explain(actor.held.view.state, actor.held.who.node)
        if actor.operation is None:
            return f"has nothing to do · {sentence}"
        until = f", until {actor.wait.until:g} at most" if actor.wait else ""
        return f"{actor.operation.handler.__name__}{until} · {sentence}"


def _settings(size: str, settings: str) -> Settings:
    values = dict(pair.split("=") for pair in settings.split())
    limits = register(size, int(values.pop("restarts", 0))).limits
    spans = {key: float(value) for key, value in values.items()}
    return Settings(limits=limits, **spans)  # type: ignore[arg-type]
