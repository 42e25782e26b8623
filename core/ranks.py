"""A world -> ranks: arithmetic over its members, no store and no exchange.

A world lists its members in rank order, each with its role and local world size. Global ranks are prefix sums of the local
world sizes; role ranks are the same sums over the members of one role. torch's agents exchange these through the store
(`SimpleElasticAgent._assign_worker_ranks`); here the world already says everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from attrs import frozen

from .evolving import evolve
from .world import Member, Node, World


@frozen
class WorkerRanks:
    """One worker's place. Spelled in its environment as RANK, LOCAL_RANK, ROLE_RANK."""

    rank: int
    local_rank: int
    role_rank: int


@frozen
class Ranks:
    """One node's place in its world, and that of each of its workers, by local rank."""

    group_rank: int
    group_world_size: int
    world_size: int
    role: str
    role_world_size: int
    workers: tuple[WorkerRanks, ...]

    @property
    def local_world_size(self) -> int:
        return len(self.workers)


NODE_RANK = "node_rank"


def node_rank_label(rank: int) -> tuple[str, str]:
    """What a node's profile carries when its place was chosen by whoever started it."""
    return NODE_RANK, str(rank)


def by_node_rank(world: World) -> World:
    """The members in the order of the ranks that their nodes were given; who was given none counts as 0, as in torch's
    static rendezvous. Equals keep the order of the world, so survivors keep theirs."""
    ordered = tuple(sorted(world.members, key=_node_rank))
    return world if ordered == world.members else evolve(world, members=ordered)


def _node_rank(member: Member) -> int:
    text = dict(member.profile.labels).get(NODE_RANK, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def assign(world: World) -> Mapping[Node, Ranks]:
    """The ranks of every node of a world. Survivors keep their order because the world does."""
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
    """The same formula when all nodes are alike (torch's TORCH_ELASTIC_WORKER_IDENTICAL): rank = group_rank * n + local."""
    role, size = _shape(members[0])
    world_size = len(members) * size
    return {
        member.node: Ranks(
            group_rank, len(members), world_size, role, world_size, _workers(size, group_rank * size, group_rank * size)
        )
        for group_rank, member in enumerate(members)
    }


def _workers(size: int, first: int, role_first: int) -> tuple[WorkerRanks, ...]:
    return tuple(WorkerRanks(first + local, local, role_first + local) for local in range(size))


def _firsts(sizes: list[int]) -> tuple[list[int], int]:
    """The sum before each size, and the sum of all."""
    *firsts, total = accumulate(sizes, initial=0)
    return firsts, total


def _firsts_by_role(members: tuple[Member, ...]) -> tuple[list[int], Mapping[str, int]]:
    firsts, sizes = [], dict[str, int]()
    for role, size in map(_shape, members):
        firsts.append(sizes.get(role, 0))
        sizes[role] = sizes.get(role, 0) + size
    return firsts, sizes
