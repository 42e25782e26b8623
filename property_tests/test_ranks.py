"""S3: the ranks of any world are dense and in the order of the world, and the fast path agrees with the general formula."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from worlds import LIFE

from elastic.core.ranks import _by_prefix_sums, assign
from elastic.core.world import Endpoint, Member, Node, Profile, World, WorldId, world_of

ROLES = st.sampled_from(["default", "trainer", "reader"])


@st.composite
def worlds(draw: st.DrawFn, alike: bool = False) -> World:
    shapes = st.tuples(st.integers(1, 9), ROLES)
    size = draw(st.integers(1, 12))
    drawn = [draw(shapes)] * size if alike else [draw(shapes) for _ in range(size)]
    members = (Member(Node(f"n{i}", 0), Profile(Endpoint("h", 1), n, role)) for i, (n, role) in enumerate(drawn))
    return world_of(WorldId(LIFE, 0), tuple(members))


def ranks_of(world: World) -> Iterator[tuple[str, int, int, int]]:
    """Yield role, rank, local rank and role rank of every worker, in the order of the world."""
    ranks = assign(world)
    for member in world.members:
        for worker in ranks[member.node].workers:
            yield member.profile.role, worker.rank, worker.local_rank, worker.role_rank


@given(worlds())
def test_ranks_are_dense_and_in_the_order_of_the_world(world: World) -> None:
    assert [rank for _, rank, _, _ in ranks_of(world)] == list(
        range(sum(m.profile.local_world_size for m in world.members))
    )


@given(worlds())
def test_role_ranks_are_dense_within_each_role(world: World) -> None:
    for role in {member.profile.role for member in world.members}:
        ranks = [role_rank for of, _, _, role_rank in ranks_of(world) if of == role]
        assert ranks == list(range(len(ranks)))
        sizes = {each.role_world_size for each in assign(world).values() if each.role == role}
        assert sizes == {len(ranks)}


@given(worlds())
def test_every_node_knows_the_same_sizes(world: World) -> None:
    ranks = assign(world)
    assert {each.world_size for each in ranks.values()} == {sum(each.local_world_size for each in ranks.values())}
    assert {each.group_world_size for each in ranks.values()} == {len(world.members)}
    assert [ranks[member.node].group_rank for member in world.members] == list(range(len(world.members)))
    assert [ranks[member.node].local_world_size for member in world.members] == [
        member.profile.local_world_size for member in world.members
    ]


@given(worlds(alike=True))
def test_identical_nodes_get_what_the_general_formula_gives(world: World) -> None:
    assert assign(world) == _by_prefix_sums(world.members)
