"""The register's value, and what is derived from it."""

from __future__ import annotations

from typing import cast

import pytest
from attrs import evolve
from worlds import LIFE, arrived, edited, node, profile, register, reseated, running

from elastic.core.rendezvous import Close, Done, End, Leave, Limits, Seat, Status, Token, blank
from elastic.core.rendezvous.state import NODES_MAX, shows_over
from elastic.core.world import (
    COUNT_MAX,
    NAME_MAX,
    Ending,
    Generation,
    Member,
    Node,
    Verdict,
    Why,
    WorldId,
    world_of,
)


@pytest.mark.parametrize(
    ("least", "most", "restarts", "why"),
    [
        (0, 1, 0, "min_nodes: at least 1, not 0"),
        (2, 1, 0, r"max_nodes: 2 \(min_nodes\) to 4096, not 1"),
        (1, 4097, 0, "max_nodes: .* not 4097"),
        (1, 1, -1, "max_restarts: .* not -1"),
        (1, 1, 2**53, "max_restarts: .* not 9007199254740992"),
    ],
)
def test_limits_that_cannot_work_are_refused_with_the_value(least: int, most: int, restarts: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Limits(least, most, restarts)


def test_limits_reach_from_one_node_without_restarts_to_as_many_as_can_be_written() -> None:
    assert Limits() == Limits(1, 1, 0)
    assert Limits(1, NODES_MAX, COUNT_MAX - 1).max_nodes == NODES_MAX
    with pytest.raises(ValueError, match="max_restarts"):
        Limits(1, 1, COUNT_MAX + 1)
    assert Limits(agreed="x" * NAME_MAX).agreed
    for text in ("a\nb", "x" * (NAME_MAX + 1)):
        with pytest.raises(ValueError, match=r"^agreed: at most 256 printable characters, not '"):
            Limits(agreed=text)


def test_a_round_in_which_one_is_done_and_another_gone_is_finishing() -> None:
    state = edited(edited(running("a b c"), "a", Done(0)), "a", Leave())
    assert state.finishing
    assert edited(state, "b", Done(0)).finishing


def test_a_round_is_over_for_a_node_by_a_later_round_by_a_verdict_or_by_another_world_of_its_number() -> None:
    state = running("a b")
    assert not shows_over(None, node("a"), 0)
    assert not shows_over(state, node("a"), 0)
    assert shows_over(state, node("c"), 0)
    assert shows_over(evolve(state, round=1_000), node("c"), int("1000"))
    assert not shows_over(state, node("c"), 1)
    assert not shows_over(arrived(register("3"), "a b"), node("c"), 0)
    assert shows_over(edited(state, "a", End(0, Why.FAILED)), node("a"), 0)
    verdict = Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)
    assert shows_over(edited(state, "a", Close(verdict)), node("a"), 0)


def test_a_blank_register_is_version_0_of_round_0_with_nobody_seated() -> None:
    state = blank(LIFE, Limits(1, 2))
    assert (state.version, state.round, state.complete, state.closed, dict(state.seats)) == (0, 0, False, None, {})
    assert state.token == Token(LIFE, 0)


def test_seats_cannot_be_changed_in_place() -> None:
    state = arrived(register("2"), "a")
    with pytest.raises(TypeError):
        cast("dict[Node, Seat]", state.seats)[node("a")] = state.seats[node("a")]


def test_the_order_of_seats_counts_when_states_are_compared() -> None:
    state = arrived(register("3"), "a b")
    swapped = {node(who): state.seats[node(who)] for who in "ba"}
    assert state != evolve(state, seats=swapped)
    assert hash(state) == hash(evolve(state, seats=dict(state.seats)))


def test_the_lists_of_torch_are_derived_from_the_seats() -> None:
    state = reseated(arrived(running("a b c", size="3"), "d"), b=Status.EXPECTED)
    assert state.participants == (node("a"), node("c"))
    assert state.expected == (node("b"),)
    assert state.redundancy_list == (node("d"),)
    assert state.wait_list == ()


def test_a_waiter_that_finds_room_is_on_the_wait_list_and_the_others_are_spares() -> None:
    state = reseated(arrived(running("a b", size="2"), "c d"))
    state = evolve(state, limits=Limits(1, 3))
    assert state.room == 1
    assert state.wait_list == (node("c"),)
    assert state.redundancy_list == (node("d"),)


def test_behind_a_finishing_round_every_waiter_is_a_spare() -> None:
    state = evolve(arrived(running("a b", size="2"), "c"), limits=Limits(1, 3))
    assert not state.finishing
    state = edited(state, "a", Done(0))
    assert state.finishing
    assert state.wait_list == ()
    assert state.redundancy_list == (node("c"),)


def test_the_world_is_in_done_and_gone_in_the_order_of_the_ranks() -> None:
    state = edited(edited(running("b a c"), "a", Done(0)), "a", Leave())
    state = edited(state, "c", Done(0))
    members = tuple(Member(node(who), profile(who)) for who in "abc")
    assert state.world == world_of(WorldId(LIFE, 0), members, 0, generation=Generation("life", 0))


def test_the_budget_is_exceeded_by_one_failure_more_than_restarts() -> None:
    state = register("1", restarts=2)
    assert [evolve(state, failures=spent).over_budget for spent in (0, 2, 3)] == [False, False, True]
