"""Rank filters, as nvidia-resiliency-ext had them until 0.4: what they take and return is a `State`, not a context."""

from __future__ import annotations

import abc

from . import rank_assignment
from .rank_assignment import RankAssignmentCtx
from .state import State


class RankFilter(abc.ABC):
    """A wrapper's `rank_filter`. It says which ranks are active, after `rank_assignment` has numbered them."""

    @abc.abstractmethod
    def __call__(self, state: State) -> State:
        """Return the state with its mode, its active rank and the active world size."""


class MaxActiveWorldSize(RankFilter):
    """Keeps at most this number of ranks active."""

    def __init__(self, max_active_world_size: int | None = None) -> None:
        self._same = rank_assignment.MaxActiveWorldSize(max_active_world_size)

    def __call__(self, state: State) -> State:
        return self._same(RankAssignmentCtx(state, None, set())).state


class ActiveWorldSizeDivisibleBy(RankFilter):
    """Keeps the largest multiple of this number active."""

    def __init__(self, divisor: int = 1) -> None:
        self._same = rank_assignment.ActiveWorldSizeDivisibleBy(divisor)

    def __call__(self, state: State) -> State:
        return self._same(RankAssignmentCtx(state, None, set())).state


class WorldSizeDivisibleBy(ActiveWorldSizeDivisibleBy):
    """The same, by its oldest name."""
