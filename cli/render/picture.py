"""Lanes -> an SVG: what each node did over time, what was done to it, and the rounds behind that.

A pure function of data. A slot has one lane, which its incarnations share; only those that lived at once stand below each
other. `layout` has the sizes, colours and places. Every span and mark has a tooltip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...core.replay.lanes import Lanes, Mark, Span
from .layout import (
    BAR,
    CHAR,
    COLOURS,
    GAP,
    GLYPHS,
    LEFT,
    NAME_MAX,
    RIGHT,
    STRIP,
    VIOLATION,
    WIDTH,
    WORDS,
    Label,
    Round,
    Row,
    Scale,
    beside,
    grouped,
    placed,
    rounds_of,
    rows_of,
    scale_of,
)
from .svg import drawing, escaped, heading, swatch, swatch_width, words
from .text import shortened

TICKS = 10
HATCH = (
    '<pattern id="unseen" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="3.5" height="6" fill="white"/></pattern>'
)
"""The stripes of a bar in a gap: nobody saw its node then."""
UNSEEN = "not seen"


def picture(lanes: Lanes, title: str) -> str:
    """Return the text of the SVG."""
    lanes = grouped(lanes)
    scale = scale_of(lanes)
    rows = tuple(rows_of(lanes, scale))
    rounds = tuple(rounds_of(lanes))
    captions = placed([Label(scale.x(each.start) + 3, each.caption, "#37474f") for each in rounds])
    broken = [mark for mark in lanes.marks if mark.kind == "violation"]
    head = [*_title(title, broken), *_legend(lanes, 44 + 16 * len(_broken(broken)))]
    top = 66 + 16 * len(_broken(broken)) + (max((label.row for label in captions), default=0) + 1) * STRIP
    bottom = top + GAP + sum(row.height for row in rows)
    body = [
        *_bands(rounds, captions, scale, top, bottom),
        *_axis(scale, top, bottom),
        *_lanes(rows, scale, top + GAP, lanes.gaps),
        *(_strike(scale.x(mark.at), top, bottom) for mark in broken),
    ]
    return drawing(bottom + 34, [*([HATCH] if lanes.gaps else []), *head, *body])


# --- what is drawn


def _broken(marks: Sequence[Mark]) -> list[str]:
    return [line for mark in marks for line in wrap(f"at {mark.at:.3f} s: {mark.label}", 190)]


def _title(title: str, broken: Sequence[Mark]) -> Iterator[str]:
    yield heading(title)
    for index, line in enumerate(_broken(broken)):
        look = f'font-size="11" font-weight="bold" fill="{VIOLATION}"'
        yield f'<text x="{LEFT}" y="{44 + 16 * index}" {look}>{escaped(line)}</text>'


def _legend(lanes: Lanes, y: int) -> Iterator[str]:
    """Yield the legend of the kinds that are in the picture."""
    spans, marks = {span.kind for span in lanes.spans}, {mark.kind for mark in lanes.marks}
    x = float(LEFT)
    for kind, colour in COLOURS.items():
        if kind in spans:
            word = WORDS.get(kind, kind)
            yield swatch(x, y, colour)
            yield words(x + 18, y, word, "#424242")
            x += swatch_width(word)
    if lanes.gaps:
        yield swatch(x, y, "#616161")
        yield swatch(x, y, "url(#unseen)")
        yield words(x + 18, y, UNSEEN, "#424242")
        x += swatch_width(UNSEEN)
    for glyph, (_, colour, word) in GLYPHS.items():
        if glyph in marks:
            yield _glyph(glyph, x + 5, y - 4)
            yield words(x + 14, y, word, colour)
            x += 14 + len(word) * CHAR + 16


def _bands(rounds: Sequence[Round], captions: Sequence[Label], scale: Scale, top: int, bottom: int) -> Iterator[str]:
    for index, each in enumerate(rounds):
        x, width = scale.x(each.start), max(scale.x(each.end) - scale.x(each.start), 1.0)
        fill = ("#e3eef7", "#f3efe0")[index % 2]
        yield f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{bottom - top}" fill="{fill}"/>'
    for label in captions:
        y = top - 4 - label.row * STRIP
        yield f'<path d="M{label.wanted - 3:.1f},{top} V{y - 6}" stroke="#b0bec5" stroke-width="0.7" fill="none"/>'
        yield words(label.x, y, label.text, label.colour, bold=True)


def _axis(scale: Scale, top: int, bottom: int) -> Iterator[str]:
    step = _step(scale.end - scale.start)
    tick = -(-scale.start // step) * step
    while tick <= scale.end + step / 1_000:
        x = scale.x(tick)
        yield f'<path d="M{x:.1f},{top} V{bottom + 4}" stroke="#cfd8dc" stroke-width="0.6"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#546e7a">{_time(tick, step)}</text>'
        tick += step


def _step(span: float) -> float:
    """Return the distance of two ticks: 1, 2 or 5 of a power of ten."""
    step = 10.0**-9
    while span / step > TICKS:
        step *= 2.5 if f"{step:.0e}".startswith("2") else 2
    return step


def _time(at: float, step: float) -> str:
    return f"{at * 1_000:.6g} ms" if step < 0.01 else f"{round(at, 6):g} s"


def _lanes(rows: Sequence[Row], scale: Scale, top: int, gaps: Sequence[tuple[float, float]]) -> Iterator[str]:
    for row in rows:
        bar = top + row.height - GAP - BAR
        yield f'<path d="M{scale.left:.1f},{bar + BAR / 2} H{WIDTH - RIGHT}" stroke="#dddddd" stroke-width="0.8"/>'
        look = 'text-anchor="end" font-size="11" fill="#212121"'
        yield f'<text x="{scale.left - 8:.1f}" y="{bar + 12}" {look}>{escaped(shortened(row.name, NAME_MAX))}</text>'
        for span in row.spans:
            yield from _span(span, scale, bar, [scale.x(mark.at) for mark in row.marks])
            yield from _hatched(span, scale, bar, gaps)
        for label in row.labels:
            yield from _labelled(label, bar)
        for mark in row.marks:
            yield _glyph(mark.kind, scale.x(mark.at), bar + BAR / 2, f"{mark.node} at {mark.at:.3f} s: {mark.label}")
        top += row.height


def _span(span: Span, scale: Scale, bar: int, marks: Sequence[float]) -> Iterator[str]:
    x = scale.x(span.start)
    width = max(scale.x(span.end) - x, 1.0)
    thin = span.kind in ("joining", "waiting", "ended")
    y, height = (bar + 4, BAR - 8) if thin else (bar, BAR)
    told = f"{span.node} {span.kind} {span.label} · {span.start:.3f} to {span.end:.3f} s"
    yield (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{COLOURS[span.kind]}">'
        f"<title>{escaped(told)}</title></rect>"
    )
    start = beside(marks, x + 4, len(span.label) * CHAR)
    if span.kind == "running" and start + len(span.label) * CHAR < x + width - 4:
        yield words(start, bar + 12, span.label, "white")


def _hatched(span: Span, scale: Scale, bar: int, gaps: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield stripes over the parts of a span that nobody saw."""
    for start, end in ((max(start, span.start), min(end, span.end)) for start, end in gaps):
        if start < end:
            x, width = scale.x(start), max(scale.x(end) - scale.x(start), 1.0)
            told = f"{span.node} {UNSEEN} · {start:.3f} to {end:.3f} s"
            yield (
                f'<rect x="{x:.1f}" y="{bar}" width="{width:.1f}" height="{BAR}" fill="url(#unseen)">'
                f"<title>{escaped(told)}</title></rect>"
            )


def _labelled(label: Label, bar: int) -> Iterator[str]:
    y = bar - 4 - label.row * STRIP
    if label.row or label.x > label.wanted + 1:
        yield (
            f'<path d="M{label.wanted:.1f},{bar} L{label.x + 1:.1f},{y + 2}" stroke="{label.colour}" stroke-width="0.5" '
            'opacity="0.5" fill="none"/>'
        )
    yield words(label.x, y, label.text, label.colour)


def _glyph(kind: str, x: float, y: float, told: str = "") -> str:
    path, colour, _ = GLYPHS[kind]
    fill = colour if path.endswith("Z") else "none"
    tip = f"<title>{escaped(told)}</title>" if told else ""
    return (
        f'<path transform="translate({x:.1f},{y:.1f})" d="{path}" fill="{fill}" stroke="{colour}" stroke-width="1.4">'
        f"{tip}</path>"
    )


def _strike(x: float, top: int, bottom: int) -> str:
    return f'<path d="M{x:.1f},{top - 6} V{bottom}" stroke="{VIOLATION}" stroke-width="2"/>'
