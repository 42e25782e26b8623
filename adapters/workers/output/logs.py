"""The places of a worker's output: the meaning of `--redirects`, `--tee` and `--local-ranks-filter`, and the files.

    <log dir>/<run id>_<8 random>/attempt_<round>/<local rank>/{stdout.log, stderr.log, error.json, stacks.txt}
    <log dir>/<run id>_<8 random>/attempt_<round>/{filtered_stdout.log, filtered_stderr.log}

A run directory belongs to one agent, an attempt's directory to one worker of one round; neither is ever written by
another or wiped. Without a log directory it is made among the temporary files, for the error files' sake, and removed
at the end if nothing was written. With `/dev/null` nothing is stored.

    tee of the stream            file and console; lines with a text of the duplicate filters to filtered_*.log too
    redirect alone               file
    neither                      console, inherited from the agent
    rank not in the filter       file alone, whatever was asked for (torchrun throws such output away)
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

from ....core.values import define, frozen
from ...disk import Disk, StandsStill
from ...launch_settings import Logs, Std
from ...terminal import printable, why
from ..worker_port import NOWHERE, Duplicate, Remark, Sink

STDOUT, STDERR, ERROR_FILE, STACKS_FILE = "stdout.log", "stderr.log", "error.json", "stacks.txt"
ERROR_FILE_VARIABLE = "TORCHELASTIC_ERROR_FILE"
_NAME_BYTES_MAX = 180
"""The most bytes of a run id in a file name; the file system allows 255 in all."""
TAIL_BYTES_MAX = 65_536


@frozen
class Place:
    """The places to which one worker of one round writes."""

    stdout: Sink
    stderr: Sink
    error_file: Path | None
    stacks_file: Path | None = None


class WorkerLogs(Protocol):
    """The port to what says where the workers write."""

    @property
    def report_path(self) -> str | None:
        """The path of the report among the logs; None if the user keeps none."""

    def places(self, round: int, environments: dict[int, dict[str, str]]) -> Mapping[int, Place]:
        """Return the places of a round's workers by local rank, and put the name of the error file into each environment.
        Raises CannotStart or OSError."""

    def close(self) -> None:
        """Remove what nobody needs; no worker writes any more."""


class CannotLog(Exception):
    """There can be no log directory. The text names the place, the reason and the remedy."""


@define(eq=False)
class OwnLogs:
    """Files of the run directory. `tell` hears once for each round that has none, because its directories cannot be made.
    Without a `directory` yet, which `disk` is to answer for, `take` gives it one."""

    logs: Logs
    directory: RunDirectory | None
    disk: Disk
    tell: Callable[[Remark], None] = lambda lost: None

    def take(self, directory: RunDirectory) -> None:
        """Write there from the next round on."""
        self.directory = directory

    @property
    def report_path(self) -> str | None:
        kept = self.directory and self.directory.root and not self.directory.temporary
        return str(self.directory.root / "report.json") if kept and self.directory and self.directory.root else None

    def places(self, round: int, environments: dict[int, dict[str, str]]) -> Mapping[int, Place]:
        try:
            directories = self.disk.do(partial(self._made, round, tuple(environments)))
        except OSError as error:  # a disk that is full in the middle of a round stops no worker either
            self.tell(Remark(f"{self._root}: {why(error)}: the output of round {round} is on the console only"))
            return {rank: self._place(None, rank, each, is_lost=True) for rank, each in environments.items()}
        return {rank: self._place(directories[rank], rank, each) for rank, each in environments.items()}

    def close(self) -> None:
        """Remove what nobody needs. A disk that stands still keeps it."""
        if self.directory:
            with suppress(StandsStill):
                self.disk.do(self.directory.remove_if_unused)

    @property
    def _root(self) -> str:
        if self.directory:
            return str(self.directory.root)
        return self.logs.directory or temporaries(os.environ)

    def _made(self, round: int, ranks: Sequence[int]) -> Mapping[int, Path | None]:
        """Make the directories of a round. Raises OSError."""
        if self.directory is None:
            raise FileNotFoundError(errno.ENOENT, "no log directory could be made")
        return {rank: self.directory.attempt(round, rank) for rank in ranks}

    def _place(
        self, directory: Path | None, local_rank: int, environment: dict[str, str], is_lost: bool = False
    ) -> Place:
        error_file = directory / ERROR_FILE if directory else None
        environment[ERROR_FILE_VARIABLE] = str(error_file or "")
        is_kept = directory and self.directory and not self.directory.temporary
        stacks_file = directory / STACKS_FILE if directory and is_kept else None
        return Place(*sinks(self.logs, local_rank, directory, is_lost), error_file, stacks_file)


def sinks(logs: Logs, local_rank: int, directory: Path | None, is_lost: bool = False) -> tuple[Sink, Sink]:
    """The sinks of a worker's stdout and stderr; `directory` is its own, in its attempt's. `is_lost`: it cannot be made, and
    what was for a file alone is carried to the console."""
    console = logs.shown is None or local_rank in logs.shown
    teed = logs.tee.of(local_rank)
    redirected = logs.redirects.of(local_rank) | teed
    teed = redirected if is_lost else teed

    def sink(stream: Std, name: str, filters: tuple[str, ...]) -> Sink:
        if console and not redirected & stream:
            return Sink()
        if not console or not teed & stream:
            return Sink(directory / name if directory else NOWHERE, console=False)
        needles = tuple(os.fsencode(text) for text in filters)
        filtered = directory.parent / f"filtered_{name}" if directory else NOWHERE
        return Sink(directory / name if directory else NOWHERE, True, Duplicate(filtered, needles) if needles else None)

    return sink(Std.OUT, STDOUT, logs.stdout_filters), sink(Std.ERR, STDERR, logs.stderr_filters)


def line_prefix(template: str | None, role: str, rank: int, local_rank: int, host: str, node: str) -> str:
    """Return the text before each tee'd line. Names in the template other than these stay as they are."""
    if template is None:
        return f"[{role}{local_rank}]:"
    from string import Template

    return Template(template).safe_substitute(role_name=role, rank=rank, local_rank=local_rank, host=host, node=node)


