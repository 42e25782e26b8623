"""Packed lines of a trace: a line that repeats a recent one but for its numbers is written as these numbers alone.

An idle agent takes the same three steps each second, and their times and counters are all that differs. Packing loses
nothing: a reader makes the step from the numbers, or the whole line where its form cannot be used.

A packed line is an array: how many lines back the one with this shape is, then the numbers in their order. A writer refers
to its own lines alone, so a reader may remember more of them.
"""

from __future__ import annotations

import re

import msgspec

from ...core.trace.forms import Form, Repeated, Shape

REACH = 32
"""This many lines back a packed line may refer."""
KEPT_MAX = 4_096
"""Lines of more bytes are not referred to."""
_WORDS = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)')
_NUMBERS = msgspec.json.Decoder(list[int | float])


def packed(line: bytes, recent: tuple[Shape, ...]) -> tuple[bytes, tuple[Shape, ...]]:
    """Return the line as it is written, and the shapes that the next line may refer to, the newest first."""
    shape, numbers = _split(line)
    written = line
    if numbers and shape in recent:
        written = b"[%d,%b]\n" % (recent.index(shape) + 1, b",".join(numbers))
    return written, (shape, *recent[: REACH - 1])


def unpacked(line: bytes, recent: tuple[Form, ...]) -> tuple[bytes | Repeated, tuple[Form, ...]]:
    """Return the line, as a Repeated if it was packed, and the forms that the next line may refer to. Raises ValueError."""
    if not line.startswith(b"["):
        return line, (Form(_split(line)[0]), *recent[: REACH - 1])
    try:
        numbers = _NUMBERS.decode(line)
    except msgspec.DecodeError:
        numbers = []
    back = numbers[0] if len(numbers) > 1 and line.endswith(b"]\n") else 0
    form = recent[back - 1] if isinstance(back, int) and 0 < back <= len(recent) else None
    if form is None or len(form.shape) != len(numbers):
        raise ValueError("numbers that fit no line before it")
    return Repeated(form, numbers, line), (form, *recent[: REACH - 1])


def _split(line: bytes) -> tuple[Shape, list[bytes]]:
    """Return the line's shape and its numbers; neither for a line that is too long."""
    if len(line) > KEPT_MAX:
        return (), []
    parts, numbers, at = [], [], 0
    for word in _WORDS.finditer(line):
        if word[1]:
            parts.append(line[at : word.start()])
            numbers.append(word[1])
            at = word.end()
    return (*parts, line[at:]), numbers
