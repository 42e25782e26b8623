"""Rank assignments: for one rank, and as the policy by which all ranks compute the places of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from attrs import define, field

from elastic.adapters.inprocess.rank.callbacks import State as Place
from elastic.core.causes import echo_of
from elastic.core.policies import Policy, place, shift
from elastic.core.world import Endpoint, Life, Member, Node, Profile, World, WorldId, world_of
from elastic.inprocess import Compose, Mode, State, Wrapper, rank_filter
from elastic.inprocess.assignments import KEPT, Assigned
from elastic.inprocess.rank_assignment import (
    ActivateAllRanks,
    ActiveWorldSizeDivisibleBy,
    FillGaps,
    FilterCountGroupedByKey,
    Layer,
    LayerFlag,
    MaxActiveWorldSize,
    RankAssignment,
    RankAssignmentCtx,
    RankDiscarded,
    RankFilter,
    ShiftRanks,
    Tree,
)


def assigned(assignment: Any, rank: int, size: int, lost: Iterable[int] = ()) -> State:
    after: RankAssignmentCtx = assignment(RankAssignmentCtx(State(rank, size), None, set(lost)))
    assert after.terminated_ranks == (set() if isinstance(assignment, ShiftRanks | FillGaps) else set(lost))
    return after.state


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [(ShiftRanks(), [0, None, 1, 2, None, None, 3, 4]), (FillGaps(), [0, None, 2, 3, None, None, 1, 4])],
)
def test_gaps_are_closed_and_a_lost_rank_is_discarded(assignment: Any, expected: Sequence[int | None]) -> None:
    for rank, new in enumerate(expected):
        if new is None:
            with pytest.raises(RankDiscarded, match=f"rank {rank} is not to take part, nor are 1, 4, 5"):
                assigned(assignment, rank, 8, {1, 4, 5})
        else:
            state = assigned(assignment, rank, 8, {1, 4, 5})
            assert (state.rank, state.world_size) == (new, 5)
    assert [assigned(assignment, rank, 8).rank for rank in range(8)] == list(range(8))


def test_a_rank_is_active_or_a_reserve() -> None:
    active = assigned(ActivateAllRanks(), 2, 4)
    assert (active.mode, active.active_rank, active.active_world_size) == (Mode.ACTIVE, 2, 4)
    for filter in (
        MaxActiveWorldSize(2),
        ActiveWorldSizeDivisibleBy(2),
        Compose(MaxActiveWorldSize(2), ActivateAllRanks()),
    ):
        states = [assigned(filter, rank, 3) for rank in range(3)]
        assert [each.active_rank for each in states] == [0, 1, None]
        assert [each.mode for each in states] == [Mode.ACTIVE, Mode.ACTIVE, Mode.INACTIVE]
        assert {each.active_world_size for each in states} == {2}
    assert assigned(MaxActiveWorldSize(), 2, 3).active_rank == 2
    assert all(
        issubclass(each, RankFilter) for each in (ActivateAllRanks, MaxActiveWorldSize, ActiveWorldSizeDivisibleBy)
    )


class Told:
    """A store that knows the keys of all ranks."""

    def get_keys(self, ranks: Iterable[int]) -> list[str]:
        return [str(rank // 2) for rank in ranks]


def test_ranks_of_a_group_that_is_not_full_count_as_lost() -> None:
    full = FilterCountGroupedByKey(lambda state: (state.rank or 0) // 2, lambda count: count == 2)
    for rank in (0, 2, 3, 7):
        ctx = full(RankAssignmentCtx(State(rank, 8), Told(), {1, 4, 5, 6}))
        assert ctx.terminated_ranks == {0, 1, 4, 5, 6, 7}
        assert ctx.state == State(rank, 8)
    lost = RankAssignmentCtx(State(1, 8), None, {1})
    assert full(lost) is lost


# --- as a policy


def group_of(size: int, state: State) -> int:
    return (state.rank or 0) // size


def says(host: int) -> Callable[[State], int]:
    """A key that is the same whatever the state is, as the name of the rank's host."""
    return lambda state: host


