"""The tree of ranks: what becomes of the places when ranks are lost, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from elastic.inprocess.topology import Layer, LayerFlag, Topology

RESERVE, BACKFILL = LayerFlag.RESERVE, LayerFlag.BACKFILL
BOTH = RESERVE | BACKFILL


def grown(size: int, per_branch: int | None, *layers: Layer) -> Topology:
    """The tree of so many ranks. Branches of the second layer are neighbours, so many each."""
    names = {rank: ["root", *([str(rank // per_branch)] if per_branch else [])] for rank in range(size)}
    return Topology.grown(layers, names)


def actives(tree: Topology) -> list[int | None]:
    """The active place of each rank, by its first number."""
    return [leaf.active for leaf in sorted(tree.leaves, key=lambda leaf: leaf.home)]


def after(tree: Topology, *lost: int, most: Callable[[int], int] | None = None) -> list[int | None]:
    tree.lose(lost, most)
    found = actives(tree)
    assert sorted(each for each in found if each is not None) == list(range(tree.active_world_size))
    return found


def test_without_limits_all_are_active_and_a_gap_is_closed_by_all_that_follow() -> None:
    tree = grown(8, 4, Layer(), Layer())
    assert after(tree) == list(range(8))
    assert after(tree, 1) == [0, None, 1, 2, 3, 4, 5, 6]
    assert [leaf.rank for leaf in tree.leaves] == [0, 7, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("root", "branch", "expected"),
    [
        (BACKFILL, BACKFILL, [0, None, 2, 3, 4, 5, 6, 1]),
        (None, BACKFILL, [0, None, 2, 1, 3, 4, 5, 6]),
        (BACKFILL, None, [0, None, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_gap_is_filled_by_the_last_rank_of_the_widest_branch_that_may(
    root: LayerFlag | None, branch: LayerFlag | None, expected: Sequence[int | None]
) -> None:
    assert after(grown(8, 4, Layer(flag=root), Layer(flag=branch)), 1) == expected


def test_several_gaps_are_filled_in_the_order_of_the_last_ranks() -> None:
    assert after(grown(8, 2, Layer(flag=BACKFILL), Layer(flag=BACKFILL)), 2, 3) == [0, 1, None, None, 4, 5, 2, 3]


def test_gaps_that_the_branch_cannot_fill_are_closed() -> None:
    assert after(grown(6, 2, Layer(), Layer(flag=BACKFILL)), 0, 1, 2) == [None, None, None, 0, 1, 2]


def test_a_reserve_of_the_nearest_branch_takes_the_place_and_then_one_from_farther_away() -> None:
    tree = grown(8, 4, Layer(flag=RESERVE), Layer(max_ranks=3, flag=RESERVE))
    assert actives(tree) == [0, 1, 2, None, 3, 4, 5, None]
    assert after(tree, 1) == [0, None, 2, 1, 3, 4, 5, None]
    assert after(tree, 4) == [0, None, 2, 1, None, 4, 5, 3]
    assert after(tree, 2) == [0, None, None, 1, None, 3, 4, 2]


def test_reserves_stay_in_their_branch_where_the_wider_layer_does_not_lend_them() -> None:
    tree = grown(8, 4, Layer(), Layer(max_ranks=3, flag=RESERVE))
    assert after(tree, 0, 1) == [None, None, 1, 0, 2, 3, 4, None]
    assert after(grown(4, None, Layer(max_ranks=3)), 0) == [None, 0, 1, None]


def test_a_branch_that_is_too_small_is_lost_whole() -> None:
    assert after(grown(8, 4, Layer(), Layer(min_ranks=3)), 0, 2) == [None] * 4 + [0, 1, 2, 3]
    assert after(grown(8, 4, Layer(min_ranks=7), Layer()), 0, 5) == [None] * 8
    assert after(grown(4, None, Layer()), *range(4)) == [None] * 4


def test_a_lost_branch_is_replaced_by_reserves_and_then_by_the_last_ranks() -> None:
    tree = grown(12, 4, Layer(flag=BOTH), Layer(min_ranks=2, max_ranks=3, flag=BOTH))
    after(tree)
    assert after(tree, 0, 1, 2) == [None, None, None, None, 3, 4, 5, 1, 6, 7, 2, 0]


def test_a_filter_of_the_world_size_makes_reserves_of_the_last_ranks() -> None:
    tree = grown(5, None, Layer(flag=RESERVE))
    assert after(tree, most=lambda size: size // 2 * 2) == [0, 1, 2, 3, None]
    assert after(tree, 1, most=lambda size: size // 2 * 2) == [0, None, 2, 3, 1]
    with pytest.raises(ValueError, match="world_size_filter returned 5 for 3 ranks"):
        tree.lose([0], lambda size: 5)


def test_the_ranks_of_a_branch_become_neighbours() -> None:
    names = {rank: ["root", str(rank % 2)] for rank in range(6)}
    assert actives(Topology.grown([Layer(), Layer()], names)) == [0, 3, 1, 4, 2, 5]


def test_all_ranks_have_one_root() -> None:
    with pytest.raises(RuntimeError, match="Tree: all ranks share the key of the first layer, not 0, 1"):
        Topology.grown([Layer()], {rank: [str(rank % 2)] for rank in range(4)})
