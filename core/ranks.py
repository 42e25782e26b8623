"""The ranks of all workers of a world, computed from its members alone, without a store.

A world lists its members in rank order, each with its role and local world size. Global ranks are prefix sums of the local
world sizes. Role ranks are the same sums over the members of one role. The agents of torch exchange these numbers through
the store (`SimpleElasticAgent._assign_worker_ranks`); here every agent computes them from the world.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate

from .values import frozen
from .world import Member, Node, World

__all__ = [
    "Ranks",
    "WorkerRanks",
    "assign",
]

WORKERS_KEPT = 4_096
"""How many nodes' worker ranks are cached. The next world has most of them again."""


@frozen
class WorkerRanks:
    """The ranks of one worker: RANK, LOCAL_RANK and ROLE_RANK in its environment."""

    rank: int
    local_rank: int
    role_rank: int


@frozen
class Ranks:
    """The rank of one node in its world, and the ranks of its workers, in the order of their local ranks."""

    group_rank: int
    group_world_size: int
    world_size: int
    role: str
    role_world_size: int
    workers: tuple[WorkerRanks, ...]

    @property
    def local_world_size(self) -> int:
        return len(self.workers)


def assign(world: World) -> Mapping[Node, Ranks]:
    """Return the ranks of every node of a world. Survivors keep their order, because the world keeps it."""
    members = world.members
    if members and all(_shape(member) == _shape(members[0]) for member in members):
        return _identical(members)
    return _by_prefix_sums(members)


def _shape(member: Member) -> tuple[str, int]:
    return member.profile.role, member.profile.local_world_size


def _by_prefix_sums(members: tuple[Member, ...]) -> Mapping[Node, Ranks]:
    firsts, world_size = _firsts([member.profile.local_world_size for member in members])
    role_firsts, role_sizes = _firsts_by_role(members)
    return {
        member.node: Ranks(
            group_rank,
            len(members),
            world_size,
            member.profile.role,
            role_sizes[member.profile.role],
            _workers(member.profile.local_world_size, firsts[group_rank], role_firsts[group_rank]),
        )
        for group_rank, member in enumerate(members)
    }


def _identical(members: tuple[Member, ...]) -> Mapping[Node, Ranks]:
    """Return the same ranks for nodes that are all alike (torch's TORCH_ELASTIC_WORKER_IDENTICAL).

    There rank = group_rank * n + local_rank.
    """
    role, size = _shape(members[0])
    world_size = len(members) * size
    return {
        member.node: Ranks(
            group_rank, len(members), world_size, role, world_size, _workers(size, group_rank * size, group_rank * size)
        )
        for group_rank, member in enumerate(members)
    }


@lru_cache(maxsize=WORKERS_KEPT)
def _workers(size: int, first: int, role_first: int) -> tuple[WorkerRanks, ...]:
    return tuple(WorkerRanks(first + local, local, role_first + local) for local in range(size))


def _firsts(sizes: list[int]) -> tuple[list[int], int]:
    """Return the sum of the sizes before each size, and the sum of all."""
    *firsts, total = accumulate(sizes, initial=0)
    return firsts, total


def _firsts_by_role(members: tuple[Member, ...]) -> tuple[list[int], Mapping[str, int]]:
    firsts, sizes = [], dict[str, int]()
    for role, size in map(_shape, members):
        firsts.append(sizes.get(role, 0))
        sizes[role] = sizes.get(role, 0) + size
    return firsts, sizes
