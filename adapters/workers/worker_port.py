"""The port to a node's workers: what the agent may ask of whatever runs them.

The agent's own thread calls; the adapter's threads only call `on_exit`, which posts to the agent's inbox. A worker that
`on_exit` named has died but is not yet collected: its process id still belongs to it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from ...core.values import field, frozen
from .cgroups import Kills

NOWHERE = Path("/dev/null")
"""The file that stores nothing."""


class CannotStart(Exception):
    """A worker's program cannot be executed; a restart cannot help. The text names the path and the reason."""


class Shortage(Exception):
    """The host lacks processes, threads, descriptors or memory to start workers, and may have them again. Or a worker that
    was killed is not dead yet: it may hold what the next one needs."""


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
    is_group: bool = False
    """True: a signal is for all processes of its group, and its end is theirs. False: the program alone hears it, for it may
    need the others, such as loaders, for a last checkpoint."""


@frozen
class Kept:
    """The last bytes of a stream that the agent carried. `is_written`: its file has them; `has_file`: there is one."""

    last: bytes
    is_written: bool
    has_file: bool


@frozen
class Exit:
    """The end of one worker. `code` is subprocess's: negative for a signal. Times are the agent's monotonic clock.

    `dumped`: the kernel says that it wrote a core dump. `kills`: processes that were killed meanwhile when memory was short.
    `ending_at` is when the worker reported that its interpreter began to end, if it did. `killed` names the processes of its
    group that were killed since it had failed. `kept` returns what the agent has of its output; None if it carried none.
    It may return more until the output is in its files. `was_standby`: it was started early, and waited for its rank.
    """

    local_rank: int
    pid: int
    code: int
    started_at: float
    died_at: float
    dumped: bool = False
    kills: Kills | None = None
    ending_at: float | None = None
    killed: str = ""
    kept: Callable[[], Kept | None] = field(default=lambda: None, eq=False, repr=False)
    was_standby: bool = False


@frozen
class StandbysReady:
    """All standbys have finished their imports. `seconds`: how long the last one's took."""

    count: int
    seconds: float


@frozen
class Remark:
    """A sentence about this node's workers or standbys that people should know."""

    text: str


StandbyNews: TypeAlias = StandbysReady | Remark


class Workers(Protocol):
    """The workers of one node, at most one generation of them at a time."""

    def start(self, specs: Sequence[WorkerSpec]) -> Sequence[int]:
        """Start a generation, or some of its workers once more that were collected; return their process ids in the order
        of `specs`.

        Raises CannotStart if a program cannot be executed, Shortage if it could be later; then no worker runs. Must be
        called from the thread that lives as long as the agent: the kernel ties the workers' death to it.
        """

    def signal(self, signum: int, spared: Collection[int] = ()) -> None:
        """Send a signal to every worker that was not collected yet, but for these local ranks: to its program, or to its
        process group, as its spec says."""

    def signal_children(self, signum: int) -> None:
        """Send a signal to the other processes of the groups of those workers that alone heard of it so far."""

    def collect(self, local_rank: int, pid: int) -> Exit | None:
        """Kill what is left of the process group of a worker that `on_exit` named, reap it, and read its exit code. Return
        None if it is collected already."""

    def give_up(self, local_rank: int, pid: int) -> Exit | None:
        """Collect a worker that may not die when it is killed; None if it is collected already. If it lives on, it is left
        behind, and until it has died `start` raises Shortage."""

    def left(self) -> Sequence[int]:
        """Return the living processes that workers which ended with 0 have left."""

    def end_left(self) -> None:
        """Tell those to end."""

    def drain(self, timeout_s: float) -> bool:
        """Wait until the collected workers' output is in its files and on the console. Return False if that was too long."""

    def close(self) -> None:
        """Kill and reap whatever still lives, stop helpers and threads. Idempotent."""
