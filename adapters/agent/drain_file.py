"""A file whose appearance drains this node (--drain-file): a thread looks for it once in a second.

A look may hang with the file system that the file is on, so it has its own thread. The kernel announces no files of
network file systems, nor those that a container's runtime mounts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from .. import threads

LOOK_EVERY_S = 1.0


class DrainFile:
    """Calls `appeared` once, from its own thread, and `failed` with an error that ends the thread."""

    def __init__(
        self,
        path: str,
        appeared: Callable[[], None],
        failed: Callable[[BaseException], object],
        every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._path = path
        self._appeared = appeared
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=threads.guarded(self._run, failed), name="elastic-drain-file", daemon=True
        )

    def start(self) -> None:
        threads.start(self._thread)

    def close(self) -> None:
        """Look no longer. Nobody waits for a look that hangs. Idempotent."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            if os.path.lexists(self._path):
                self._appeared()
                return
            self._over.wait(self._every_s)