@define
class Job:
    """A job of ranks that never meet: what each says when it joins, and the places that all come to."""

    assignments: dict[int, Any]
    """By the first number of the rank: each has its own."""
    size: int
    of: dict[int, Assigned] = field(init=False, factory=dict)
    places: dict[int, Place] = field(init=False, factory=dict)
    world: World | None = None
    entered: dict[int, World | None] = field(init=False, factory=dict)
    lives: dict[int, int] = field(init=False, factory=dict)

    def starts(self, rank: int) -> None:
        """A process of this rank, the first or a new one, that has been in no iteration."""
        self.of[rank] = Assigned.by(self.assignments[rank])
        self.places[rank] = Place(rank, self.size, rank, self.size, rank, self.size)
        self.entered[rank] = None
        self.lives[rank] = self.lives.get(rank, -1) + 1

    def meets(self, round: int, *ranks: int) -> list[int]:
        """The first numbers of the active ranks, in their order, of the iteration of these."""
        members = []
        for rank in ranks:
            labels = self.of[rank].says(self.places[rank], self.entered[rank])
            profile = Profile(Endpoint("localhost", 1), labels=labels)
            members.append(Member(Node(str(rank), self.lives[rank]), profile))
        world = world_of(WorldId(Life("here", 1), round), tuple(members))
        placings = {rank: place(self.of[rank].policy, world) for rank in ranks}
        assert len({str(each) for each in placings.values()}) == 1
        for rank, placing in placings.items():
            mine = placing.places[Node(str(rank), self.lives[rank])]
            self.places[rank] = replace(
                self.places[rank],
                rank=mine.rank,
                world_size=len(ranks),
                active_rank=mine.rank if mine.active else None,
                active_world_size=placing.active_world_size,
                iteration=round,
            )
            self.entered[rank] = world
        active = {each.active_rank: rank for rank, each in self.places.items() if rank in ranks}
        return [active[number] for number in sorted(each for each in active if each is not None)]


def job(size: int, *assignments: Any) -> Job:
    """Each rank has an assignment of its own, or all the same one."""
    made = Job({rank: assignments[rank % len(assignments)] for rank in range(size)}, size)
    for rank in range(size):
        made.starts(rank)
    return made


def test_survivors_move_up_or_fill_the_gaps_that_there_were() -> None:
    shifts, fills = job(5, ShiftRanks()), job(5, Compose(ActivateAllRanks(), FillGaps()))
    assert shifts.meets(0, *range(5)) == fills.meets(0, *range(5)) == [0, 1, 2, 3, 4]
    assert (shifts.meets(1, 1, 2, 3, 4), fills.meets(1, 1, 2, 3, 4)) == ([1, 2, 3, 4], [4, 1, 2, 3])
    assert (shifts.meets(2, 2, 3, 4), fills.meets(2, 2, 3, 4)) == ([2, 3, 4], [4, 3, 2])


def test_a_rank_that_is_started_again_takes_its_first_number_or_another_that_is_free() -> None:
    running = job(4, ShiftRanks())
    assert running.meets(0, *range(4)) == [0, 1, 2, 3]
    assert running.meets(1, 0, 2, 3) == [0, 2, 3]
    running.starts(1)
    assert running.meets(2, 0, 1, 2, 3) == [0, 2, 3, 1]
    running.starts(3)
    assert running.meets(3, 0, 1, 2, 3) == [0, 2, 3, 1]


def test_the_active_world_grows_again_when_ranks_come_back() -> None:
    running = job(4, Compose(ActiveWorldSizeDivisibleBy(2), ShiftRanks()))
    assert running.meets(0, *range(4)) == [0, 1, 2, 3]
    assert running.meets(1, 0, 2, 3) == [0, 2]
    running.starts(1)
    assert running.meets(2, *range(4)) == [0, 2, 3, 1]


