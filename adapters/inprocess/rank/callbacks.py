"""Callbacks: what a callback is told, and which ones a wrapper takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from ....core.values import frozen


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


@dataclass(frozen=True)
class State:
    """This rank's place. `rank` and `world_size` count all ranks of the iteration, the active ones those that call the
    function.

    `fn_exception` is the error that this rank's code raised in the iteration that is over; None if another rank failed. It
    is a dataclass, since users' code may ask `dataclasses` for its fields. Only a state that a program makes lacks places.
    """

    rank: int
    world_size: int
    active_rank: int | None = None
    active_world_size: int = None  # type: ignore[assignment]
    initial_rank: int = None  # type: ignore[assignment]
    initial_world_size: int = None  # type: ignore[assignment]
    iteration: int = 0
    mode: Mode = Mode.INITIALIZED
    fn_exception: BaseException | None = None

    @property
    def fault(self) -> BaseException | None:
        """`fn_exception`, by its shorter name."""
        return self.fn_exception

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


class Composed:
    """Several callbacks as one."""

    def __call__(self, *arguments: Any) -> Any:
        """Call all of them."""
        raise NotImplementedError

    def each(self, *arguments: Any) -> Any:
        """Call all of them, also if one fails: a clean-up runs to its end. Raises the first error."""
        raise NotImplementedError
