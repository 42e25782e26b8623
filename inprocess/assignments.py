"""Rank assignments as a rank policy: all ranks compute the places of all, and come to the same answer.

An assignment is a function of one rank's place, and it may depend on the iterations before. A policy is a function of the
world alone. So each rank says its place and the names of its groups when it joins, as labels of its profile. From them each
rank makes the contexts of all, and calls the assignment for each. A lost rank is a number that nobody claims.

A `Tree` remembers more: the branches of lost ranks. Each process keeps the trees that it has computed, by their digests, and
says the digest of its last one. If all say the same, they go on from it. If not, since a rank is new, all begin anew. So the
answer is still a function of the world.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeGuard

from msgspec.structs import astuple

from ..adapters.inprocess.rank.callbacks import State as Place
from ..adapters.inprocess.rank.outcomes import said
from ..adapters.terminal import printable
from ..core.policies import LineUp, Policy
from ..core.values import frozen
from ..core.world import NAME_MAX, Member, World
from .compose import Compose
from .rank_assignment import (
    ActivateAllRanks,
    FillGaps,
    FilterCountGroupedByKey,
    RankAssignment,
    RankAssignmentCtx,
    RankDiscarded,
    ShiftRanks,
    Tree,
)
from .rank_filter import RankFilter
from .state import Mode, State
from .topology import Topology

PLACE, KEY, TREE, ERROR = "its place", "its key", "its tree", "its error"
"""The names of the labels, which no label of a node has: this rank's place, the names of its groups in numbered pieces, the
digest of its last tree; or, alone, what a key has raised."""
KEY_MAX = 64
"""Most characters of a group's name. Of a longer one, and of one that is not printable, the digest is the name."""
NUMBERING = (ShiftRanks, FillGaps, FilterCountGroupedByKey)
"""Assignments that do not say which ranks are active: all are, if no other says more."""
KEPT = 16
"""How many trees a process keeps."""


class NoStore:
    """The store of a context: there is none."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"ctx.store.{name}: there is no store to ask. A rank assignment is a function of the context alone, and each "
            "rank calls it for all ranks"
        )


@frozen
class Groups(NoStore):
    """The store of a context for an assignment that asks for the groups of all ranks."""

    names: Mapping[int, str]

    def get_keys(self, ranks: Iterable[int]) -> list[str | None]:
        """Return the names of these ranks' groups, None for lost ranks."""
        return [self.names.get(rank) for rank in ranks]


class Filtered(RankAssignment):
    """A rank filter as an assignment."""

    def __init__(self, filter: RankFilter) -> None:
        self.filter = filter

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        ctx.state = self.filter(ctx.state)
        return ctx


@frozen
class _Said:
    """What a member says of its place. One that was in no iteration yet says the place that its launcher gave it."""

    iteration: int
    rank: int
    world_size: int
    active_rank: int
    active_world_size: int
    initial_rank: int
    initial_world_size: int

    @classmethod
    def of(cls, member: Member) -> _Said:
        """Raises ValueError if the member says nothing of its place."""
        labels = dict(member.profile.labels)
        if ERROR in labels:
            raise ValueError(f"rank {member.node.slot}: a key of rank_assignment raised {labels[ERROR]}")
        if PLACE not in labels:
            raise ValueError(f"rank {member.node.slot} was given another rank_assignment: it says nothing of its place")
        return cls(*map(int, labels[PLACE].split()))

    @classmethod
    def by(cls, place: Place, world: World | None) -> _Said:
        """Return what a rank says that is in this place, and was in this world."""
        return cls(
            -1 if world is None else world.round,
            place.rank,
            place.world_size,
            -1 if place.active_rank is None else place.active_rank,
            place.active_world_size,
            place.initial_rank,
            place.initial_world_size,
        )

    def __str__(self) -> str:
        return " ".join(map(str, astuple(self)))  # type: ignore[arg-type]

    def state(self, rank: int, size: int) -> State:
        """Return the state before the assignment."""
        first = (self.initial_rank, self.initial_world_size)
        if self.iteration < 0:
            return State(rank, size, None, None, *first)
        active, mode = (None, Mode.INACTIVE) if self.active_rank < 0 else (self.active_rank, Mode.ACTIVE)
        return State(rank, size, active, self.active_world_size, *first, self.iteration, mode)