def test_a_group_that_is_not_full_waits_as_a_reserve_until_it_is() -> None:
    """Each rank names its own group, as one does that asks for its host's name."""
    assignments = [
        Compose(ShiftRanks(), FilterCountGroupedByKey(says(rank // 2), lambda count: count == 2)) for rank in range(6)
    ]
    running = job(6, *assignments)
    assert running.meets(0, *range(6)) == [0, 1, 2, 3, 4, 5]
    assert running.meets(1, 0, 2, 3, 4, 5) == [2, 3, 4, 5]
    assert running.meets(2, 0, 2, 3, 4) == [2, 3]
    running.starts(1)
    assert running.meets(3, 0, 1, 2, 3, 4) == [2, 3, 0, 1]


def test_groups_may_be_counted_twice_with_a_shift_between() -> None:
    full = [FilterCountGroupedByKey(partial(group_of, n), n.__eq__) for n in (2, 3)]
    running = job(8, Compose(ShiftRanks(), full[1], ShiftRanks(), full[0]))
    assert running.meets(0, *range(8)) == [0, 1, 2, 3, 4, 5]


def test_an_assignment_of_the_user_s_own_is_called_for_each_rank() -> None:
    class Backwards(RankAssignment):
        def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
            if ctx.state.rank == 3:
                raise RankDiscarded("three")
            assert ctx.state.rank is not None
            ctx.state = replace(ctx.state, rank=2 - ctx.state.rank, world_size=3)
            return ctx

    running = job(4, Compose(ActivateAllRanks(), Backwards()))
    assert running.meets(0, *range(4)) == [2, 1, 0]
    assert running.places[3].active_rank is None and running.places[3].rank == 3


def test_what_places_no_rank_or_one_twice_is_named() -> None:
    class Same(RankAssignment):
        def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
            ctx.state = replace(ctx.state, mode=Mode.ACTIVE, active_rank=0)
            return ctx

    with pytest.raises(ValueError, match=r"Same: active ranks count from 0 without a gap, and these are \[0\]"):
        job(2, Same()).meets(0, 0, 1)


def test_a_rank_that_was_given_another_policy_is_named() -> None:
    member = Member(Node("3", 0), Profile(Endpoint("localhost", 1)))
    with pytest.raises(ValueError, match="rank 3 was given another rank_assignment: it says nothing of its place"):
        place(Assigned.by(ShiftRanks()).policy, world_of(WorldId(Life("here", 1), 0), (member,)))


@pytest.mark.parametrize(
    "by", [lambda key: Tree([Layer(key_or_fn=key)]), lambda key: FilterCountGroupedByKey(key, (2).__eq__)]
)
def test_what_a_key_raises_is_raised_on_its_rank_and_told_on_the_others(
    by: Callable[[Callable[[State], str]], Any],
) -> None:
    racks = {0: "a"}
    running = job(2, by(lambda state: racks[0]), by(lambda state: racks[1]))
    with pytest.raises(ValueError, match=r"^rank 1: a key of rank_assignment raised KeyError: 1$") as told:
        running.meets(0, 0, 1)
    with pytest.raises(KeyError) as own:
        running.meets(0, 1)
    assert (echo_of(str(told.value), None), echo_of(str(own.value), None)) == ("wrapper: another rank's key", "")
    racks[1] = "a"
    assert running.meets(1, 0, 1) == [0, 1]


def test_attributes_of_a_user_s_own_class_make_no_two_policies() -> None:
    class Logged(ShiftRanks):
        def __init__(self, rank: int) -> None:
            self.rank = rank

    names = [Assigned.by(Compose(MaxActiveWorldSize(3), Logged(rank))).policy.name for rank in range(2)]
    assert names == ["Logged + MaxActiveWorldSize 3"] * 2


def test_a_call_of_a_user_s_own_stands_before_the_one_that_it_derives_from() -> None:
    class WithoutOne(FilterCountGroupedByKey):
        def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
            after = super().__call__(ctx)
            after.terminated_ranks = after.terminated_ranks | {1}
            return after

    class Backwards(Tree):
        def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
            assert ctx.state.rank is not None
            ctx.state = replace(ctx.state, mode=Mode.ACTIVE, active_rank=ctx.state.world_size - 1 - ctx.state.rank)
            return ctx

    pairs = WithoutOne(partial(group_of, 2), (2).__eq__)
    shifts = Compose(ActivateAllRanks(), ShiftRanks(), pairs)
    assert job(5, shifts).meets(0, *range(5)) == [0, 2, 3]
    assert job(3, Backwards([Layer()])).meets(0, *range(3)) == [2, 1, 0]


@pytest.mark.parametrize("text", ["node-1\n", "a\tb", "/\udcff", "x" * 300, "", 'a"b', "é" * 64])
def test_a_group_may_have_any_name(text: str) -> None:
    pairs = [FilterCountGroupedByKey(lambda state, n=rank // 2: f"{text}{n}", (2).__eq__) for rank in range(5)]  # type: ignore[misc]
    running = job(5, *(Compose(ActivateAllRanks(), ShiftRanks(), each) for each in pairs))
    assert running.meets(0, *range(5)) == [0, 1, 2, 3]


def test_a_tree_may_have_many_layers() -> None:
    branches = [Layer(key_or_fn=f"a switch with quite a long name, number {number}") for number in range(40)]
    running = job(4, *(Tree([Layer(), *branches, Layer(key_or_fn=says(-rank // 2))]) for rank in range(4)))
    assert running.meets(0, *range(4)) == [0, 1, 2, 3]


def test_there_is_no_store_to_ask() -> None:
    class Asks(RankAssignment):
        def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
            ctx.store.add("count", 1)
            return ctx

    with pytest.raises(AttributeError, match=r"ctx.store.add: there is no store to ask"):
        job(1, Asks()).meets(0, 0)


def hosts(size: int) -> list[Tree]:
    """The tree of each rank: four to a host, three of them active, and one host lends to another."""
    flag = LayerFlag.RESERVE
    return [Tree([Layer(flag=flag), Layer(max_ranks=3, key_or_fn=says(rank // 4), flag=flag)]) for rank in range(size)]


def test_a_tree_goes_on_from_the_last_one() -> None:
    running = job(8, *hosts(8))
    assert running.meets(0, *range(8)) == [0, 1, 2, 4, 5, 6]
    assert running.meets(1, 0, 2, 3, 4, 5, 6, 7) == [0, 3, 2, 4, 5, 6]
    assert running.meets(2, 0, 2, 3, 5, 6, 7) == [0, 3, 2, 7, 5, 6]
    assert running.meets(3, 0, 2, 3, 5, 6, 7) == [0, 3, 2, 7, 5, 6]
    assert running.meets(4, 0, 3, 5, 6, 7) == [0, 3, 7, 5, 6]


def test_a_tree_with_a_new_rank_is_grown_anew() -> None:
    running = job(8, *hosts(8))
    running.meets(0, *range(8))
    running.meets(1, 0, 2, 3, 4, 5, 6, 7)
    running.starts(1)
    assert running.meets(2, *range(8)) == [0, 1, 2, 4, 5, 6]


def test_a_tree_without_some_of_its_ranks_from_the_start_and_one_that_is_asked_often() -> None:
    running = job(8, *hosts(8))
    assert running.meets(0, 0, 3, 4, 7) == [0, 3, 4, 7]
    for round in range(1, 3 * KEPT):
        assert running.meets(round, 0, 3, 4, 7) == [0, 3, 4, 7]
    assert running.meets(3 * KEPT, 0, 4, 7) == [0, 4, 7]


def test_a_branch_that_is_too_small_waits_as_reserves() -> None:
    running = job(4, Tree([Layer(), Layer(min_ranks=2, key_or_fn=lambda state: (state.rank or 0) // 2)]))
    assert running.meets(0, *range(4)) == [0, 1, 2, 3]
    assert running.meets(1, 0, 2, 3) == [2, 3]
    assert running.places[0].active_rank is None


def test_a_tree_stands_alone() -> None:
    with pytest.raises(ValueError, match="a Tree stands alone, and is composed with no other"):
        Wrapper(rank_assignment=Compose(ShiftRanks(), Tree([Layer()])))
    with pytest.raises(ValueError, match="Tree: one layer or more"):
        Tree([])
    with pytest.raises(TypeError, match="a Tree stands alone as rank_assignment"):
        Tree([Layer()])(RankAssignmentCtx(State(0, 1), None, set()))


# --- in a wrapper


def test_the_wrapper_takes_assignments_and_filters_of_either_kind() -> None:
    def name(**given: Any) -> str:
        return Wrapper(**given).plan.terms.policy.name

    assert name(rank_assignment=ShiftRanks()) == "ShiftRanks + ActivateAllRanks"
    assert name(rank_assignment=shift()) == "shift"
    filters = Compose(rank_filter.WorldSizeDivisibleBy(2), rank_filter.MaxActiveWorldSize(3))
    of_older_programs: dict[str, Any] = {"rank_filter": filters}
    made = Wrapper(rank_assignment=ShiftRanks(), **of_older_programs)
    assert isinstance(made.plan.terms.policy, Policy)
    alone = Wrapper(**of_older_programs).plan.terms.policy
    assert alone.name == made.plan.terms.policy.name.replace("ShiftRanks", "ShiftRanks + ActivateAllRanks", 1)
    running = job(4, ShiftRanks())
    labels: Any = made.plan.labels
    running.of = dict.fromkeys(range(4), labels.__self__)
    assert running.meets(0, *range(4)) == [0, 1]


def test_an_assignment_and_a_policy_are_not_composed() -> None:
    with pytest.raises(TypeError, match=r"Compose: Policy\(name='shift'\) cannot be called"):
        Compose(ShiftRanks(), shift())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"rank_assignment": 3}, "rank_assignment: policies of elastic.inprocess, not 3"),
        ({"rank_filter": 3}, "rank_filter: a RankFilter or None, not 3"),
        ({"rank_filter": rank_filter.MaxActiveWorldSize(1), "rank_assignment": shift()}, "needs a rank assignment"),
    ],
)
def test_what_cannot_be_combined_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Wrapper(**given)
