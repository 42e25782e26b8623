"""The deadlines of a call on its driver's clock: when each began, which have passed, and how long to sleep.

A deadline runs from the moment at which `deadlines(call)` first lists it, and ends when it is no longer listed. The soft and
the hard deadline run from the last mark of progress, if that is later, and by the limits that hold there. MOVING passes
with a mark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..values import evolve, frozen
from .progress_limits import Marks, stood_still
from .state import Call, deadlines
from .words import Deadline, Elapsed, Timer


@frozen
class Timers:
    """When each deadline began; inf: it has passed, and its event was posted."""

    began_at: Mapping[Deadline, float]


IDLE = Timers({})


def running(timers: Timers, call: Call, now: float) -> Timers:
    """Return the timers after a step of the call."""
    return Timers({deadline: timers.began_at.get(deadline, now) for deadline in deadlines(call)})


def until(timers: Timers, marks: Marks | None = None) -> float:
    """Return when the next deadline passes; inf: none runs."""
    return min((_at(timers, each, marks) for each in timers.began_at), default=math.inf)


def unwind_at(timers: Timers) -> float:
    """Return when the process is killed unless its span has ended by then; inf: that limit does not run."""
    runs = (each for each in timers.began_at.items() if each[0].timer is Timer.UNWIND)
    return min((began_at + each.after_s for each, began_at in runs), default=math.inf)


def passed(timers: Timers, now: float, marks: Marks | None = None) -> tuple[Timers, tuple[Elapsed, ...]]:
    """Return the events that are due now, the earliest first. Each deadline is told once."""
    passed_at = {each: _at(timers, each, marks) for each in timers.began_at}
    late = sorted((each for each in passed_at if passed_at[each] <= now), key=lambda each: passed_at[each])
    rung = evolve(timers, began_at={**timers.began_at, **dict.fromkeys(late, math.inf)})
    return rung, tuple(Elapsed(each) for each in late)


def resumed(timers: Timers, meant_at: float, now: float) -> Timers:
    """Return the timers of a driver that meant to look by `meant_at`.

    If the driver has stood still since then, the limits of progress begin anew.
    """
    if not stood_still(meant_at, now):
        return timers
    return Timers({each: _anew(each, began_at, now) for each, began_at in timers.began_at.items()})


def _anew(deadline: Deadline, began_at: float, now: float) -> float:
    """Return when a deadline begins after a standstill. One that has passed does not begin again."""
    return now if deadline.timer in (Timer.SOFT, Timer.HARD) and began_at < math.inf else began_at


def _at(timers: Timers, deadline: Deadline, marks: Marks | None) -> float:
    began_at = timers.began_at[deadline]
    match deadline.timer:
        case Timer.SOFT if marks:
            return max(began_at, marks.at) + marks.limits.soft_s
        case Timer.HARD if marks:
            return max(began_at, marks.at) + marks.limits.hard_s
        case Timer.MOVING if not marks or marks.at < began_at + deadline.after_s:
            return math.inf
        case _:
            return began_at + deadline.after_s
