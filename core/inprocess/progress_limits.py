"""The judgement of user code's progress: a pure function of its marks, its limits and the time.

The main thread leaves marks: at a `ping`, and when it enters or leaves a section. The driver and the monitor process read
them. All times and spans are in seconds, on the monotonic clock of one host.
"""

from __future__ import annotations

import math
from enum import Enum

from ..values import frozen
from .settings import Settings


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


class Alarm(Enum):
    SOFT = "soft"
    """Interrupt the function. All ranks start again."""
    HARD = "hard"
    """Kill the process."""


@frozen
class Watch:
    """The alarm that is due now, and when to look again if no mark comes before (inf: no need to)."""

    alarm: Alarm | None
    until: float


def guarded(settings: Settings) -> Limits:
    """Return the limits of a call."""
    return Limits(settings.soft_timeout, settings.hard_timeout)


def within(limits: Limits, section_s: float) -> Limits:
    """Return the limits in a section that may take `section_s`. The hard limit keeps its distance from the soft one."""
    if not section_s > 0:
        raise ValueError(f"section: a limit above 0 seconds, not {section_s:g}")
    distance = limits.hard_s - limits.soft_s if math.isfinite(limits.hard_s) else math.inf
    return Limits(section_s, section_s + distance)


def watched(marks: Marks, now: float) -> Watch:
    soft_at, hard_at = marks.at + marks.limits.soft_s, marks.at + marks.limits.hard_s
    if now >= hard_at:
        return Watch(Alarm.HARD, math.inf)
    if now >= soft_at:
        return Watch(Alarm.SOFT, hard_at)
    return Watch(None, soft_at)
