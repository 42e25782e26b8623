"""What a picture looks like: sizes in pixels, colours, glyphs, and the words of its legend."""

from __future__ import annotations

from collections.abc import Mapping

WIDTH, LEFT, RIGHT = 1_280, 96, 20
BAR, STRIP, GAP = 16, 13, 9
"""Heights: of a bar, of a row of labels above it, and between two lanes."""
FONT, CHAR = 9.5, 5.72
"""Of labels, all letters of one width."""
ROWS_MAX, SHIFT_MAX = 6, 90
NAME_MAX, NAME_CHAR = 48, 6.9
"""Of the names of lanes: letters, and pixels of a letter at most. The lanes begin where the longest name ends."""

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
