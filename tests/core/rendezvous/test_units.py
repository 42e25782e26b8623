"""Worlds of whole units: a multiple of `node_unit` nodes, which the completing write decides (S22, V22, V23)."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import (
    arrived,
    edited,
    holding,
    node,
    nodes,
    profile,
    register,
    reseated,
    returned,
    running,
    seats,
    with_one_aside,
)

from elastic.core.group.state import Over as GroupOver
from elastic.core.node import heard
from elastic.core.rendezvous import (
    Arrive,
    Complete,
    Done,
    Drain,
    End,
    Evict,
    Leave,
    Over,
    RendezvousState,
    Status,
    Told,
    Violation,
    explain,
    verify,
    verify_step,
)
from elastic.core.rendezvous.codec import decode, encode
from elastic.core.rendezvous.context import context
from elastic.core.rendezvous.explain import hint
from elastic.core.rendezvous.handlers import join
from elastic.core.rendezvous.operations import operation
from elastic.core.rendezvous.settings import Settings
from elastic.core.rendezvous.state import Limits
from elastic.core.world import Generation, Notice, Why, place_label

FIVE = running("a b c d e", "2:6:2", 9)
"""a to d run, e is over the last whole unit."""


def members(state: RendezvousState) -> str:
    assert state.complete
    return "".join(each.slot for each in state.members)


def waiting(state: RendezvousState) -> str:
    return "".join(who for who, status in seats(state).items() if status == "waiting")


def test_a_world_has_whole_units_and_who_is_over_waits() -> None:
    assert (members(FIVE), waiting(FIVE)) == ("abcd", "e")
    assert (FIVE.wait_list, FIVE.redundancy_list) == ((), (node("e"),))


@pytest.mark.parametrize(("unit", "names", "world"), [(1, "a b c", "abc"), (2, "a b c", "ab"), (3, "a b c d e", "abc")])
def test_the_last_call_leaves_out_only_what_makes_no_unit(unit: int, names: str, world: str) -> None:
    assert members(running(names, f"{unit}:{6}:{unit}")) == world


def test_the_maximum_completes_the_round_at_once() -> None:
    assert members(arrived(register("2:4:2"), "a b c d")) == "abcd"


def test_the_first_world_leaves_out_the_last_by_place() -> None:
    state = register("2:4:2")
    for who, place in (("a", 2), ("b", 0), ("c", 1)):
        state = edited(state, who, Arrive(evolve(profile(who), labels=(place_label((place,)),))))
    assert members(edited(state, "a", Complete(0))) == "bc"


def test_a_spare_takes_the_place_of_a_lost_node_and_nobody_else_moves() -> None:
    assert members(returned(edited(FIVE, "a", Evict(nodes("b"))), "a c d")) == "acde"


def test_without_a_spare_the_world_shrinks_by_a_unit_at_once() -> None:
    state = edited(running("a b c d", "2:6:2"), "a", Evict(nodes("b")))
    state = arrived(state, "a c d")
    assert (members(state), waiting(state)) == ("ac", "d")


def test_below_the_minimum_it_waits_and_says_for_what() -> None:
    state = arrived(edited(running("a b c d", "4:6:2"), "a", Evict(nodes("b"))), "a c d")
    assert not state.complete
    text = "round 1: waiting for 1 of 4 nodes · here: a, c, d · not yet seen: 1 · lost: b"
    assert explain(state, node("a")) == text
    assert hint(state, 5.0) == "with --nnodes=2:6:2 it would start with 2 of those that are here in 5 s"


def test_there_is_no_advice_where_not_even_a_unit_is_there() -> None:
    assert hint(arrived(register("4:6:2"), "a"), 5.0) == ""


def test_who_ran_before_stays_whoever_came_first() -> None:
    """e waits since the first round, and f comes after it: b and c, which ran, are members before them."""
    state = edited(arrived(FIVE, "f"), "a", End(0, Why.UPSCALE))
    state = returned(state, "a b c d")
    assert members(state) == "abcdef"
    state = arrived(edited(state, "a", Evict(nodes("a"))), "b c d e f")
    assert (members(state), waiting(state)) == ("bcde", "f")
    state = arrived(edited(arrived(state, "g"), "b", End(2, Why.UPSCALE)), "f e d c b")
    assert members(state) == "bcdefg"


def test_the_first_world_s_natural_order_gives_no_spare_a_lower_seat_than_a_member() -> None:
    state = register("2:4:2", 1)
    for who, place in (("a", 2), ("b", 0), ("c", 1)):
        state = edited(state, who, Arrive(evolve(profile(who), labels=(place_label((place,)),))))
    state = edited(state, "b", Complete(0))
    assert [each.slot for each in state.seats] == ["b", "c", "a"]
    again = edited(state, "b", End(0, Why.FAILED))
    for who in "bc":
        again = edited(again, who, Arrive(state.seats[node(who)].profile))
    assert (members(again), waiting(again)) == ("bc", "a")


def test_a_newcomer_counts_once_a_unit_is_there_and_there_is_room() -> None:
    grows = arrived(FIVE, "f")
    assert (grows.wait_list, grows.redundancy_list) == ((node("e"), node("f")), ())
    full = arrived(grows, "g")
    assert full.redundancy_list == (node("g"),)
    wide = arrived(running("a b", "2:8:2"), "c d e")
    assert (wide.wait_list, wide.redundancy_list) == ((node("c"), node("d")), (node("e"),))


def test_a_spare_says_what_it_waits_for() -> None:
    assert explain(FIVE, node("e")) == "round 0: spare, waits for 1 more node to make a unit of 2"
    three = running("a b c d", "3:9:3")
    assert explain(three, node("d")) == "round 0: spare, waits for 2 more nodes to make a unit of 3"
    full = arrived(running("a b", "2:2:2"), "c")
    assert explain(full, node("c")) == "round 0: spare, 2 of 2 seats are taken"
    many = arrived(running("a b", "2:4:2"), "c d e")
    assert explain(many, node("e")) == "round 0: spare, 4 of 4 seats are taken"
    assert explain(edited(FIVE, "a", Done(0)), node("e")) == "round 0: spare, the running round is finishing (4 nodes)"


def test_everybody_is_told_who_is_over_the_last_unit() -> None:
    assert explain(FIVE, None) == "round 0: 4 nodes running · spare: e (a unit of 2 lacks 1 node)"
    three = running("a b c d e", "3:9:3")
    assert explain(three, node("a")) == "round 0: 3 nodes running · spare: d, e (a unit of 3 lacks 1 node)"
    assert "spare" not in explain(edited(FIVE, "a", Done(0)), None)
    drained = edited(FIVE, "a", Drain(node("b"), Notice(60.0, "ann")))
    assert explain(drained, None) == "round 0: 4 nodes running · drained: b"
    assert "lacks" not in explain(arrived(FIVE, "f"), None)


def test_a_last_call_says_how_many_are_over_the_last_unit() -> None:
    three = arrived(register("2:6:2"), "a b c")
    assert explain(three, node("c")) == (
        "round 0: last call, 3 of up to 6 nodes · 1 over, as a unit of 2 lacks 1 node · here: a, b, c"
    )
    assert "over" not in explain(arrived(three, "d"), node("c"))


def test_workers_that_live_on_stop_where_their_node_is_passed_over() -> None:
    """Else they would run beside those of the next world."""
    state = arrived(edited(running("a b c d", "2:6:2"), "a", Evict(nodes("b"))), "a c d")
    alive = operation(join, Settings(), 0.0, alive=Generation(state.job, state.generation))
    assert context(alive, holding("d", state), 1.0).left_behind
    assert not context(alive, holding("c", state), 1.0).left_behind
    assert not context(alive, holding("d", edited(state, "a", Leave())), 1.0).left_behind


def test_the_end_of_a_world_names_no_generation_to_a_node_that_is_passed_over() -> None:
    state = arrived(edited(running("a b c d", "2:6:2"), "a", Evict(nodes("b"))), "a c d")
    for who, generation in (("c", Generation(state.job, state.generation)), ("d", None)):
        event = heard(Told(join, Over(0, state.ended), holding(who, state)), 1.0)
        assert isinstance(event, GroupOver) and event.generation == generation


def test_who_comes_back_after_it_was_set_aside_is_a_newcomer() -> None:
    state = edited(with_one_aside(), "d", Arrive(profile("d")))
    state = returned(edited(state, "a", End(1, Why.UPSCALE)), "a c")
    assert [each.slot for each in edited(state, "b", Arrive(profile("b"))).seats] == ["a", "c", "d", "b"]


def test_the_unit_travels() -> None:
    assert decode(encode(FIVE)).limits.node_unit == 2


@pytest.mark.parametrize(("least", "most", "unit"), [(1, 2, 2), (2, 3, 2), (2, 2, 0)])
def test_a_unit_that_no_world_can_have_is_refused(least: int, most: int, unit: int) -> None:
    text = rf"node_unit: a divisor of min_nodes \({least}\) and max_nodes \({most}\), not {unit}"
    with pytest.raises(ValueError, match=text):
        Limits(least, most, node_unit=unit)


def test_a_world_that_could_be_larger_is_refused() -> None:
    before = arrived(register("2:6:2"), "a b c d")
    small = reseated(edited(before, "a", Complete(0)), c=Status.WAITING, d=Status.WAITING)
    verify(small)
    with pytest.raises(Violation, match="V22: complete with 2 nodes, and 2 wait that would make it larger"):
        verify_step(before, small)


def test_limits_are_spelled_as_the_option_takes_them() -> None:
    assert (Limits(2, 4).option, Limits(2, 4, node_unit=2).option) == ("--nnodes=2:4", "--nnodes=2:4:2")
