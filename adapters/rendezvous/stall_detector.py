"""Whether this process stood still, stopped or suspended or starved, for so long that others may have gone on without it.

A thread that asks nothing of anybody looks at the clocks; whoever wants to know looks too, so whichever wakes first notices.
To wait for a store that does not answer is not to sleep: that thread goes on looking meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LOOKS = 4
"""How often within the longest gap."""


class StallDetector:
    """`longest_s` is the gap that counts as sleep. The clocks are seconds: one that stands still while the machine is
    suspended, and one that does not."""

    def __init__(
        self,
        longest_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        boottime: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._longest_s = longest_s
        self._clocks = monotonic, boottime
        self._lock = threading.Lock()
        self._looked_at = [clock() for clock in self._clocks]
        self._has_stalled = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="elastic-stall-detector", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Idempotent."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def stalled(self) -> bool:
        """Whether it stood still since this was last asked."""
        with self._lock:
            self._look()
            slept, self._has_stalled = self._has_stalled, False
            return slept

    def _run(self) -> None:
        while not self._stopped.wait(min(self._longest_s / _LOOKS, threading.TIMEOUT_MAX)):
            with self._lock:
                self._look()

    def _look(self) -> None:
        now = [clock() for clock in self._clocks]
        self._has_stalled |= any(at - before > self._longest_s for at, before in zip(now, self._looked_at, strict=True))
        self._looked_at = now
