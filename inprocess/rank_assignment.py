"""A wrapper's `rank_assignment`: it numbers the ranks of an iteration, and says which of them are active.

An assignment is written for one rank: it takes that rank's place and the numbers of the lost ranks, and returns the new
place. `assignments.py` makes a rank policy of it, which computes the places of all ranks on each of them.
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from .exception import RestartError
from .state import Mode, State
from .topology import Layer, LayerFlag

__all__ = [
    "ActivateAllRanks",
    "ActiveWorldSizeDivisibleBy",
    "FillGaps",
    "FilterCountGroupedByKey",
    "Layer",
    "LayerFlag",
    "MaxActiveWorldSize",
    "RankAssignment",
    "RankAssignmentCtx",
    "RankDiscarded",
    "RankFilter",
    "ShiftRanks",
    "Tree",
]


class RankDiscarded(RestartError):
    """Raised by an assignment: this rank is not to take part. It becomes a reserve."""


@dataclass
class RankAssignmentCtx:
    """What an assignment takes and returns: a rank's place, and the numbers of the lost ranks.

    There is no store to ask: all ranks compute the places of all, from what they said of themselves when they joined.
    """

    state: State
    store: Any
    terminated_ranks: set[int]


class RankAssignment(abc.ABC):
    """Numbers the ranks anew."""

    @abc.abstractmethod
    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        """Return the context with the new place, and with the lost ranks that are still to be dealt with. The result may
        depend on the context alone. Raises RankDiscarded."""


class RankFilter(RankAssignment):
    """Says which ranks are active, and leaves their numbers alone."""


class ActivateAllRanks(RankFilter):
    """Makes all ranks active."""

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        state = ctx.state
        active = {"active_rank": state.rank, "active_world_size": state.world_size}
        ctx.state = replace(state, mode=Mode.ACTIVE, **active)  # type: ignore[arg-type]
        return ctx


class MaxActiveWorldSize(RankFilter):
    """Keeps at most this number of ranks active."""

    def __init__(self, max_active_world_size: int | None = None) -> None:
        self.max_active_world_size = max_active_world_size

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        size, most = _active_world_size(ctx.state), self.max_active_world_size
        return _cut(ctx, size if most is None else min(size, most))


class ActiveWorldSizeDivisibleBy(RankFilter):
    """Keeps the largest multiple of this number active."""

    def __init__(self, divisor: int = 1) -> None:
        self.divisor = divisor

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        return _cut(ctx, _active_world_size(ctx.state) // self.divisor * self.divisor)


def _active_world_size(state: State) -> int:
    size = state.active_world_size
    return state.world_size if size is None else min(size, state.world_size)


def _cut(ctx: RankAssignmentCtx, size: int) -> RankAssignmentCtx:
    """Make this many of the first ranks active, and the others reserves."""
    rank = ctx.state.rank
    is_active = rank is not None and rank < size
    mode = Mode.ACTIVE if is_active else Mode.INACTIVE
    ctx.state = replace(ctx.state, mode=mode, active_rank=rank if is_active else None, active_world_size=size)
    return ctx


class ShiftRanks(RankAssignment):
    """Closes the gaps of lost ranks: all ranks after a gap move up."""

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        rank, lost = _kept(ctx)
        return _numbered(ctx, rank - sum(each < rank for each in lost))


class FillGaps(RankAssignment):
    """Closes the gaps of lost ranks: the last ranks move into them, and all others keep their numbers."""

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        rank, lost = _kept(ctx)
        size = ctx.state.world_size - len(lost)
        if rank < size:
            return _numbered(ctx, rank)
        before = sum(size <= each < rank for each in lost)  # of the numbers past the end
        return _numbered(ctx, lost[rank - size - before])


def _kept(ctx: RankAssignmentCtx) -> tuple[int, list[int]]:
    """Return this rank and the lost ones, in order. Raises RankDiscarded if this rank is one of them."""
    rank, lost = ctx.state.rank, sorted(ctx.terminated_ranks)
    if rank is None or rank in lost:
        raise RankDiscarded(f"rank {rank} is not to take part, nor are {', '.join(map(str, lost))}")
    return rank, lost


def _numbered(ctx: RankAssignmentCtx, rank: int) -> RankAssignmentCtx:
    ctx.state = replace(ctx.state, rank=rank, world_size=ctx.state.world_size - len(ctx.terminated_ranks))
    ctx.terminated_ranks = set()
    return ctx


class FilterCountGroupedByKey(RankAssignment):
    """Counts all ranks as lost whose group does not meet the condition: `condition` takes how many ranks of the group are
    left. An assignment that closes gaps comes after it.

    Each rank names its own group, by the place that it had in the last iteration. `timeout` is not needed: no rank waits.
    """

    def __init__(
        self,
        key_or_fn: str | Callable[[State], Any],
        condition: Callable[[int], bool],
        timeout: timedelta | float = 60.0,
    ) -> None:
        self.key_or_fn = key_or_fn
        self.condition = condition

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        """Ask the context's store for the groups' names (`get_keys`)."""
        if ctx.state.rank in ctx.terminated_ranks:
            return ctx
        keys = dict(enumerate(ctx.store.get_keys(range(ctx.state.world_size))))
        ctx.terminated_ranks = self.unfit(keys, ctx.terminated_ranks)
        return ctx

    def unfit(self, keys: Mapping[int, Any], lost: set[int]) -> set[int]:
        """Return the lost ranks, and all others whose group is not fit."""
        alive = {rank: str(key) for rank, key in keys.items() if rank not in lost}
        fit = {key for key, number in Counter(alive.values()).items() if self.condition(number)}
        return lost | {rank for rank, key in alive.items() if key not in fit}


class Tree(RankAssignment):
    """Numbers and activates the ranks by a topology, its widest layer first. No other assignment stands beside it.

    At first, ranks become active in their order while all their branches allow it. When ranks are lost, branches that are
    too small are lost with them. A lost active rank's place goes to a reserve of the nearest branch (RESERVE); else to the
    last active rank of the branch (BACKFILL); else the ranks after it move up. `world_size_filter` may make fewer active.
    """

    def __init__(self, layers: list[Layer], world_size_filter: Callable[[int], int] | None = None) -> None:
        """Raises ValueError without a layer."""
        if not layers:
            raise ValueError("Tree: one layer or more")
        self.layers = layers
        self.world_size_filter = world_size_filter

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        raise TypeError(
            "a Tree stands alone as rank_assignment: it places all ranks at once, and is not called for one"
        )
