"""The workers of simulated nodes, and the check of a node. They start at once, take time to end, and tell their agent when
it is awake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import define

from ..group.state import SIGKILL, Checked, Exited, ReadyToLeave, Reaped, Unstartable
from ..inprocess.exits import CANCELS
from ..properties.facts import Failed, Moved, Started, Succeeded
from ..properties.facts import Reaped as NoneLives
from ..properties.judge import Judge
from ..values import evolve
from ..world import Notice, World
from .chance import Choose, one
from .future import Future
from .kinds import Kind
from .network import Network
from .process import TELLERS, Attempt, Hears, Process
from .raises import Raises
from .story import Setting

DEATHS_S = (0.001, 0.005, 0.02)
"""How long a worker takes to die of SIGKILL."""
STOPS_S = (0.002, 0.03, 0.2)
"""How long a worker takes to stop after SIGTERM."""
CODES = (1, 1, 1, 74, 143, 71, 80, 79, 79, CANCELS)
"""Exit codes of workers that fail, where these say what becomes of the job: such a worker starts again, stays missing, has
ended the job for all, has heard of that, or has cancelled the job."""
CHECKS_S = (0.01, 0.1, 0.5)
"""How long the check of a node takes."""
CHECK_TIMEOUT_S = 4.0
"""A check that hangs is killed after this long."""


class Wrapped(Protocol):
    """This runs in the workers, where that is simulated too (`calls/over_nodes`). It ends them, by `Workers.dies`."""

    def started(self, process: Process, world: World) -> None: ...

    def started_again(self, process: Process, rank: int) -> None: ...

    def moved(self, process: Process, world: World) -> None: ...

    def signalled(self, process: Process, signum: int) -> None: ...

    def released(self, process: Process) -> None: ...

    def has_entered(self, process: Process, rank: int) -> bool: ...

    def throws_out(self, process: Process) -> None: ...


@define
class Workers:
    setting: Setting
    choose: Choose
    future: Future
    network: Network
    judge: Judge
    seen: Callable[[str], None]
    befalls: Callable[[Process, Kind], None]
    hear: Hears
    wrapped: Wrapped | None = None
    """None: the workers do nothing but to run, and end when they are told to."""
    raises: Raises | None = None
    """None: a worker that fails exits with 1, and no peer of it fails for that."""
    checks_s: Sequence[float] = CHECKS_S
    ready_s: Callable[[Process], float | None] | None = None
    """How long after a notice the workers of a node are ready to leave; None: drawn."""

    def check(self, process: Process) -> None:
        """Begin a check of this node."""
        span = self.checks_s[0] if self.setting.seed == 0 else one(self.choose, self.checks_s)
        self.future.at(self.future.now + span, self._may_end, process, CHECK_TIMEOUT_S - span)

    def _may_end(self, process: Process, left: float) -> None:
        """The check ends now, or hangs until its time is over."""
        if process.trouble.takes(Kind.HANG_CHECK):
            self.seen("a check that hangs")
            self.future.at(self.future.now + left, self._is_checked, process, True, "the check did not end")
        elif process.trouble.takes(Kind.BREAK_CHECK):
            self.seen("a check that says nothing")
            self._is_checked(process, True, "the check ended with exit code 2")
        else:
            is_fit = not process.trouble.takes(Kind.UNFIT)
            self._is_checked(process, is_fit, "" if is_fit else "the check found the node unfit")

    def _is_checked(self, process: Process, is_fit: bool, text: str) -> None:
        if not self.network.waits(process, self._is_checked, process, is_fit, text):
            self.hear(process, Checked(is_fit, text, process.clock.shows(self.future.now)))

    def throws_out(self, process: Process) -> None:
        """Begin to throw out the ranks of the nodes that this one knows to be lost."""
        if self.wrapped:
            self.wrapped.throws_out(process)

    def start(self, process: Process, world: World) -> None:
        process.attempt = Attempt(process.attempt.number + 1)
        process.trouble.takes(Kind.HANG)
        self._are_in(process, world)
        if self.future.now - process.stalls.until(*TELLERS) > process.held.who.settings.ttl:
            self.judge.excused.pop(process.node, None)  # what it was told since it stood still is what it starts by
        self.judge.saw(Started(process.node, world))
        if process.trouble.takes(Kind.UNSTARTABLE):
            self._cannot_start(process, world)
            return
        ranks = range(process.held.who.profile.local_world_size)
        process.attempt.workers = dict.fromkeys(ranks, process.attempt.number)
        if self.wrapped:
            self.wrapped.started(process, world)

    def _are_in(self, process: Process, world: World) -> None:
        process.attempt.world = world
        process.attempt.idle = self.setting.reserves > 0 and self.setting.is_reserve(process.node, world)

    def move(self, process: Process, world: World) -> None:
        """Count what lives of them to this world, and how those ended that have."""
        self._are_in(process, world)
        self.judge.saw(Moved(process.node, world))
        if process.workers and self.wrapped:
            self.wrapped.moved(process, world)
        is_done = not process.workers and _have_succeeded(process)
        if is_done:
            self.judge.saw(Succeeded(process.node, world.id))
        if process.attempt.missed or _one_gave_up(process) or not (process.workers or is_done):
            self.judge.saw(Failed(process.node, world.id))

    def start_again(self, process: Process, rank: int) -> None:
        attempt = process.attempt
        attempt.number += 1
        process.workers[rank] = attempt.number
        attempt.missed.discard(rank)
        attempt.echoed.discard(rank)
        for reports in (attempt.reported, attempt.unheard, attempt.began):
            reports.pop(rank, None)
        alone = process.group.settings.alone
        codes = attempt.codes
        codes.remove(next(code for code in codes if code and not (alone and code in alone.final)))
        if self.wrapped:
            self.wrapped.started_again(process, rank)

    def _cannot_start(self, process: Process, world: World) -> None:
        """Let no worker start: because there is no such program; or for what the host lacks now, which is a failure."""
        now, passes = process.clock.shows(self.future.now), self.setting.seed != 0 and self.choose(2) == 1
        if passes:
            self.seen("a start fails, and may not fail again")
            self.befalls(process, Kind.FAIL)
            self.judge.saw(Failed(process.node, world.id))
        self.judge.saw(NoneLives(process.node))
        self.future.at(self.future.now, self._hears_of_no_start, process, now, passes)

    def _hears_of_no_start(self, process: Process, now: float, passes: bool) -> None:
        self.hear(process, Unstartable("no room for a process" if passes else "no such program", now, passes))
        self.hear(process, Reaped(now))

    def are_signalled(self, process: Process, signum: int, spared: frozenset[int] = frozenset()) -> None:
        if signum != SIGKILL and process.hung:
            return
        if self.wrapped:
            self.wrapped.signalled(process, signum)
            if signum != SIGKILL:
                return
        spans = DEATHS_S if signum == SIGKILL else STOPS_S
        for rank in [rank for rank in process.workers if rank not in spared]:
            span = spans[0] if self.setting.seed == 0 else spans[self.choose(len(spans))]
            self.future.at(self.future.now + span, self.dies, process, rank, -signum, process.workers[rank])

    def are_told(self, process: Process, notice: Notice) -> None:
        """Tell the workers that their node must be gone. Each saves what it has to save, and says that it is ready; but one
        in three runs on."""
        for rank in process.workers:
            if (span := self._ready_s(process, notice)) is not None:
                self.future.at(self.future.now + span, self._is_ready, process, rank, process.workers[rank])

    def _ready_s(self, process: Process, notice: Notice) -> float | None:
        """Return when a worker that is told so is ready to leave; None: never."""
        if self.ready_s is not None:
            return self.ready_s(process)
        share = 500 if self.setting.seed == 0 else self.choose(1_500)
        return notice.deadline_s * share / 1_000 if share < 1_000 else None

    def _is_ready(self, process: Process, rank: int, start: int) -> None:
        if process.workers.get(rank) != start or process.hung:
            return
        if not self.network.waits(process, self._is_ready, process, rank, start):
            self.hear(process, ReadyToLeave(rank, process.clock.shows(self.future.now)))

    def fail(self, process: Process) -> None:
        """Let one of the workers exit with 1, or fail in another way."""
        code = one(self.choose, CODES) if self.setting.codes else 1
        if self.raises:
            self.raises.fail(process, code)
            return
        rank = min(process.workers)
        self.dies(process, rank, code, process.workers[rank])

    def succeed(self, process: Process) -> None:
        """Let all living workers exit with 0, but those of a reserve, which are given no work."""
        if self.wrapped:
            self.wrapped.released(process)
            return
        for rank in () if process.attempt.idle else list(process.workers):
            self.dies(process, rank, 0, process.workers[rank])

    def dies(self, process: Process, rank: int, code: int, start: int) -> None:
        """The worker is dead; the agent hears of it when it is awake."""
        if process.workers.get(rank) != start:
            return
        attempt, world = process.attempt, process.attempt.world
        del attempt.workers[rank]
        has_raised = rank in attempt.reported and rank not in attempt.began
        attempt.codes.append(code or int(has_raised))
        if (code > 0 or has_raised) and world:  # it may have raised in an earlier world, and lived on
            self.judge.saw(Failed(process.node, world.id))
        if not attempt.workers:
            self.judge.saw(NoneLives(process.node))
            if _have_succeeded(process) and world:
                self.judge.saw(Succeeded(process.node, world.id))
        entered = self._has_entered(process, rank)
        if (code or has_raised) and entered is False:
            attempt.missed.add(rank)
        self._exits(process, rank, code, entered, process.clock.shows(self.future.now))

    def _has_entered(self, process: Process, rank: int) -> bool | None:
        """Return True if this worker has ever entered a wrapped call; None where workers do not restart alone."""
        if process.group.settings.alone is None:
            return None
        return self.wrapped.has_entered(process, rank) if self.wrapped else bool(self.setting.enters)

    def _exits(self, process: Process, rank: int, code: int, entered: bool | None, died_at: float) -> None:
        if not self.network.waits(process, self._exits, process, rank, code, entered, died_at):
            now = process.clock.shows(self.future.now)
            if report := process.attempt.unheard.pop(rank, None):
                self.hear(process, evolve(report, at=now))  # it was sent before the end, and is read before it
            is_echo = rank in process.attempt.echoed or None
            self.hear(process, Exited(rank, code, died_at, now, is_echo, process.attempt.began.get(rank), entered))


def _one_gave_up(process: Process) -> bool:
    """Return True if one of the workers has said, by its exit code, that it or another one has ended the job for all."""
    alone = process.group.settings.alone
    return alone is not None and not (alone.job_over | alone.heard).isdisjoint(process.attempt.codes)


def _have_succeeded(process: Process) -> bool:
    """Return True if this node's workers, all dead, have succeeded. Where they restart alone, one success is enough."""
    alone = process.group.settings.alone is not None
    return 0 in process.attempt.codes if alone else not any(process.attempt.codes)
