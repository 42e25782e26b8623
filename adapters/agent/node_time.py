"""Keeps where the time of this node went (`core/goodput/`) while its agent runs, and tells it at the end.

It hears what the trace hears, in the same order. Of steps in which only time passes, such as heartbeats, it keeps the time.
The account takes the others while workers run, many at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ...core.group import Group, Phase, Settings, transition
from ...core.group.state import Beaten, Start
from ...core.rendezvous import Counted, Drawn, Heartbeats, Held, Passed, Proposals
from ...core.rendezvous import step as client_step
from ...core.rendezvous.exchange import ANSWERS, UNANSWERED
from ...core.world import Node
from ..clock import Clock
from ..report.news import Remark, Trace, TraceLost

if TYPE_CHECKING:
    from ...core.goodput import Ledger, Spent

_Read = TypeVar("_Read")
_Step: TypeAlias = tuple[Callable[..., object], tuple[Any, ...], Group | None]
"""A function of the core, what it was given and answered, and the worker group after a step of that."""
_IDLE = (Heartbeats, Counted, Proposals, Passed, Drawn)
_STEPS = 16
"""The account takes this many steps at once at a heartbeat while workers run."""
_STEPS_MAX = 64
"""It takes this many wherever the node stands: a step may hold a register of its own."""
_SHORT_S = 10.0
"""The time of a shorter part in a job is not told, unless its workers were started again."""


class NodeTime:
    """A trace that keeps the account of its agent, and passes each step to another trace."""

    def __init__(self, trace: Trace, group: Callable[[], Group]) -> None:
        """`group` returns the worker group as it stands. It is asked in the thread that takes its steps."""
        self._trace = trace
        self._group = group
        self._lock = threading.Lock()
        """Both hear the steps of all threads in one order."""
        self._steps: list[_Step] = []
        """The account has not taken these yet."""
        self._idle_at = 0.0
        """The time of the last step after these, if only time passed since."""
        self._is_silent = False
        """The store does not answer."""
        self._began: tuple[Node, float] | None = None
        self._starts = 0
        """How often workers were started."""
        self._ledger: Ledger | None = None
        self._lost: Callable[[Remark], None] = lambda remark: None
        self._on = True
        """False after an error of the account, which ends the account alone."""

    def begin(self, held: Held, settings: Settings, clock: Clock, lost: Callable[[TraceLost | Remark], None]) -> float:
        at = self._trace.begin(held, settings, clock, lost)
        self._began, self._lost = (held.who.node, at), lost
        return at

    def took(self, function: Callable[..., object], *given: Any) -> None:
        after = self._group() if function is transition else None
        with self._lock:
            self._trace.took(function, *given)
            if self._on:
                self._note(function, given, after)

    def end(self, patience_s: float | None = None) -> None:
        self._trace.end(patience_s)

    @property
    def starts(self) -> int:
        """How often workers were started."""
        return self._starts

    def totals(self, now: float) -> Mapping[tuple[str, str], int] | None:
        """Return the microseconds by bucket and cause, up to the last step; None for a short part without a restart."""
        return self._told(now, _totals)

    def spent(self, now: float) -> Spent | None:
        """Return the same for the node's record, with the time of a run apart that is not over."""
        return self._told(now, _spent)

    def _told(self, now: float, read: Callable[[Ledger], _Read]) -> _Read | None:
        """Return what is read of the ledger up to the last step; None for a short part without a restart, and after an
        error."""
        with self._lock:
            if self._began is None or (self._starts < 2 and now - self._began[1] < _SHORT_S):
                return None
            ledger = self._enter() if self._on else None
        try:
            return read(ledger) if ledger else None
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the account, the job goes on
            self._lose(error)
            return None

    def _lose(self, error: Exception) -> None:
        self._on, self._ledger = False, None
        self._lost(Remark(f"where the time of this node went is not told: {type(error).__name__}: {error}"))

    def _note(self, function: Callable[..., object], given: tuple[Any, ...], after: Group | None) -> None:
        if self._is_idle(given, after):
            self._idle_at = max(self._idle_at, given[-1] if after else given[1])
        else:
            self._put_idle()
            self._steps.append((function, given, after))
            self._starts += function is Start
        waiting = len(self._steps)
        if (waiting >= _STEPS and _is_calm(given, after)) or waiting >= _STEPS_MAX:
            self._enter()

    def _is_idle(self, given: tuple[Any, ...], after: Group | None) -> bool:
        """Return True if only time passes in this step: a heartbeat of workers that run, or a client that hears no register
        while its store answers."""
        if after:
            return _is_calm(given, after)
        fed, was_silent = given[0], self._is_silent
        self._is_silent = isinstance(fed, UNANSWERED) or (was_silent and not isinstance(fed, ANSWERS))
        return isinstance(fed, _IDLE) and not was_silent

    def _put_idle(self) -> None:
        if self._idle_at:
            self._steps.append((client_step, (Passed(), self._idle_at, None), None))
            self._idle_at = 0.0

    def _enter(self) -> Ledger | None:
        """Let the account take what waits for it. An error costs the account, and not the job: a host may lack the file
        descriptor that an import takes."""
        assert self._began
        self._put_idle()
        try:
            from ...core.goodput import Ledger, kept, opened  # a short job needs none of it
            from ...core.trace.steps import STEPS

            ledger = self._ledger or Ledger(opened(*self._began))
            self._ledger = kept(ledger, ((STEPS[function](*given), after) for function, given, after in self._steps))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the account, the job goes on
            self._lose(error)
        self._steps.clear()
        return self._ledger


def _is_calm(given: tuple[Any, ...], after: Group | None) -> bool:
    """Return True for a heartbeat of workers that run, in which nothing happens. At other steps of running workers their
    start may be next, and it does not wait until the account is imported."""
    return after is not None and after.phase is Phase.RUNNING and isinstance(given[0], Beaten) and not given[1]


def _totals(ledger: Ledger) -> Mapping[tuple[str, str], int]:
    from ...core.goodput import by_kind, whole

    return {(bucket, kind.value): spent for (bucket, kind), spent in by_kind(whole(ledger)).items()}


def _spent(ledger: Ledger) -> Spent:
    from ...core.goodput import spent

    return spent(ledger)
