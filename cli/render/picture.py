"""Lanes -> an SVG: nodes by time, what each was about, what was done to it, and the rounds behind all that.

A pure function of data. One lane per slot; incarnations of a slot share it and stand below each other only where they lived
at once. Widths of texts are set, not measured (`textLength`), so labels cannot overlap whatever font there is: they move to
the right, then to a row above, and what finds no place is left to the tooltip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from textwrap import wrap

from attrs import frozen

from ...core.sim.lanes import Lanes, Mark, Span
from ...core.world import Node

WIDTH, LEFT, RIGHT = 1_280, 96, 20
BAR, STRIP, GAP = 16, 13, 9
"""Heights: of a bar, of a row of labels above it, and between two lanes."""
FONT, CHAR = 9.5, 5.72
"""Of labels, all letters of one width."""
ROWS_MAX, SHIFT_MAX = 6, 90
NAME_MAX = 14
TICKS = 10

COLOURS: Mapping[str, str] = {
    "joining": "#9cc3e6",
    "waiting": "#cfcfcf",
    "held": "#3f76b5",
    "running": "#3f9a68",
    "barrier": "#a5d6a0",
    "stopping": "#f0a04b",
    "leaving": "#b39ddb",
    "ended": "#eeeeee",
}
WORDS: Mapping[str, str] = {"waiting": "spare", "barrier": "at the barrier"}
GLYPHS: Mapping[str, tuple[str, str, str]] = {
    "fault": ("M-4,-4 L4,4 M-4,4 L4,-4", "#c62828", "done to it"),
    "write": ("M0,3 L0,9", "#555555", "write"),
    "complete": ("M0,-5 L5,0 L0,5 L-5,0 Z", "#1b5e20", "completes a round"),
    "end": ("M-5,-4 L5,-4 L0,5 Z", "#d35400", "ends a round"),
    "closed": ("M-5,-5 L5,-5 L5,5 L-5,5 Z", "#212121", "verdict"),
}
VIOLATION = "#d50000"


@frozen
class Scale:
    """Time to pixels."""

    start: float
    end: float

    def x(self, at: float) -> float:
        return LEFT + (at - self.start) / (self.end - self.start) * (WIDTH - LEFT - RIGHT)


@frozen
class Label:
    """A text that wants to stand at this x; `row` counts upwards from what it labels."""

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


def picture(lanes: Lanes, title: str) -> str:
    """The SVG's text."""
    scale = _scale(lanes)
    rows = tuple(_rows(lanes, scale))
    rounds = tuple(_rounds(lanes))
    captions = _placed([Label(scale.x(each.start) + 3, each.caption, "#37474f") for each in rounds])
    broken = [mark for mark in lanes.marks if mark.kind == "violation"]
    head = [*_title(title, broken), *_legend(lanes, 44 + 16 * len(_broken(broken)))]
    top = 66 + 16 * len(_broken(broken)) + (max((label.row for label in captions), default=0) + 1) * STRIP
    bottom = top + GAP + sum(row.height for row in rows)
    body = [
        *_bands(rounds, captions, scale, top, bottom),
        *_axis(scale, top, bottom),
        *_lanes(rows, scale, top + GAP),
        *(_strike(scale.x(mark.at), top, bottom) for mark in broken),
    ]
    height = bottom + 34
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
            '<g font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="10">',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            *head,
            *body,
            "</g>\n</svg>\n",
        )
    )


def _scale(lanes: Lanes) -> Scale:
    times = [at for span in lanes.spans for at in (span.start, span.end)] + [mark.at for mark in lanes.marks]
    start, end = min(times, default=0.0), max(times, default=0.0)
    return Scale(start, end if end > start else start + 1.0)


# --- where things stand


