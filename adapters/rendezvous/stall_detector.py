"""Detect that this process stood still (stopped, suspended or starved) so long that others may have gone on without it.

A thread that waits for nobody reads the clocks. `stalled` reads them too, so the first thread that wakes notices the gap. A
wait for a store that does not answer is no stall: the thread reads the clocks meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .. import threads

_LOOKS = 4
"""How often the thread reads the clocks within the longest gap."""


class StallDetector:
    """A gap of more than `longest_s` counts as a stall. The clocks count seconds: one stands still while the machine is
    suspended, one does not. `failed` is called with an error that ends the thread."""

    def __init__(
        self,
        longest_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        boottime: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        failed: Callable[[BaseException], object] = threads.shown,
    ) -> None:
        self._longest_s = longest_s
        self.looks_every_s = min(longest_s / _LOOKS, threading.TIMEOUT_MAX)
        self._clocks = monotonic, boottime
        self._lock = threading.Lock()
        self._looked_at = [clock() for clock in self._clocks]
        self._stalled_s = 0.0
        self._stopped = threading.Event()
        run = threads.guarded(self._run, failed)
        self._thread = threading.Thread(target=run, name="elastic-stall-detector", daemon=True)

    def start(self) -> None:
        """Begin to read the clocks. Raises NoThread."""
        threads.start(self._thread)

    def stop(self) -> None:
        """Idempotent."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def stalled(self) -> float:
        """Return for how many seconds the process stood still since the last call, the longest time; 0 if it did not."""
        with self._lock:
            self._look()
            slept_s, self._stalled_s = self._stalled_s, 0.0
            return slept_s

    def _run(self) -> None:
        while not self._stopped.wait(self.looks_every_s):
            with self._lock:
                self._look()

    def _look(self) -> None:
        now = [clock() for clock in self._clocks]
        gap_s = max(at - before for at, before in zip(now, self._looked_at, strict=True))
        if gap_s > self._longest_s:
            self._stalled_s = max(self._stalled_s, gap_s)
        self._looked_at = now
