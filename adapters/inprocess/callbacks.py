"""Callbacks: what a callback is told, which ones a wrapper takes, and ready ones for common needs.

The names are those that users of nvidia-resiliency-ext know.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum
from typing import Any, TypeAlias

from attrs import frozen

from .outcomes import RestartAbort
from .parameters import at_least_one, count


class Mode(Enum):
    """This rank's part in the present iteration."""

    INITIALIZED = "initialized"
    """It has not been in an iteration yet."""
    ACTIVE = "active"
    """It calls the function."""
    INACTIVE = "inactive"
    """It is a reserve."""
    TERMINATED = "terminated"
    """It leaves."""


@frozen
class State:
    """This rank's place. `rank` and `world_size` count all ranks of the iteration, the active ones those that call the
    function.

    `fault` is the error that this rank's code raised in the iteration that is over; None if another rank failed.
    """

    rank: int
    world_size: int
    active_rank: int | None
    active_world_size: int
    initial_rank: int
    initial_world_size: int
    iteration: int = 0
    mode: Mode = Mode.INITIALIZED
    fault: BaseException | None = None

    @property
    def fn_exception(self) -> BaseException | None:
        """`fault`, by the name that nvidia-resiliency-ext gives it."""
        return self.fault

    def freeze(self) -> State:
        """Return the state, which is frozen already."""
        return self


Callback: TypeAlias = Callable[[State], object]


@frozen
class Callbacks:
    """A wrapper's callbacks. Each receives the state; its return value is ignored."""

    initialize: Callback | None = None
    abort: Callback | None = None
    finalize: Callback | None = None
    health_check: Callback | None = None
    completion: Callback | None = None
    terminate: Callback | None = None


class Compose:
    """Several callbacks as one, composed like functions: the last is called first. A value that it returns replaces the
    state for the one before it."""

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

    def each(self, state: State) -> None:
        """Call all of them in the same order, also if one fails: a clean-up runs to its end. Raises the first error."""
        with ExitStack() as rest:
            for callback in self._callbacks:
                rest.callback(callback, state)


class RetryController:
    """An `initialize` that gives the job up after so many iterations, or when too few ranks are left."""

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
    """Raised when this rank has failed too often."""


class FaultCounter:
    """A `health_check` that makes a rank leave whose own code has failed too often."""

    def __init__(self, max_rank_faults: int | None = None) -> None:
        self._max = count("max_rank_faults", max_rank_faults)
        self._faults = 0

    def __call__(self, state: State) -> None:
        self._faults += state.fault is not None
        if self._max is not None and self._faults > self._max:
            raise TooManyFaults(f"rank {state.initial_rank}: {self._faults} faults of its own, at most {self._max}")
