"""A picture of lanes shows all that is in them, and no label covers another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import get_args
from xml.etree import ElementTree

import pytest
from attrs import frozen

from elastic.cli.render.layout import (
    COLOURS,
    FONT,
    GLYPHS,
    LANES_EACH,
    LEFT,
    NAME_CHAR,
    NAME_MAX,
    RIGHT,
    WIDTH,
    grouped,
)
from elastic.cli.render.picture import picture
from elastic.core.replay.lanes import Lanes, Mark, MarkKind, Span, SpanKind
from elastic.core.sim.drawing import drawn
from elastic.core.sim.run import run_seed, wander
from elastic.core.sim.swarm import Shape
from elastic.core.world import Node

SVG = "{http://www.w3.org/2000/svg}"
A, B, AGAIN = Node("a", 1), Node("b", 1), Node("a", 2)

TWO = Lanes(
    (A, B),
    (
        Span(A, 0.0, 1.0, "joining"),
        Span(A, 1.0, 1.1, "held", "round 0"),
        Span(A, 1.1, 4.0, "running", "round 0"),
        Span(B, 0.5, 1.0, "joining"),
        Span(B, 1.0, 4.5, "running", "round 0"),
        Span(B, 4.5, 5.0, "stopping", "round 0"),
    ),
    (
        Mark(A, 0.9, "write", "arrives"),
        Mark(B, 1.0, "complete", "round 0"),
        Mark(A, 4.0, "fault", "crash <now>"),
        Mark(B, 4.4, "end", "evicts a: ends round 0 (lost)"),
    ),
)


@frozen
class Box:
    text: str
    x: float
    y: float
    width: float

    def covers(self, other: Box) -> bool:
        apart_x = self.x + self.width <= other.x or other.x + other.width <= self.x
        return not apart_x and abs(self.y - other.y) < FONT


def tree(lanes: Lanes) -> ElementTree.Element:
    return ElementTree.fromstring(picture(lanes, "a run & its title"))


def texts(lanes: Lanes) -> list[str]:
    return ["".join(each.itertext()) for each in tree(lanes).iter(f"{SVG}text")]


def test_what_xml_may_not_hold_is_spelled_out() -> None:
    """A finding, or the name of a node, may have any characters."""
    mark = Mark(A, 4.0, "violation", "own: half \ud800 of a pair, a bell \x07 and <b>")
    drawn = texts(Lanes(TWO.nodes, TWO.spans, (*TWO.marks, mark)))
    assert "at 4.000 s: own: half \\ud800 of a pair, a bell \\x07 and <b>" in drawn


def boxes(lanes: Lanes) -> Iterator[Box]:
    """Return all labels, whose widths the SVG sets."""
    for each in tree(lanes).iter(f"{SVG}text"):
        if "textLength" in each.attrib:
            place = (float(each.attrib[name]) for name in ("x", "y", "textLength"))
            yield Box(each.text or "", *place)


def test_every_node_title_fault_and_round_is_named() -> None:
    told = texts(TWO)
    assert told[0] == "a run & its title"
    assert {"a", "b", "crash <now>", "evicts a: ends round 0 (lost)", "round 0 · lost"} <= set(told)


def test_the_legend_names_the_kinds_in_the_picture_and_no_others() -> None:
    told = set(texts(TWO))
    assert {"joining", "held", "running", "stopping", "done to it", "write", "ends a round"} <= told
    assert not {"leaving", "spare", "verdict"} & told


def test_every_span_and_mark_has_a_tooltip() -> None:
    told = ["".join(each.itertext()) for each in tree(TWO).iter(f"{SVG}title")]
    assert "a#1 running round 0 · 1.100 to 4.000 s" in told
    assert "b#1 at 4.400 s: evicts a: ends round 0 (lost)" in told
    assert len(told) == len(TWO.spans) + len(TWO.marks)


def test_time_goes_from_left_to_right() -> None:
    bars = [each for each in tree(TWO).iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    assert float(bars[0].attrib["x"]) == LEFT
    last = bars[-1].attrib
    assert float(last["x"]) + float(last["width"]) == pytest.approx(WIDTH - RIGHT, abs=0.2)
    ticks = [each.text for each in tree(TWO).iter(f"{SVG}text") if each.get("text-anchor") == "middle"]
    assert ticks == [f"{half / 2:g} s" for half in range(11)]


def test_a_violation_stands_in_the_title_and_is_struck_through_all_lanes() -> None:
    broken = Lanes(TWO.nodes, TWO.spans, (*TWO.marks, Mark(A, 5.0, "violation", "V10: a is not expected back")))
    assert "at 5.000 s: V10: a is not expected back" in texts(broken)
    assert sum(each.attrib.get("stroke") == "#d50000" for each in tree(broken).iter(f"{SVG}path")) == 1


def rows(lanes: Lanes) -> list[str]:
    return ["".join(each.itertext()) for each in tree(lanes).iter(f"{SVG}text") if each.get("text-anchor") == "end"]


def test_incarnations_share_a_lane_unless_they_live_at_once() -> None:
    first, later, at_once = Span(A, 0, 2, "joining"), Span(AGAIN, 3, 4, "joining"), Span(AGAIN, 1, 4, "joining")
    assert rows(Lanes((A, AGAIN), (first, later), ())) == ["a"]
    assert rows(Lanes((A, AGAIN), (first, at_once), ())) == ["a", "a#2"]


def test_incarnations_that_began_far_apart_share_a_lane_too() -> None:
    spans = (Span(A, 0, 2, "joining"), Span(B, 1, 5, "joining"), Span(AGAIN, 3, 4, "joining"))
    assert rows(Lanes((A, B, AGAIN), spans, ())) == ["a", "b"]


@pytest.mark.parametrize("length", [1, 14, 15, 30, 48])
def test_the_name_of_a_lane_is_shown_whole_and_the_lane_begins_behind_it(length: int) -> None:
    named = Node("n" * length, 1)
    lanes = Lanes((named,), (Span(named, 0, 1, "joining"),), ())
    assert rows(lanes) == [named.slot]
    bar = next(each for each in tree(lanes).iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None)
    assert float(bar.attrib["x"]) >= 8 + NAME_CHAR * length


def test_a_name_that_is_far_too_long_keeps_its_two_ends() -> None:
    named = Node("begin" + "n" * 100 + "end", 1)
    (name,) = rows(Lanes((named,), (), ()))
    assert len(name) <= NAME_MAX
    assert name.startswith("begin")
    assert name.endswith("end")


def test_empty_lanes_give_a_valid_picture() -> None:
    assert texts(Lanes((), (), ()))[0] == "a run & its title"
    assert rows(Lanes((A,), (), ())) == ["a"]


def test_labels_without_room_are_left_to_tooltips() -> None:
    crowded = Lanes(
        (A,), (Span(A, 0, 100, "running", "round 0"),), tuple(Mark(A, 50, "fault", "crash") for _ in range(40))
    )
    labels = [box for box in boxes(crowded) if box.text == "crash"]
    assert 6 <= len(labels) < 40
    assert not any(one.covers(other) for one, other in combinations(labels, 2))
    assert sum(1 for _ in tree(crowded).iter(f"{SVG}title")) == 41


def test_every_kind_of_span_has_a_colour_of_its_own() -> None:
    assert len(set(COLOURS.values())) == len(COLOURS)


@pytest.mark.parametrize("nodes", [3, 5, 16])
@pytest.mark.parametrize("seed", range(4))
def test_no_label_of_a_run_covers_another(nodes: int, seed: int) -> None:
    run = wander(run_seed(seed, nodes), Shape(nodes=nodes, operations=80))
    found = list(boxes(drawn(run.story)[1]))
    assert len(found) > 5
    covered = [(one, other) for one, other in combinations(found, 2) if one.covers(other)]
    assert covered == []
    assert all(box.x >= 0 and box.x + box.width <= WIDTH for box in found)


def test_the_same_lanes_give_the_same_picture() -> None:
    assert picture(TWO, "x") == picture(TWO, "x")


@pytest.mark.parametrize(("kinds", "looks"), [(SpanKind, COLOURS), (MarkKind, {**GLYPHS, "violation": ""})])
def test_all_that_a_lane_can_have_can_be_drawn(kinds: object, looks: Mapping[str, object]) -> None:
    assert set(get_args(kinds)) == set(looks)


def fleet(size: int) -> Lanes:
    """All run round 0, but for a rack of 32 that is lost and one whose worker fails. Each begins a little later."""
    nodes = [Node(f"gpu-{number:03}", 1) for number in range(size)]
    spans, marks = list[Span](), list[Mark]()
    for number, each in enumerate(nodes):
        later = number / size / 100
        ends_at = 5.0 if 64 <= number < 96 else 10.0
        spans += (Span(each, 0.0, 1.0 + later, "joining"), Span(each, 1.0 + later, ends_at, "running", "round 0"))
        marks.append(Mark(each, 1.0 + later, "write", "arrives"))
    return Lanes(tuple(nodes), tuple(spans), (*marks, Mark(nodes[7], 9.0, "failure", "rank 7 fails")))


def test_many_nodes_that_did_the_same_share_a_lane() -> None:
    told = texts(fleet(512))
    assert {"479 × gpu-000", "gpu-007", "32 × gpu-064", "rank 7 fails"} <= set(told)
    assert len([text for text in told if "gpu-" in text]) == 3


def test_a_few_nodes_have_a_lane_each() -> None:
    assert len([text for text in texts(fleet(LANES_EACH)) if text.startswith("gpu-")]) == LANES_EACH


def test_an_incarnation_that_came_back_is_on_the_lane_of_those_that_did_the_same() -> None:
    many = fleet(128)
    again = [Node(node.slot, 2) for node in many.nodes[64:96]]
    back = Lanes(
        (*many.nodes, *again), (*many.spans, *(Span(each, 7.0, 10.0, "running") for each in again)), many.marks
    )
    (lane,) = [each for each in grouped(back).nodes if each.slot == "32 × gpu-064" and each.incarnation == 2]
    assert [span.start for span in grouped(back).spans if span.node == lane] == [7.0]


def test_nodes_that_did_the_same_at_other_times_have_lanes_of_their_own() -> None:
    apart = Lanes(
        tuple(nodes := [Node(f"{number}", 1) for number in range(LANES_EACH + 2)]),
        tuple(Span(each, number, number + 1.0, "running") for number, each in enumerate(nodes)),
        (),
    )
    assert grouped(apart) == apart
