"""Status lines on stderr: one for each thing that happened, who, what, and what comes next. Rendered from the agent's steps.

Quiet when all is well: a line when the workers start, one at the end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from signal import Signals
from typing import TextIO

from ...adapters.agent import News, Started, Step
from ...adapters.rendezvous_loop import Recorded, Seen, StoreBack, StoreSilent
from ...adapters.settings import LaunchSettings
from ...adapters.workers.errors import exit_sentence
from ...core.group import Group, Phase
from ...core.group.state import Elapsed, Exited, Over, Reaped, Record, Signal, Signalled
from ...core.world import Fault, Node, Why, World
from .words import count, first_line

PATIENCE_S = 2.0
"""How long a wait goes without a word."""


class StatusLines:
    """An observer of the agent that says what happens, in plain lines."""

    def __init__(self, out: TextIO, settings: LaunchSettings, quiet: bool) -> None:
        self._out = out
        self._settings = settings
        self._quiet = quiet
        self.began_at = time.monotonic()
        self._broke_at = self.began_at
        self._reaped_at = self.began_at
        self._stopped = self._failures = 0
        self._group: Group | None = None
        self._until: float | None = None

    @property
    def until(self) -> float | None:
        return self._until

    def passed(self, now: float) -> None:
        """A wait has lasted; say for what, once."""
        if self._until is None or now < self._until:
            return
        self._until = None
        if self._group and self._group.phase in (Phase.STOPPING, Phase.LEAVING) and self._group.running:
            self._say(_stopping(self._group, self._settings, now))

    def saw(self, news: News) -> None:
        match news:
            case Recorded(fault):
                self._failed(fault)
            case Started(world, _, at):
                self._started(world, at)
            case Step():
                self._moved(news)
            case Seen() | StoreSilent() | StoreBack():
                pass  # one node: nothing to wait for

    def end(self, lines: Sequence[str]) -> None:
        """The last words; they are said even if all else is kept quiet, unless all went well."""
        if not self._quiet or len(lines) > 1:
            self._write(*lines)

    def _moved(self, step: Step) -> None:
        before, after = step.before, step.after
        self._group = after
        if after.phase is not before.phase:
            self._until = step.at + PATIENCE_S if after.phase in (Phase.STOPPING, Phase.LEAVING) else None
        match step.event:
            case Exited() if before.phase is Phase.RUNNING and after.phase is Phase.STOPPING:
                self._breaks(step)
            case Over(round, why, by) if before.phase is Phase.RUNNING and after.phase is not Phase.RUNNING:
                self._breaks(step)
                self._say(f"round {round} ends: {_ended(why, by)}")
            case Exited() if any(isinstance(command, Record) for command in step.commands):
                self._stopped -= 1  # it had failed too, before it could be stopped
            case Reaped() if before.phase is Phase.STOPPING:
                self._reaped_at = step.at
            case Signalled(signum):
                self._say(_signalled(before, after, signum, self._settings))
            case Elapsed() if Signal(9) in step.commands:
                self._say(f"{count(len(before.running), 'worker')} did not stop in time: SIGKILL")

    def _breaks(self, step: Step) -> None:
        self._broke_at, self._stopped = step.at, len(step.after.running)

    def _started(self, world: World, at: float) -> None:
        if world.round == 0:
            workers = sum(member.profile.local_world_size for member in world.members)
            nodes = count(len(world.members), "node")
            self._say(f"round 0: {nodes}, {count(workers, 'worker')}, started in {at - self.began_at:.1f} s")
            return
        back = f"{count(len(world.members), 'node')} back in {at - self._reaped_at:.1f} s"
        stopped = f"{count(self._stopped, 'worker')} stopped in {self._reaped_at - self._broke_at:.1f} s"
        steps = ", ".join((stopped, back) if self._stopped else (back,))
        budget = f"restart {world.failures} of {self._settings.rendezvous.limits.max_restarts}: "
        spent, self._failures = world.failures > self._failures, world.failures
        took = f"round {world.round} started · {at - self._broke_at:.1f} s in all"
        self._say(f"{budget if spent else ''}{steps}, {took}")

    def _failed(self, fault: Fault) -> None:
        if not fault.pid:
            return
        ended = exit_sentence(fault.exit_code)
        who = f"{fault.host} rank {fault.rank} (local {fault.local_rank}, pid {fault.pid})"
        self._say(f"{who} failed: {ended} after {fault.after_s:.1f} s", *_details(fault, ended))

    def _say(self, *lines: str) -> None:
        if not self._quiet:
            self._write(*lines)

    def _write(self, first: str, *more: str) -> None:
        """In one write, so that lines of several launchers do not mix; with a clock where no terminal shows them live."""
        clock = "" if self._out.isatty() else time.strftime("%H:%M:%S ")
        text = "".join((f"{clock}elastic  {first}\n", *(f"{line}\n" for line in more)))
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):
            self._quiet = True  # nobody reads: the job goes on


def _ended(why: Why | None, by: Node | None) -> str:
    """What came from elsewhere: what this node's own workers did is told as it happens."""
    if why is Why.FAILED:
        return f"a worker failed on {by.slot}" if by else "a worker failed on another node"
    return f"{why.value if why else 'no more is known'}, no restart spent"


def _details(fault: Fault, ended: str) -> list[str]:
    details = []
    if fault.message != ended:
        details.append(f"           {first_line(fault.message)}{f'      {fault.where}' if fault.where else ''}")
    if fault.log:
        details.append(f"           last lines: {fault.log} ({fault.host})")
    return details


def _signalled(before: Group, after: Group, signum: int, settings: LaunchSettings) -> str:
    name = Signals(signum).name
    if before.phase is Phase.LEAVING or before.phase is Phase.ENDED:
        return f"{name} again: {count(len(before.running), 'worker')} killed"
    if not after.running:
        return f"{name}: leaving, no worker runs"
    workers = count(len(after.running), "worker")
    return f"{name}: passed on to {workers}, up to {settings.group.shutdown_timeout:g} s to end; again kills them"


def _stopping(group: Group, settings: LaunchSettings, now: float) -> str:
    ranks = ", ".join(str(rank) for rank in sorted(group.running))
    option = "--grace" if group.phase is Phase.STOPPING else "--shutdown-timeout"
    left = f" · SIGKILL in {max(group.kill_at - now, 0.0):.0f} s ({option})" if group.kill_at is not None else ""
    return f"waiting for {count(len(group.running), 'worker')} to stop: local rank {ranks}{left}"