class Assigned:
    """The policy of a rank assignment, and what it has each rank say."""

    def __init__(self, steps: tuple[Callable[[RankAssignmentCtx], RankAssignmentCtx], ...]) -> None:
        self.steps = steps
        self._trees: dict[str, Topology] = {}
        self._tree_of: dict[tuple[str, ...], str] = {}
        self._error: BaseException | None = None
        """What a key has raised as this rank joined: no policy can be made of the world, and each rank says so."""

    @classmethod
    def by(cls, assignment: Any) -> Assigned:
        """Take the parts of an assignment apart. Raises ValueError."""
        steps = _steps(assignment)
        if len(steps) > 1 and any(_is_tree(each) for each in steps):
            raise ValueError("rank_assignment: a Tree stands alone, and is composed with no other assignment")
        if all(type(each) in NUMBERING for each in steps):
            steps = [*steps, ActivateAllRanks()]
        return cls(tuple(steps))

    @property
    def policy(self) -> Policy:
        """A rank policy that does the same. Its name tells the numbers that the assignment was made with."""
        return Policy(" + ".join(map(_name, self.steps)), self._applied)

    def says(self, place: Place, world: World | None) -> tuple[tuple[str, str], ...]:
        """Return this rank's labels. `world` is its last one."""
        own, self._error = State(**vars(place)), None
        try:
            names = [_short(key(own) if callable(key) else key) for key in self._keys()]
        except BaseException as error:  # noqa: BLE001 - whatever users' code raises is raised to the caller, in the policy
            self._error = error
            return ((ERROR, printable(said(error))[:NAME_MAX]),)
        text = json.dumps(names, ensure_ascii=False) if names else ""
        pieces = {f"{KEY} {at // NAME_MAX:02}": text[at : at + NAME_MAX] for at in range(0, len(text), NAME_MAX)}
        labels = {PLACE: str(_Said.by(place, world)), **pieces}
        if world is not None and (tree := self._tree_of.get(_slots(world.members))):
            labels[TREE] = tree
        return tuple(sorted(labels.items()))

    def _keys(self) -> list[Any]:
        """Return the keys of all steps, in their order."""
        found = []
        for step in self.steps:
            if _is_tree(step):
                found += [layer.key_or_fn for layer in step.layers]
            elif isinstance(step, FilterCountGroupedByKey):
                found.append(step.key_or_fn)
        return found

    # --- the policy

    def _applied(self, line: LineUp) -> LineUp:
        if self._error:
            raise self._error
        found = {member: _Said.of(member) for member in (*line.active, *line.reserves)}
        if _is_tree(tree := self.steps[0]):
            return self._by_tree(tree, {each.initial_rank: member for member, each in found.items()})
        return self._by_steps(found)

    def _by_steps(self, places: Mapping[Member, _Said]) -> LineUp:
        """Take each step for all ranks before the next one."""
        ranks, size = _numbers(places)
        is_grown = len({each.iteration for each in places.values()}) > 1
        lost = set(range(size)) - set(ranks)
        left = dict[int, RankAssignmentCtx]()
        for rank, member in ranks.items():
            state = places[member].state(rank, size)
            state = replace(state, active_world_size=None) if is_grown else state
            left[rank] = RankAssignmentCtx(state, None, set(lost))
        names = {rank: iter(_names(member)) for rank, member in ranks.items()}
        for step in self.steps:
            store = NoStore()
            if isinstance(step, FilterCountGroupedByKey):
                named = {rank: next(names[rank]) for rank in ranks}
                store = Groups({ctx.state.rank: named[rank] for rank, ctx in left.items()})  # type: ignore[misc]
            left = {rank: after for rank, ctx in left.items() if (after := _after(step, ctx, store))}
        active = {ctx.state.active_rank: ranks[rank] for rank, ctx in left.items() if _is_active(ctx.state)}
        resting = [(ctx.state.rank or 0, rank) for rank, ctx in left.items() if not _is_active(ctx.state)]
        numbers = sorted(active, key=_or_none)
        if numbers != list(range(len(left) - len(resting))):
            raise ValueError(f"{self.policy.name}: active ranks count from 0 without a gap, and these are {numbers}")
        reserves = [ranks[rank] for _, rank in sorted(resting)] + [
            ranks[rank] for rank in sorted(ranks) if rank not in left
        ]
        return LineUp(tuple(active[place] for place in range(len(active))), tuple(reserves))

    def _by_tree(self, step: Tree, homes: Mapping[int, Member]) -> LineUp:
        told = {dict(member.profile.labels).get(TREE, "") for member in homes.values()}
        before = self._trees.get(told.pop()) if len(told) == 1 else None
        if before is None:
            names = {home: _names(member) for home, member in homes.items()}
            tree = Topology.grown(tuple(step.layers), names)
        else:
            tree = deepcopy(before)
        tree.lose([leaf.home for leaf in tree.leaves if leaf.home not in homes], step.world_size_filter)
        self._keep(tree, homes.values())
        active = sorted((leaf.active, leaf.home) for leaf in tree.leaves if leaf.active is not None)
        resting = [leaf.home for leaf in tree.leaves if leaf.active is None and leaf.home in homes]
        return LineUp(tuple(homes[home] for _, home in active), tuple(homes[home] for home in resting))

    def _keep(self, tree: Topology, members: Iterable[Member]) -> None:
        digest = sha256(repr((tree.leaves, tree.idle)).encode()).hexdigest()[:16]
        _put(self._trees, digest, tree)
        _put(self._tree_of, _slots(members), digest)


