"""Reads the output of dead workers in a separate thread: logs take time, and the agent's own thread has none to spare.

The thread starts with the first end that is to be read. Ends that come together wait for the workers' output once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from .. import threads

_DRAIN_TIMEOUT_S = 0.1
"""The ends that are to be read wait this long for the workers' output."""
_JOIN_TIMEOUT_S = 5.0

Read = Callable[[bool], None]
"""Reads one end. It is given True if the workers' output is in their logs."""


class EndReader:
    """`drain` waits until the workers' output is in their logs. `failed` is called with an error that ends the thread."""

    def __init__(self, drain: Callable[[float], bool], failed: Callable[[BaseException], object]) -> None:
        self._drain = drain
        self._queue: SimpleQueue[Read | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=threads.guarded(self._run, failed), name="elastic-end-reader", daemon=True
        )

    def submit(self, read: Read) -> None:
        """Have this end read. Raises NoThread."""
        if self._thread.ident is None:
            threads.start(self._thread, 0.0)
        self._queue.put(read)

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT_S)

    def _run(self) -> None:
        while read := self._queue.get():
            batch = [read, *self._posted()]
            is_whole = self._drain(_DRAIN_TIMEOUT_S)
            for each in batch:
                each(is_whole)

    def _posted(self) -> list[Read]:
        """Return what else is to be read by now. The word to end stays in the queue."""
        found: list[Read] = []
        while not self._queue.empty():
            if (read := self._queue.get()) is None:
                self._queue.put(None)
                break
            found.append(read)
        return found
