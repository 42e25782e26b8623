"""Pieces of the text that people read."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from ...adapters.terminal import printable, printed


def count(number: int, thing: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def many(number: int, thing: str) -> str:
    """Return `1 run`, `12,000 runs`: for numbers that may be large."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def first_line(text: str) -> str:
    """Return the first line that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def say(*lines: str, err: bool = False) -> None:
    """Print lines for people."""
    click.echo(printed(*lines), err=err, nl=False)


def say_data(data: object, indent: int | None = 2) -> None:
    """Print data for programs: JSON, which spells control characters out too. Without `indent` it is one line."""
    click.echo(json.dumps(data, indent=indent))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for the head and for each row, in columns."""
    all = [head, *rows]
    widths = [max(len(printable(row[column])) for row in all) for column in range(len(head))]
    return [
        "  ".join(printable(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in all
    ]
