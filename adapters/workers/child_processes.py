"""Workers as child processes: each leads its own session, its life is tied to the agent's, the kernel tells of its death.

    agent's thread      start: setpriv --pdeathsig KILL -- program …      without preexec_fn, hence safe beside threads
    watcher's thread    the worker has reported something: on_report      it may take long to end
    watcher's thread    the worker's pidfd is readable: on_exit           the dead worker keeps its process id for now
    agent's thread      collect: reap it, kill its group, wait for the end of its group

A Python program alone hears a signal: what it started, such as loaders, may be needed for its last checkpoint. When it has
ended, the rest of its group gets SIGTERM and CHILDREN_S. Another program may be a shell: its whole group hears the signal,
and its end is the end of its group.

Two things end a worker whose agent was killed. The parent-death signal follows the *thread* that forked, so the agent's
own thread calls `start`. The reaper also reaches the worker's children. The agent waits for what it kills, so that no
process of an old generation meets the new one. Only one in uninterruptible sleep is left behind, after a bounded wait.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from ...core.values import define
from .. import pidfds, threads
from ..clean_up import run_all
from ..disk import Disk, Patience
from ..process_stat import stat
from ..terminal import why
from . import cgroups
from .cgroups import Kills
from .messages.reports import Report, What, channel, read
from .output.pump import LogPump, Stream
from .start.spawner import Death, Executing, Process, Promoted, Spawner, WorkerStart, bound_to
from .watch import process_groups as groups
from .watch.reaper_process import ReaperProcess
from .watch.unkillable import held_in_exit, stuck
from .watch.watcher import Watcher
from .worker_port import NOWHERE, CannotStart, Duplicate, Exit, Kept, Shortage, Sink, WorkerSpec, passes

CHILDREN_S = 0.1
"""The processes that a stopped worker leaves in its group have this time to end by SIGTERM."""
_LEFT_MAX = 64
_APPENDS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
NAMED_AFTER_S = 2.0
"""Processes that outlive their worker for this long after its signal are named."""
TRACED_S = 0.5
"""A dead worker whom a debugger traces is left for this long to the debugger's own wait."""
KILLED_MAX_S = 60.0
"""A worker that was killed is given up if it is not dead after this long: a driver may hold one for some time."""
_KILLED_LOOK_S = 1.0
GIVE_UP_TIMEOUT_S = 1.0
"""A worker that was found stuck in the kernel may take this long to die after all."""


@define(eq=False)
class _Worker:
    process: Process
    streams: tuple[Stream, ...]
    started_at: float
    channel: socket.socket | None = None
    report: Report | None = None
    died_at: float | None = None
    pidfd: int = -1
    is_group: bool = False
    killed: str = ""
    """This names the processes that it had started, and that were killed when it had failed."""
    signum: int | None = None
    """The last signal that it was sent."""

    @property
    def is_stopped(self) -> bool:
        """True once it was sent a signal."""
        return self.signum is not None

    @property
    def ending_at(self) -> float | None:
        """When it reported that its interpreter begins to end."""
        return self.report.at if self.report and self.report.what is What.ENDING else None


@define(eq=False)
class _Left:
    """The processes that a worker which ended with 0 has left. Their group keeps its number while one of these lives."""

    pidfds: list[int]
    streams: tuple[Stream, ...]

    @property
    def lives(self) -> bool:
        return any(not groups.died_within(pidfd, 0.0) for pidfd in self.pidfds)


