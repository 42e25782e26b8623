"""Draws goodput over time as an SVG: a bar for each span of time, the time of all nodes in it stacked by cause.

A pure function of data. Time is by the wall clocks of the nodes' hosts, from the start of the first node. A bar is as high
as nodes were there. Every part of it has a tooltip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...core.goodput import TRAINING, Book, Entry, Kind, Piece, cause, share
from .goodput import percent, span
from .layout import LEFT, RIGHT, WIDTH
from .svg import drawing, escaped, heading, swatch, swatch_width, words

TOP, HEIGHT = 74, 220
BARS_MAX, TICKS = 48, 10
SECOND = 1_000_000
WIDTHS = tuple(
    unit * many
    for unit, those in (
        (SECOND // 1_000, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (SECOND, (1, 2, 5, 10, 30)),
        (60 * SECOND, (1, 2, 5, 10, 30)),
        (3_600 * SECOND, (1, 2, 6, 12)),
        (24 * 3_600 * SECOND, (1, 7, 28, 364)),
    )
    for many in those
)
"""The widths that a bar may have, in microseconds: of a month it is a day."""
COLOURS: Mapping[str, str] = {
    **dict.fromkeys(TRAINING, "#3f9a68"),
    Kind.PROGRAM.value: "#a5d6a0",
    Kind.FIRST.value: "#9cc3e6",
    Kind.FAILURE.value: "#c62828",
    Kind.HANG.value: "#6a1b9a",
    Kind.LOSS.value: "#f0a04b",
    Kind.UPSCALE.value: "#3f76b5",
    Kind.DRAIN.value: "#b39ddb",
    Kind.STORE.value: "#8d6e63",
    Kind.OPERATOR.value: "#616161",
    Kind.SPARE.value: "#cfcfcf",
    Kind.END.value: "#80cbc4",
    Kind.UNKNOWN.value: "#eeeeee",
}
"""What a part of a bar is -> its colour, from bottom to top."""


def bars(entries: Iterable[tuple[int, Sequence[Entry]]], book: Book, title: str) -> str:
    """Return the text of the SVG. `entries` are those of each node, with its shift to the time of day."""
    pieces = [
        (each.start + shift, each.end + shift, _what(each, book))
        for shift, those in entries
        for each in those
        if isinstance(each, Piece)
    ]
    begin, end = min((at for at, _, _ in pieces), default=0), max((at for _, at, _ in pieces), default=0)
    width = next((each for each in WIDTHS if end - begin <= BARS_MAX * each), WIDTHS[-1])
    spent = _sliced(pieces, begin, width)
    most = max((sum(each.values()) for each in spent.values()), default=0) or 1
    count = max(-(-(end - begin) // width), 1)
    lines = (
        heading(title),
        *_legend({what for each in spent.values() for what in each}),
        *_axes(count, width, most / width),
        *(line for index, each in sorted(spent.items()) for line in _bar(index, count, width, each, most)),
    )
    return drawing(TOP + HEIGHT + 34, lines)


def _what(piece: Piece, book: Book) -> str:
    its = cause(book, share(piece)).kind
    return piece.bucket if its is Kind.NONE else its.value


def _sliced(pieces: Iterable[tuple[int, int, str]], begin: int, width: int) -> dict[int, Counter[str]]:
    """Return the number of each bar -> the microseconds of each of its parts."""
    spent: dict[int, Counter[str]] = {}
    for start, end, what in pieces:
        at = start
        while at < end:
            index = (at - begin) // width
            until = min(end, begin + (index + 1) * width)
            spent.setdefault(index, Counter())[what] += until - at
            at = until
    return spent


def _legend(present: set[str]) -> Iterator[str]:
    x = float(LEFT)
    for what, colour in COLOURS.items():
        if what in present:
            yield swatch(x, 48, colour)
            yield words(x + 18, 48, what, "#424242")
            x += swatch_width(what)


def _axes(count: int, width: int, nodes: float) -> Iterator[str]:
    """Yield the times below every few bars, and how many nodes the whole height is."""
    bottom = TOP + HEIGHT
    yield f'<path d="M{LEFT},{TOP} V{bottom} H{WIDTH - RIGHT}" stroke="#cfd8dc" stroke-width="0.6" fill="none"/>'
    look = 'text-anchor="end" fill="#546e7a"'
    yield f'<text x="{LEFT - 6}" y="{TOP + 4}" {look}>{nodes:.3g} node{"" if nodes == 1 else "s"}</text>'
    step = -(-count // TICKS)
    for index in range(0, count + 1, step):
        x = _x(index, count)
        yield f'<path d="M{x:.1f},{bottom} V{bottom + 4}" stroke="#cfd8dc" stroke-width="0.6"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#546e7a">{span(index * width)}</text>'


def _bar(index: int, count: int, width: int, spent: Counter[str], most: int) -> Iterator[str]:
    left, right, at, total = _x(index, count), _x(index + 1, count), 0, sum(spent.values())
    for what, colour in COLOURS.items():
        if part := spent[what]:
            y, height = TOP + HEIGHT * (1 - (at + part) / most), HEIGHT * part / most
            told = f"{span(index * width)} to {span((index + 1) * width)}: {what} {span(part)}, {percent(part, total)}"
            yield (
                f'<rect x="{left:.1f}" y="{y:.2f}" width="{max(right - left - 1, 0.5):.1f}" height="{height:.2f}" '
                f'fill="{colour}"><title>{escaped(told)}</title></rect>'
            )
            at += part


def _x(index: int, count: int) -> float:
    return LEFT + index * (WIDTH - LEFT - RIGHT) / count
