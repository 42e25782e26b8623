"""The spans and limits of restarts inside the process. Settings that cannot work together are refused at birth, by name.

The names are those of the constructor of nvidia-resiliency-ext's wrapper, where it has them. The intervals are accepted and
checked too, though nothing here polls.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from ..spans import span, span_or_zero
from ..values import field, fields, frozen

if TYPE_CHECKING:
    from attrs import Attribute

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
"""In each pair, the first span must be below the second."""


NO_MEMORY_MAX = 2
"""The same as `fresh_after`, at most, if memory is lacking: what holds it is mostly this very process."""


class OnInterrupt(Enum):
    """The effect of a KeyboardInterrupt on one rank."""

    CLOSE = "close"
    """The job ends, and all ranks stop."""
    LEAVE = "leave"
    """This rank leaves, and the others go on without it."""


def _count_or_none(least: int) -> Any:
    def check(instance: object, attribute: Attribute[int | None], value: int | None) -> None:
        if value is not None and value < least:
            raise ValueError(f"{attribute.name}: at least {least}, or None for no limit, not {value}")

    return check


def _positive(default: float) -> Any:
    return field(default=default, validator=span)


@frozen
class Settings:
    """The settings of one call. All spans are in seconds, on this process's own clock."""

    soft_timeout: float = _positive(60.0)
    """After this long without progress, the function is interrupted and all ranks start again."""
    hard_timeout: float = _positive(90.0)
    """After this long without progress, this process is killed."""
    heartbeat_timeout: float = _positive(30.0)
    """The silence after which the other ranks hold this one for dead."""
    barrier_timeout: float = _positive(120.0)
    """How long a world with too few ranks waits for more ranks."""
    completion_timeout: float = _positive(120.0)
    """How long a rank waits for the others after its function returned. Then it ends the round."""
    heartbeat_interval: float = _positive(1.0)
    monitor_thread_interval: float = _positive(1.0)
    monitor_process_interval: float = _positive(1.0)
    progress_watchdog_interval: float = _positive(1.0)
    last_call_wait: float = field(default=0.0, validator=span_or_zero)
    replace_wait: float = field(default=0.0, validator=span_or_zero)
    """How long the next world waits for the process that replaces this one, where one does."""
    termination_grace_time: float = field(default=5.0, validator=span_or_zero)
    """From SIGTERM to SIGKILL when this process is killed."""
    unwind_timeout: float = _positive(30.0)
    """How long user code may take to end after it was asked to. Progress does not extend it."""
    abort_timeout: float = _positive(30.0)
    """How long `abort` may run. If it hangs longer, this rank leaves."""
    callback_timeout: float = _positive(60.0)
    """How long each of finalize, the health check, completion and terminate may run."""
    leave_timeout: float = _positive(5.0)
    """How long a leaving rank waits until the register shows it."""
    confirm_timeout: float = _positive(120.0)
    """How long a rank that asked for an end waits for the register's answer. After that the outcome is unknown."""
    store_timeout: float = _positive(600.0)
    """How long a reserve waits for a store that is out of reach, and each rank for one that is starting."""
    max_iterations: int | None = field(default=None, validator=_count_or_none(1))
    """The number of rounds in which the function may be called."""
    max_faults: int | None = field(default=None, validator=_count_or_none(0))
    """How many failures this rank may report before it closes the job."""
    max_repeats: int | None = field(default=None, validator=_count_or_none(0))
    """How often the same failure of this rank may repeat in a row before it closes the job."""
    repeat_window: float = _positive(60.0)
    """User code that has run for this long has got on. A failure after that repeats no earlier one."""
    fresh_after: int | None = field(default=5, validator=_count_or_none(1))
    """How often in a row this rank may hang, or fail alike before any progress. A fresh process then takes over."""
    on_interrupt: OnInterrupt = OnInterrupt.CLOSE

    def __attrs_post_init__(self) -> None:
        spans = {each.name: getattr(self, each.name) for each in fields(type(self))}
        for less, more in RELATIONS:
            if not spans[less] < spans[more]:
                raise ValueError(f"{less} ({spans[less]:g} s) must be below {more} ({spans[more]:g} s)")
