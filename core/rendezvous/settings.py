"""The spans and limits by which handlers decide. A value that cannot work is refused at birth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..backoff import pause_s
from ..spans import span, span_or_never, span_or_zero
from ..values import field, frozen
from .state import COOLDOWN_MAX_S, Failing, Limits

if TYPE_CHECKING:
    from attrs import Attribute


def _positive(default: float) -> Any:
    return field(default=default, validator=span)


FAILURES_MAX = 1_000
"""The highest number of failures that a `FailureLimit` may allow."""


@frozen
class FailureLimit:
    """How often a node may fail: with this many failures of its own within this many seconds it is set aside, if the others
    suffice. Its first cool-down is as long, and each further one twice as long as the last. One that `leaves` is unfit
    instead, whether the others suffice or not."""

    failures: int = field()
    within: float = field(validator=span)
    leaves: bool | None = None
    """A trace leaves out None: it is set aside."""

    @failures.validator
    def _is_small(self, attribute: Attribute[int], value: int) -> None:
        if not 1 <= value <= FAILURES_MAX:
            raise ValueError(f"failures: 1 to {FAILURES_MAX}, not {value}")

    def told(self, failures: int, asides: int) -> Failing:
        """Return what a node tells: how often it has failed within the window, and how often it was set aside before."""
        cooldown_s = pause_s(asides + 1, self.within, COOLDOWN_MAX_S)
        return Failing(failures, cooldown_s if failures >= self.failures and not self.leaves else 0.0)

    def is_over(self, failed_at: Sequence[float]) -> bool:
        """Return True if a node leaves whose last failures were at these times."""
        last = failed_at[-self.failures :]
        return bool(self.leaves) and len(last) == self.failures and last[-1] - last[0] <= self.within


class Comparison(Enum):
    """Says what of a newcomer's program must be as the others of its role have it."""

    NONE = "false"
    NAME = "true"
    """Its name."""
    ARGUMENTS = "arguments"
    """Its name; and its arguments, where a job of others would have no seat for it."""


@frozen
class Settings:
    """The settings of a rendezvous. All spans are in seconds, on this node's own clock.

    The spans of torch's c10d rendezvous have its names and meanings. Torch's defaults for the last call (30 s) and for
    heartbeats (5 s, three attempts) are longer.
    """

    limits: Limits = Limits()
    join_timeout: float = _positive(600.0)
    """The longest wait for a complete round. A spare waits without limit."""
    last_call_timeout: float = field(default=5.0, validator=span_or_zero)
    """How long a round with its minimum of nodes waits for more, up to the maximum."""
    first_call_timeout: float | None = field(default=None)
    """The last call of a job's first world, if the number of nodes (the maximum) is known; None: `last_call_timeout`."""
    close_timeout: float = _positive(5.0)
    first_target: int = field(default=0)
    """How many nodes the job's first round waits for without a last call, where the maximum is no such number; 0: the
    maximum."""
    keep_alive_interval: float = _positive(1.0)
    keep_alive_max_attempt: int = field(default=5)
    """How many heartbeats may be missed. A node is dead after a silence of this many intervals (the TTL)."""
    leave_timeout: float = _positive(5.0)
    overdue_timeout: float = _positive(45.0)
    """How long a member of the last world may take to come back: more than the grace of its workers."""
    upscale_after: float = field(default=1.0, validator=span_or_zero)
    """How long a newcomer waits before the running round ends for it."""
    party_timeout: float = _positive(10.0)
    """How long a newcomer waits for the rest of its party before the running round ends for it alone."""
    replace_timeout: float = field(default=0.0, validator=span_or_zero)
    """How long a dead process's seat is kept for the process that replaces it."""
    patience: float = _positive(0.6)
    """How long a due chore may stay undone before the next node does it."""
    barrier_timeout: float = field(default=math.inf, validator=span_or_never)
    """How long a DONE node waits at the exit barrier before it leaves. The launcher waits without limit."""
    helping_above: int = field(default=8)
    """When more nodes than this have the same to write, they propose, and one writes for all."""
    helping_patience: float = field(validator=span)
    """How long a node that has proposed leaves it to the others to write for all; by default `patience`."""
    same_program: Comparison = Comparison.NAME
    """Says by what a newcomer's program is compared with those of its role."""
    max_node_failures: FailureLimit | None = None
    """How often a node may be the first cause of a failure before it is set aside, or leaves; None: as often as the job may
    restart."""
    progress_after: float = _positive(300.0)
    """A complete round that is this old makes progress: the fruitless rounds before it count no longer."""
    leased: bool = False
    """The store ends the heartbeat of a silent node by itself. So a heartbeat that exists is a sign of life."""

    @first_call_timeout.validator
    def _span_if_any(self, attribute: Attribute[float | None], value: float | None) -> None:
        if value is not None:
            span_or_zero(self, attribute, value)  # type: ignore[arg-type]

    @first_target.validator
    def _not_above_max(self, attribute: Attribute[int], value: int) -> None:
        if not 0 <= value <= self.limits.max_nodes:
            raise ValueError(f"first_target: 0 to {self.limits.max_nodes} (max_nodes), not {value}")

    @keep_alive_max_attempt.validator
    def _two_beats(self, attribute: Attribute[int], value: int) -> None:
        if value < 2:
            raise ValueError(f"keep_alive_max_attempt: at least 2, or one late heartbeat is a death; not {value}")

    @helping_patience.default
    def _as_for_chores(self) -> float:
        return self.patience

    @helping_above.validator
    def _above_one(self, attribute: Attribute[int], value: int) -> None:
        if value < 1:
            raise ValueError(f"{attribute.name}: at least 1, since nobody helps a single node; not {value}")

    ttl: float = field(init=False, eq=False, repr=False)
    """The silence after which a node is dead."""

    @ttl.default
    def _missed_beats(self) -> float:
        return self.keep_alive_interval * self.keep_alive_max_attempt