@frozen
class RunDirectory:
    """One agent's directory. `root` is None if nothing is stored; `temporary` is to be removed at the end if unused."""

    root: Path | None
    temporary: Path | None = None

    def attempt(self, round: int, local_rank: int) -> Path | None:
        """Make the directory of one worker of one round. A round that comes again, after the store had forgotten it, has one
        of its own."""
        if self.root is None:
            return None
        names = (f"attempt_{round}{f'.{again}' if again > 1 else ''}" for again in count(1))
        directory = next(path for name in names if not (path := self.root / name / str(local_rank)).exists())
        directory.mkdir(parents=True)
        return directory

    def remove_if_unused(self) -> None:
        """Remove a temporary directory's empty directories, itself included; files and their directories stay."""
        if self.temporary is None:
            return
        for directory, _, _ in os.walk(self.temporary, topdown=False):
            try:
                os.rmdir(directory)
            except OSError:
                pass  # it holds something


def make_run_directory(log_dir: str | None, run_id: str) -> RunDirectory:
    """Raises CannotLog if no directory can be made at `log_dir`."""
    if log_dir and Path(log_dir) == NOWHERE:
        return RunDirectory(None)
    place = log_dir or temporaries(os.environ)
    try:
        base = Path(os.path.abspath(place))
        if log_dir:
            base.mkdir(parents=True, exist_ok=True)
        temporary = None if log_dir else _make_new(base, "torchelastic")
        return RunDirectory(_make_new(temporary or base, file_name(run_id)), temporary)
    except (FileExistsError, NotADirectoryError) as error:
        raise CannotLog(f"{place}: a file is in the way; name a directory") from error
    except OSError as error:
        raise CannotLog(f"{place}: {why(error)}; name a directory that can be written to") from error


def temporaries(environment: Mapping[str, str]) -> str:
    """Return the directory of temporary files: TMPDIR, if that is one."""
    folder = environment.get("TMPDIR", "")
    return folder if os.path.isdir(folder) else "/tmp"


def file_name(run_id: str) -> str:
    """Return the run id as (part of) a file name: a character with a meaning in a path or a shell becomes %XX, and so does
    a dot at the beginning, which would hide the file."""
    name = "".join(c if c.isalnum() or c in "._-+=@," else f"%{ord(c):02X}" for c in run_id)
    name = f"%2E{name[1:]}" if name.startswith(".") else name
    return name.encode("utf-8", "replace")[:_NAME_BYTES_MAX].decode("utf-8", "ignore")


def _make_new(base: Path, name: str, chance: Callable[[int], bytes] = os.urandom) -> Path:
    """A directory `name_<8 random>`, for the owner alone. (`tempfile` would do; its import takes 8 ms.)"""
    while True:
        directory = base / f"{name}_{chance(4).hex()}"
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return directory


_COLOURS = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")


def tail(path: Path, lines: int = 20, begins: int = 0, ends: int | None = None) -> tuple[str, ...]:
    """The last lines of a log, made harmless for a terminal; none if there is no such file. What stands before the byte
    `begins` is not looked at, unless the file is shorter by now, nor what follows the byte `ends`."""
    return last_lines(_end_of(path, begins, ends), lines)


def last_lines(data: bytes, lines: int = 20) -> tuple[str, ...]:
    """Return the last lines of an output, made harmless for a terminal."""
    text = data.decode("utf-8", "replace")
    found = text.removesuffix("\n").split("\n")[-lines:] if text else []
    return tuple(_harmless(line) for line in found)


def size(path: Path) -> int:
    """Return the number of a file's bytes; 0 for one that is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def written(disk: Disk, log: Path | None) -> int | None:
    """Return how long a log is now; None if there is none, or if its disk stands still."""
    with suppress(StandsStill):
        return disk.do(partial(size, log)) if log else None
    return None


def _end_of(path: Path, begins: int, ends: int | None) -> bytes:
    """Return at most TAIL_BYTES_MAX, from a line's start if there is one in them."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as log:
            status = os.fstat(log.fileno())
            if not stat.S_ISREG(status.st_mode):
                return b""
            begins = begins if begins <= status.st_size else 0
            end = status.st_size if ends is None or ends < begins else min(ends, status.st_size)
            start = max(begins, end - TAIL_BYTES_MAX)
            data = os.pread(log.fileno(), end - start, start)
    except OSError:
        return b""
    return data if start == begins else data.partition(b"\n")[2] or data


def _harmless(line: str) -> str:
    """Return the line as a terminal would show it: no colours, a progress bar's last state, other controls spelled out."""
    shown = _COLOURS.sub("", line).rstrip("\r").rpartition("\r")[2].expandtabs()
    return printable(shown)
