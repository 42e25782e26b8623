"""The pieces of an SVG that our pictures share: the frame, the title, texts of a set width, the swatches of a legend."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ...adapters.terminal import printable
from .layout import CHAR, FONT, LEFT, WIDTH


def drawing(height: int, lines: Iterable[str]) -> str:
    """Return the text of an SVG with these elements, on white."""
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
            '<g font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="10">',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            *lines,
            "</g>\n</svg>\n",
        )
    )


def escaped(text: str) -> str:
    """Return the text as XML has it. What no text of XML may hold, or nobody sees, is spelled out."""
    return escape(printable(text))


def heading(title: str) -> str:
    return f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold" fill="#212121">{escaped(title)}</text>'


def swatch(x: float, y: int, fill: str) -> str:
    """Return the colour of a kind, left of its name in a legend."""
    return f'<rect x="{x:.1f}" y="{y - 8}" width="14" height="9" fill="{fill}"/>'


def swatch_width(word: str) -> float:
    """Return the width of a colour with its name."""
    return 18 + len(word) * CHAR + 16


def words(x: float, y: float, text: str, colour: str, bold: bool = False) -> str:
    """Return a text of its set width; a rim makes it readable on lines."""
    weight = ' font-weight="bold"' if bold else ""
    rim = "" if colour == "white" else ' stroke="white" stroke-width="2" paint-order="stroke"'
    return (
        f'<text x="{x:.1f}" y="{y}" font-family="DejaVu Sans Mono, Menlo, monospace" font-size="{FONT}" '
        f'textLength="{len(text) * CHAR:.1f}" lengthAdjust="spacingAndGlyphs" '
        f'fill="{colour}"{weight}{rim}>{escaped(text)}</text>'
    )
