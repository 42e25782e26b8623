"""One thread that writes the files of tee'd workers, so that a disk that stands still holds up no console.

The pump's thread puts what it has read, in order; the writer's thread writes, and closes. What waits for the disk is counted
for each file: the pump leaves the pipe of a stream alone that has too much of it, and is woken when it may go on. So memory
is bounded, nothing is lost, and the worker waits as it would if it wrote the file itself.

Each handover wakes a thread, which costs more than the write. So what comes in quick succession is handed over together:
when it is BATCH_MAX long or BATCH_S old, or when nothing follows for REST_S.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from ....core.values import define, field
from ... import threads

WAITING_MAX = 1 << 20
"""How many bytes may wait for the disk before their stream does."""


BATCH_MAX = 1 << 18
BATCH_S, REST_S = 0.005, 0.001


@define(eq=False)
class LogFile:
    """One file. The writer's thread alone writes; the pump's thread puts."""

    descriptor: int
    path: Path
    waiting: int = 0
    """How many bytes are not written yet."""
    batch: list[bytes] = field(factory=list)
    """The bytes that were put and are not handed over yet. Only the pump's thread looks at them."""
    batch_bytes: int = 0
    is_full: bool = False
    """Its stream has to wait until half of WAITING_MAX is written."""
    error: OSError | None = None
    """Why the rest of the output is not in it."""

    @property
    def is_whole(self) -> bool:
        """True if all that was put is in it."""
        return self.error is None and not self.waiting


class LogWriter:
    """`wake` is called from the thread when a file has failed, is closed, or takes more again. `failed` is called with an
    error that ends the thread."""

    def __init__(self, wake: Callable[[], object], failed: Callable[[BaseException], object]) -> None:
        self._wake = wake
        self._queue: SimpleQueue[tuple[LogFile, bytes, Callable[[], object] | None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._batched: dict[LogFile, None] = {}
        self._batched_at = 0.0
        run = threads.guarded(self._run, failed)
        self._thread = threading.Thread(target=run, name="elastic-log-writer", daemon=True)

    def start(self) -> None:
        """Start the thread. Raises NoThread. Idempotent."""
        if self._thread.ident is None:
            threads.start(self._thread, 0.0)

    def put(self, file: LogFile, data: bytes) -> None:
        """Have this written, soon."""
        with self._lock:
            file.waiting += len(data)
            file.is_full |= file.waiting > WAITING_MAX
        if not self._batched:
            self._batched_at = time.monotonic()
        self._batched[file] = None
        file.batch.append(data)
        file.batch_bytes += len(data)
        if file.batch_bytes >= BATCH_MAX:
            self._hand_over(file)

    @property
    def rest_s(self) -> float | None:
        """Return after how long without anything new `rest` is to be called; None: it has nothing to do."""
        return max(min(REST_S, self._batched_at + BATCH_S - time.monotonic()), 0.0) if self._batched else None

    def rest(self, is_idle: bool) -> None:
        """Have all written that was put, if nothing follows at once or it has waited long enough."""
        if self._batched and (is_idle or time.monotonic() >= self._batched_at + BATCH_S):
            for file in list(self._batched):
                self._hand_over(file)

    def _hand_over(self, file: LogFile) -> None:
        if self._batched.pop(file, file) is None:
            self._queue.put((file, b"".join(file.batch), None))
            file.batch, file.batch_bytes = [], 0

    def end(self, file: LogFile, then: Callable[[], object]) -> None:
        """Have the file closed behind what was put. The thread calls `then`, and wakes."""
        self._hand_over(file)
        self._queue.put((file, b"", then))

    def stop(self, ends_at: float) -> bool:
        """Write what there is, end the thread; return False if the disk keeps it beyond this time. Idempotent."""
        if self._thread.ident is not None:
            self._queue.put(None)
            self._thread.join(max(ends_at - time.monotonic(), 0.0))
        return not self._thread.is_alive()

    def _run(self) -> None:
        while asked := self._queue.get():
            file, data, then = asked
            if then:
                _close(file)
                then()
                self._wake()
            else:
                self._write(file, data)

    def _write(self, file: LogFile, data: bytes) -> None:
        fails = False
        if file.error is None:
            try:
                _written(file.descriptor, data)
            except OSError as error:
                file.error, fails = error, True
        with self._lock:
            file.waiting -= len(data)
            takes_more = file.is_full and file.waiting < WAITING_MAX // 2
            file.is_full &= not takes_more
        if fails or takes_more:
            self._wake()


def _written(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _close(file: LogFile) -> None:
    try:
        os.close(file.descriptor)
    except OSError as error:  # some file systems write only now
        file.error = file.error or error
