"""The ranks of a world are dense prefix sums, in the order of the world (S3)."""

from __future__ import annotations

import pytest
from worlds import LIFE, node

from elastic.core.ranks import Ranks, WorkerRanks, assign
from elastic.core.world import Endpoint, Member, Profile, World, WorldId, world_of


def world(*members: tuple[str, int, str]) -> World:
    """Return a world of members given as (name, workers, role)."""
    return world_of(
        WorldId(LIFE, 0),
        tuple(Member(node(name), Profile(Endpoint("h", 1), size, role)) for name, size, role in members),
    )


def test_a_world_of_nobody_has_no_ranks() -> None:
    assert assign(world()) == {}


def test_identical_nodes_have_rank_group_rank_times_n_plus_local() -> None:
    ranks = assign(world(("b", 2, "default"), ("a", 2, "default")))
    assert ranks[node("b")] == Ranks(0, 2, 4, "default", 4, (WorkerRanks(0, 0, 0), WorkerRanks(1, 1, 1)))
    assert ranks[node("a")] == Ranks(1, 2, 4, "default", 4, (WorkerRanks(2, 0, 2), WorkerRanks(3, 1, 3)))


@pytest.mark.parametrize("names", ["a", "a b c"])
def test_any_number_of_nodes_may_be_identical(names: str) -> None:
    ranks = assign(world(*((name, 2, "default") for name in names.split())))
    workers = 2 * len(names.split())
    assert {(each.world_size, each.role_world_size) for each in ranks.values()} == {(workers, workers)}
    assert [worker.rank for each in ranks.values() for worker in each.workers] == list(range(workers))


def test_nodes_of_different_sizes_have_prefix_sums() -> None:
    ranks = assign(world(("a", 3, "x"), ("b", 1, "x"), ("c", 2, "x")))
    assert [[worker.rank for worker in ranks[node(name)].workers] for name in "abc"] == [[0, 1, 2], [3], [4, 5]]
    assert {each.world_size for each in ranks.values()} == {6}
    assert [ranks[node(name)].local_world_size for name in "abc"] == [3, 1, 2]


def test_each_node_larger_than_the_one_before_has_prefix_sums_too() -> None:
    ranks = assign(world(("a", 1, "x"), ("b", 2, "x"), ("c", 3, "x")))
    assert [[worker.rank for worker in ranks[node(name)].workers] for name in "abc"] == [[0], [1, 2], [3, 4, 5]]


def test_role_ranks_count_within_a_role() -> None:
    # torch's example: two trainers and two readers, mixed.
    ranks = assign(world(("a", 2, "trainer"), ("b", 1, "reader"), ("c", 1, "trainer"), ("d", 3, "reader")))
    role_ranks = {name: [worker.role_rank for worker in ranks[node(name)].workers] for name in "abcd"}
    assert role_ranks == {"a": [0, 1], "b": [0], "c": [2], "d": [1, 2, 3]}
    assert {name: ranks[node(name)].role_world_size for name in "abcd"} == {"a": 3, "b": 4, "c": 3, "d": 4}


@pytest.mark.parametrize("order", ["abc", "cab"])
def test_the_group_rank_is_the_place_in_the_world(order: str) -> None:
    ranks = assign(world(*((name, 1, "x") for name in order)))
    assert [ranks[node(name)].group_rank for name in order] == [0, 1, 2]
    assert {each.group_world_size for each in ranks.values()} == {3}
