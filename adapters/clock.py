"""Time: the one place that reads clocks, so that a test can hand in its own."""

from __future__ import annotations

import os
import time
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The clocks of this host."""

    def now(self) -> float:
        """Return monotonic seconds, which decisions use."""

    def wall(self) -> float:
        """Return seconds since 1970, which name an incarnation."""

    def wall_text(self) -> str:
        """Return the time of day by ISO 8601, with this host's zone: for people and for records, which decide nothing."""


class SystemClock:
    """The kernel's clocks."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def wall_text(self) -> str:
        return iso(time.time())


def iso(at: float) -> str:
    """Return a time in Unix seconds by ISO 8601, with this host's zone: 2026-01-01T13:05:40.123+01:00."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="milliseconds")


_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot() -> str:
    """Return the id that this host has kept, with its monotonic clock, since its start."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return os.urandom(16).hex()


_POLL_MAX_S = 2_000_000.0
"""The kernel counts the milliseconds of a poll in 31 bits."""


def poll_ms(span_s: float) -> float:
    """Return a span as `poll` takes it; it is cut off where `poll` cannot wait longer."""
    return min(max(span_s, 0.0), _POLL_MAX_S) * 1000
