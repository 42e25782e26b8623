"""Readers of docs/protocol.md: its tables, the numbers of its properties, and the places that cite them.

A citation is the letter of a series (S V B R L G F I C N) with a number, and `b` or ` strong` where two properties share
one: S9, S14b, S9 strong. "I1 to I10" cites all ten. Parts of words, paths and coordinates ("L5,0") do not cite.
In a Python file only comments and strings cite.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from attrs import frozen
from law_tables import NUMBER

CITATION = re.compile(
    r"(?<![\w.,/#-])([SVBRLOGFICN])([1-9]\d?)(?: to \1([1-9]\d?)|(b?(?: strong)?))(?![\w-]|,-?\d)",
)
CODE = re.compile(r"`([^`]+)`")
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
TEXT = ("COMMENT", "STRING", "FSTRING_MIDDLE")
"""The kinds of Python tokens that may cite."""

Row = tuple[str, ...]


@frozen
class Property:
    """A row of the tables of properties. `judged_in`: names of modules, paths of tests, or another number."""

    sentence: str
    judged_in: frozenset[str]


def section(document: str, heading: str) -> str:
    """Return the text under this heading, up to the next heading of its level. Raise LookupError if there is none."""
    found = [match for match in HEADING.finditer(document) if match[2] == heading]
    if len(found) != 1:
        raise LookupError(f"{len(found)} headings {heading!r}")
    level, begin = len(found[0][1]), found[0].end()
    ends = (match.start() for match in HEADING.finditer(document, begin) if len(match[1]) <= level)
    return document[begin : next(ends, len(document))]


def tables(text: str) -> Iterator[tuple[Row, list[Row]]]:
    """Yield the head and the rows of each table."""
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE):
        head, _, *rows = [_cells(line) for line in block.splitlines()]
        yield head, rows


def _cells(line: str) -> Row:
    return tuple(cell.strip() for cell in line.strip().strip("|").split(" | "))


def table(document: str, heading: str, head: str) -> list[Row]:
    """Return the rows of the one table under this heading whose first column has this head. Raise LookupError."""
    found = [rows for names, rows in tables(section(document, heading)) if names[0] == head]
    if len(found) != 1:
        raise LookupError(f"{len(found)} tables of {head!r} under {heading!r}")
    return found[0]


def names(cell: str) -> tuple[str, ...]:
    """Return the code spans of a cell."""
    return tuple(CODE.findall(cell))


def named(document: str, heading: str, head: str) -> list[str]:
    """Return the code spans of the first column of this table, in order."""
    return [name for row in table(document, heading, head) for name in names(row[0])]


def properties(document: str) -> Mapping[str, Property]:
    """Return the properties by number. Raise LookupError for a number that is defined twice, or is no number."""
    found = dict[str, Property]()
    for head, rows in tables(section(document, "Properties")):
        for number, sentence, judged_in in rows if head[0] == "number" else ():
            if number in found or not NUMBER.fullmatch(number):
                raise LookupError(f"{number} is defined twice, or is no number")
            found[number] = Property(sentence, frozenset(names(judged_in) or (judged_in,)))
    return found


def sometimes(document: str, heading: str) -> list[str]:
    return named(document, heading, "name")


def spelled(default: Any) -> str:
    """Return a default as the tables spell it."""
    match default:
        case None:
            return "none"
        case bool():
            return "yes" if default else "no"
        case Enum():
            return str(default.value)
        case int() | float():
            return f"{default:g}"
        case _:
            return str(default) if default else "empty"


def defaults(document: str, heading: str) -> Mapping[str, str]:
    """Return each setting with its default, as spelled."""
    return {name: row[1] for row in table(document, heading, "name") for name in names(row[0])}


def moves(document: str, heading: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
    rows = table(document, heading, "phase")
    return {(*names(phase), *names(event)): names(after) for phase, event, after, _ in rows}  # type: ignore[misc]


# --- citations --------------------------------------------------------------------------------------------------------


def cited(text: str) -> set[str]:
    """Return the numbers that this text cites."""
    found = set[str]()
    for letter, number, last, suffix in CITATION.findall(text):
        found |= (
            {f"{letter}{each}" for each in range(int(number), int(last) + 1)} if last else {letter + number + suffix}
        )
    return found


def texts(file: Path) -> str:
    """Return the text of this file that may cite."""
    if file.suffix != ".py":
        return file.read_text()
    tokens = tokenize.generate_tokens(io.StringIO(file.read_text()).readline)
    return "\n".join(token.string for token in tokens if tokenize.tok_name[token.type] in TEXT)
