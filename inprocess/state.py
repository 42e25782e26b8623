"""A rank's place, as callbacks and rank assignments see it: `State`, and `FrozenState`, which nobody can change."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..adapters.inprocess.rank.callbacks import Mode
from ..adapters.inprocess.rank.callbacks import State as FrozenState

__all__ = ["FrozenState", "Mode", "State"]


@dataclass
class State:
    """The place of one rank, for a rank assignment to change. `FrozenState` says what the fields mean."""

    rank: int | None
    world_size: int
    active_rank: int | None = None
    active_world_size: int | None = None
    initial_rank: int | None = None
    initial_world_size: int | None = None
    iteration: int = 0
    mode: Mode = Mode.INITIALIZED
    fn_exception: BaseException | None = None

    def __post_init__(self) -> None:
        if self.initial_rank is None:
            self.initial_rank = self.rank
        if self.initial_world_size is None:
            self.initial_world_size = self.world_size

    @classmethod
    def from_env(cls) -> State:
        """Return the place that RANK and WORLD_SIZE name, or the only one."""
        return cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))

    def set_distributed_vars(self) -> None:
        """Set RANK and WORLD_SIZE to this rank's active place."""
        os.environ.update(RANK=str(self.active_rank), WORLD_SIZE=str(self.active_world_size))

    def advance(self) -> None:
        """Go to the next iteration."""
        self.iteration += 1
        self.fn_exception = None

    def freeze(self) -> FrozenState:
        """Return the same place, which nobody can change."""
        place: dict[str, Any] = asdict(self)
        return FrozenState(**place)

    def copy_from(self, other: Any, fields: Iterable[str] | None = None) -> None:
        """Take these fields of another place, by default all."""
        for name in _NAMES if fields is None else fields:
            setattr(self, name, getattr(other, name))


_NAMES = tuple(each.name for each in fields(State))
