"""The handle of a launch that runs beside the program, in a thread of this process: what `elastic.start` returns.

Threads: the launch's own one calls `saw` and `stops_by`, any other one the public methods. The agent hears a signal as a
message, so `stop` only posts one. The thread is a daemon: the end of the program does not wait for the job, it stops it.
"""

from __future__ import annotations

import atexit
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Generic, TypeAlias, TypeVar, overload

from ...adapters.report.news import News, Started, StartedAgain, Step
from ...adapters.signals import signals_as_events
from ...adapters.threads import start
from ...adapters.workers.start.attempts import Attempt
from ...adapters.workers.worker_port import NOWHERE, Sink
from ...core.values import frozen
from .exceptions import LaunchError

Returned = TypeVar("Returned")
_Worker: TypeAlias = tuple[int, Attempt]
"""A process id, and what was started so."""
_HEARD_S = 1.0
"""A signal that another thread was given ends no wait of the main thread: no wait is longer than this."""
_EXIT_S = 5.0
"""The end of the program waits this long beyond the workers' grace."""


@frozen
class WorkerFiles:
    """The files of one worker. A stream without a file goes to the console, or nowhere."""

    stdout: Path | None
    stderr: Path | None
    error_file: Path | None
    """The file is there if the worker failed, and said why."""