class SubprocessWorkers:
    """The port on processes of this machine. `on_exit(local_rank, pid)` is called from the watcher's thread, and before it
    `on_report(local_rank, pid, report)`, if the worker reported something; None: the workers report nothing.

    `console` are the descriptors that a tee'd worker's stdout and stderr are passed on to; `close_timeout_s` bounds the
    wait for workers that were killed by `close`; `spawner` makes the workers, and is closed with them; `failed` is called
    with an error that ends a thread of it; `remark` hears, from any thread, what people should know.
    `linger_s`: what a worker that ends with 0 leaves in its group may run on this long once the job is over. `disk` opens
    the files of its output. `close` has this `patience` with files and consoles. `on_stuck(local_rank, pid, text)` is called
    from the watcher's thread for a worker that was killed and does not die: it is to be given up.
    """

    def __init__(
        self,
        on_exit: Callable[[int, int], None],
        disk: Disk,
        clock: Callable[[], float] = time.monotonic,
        console: tuple[int, int] = (1, 2),
        reaper: ReaperProcess | None = None,
        close_timeout_s: float = groups.WAIT_TIMEOUT_S,
        spawner: Spawner | None = None,
        watcher: Watcher | None = None,
        failed: Callable[[BaseException], object] = threads.shown,
        on_report: Callable[[int, int, Report], None] | None = None,
        remark: Callable[[str], object] = lambda text: None,
        linger_s: float = 0.0,
        patience: Patience | None = None,
        on_stuck: Callable[[int, int, str], None] | None = None,
    ) -> None:
        self._on_stuck = on_stuck
        self._on_exit = on_exit
        self._on_report = on_report
        self._remark = remark
        self._linger_s = linger_s
        self._left: dict[int, _Left] = {}
        self._clock = clock
        self._console = console
        self._close_timeout_s = close_timeout_s
        self._running: dict[int, _Worker] = {}
        self._members: dict[int, int] = {}
        """The number of a group whose worker is dead -> a pidfd of a member that is waited for."""
        self._left_behind: list[Process] = []
        self._closed = False
        self._guarded = False
        self._watcher = watcher or Watcher(clock, failed)
        self._reaper = reaper or ReaperProcess()
        self._spawner = spawner or Executing()
        self._counter = cgroups.counter()
        self._killed: int | None = None
        """The count of kills when the generation began, and those since then that explain a worker that started again."""
        self._explained = 0
        """How many workers' ends such kills have explained since the last start."""
        self._disk = disk
        self._patience = patience or Patience()
        self._pump = LogPump(disk, failed)

    def prepare(self) -> None:
        """Start what watches and guards processes, ahead of the first worker. Raises OSError. Idempotent."""
        self._watcher.start()
        if not self._guarded:
            self._keep_reaper()

    def start(self, specs: Sequence[WorkerSpec]) -> Sequence[int]:
        taken = {spec.local_rank for spec in specs} & self._running.keys()
        if self._closed or taken:
            state = "closed" if self._closed else f"not collected yet: {sorted(taken)}"
            raise RuntimeError(f"start: {state}")
        self._left_behind = [process for process in self._left_behind if process.reap(0.0) is None]
        if self._left_behind:
            raise Shortage("; ".join(_still_there(process.pid) for process in self._left_behind))
        try:
            self._spawner.check(specs)
            return self._start(specs)
        except BaseException as error:
            for local_rank in [spec.local_rank for spec in specs if spec.local_rank in self._running]:
                worker = self._running.pop(local_rank)
                self._reap(worker)
                self._release(worker)
            if isinstance(error, (OSError, ValueError, MemoryError)):
                kind = Shortage if passes(error) else CannotStart
                raise kind(f"cannot start the workers: {reason(error)}") from error
            raise

    def signal(self, signum: int, spared: Collection[int] = ()) -> None:
        self._kill_left()
        for rank, worker in [each for each in self._running.items() if each[0] not in spared]:
            pid, worker.signum = worker.process.pid, signum  # before the look at its death: see `_died`
            if signum == signal.SIGKILL and (tracer := groups.tracer(pid)):
                self._remark(f"local rank {rank} (pid {pid}) is traced by {groups.named([tracer])}, which may hold it")
            if signum == signal.SIGKILL and worker.died_at is not None and worker.is_group:
                groups.send(pid, signal.SIGKILL)  # its end is that of its group
            elif signum == signal.SIGKILL:
                groups.kill(pid)  # `collect` ends its group
                self._watcher.later(TRACED_S, partial(self._look_if_dead, rank, worker, self._clock()))
            else:
                (groups.tell if worker.is_group else groups.tell_alone)(pid, signum)

    def signal_children(self, signum: int) -> None:
        for worker in [worker for worker in self._running.values() if not worker.is_group]:
            groups.send_children(worker.process.pid, signum)

    def collect(self, local_rank: int, pid: int) -> Exit | None:
        worker = self._taken(local_rank, pid)
        if worker is None:
            return None
        death = self._reap(worker, partial(self._leaves, local_rank, worker))
        if death.code:
            self._kill_left()
        return self._collected(local_rank, worker, death)

    def left(self) -> Sequence[int]:
        return [pid for group, each in self._left.items() if each.lives for pid in groups.left(group)]

    def end_left(self) -> None:
        for group in [group for group, each in self._left.items() if each.lives]:
            groups.tell(group, signal.SIGTERM)

    def give_up(self, local_rank: int, pid: int) -> Exit | None:
        worker = self._taken(local_rank, pid)
        if worker is None:
            return None
        groups.kill(pid)
        if groups.died_within(worker.pidfd, GIVE_UP_TIMEOUT_S):
            return self._collected(local_rank, worker, self._reap(worker))
        groups.send(pid, signal.SIGKILL)
        self._left_behind.append(worker.process)
        return self._collected(local_rank, worker, Death(-signal.SIGKILL))

    def _leaves(self, local_rank: int, worker: _Worker) -> bool:
        """Let what a worker that has succeeded left in its group run on, with the pipes that it writes to. Return False if
        there is nothing, or if it may not."""
        if worker.is_stopped or not self._linger_s:
            return False
        group = worker.process.pid
        groups.wait(group, CHILDREN_S)  # its helpers end by themselves when it is dead
        pids = groups.left(group)[:_LEFT_MAX]
        pidfds = [pidfd for pid in pids if (pidfd := groups.opened(pid, group)) is not None]
        if not pidfds:
            return False
        self._left[group] = _Left(pidfds, worker.streams)
        worker.streams = ()
        span = f"up to {self._linger_s:g} s once the job has succeeded"
        self._remark(f"local rank {local_rank} left {groups.counted(pids)}, {span}: {groups.named(pids)}")
        return True

    def _kill_left(self) -> None:
        while self._left:
            group, each = self._left.popitem()
            if each.lives:
                if pids := groups.left(group):
                    self._remark(f"killed what workers had left: {groups.named(pids)}")
                groups.end(group)
            for pidfd in each.pidfds:
                os.close(pidfd)
            for stream in each.streams:
                self._pump.finish(stream)

    def _taken(self, local_rank: int, pid: int) -> _Worker | None:
        """Take this worker out of those that run; None if it is out, and perhaps another one runs in its place."""
        worker = self._running.get(local_rank)
        return self._running.pop(local_rank) if worker and worker.process.pid == pid else None

    def _collected(self, local_rank: int, worker: _Worker, death: Death) -> Exit:
        self._release(worker)
        died_at = self._clock() if worker.died_at is None else worker.died_at
        kills = self._kills() if death.code else None
        self._explained += bool(kills and kills.count and death.code == -signal.SIGKILL)
        pid, started_at, ending_at = worker.process.pid, worker.started_at, worker.ending_at
        ended = pid, death.code, started_at, died_at, death.dumped, kills, ending_at, worker.killed
        return Exit(local_rank, *ended, partial(_kept, worker.streams), isinstance(worker.process, Promoted))

    def drain(self, timeout_s: float) -> bool:
        return self._pump.drain(timeout_s)

    def close(self) -> None:
        self._closed = True
        run_all(
            self._watcher.stop,
            partial(self.signal, signal.SIGKILL),
            self._reap_all,
            self._close_guard,  # what cleans up has its time, before a server's descendants are killed
            self._spawner.close,
            partial(self._patience.spend, self._pump.close),
        )

    def _close_guard(self) -> None:
        self._reaper.close([each.pid for each in self._left_behind])

    def _reap_all(self) -> None:
        deadline = time.monotonic() + self._close_timeout_s
        run_all(*(partial(self._end, self._running.pop(rank), deadline) for rank in list(self._running)))

    def _end(self, worker: _Worker, deadline: float) -> None:
        try:
            if groups.died_within(worker.pidfd, deadline - time.monotonic()):
                self._reap(worker)
        finally:
            self._release(worker)

    def _start(self, specs: Sequence[WorkerSpec]) -> list[int]:
        self.prepare()
        if not self._running:
            self._kill_left()
        if any(sink.console and sink.file for spec in specs for sink in (spec.stdout, spec.stderr)):
            self._pump.start()
        self._count_kills()
        self._reaper.expect()
        for spec in specs:
            self._running[spec.local_rank] = self._spawn(spec)
        self._reaper.hold([worker.process.pid for worker in self._running.values()])
        started = {spec.local_rank: self._running[spec.local_rank] for spec in specs}
        for worker in started.values():
            worker.pidfd = pidfds.opened(worker.process.pid)
        for local_rank, worker in started.items():  # once all run: a generation that fails tells of no exit
            if worker.channel:
                self._watcher.watch(worker.channel.fileno(), partial(self._reported, local_rank, worker))
            self._watcher.watch(worker.pidfd, partial(self._died, local_rank, worker))
        return [worker.process.pid for worker in started.values()]

    def _spawn(self, spec: WorkerSpec) -> _Worker:
        with ExitStack() as ends:  # the child's ends: closed here once it has them
            stdout, out = self._outlet(spec.stdout, self._console[0], spec.prefix, ends)
            stderr, err = self._outlet(spec.stderr, self._console[1], spec.prefix, ends)
            ours, reports = self._channel(ends)
            ends.enter_context(bound_to(spec.cpus))
            ends.enter_context(self._reaper.protection.lifted())
            started_at = self._clock()
            environment = self._reaper.environment(spec.environment)
            try:
                process = self._spawner.spawn(WorkerStart(spec.command, environment, stdout, stderr, reports))
            except BaseException:
                if ours:
                    ours.close()
                raise
        return _Worker(process, (*out, *err), started_at, ours, is_group=spec.is_group)

    def _channel(self, ends: ExitStack) -> tuple[socket.socket | None, int | None]:
        """Return our end of a worker's channel, and the descriptor of the worker's."""
        if self._on_report is None:
            return None, None
        ours, theirs = channel()
        ends.enter_context(theirs)
        return ours, theirs.fileno()

    def _outlet(self, sink: Sink, console: int, prefix: str, ends: ExitStack) -> tuple[int | None, tuple[Stream, ...]]:
        """Return the child's descriptor, and the stream that the pump follows for it. Where its file cannot be made, though
        its directory could, the pump carries it to the console, as on a disk that is full."""
        if sink.file is None:
            return None, ()
        try:
            if sink.console:
                return self._carried(sink.file, console, prefix, ends, sink.duplicate)
            if sink.file == NOWHERE:  # it is on no disk
                file = os.open(NOWHERE, os.O_WRONLY | os.O_CLOEXEC)
                ends.callback(os.close, file)
                return file, ()
            file = self._disk.do(partial(os.open, sink.file, _APPENDS, 0o666), late=os.close)
            ends.callback(self._disk.later, partial(os.close, file))
            return file, ()
        except OSError as error:
            if passes(error):
                raise
            self._remark(f"{sink.file}: {why(error)}: this output is on the console only")
            return self._carried(NOWHERE, console, prefix, ends)

    def _carried(
        self, file: Path, console: int, prefix: str, ends: ExitStack, duplicate: Duplicate | None = None
    ) -> tuple[int, tuple[Stream, ...]]:
        read, write = os.pipe()
        try:
            stream = self._pump.follow(read, file, console, prefix, duplicate)
        except BaseException:
            os.close(write)
            raise
        ends.callback(os.close, write)
        return write, (stream,)

    def _reported(self, local_rank: int, worker: _Worker, seen_at: float) -> None:
        if worker.channel is None or worker.report is not None:
            return
        worker.report = read(worker.channel, worker.started_at, seen_at)
        if worker.report and self._on_report:
            self._on_report(local_rank, worker.process.pid, worker.report)

    def _died(self, local_rank: int, worker: _Worker, seen_at: float) -> None:
        self._reported(local_rank, worker, seen_at)  # what it said comes before its end
        worker.died_at = seen_at  # before the look at its signal: see `signal`
        pid = worker.process.pid
        if worker.is_stopped and not worker.is_group:
            groups.tell(pid, signal.SIGTERM)
        stops = worker.signum not in (None, signal.SIGKILL)
        if stops and worker.is_group and self._waits_for_member(local_rank, worker):
            self._watcher.later(NAMED_AFTER_S, partial(self._name_members, local_rank, pid))
        else:
            self._on_exit(local_rank, pid)

    def _look_if_dead(self, local_rank: int, worker: _Worker, killed_at: float) -> None:
        """Say of a worker which was killed and does not die that it is to be given up."""
        if worker.died_at is not None or self._running.get(local_rank) is not worker or self._on_stuck is None:
            return
        pid, lasted_s = worker.process.pid, self._clock() - killed_at
        if text := held_in_exit(pid):
            self._on_stuck(local_rank, pid, text)
        elif lasted_s >= KILLED_MAX_S:
            self._on_stuck(local_rank, pid, stuck(pid, round(lasted_s), what="killed and not dead"))
        else:
            self._watcher.later(_KILLED_LOOK_S, partial(self._look_if_dead, local_rank, worker, killed_at))

    def _waits_for_member(self, local_rank: int, worker: _Worker) -> bool:
        """Watch a process that lives on in the group of a dead worker; return False if none does."""
        group = worker.process.pid
        member = next((pidfd for pid in groups.others(group) if (pidfd := groups.opened(pid, group))), None)
        if member is not None:
            self._members[group] = member
            self._watcher.watch(member, partial(self._member_died, local_rank, worker))
        return member is not None

    def _member_died(self, local_rank: int, worker: _Worker, seen_at: float) -> None:
        self._forget_member(worker)
        if not self._waits_for_member(local_rank, worker):
            self._on_exit(local_rank, worker.process.pid)

    def _forget_member(self, worker: _Worker) -> None:
        member = self._members.pop(worker.process.pid, None)
        if member is not None:
            self._watcher.forget(member)
            os.close(member)

    def _name_members(self, local_rank: int, group: int) -> None:
        """Name the processes that a worker which has ended has left, if the node still waits for them."""
        if group in self._members and (pids := groups.others(group)):
            runs = "runs" if len(pids) == 1 else "run"
            many, names = groups.counted(pids), groups.named(pids)
            self._remark(f"local rank {local_rank} has ended, and {many} of its group {runs} on until SIGKILL: {names}")

    def _count_kills(self) -> None:
        """Count the kernel's kills from now on; beside workers that run, those of others that are dead and not collected yet
        too."""
        if self._running and self._killed is not None:
            self._killed += self._explained
        else:
            self._killed = self._counter.read() if self._counter else None
        self._explained = 0

    def _kills(self) -> Kills | None:
        """Return the out-of-memory kills since the generation began."""
        return self._counter.since(self._killed) if self._counter and self._killed is not None else None

    def _reap(self, worker: _Worker, leaves: Callable[[], bool] = lambda: False) -> Death:
        """Kill and reap a worker, read its exit code, and end its group, unless it succeeded and leaves something. Its
        number is its own until it is reaped."""
        pid = worker.process.pid
        groups.kill(pid)
        self._reaper.forget(pid)
        death = worker.process.reap(TRACED_S if worker.died_at is not None else groups.WAIT_TIMEOUT_S)
        if death is None:
            groups.send(pid, signal.SIGKILL)  # one of its own group may trace it
            death = worker.process.reap(GIVE_UP_TIMEOUT_S)
        if death is None:
            self._remark(_still_there(pid))
            self._left_behind.append(worker.process)
            return _death_of(pid)
        if worker.is_stopped and worker.died_at is not None:
            groups.wait(pid, worker.died_at + CHILDREN_S - self._clock())
        if death.code and not worker.is_stopped and (pids := groups.left(pid)):
            worker.killed = f"{groups.counted(pids)} killed with it: {groups.named(pids)}"
        if death.code or not leaves():
            groups.end(pid)
        return death

    def _release(self, worker: _Worker) -> None:
        self._forget_member(worker)
        if worker.pidfd != -1:
            self._watcher.forget(worker.pidfd)
            os.close(worker.pidfd)
        if worker.channel:
            self._watcher.forget(worker.channel.fileno())
            worker.channel.close()
        for stream in worker.streams:
            self._pump.finish(stream)

    def _keep_reaper(self) -> None:
        """Start the reaper now, and again whenever it dies."""
        pidfd = self._reaper.start()
        self._guarded = pidfd is not None
        if pidfd is not None:
            self._watcher.watch(pidfd, partial(self._reaper_died, pidfd))

    def _reaper_died(self, pidfd: int, seen_at: float) -> None:
        self._watcher.forget(pidfd)
        try:
            self._keep_reaper()
        except OSError:  # no process to be had: the next generation asks again
            self._guarded = False


