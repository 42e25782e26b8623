"""A wrapper's `initialize`: what each iteration begins with. An Exception that it raises is a fault of its rank."""

from __future__ import annotations

import abc

from ..adapters.inprocess.rank.outcomes import RestartAbort
from ..adapters.inprocess.wrapper.parameters import at_least_one, count
from .state import FrozenState


class Initialize(abc.ABC):
    """Called at the start of each iteration, the first included."""

    @abc.abstractmethod
    def __call__(self, state: FrozenState) -> FrozenState:
        """Return the state, or another one for the next part of a `Compose`."""


class RetryController(Initialize):
    """Gives the job up after this many iterations, or when too few ranks are left: raises RestartAbort."""

    def __init__(
        self, max_iterations: int | None = None, min_world_size: int = 1, min_active_world_size: int = 1
    ) -> None:
        """Raises TypeError and ValueError."""
        self.max_iterations = count("max_iterations", max_iterations)
        self.min_world_size = at_least_one("min_world_size", min_world_size)
        self.min_active_world_size = at_least_one("min_active_world_size", min_active_world_size)

    def __call__(self, state: FrozenState) -> FrozenState:
        if self.max_iterations is not None and state.iteration >= self.max_iterations:
            raise RestartAbort(f"iteration {state.iteration}: at most {self.max_iterations}")
        if state.world_size < self.min_world_size:
            raise RestartAbort(f"{state.world_size} ranks: at least {self.min_world_size}")
        if state.active_world_size < self.min_active_world_size:
            raise RestartAbort(f"{state.active_world_size} active ranks: at least {self.min_active_world_size}")
        return state
