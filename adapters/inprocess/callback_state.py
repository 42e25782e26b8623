"""What callbacks are told: where this rank stands, and what went wrong. A frozen value with the names that users know."""

from __future__ import annotations

from enum import Enum

from attrs import frozen


class Mode(Enum):
    """What this rank is to do in the present iteration."""

    INITIALIZED = "initialized"
    """It has not been in one yet."""
    ACTIVE = "active"
    """It calls the function."""
    INACTIVE = "inactive"
    """It is a reserve."""
    TERMINATED = "terminated"
    """It leaves."""


@frozen
class State:
    """`rank` and `world_size` count all ranks of the iteration, the active ones only those that call the function.

    `fault` is what this rank's own code raised in the iteration that is over: None if it was another rank's fault.
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
        """The same, by the name that nvidia-resiliency-ext gives it."""
        return self.fault

    def freeze(self) -> State:
        """It is frozen already."""
        return self
