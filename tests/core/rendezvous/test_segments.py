"""Worlds of whole segments: nodes with one value of a label, which the completing write chooses (S22, S23, V22, V23)."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import come, edited, node, nodes, profile, racked, register, reseated, seats

from elastic.core.rendezvous import (
    Arrive,
    Complete,
    Done,
    End,
    Evict,
    Failing,
    RendezvousState,
    Status,
    Violation,
    explain,
    verify,
    verify_step,
)
from elastic.core.rendezvous.codec import decode, encode
from elastic.core.rendezvous.explain import hint
from elastic.core.rendezvous.state import Limits
from elastic.core.world import Why, rank_policy_label


def world(names: str, size: str = "2:4:2", restarts: int = 9) -> RendezvousState:
    """Return a complete round 0 of these nodes."""
    state = come(register(size, restarts, "rack"), names)
    return state if state.complete else edited(state, names[0], Complete(0))


def without(state: RendezvousState, gone: str, back: str) -> RendezvousState:
    """Return the state after these nodes were lost, and those came back."""
    return come(edited(state, back[0], Evict(nodes(" ".join(gone)))), back)


ZONES = dict([rank_policy_label(("zone",))])


def members(state: RendezvousState) -> str:
    assert state.complete
    return "".join(each.slot for each in state.members)


def waiting(state: RendezvousState) -> str:
    return "".join(who for who, status in seats(state).items() if status == "waiting")


FIVE = world("abdec", "2:6:2")
"""a and b run in rack 1, d and e in rack 2; c waits."""


@pytest.mark.parametrize(
    ("values", "unit", "most", "fit"),
    [
        ("a1 b1 c1 d2 e2", 2, 4, "abde"),
        ("a1 d2 b1 e2", 2, 4, "adbe"),
        ("a1 d2 e2 b1", 2, 2, "ab"),
        ("a1 d2 e2", 2, 2, "de"),
        ("a1 b1 c1 d2 e2 f2", 3, 8, "abcdef"),
        ("a1 b1 c1 d1", 2, 8, "abcd"),
        ("x- y- a1", 2, 8, ""),
        ("", 2, 8, ""),
    ],
)
def test_segments_are_taken_whole_and_in_the_order_of_their_first_nodes(
    values: str, unit: int, most: int, fit: str
) -> None:
    of = {text[0]: text[1:].strip("-") for text in values.split()}
    assert "".join(Limits(unit, most // unit * unit, node_unit=unit, segment="rack").fit(of, most)) == fit


def test_a_world_has_whole_segments_and_the_last_arrival_completes_it_at_the_maximum() -> None:
    state = come(register("2:4:2", segment="rack"), "adbc")
    assert not state.complete and state.census[Status.IN] == 4
    state = come(state, "e")
    assert (members(state), waiting(state)) == ("abde", "c")


def test_an_open_round_has_room_for_everybody_until_some_make_the_maximum() -> None:
    state = come(register("2:2:2", segment="rack"), "adg")
    assert (state.quorate, state.census[Status.IN], state.unseen) == (False, 3, 1)
    state = come(state, "e")
    assert (members(state), waiting(state)) == ("de", "ag")


def test_a_spare_of_the_same_segment_replaces_a_lost_node_before_another_segment_does() -> None:
    state = come(world("abde"), "ghc")
    assert (members(state), waiting(state)) == ("abde", "ghc")
    assert state.redundancy_list == tuple(map(node, "ghc"))
    after = without(state, "b", "ade")
    assert (members(after), waiting(after)) == ("acde", "gh")
    another = without(after, "a", "cde")
    assert (members(another), waiting(another)) == ("degh", "c")


def test_without_a_spare_it_shrinks_at_once_to_the_whole_segments_and_says_what_the_other_lacks() -> None:
    state = without(world("abde"), "b", "ade")
    assert (members(state), waiting(state)) == ("de", "a")
    assert explain(state, node("a")) == "round 1: spare, waits for 1 more node of rack r1 to make a segment of 2"
    assert explain(state, None) == "round 1: 2 nodes running · spare: a (rack r1 lacks 1 node)"
    grown = come(edited(come(state, "c"), "d", End(1, Why.UPSCALE)), "de")
    assert members(grown) == "deac"


def test_below_the_minimum_it_waits_and_says_for_what() -> None:
    state = without(world("abde", "4:4:2"), "be", "ad")
    assert not state.complete and not state.quorate
    lacks = "not yet seen: 2 (rack r1 lacks 1 node, rack r2 lacks 1 node)"
    assert explain(state, node("a")) == f"round 1: waiting for 2 of 4 nodes · here: a, d · {lacks} · lost: b, e"
    state = come(state, "ghxc")
    assert members(state) == "acgh"


def test_the_fewest_nodes_that_make_the_minimum_are_counted_for_people() -> None:
    state = come(register("6:6:3", segment="rack"), "adex")
    assert state.unseen == 3
    text = "rack r1 lacks 2 nodes, rack r2 lacks 1 node; no label rack: x"
    assert explain(state, None) == f"round 0: waiting for 3 of 7 nodes · here: a, d, e, x · not yet seen: 3 ({text})"
    assert come(register("2:4:2", segment="rack"), "").unseen == 2


def test_the_hint_and_the_last_call_tell_of_whole_segments() -> None:
    state = come(register("4:6:2", segment="rack"), "abcdx")
    assert hint(state, 5.0) == "with --nnodes=2:6 --segment=rack:2 it would start with 2 of those that are here in 5 s"
    assert hint(come(register("2:4:2", segment="rack"), "ad"), 5.0) == ""
    state = come(register("2:6:2", segment="rack"), "abcx")
    assert explain(state, None) == (
        "round 0: last call, 2 of up to 6 nodes · 2 over (rack r1 lacks 1 node; no label rack: x) · here: a, b, c, x"
    )


def test_at_the_minimum_a_node_without_the_label_is_named_to_all() -> None:
    state = come(register("2:2:2", segment="rack"), "ax")
    assert explain(state, node("a")) == (
        "round 0: waiting for 1 of 3 nodes · here: a, x · not yet seen: 1 (rack r1 lacks 1 node; no label rack: x)"
    )
    whole = come(register("4:4:2", segment="rack"), "ab")
    assert explain(whole, None) == "round 0: waiting for 2 of 4 nodes · here: a, b · not yet seen: 2"


def test_of_many_segments_the_first_are_named_and_the_others_counted() -> None:
    state = register("20:20:2", segment="rack")
    for number in range(10):
        state = edited(state, f"n{number}", Arrive(evolve(profile(f"n{number}"), labels=(("rack", f"r{number}"),))))
    text = explain(state, None)
    assert "(rack r0 lacks 1 node, " in text and text.endswith("rack r7 lacks 1 node and 2 more)")


def test_a_node_without_the_label_is_a_spare_and_says_so() -> None:
    state = come(FIVE, "xy")
    assert explain(state, node("x")) == "round 0: spare, it has no label rack"
    told = "spare: c (rack r1 lacks 1 node), x, y (no label rack)"
    assert explain(state, None) == f"round 0: 4 nodes running · {told}"
    assert state.wait_list == () and state.is_spare(node("x"))
    full = come(world("abde"), "cx")
    assert explain(full, node("c")) == "round 0: spare, 4 of 4 seats are taken"
    assert explain(full, node("x")) == "round 0: spare, it has no label rack"


def test_a_round_ends_only_for_a_whole_segment_for_which_there_is_room() -> None:
    assert FIVE.wait_list == () and not FIVE.fills_up
    grows = come(FIVE, "gh")
    assert (grows.wait_list, grows.redundancy_list) == ((node("g"), node("h")), (node("c"),))
    assert grows.fills_up and not grows.lacks
    assert come(FIVE, "g").lacks == {"r1": 1, "r3": 1}
    assert edited(grows, "a", Done(0)).wait_list == ()


def test_the_ranks_of_a_segment_are_neighbours_whatever_a_rank_policy_says() -> None:
    state = register("4:6:2", segment="rack")
    for who, zone in (("a", "z2"), ("d", "z1"), ("b", "z1"), ("e", "z2"), ("c", "z1")):
        state = edited(state, who, Arrive(racked(who, zone=zone, **ZONES)))
    assert members(edited(state, "a", Complete(0))) == "abde"
    both = register("6:6:2", segment="rack")
    for who, zone in (("a", "z2"), ("d", "z1"), ("g", "z2"), ("h", "z1"), ("b", "z1"), ("e", "z1")):
        both = edited(both, who, Arrive(racked(who, zone=zone, **ZONES)))
    assert members(both) == "abghde"  # rack 3 is in the zone of its first node, as rack 1 is


def test_two_segments_of_one_rack_are_neighbours_too() -> None:
    RACKS_OF_FOUR = {"a": "r1", "d": "r2", "b": "r1", "c": "r1", "e": "r2", "f": "r1"}
    state = register("6:6:2", segment="rack")
    for who, rack in RACKS_OF_FOUR.items():
        state = edited(state, who, Arrive(evolve(profile(who), labels=(("rack", rack),))))
    assert members(state) == "abcfde"


def test_a_node_is_needed_if_the_others_make_fewer_segments_than_the_minimum() -> None:
    state = world("abcde", "4:6:2")
    assert [who for who in "abcde" if state.needs(node(who))] == ["d", "e"]


def aside(state: RendezvousState, culprit: str, back: str) -> RendezvousState:
    """Return the state after this node has failed too often, and everybody is back."""
    return come(edited(state, culprit, End(state.round, Why.FAILED, Failing(2, 60.0))), back)


def test_a_node_is_set_aside_only_if_the_others_make_the_minimum_of_segments() -> None:
    assert seats(aside(world("abcde", "4:6:2"), "d", "abde"))["d"] == "in"
    state = aside(world("abcde", "4:6:2"), "b", "abde")
    assert seats(state)["b"] == "aside" and members(state) == "acde"


def test_only_those_are_called_back_that_make_the_minimum() -> None:
    state = aside(aside(world("abdegh", "2:6:2"), "a", "abdegh"), "d", "degh")
    assert {who for who, status in seats(state).items() if status == "aside"} == {"a", "d"} and members(state) == "gh"
    state = edited(state, "g", Evict(nodes("h")))
    assert {who for who, status in seats(state).items() if status == "expected"} == {"g", "a"}
    assert members(come(state, "ga")) == "ba"


def test_a_first_target_is_waited_for_in_whole_segments() -> None:
    state = evolve(register("2:6:2", segment="rack"), target=4)
    state = come(state, "adbx")
    assert not state.complete and state.quorate
    assert members(come(state, "e")) == "abde"


def test_what_two_agents_must_agree_on_travels() -> None:
    back = decode(encode(FIVE))
    assert back == FIVE and back.limits.segment == "rack"
    assert Limits(2, 4, node_unit=2, segment="rack").option == "--nnodes=2:4 --segment=rack:2"


@pytest.mark.parametrize(
    ("segment", "unit", "text"),
    [("rack", 1, "'rack' needs a node_unit above 1"), ("a\nb", 2, "printable"), ("r" * 257, 2, "256 printable")],
)
def test_a_segment_that_no_world_can_have_is_refused(segment: str, unit: int, text: str) -> None:
    with pytest.raises(ValueError, match=f"^segment: .*{text}"):
        Limits(2, 4, node_unit=unit, segment=segment)


def test_a_world_of_mixed_segments_is_refused() -> None:
    state = world("abde")
    mixed = evolve(state, seats={**state.seats, node("b"): evolve(state.seats[node("b")], profile=racked("d"))})
    with pytest.raises(Violation, match="S23: a#1, b#1 are no segment of one rack"):
        verify(mixed)


def test_a_world_that_could_have_one_more_segment_is_refused() -> None:
    before = come(register("2:6:2", segment="rack"), "abde")
    small = reseated(edited(before, "a", Complete(0)), d=Status.WAITING, e=Status.WAITING)
    verify(small)
    with pytest.raises(Violation, match="V22: complete with 2 nodes, and 2 wait that would make it larger"):
        verify_step(before, small)
