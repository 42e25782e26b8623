"""A trace on disk: `elastic launch --trace` and the ranks under it write it, `elastic replay` reads it.

A line per step, each in one write to a file that is only appended to, so that an agent that is killed leaves whole lines
behind, but for the last at most. Steps are taken by several threads; they only put them into a queue, and a thread of its
own spells and writes them: a slow disk keeps nobody waiting, and one that is full ends the trace, not the job. A file is one
agent's for as long as it runs.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

from ...core import group
from ...core.inprocess import Call
from ...core.rendezvous import Held
from ...core.replay.lines import CUT, FORMAT, LINE_MAX, NAME, encoded
from ...core.replay.steps import STEPS, Calling, Header, Step, Working
from .. import threads
from ..clock import Clock
from .news import CannotTrace, TraceLost

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_QUEUE_MAX = 100_000
"""Steps that may wait for the disk; more end the trace."""
_PAUSES_MAX = 10
"""The writer pauses at most so often while further steps are taken."""
END_TIMEOUT_S = 5.0
"""The end of the job waits so long for the disk."""
_EACH = "write --trace=DIR/ and each gets a file"
_NAME_BYTES = 200
"""A file's name has so many bytes of the node's slot at most."""


class TraceFile:
    """The trace of one agent, or of one rank's call. `path` is the file, or the directory (by a / at its end, or if it is
    one) that gets it."""

    def __init__(
        self, path: str, queue_max: int = _QUEUE_MAX, end_timeout_s: float = END_TIMEOUT_S, pause_s: float = 0.0
    ) -> None:
        """`pause_s`: steps are written when none has been taken for so long, and those who take them have no hurry."""
        self._path = path
        self._end_timeout_s = end_timeout_s
        self._pause_s = pause_s
        self._ended = threading.Event()
        self._queue_max = queue_max
        self._header: Header | None = None
        self._file: int | None = None
        self._lost: Callable[[TraceLost], None] = lambda lost: None
        self._queue: SimpleQueue[Step | None] = SimpleQueue()
        self._on = True
        self._thread = threading.Thread(target=self._run, name="elastic-trace", daemon=True)

    def begin(self, held: Held, settings: group.Settings, clock: Clock, lost: Callable[[TraceLost], None]) -> None:
        self._lost = lost
        self._header = _header(held, Working(settings), clock)
        try:
            self._open()
        except BlockingIOError:
            raise CannotTrace(f"{self._path}: another agent writes there; {_EACH}") from None
        except OSError as error:
            raise CannotTrace(f"{self._path}: {_why(error)}; name a file that can be written to") from None
        self._start()

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

    def end(self) -> None:
        self._queue.put(None)
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(self._end_timeout_s)

    def _start(self) -> None:
        """A host without a free thread costs the trace, and not the job."""
        try:
            threads.start(self._thread)
        except threads.NoThread as error:
            self._give_up(_why(error))
            if self._file is not None:
                os.close(self._file)

    def _give_up(self, why: str) -> None:
        """Tell of the loss once; later steps are not written."""
        if self._on:
            self._on = False
            self._lost(TraceLost(f"{self._path}: {why}"))

    # --- the writer's thread

    def _run(self) -> None:
        last = None
        try:
            file = self._file if self._file is not None else self._open()
            while step := self._next():
                line, last = encoded(step, last)
                _write(file, line)
        except OSError as error:
            self._give_up(_why(error))
        finally:
            if self._file is not None:
                os.close(self._file)

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

    def _open(self) -> int:
        assert self._header
        line, _ = encoded(self._header, None)
        self._path = _place(self._path, self._header)
        self._file = _opened(self._path, line)
        return self._file


def _header(held: Held, machine: Working | Calling, clock: Clock) -> Header:
    times = clock.wall(), clock.now()
    host = os.uname().nodename
    return Header(NAME, FORMAT, held.node, host, _boot(), *times, held.profile, held.nonce, held.settings, machine)


def _boot() -> str:
    """Return the id that this host's monotonic clock has kept since its start."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return os.urandom(16).hex()


def _place(path: str, header: Header) -> str:
    node = header.node
    if not (path.endswith("/") or os.path.isdir(path)):
        return path
    os.makedirs(path, exist_ok=True)
    slot = re.sub(r"[^\w.-]", "_", node.slot).encode()[:_NAME_BYTES].decode(errors="ignore")
    prefix = "rank_" if isinstance(header.machine, Calling) else ""
    return os.path.join(path, f"{prefix}{slot}_{node.incarnation}.ndjson")


def _opened(path: str, header: bytes) -> int:
    """The file with the header at its end, for this agent alone. Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            _write(file, CUT)  # another agent left its last line without an end
        _write(file, header)
    except BaseException:
        os.close(file)
        raise
    return file


def _write(file: int, line: bytes) -> None:
    while line:
        line = line[os.write(file, line) :]


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def lines(path: str, longest: int = LINE_MAX) -> Iterator[bytes]:
    """The lines of a trace, none much longer than one may be. Raises OSError."""
    with open(path, "rb") as file:
        while line := file.readline(longest + 1):
            yield line