class Job(Generic[Returned]):
    """A job that `elastic.start` began. As a context manager it stops the job at the end of the block."""

    def __init__(
        self, run: Callable[[Job[Returned]], dict[int, Returned]], signals: tuple[signal.Signals, ...], grace_s: float
    ) -> None:
        """Begin. Raises NoThread, or ValueError for a mistake, before anything has started."""
        self._run, self._signals, self._grace_s, self._owner = run, signals, grace_s, os.getpid()
        self._changed = threading.Condition(threading.RLock())  # a signal's handler may find its own thread in it
        self._stop: Callable[[int], None] | None = None
        self._stopped_by: int | None = None
        self._workers: Mapping[int, _Worker] = {}
        """By global rank."""
        self._has_begun = False
        self._ended = threading.Event()
        self._values: dict[int, Returned] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run_to_the_end, name="elastic-launch", daemon=True)
        atexit.register(self._end_with_program)  # before the thread begins, which takes it back at its end
        try:
            start(self._thread)
            self._await(lambda: self._has_begun or self._is_over(), math.inf)
        except BaseException:
            self._tell(signal.SIGTERM)
            if not self._thread.is_alive():
                atexit.unregister(self._end_with_program)
            raise
        if self._is_over():
            self._thread.join()
            self._raise_mistake()

    # --- for the program

    def pids(self, timeout: float = 0.0) -> dict[int, int]:
        """Return the process ids of this node's workers of the last round, by global rank; workers that have ended included.

        Before the first round there are none: then wait up to `timeout` seconds for them, or for the end of the job.
        """
        self._await(lambda: bool(self._workers) or self._is_over(), timeout)
        with self._changed:
            return {rank: pid for rank, (pid, _) in self._workers.items()}

    def logs(self) -> dict[int, WorkerFiles]:
        """Return the files of the same workers, by global rank. See the setting `log_dir`."""
        with self._changed:
            return {rank: _files(attempt) for rank, (_, attempt) in self._workers.items()}

    def poll(self) -> dict[int, Returned] | None:
        """Return None while the job runs. Then return, or raise, what `wait` does."""
        return self._outcome() if self._is_over() else None

    @overload
    def wait(self, timeout: None = None) -> dict[int, Returned]: ...

    @overload
    def wait(self, timeout: float) -> dict[int, Returned] | None: ...

    def wait(self, timeout: float | None = None) -> dict[int, Returned] | None:
        """Return what this node's workers returned, by global rank, or raise as `elastic.launch` does; any number of times.

        Return None if the job still runs after `timeout` seconds. In the main thread, signals that come during the wait stop
        the job, as they do during `elastic.launch`.
        """
        if timeout is not None and timeout < 0:
            raise ValueError(f"timeout={timeout}: write a number of seconds, or None to wait for the end")
        with signals_as_events(self._signals, self._signalled):
            is_over = self._ends_within(math.inf if timeout is None else timeout)
        return self._outcome() if is_over else None

    def stop(self, signum: int = signal.SIGTERM) -> None:
        """Stop the workers, and wait until the job has ended here. Afterwards `wait` raises `elastic.SignalException`. For
        a job that has ended, nothing changes.

        The workers get the signal, and SIGKILL when the setting `grace` is over. A second call kills them at once. A launch
        that still looks for its store hears of it after that.
        """
        self._tell(signal.Signals(signum))
        self._ends_within(math.inf)

    def __enter__(self) -> Job[Returned]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_over():
            self.stop()

    # --- for the launch

    def stops_by(self, stop: Callable[[int], None]) -> None:
        """From now on this stops what runs."""
        with self._changed:
            self._stop = stop
            if self._stopped_by is not None:
                stop(self._stopped_by)

    def saw(self, news: News) -> None:
        """Remember the workers that were started, and that the agent has begun."""
        match news:
            case Started(_, pids, _, attempts):
                self._remember({}, *zip(pids, attempts.values(), strict=True))
            case StartedAgain(_, pid, _, attempt):
                self._remember(self._workers, (pid, attempt))
            case Step():
                with self._changed:
                    self._has_begun = True
                    self._changed.notify_all()
            case _:
                pass

    until: float | None = None
    """The launch need not call when there is no news."""

    def passed(self, now: float) -> None:
        """Nothing is waited for."""

    def _remember(self, others: Mapping[int, _Worker], *started: _Worker) -> None:
        """Take these workers, beside the others."""
        with self._changed:
            self._workers = {**others, **{_rank(attempt): (pid, attempt) for pid, attempt in started}}
            self._changed.notify_all()

    def _run_to_the_end(self) -> None:
        try:
            self._values = self._run(self)
        except BaseException as error:  # noqa: BLE001 `wait` raises it
            self._error = error
        atexit.unregister(self._end_with_program)
        with self._changed:
            self._stop = None
            self._ended.set()
            self._changed.notify_all()

    # --- the end

    def _signalled(self, signum: int, frame: FrameType | None) -> None:
        self._tell(signum)

    def _tell(self, signum: int) -> None:
        with self._changed:
            self._stopped_by = signum
            if self._stop:
                self._stop(signum)

    def _ends_within(self, timeout_s: float) -> bool:
        is_over = self._await(self._is_over, timeout_s)
        if is_over:
            self._thread.join()
        return is_over

    def _raise_mistake(self) -> None:
        if self._error and not isinstance(self._error, LaunchError):
            raise self._error

    def _is_over(self) -> bool:
        return self._ended.is_set()

    def _await(self, claim: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until the claim is true; return False if that takes longer. Signals are heard meanwhile."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while not (is_true := claim()) and (left_s := until - time.monotonic()) > 0:
                self._changed.wait(min(left_s, _HEARD_S))
        return is_true

    def _outcome(self) -> dict[int, Returned]:
        if self._error:
            raise self._error
        return self._values

    def _end_with_program(self) -> None:
        """Stop the job of a program that ends. What is left when this takes too long dies with the process."""
        if os.getpid() == self._owner:  # and not in a copy of the process
            self._tell(signal.SIGTERM)
            if self._thread.is_alive():
                self._thread.join(self._grace_s + _EXIT_S)


def _rank(attempt: Attempt) -> int:
    return attempt.ranks.workers[attempt.spec.local_rank].rank


def _files(attempt: Attempt) -> WorkerFiles:
    return WorkerFiles(_file(attempt.spec.stdout), _file(attempt.spec.stderr), attempt.error_file)


def _file(sink: Sink) -> Path | None:
    return None if sink.file == NOWHERE else sink.file


Run = Callable[[Job[Any] | None], dict[int, Any]]
"""A launch to run in the calling thread: with its handle, if another thread has one."""
