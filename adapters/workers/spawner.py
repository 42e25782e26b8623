"""The port to what makes workers and learns of their ends: here by executing a program; forks.py has a server that forks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from attrs import frozen

from .programs import check_program, find_setpriv, ignoring
from .stack_handler import StackHandler
from .worker_port import WorkerSpec


@frozen
class Death:
    """`code` is subprocess's: negative for a signal. `dumped`: the kernel says that it wrote a core dump."""

    code: int
    dumped: bool = False


class Process(Protocol):
    """A worker, leader of a session of its own; dead or alive, its number is its own until it is reaped."""

    @property
    def pid(self) -> int:
        """Its process id and that of its group."""

    def reap(self) -> Death:
        """Wait for its death."""

    def reap_if_dead(self) -> bool:
        """Reap it if it is dead; return True if so."""


class Spawner(Protocol):
    """A maker of workers. The agent's own thread calls."""

    def check(self, specs: Sequence[WorkerSpec]) -> None:
        """Raises CannotStart if a worker could not be made."""

    def spawn(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: int | None, stderr: int | None
    ) -> Process:
        """A worker whose life is tied to this thread's; None: it inherits the agent's stream. Raises OSError, ValueError."""

    def close(self) -> None:
        """No worker follows, and all are reaped. Idempotent."""


@frozen
class Executed:
    """A program that this process executed."""

    popen: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.popen.pid

    def reap(self) -> Death:
        return Death(dumped=_has_dumped(self.popen.pid), code=self.popen.wait())

    def reap_if_dead(self) -> bool:
        return self.popen.poll() is not None


class Executing:
    """Programs, each through setpriv. With a handler they are Python's, and begin with our start-up code."""

    def __init__(self, stacks: StackHandler | None = None, ignored: int | None = None) -> None:
        """`ignored` is a signal that is for the agent alone, though a scheduler sends it to all processes."""
        self._setpriv = "setpriv"
        self._stacks = stacks
        self._ignored = ignored

    def check(self, specs: Sequence[WorkerSpec]) -> None:
        self._setpriv = find_setpriv()
        for program, path in dict.fromkeys((spec.command[0], spec.environment.get("PATH")) for spec in specs):
            check_program(program, path)

    def spawn(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: int | None, stderr: int | None
    ) -> Process:
        return Executed(
            subprocess.Popen(
                [self._setpriv, "--pdeathsig", "KILL", "--", *ignoring(self._ignored, command)],
                env=self._stacks.environment(environment) if self._stacks else environment,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        )

    def close(self) -> None:
        pass


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


def _has_dumped(pid: int) -> bool:
    """Wait for its death, leave it to be reaped, and return True if it dumped core."""
    try:
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return False
    return end is not None and end.si_code == os.CLD_DUMPED
