"""The order of a world: by the places that its nodes were given, then by their arrival. A restart keeps it (S20)."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import edited, holding, node, register

from elastic.core.rendezvous import Arrive, End, RendezvousState
from elastic.core.world import NODE_RANK, Profile, Why, place_label


def profile(name: str, text: str | None) -> Profile:
    """Return what this node says of itself; `text` is the place that it was given, as it stands in the register."""
    return evolve(holding(name, None).profile, labels=() if text is None else ((NODE_RANK, text),))


def world(*members: tuple[str, str | None]) -> RendezvousState:
    """Return the register of a complete round of these nodes, which arrived in this order."""
    state = register(str(len(members)), 1)
    for name, text in members:
        state = edited(state, name, Arrive(profile(name, text)))
    assert state.complete
    return state


def order(state: RendezvousState) -> str:
    return "".join(member.node.slot for member in state.world.members)


def test_nodes_that_were_given_places_are_in_their_order() -> None:
    assert order(world(("c", "2"), ("a", "10"), ("b", "0"))) == "bca"


def test_a_place_of_several_numbers_is_compared_number_by_number() -> None:
    assert order(world(("d", "1.10"), ("c", "1.9"), ("b", "1"), ("a", "0.40"))) == "abcd"


@pytest.mark.parametrize("text", [None, "-3", "first", "²", "1.", ".", "1.x"])
def test_a_node_without_a_place_counts_as_0_and_equals_stay_in_order_of_arrival(text: str | None) -> None:
    assert order(world(("d", "1"), ("b", text), ("a", "0"))) == "bad"


def test_a_restart_keeps_the_order_whoever_comes_back_first() -> None:
    state = world(("c", "2"), ("a", "0"), ("b", "1"))
    state = edited(state, "b", End(0, Why.FAILED))
    for name, text in (("c", "2"), ("b", "1"), ("a", "0")):
        state = edited(state, name, Arrive(profile(name, text)))
    assert state.complete and state.round == 1
    assert order(state) == "abc"
    assert [each.slot for each in state.members] == ["c", "a", "b"]


def test_a_place_travels_as_a_label() -> None:
    assert place_label((3, 24)) == ("node_rank", "3.24")
    assert profile(node("a").slot, "3.24").given_place == (3, 24)
