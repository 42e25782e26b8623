"""The port to what makes workers and learns of their ends: here by executing a program; forks.py has a server that forks."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from ....core.values import frozen
from ..start_up import StartUp
from ..worker_port import WorkerSpec
from .programs import check_program, find_setpriv, ignoring

_PAUSE_S, _PAUSE_MAX_S = 0.001, 0.05


@frozen
class Death:
    """`code` is subprocess's: negative for a signal. `dumped`: the kernel says that it wrote a core dump."""

    code: int
    dumped: bool = False


@frozen
class WorkerStart:
    """A worker starts with this. A stream that is None is inherited from the agent."""

    command: Sequence[str]
    environment: Mapping[str, str]
    stdout: int | None
    stderr: int | None
    reports: int | None = None
    """The worker's descriptor for reports (reports.py), None: it reports nothing."""


class Process(Protocol):
    """A worker, leader of a session of its own; dead or alive, its number is its own until it is reaped."""

    @property
    def pid(self) -> int:
        """Its process id and that of its group."""

    def reap(self, timeout_s: float) -> Death | None:
        """Wait for its death and reap it; None if that takes longer. A dead one that another process traces can be reaped
        only when that one has let it go."""


class Spawner(Protocol):
    """A maker of workers. The agent's own thread calls."""

    def check(self, specs: Sequence[WorkerSpec]) -> None:
        """Raises CannotStart if a worker could not be made."""

    def spawn(self, start: WorkerStart) -> Process:
        """Start a worker whose life is tied to this thread's. Raises OSError, ValueError."""

    def close(self) -> None:
        """No worker follows, and all are reaped. Idempotent."""


@frozen
class Lent:
    """A spawner that several agents use, one after the other. Who lends it closes it."""

    spawner: Spawner

    def check(self, specs: Sequence[WorkerSpec]) -> None:
        self.spawner.check(specs)

    def spawn(self, start: WorkerStart) -> Process:
        return self.spawner.spawn(start)

    def close(self) -> None:
        pass


@frozen
class Executed:
    """A program that this process executed."""

    popen: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.popen.pid

    def reap(self, timeout_s: float) -> Death | None:
        return until(self._reaped, timeout_s)

    def _reaped(self) -> Death | None:
        try:
            end = os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return Death(self.popen.wait())
        return end and Death(self.popen.wait(), end.si_code == os.CLD_DUMPED)


@frozen
class Promoted:
    """A standby that has become a worker."""

    process: Process

    @property
    def pid(self) -> int:
        return self.process.pid

    def reap(self, timeout_s: float) -> Death | None:
        return self.process.reap(timeout_s)


class Executor(Protocol):
    """Executes programs, each as the leader of a session whose life is tied to this thread's."""

    def execute(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        stdout: int | None,
        stderr: int | None,
        kept: Sequence[int] = (),
    ) -> Process:
        """The program inherits the descriptors in `kept`, by their numbers. Raises OSError, ValueError, CannotStart."""

    def close(self) -> None:
        """All programs are reaped. Idempotent."""


class Here:
    """Programs are this process's own children, each through setpriv."""

    def __init__(self) -> None:
        self._setpriv = ""

    def execute(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        stdout: int | None,
        stderr: int | None,
        kept: Sequence[int] = (),
    ) -> Process:
        self._setpriv = self._setpriv or find_setpriv()
        return Executed(
            subprocess.Popen(
                [self._setpriv, "--pdeathsig", "KILL", "--", *command],
                env=environment,
                stdout=stdout,
                stderr=stderr,
                pass_fds=kept,
                start_new_session=True,
            )
        )

    def close(self) -> None:
        pass


class Executing:
    """Programs. With a start-up they are Python's, and begin with our start-up code."""

    def __init__(
        self, start_up: StartUp | None = None, ignored: int | None = None, executor: Executor | None = None
    ) -> None:
        """`ignored` is a signal that is for the agent alone, though a scheduler sends it to all processes. `executor` is
        closed with this."""
        self._start_up = start_up
        self._ignored = ignored
        self._executor = executor or Here()

    def check(self, specs: Sequence[WorkerSpec]) -> None:
        find_setpriv()
        for program, path in dict.fromkeys((spec.command[0], spec.environment.get("PATH")) for spec in specs):
            check_program(program, path)

    def spawn(self, start: WorkerStart) -> Process:
        environment, reports = start.environment, start.reports
        return self._executor.execute(
            ignoring(self._ignored, start.command),
            self._start_up.environment(environment, reports or 0) if self._start_up else environment,
            start.stdout,
            start.stderr,
            (reports,) if self._start_up and reports else (),
        )

    def close(self) -> None:
        self._executor.close()


def until(reaped: Callable[[], Death | None], timeout_s: float) -> Death | None:
    """Return the first death that this finds; None if it finds none in this time. The first look nearly always does."""
    deadline, pause_s = time.monotonic() + timeout_s, _PAUSE_S
    while (death := reaped()) is None and time.monotonic() < deadline:
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
    return death


@contextmanager
def bound_to(cpus: frozenset[int] | None) -> Iterator[None]:
    """Bind this thread to these CPUs: what it starts meanwhile inherits them."""
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
