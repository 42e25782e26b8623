"""A trace on disk: `elastic launch --trace` and the ranks under it write it, `elastic replay` reads it.

A line per step, each in one write to a file that is only appended to, so that an agent that is killed leaves whole lines
behind, but for the last at most. Steps are taken by several threads; they only put them into a queue, and a thread of its
own spells and writes them: a slow disk keeps nobody waiting, and one that is full ends the trace, not the job. A file is one
agent's for as long as it runs.

A trace that grows goes on in parts: FILE, then FILE.2, FILE.3, … Of many parts the first and the last ones are kept.
"""

from __future__ import annotations

import fcntl
import math
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue

from ...core import group
from ...core.inprocess import Call
from ...core.rendezvous import Held
from ...core.trace.forms import Form, Repeated, Shape
from ...core.trace.lines import CUT, FORMAT, LINE_MAX, NAME, Corrupt, encoded
from ...core.trace.steps import STEPS, Calling, Header, Step, Working
from .. import threads
from ..clock import Clock, boot
from ..disk import StandsStill, once
from ..terminal import why
from .news import CannotTrace, Remark, TraceLost
from .packed_lines import packed, unpacked

_FLAGS = os.O_RDWR | os.O_APPEND
_PART = re.compile(r"\.([1-9]\d{0,8})")
_QUEUE_MAX = 100_000
"""Steps that may wait for the disk; more end the trace."""
_PAUSES_MAX = 10
"""The most pauses of the writer while further steps are taken."""
END_TIMEOUT_S = 5.0
"""The end of the job waits this long for the disk."""
_EACH = "write --trace=DIR/ and each gets a file"
_PART_BYTES = 1 << 26
"""A part of this many bytes is followed by another."""
PARTS_KEPT = 3
"""How many parts are kept beside the first."""
_NAME_BYTES = 200
"""The most bytes of the node's slot in a file's name."""


