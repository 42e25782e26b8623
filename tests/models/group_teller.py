"""The teller of group stories: it takes a line of a story, and returns the group's phase and commands after it."""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import asdict, define, evolve
from groups import world
from worlds import node

from elastic.core.group import Group, Stopped, begin, transition
from elastic.core.group.state import (
    Beaten,
    Checked,
    Closed,
    Command,
    Drained,
    Elapsed,
    Event,
    Exited,
    Gone,
    Noticed,
    Over,
    Ready,
    ReadyToLeave,
    Reaped,
    Record,
    Refused,
    Signalled,
    Start,
    Unawaited,
    Unstartable,
)
from elastic.core.world import Ending, Notice, Verdict, Why


@define
class GroupTeller:
    """The group of node a, which has two workers, beside node b."""

    group: Group = Group(node("a"))
    now: float = 0.0

    def __call__(self, command: str) -> list[str]:
        if found := re.fullmatch(r"(grace|fence|shutdown_timeout) (\S+)", command):
            self.group = evolve(self.group, settings=evolve(self.group.settings, **{found[1]: float(found[2])}))  # type: ignore[arg-type]
            return []
        if command == "checks":
            self.group = evolve(self.group, settings=evolve(self.group.settings, checks=True))
            return []
        if command == "begin":
            self.group, commands = begin(self.group, 0.0)
            return [self._line(commands)]
        if found := re.fullmatch(r"time (\S+)", command):
            return self._passes(float(found[1]))
        for pattern, event in self._events():
            if found := re.fullmatch(pattern, command):
                return [self._line(self._after(event(*found.groups())))]
        raise AssertionError(f"no command: {command}")

    def _events(self) -> list[tuple[str, Callable[..., Event]]]:
        now, b = self.now, node("b")
        return [
            (r"ready (\d+)", lambda round: Ready(world(int(round)), now)),
            (r"over (\d+)", lambda round: Over(int(round), Why.FAILED, b, now)),
            (r"over (\d+) by a", lambda round: Over(int(round), Why.FAILED, node("a"), now)),
            (r"over (\d+) by somebody", lambda round: Over(int(round), None, None, now)),
            (r"fit", lambda: Checked(True, "", now)),
            (r"unfit", lambda: Checked(False, "GPU 3 has lost its memory", now)),
            (r"closed (\w+)", lambda ending: Closed(Verdict(Ending(ending), 0, b, Why.ASKED), now)),
            (r"refused (.+)", lambda why: Refused(Why(why), "", now)),
            (r"gone", lambda: Gone(now)),
            (r"beat (\S+)", lambda sent_at: Beaten(float(sent_at), now)),
            (r"worker (\d) exits (-?\d+)", lambda rank, code: Exited(int(rank), int(code), now, now)),
            (
                r"worker (\d) had died at (\S+) with (-?\d+)",
                lambda rank, at, code: Exited(int(rank), int(code), float(at), now),
            ),
            (r"reaped", lambda: Reaped(now)),
            (r"cannot start", lambda: Unstartable("no such file", now)),
            (r"notice (\S+)", lambda deadline: Noticed(Notice(float(deadline), "a test"), now)),
            (r"worker (\d) is ready to leave", lambda rank: ReadyToLeave(int(rank), now)),
            (r"signal (\d+)", lambda signum: Signalled(int(signum), now)),
        ]

    def _passes(self, until: float) -> list[str]:
        """Let time pass, and tell the group at each point in time that it has asked for."""
        lines = []
        while self.group.until is not None and self.group.until <= until:
            self.now = self.group.until
            lines.append(self._line(self._after(Elapsed(self.now))))
        self.now = until
        return lines

    def _after(self, event: Event) -> tuple[Command, ...]:
        self.group, commands = transition(self.group, event)
        return commands

    def _line(self, commands: tuple[Command, ...]) -> str:
        orders = " · ".join(_order(command) for command in commands)
        outcome = f" · {_outcome(self.group)}" if self.group.outcome else ""
        return f"{self.now:g}  {self.group.phase.name}{': ' if orders else ''}{orders}{outcome}"


def _order(command: Command) -> str:
    if isinstance(command, Start):
        return f"Start round {command.world.round}"
    if isinstance(command, Record):
        return f"Record worker {command.local_rank} ({command.code})"
    given = {name: value for name, value in asdict(command, recurse=False).items() if value is not None}
    values = [name if value is True else getattr(value, "value", value) for name, value in given.items()]
    return " ".join([type(command).__name__, *map(str, values)])


def _outcome(group: Group) -> str:
    match group.outcome:
        case Verdict(ending):
            return f"the job has {ending.value}"
        case Stopped(signum):
            return f"stopped by signal {signum}"
        case Unawaited():
            return "waits no longer"
        case Drained():
            return "drained"
        case other:
            return f"refused: {other.why.value if other else ''}"
