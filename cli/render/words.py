"""Small pieces of what people read."""

from __future__ import annotations


def count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def many(number: int, thing: str) -> str:
    """A number that may be large."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def first_line(text: str) -> str:
    """The first line that says something; what a terminal would obey is spelled out, since a worker wrote it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return printable(line)


def printable(line: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