class TraceFile:
    """The trace of one agent, or of one rank's call. `path` is the file, or the directory (by a / at its end, or if it is
    one) that gets it."""

    def __init__(
        self,
        path: str,
        queue_max: int = _QUEUE_MAX,
        end_timeout_s: float = END_TIMEOUT_S,
        pause_s: float = 0.0,
        part_bytes: int = _PART_BYTES,
        began_at: float | None = None,
        run_id: str = "",
    ) -> None:
        """`pause_s`: steps are written when none has been taken for this long, and those who take them have no hurry.
        `began_at`: when the agent's program began, which is the time of the header; None: with the trace."""
        self._path = path
        self._end_timeout_s = end_timeout_s
        self._pause_s = pause_s
        self._ended = threading.Event()
        self._queue_max = queue_max
        self._part_bytes = part_bytes
        self._began_at = began_at
        self._run_id = run_id
        self._header: Header | None = None
        self._file: _Parts | None = None
        self._awaits_disk = False
        """The disk has not answered yet."""
        self._lost: Callable[[TraceLost], None] = lambda lost: None
        self._queue: SimpleQueue[Step | None] = SimpleQueue()
        self._on = True
        run = threads.guarded(self._run, lambda error: self._give_up(f"{type(error).__name__}: {error}"))
        self._thread = threading.Thread(target=run, name="elastic-trace", daemon=True)

    def begin(
        self, held: Held, settings: group.Settings, clock: Clock, lost: Callable[[TraceLost | Remark], None]
    ) -> float:
        self._lost = lost
        self._header = _header(held, Working(settings), clock, self._began_at, self._run_id)
        self._awaits_disk = True  # before the disk may answer
        try:
            error = once(self._failure, late=self._answered)
        except StandsStill as still:
            lost(Remark(f"{self._path}: {why(still)}: the trace waits for it"))
            return self._header.now
        if error:
            self._awaits_disk = False
            raise CannotTrace(f"{self._path}: {_refusal(error)}")
        self._answered(None)
        return self._header.now

    def begin_call(self, held: Held, call: Call, clock: Clock, lost: Callable[[TraceLost], None]) -> None:
        """The call as it is before its first step. A rank waits for no disk, not even now: whatever goes wrong is told to
        `lost`, once."""
        self._lost = lost
        self._header = _header(held, Calling(call.settings, call.token), clock)
        self._start()

    def took(self, function: Callable[..., object], *given: object) -> None:
        if not self._on:
            return
        self._queue.put(STEPS[function](*given))
        if self._queue.qsize() > self._queue_max:
            self._give_up(f"the disk does not keep up, {self._queue_max} steps wait")

    def end(self, patience_s: float | None = None) -> None:
        self._queue.put(None)
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(self._end_timeout_s if patience_s is None else patience_s)
        if patience_s is not None and (self._thread.is_alive() or self._awaits_disk):
            raise TimeoutError(f"{self._path}: the disk does not answer, the end of the trace is not written")

    def _failure(self) -> OSError | None:
        """Open the file. Return why that has failed, if it has."""
        try:
            self._open()
        except OSError as error:
            return error
        return None

    def _answered(self, error: OSError | None) -> None:
        """Start to write, or give up, now that the disk has answered."""
        if error:
            self._give_up(_refusal(error))
        else:
            self._start()
        self._awaits_disk = False

    def _start(self) -> None:
        """A host without a free thread costs the trace, and not the job."""
        try:
            threads.start(self._thread)
        except threads.NoThread as error:
            self._give_up(why(error))
            if self._file is not None:
                self._file.close()

    def _give_up(self, reason: str) -> None:
        """Tell of the loss once; later steps are not written."""
        if self._on:
            self._on = False
            self._lost(TraceLost(f"{self._path}: {reason}"))

    # --- the writer's thread

    def _run(self) -> None:
        last, recent = None, tuple[Shape, ...]()
        try:
            file = self._file if self._file is not None else self._open()
            while step := self._next():
                if file.is_full(self._part_bytes):
                    last, recent = None, ()  # a part can be read by itself
                    file.go_on()
                line, last = encoded(step, last)
                line, recent = packed(line, recent)
                file.write(line)
        except OSError as error:
            self._give_up(why(error))
        finally:
            if self._file is not None:
                self._file.close()

    def _next(self) -> Step | None:
        rests = self._queue.empty()
        step = self._queue.get()
        if rests and self._pause_s:
            self._let_pass()
        return step

    def _let_pass(self) -> None:
        """Wait until no further step is taken."""
        for _ in range(_PAUSES_MAX):
            waiting = self._queue.qsize()
            if self._ended.wait(self._pause_s) or self._queue.qsize() == waiting:
                return

    def _open(self) -> _Parts:
        assert self._header
        line, _ = encoded(self._header, None)
        self._path = _place(self._path, self._header)
        self._file = _Parts(self._path, line)
        return self._file


def _refusal(error: OSError) -> str:
    """Return why a file cannot be traced to, with the remedy."""
    if isinstance(error, BlockingIOError):
        return f"another agent writes there; {_EACH}"
    return f"{why(error)}; name a file that can be written to"


def _header(
    held: Held, machine: Working | Calling, clock: Clock, began_at: float | None = None, run_id: str = ""
) -> Header:
    wall, now = clock.wall(), clock.now()
    before_s = 0.0 if began_at is None else max(now - began_at, 0.0)
    times = wall - before_s, now - before_s
    who, host = held.who, os.uname().nodename
    return Header(NAME, FORMAT, who.node, host, boot(), *times, who.profile, who.nonce, who.settings, machine, run_id)


def _place(path: str, header: Header) -> str:
    node = header.node
    if not (path.endswith("/") or os.path.isdir(path)):
        return path
    os.makedirs(path, exist_ok=True)
    slot = re.sub(r"[^\w.-]", "_", node.slot).encode()[:_NAME_BYTES].decode(errors="ignore")
    prefix = "rank_" if isinstance(header.machine, Calling) else ""
    return os.path.join(path, f"{prefix}{slot}_{node.incarnation}.ndjson")


