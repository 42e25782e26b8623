"""Workers as child processes: each leads its own session, its life is tied to the agent's, the kernel tells of its death.

    agent's thread      start: setpriv --pdeathsig KILL -- program …      without preexec_fn, hence safe beside threads
    watcher's thread    the worker's pidfd is readable: on_exit           the dead worker keeps its process id for now
    agent's thread      collect: reap it, kill its group, wait for the end of its group

Two things end a worker whose agent was killed. The parent-death signal follows the *thread* that forked, so the agent's
own thread calls `start`. The reaper also reaches the worker's children. The agent waits for what it kills, so that no
process of an old generation meets the new one. Only one in uninterruptible sleep is left behind, after a bounded wait.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from attrs import define

from .. import threads
from ..clean_up import run_all
from . import cgroups
from . import process_groups as groups
from .cgroups import Kills
from .guard import Guard
from .pump import LogPump, Stream
from .spawner import Death, Executing, Process, Spawner, bound_to
from .watcher import Watcher
from .worker_port import CannotStart, Exit, Shortage, Sink, WorkerSpec, passes

GIVE_UP_TIMEOUT_S = 1.0
"""A worker that was found stuck in the kernel may take so long to die after all."""


@define(eq=False)
class _Worker:
    process: Process
    streams: tuple[Stream, ...]
    started_at: float
    died_at: float | None = None
    pidfd: int = -1


class SubprocessWorkers:
    """The port on processes of this machine. `on_exit(local_rank, pid)` is called from the watcher's thread.

    `console` are the descriptors that a tee'd worker's stdout and stderr are passed on to; `close_timeout_s` bounds the
    wait for workers that were killed by `close`; `spawner` makes the workers, and is closed with them; `failed` is called
    with an error that ends a thread of it.
    """

    def __init__(
        self,
        on_exit: Callable[[int, int], None],
        clock: Callable[[], float] = time.monotonic,
        console: tuple[int, int] = (1, 2),
        guard: Guard | None = None,
        close_timeout_s: float = groups.WAIT_TIMEOUT_S,
        spawner: Spawner | None = None,
        watcher: Watcher | None = None,
        failed: Callable[[BaseException], object] = threads.shown,
    ) -> None:
        self._on_exit = on_exit
        self._clock = clock
        self._console = console
        self._close_timeout_s = close_timeout_s
        self._running: dict[int, _Worker] = {}
        self._left_behind: list[Process] = []
        self._closed = False
        self._guarded = False
        self._watcher = watcher or Watcher(clock, failed)
        self._guard = guard or Guard()
        self._spawner = spawner or Executing()
        self._counter = cgroups.counter()
        self._killed: int | None = None
        """The count of kills when the generation began, and those since then that explain a worker that started again."""
        self._explained = 0
        """How many workers' ends such kills have explained since the last start."""
        self._pump = LogPump(failed)

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
        self._left_behind = [process for process in self._left_behind if not process.reap_if_dead()]
        if self._left_behind:
            pids = ", ".join(str(process.pid) for process in self._left_behind)
            raise CannotStart(f"a worker that was killed still hangs in the kernel (pid {pids}): look at this machine")
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

    def signal(self, signum: int) -> None:
        for worker in self._running.values():
            if signum == signal.SIGKILL:
                groups.kill(worker.process.pid)  # `collect` ends its group
            else:
                groups.send(worker.process.pid, signum)
                groups.send(worker.process.pid, signal.SIGCONT)  # for a stopped one, on which the signal waits

    def collect(self, local_rank: int, pid: int) -> Exit | None:
        worker = self._taken(local_rank, pid)
        return self._collected(local_rank, worker, self._reap(worker)) if worker else None

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

    def _taken(self, local_rank: int, pid: int) -> _Worker | None:
        """Take this worker out of those that run; None if it is out, and perhaps another one runs in its place."""
        worker = self._running.get(local_rank)
        return self._running.pop(local_rank) if worker and worker.process.pid == pid else None

    def _collected(self, local_rank: int, worker: _Worker, death: Death) -> Exit:
        self._release(worker)
        died_at = self._clock() if worker.died_at is None else worker.died_at
        kills = self._kills() if death.code else None
        self._explained += bool(kills and kills.count and death.code == -signal.SIGKILL)
        return Exit(local_rank, worker.process.pid, death.code, worker.started_at, died_at, death.dumped, kills)

    def drain(self, timeout_s: float) -> None:
        self._pump.drain(timeout_s)

    def close(self) -> None:
        self._closed = True
        run_all(
            self._watcher.stop,
            partial(self.signal, signal.SIGKILL),
            self._reap_all,
            self._spawner.close,
            self._guard.close,
            self._pump.close,
        )

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
        if any(sink.console and sink.file for spec in specs for sink in (spec.stdout, spec.stderr)):
            self._pump.start()
        self._count_kills()
        self._guard.expect()
        for spec in specs:
            self._running[spec.local_rank] = self._spawn(spec)
        self._guard.hold([worker.process.pid for worker in self._running.values()])
        started = {spec.local_rank: self._running[spec.local_rank] for spec in specs}
        for worker in started.values():
            worker.pidfd = os.pidfd_open(worker.process.pid)
        for local_rank, worker in started.items():  # once all run: a generation that fails tells of no exit
            self._watcher.watch(worker.pidfd, partial(self._died, local_rank, worker))
        return [worker.process.pid for worker in started.values()]

    def _spawn(self, spec: WorkerSpec) -> _Worker:
        with ExitStack() as ends:  # the child's ends: closed here once it has them
            stdout, out = self._outlet(spec.stdout, self._console[0], spec.prefix, ends)
            stderr, err = self._outlet(spec.stderr, self._console[1], spec.prefix, ends)
            ends.enter_context(bound_to(spec.cpus))
            started_at = self._clock()
            process = self._spawner.spawn(spec.command, self._guard.environment(spec.environment), stdout, stderr)
        return _Worker(process, (*out, *err), started_at)

    def _outlet(self, sink: Sink, console: int, prefix: str, ends: ExitStack) -> tuple[int | None, tuple[Stream, ...]]:
        """Return the child's descriptor, and the stream that the pump follows for it."""
        if sink.console and sink.file is None:
            return None, ()
        if sink.console and sink.file is not None:
            read, write = os.pipe()
            ends.callback(os.close, write)
            return write, (self._pump.follow(read, sink.file, console, prefix, sink.duplicate),)
        file = os.open(sink.file or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        ends.callback(os.close, file)
        return file, ()

    def _died(self, local_rank: int, worker: _Worker, seen_at: float) -> None:
        worker.died_at = seen_at
        self._on_exit(local_rank, worker.process.pid)

    def _count_kills(self) -> None:
        """Count the kernel's kills from now on; beside workers that run, those of others that are dead and not collected yet
        too."""
        if self._running and self._killed is not None:
            self._killed += self._explained
        else:
            self._killed = self._counter.read() if self._counter else None
        self._explained = 0

    def _kills(self) -> Kills | None:
        """Return the kills for want of memory since the generation began."""
        return self._counter.since(self._killed) if self._counter and self._killed is not None else None

    def _reap(self, worker: _Worker) -> Death:
        """Kill and reap a worker, read its exit code, and end its group. Its number is its own until it is reaped."""
        pid = worker.process.pid
        groups.kill(pid)
        self._guard.forget(pid)
        death = worker.process.reap()
        groups.end(pid)
        return death

    def _release(self, worker: _Worker) -> None:
        if worker.pidfd != -1:
            self._watcher.forget(worker.pidfd)
            os.close(worker.pidfd)
        for stream in worker.streams:
            self._pump.finish(stream)

    def _keep_reaper(self) -> None:
        """Start the reaper now, and again whenever it dies."""
        pidfd = self._guard.start()
        self._guarded = pidfd is not None
        if pidfd is not None:
            self._watcher.watch(pidfd, partial(self._reaper_died, pidfd))

    def _reaper_died(self, pidfd: int, seen_at: float) -> None:
        self._watcher.forget(pidfd)
        try:
            self._keep_reaper()
        except OSError:  # no process to be had: the next generation asks again
            self._guarded = False


def reason(error: OSError | ValueError | MemoryError) -> str:
    """Return what went wrong, and with which file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror.lower()}" + (f": {error.filename}" if error.filename else "")
    return str(error) or "no memory"
