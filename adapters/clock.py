"""The world's side of time: the one place that reads clocks, so that a test can hand in its own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """This host's time."""

    def now(self) -> float:
        """Monotonic seconds: what is decided by."""

    def wall(self) -> float:
        """Seconds since 1970: what names an incarnation."""

    def wall_text(self) -> str:
        """The local time of day, for people."""


class SystemClock:
    """The kernel's clocks."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def wall_text(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S")


POLL_MAX_S = 2_000_000.0
"""The kernel counts the milliseconds of a poll in 31 bits."""


def poll_ms(span_s: float) -> float:
    """A span as `poll` takes it; of one that is longer than it can wait, a part."""
    return min(max(span_s, 0.0), POLL_MAX_S) * 1000
