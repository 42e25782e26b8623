"""The layout of a picture of lanes: sizes, colours and glyphs; time to pixels, incarnations to lines, labels to places.

Many nodes that did the same at the same times share one lane, so a picture of hundreds can be taken in.

The SVG sets the width of each text (`textLength`), so labels overlap in no font. A label without room moves to the right,
then to a row above; one that finds no place there is left to the tooltip.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from attrs import evolve

from ...core.replay.lanes import Lanes, Mark, Span, SpanKind
from ...core.values import frozen
from ...core.world import Node

WIDTH, LEFT, RIGHT = 1_280, 96, 20
BAR, STRIP, GAP = 16, 13, 9
"""Heights in pixels: of a bar, of a row of labels above it, and between two lanes."""
FONT, CHAR = 9.5, 5.72
"""The size of labels and the width of their letters, in pixels."""
ROWS_MAX, SHIFT_MAX = 6, 90
NAME_MAX, NAME_CHAR = 48, 6.9
"""The longest name of a lane in letters; the width of a letter in pixels. Lanes begin where the longest name ends."""

LANES_EACH = 48
"""The most slots that have a lane each."""
ALIKE = 0.005
"""Times that differ by so much of the whole time look the same: 6 pixels."""

COLOURS: Mapping[SpanKind, str] = {
    "checking": "#80cbc4",
    "joining": "#9cc3e6",
    "waiting": "#cfcfcf",
    "held": "#3f76b5",
    "running": "#3f9a68",
    "barrier": "#a5d6a0",
    "moving": "#9fd3a8",
    "stopping": "#f0a04b",
    "leaving": "#b39ddb",
    "ended": "#eeeeee",
}
WORDS: Mapping[str, str] = {"waiting": "spare", "barrier": "at the barrier"}
GLYPHS: Mapping[str, tuple[str, str, str]] = {
    "fault": ("M-4,-4 L4,4 M-4,4 L4,-4", "#c62828", "done to it"),
    "failure": ("M-4,-4 L4,4 M-4,4 L4,-4", "#c62828", "a worker fails"),
    "write": ("M0,3 L0,9", "#555555", "write"),
    "complete": ("M0,-5 L5,0 L0,5 L-5,0 Z", "#1b5e20", "completes a round"),
    "end": ("M-5,-4 L5,-4 L0,5 Z", "#d35400", "ends a round"),
    "progress": ("M-3,-5 L4,0 L-3,5 Z", "#6a1b9a", "first progress"),
    "closed": ("M-5,-5 L5,-5 L5,5 L-5,5 Z", "#212121", "verdict"),
}
VIOLATION = "#d50000"


@frozen
class Scale:
    """Time to pixels; lanes begin at `left`, beside their names."""

    start: float
    end: float
    left: float = LEFT

    def x(self, at: float) -> float:
        return self.left + (at - self.start) / (self.end - self.start) * (WIDTH - self.left - RIGHT)


@frozen
class Label:
    """A text and the x that it wants; `row` counts upwards from the bar that it labels."""

    wanted: float
    text: str
    colour: str
    x: float = 0.0
    row: int = 0

    @property
    def width(self) -> float:
        return len(self.text) * CHAR


@frozen
class Row:
    """The incarnations that share one line of a lane."""

    nodes: tuple[Node, ...]
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]
    labels: tuple[Label, ...]
    name: str

    @property
    def height(self) -> int:
        return (max((label.row for label in self.labels), default=-1) + 1) * STRIP + BAR + GAP


@frozen
class Round:
    """A band behind the lanes."""

    start: float
    end: float
    caption: str


def grouped(lanes: Lanes) -> Lanes:
    """Return the lanes of a job of many nodes, those of nodes that did the same as one; it has the name of the first of them
    and their number. A node about which a label tells something keeps its own."""
    slots = _slots(lanes)
    if len(slots) <= LANES_EACH:
        return lanes
    told = {mark.node.slot for mark in lanes.marks if _is_told(mark) or mark.kind == "violation"}
    spans = defaultdict[str, list[Span]](list)
    for span in lanes.spans:
        spans[span.node.slot].append(span)
    span_s = max((span.end for span in lanes.spans), default=0.0) - min(
        (span.start for span in lanes.spans), default=0.0
    )
    leaders, followers = defaultdict[object, list[str]](list), defaultdict[str, list[str]](list)
    for slot, nodes in slots.items():
        key = slot if slot in told else tuple((nodes.index(each.node), each.kind, each.label) for each in spans[slot])
        leader = next((each for each in leaders[key] if _alike(spans[each], spans[slot], ALIKE * span_s)), slot)
        if leader is slot:
            leaders[key].append(slot)
        followers[leader].append(slot)
    return _named(lanes, slots, followers)


def _slots(lanes: Lanes) -> Mapping[str, list[Node]]:
    """Return the incarnations of each slot, in the order in which they were first seen."""
    slots = defaultdict[str, list[Node]](list)
    for node in lanes.nodes:
        slots[node.slot].append(node)
    return slots


def _alike(some: Sequence[Span], others: Sequence[Span], most: float) -> bool:
    """Return True if these spans, of the same kinds, begin and end at nearly the same times."""
    pairs = zip(some, others, strict=True)
    return all(abs(one.start - other.start) <= most and abs(one.end - other.end) <= most for one, other in pairs)


def _named(lanes: Lanes, slots: Mapping[str, Sequence[Node]], followers: Mapping[str, Sequence[str]]) -> Lanes:
    """Return the lanes of those who are followed, with the number of those that each stands for. The marks of all stay."""
    shown = dict[Node, Node]()
    for leader, those in followers.items():
        name = leader if len(those) == 1 else f"{len(those)} × {leader}"
        places = [Node(name, node.incarnation) for node in slots[leader]]
        shown |= dict(chain.from_iterable(zip(slots[slot], places, strict=True) for slot in those))
    leading = {node for leader in followers for node in slots[leader]}
    return evolve(
        lanes,
        nodes=tuple(dict.fromkeys(shown[node] for node in lanes.nodes if node in leading)),
        spans=tuple(evolve(span, node=shown[span.node]) for span in lanes.spans if span.node in leading),
        marks=tuple(evolve(mark, node=shown[mark.node]) for mark in lanes.marks),
    )


def scale_of(lanes: Lanes) -> Scale:
    """Return the scale on which all lanes fit."""
    times = [at for span in lanes.spans for at in (span.start, span.end)] + [mark.at for mark in lanes.marks]
    start, end = min(times, default=0.0), max(times, default=0.0)
    longest = max((min(len(name), NAME_MAX) for _, name in lines_of(lanes)), default=0)
    return Scale(start, end if end > start else start + 1.0, max(LEFT, 16 + longest * NAME_CHAR))


def rows_of(lanes: Lanes, scale: Scale) -> Iterator[Row]:
    """Yield the rows from top to bottom, with their labels placed."""
    for those, name in lines_of(lanes):
        spans = tuple(span for span in lanes.spans if span.node in those)
        marks = tuple(mark for mark in lanes.marks if mark.node in those and mark.kind != "violation")
        wanted = [Label(scale.x(mark.at), mark.label, GLYPHS[mark.kind][1]) for mark in marks if _is_told(mark)]
        yield Row(those, spans, marks, tuple(placed(wanted)), name)


def lines_of(lanes: Lanes) -> Iterator[tuple[tuple[Node, ...], str]]:
    """Yield the nodes that share a line, and its name: slots in the order in which they were first seen."""
    for slot, nodes in _slots(lanes).items():
        for index, those in enumerate(_shared(nodes, lanes)):
            yield those, slot if index == 0 else f"{slot}#{those[0].incarnation}"


def _shared(nodes: Sequence[Node], lanes: Lanes) -> list[tuple[Node, ...]]:
    """Return the incarnations of a slot by line: each on the first line where no other one lives at that time."""
    lines: list[tuple[float, tuple[Node, ...]]] = []
    for node in nodes:
        times = [at for span in lanes.spans if span.node == node for at in (span.start, span.end)]
        start, end = min(times, default=0.0), max(times, default=0.0)
        for index, (until, those) in enumerate(lines):
            if until <= start:
                lines[index] = (end, (*those, node))
                break
        else:
            lines.append((end, (node,)))
    return [those for _, those in lines]


def _is_told(mark: Mark) -> bool:
    """Return True if a mark has a label."""
    return mark.kind in ("fault", "failure", "end", "closed") or mark.label.startswith("evict")


def placed(labels: Iterable[Label]) -> list[Label]:
    """Return the labels in places where they do not overlap; those that find no place are left out."""
    placed: list[Label] = []
    ends: list[float] = []
    for label in sorted(labels, key=lambda each: each.wanted):
        x = min(label.wanted, WIDTH - RIGHT - label.width)
        row = next((row for row, end in enumerate(ends) if end <= x), None)
        if row is None and len(ends) < ROWS_MAX:
            row = len(ends)
            ends.append(0.0)
        if row is None:
            row = min(range(len(ends)), key=ends.__getitem__)
            x = ends[row]
        if x - label.wanted <= SHIFT_MAX and x + label.width <= WIDTH - RIGHT + 1:
            ends[row] = x + label.width + CHAR
            placed.append(Label(label.wanted, label.text, label.colour, x, row))
    return placed


def beside(marks: Iterable[float], x: float, width: float) -> float:
    """Return where a text of this width begins without a mark on it: at x, or right of the marks that are in the way."""
    for mark in sorted(marks):
        if x - 6 < mark < x + width + 6:
            x = mark + 8
    return x


def rounds_of(lanes: Lanes) -> Iterator[Round]:
    """Yield the rounds: each lasts from the first member that holds its world to the write that ended it."""
    spans = [span for span in lanes.spans if span.kind in ("held", "running", "barrier") and span.label]
    overs = sorted((mark for mark in lanes.marks if mark.kind in ("end", "closed")), key=lambda mark: mark.at)
    for label in dict.fromkeys(span.label for span in sorted(spans, key=lambda span: span.start)):
        start = min(span.start for span in spans if span.label == label)
        over = next((mark for mark in overs if mark.at >= start), None)
        end = over.at if over else max(span.end for span in spans if span.label == label)
        yield Round(start, end, f"{label} · {_how(over.label)}" if over else label)


def _how(label: str) -> str:
    """Return the part in brackets, which is the shortest way to say it."""
    found = re.search(r"\(([^)]*)\)$", label)
    return found[1] if found else label
