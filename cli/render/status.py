"""Status lines on stderr: an observer of the agent that prints what happens, when it happens.

It is quiet when all is well: one line that names the job, one when the workers start, one at the end. A wait of more than
two seconds is shown with its reason: a live last line on a terminal, plain lines in a log. `sentences` has the texts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...adapters.launch_settings import LaunchSettings
from ...adapters.report.news import (
    News,
    Recorded,
    Remark,
    Restored,
    Seen,
    StandbysReady,
    Started,
    StartedAgain,
    Step,
    StoodStill,
    StoreBack,
    StoreSilent,
    SuspectedHang,
    TimeTold,
    TraceLost,
    WatchdogTold,
)
from ...adapters.terminal import printed
from ...core.group import Group, Phase
from ...core.group.state import (
    SIGKILL,
    Checked,
    Elapsed,
    End,
    Exited,
    Noticed,
    Over,
    Raised,
    Ready,
    ReadyToLeave,
    Reaped,
    Record,
    Signal,
    Signalled,
    StartAgain,
    Tell,
    Unstartable,
)
from ...core.rendezvous import RendezvousState
from ...core.world import Fault, Why, World
from . import sentences
from .early_losses import EarlyLosses
from .last_line import DUMB, LastLine, LiveLastLine, Out, PlainLastLine, Wait
from .text import at, coloured, count

PATIENCE_S = 2.0
"""How long a wait lasts before it is shown."""

ENDED_S, ENDED_AGAIN = 60.0, 4.0
"""That a worker has ended and others run on is said after this span, then each time it is five times as long ago."""


class StatusLines:
    """What one agent does, printed for people. `mode` is auto, live, plain or off."""

    def __init__(self, out: Out, settings: LaunchSettings, mode: str = "auto") -> None:
        self._out = out
        self._settings = settings
        self._quiet = mode == "off"
        dumb = settings.environment.get("TERM") in DUMB
        live = not dumb and (mode == "live" or (mode == "auto" and out.isatty()))
        self._coloured = not dumb and out.isatty() and not settings.environment.get("NO_COLOR")
        self._last_line: LastLine = LiveLastLine(out) if live else PlainLastLine(self._write)
        self.serves_store = False
        self._first: list[str] = []
        self.began_at = time.monotonic()
        self._since = self._broke_at = self._reaped_at = self.began_at
        self._stopped = self._failures = 0
        self._group: Group | None = None
        self._world: World | None = None
        self._contents = ""
        self._state: RendezvousState | None = None
        self._silent: StoreSilent | None = None
        self._stood_still: StoodStill | None = None
        self._until: float | None = self.began_at + PATIENCE_S
        self._ran_at = self.began_at
        self._early_losses = EarlyLosses(settings.rendezvous.ttl)
        self._ended_at: dict[int, float] = {}
        """The workers that ended with 0 while others of this node run on, by local rank."""
        self._ended_due: float | None = None
        """When that is said next."""
        self._untold: list[list[str]] = []
        """The lines of this world's failures, if they are not printed as they come."""

    @property
    def until(self) -> float | None:
        """Return when `passed` is to be called; None for not at all."""
        return (
            None if self._quiet else min((at for at in (self._until, self._ended_due) if at is not None), default=None)
        )

    def saw(self, news: News) -> None:
        """Print what the news says to people."""
        if not isinstance(news, WatchdogTold):  # a mistake may still show after that
            self._begin()
        match news:
            case Recorded(fault):
                self._failed(fault)
            case Started(world, _, at):
                self._started(world, at)
            case Step():
                self._moved(news)
            case StartedAgain() | TimeTold() | WatchdogTold():
                pass  # its step is printed; the failure that a timer makes is
            case StoodStill():
                self._stood_still = news
            case Seen(state):
                self._say(*sentences.taken_for_dead(self._group, self._state, news, self._stood_still))
                self._say(*sentences.cause_found(self._state, state), *sentences.aside(self._state, state, time.time()))
                self._state = state
            case Restored():
                self._say(*sentences.store_lost(news, self._settings))
            case StoreSilent(at=at):
                self._silent, self._until = news, at + PATIENCE_S
            case StoreBack(at):
                self._store_back(at)
            case SuspectedHang():
                ended = sentences.ended_early(self._ended_at, self._group, time.monotonic()) if self._group else ""
                self._say(" · ".join([f"suspected hang: {sentences.hang(news, self._state)}", *filter(None, [ended])]))
            case TraceLost(text):
                self._say(f"the trace ends here, the job goes on: {text}")
            case Remark(text):
                self._say(text)
            case StandbysReady(standbys, seconds):
                self._say(f"{count(standbys, 'standby')} ready, imports took {seconds:.1f} s")

    def begins(self, store: str, how_to_ask: str) -> None:
        """Keep the first line: the job's name, where it is kept, and the command that shows it. It is printed once the agent
        takes part: a mistake that shows before is one line alone."""
        self._first = [f"job {self._settings.run_id} {at(store)}{how_to_ask and ' · '}{how_to_ask}"]

    def _begin(self) -> None:
        first, self._first = self._first, []
        self._say(*first)

    def warn(self, text: str) -> None:
        """Print a warning that came from any thread."""
        self._say(f"warning: {text}")

    def serves_on(self, others: int, until: float) -> None:
        """Print that this agent is needed for its store after its node was drained, stays out, or waits no longer."""
        left = (
            "until they are gone" if math.isinf(until) else f"at most {max(until - time.monotonic(), 0.0):.0f} s more"
        )
        self._say(f"this node has left · its agent serves the store for {count(others, 'node')}, {left}")

    def passed(self, now: float) -> None:
        """Show a wait that has lasted. Called at the time that `until` gave."""
        if self._ended_due is not None and now >= self._ended_due and self._group:
            self._say(*filter(None, [sentences.ended_early(self._ended_at, self._group, now)]))
            self._ended_due = now + ENDED_AGAIN * (now - max(self._ended_at.values()))
        self._begin()
        if self._quiet or self._until is None or now < self._until:
            return
        wait = self._wait(now)
        self._until = now + self._last_line.every_s if wait else None
        if wait:
            with self._until_reader_is_gone():
                self._last_line.show(wait, now)

    def end(self, lines: Sequence[str], well: bool, tells_failures: bool = True) -> None:
        """Print the last lines. With --status=off, those of a success are left out. The failures of the last world are then
        printed here, unless these lines or the caller tell them."""
        if not (well or tells_failures):
            for each in self._untold:
                self._write(*each)
        if lines and not (self._quiet and well):
            self._write(*lines)

    # --- waits

    def _wait(self, now: float) -> Wait | None:
        """Return the wait of this moment, if there is one."""
        group, state, settings = self._group, self._state, self._settings
        waited = now - self._since, settings.rendezvous.join_timeout
        if state is None and self.serves_store and group and group.phase is Phase.JOINING:
            text, *advice = sentences.store_starts(self._silent, settings, *waited)
            return Wait(group.phase, None, text, tuple(advice))
        if self._silent is not None:
            text, *advice = sentences.store_silent(self._silent, now, settings, bool(group and group.running))
            return Wait(self._silent, None, text, tuple(advice))
        if group is None:
            return None
        match group.phase:
            case Phase.CHECKING:
                return Wait(group.phase, None, sentences.checking(now - self._since, settings))
            case Phase.JOINING | Phase.MOVING:
                text = sentences.joining(state, group.node, settings.store, *waited)
                advice = sentences.advice(state, settings.rendezvous.last_call_timeout)
                return Wait(group.phase, sentences.statuses(state), text, tuple(advice))
            case Phase.STOPPING | Phase.LEAVING if group.running:
                return Wait(group.phase, None, sentences.stopping(group, now))
            case Phase.BARRIER:
                return Wait(group.phase, None, sentences.at_the_barrier(group, state))
            case _:
                return None

    def _store_back(self, at: float) -> None:
        silent, self._silent = self._silent, None
        if silent and at - silent.at >= PATIENCE_S:
            self._say(f"store {self._settings.store} answers again after {at - silent.at:.1f} s")

    # --- steps

    def _notes_early_end(self, step: Step) -> None:
        """Remember that a worker ended with 0 while others run on, until the workers are stopped or all have ended."""
        if step.after.phase not in (Phase.RUNNING, Phase.MOVING):
            self._ended_at, self._ended_due = {}, None
        elif isinstance(step.event, Exited) and step.event.code == 0:
            self._ended_at[step.event.local_rank] = step.event.died_at
            self._ended_due = step.event.died_at + ENDED_S

    def _moved(self, step: Step) -> None:
        before, after = step.before, step.after
        self._group = after
        self._notes_early_end(step)
        if after.phase is not before.phase:
            with self._until_reader_is_gone():
                self._last_line.clear()
            self._since = step.at
            self._until = step.at + PATIENCE_S
        match step.event:
            case Unstartable(text, passes=False):
                self._say(f"this node cannot start workers: {text}")
            case Unstartable(text):
                self._say(f"{text}, for now; this node tries again in the next round")
            case Exited() | Raised() if before.phase is Phase.RUNNING and after.phase is Phase.STOPPING:
                self._breaks(step)
            case Over(round, why, by) if (
                before.phase in (Phase.RUNNING, Phase.BARRIER) and after.phase is not before.phase
            ):
                self._breaks(step)
                self._say(sentences.round_ended(round, why, by, self._world, self._state))
                if why is Why.LOST:
                    ran_s = step.at - self._ran_at
                    self._say(*self._early_losses.note(sentences.gone_from(self._world, self._state), ran_s))
            case Exited(local_rank) if before.phase is Phase.RUNNING and Record in map(type, step.commands):
                again = any(isinstance(command, StartAgain) for command in step.commands)
                self._say(sentences.failed_alone(local_rank, again, after))
            case Exited() if any(isinstance(command, Record) for command in step.commands):
                self._stopped -= 1  # it failed too, before it could be stopped
            case Checked(True, text) if text:
                self._say(f"warning: {text}; this node joins")
            case Checked(False, text):
                self._say(f"this node stays out: {text}")
            case Ready(world) if before.phase is Phase.MOVING and after.phase in (Phase.RUNNING, Phase.BARRIER):
                self._say(
                    sentences.formed_anew(world, self._world, self._state, step.at - self._broke_at, lives_on=True)
                )
                self._world, self._ran_at = world, step.at
            case Reaped() if before.phase is Phase.STOPPING:
                self._reaped_at = step.at
            case Noticed(notice) if after.is_drained is before.is_drained and Tell in map(type, step.commands):
                self._say(sentences.given_notice(after, notice, self.serves_store))
            case Noticed() | ReadyToLeave() | Elapsed() | Reaped() if (
                after.deadline and not before.is_drained and after.is_drained
            ):
                self._say(sentences.goes(after, after.deadline.notice))
            case Signalled(signum):
                self._say(sentences.signalled(before, after, signum, self._settings, self.serves_store))
            case Elapsed() if before.phase in (Phase.RUNNING, Phase.MOVING) and after.phase is Phase.STOPPING:
                self._breaks(step)
                killed = Signal(SIGKILL) in step.commands
                self._say(sentences.fenced(before, self._settings) if killed else sentences.unheard())
            case Elapsed() if End(Why.FAILED, is_open=True) in step.commands:
                self._say(sentences.CAUSE_OPEN)
            case Elapsed() if before.phase is Phase.BARRIER and End(Why.FAILED) in step.commands:
                self._breaks(step)
                self._say(sentences.unheard())
            case Elapsed(at) if any(isinstance(each, Signal) and each.signum == SIGKILL for each in step.commands):
                for text in sentences.killed(before, at):
                    self._say(text)

    def _failed(self, fault: Fault) -> None:
        """Print a failure at once: its report may be far, and tells in full the first cause alone."""
        lines = sentences.failed(fault, self._state) if fault.pid else []
        self._say(*lines)
        if self._quiet and lines:
            self._untold.append(lines)

    def _breaks(self, step: Step) -> None:
        self._broke_at = self._reaped_at = step.at
        self._early_losses.note((), step.at - self._ran_at)
        self._stopped = len(step.after.running)

    def _started(self, world: World, at: float) -> None:
        self._untold.clear()
        self._ran_at = at
        spent, self._failures = world.failures > self._failures, world.failures
        stopped_s, back_s = self._reaped_at - self._broke_at, at - self._reaped_at
        if self._world is None:
            self._say(sentences.round_began(world, at - self.began_at))
        elif spent:
            restarts = self._settings.rendezvous.limits.max_restarts
            self._say(sentences.restarted(world, restarts, self._stopped, stopped_s, back_s))
        else:
            self._say(sentences.formed_anew(world, self._world, self._state, stopped_s + back_s))
        self._world = world
        if (warning := sentences.other_contents(world, self._state)) and warning != self._contents:
            self._say(warning)
        self._contents = warning

    # --- out

    def _say(self, *lines: str) -> None:
        if lines and not self._quiet:
            self._write(*lines)

    def _write(self, first: str, *more: str) -> None:
        """Print lines; with the time of day where no terminal shows them as they come."""
        clock = "" if self._out.isatty() else time.strftime("%H:%M:%S ")
        text = printed(f"{clock}elastic  {first}", *more)
        self._put(coloured(text) if self._coloured else text)

    def _put(self, text: str) -> None:
        """Print in one write, so that lines of several launchers do not mix."""
        with self._until_reader_is_gone():
            self._last_line.make_room()
            self._out.write(text)
            self._out.flush()

    @contextmanager
    def _until_reader_is_gone(self) -> Iterator[None]:
        """Print nothing more once the reader is gone; the job goes on."""
        try:
            yield
        except (OSError, ValueError):
            self._quiet = True
