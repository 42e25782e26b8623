"""The ranks of a world are dense prefix sums, in the order of the world (S3)."""

from __future__ import annotations

import pytest
from worlds import LIFE, node

from elastic.core.ranks import Ranks, WorkerRanks, assign, by_node_rank, node_rank_label
from elastic.core.world import Endpoint, Member, Profile, World, WorldId


def world(*members: tuple[str, int, str]) -> World:
    """Return a world of members given as (name, workers, role)."""
    return World(
        WorldId(LIFE, 0),
        tuple(Member(node(name), Profile(Endpoint("h", 1), size, role)) for name, size, role in members),
    )


def test_a_world_of_nobody_has_no_ranks() -> None:
    assert assign(world()) == {}


def test_identical_nodes_have_rank_group_rank_times_n_plus_local() -> None:
    ranks = assign(world(("b", 2, "default"), ("a", 2, "default")))
    assert ranks[node("b")] == Ranks(0, 2, 4, "default", 4, (WorkerRanks(0, 0, 0), WorkerRanks(1, 1, 1)))
    assert ranks[node("a")] == Ranks(1, 2, 4, "default", 4, (WorkerRanks(2, 0, 2), WorkerRanks(3, 1, 3)))


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


def ranked(*members: tuple[str, str | None]) -> World:
    """Return a world of members given as (name, the node rank in its profile)."""
    profiles = [
        (name, Profile(Endpoint("h", 1), labels=(("node_rank", text),) if text else ())) for name, text in members
    ]
    return World(WorldId(LIFE, 0), tuple(Member(node(name), profile) for name, profile in profiles))


def test_nodes_that_were_given_ranks_are_in_their_order() -> None:
    ordered = by_node_rank(ranked(("c", "2"), ("a", "10"), ("b", "0")))
    assert [member.node for member in ordered.members] == [node(name) for name in "bca"]
    assert ordered.id == WorldId(LIFE, 0)


@pytest.mark.parametrize("text", [None, "", "-3", "first", "²"])
def test_a_node_without_a_given_rank_counts_as_0_and_equals_keep_their_order(text: str | None) -> None:
    ordered = by_node_rank(ranked(("d", "1"), ("b", text), ("a", "0")))
    assert [member.node for member in ordered.members] == [node(name) for name in "bad"]


def test_a_world_that_is_in_order_stays_as_it_is() -> None:
    world = ranked(("b", None), ("a", "1"))
    assert by_node_rank(world) is world


def test_a_rank_travels_as_a_label() -> None:
    assert node_rank_label(3) == ("node_rank", "3")