def _rows(lanes: Lanes, scale: Scale) -> Iterator[Row]:
    for slot, nodes in groupby(lanes.nodes, key=lambda node: node.slot):
        shared = _shared(tuple(nodes), lanes)
        for index, those in enumerate(shared):
            spans = tuple(span for span in lanes.spans if span.node in those)
            marks = tuple(mark for mark in lanes.marks if mark.node in those and mark.kind != "violation")
            wanted = [Label(scale.x(mark.at), mark.label, GLYPHS[mark.kind][1]) for mark in marks if _is_told(mark)]
            name = slot if index == 0 else f"{slot}#{those[0].incarnation}"
            yield Row(those, spans, marks, tuple(_placed(wanted)), name)


def _shared(nodes: Sequence[Node], lanes: Lanes) -> list[tuple[Node, ...]]:
    """Each on the first line on which nobody else lives at the time."""
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
    return mark.kind in ("fault", "end", "closed") or mark.label.startswith("evict")


def _placed(labels: Iterable[Label]) -> list[Label]:
    """Where they do not overlap: to the right by a little, or in a row above; those that find no place are left out."""
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


def _rounds(lanes: Lanes) -> Iterator[Round]:
    """A round lasts from the first of its members that holds its world to the write that ended it."""
    spans = [span for span in lanes.spans if span.kind in ("held", "running", "barrier") and span.label]
    overs = sorted((mark for mark in lanes.marks if mark.kind in ("end", "closed")), key=lambda mark: mark.at)
    for label in dict.fromkeys(span.label for span in sorted(spans, key=lambda span: span.start)):
        start = min(span.start for span in spans if span.label == label)
        over = next((mark for mark in overs if mark.at >= start), None)
        end = over.at if over else max(span.end for span in spans if span.label == label)
        yield Round(start, end, f"{label} · {_how(over.label)}" if over else label)


def _how(label: str) -> str:
    """What stands in brackets says it shortest."""
    found = re.search(r"\(([^)]*)\)$", label)
    return found[1] if found else label


# --- what is drawn


def _broken(marks: Sequence[Mark]) -> list[str]:
    return [line for mark in marks for line in wrap(f"at {mark.at:.3f} s: {mark.label}", 190)]


def _title(title: str, broken: Sequence[Mark]) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold" fill="#212121">{escape(title)}</text>'
    for index, line in enumerate(_broken(broken)):
        look = f'font-size="11" font-weight="bold" fill="{VIOLATION}"'
        yield f'<text x="{LEFT}" y="{44 + 16 * index}" {look}>{escape(line)}</text>'


def _legend(lanes: Lanes, y: int) -> Iterator[str]:
    """Of what is in the picture."""
    spans, marks = {span.kind for span in lanes.spans}, {mark.kind for mark in lanes.marks}
    x = float(LEFT)
    for kind, colour in COLOURS.items():
        if kind in spans:
            yield f'<rect x="{x:.1f}" y="{y - 8}" width="14" height="9" fill="{colour}"/>'
            word = WORDS.get(kind, kind)
            yield _text(x + 18, y, word, "#424242")
            x += 18 + len(word) * CHAR + 16
    for kind, (_, colour, word) in GLYPHS.items():
        if kind in marks:
            yield _glyph(kind, x + 5, y - 4)
            yield _text(x + 14, y, word, colour)
            x += 14 + len(word) * CHAR + 16


def _bands(rounds: Sequence[Round], captions: Sequence[Label], scale: Scale, top: int, bottom: int) -> Iterator[str]:
    for index, each in enumerate(rounds):
        x, width = scale.x(each.start), max(scale.x(each.end) - scale.x(each.start), 1.0)
        fill = ("#e3eef7", "#f3efe0")[index % 2]
        yield f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{bottom - top}" fill="{fill}"/>'
    for label in captions:
        y = top - 4 - label.row * STRIP
        yield f'<path d="M{label.wanted - 3:.1f},{top} V{y - 6}" stroke="#b0bec5" stroke-width="0.7" fill="none"/>'
        yield _text(label.x, y, label.text, label.colour, bold=True)


