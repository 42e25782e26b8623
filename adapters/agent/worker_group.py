"""This node's workers, one round after the other: what each was started as, and how its end is noted.

The agent calls, from its own thread alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, assert_never

from ...core.group.state import Exited, Exiting, Raised
from ...core.ranks import assign
from ...core.values import evolve
from ...core.world import World
from ..clean_up import run_all
from ..launch_settings import Kind, Program
from ..report.news import Remark, Started, StartedAgain
from ..report.stack_records import Seen
from ..report.worker_ends import UNSTARTABLE, WorkerEnds
from ..store.notes import EarlyEnds
from ..workers.devices.nvml import DRIVER, VARIABLE
from ..workers.messages.entered import Entered
from ..workers.messages.error_files import leave_error_file
from ..workers.messages.progress import VARIABLE as PROGRESS
from ..workers.messages.reports import Report, What
from ..workers.output.logs import WorkerLogs, written
from ..workers.start.attempts import Attempt, again, attempts
from ..workers.start.environment import command, lasting_environment, substituted
from ..workers.start.programs import check_descriptors, check_module, check_script
from ..workers.worker_port import CannotStart, Exit, Shortage, Workers, WorkerSpec
from .inbox import EndRead
from .parts import Shared
from .watchdogs import Watchdogs, WatchedWorker
from .work_records import WorkRecords

if TYPE_CHECKING:
    from ..workers.start.spawner import Spawner
    from ..workers.watch.stacks import Sighting
    from .hang_watch import Followers, HangWatch

_PAUSES_S = (0.1, 0.2, 0.5, 1.0)
"""The pauses between tries to start workers on a host that lacks something for a moment."""
_LEFT_PAUSE_S = 0.1
DESCRIPTORS = 2
"""The agent keeps at least this number of descriptors for each worker that runs: its pidfd, and its reports."""
_OUTPUT_TIMEOUT_S = 0.1
"""The next start of a worker waits this long for the output of the one before: both write to one log."""


class WorkerGroup:
    """The workers that run, or ran last."""

    def __init__(
        self,
        shared: Shared,
        workers: Workers,
        logs: WorkerLogs,
        watchdogs: Watchdogs,
        ends: WorkerEnds,
        hangs: HangWatch | None,
        work: WorkRecords,
        tell_early_ends: Callable[[EarlyEnds], None],
    ) -> None:
        """`logs` and `watchdogs` are the caller's to open and to close. `ends` notes each end, `work` what each came to."""
        self._settings = shared.settings
        self._node = shared.node
        self._host = shared.host
        self._clock = shared.clock
        self._inbox = shared.inbox
        self._observer = shared.observer
        self._disk = shared.disk
        self._handler = shared.handler
        self._workers = workers
        self._logs = logs
        self._watchdogs = watchdogs
        self._ends = ends
        self._hangs, self._work = hangs, work
        self._tell_early_ends = tell_early_ends
        self.restarts = 0
        """How many workers were started again alone."""
        self._entered = Entered(self._settings.relay) if self._settings.group.alone else None
        self._attempts: Mapping[int, Attempt] = {}
        self._pids: dict[int, int] = {}
        """The process ids of the workers that were started last, by local rank."""
        self._uncollected: dict[int, int] = {}
        """Those of them whose ends are not known yet."""
        self._ended_when: dict[int, str] = {}
        """The time of day at which those of them ended that ended with 0."""
        self._raised = set[int]()
        """The process ids of those of them that reported an uncaught exception."""
        self.world: World | None = None
        """The world of these workers."""

    def start(self, world: World) -> Started:
        """Start the workers of this world. Raises CannotStart, Shortage or OSError."""
        ranks = assign(world)[self._node]
        self._ends.begin(world.round, ranks)
        dead, self._pids = set(self._pids.values()), {}
        self._wait_for_gpus(dead)
        further = self._watchdogs.environment
        self._attempts = attempts(self._settings, self._node, self._host, world, ranks, self._logs, further)
        program = self._settings.program
        if isinstance(program, Program):
            self._check_script(program, self._attempts)
        if self._entered:
            self._entered.begin(self._attempts.keys())
        self._work.begin(self._attempts)
        pids = self._started([attempt.spec for attempt in self._attempts.values()])
        self._pids = dict(zip(self._attempts, pids, strict=True))
        self._uncollected, self._raised, self._ended_when = dict(self._pids), set(), {}
        self.world = world
        self._follow()
        return Started(world, tuple(pids), self._clock.now(), self._attempts)

    def look(self, spawner: Spawner) -> None:
        """Raise CannotStart or OSError if the workers could not be started now, as far as that shows before the node joins:
        the program is not there, or the descriptors are too few. Who calls a function has been started already."""
        settings, program = self._settings, self._settings.program
        if not isinstance(program, Program):
            return
        path, size = lasting_environment(settings, self._node.slot), settings.local_world_size
        self._check_script(program, range(size))
        if program.kind is Kind.MODULE and program.python == sys.executable:
            for name in dict.fromkeys(substituted(program.name, local_rank) for local_rank in range(size)):
                check_module(name, path)
        spawner.check([WorkerSpec(rank, command(program, rank), path) for rank in range(size)])
        check_descriptors(size * DESCRIPTORS)

    def _check_script(self, program: Program, local_ranks: Iterable[int]) -> None:
        """Raise CannotStart if a worker's script is not there. Where another Python looks, in a container perhaps, only that
        Python can tell."""
        if program.kind in (Kind.SCRIPT, Kind.PATH) and program.python == sys.executable:
            for name in dict.fromkeys(substituted(program.name, local_rank) for local_rank in local_ranks):
                check_script(name)

    def move(self, world: World) -> None:
        """Count the workers that run, and the ends of the others, to this world from now on."""
        ranks = assign(world)[self._node]
        self._attempts = {
            local_rank: evolve(attempt, round=world.round, ranks=ranks)
            for local_rank, attempt in self._attempts.items()
        }
        self._ends.move(self._attempts)
        self._work.move()
        self.world = world
        if self._hangs and self._uncollected:
            self._hangs.follow(self._followers(world))
        self._tell_early_ends(self.early_ends)

    def start_again(self, local_rank: int) -> None:
        """Start a worker that has ended once more, in the same round. If it cannot be started, it has ended again: its error
        file says why."""
        self.restarts += 1
        self._workers.drain(_OUTPUT_TIMEOUT_S)
        attempt = again(
            self._attempts[local_rank], self.restarts, written(self._disk, self._attempts[local_rank].log) or 0
        )
        self._attempts = {**self._attempts, local_rank: attempt}
        self._ends.drop(local_rank)
        try:
            self._wait_for_gpus({self._pids[local_rank]})
            self._work.begin({local_rank: attempt})
            (pid,) = self._started([attempt.spec])
            self._pids[local_rank] = self._uncollected[local_rank] = pid
            self._follow()
        except (CannotStart, Shortage, OSError) as error:
            self._disk.later(partial(leave_error_file, attempt.error_file, str(error)))
            now = self._clock.now()
            if event := self._ended(Exit(local_rank, 0, UNSTARTABLE, now, now)):
                self._inbox.post(event)
        else:
            self._observer.saw(StartedAgain(local_rank, pid, self._clock.now(), attempt))

    @property
    def early_ends(self) -> EarlyEnds:
        """The workers that have ended with 0, in this world."""
        ended = sorted((_rank(self._attempts[local], local), when) for local, when in self._ended_when.items())
        return EarlyEnds(self.world.round if self.world else 0, tuple(ended))

    @property
    def pids(self) -> Collection[int]:
        """The process ids of the workers that were started last, reaped or not."""
        return self._pids.values()

    def local_ranks(self, ranks: Iterable[int]) -> Sequence[int]:
        """Return the local ranks of those of these ranks that workers of this node were started with."""
        known = {worker.rank: worker.local_rank for worker in self._ends.ranks.workers}
        return [known[rank] for rank in ranks if rank in known]

    def see(self) -> tuple[Seen, ...]:
        """Look at the workers that live: what each of them is doing. They are to be ended next. A worker that raised is left
        alone: it writes its traceback. A host that lacks what this takes shows nothing."""
        pids = {rank: pid for rank, pid in self._uncollected.items() if pid not in self._raised}
        return self._seen(pids, self._attempts, ends=True)

    def get_ready(self, sees: bool) -> None:
        """Load what the end of the workers takes, and a look at them if that comes first. While they run there is time for
        it, and at a restart there is not. What a host without a descriptor cannot load now is loaded at the end."""
        with suppress(ImportError, OSError):
            self._work.get_ready()
            if sees:
                from ..workers.watch import stacks  # noqa: F401

    def get_ahead(self) -> bool:
        """Return True, once in a round, if a worker has done more steps than had been done before."""
        return self._work.get_ahead()

    def followers(self) -> Followers | None:
        """Return the workers that run, and a look at them; None if no world has begun."""
        return self._followers(self.world) if self.world else None

    def sight(self, round: int) -> Callable[[], tuple[Seen, ...]]:
        """Return a look at the workers of this round that live, for another thread. None of them is changed by it."""
        pids = dict(self._uncollected) if self.world and self.world.round == round else {}
        return partial(self._seen, pids, self._attempts, ends=False)

    def _seen(self, pids: Mapping[int, int], attempts: Mapping[int, Attempt], ends: bool) -> tuple[Seen, ...]:
        """Look at these workers, by local rank. A worker that was collected meanwhile is left out: its process id may be
        another's."""
        try:
            from ..workers.watch.stacks import see

            sightings = see(pids, self._handler, ends=ends)
        except (ImportError, OSError):
            return ()
        uncollected = self._uncollected
        live = {rank: sighting for rank, sighting in sightings.items() if uncollected.get(rank) == sighting.pid}
        return tuple(_seen(attempts[rank], rank, sighting) for rank, sighting in live.items())

    def reported(self, local_rank: int, pid: int, report: Report) -> Raised | Exiting | None:
        """Take what a worker reported; None if it was collected meanwhile."""
        if self._uncollected.get(local_rank) != pid:
            return None
        now = self._clock.now()
        match report.what:
            case What.ENDING:
                return Exiting(local_rank, report.at, now)
            case What.RAISE:
                is_echo = self._ends.add_raise(self._attempts[local_rank], local_rank, pid, report)
                self._raised.add(pid)
                return Raised(local_rank, report.at, now, is_echo or None)
            case other:
                assert_never(other)

    def signal(self, signum: int, spared: Collection[int] | None = None) -> None:
        """Send a signal to the workers, but for those with these local ranks."""
        if self._hangs:
            self._hangs.follow(None)
        self._ends.signalled(signum, self._uncollected.keys() - set(spared or ()))
        self._workers.signal(signum, spared or ())

    def signal_children(self, signum: int) -> None:
        """Send a signal to the processes that the workers started, for which SIGKILL comes soon."""
        self._workers.signal_children(signum)

    def await_left(self, take: Callable[[float], bool], until: float) -> bool:
        """Wait until nothing lives that workers which succeeded have left, or until this point in time, or a signal; return
        True if nothing does. `take` takes the agent's next event, and returns True for a signal."""
        while self._workers.left() and (now := self._clock.now()) < until:
            if take(min(until, now + _LEFT_PAUSE_S)):
                break
        return not self._workers.left()

    def left(self) -> Sequence[int]:
        """Return the living processes that workers which succeeded have left."""
        return self._workers.left()

    def end_left(self) -> None:
        """Tell those to end."""
        self._workers.end_left()

    def collect(self, local_rank: int, pid: int) -> Exited | None:
        """Collect a worker that died; None if it was given up before, or if what it left behind is read first (EndRead)."""
        ended = self._workers.collect(local_rank, pid)
        return self._ended(ended) if ended else None

    def give_up(self, local_rank: int, pid: int, text: str) -> Exited | None:
        """Give up a worker that hangs in the kernel, and say so in its error file; None if it was collected before."""
        ended = self._workers.give_up(local_rank, pid)
        if ended is None:
            return None
        self._disk.later(partial(leave_error_file, self._attempts[local_rank].error_file, text))
        self._observer.saw(Remark(f"local rank {local_rank} is given up: {text}"))
        return self._ended(ended)

    def known_end(self, ended: Exit) -> Exited:
        """Return the event of a worker's end, once what is read of it has been read."""
        rank, now = ended.local_rank, self._clock.now()
        if not ended.code:
            self._tell_early_ends(self.early_ends)
        is_echo, entered = self._ends.is_echo(rank) or None, self._entered.has(rank) if self._entered else None
        return Exited(rank, ended.code, ended.died_at, now, is_echo, ended.ending_at, entered)

    def drain(self, timeout_s: float) -> None:
        self._workers.drain(timeout_s)

    def close(self) -> None:
        run_all(self._workers.close, *([self._entered.close] if self._entered else []))

    def _started(self, specs: Sequence[WorkerSpec]) -> Sequence[int]:
        """Start these; what the host lacks for a moment is tried again, unless the agent was told to stop."""
        for pause_s in _PAUSES_S:
            try:
                return self._workers.start(specs)
            except Shortage:
                if self._inbox.has_had_a_signal():
                    raise
                time.sleep(pause_s)
        return self._workers.start(specs)

    def _ended(self, ended: Exit) -> Exited | None:
        self._uncollected.pop(ended.local_rank, None)
        self._work.ended(ended)
        if not ended.code:
            self._ended_when[ended.local_rank] = self._clock.wall_text()
        self._ends.add(self._attempts[ended.local_rank], ended)
        is_read_first = self._ends.read(ended.local_rank, lambda: self._inbox.post(EndRead(ended)))
        return None if is_read_first else self.known_end(ended)

    def _follow(self) -> None:
        followed = {pid: WatchedWorker(rank, self._attempts[rank].error_file) for rank, pid in self._pids.items()}
        self._watchdogs.follow(followed)
        if self._hangs and self.world:
            self._hangs.follow(self._followers(self.world))

    def _followers(self, world: World) -> Followers:
        from .hang_watch import Followed, Followers

        found = {}
        for rank, pid in self._pids.items():
            attempt = self._attempts[rank]
            spec, error_file = attempt.spec, attempt.error_file
            outputs = tuple(sink.file for sink in (spec.stdout, spec.stderr) if sink.file)
            found[_rank(attempt, rank)] = Followed(pid, spec.environment.get(PROGRESS), outputs, error_file)
        return Followers(world, found, self.sight(world.round))

    def _wait_for_gpus(self, dead: set[int]) -> None:
        if dead and DRIVER.exists():
            from ..workers.devices.gpu_memory import wait_until_given_back

            visible = self._settings.environment.get(VARIABLE)
            wait_until_given_back(dead, visible, self._inbox.has_had_a_signal)


def _rank(attempt: Attempt, local_rank: int) -> int:
    return next(each.rank for each in attempt.ranks.workers if each.local_rank == local_rank)


def _seen(attempt: Attempt, local_rank: int, sighting: Sighting) -> Seen:
    return Seen(_rank(attempt, local_rank), local_rank, sighting, attempt.stacks_file)
