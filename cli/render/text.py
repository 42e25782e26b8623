"""Pieces of the text that people read."""

from __future__ import annotations


def count(number: int, thing: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def many(number: int, thing: str) -> str:
    """Return `1 run`, `12,000 runs`: for numbers that may be large."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def first_line(text: str) -> str:
    """Return the first line that is not blank, printable: a worker wrote it, and a terminal would obey its escape codes."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return printable(line)


def printable(line: str) -> str:
    """Return the line with its control characters spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
