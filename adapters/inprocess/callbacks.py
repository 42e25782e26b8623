"""Callbacks that many wrappers use, by the names that users of nvidia-resiliency-ext know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .callback_state import State
from .outcomes import RestartAbort
from .parameters import at_least_one, count


class Compose:
    """Several callbacks as one, as functions compose: the last is called first, and what it returns, if anything, is what
    the one before it is told."""

    def __init__(self, *callbacks: Callable[[Any], Any]) -> None:
        for each in callbacks:
            if not callable(each):
                raise TypeError(f"Compose: {each!r} cannot be called")
        self._callbacks = callbacks

    def __call__(self, state: Any) -> Any:
        for each in reversed(self._callbacks):
            told = each(state)
            state = state if told is None else told
        return state


class RetryController:
    """To be given as `initialize`: the job is given up after so many iterations, or when too few ranks are left."""

    def __init__(
        self, max_iterations: int | None = None, min_world_size: int = 1, min_active_world_size: int = 1
    ) -> None:
        self._iterations_max = count("max_iterations", max_iterations)
        self._world_size_min = at_least_one("min_world_size", min_world_size)
        self._active_min = at_least_one("min_active_world_size", min_active_world_size)

    def __call__(self, state: State) -> None:
        if self._iterations_max is not None and state.iteration >= self._iterations_max:
            raise RestartAbort(f"iteration {state.iteration}: at most {self._iterations_max}")
        if state.world_size < self._world_size_min:
            raise RestartAbort(f"{state.world_size} ranks: at least {self._world_size_min}")
        if state.active_world_size < self._active_min:
            raise RestartAbort(f"{state.active_world_size} active ranks: at least {self._active_min}")


class TooManyFaults(RuntimeError):
    """This rank has had its share."""


class FaultCounter:
    """To be given as `health_check`: a rank whose own code has failed more often than that leaves."""

    def __init__(self, max_rank_faults: int | None = None) -> None:
        self._max = count("max_rank_faults", max_rank_faults)
        self._faults = 0

    def __call__(self, state: State) -> None:
        self._faults += state.fault is not None
        if self._max is not None and self._faults > self._max:
            raise TooManyFaults(f"rank {state.initial_rank}: {self._faults} faults of its own, at most {self._max}")
