"""Whether user code makes progress: a pure function of its marks, its limits and now.

The main thread leaves marks (`ping`, entering and leaving a section); its own process and the monitor process look at them.
All points and spans in seconds, on one host's monotonic clock.
"""

from __future__ import annotations

import math
from enum import Enum

from attrs import frozen

from .settings import Settings


@frozen
class Limits:
    """How long user code may go without a mark; inf: for ever."""

    soft_s: float
    hard_s: float


STOOD_STILL_S = 1.0
"""Who looks so much later than it meant to has stood still, and most likely its whole host: a machine that was moved,
processes that were stopped. What nobody could do meanwhile is held against nobody."""


def stood_still(meant_at: float, now: float) -> bool:
    """Who meant to look at `meant_at`, at the latest, and looks now."""
    return now > meant_at + STOOD_STILL_S


UNGUARDED = Limits(math.inf, math.inf)
"""While hang protection is off."""


@frozen
class Marks:
    """Where user code stands: its last mark (or its beginning) was at `at`, and these limits hold from there."""

    at: float
    limits: Limits


class Alarm(Enum):
    SOFT = "soft"
    """Interrupt the function; everybody starts again."""
    HARD = "hard"
    """Kill the process."""


@frozen
class Watch:
    """What to do now, and when to look again if nothing moves meanwhile (inf: no need to)."""

    alarm: Alarm | None
    until: float


def guarded(settings: Settings) -> Limits:
    """The limits of a call."""
    return Limits(settings.soft_timeout, settings.hard_timeout)


def within(limits: Limits, section_s: float) -> Limits:
    """The limits in a section that may take so long; the hard one keeps its distance."""
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
