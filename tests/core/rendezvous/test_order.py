"""The order of a world: by groups, places, in the first round hosts, later as before, newcomers by arrival (S20)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import evolve
from worlds import edited, holding, node, register

from elastic.core.rendezvous import Arrive, End, Evict, RendezvousState
from elastic.core.world import NODE_RANK, Profile, Why, natural, place_label, rank_policy_label


def profile(name: str, text: str | None = None, host: str = "h", keys: str = "", **labels: str) -> Profile:
    """Return what this node says of itself; `text` is the place that it was given, as it stands in the register."""
    place = {} if text is None else {NODE_RANK: text}
    policy = dict([rank_policy_label(tuple(keys.split()))]) if keys else {}
    said = tuple(sorted({**labels, **place, **policy}.items()))
    return evolve(holding(name, None).who.profile, host=host, labels=said)


def joined(state: RendezvousState, profiles: Mapping[str, Profile]) -> RendezvousState:
    for name, each in profiles.items():
        state = edited(state, name, Arrive(each))
    return state


def world(*members: tuple[str, str | None]) -> RendezvousState:
    """Return the register of a complete round of these nodes, which arrived in this order."""
    state = joined(register(str(len(members)), 1), {name: profile(name, text) for name, text in members})
    assert state.complete
    return state


def order(state: RendezvousState) -> str:
    assert state.complete
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
    state = joined(state, {name: profile(name, text) for name, text in (("c", "2"), ("b", "1"), ("a", "0"))})
    assert state.round == 1
    assert order(state) == "abc"


def test_a_place_travels_as_a_label() -> None:
    assert place_label((3, 24)) == ("node_rank", "3.24")
    assert profile(node("a").slot, "3.24").given_place == (3, 24)


def test_names_are_sorted_with_their_numbers_as_numbers() -> None:
    names = ["10", "a2b", "gpu-1", "gpu-2", "gpu-2-1", "gpu-10", "gpu-²"]
    assert sorted((names[each] for each in (6, 2, 5, 0, 4, 1, 3)), key=natural) == names
    assert natural("gpu-007") == natural("gpu-7") and natural("9" * 256)


HOSTS = {"a": "gpu-10", "b": "gpu-2", "c": "gpu-1"}


def test_the_first_world_is_in_the_order_of_the_hosts_and_places_come_before_them() -> None:
    assert order(joined(register("3"), {name: profile(name, host=host) for name, host in HOSTS.items()})) == "cba"
    last = {name: profile(name, "1" if name == "c" else None, host) for name, host in HOSTS.items()}
    assert order(joined(register("3"), last)) == "bac"


def test_later_the_survivors_keep_their_order_and_newcomers_follow_but_for_their_places() -> None:
    hosts = {name: profile(name, host=host) for name, host in HOSTS.items()}
    state = edited(joined(register("3", 5), hosts), "a", Evict(frozenset({node("b")})))
    state = joined(state, {"d": profile("d", host="gpu-0"), **{name: hosts[name] for name in "ac"}})
    assert (state.round, order(state)) == (1, "cad")
    state = edited(state, "a", Evict(frozenset({node("d")})))
    state = joined(state, {"e": profile("e", "1"), **{name: hosts[name] for name in "ac"}})
    assert order(state) == "cae"
    state = edited(state, "e", Evict(frozenset({node("c")})))
    state = joined(state, {"e": profile("e", "1"), "a": hosts["a"], "f": profile("f")})
    assert order(state) == "afe"


def racks(keys: str, **nodes: str) -> dict[str, Profile]:
    """Return what these nodes say of themselves; each has its zone and its rack, and its name as its host."""
    return {name: profile(name, host=name, keys=keys, zone=text[0], rack=text[1:]) for name, text in nodes.items()}


def test_a_rank_policy_makes_the_nodes_of_a_group_neighbours() -> None:
    nodes = {"d": "z2", "c": "z1", "b": "z2", "a": "z1"}
    assert order(joined(register("4"), racks("", **nodes))) == "abcd"
    assert order(joined(register("4"), racks("rack", **nodes))) == "acbd"
    assert order(joined(register("4"), racks("host", **nodes))) == "abcd"
    assert order(joined(register("4"), racks("role", **nodes))) == "abcd"
    nested = {"f": "y1", "e": "z1", "d": "y2", "c": "z2", "b": "y1", "a": "z1"}
    assert order(joined(register("6"), racks("zone rack", **nested))) == "aecbfd"
    assert order(joined(register("6"), racks("rack zone", **nested))) == "aebfcd"


def test_places_hold_within_a_group_and_groups_follow_their_first_nodes() -> None:
    said = {"a": ("r1", "3"), "b": ("r2", "1"), "c": ("r1", "0"), "d": ("r2", "2")}
    nodes = {name: profile(name, place, keys="rack", rack=rack) for name, (rack, place) in said.items()}
    assert order(joined(register("4"), nodes)) == "cabd"


def test_survivors_keep_their_order_when_the_first_node_of_a_group_is_lost() -> None:
    nodes = racks("rack", a="z1", b="z2", c="z1", d="z2")
    state = edited(joined(register("4", 5), nodes), "c", Evict(frozenset({node("a")})))
    state = joined(state, {"e": racks("rack", e="z2")["e"], **{name: nodes[name] for name in "dcb"}})
    assert order(state) == "cbde"


def test_the_first_node_s_rank_policy_counts_for_all() -> None:
    nodes = racks("", b="z2", c="z1", d="z2") | racks("rack", a="z1")
    assert order(joined(register("4"), nodes)) == "acbd"


def test_seats_change_their_orders_with_one_another_and_with_nobody_else() -> None:
    state = joined(register("2:3"), {name: profile(name, host=host) for name, host in HOSTS.items()})
    assert [(each.slot, seat.order) for each, seat in state.seats.items()] == [("c", 0), ("b", 1), ("a", 2)]
    assert state.next_order == 3
    late = edited(state, "d", Arrive(profile("d")))
    assert late.seats[node("d")].order == 3