class _Parts:
    """The parts of a trace, for this agent alone: it holds a lock on the first one."""

    def __init__(self, path: str, header: bytes) -> None:
        """Write the header at the end of the last part. Raises OSError."""
        self._path = path
        self._first = self._last = os.open(path, _FLAGS | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            *_, self._number = (1, *later_parts(path))
            if self._number > 1:
                self._last = os.open(f"{path}.{self._number}", _FLAGS)
            is_file = stat.S_ISREG(os.fstat(self._last).st_mode)
            self._size = os.fstat(self._last).st_size if is_file else -math.inf
            if self._size > 0 and os.pread(self._last, 1, int(self._size) - 1) != b"\n":
                self.write(CUT)  # another agent left its last line without an end
            self.write(header)
        except BaseException:
            self.close()
            raise

    def write(self, line: bytes) -> None:
        self._size += len(line)
        while line:
            line = line[os.write(self._last, line) :]

    def is_full(self, part_bytes: int) -> bool:
        """Return True if another part is to follow; never for what is no file."""
        return self._size >= part_bytes

    def go_on(self) -> None:
        """Begin the next part, and remove the oldest of those that are too many."""
        self._close_last()
        self._number += 1
        self._last = os.open(f"{self._path}.{self._number}", _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        self._size = 0
        for number in later_parts(self._path)[:-PARTS_KEPT]:
            os.unlink(f"{self._path}.{number}")

    def close(self) -> None:
        self._close_last()
        os.close(self._first)

    def _close_last(self) -> None:
        if self._last != self._first:
            os.close(self._last)
            self._last = self._first


def later_parts(path: str) -> list[int]:
    """Return the numbers of the parts that follow the first one, as far as they are there."""
    folder, name = os.path.split(path)
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        return []
    found = (_PART.fullmatch(each.removeprefix(name)) for each in beside if each.startswith(name))
    return sorted(int(part[1]) for part in found if part)


def missing_parts(path: str) -> tuple[int, int] | None:
    """Return the first and the last part that was removed, before the next one that is there; None if none was."""
    numbers = enumerate(later_parts(path), 2)
    return next(((expected, number - 1) for expected, number in numbers if number != expected), None)


def lines(path: str, longest: int = LINE_MAX) -> Iterator[bytes]:
    """Yield the lines of a trace, whole, up to a part that is missing, none much longer than one may be. Raises OSError, or
    Corrupt for numbers that fit no line."""
    return (each.whole if isinstance(each, Repeated) else each for each in unbroken(path, longest=longest))


def unbroken(path: str, read: Callable[[int], object] = bool, longest: int = LINE_MAX) -> Iterator[bytes | Repeated]:
    """Yield the lines, packed ones as Repeated. `read` is called with the number of bytes read, line by line."""
    return _unpacked(_unbroken(path)[0], longest, read)


def stretches(path: str, read: Callable[[int], object] = bool) -> Iterator[tuple[str, Iterator[bytes | Repeated]]]:
    """Yield the lines of a trace, as `unbroken` does, by stretches of parts between which others are missing, each with the
    name of its first part. A part can be read by itself. `read` is that of `unbroken`."""
    for parts in _unbroken(path):
        yield parts[0], _unpacked(parts, LINE_MAX, read)


def size_of(path: str) -> int:
    """Return how many bytes the parts of a trace have that are there."""
    size = 0
    for part in (part for parts in _unbroken(path) for part in parts):
        with suppress(OSError):
            size += os.stat(part).st_size
    return size


def _unbroken(path: str) -> list[list[str]]:
    """Return the parts of a trace, by stretches in which none is missing."""
    found, last = [[path]], 1
    for number in later_parts(path):
        if number > last + 1:
            found.append([])
        found[-1].append(f"{path}.{number}")
        last = number
    return found


def _unpacked(parts: Sequence[str], longest: int, read: Callable[[int], object] = bool) -> Iterator[bytes | Repeated]:
    recent: tuple[Form, ...] = ()
    for number, line in enumerate(_lines(parts, longest), 1):
        read(len(line))
        if not line.endswith(b"\n") or line.endswith(CUT):
            yield line  # another line, or a line of another agent, follows
            continue
        try:
            whole, recent = unpacked(line, recent)
        except ValueError as reason:
            raise Corrupt(number, str(reason)) from None
        yield whole


def _lines(parts: Sequence[str], longest: int) -> Iterator[bytes]:
    for part in parts:
        with open(part, "rb") as file:
            while line := file.readline(longest + 1):
                yield line
