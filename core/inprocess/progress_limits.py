"""The limits of user code's progress, and the marks by which it is judged.

The main thread leaves marks: at a `ping`, and when it enters or leaves a section. The driver and the monitor process read
them. All times and spans are in seconds, on the monotonic clock of one host.
"""

from __future__ import annotations

import math

from ..values import frozen
from .settings import Settings
from .words import GUARDED, Span


@frozen
class Limits:
    """How long user code may go without a mark; inf: without limit."""

    soft_s: float
    hard_s: float


STOOD_STILL_S = 1.0
"""An observer that looks so much later than it meant to has stood still, and most likely its whole host has: the machine was
moved, or its processes were stopped. Then user code is not blamed for the time that it did not have."""


def stood_still(meant_at: float, now: float) -> bool:
    """Return True if an observer that meant to look by `meant_at`, and looks now, has stood still."""
    return now > meant_at + STOOD_STILL_S


UNGUARDED = Limits(math.inf, math.inf)
"""The limits while hang protection is off."""


@frozen
class Marks:
    """The last mark of user code, or its beginning, and the limits that hold from there."""

    at: float
    limits: Limits


def guarded(settings: Settings) -> Limits:
    """Return the limits of a call."""
    return Limits(settings.soft_timeout, settings.hard_timeout)


def of_span(settings: Settings, span: Span | None) -> Limits:
    """Return the limits by which the monitor process judges a span. One whose progress does not count has those of a
    callback."""
    callback_s = settings.callback_timeout + settings.unwind_timeout
    return guarded(settings) if span in GUARDED else Limits(math.inf, callback_s)


def within(limits: Limits, section_s: float) -> Limits:
    """Return the limits in a section that may take `section_s`. The hard limit keeps its distance from the soft one."""
    if not section_s > 0:
        raise ValueError(f"section: a limit above 0 seconds, not {section_s:g}")
    distance = limits.hard_s - limits.soft_s if math.isfinite(limits.hard_s) else math.inf
    return Limits(section_s, section_s + distance)