def _kept(streams: Sequence[Stream]) -> Kept | None:
    """Return what is kept of the last of these streams. If nothing is, and its file is not whole, return what is kept of
    another stream whose file is not whole."""
    found = [stream.kept for stream in reversed(streams)]
    lost = [kept for kept in found if not kept.is_written and kept.last]
    return lost[0] if lost and not found[0].is_written else next(iter(found), None)


def _death_of(pid: int) -> Death:
    """Return how a process ended that is dead and cannot be reaped: the kernel shows it. One that lives is killed."""
    try:
        fields = stat(pid)
        if fields[0] == b"Z":
            status = int(fields[-1])
            return Death(os.waitstatus_to_exitcode(status), bool(status & 0x80))
    except (OSError, ValueError, IndexError):
        pass
    return Death(-signal.SIGKILL)


def _still_there(pid: int) -> str:
    """Return why a worker that was killed cannot be reaped."""
    if tracer := groups.tracer(pid):
        return f"a worker that has ended (pid {pid}) is held by {groups.named([tracer])}, which traces it: end that"
    return f"a worker that was killed still hangs in the kernel (pid {pid}): look at this machine"


def reason(error: OSError | ValueError | MemoryError) -> str:
    """Return what went wrong, and with which file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror.lower()}" + (f": {error.filename}" if error.filename else "")
    return str(error) or "no memory"
