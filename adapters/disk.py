"""Files on a disk that may stand still: on NFS or Lustre a call returns when the server answers, and no signal ends it.

A thread makes, opens and removes the files, and callers wait for PATIENCE_S. After that the disk *stands still*: callers get
an OSError, as from a full disk, and the next callers get it at once, until the disk has answered. A call that was given up
is still carried out: `late` then gets its result, such as a descriptor to close.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from ..core.values import define, field
from . import threads

PATIENCE_S = 2.0
"""How long a caller waits for a disk."""
END_S = 5.0
"""How long the end of a job waits for all disks together."""
_FLOOR_S = 1.0
"""The shortest wait for a disk, also if another one has used up the time."""

Made = TypeVar("Made")


class StandsStill(OSError):
    """The disk has not answered in time."""

    def __init__(self, patience_s: float) -> None:
        super().__init__(errno.ETIMEDOUT, f"has not answered for {patience_s:.0f} s")


class Patience:
    """A span that several waits share. Only the time that they take is subtracted from it."""

    def __init__(self, span_s: float = END_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._left_s = span_s
        self._clock = clock

    def spend(self, wait: Callable[[float], Made]) -> Made:
        """Return what this returns. It is called with the time that it may wait."""
        began = self._clock()
        try:
            return wait(max(self._left_s, _FLOOR_S))
        finally:
            self._left_s -= self._clock() - began


@define(eq=False)
class _Call(Generic[Made]):
    work: Callable[[], Made]
    late: Callable[[Made], object]
    made: list[Made] = field(factory=list)
    error: BaseException | None = None
    is_given_up: bool = False
    lock: threading.Lock = field(factory=threading.Lock)
    done: threading.Event = field(factory=threading.Event)

    def run(self) -> None:
        try:
            self.made.append(self.work())
        except BaseException as error:  # noqa: BLE001 the caller gets it, and the thread goes on
            self.error = error
        with self.lock:
            self.done.set()
        if self.is_given_up:
            with suppress(Exception):  # nobody waits for it
                for each in self.made:
                    self.late(each)


class Disk:
    """One disk, with a thread that starts with the first call. Any thread may call and close."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._queue: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        """The queue of this thread. The next thread has another one."""
        self._last: _Call[Any] | None = None
        """The call that was put last."""
        self._unanswered: _Call[Any] | None = None
        """The last call that was put before a caller gave up. The disk stands still until it has answered this one."""

    def do(
        self,
        work: Callable[[], Made],
        late: Callable[[Made], object] = lambda made: None,
        patience_s: float = PATIENCE_S,
    ) -> Made:
        """Return what this makes. Raises what it raises, and StandsStill. A host without a thread does it here."""
        if self._stands_still():
            raise StandsStill(patience_s)
        call = _Call(work, late)
        self._put(call)
        call.done.wait(patience_s)
        with self._lock, call.lock:
            if not call.done.is_set():
                call.is_given_up = True
                self._unanswered = self._last
                raise StandsStill(patience_s)
        if call.error:
            raise call.error
        return call.made[0]

    def later(self, work: Callable[[], object]) -> None:
        """Do this after all earlier calls, and wait for nothing. Its error is ignored."""
        self._put(_Call(work, lambda made: None))

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """End the thread, and wait for that; a disk that stands still keeps it. The next call starts another one."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread:
                self._queue.put(None)
        if thread:
            thread.join(0.0 if self._stands_still() else patience_s)

    def _stands_still(self) -> bool:
        return self._unanswered is not None and not self._unanswered.done.is_set()

    def _put(self, call: _Call[Any]) -> None:
        with self._lock:
            if has_thread := self._has_thread():
                self._queue.put(call)
                self._last = call
        if not has_thread:
            call.run()

    def _has_thread(self) -> bool:
        """Start the thread if there is none. Return False if this host has none left."""
        if self._thread is None:
            self._queue = SimpleQueue()
            thread = threading.Thread(target=_run, args=(self._queue,), name="elastic-disk", daemon=True)
            try:
                threads.start(thread, patience_s=0.0)
            except threads.NoThread:
                return False
            self._thread = thread
        return True


def _run(queue: SimpleQueue[_Call[Any] | None]) -> None:
    while call := queue.get():
        call.run()


def once(work: Callable[[], Made], late: Callable[[Made], object] = lambda made: None) -> Made:
    """Do one thing on a disk of its own. Raises what it raises, and StandsStill."""
    disk = Disk()
    try:
        return disk.do(work, late)
    finally:
        disk.close()
