"""Workers as child processes: each in its own session, tied to the agent's life, its death told by the kernel.

    agent's thread      start → setpriv --pdeathsig KILL -- program …    (vfork: no preexec_fn, hence safe beside
    threads) watcher's thread    the worker's pidfd is readable → on_exit         (it is a zombie: its number is still
    its own) agent's thread      collect → kill its group, reap it, see its group end

Two things end a worker whose agent was killed: the parent-death signal, which follows the *thread* that forked (so
start is called by the agent's own), and the reaper, which also reaches the worker's children. What the agent kills
itself it also waits for, so that no process of an old generation meets the new one; only one in uninterruptible sleep
is left behind, after a bounded wait.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from attrs import define

from . import groups
from .guard import Guard
from .port import CannotStart, Exit, Sink, WorkerSpec
from .programs import check_program, find_setpriv
from .pump import LogPump, Stream
from .watcher import Watcher

GIVE_UP_TIMEOUT_S = 1.0
"""How long one that was found stuck in the kernel may take to die after all."""


@define(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    streams: tuple[Stream, ...]
    started_at: float
    died_at: float | None = None
    pidfd: int = -1


class SubprocessWorkers:
    """The port on processes of this machine. `on_exit(local_rank, died_at)` is called from the watcher's thread.

    `console` are the descriptors that a tee'd worker's stdout and stderr are passed on to; `close_timeout_s` bounds the
    wait for workers that were killed by `close`.
    """

    def __init__(
        self,
        on_exit: Callable[[int, float], None],
        clock: Callable[[], float] = time.monotonic,
        console: tuple[int, int] = (1, 2),
        guard: Guard | None = None,
        close_timeout_s: float = groups.WAIT_TIMEOUT_S,
    ) -> None:
        self._on_exit = on_exit
        self._clock = clock
        self._console = console
        self._close_timeout_s = close_timeout_s
        self._running: dict[int, _Worker] = {}
        self._left_behind: list[subprocess.Popen[bytes]] = []
        self._closed = False
        self._guarded = False
        self._watcher = Watcher(clock)
        self._guard = guard or Guard()
        self._pump = LogPump()

    def start(self, specs: Sequence[WorkerSpec]) -> Sequence[int]:
        if self._closed or self._running:
            state = "closed" if self._closed else f"not collected yet: {sorted(self._running)}"
            raise RuntimeError(f"start: {state}")
        self._left_behind = [process for process in self._left_behind if process.poll() is None]
        if self._left_behind:
            pids = ", ".join(str(process.pid) for process in self._left_behind)
            raise CannotStart(f"a worker that was killed still hangs in the kernel (pid {pids}): look at this machine")
        setpriv = find_setpriv()
        for program, path in dict.fromkeys((spec.command[0], spec.environment.get("PATH")) for spec in specs):
            check_program(program, path)
        try:
            return self._start(setpriv, specs)
        except BaseException as error:
            for local_rank in list(self._running):
                worker = self._running.pop(local_rank)
                self._reap(worker)
                self._release(worker)
            if isinstance(error, (OSError, ValueError)):
                raise CannotStart(f"cannot start the workers: {_reason(error)}") from error
            raise

    def signal(self, signum: int) -> None:
        for worker in self._running.values():
            groups.send(worker.process.pid, signum)

    def collect(self, local_rank: int) -> Exit:
        worker = self._running.pop(local_rank)
        return self._collected(local_rank, worker, self._reap(worker))

    def give_up(self, local_rank: int, pid: int) -> Exit | None:
        worker = self._running.get(local_rank)
        if worker is None or worker.process.pid != pid:
            return None
        del self._running[local_rank]
        groups.send(pid, signal.SIGKILL)
        if groups.died_within(worker.pidfd, GIVE_UP_TIMEOUT_S):
            return self._collected(local_rank, worker, self._reap(worker))
        self._left_behind.append(worker.process)
        return self._collected(local_rank, worker, -signal.SIGKILL)

    def _collected(self, local_rank: int, worker: _Worker, code: int) -> Exit:
        self._release(worker)
        died_at = self._clock() if worker.died_at is None else worker.died_at
        return Exit(local_rank, worker.process.pid, code, worker.started_at, died_at)

    def drain(self, timeout_s: float) -> None:
        self._pump.drain(timeout_s)

    def close(self) -> None:
        self._closed = True
        self._watcher.stop()
        self.signal(signal.SIGKILL)
        deadline = time.monotonic() + self._close_timeout_s
        for local_rank in list(self._running):
            worker = self._running.pop(local_rank)
            if groups.died_within(worker.pidfd, deadline - time.monotonic()):
                self._reap(worker)
            self._release(worker)
        self._pump.close()
        self._guard.close()

    def _start(self, setpriv: str, specs: Sequence[WorkerSpec]) -> list[int]:
        self._watcher.start()
        if any(sink.console and sink.file for spec in specs for sink in (spec.stdout, spec.stderr)):
            self._pump.start()
        if not self._guarded:
            self._send_for_reaper()
        for spec in specs:
            self._running[spec.local_rank] = self._spawn(setpriv, spec)
        self._guard.hold([worker.process.pid for worker in self._running.values()])
        for worker in self._running.values():
            worker.pidfd = os.pidfd_open(worker.process.pid)
        for local_rank, worker in self._running.items():  # once all run: a generation that fails tells of no exit
            self._watcher.watch(worker.pidfd, partial(self._died, local_rank, worker))
        return [self._running[spec.local_rank].process.pid for spec in specs]

    def _spawn(self, setpriv: str, spec: WorkerSpec) -> _Worker:
        with ExitStack() as ends:  # the child's ends: closed here once it has them
            stdout, out = self._outlet(spec.stdout, self._console[0], spec.prefix, ends)
            stderr, err = self._outlet(spec.stderr, self._console[1], spec.prefix, ends)
            ends.enter_context(_bound_to(spec.cpus))
            started_at = self._clock()
            process = subprocess.Popen(
                [setpriv, "--pdeathsig", "KILL", "--", *spec.command],
                env=self._guard.environment(spec.environment),
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        return _Worker(process, (*out, *err), started_at)

    def _outlet(self, sink: Sink, console: int, prefix: str, ends: ExitStack) -> tuple[int | None, tuple[Stream, ...]]:
        """What the child gets as its descriptor, and the stream that the pump follows for it."""
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
        self._on_exit(local_rank, seen_at)

    def _reap(self, worker: _Worker) -> int:
        """Kill and reap a worker and see its group end. Its number is its own until it is reaped, not after."""
        pid = worker.process.pid
        groups.send(pid, signal.SIGKILL)
        self._guard.forget(pid)
        code = worker.process.wait()
        groups.bury(pid)
        return code

    def _release(self, worker: _Worker) -> None:
        if worker.pidfd != -1:
            self._watcher.forget(worker.pidfd)
            os.close(worker.pidfd)
        for stream in worker.streams:
            self._pump.finish(stream)

    def _send_for_reaper(self) -> None:
        """Now, and whenever it dies."""
        pidfd = self._guard.start()
        self._guarded = pidfd is not None
        if pidfd is not None:
            self._watcher.watch(pidfd, partial(self._reaper_died, pidfd))

    def _reaper_died(self, pidfd: int, seen_at: float) -> None:
        self._watcher.forget(pidfd)
        try:
            self._send_for_reaper()
        except OSError:  # no process to be had: the next generation asks again
            self._guarded = False


@contextmanager
def _bound_to(cpus: frozenset[int] | None) -> Iterator[None]:
    """What this thread starts inherits the CPUs that it may run on."""
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror.lower()}" + (f": {error.filename}" if error.filename else "")
    return str(error)
