"""Spans and limits of restarts inside the process. What can not work together is refused at birth, naming both values.

The names are those of the constructor of nvidia-resiliency-ext's wrapper where it has them. Its intervals are accepted and
held to their relations, though nothing here polls.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

from attrs import Attribute, field, fields, frozen

RELATIONS = (
    ("soft_timeout", "hard_timeout"),
    ("hard_timeout", "barrier_timeout"),
    ("heartbeat_timeout", "barrier_timeout"),
    ("heartbeat_interval", "heartbeat_timeout"),
    ("monitor_thread_interval", "soft_timeout"),
    ("progress_watchdog_interval", "soft_timeout"),
    ("monitor_process_interval", "hard_timeout"),
    ("monitor_process_interval", "barrier_timeout"),
    ("monitor_process_interval", "completion_timeout"),
)
"""Of each pair the first must be below the second."""


class OnInterrupt(Enum):
    """What a KeyboardInterrupt on one rank means for the job."""

    CLOSE = "close"
    """Everybody stops."""
    LEAVE = "leave"
    """This rank goes, the others go on without it."""


def _span(instance: object, attribute: Attribute[float], value: float) -> None:
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{attribute.name}: a span above 0 seconds, not {value:g}")


def _span_or_zero(instance: object, attribute: Attribute[float], value: float) -> None:
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{attribute.name}: a span of 0 or more seconds, not {value:g}")


def _count_or_none(least: int) -> Any:
    def check(instance: object, attribute: Attribute[int | None], value: int | None) -> None:
        if value is not None and value < least:
            raise ValueError(f"{attribute.name}: at least {least}, or None for no limit, not {value}")

    return check


def _positive(default: float) -> Any:
    return field(default=default, validator=_span)


@frozen
class Settings:
    """All spans in seconds, on this process's own clock."""

    soft_timeout: float = _positive(60.0)
    """Without progress for so long, the function is interrupted and everybody starts again."""
    hard_timeout: float = _positive(90.0)
    """Without progress for so long, this process is killed."""
    heartbeat_timeout: float = _positive(30.0)
    """The silence after which the others hold this rank for dead."""
    barrier_timeout: float = _positive(120.0)
    """How long a world with too few ranks waits for more."""
    completion_timeout: float = _positive(120.0)
    """How long a rank whose function returned waits for the others before it ends the round."""
    heartbeat_interval: float = _positive(1.0)
    monitor_thread_interval: float = _positive(1.0)
    monitor_process_interval: float = _positive(1.0)
    progress_watchdog_interval: float = _positive(1.0)
    last_call_wait: float = field(default=0.0, validator=_span_or_zero)
    termination_grace_time: float = field(default=5.0, validator=_span_or_zero)
    """From SIGTERM to SIGKILL, when this process is killed."""
    unwind_timeout: float = _positive(30.0)
    """How long user code may take to end after it was asked to, whatever progress it makes."""
    abort_timeout: float = _positive(30.0)
    """How long `abort` may run; one that hangs longer is the end of this rank."""
    callback_timeout: float = _positive(60.0)
    """How long finalize, the health check, completion and terminate may run each."""
    leave_timeout: float = _positive(5.0)
    """How long a leaving rank waits for the register to know."""
    confirm_timeout: float = _positive(120.0)
    """How long a rank that asked for an end waits for the register's answer before it says that it does not know."""
    store_timeout: float = _positive(600.0)
    """How long a reserve waits for a store that is out of reach."""
    max_iterations: int | None = field(default=None, validator=_count_or_none(1))
    """Rounds that the function may be called in."""
    max_faults: int | None = field(default=None, validator=_count_or_none(0))
    """Faults that this rank may report before the job is given up."""
    max_repeats: int | None = field(default=None, validator=_count_or_none(0))
    """Times that the same failure of this rank may follow upon itself before the job is given up."""
    repeat_window: float = _positive(60.0)
    """User code that has run for so long got on: a failure after that repeats nothing."""
    on_interrupt: OnInterrupt = OnInterrupt.CLOSE

    def __attrs_post_init__(self) -> None:
        spans = {each.name: getattr(self, each.name) for each in fields(type(self))}
        for less, more in RELATIONS:
            if not spans[less] < spans[more]:
                raise ValueError(f"{less} ({spans[less]:g} s) must be below {more} ({spans[more]:g} s)")
