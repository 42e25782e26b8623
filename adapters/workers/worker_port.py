"""The port to a node's workers: what the agent may ask of whatever runs them.

The agent's own thread calls; the adapter's threads only call `on_exit`, which posts to the agent's inbox. A worker that
`on_exit` named has died but is not yet collected: its process id still belongs to it.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from attrs import frozen

from .cgroups import Kills


class CannotStart(Exception):
    """A worker's program cannot be executed; a restart cannot help. The text names the path and the reason."""


class Shortage(Exception):
    """Workers cannot be started for want of processes, threads, descriptors or memory, which the host may have again."""


_PASSING = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


def passes(error: BaseException) -> bool:
    """Return True if the same call may succeed a moment later."""
    return isinstance(error, MemoryError | Shortage) or (isinstance(error, OSError) and error.errno in _PASSING)


@frozen
class Duplicate:
    """Lines that contain one of `needles` go to `path` too, which several streams share."""

    path: Path
    needles: tuple[bytes, ...]


@frozen
class Sink:
    """The place to which one stream of one worker goes.

    Console alone: the worker inherits the agent's stream. File alone: the worker writes the file itself. Both: a pipe that
    the agent copies to the file byte by byte and to the console line by line, each with the worker's prefix; `duplicate` is
    of such a one only.
    """

    file: Path | None = None
    console: bool = True
    duplicate: Duplicate | None = None


class Destinations(Protocol):
    """The part of torch's LogsDest that is used: files by local rank, an empty name where there is none."""

    @property
    def stdouts(self) -> Mapping[int, str]: ...
    @property
    def stderrs(self) -> Mapping[int, str]: ...
    @property
    def tee_stdouts(self) -> Mapping[int, str]: ...
    @property
    def tee_stderrs(self) -> Mapping[int, str]: ...
    @property
    def error_files(self) -> Mapping[int, str]: ...
    @property
    def filtered_stdout(self) -> str: ...
    @property
    def filtered_stderr(self) -> str: ...


class LogsSpecs(Protocol):
    """The part of torch's class of that name that is used."""

    def reify(self, envs: dict[int, dict[str, str]]) -> Destinations: ...


@frozen
class WorkerSpec:
    """A worker to start: its command, its environment, and the places of its output."""

    local_rank: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    stdout: Sink = Sink()
    stderr: Sink = Sink()
    prefix: str = ""
    cpus: frozenset[int] | None = None
    """The only CPUs that it may run on; None for those of the agent."""


@frozen
class Exit:
    """The end of one worker. `code` is subprocess's: negative for a signal. Times are the agent's monotonic clock.

    `dumped`: the kernel says that it wrote a core dump. `kills`: processes that were killed for want of memory meanwhile.
    """

    local_rank: int
    pid: int
    code: int
    started_at: float
    died_at: float
    dumped: bool = False
    kills: Kills | None = None


@frozen
class StandbysReady:
    """All standbys have finished their imports. `seconds`: how long the last one's took."""

    count: int
    seconds: float


@frozen
class StandbySaid:
    """Something about standbys that people should know."""

    text: str


@frozen
class LogsLost:
    """The workers of a round run without log files; the text says why."""

    text: str


StandbyNews: TypeAlias = StandbysReady | StandbySaid


class Workers(Protocol):
    """The workers of one node, at most one generation of them at a time."""

    def start(self, specs: Sequence[WorkerSpec]) -> Sequence[int]:
        """Start a generation, or some of its workers once more that were collected; return their process ids in the order
        of `specs`.

        Raises CannotStart if a program cannot be executed, Shortage if it could be later; then no worker runs. Must be
        called from the thread that lives as long as the agent: the kernel ties the workers' death to it.
        """

    def signal(self, signum: int) -> None:
        """Send a signal to the process group of every worker that was not collected yet."""

    def collect(self, local_rank: int, pid: int) -> Exit | None:
        """Kill what is left of the process group of a worker that `on_exit` named, reap it, and read its exit code. Return
        None if it is collected already."""

    def give_up(self, local_rank: int, pid: int) -> Exit | None:
        """Collect a worker that may not die when it is killed; None if it is collected already. If it lives on, it is left
        behind, and until it has died `start` refuses."""

    def drain(self, timeout_s: float) -> None:
        """Wait until the collected workers' output is in its files and on the console."""

    def close(self) -> None:
        """Kill and reap whatever still lives, stop helpers and threads. Idempotent."""