def _steps(assignment: Any) -> Sequence[Any]:
    """Return the parts in the order in which they are called."""
    if isinstance(assignment, Compose):
        return [step for each in reversed(assignment.instances) for step in _steps(each)]
    return [assignment]


def _name(step: object) -> str:
    """Return what all ranks must have in common. What users' own classes hold may be a rank's own."""
    is_ours = type(step).__module__ == RankAssignment.__module__
    numbers = [str(value) for value in vars(step).values() if isinstance(value, int)] if is_ours else []
    return " ".join((type(step).__name__, *numbers))


def _is_tree(step: object) -> TypeGuard[Tree]:
    """Return True unless users' code stands before the tree's own call."""
    return isinstance(step, Tree) and type(step).__call__ is Tree.__call__


def _short(key: object) -> str:
    text = str(key)
    if len(text) <= KEY_MAX and text.isprintable():
        return text
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _put(kept: dict[Any, Any], key: Any, value: object) -> None:
    """Add the value as the youngest, and drop the oldest if they are too many."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > KEPT:
        kept.pop(next(iter(kept)))


def _slots(members: Iterable[Member]) -> tuple[str, ...]:
    return tuple(sorted(str(member.node) for member in members))


def _numbers(said: Mapping[Member, _Said]) -> tuple[dict[int, Member], int]:
    """Return the members by the ranks that they have before the assignment, and how many ranks there are, the lost ones
    included.

    Those of the latest iteration have the ranks that they had there. The others get numbers that are free: their own first
    ones, if they can.
    """
    latest = max(each.iteration for each in said.values())
    ranks = {each.rank: member for member, each in said.items() if each.iteration == latest}
    size = max(each.world_size for each in said.values() if each.iteration == latest)
    late = [(each.initial_rank, member) for member, each in said.items() if each.iteration != latest]
    for own, member in sorted(late, key=lambda pair: (pair[0], pair[1].node)):
        rank = next((number for number in (own, *range(size)) if number < size and number not in ranks), size)
        size = max(size, rank + 1)
        ranks[rank] = member
    return ranks, size


def _after(
    step: Callable[[RankAssignmentCtx], RankAssignmentCtx], ctx: RankAssignmentCtx, store: NoStore
) -> RankAssignmentCtx | None:
    """Return the context after a step; None if the step discards this rank."""
    try:
        return step(replace(ctx, store=store, terminated_ranks=set(ctx.terminated_ranks)))
    except RankDiscarded:
        return None


def _is_active(state: State) -> bool:
    return state.mode is Mode.ACTIVE


def _or_none(rank: int | None) -> int:
    return -1 if rank is None else rank


def _names(member: Member) -> list[str]:
    """Return the names of a member's groups."""
    text = "".join(text for name, text in member.profile.labels if name.startswith(KEY))
    found: list[str] = json.loads(text or "[]")
    return found