def _axis(scale: Scale, top: int, bottom: int) -> Iterator[str]:
    step = _step(scale.end - scale.start)
    tick = -(-scale.start // step) * step
    while tick <= scale.end + step / 1_000:
        x = scale.x(tick)
        yield f'<path d="M{x:.1f},{top} V{bottom + 4}" stroke="#cfd8dc" stroke-width="0.6"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#546e7a">{_time(tick, step)}</text>'
        tick += step


def _step(span: float) -> float:
    """1, 2 or 5 of something."""
    step = 10.0**-9
    while span / step > TICKS:
        step *= 2.5 if f"{step:.0e}".startswith("2") else 2
    return step


def _time(at: float, step: float) -> str:
    return f"{at * 1_000:.6g} ms" if step < 0.01 else f"{round(at, 6):g} s"


def _lanes(rows: Sequence[Row], scale: Scale, top: int) -> Iterator[str]:
    for row in rows:
        bar = top + row.height - GAP - BAR
        yield f'<path d="M{LEFT},{bar + BAR / 2} H{WIDTH - RIGHT}" stroke="#dddddd" stroke-width="0.8"/>'
        name = escape(row.name[-NAME_MAX:])
        yield f'<text x="{LEFT - 8}" y="{bar + 12}" text-anchor="end" font-size="11" fill="#212121">{name}</text>'
        for span in row.spans:
            yield from _span(span, scale, bar)
        for label in row.labels:
            yield from _labelled(label, bar)
        for mark in row.marks:
            yield _glyph(mark.kind, scale.x(mark.at), bar + BAR / 2, f"{mark.node} at {mark.at:.3f} s: {mark.label}")
        top += row.height


def _span(span: Span, scale: Scale, bar: int) -> Iterator[str]:
    x = scale.x(span.start)
    width = max(scale.x(span.end) - x, 1.0)
    thin = span.kind in ("joining", "waiting", "ended")
    y, height = (bar + 4, BAR - 8) if thin else (bar, BAR)
    told = f"{span.node} {span.kind} {span.label} · {span.start:.3f} to {span.end:.3f} s"
    yield (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{COLOURS[span.kind]}">'
        f"<title>{escape(told)}</title></rect>"
    )
    if span.kind == "running" and width > len(span.label) * CHAR + 24:
        yield _text(x + 9, bar + 12, span.label, "white")


def _labelled(label: Label, bar: int) -> Iterator[str]:
    y = bar - 4 - label.row * STRIP
    if label.row or label.x > label.wanted + 1:
        yield (
            f'<path d="M{label.wanted:.1f},{bar} L{label.x + 1:.1f},{y + 2}" stroke="{label.colour}" stroke-width="0.5" '
            'opacity="0.5" fill="none"/>'
        )
    yield _text(label.x, y, label.text, label.colour)


def _glyph(kind: str, x: float, y: float, told: str = "") -> str:
    path, colour, _ = GLYPHS[kind]
    fill = colour if path.endswith("Z") else "none"
    tip = f"<title>{escape(told)}</title>" if told else ""
    return (
        f'<path transform="translate({x:.1f},{y:.1f})" d="{path}" fill="{fill}" stroke="{colour}" stroke-width="1.4">'
        f"{tip}</path>"
    )


def _strike(x: float, top: int, bottom: int) -> str:
    return f'<path d="M{x:.1f},{top - 6} V{bottom}" stroke="{VIOLATION}" stroke-width="2"/>'


def _text(x: float, y: float, text: str, colour: str, bold: bool = False) -> str:
    """As wide as it is thought to be; with a rim, so that it can be read on lines."""
    weight = ' font-weight="bold"' if bold else ""
    rim = "" if colour == "white" else ' stroke="white" stroke-width="2" paint-order="stroke"'
    return (
        f'<text x="{x:.1f}" y="{y}" font-family="DejaVu Sans Mono, Menlo, monospace" font-size="{FONT}" '
        f'textLength="{len(text) * CHAR:.1f}" lengthAdjust="spacingAndGlyphs" '
        f'fill="{colour}"{weight}{rim}>{escape(text)}</text>'
    )
