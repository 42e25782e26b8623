"""Stories of the status lines: events go through a real group, and the observer that draws the lines sees each step."""

from __future__ import annotations

import io
import math
import re
import time
from textwrap import dedent
from unittest.mock import patch

from worlds import node, running

from elastic.adapters.launch_settings import Kind, LaunchSettings, Program
from elastic.adapters.report.news import Seen, Started, Step
from elastic.cli.render.status import StatusLines
from elastic.core import group, rendezvous
from elastic.core.group import Group, begin, transition
from elastic.core.group.state import Beaten, Event, Exited, Ready, Reaped
from elastic.core.rendezvous import RendezvousState
from elastic.core.world import Endpoint, Fault, Life, Member, Node, Profile, World, WorldId, world_of

HERE, THERE = node("gpu-02"), node("gpu-01")
FAULT = Fault(
    HERE,
    round=0,
    rank=5,
    local_rank=1,
    pid=8812,
    exit_code=1,
    after_s=12.41,
    host="gpu-02",
    when="2025-01-01 13:05:40",
    message="RuntimeError: an illegal memory access\nCUDA kernel errors might be …",
    where="train.py:88 in step",
    log="logs/job7_x1/attempt_0/1/stderr.log",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Story:
    """One agent's observer, and the group whose steps it sees. Seconds count from the start of the agent."""

    def __init__(
        self,
        out: io.StringIO | None = None,
        mode: str = "plain",
        workers: int = 2,
        me: Node = HERE,
        term: str = "xterm",
        fence: float | None = None,
        alone: group.Alone | None = None,
        no_color: str = "1",
    ) -> None:
        self.out = out or Terminal()
        spans = group.Settings(grace=30.0, fence=fence, alone=alone)
        settings = LaunchSettings(
            Program(Kind.SCRIPT, "train.py"),
            local_world_size=workers,
            store="gpu-01:29400",
            rendezvous=rendezvous.Settings(rendezvous.Limits(1, 2, 3)),
            group=spans,
            environment={"TERM": term, "NO_COLOR": no_color},
        )
        whole = float(math.floor(time.monotonic()))  # sums of what a fraction is added to depend on the uptime
        with patch("time.monotonic", return_value=whole):
            self.status = StatusLines(self.out, settings, mode)
        self.group, commands = begin(Group(me, spans), self.status.began_at)
        self.status.saw(Step(None, self.group, self.group, commands, self.status.began_at))
        self.workers = workers

    def at(self, seconds: float) -> float:
        return self.status.began_at + seconds

    def happens(self, *events: Event) -> None:
        for event in events:
            before, (self.group, commands) = self.group, transition(self.group, event)
            self.status.saw(Step(event, before, self.group, commands, event.at))

    def lasts(self, seconds: float) -> None:
        """Let time pass without an event. The observer is called when it has asked for it, as the agent does."""
        while (until := self.status.until) is not None and until <= self.at(seconds):
            self.status.passed(until)
            assert self.status.until is None or self.status.until > until

    def sees(self, state: RendezvousState, seconds: float = 0.0) -> None:
        self.status.saw(Seen(state, self.at(seconds)))

    def starts(self, seconds: float, round: int = 0, failures: int = 0, nodes: tuple[Node, ...] = (HERE,)) -> None:
        members = tuple(Member(each, Profile(Endpoint("localhost", 1), self.workers, host=each.slot)) for each in nodes)
        self.starts_in(world_of(WorldId(Life("l"), round), members, failures), seconds)

    def starts_in(self, world: World, seconds: float) -> None:
        at = self.at(seconds)
        self.happens(Ready(world, at), Beaten(at, at))
        self.status.saw(Started(world, tuple(range(self.workers)), at))

    def stops(self, seconds: float) -> None:
        """All workers of this node end by SIGTERM."""
        for local_rank in range(self.workers):
            self.exits(local_rank, -15, seconds)
        self.happens(Reaped(self.at(seconds)))

    def exits(self, local_rank: int, code: int, seconds: float) -> None:
        self.happens(Exited(local_rank, code, self.at(seconds), self.at(seconds)))

    def reads(self, text: str) -> None:
        assert self.out.getvalue() == dedent(text).removeprefix("\n")


def two(names: str = "gpu-01 gpu-03", size: str = "2") -> tuple[Story, RendezvousState]:
    """Return the story of the first of these nodes, whose workers run in round 0, and the register."""
    state = running(names, size)
    first, *_ = names.split()
    story = Story(me=node(first), workers=1)
    story.sees(state)
    story.starts_in(state.world, 0.1)
    return story, state


def seen(written: str) -> list[str]:
    """Return the lines of a terminal that got this text. It knows carriage return, line feed, erase line, cursor up."""
    lines, row, column = [""], 0, 0
    for control, count, final, text in re.findall(r"(\x1b\[\??(\d*)([A-Za-z]))|(\r|\n|[^\x1b\r\n]+)", written):
        if final == "K":
            lines[row] = ""
        elif final == "A":
            row -= int(count or 1)
        elif text == "\r":
            column = 0
        elif text == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif not control:
            lines[row] = lines[row][:column] + text
            column += len(text)
    return lines
