"""The tree of `rank_assignment.Tree`: ranks as leaves, grouped by one key per layer, and what becomes of them when some are
lost. Nothing here knows a wrapper, a store or a process."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from heapq import nlargest
from typing import Any

from ..core.values import define, field
from .state import State

Path = tuple[str, ...]


class LayerFlag(Flag):
    """Where a lost active rank's replacement is looked for."""

    RESERVE = auto()
    """Among the reserves of the branches of this layer."""
    BACKFILL = auto()
    """Among the active ranks of the branches of this layer: the last one takes the place."""


@dataclass
class Layer:
    """One level of a topology. `key_or_fn` names the branch of a rank, or returns the name for the rank's state.

    A branch with fewer than `min_ranks` ranks left is given up. At most `max_ranks` ranks of a branch are active at first.
    """

    min_ranks: int = 1
    max_ranks: int | None = None
    key_or_fn: str | Callable[[State], Any] = ""
    flag: LayerFlag | None = None

    def allows(self, flag: LayerFlag) -> bool:
        return self.flag is not None and flag in self.flag


@define
class Leaf:
    """One rank: `home` is its first number, `rank` its present one, `active` its place among the active ranks, if any."""

    home: int
    path: Path
    rank: int
    active: int | None = None
    is_lost: bool = False


@define
class Topology:
    """The leaves in the order of the tree: the ranks of one branch are neighbours."""

    layers: tuple[Layer, ...]
    leaves: list[Leaf]
    active_world_size: int = 0
    idle: list[Leaf] = field(factory=list)
    """The reserves. The last one is the first to replace a rank."""

    @classmethod
    def grown(cls, layers: Sequence[Layer], ranks: Mapping[int, Sequence[str]]) -> Topology:
        """Return the tree of these ranks, by the names of their branches from the root on. Raises RuntimeError if there
        is more than one root."""
        roots = sorted({str(names[0]) for names in ranks.values()})
        if len(roots) > 1:
            raise RuntimeError(f"Tree: all ranks share the key of the first layer, not {', '.join(roots)}")
        leaves = [Leaf(rank, tuple(map(str, names[1:])), rank) for rank, names in sorted(ranks.items())]
        first = _firsts(leaves)
        leaves.sort(key=lambda leaf: [first[leaf.path[:depth]] for depth in range(1, len(leaf.path) + 1)])
        made = cls(tuple(layers), leaves)
        made._activate()
        return made

    def lose(self, homes: Iterable[int], most: Callable[[int], int] | None = None) -> None:
        """Take these ranks out, replace them, and close the gaps that remain. `most` returns how many ranks are to be active
        of those that could be."""
        lost = self._given_up(set(homes))
        open_places = sorted((leaf for leaf in lost if leaf.active is not None), key=lambda leaf: leaf.rank)
        for leaf in lost:
            leaf.is_lost = True
        self.idle = [leaf for leaf in self.idle if not leaf.is_lost]
        left = [leaf for leaf in open_places if not self._replaced(leaf)]
        self._close(self._back_filled(left), len(left))
        if most is not None:
            self._cut(most(self.active_world_size))
        for leaf in lost:
            leaf.active = None
        for rank, leaf in enumerate(sorted(self.leaves, key=lambda leaf: leaf.is_lost)):
            leaf.rank = rank

    def _activate(self) -> None:
        counts = dict[Path, int]()
        for leaf in self.leaves:
            branches = [leaf.path[:depth] for depth in range(len(self.layers))]
            limits = [layer.max_ranks for layer in self.layers]
            if any(
                most is not None and counts.get(each, 0) >= most for each, most in zip(branches, limits, strict=True)
            ):
                self.idle.append(leaf)
                continue
            leaf.active = self.active_world_size
            self.active_world_size += 1
            for each in branches:
                counts[each] = counts.get(each, 0) + 1

    def _given_up(self, homes: set[int]) -> list[Leaf]:
        """Return the leaves that are lost with these: a branch that becomes too small is lost whole, from the leaves up."""
        lost = {leaf.home for leaf in self.leaves if leaf.home in homes and not leaf.is_lost}
        for depth in reversed(range(len(self.layers))):
            for branch in _branches(self.leaves, depth):
                alive = [leaf for leaf in branch if not leaf.is_lost]
                if sum(leaf.home not in lost for leaf in alive) < self.layers[depth].min_ranks:
                    lost.update(leaf.home for leaf in alive)
        return [leaf for leaf in self.leaves if leaf.home in lost]

    def _replaced(self, lost: Leaf) -> bool:
        """Return True if a reserve of the nearest branch that has any takes the place."""
        for depth in reversed(range(len(self.layers))):
            if not self.layers[depth].allows(LayerFlag.RESERVE):
                return False
            branch = lost.path[:depth]
            if idle := next((each for each in reversed(self.idle) if each.path[:depth] == branch), None):
                self.idle.remove(idle)
                idle.active = lost.active
                return True
        return False

    def _back_filled(self, lost: Sequence[Leaf]) -> list[int]:
        """Give the open places to the last active ranks of the same branches, where that may be. Return the places that
        remain open."""
        depths = range(len(self.layers))
        highest = next((n for n in reversed(depths) if not self.layers[n].allows(LayerFlag.BACKFILL)), -1) + 1
        if highest == len(self.layers):
            return [each.active for each in lost if each.active is not None]
        remaining = list[int]()
        for open_places in _branches(lost, highest):
            branch = open_places[0].path[:highest]
            working = [
                (leaf.active, leaf)
                for leaf in self.leaves
                if leaf.active is not None and not leaf.is_lost and leaf.path[:highest] == branch
            ]
            last = nlargest(len(open_places), working, key=lambda each: each[0])
            for (active, leaf), place in zip(reversed(last), open_places, strict=False):
                remaining.append(active)
                leaf.active = place.active
            remaining += [each.active for each in open_places[len(last) :] if each.active is not None]
        return remaining

    def _close(self, gaps: Iterable[int], count: int) -> None:
        gaps = sorted(gaps)
        self.active_world_size -= count
        for leaf in self.leaves:
            if leaf.active is not None:
                leaf.active -= bisect_left(gaps, leaf.active)

    def _cut(self, most: int) -> None:
        """Raises ValueError for more ranks than there are."""
        if most > self.active_world_size:
            raise ValueError(f"Tree: world_size_filter returned {most} for {self.active_world_size} ranks")
        self.active_world_size = most
        for leaf in self.leaves:
            if leaf.active is not None and not leaf.is_lost and leaf.active >= most:
                leaf.active = None
                self.idle.append(leaf)


def _branches(leaves: Iterable[Leaf], depth: int) -> list[list[Leaf]]:
    """Return the leaves of each branch of this layer, in the order of their first ones."""
    found = dict[Path, list[Leaf]]()
    for leaf in leaves:
        found.setdefault(leaf.path[:depth], []).append(leaf)
    return list(found.values())


def _firsts(leaves: Iterable[Leaf]) -> Mapping[Path, int]:
    """Return the first rank of each branch."""
    firsts = dict[Path, int]()
    for leaf in leaves:
        for depth in range(1, len(leaf.path) + 1):
            firsts.setdefault(leaf.path[:depth], leaf.rank)
    return firsts
