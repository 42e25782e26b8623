"""A trace on disk: what `elastic launch --trace` writes and `elastic replay` reads.

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

from ..core import group
from ..core.rendezvous import Held
from ..core.sim.trace import CUT, FORMAT, LINE_MAX, NAME, STEPS, Header, Step, encoded
from ..core.world import Node
from .clock import Clock
from .news import CannotTrace, TraceLost

BOOT_ID = "/proc/sys/kernel/random/boot_id"
QUEUE_MAX = 100_000
"""Steps that may wait for the disk; more end the trace."""
END_TIMEOUT_S = 5.0
"""How long the end of the job waits for the disk."""
EACH = "write --trace=DIR/ and each gets a file"
NAME_BYTES = 200
"""Of a node's slot in the name of its file."""


class TraceFile:
    """The trace of one agent. `path` is the file, or the directory (by a / at its end, or if it is one) that gets it."""

    def __init__(self, path: str, queue_max: int = QUEUE_MAX) -> None:
        self._path = path
        self._queue_max = queue_max
        self._file: int | None = None
        self._lost: Callable[[TraceLost], None] = lambda lost: None
        self._queue: SimpleQueue[Step | None] = SimpleQueue()
        self._on = True
        self._thread = threading.Thread(target=self._run, name="elastic-trace", daemon=True)

    def begin(self, held: Held, settings: group.Settings, clock: Clock, lost: Callable[[TraceLost], None]) -> None:
        header = Header(
            NAME,
            FORMAT,
            held.node,
            os.uname().nodename,
            _boot(),
            clock.wall(),
            clock.now(),
            held.profile,
            held.nonce,
            held.settings,
            settings,
        )
        line, _ = encoded(header, None)
        try:
            self._path = _place(self._path, held.node)
            self._file = _opened(self._path, line)
        except BlockingIOError:
            raise CannotTrace(f"{self._path}: another agent writes there; {EACH}") from None
        except OSError as error:
            raise CannotTrace(f"{self._path}: {_why(error)}; name a file that can be written to") from None
        self._lost = lost
        self._thread.start()

    def took(self, function: Callable[..., object], *given: object) -> None:
        if not self._on:
            return
        self._queue.put(STEPS[function](*given))
        if self._queue.qsize() > self._queue_max:
            self._give_up(f"the disk does not keep up, {self._queue_max} steps wait")

    def end(self) -> None:
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join(END_TIMEOUT_S)

    def _give_up(self, why: str) -> None:
        """Once; what is taken afterwards is not written."""
        if self._on:
            self._on = False
            self._lost(TraceLost(f"{self._path}: {why}"))

    # --- the writer's thread

    def _run(self) -> None:
        last = None
        assert self._file is not None
        try:
            while step := self._queue.get():
                line, last = encoded(step, last)
                _write(self._file, line)
        except OSError as error:
            self._give_up(_why(error))
        finally:
            os.close(self._file)


def _boot() -> str:
    """What all clocks since one start of this host have in common."""
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return os.urandom(16).hex()


def _place(path: str, node: Node) -> str:
    if not (path.endswith("/") or os.path.isdir(path)):
        return path
    os.makedirs(path, exist_ok=True)
    slot = re.sub(r"[^\w.-]", "_", node.slot).encode()[:NAME_BYTES].decode(errors="ignore")
    return os.path.join(path, f"{slot}_{node.incarnation}.ndjson")


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
