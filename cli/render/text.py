"""Pieces of the text that people read."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import click

from ...adapters.store.connection import IN_MEMORY
from ...adapters.terminal import printable, printed, why


def count(number: int, thing: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def at(store: str) -> str:
    """Return where a job's store of this name is, behind the job's name."""
    return store if store == IN_MEMORY else f"at {store}"


def many(number: int, thing: str) -> str:
    """Return `1 run`, `12,000 runs`: for numbers that may be large."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def lasted(length_s: float) -> str:
    """Return how long something took: in milliseconds, below a second."""
    return f"{length_s * 1_000:.0f} ms" if length_s < 0.9995 else f"{length_s:.1f} s"


def shortened(name: str, most: int) -> str:
    """Return the name, or its two ends if it is longer than there is room for."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def first_line(text: str) -> str:
    """Return the first line that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def time_of_day(when: str, after_s: float = 0.0) -> str:
    """Return a record's time of day, or this long after it, on this host's clock. Old records have no zone: theirs is as
    it was written. Nothing for what is no time."""
    try:
        at = datetime.fromisoformat(when) + timedelta(seconds=after_s)
        return f"{at if at.tzinfo is None else at.astimezone():%H:%M:%S}"
    except (ValueError, OverflowError):
        return ""


def coloured(text: str) -> str:
    """Return the text with FAILED in red and `lost` in yellow, for a terminal."""
    return re.sub(_MARKED, lambda found: f"\x1b[{_COLOURS[found[0]]}m{found[0]}\x1b[0m", text)


_COLOURS = {"FAILED": 31, "lost": 33}
_MARKED = rf"\b({'|'.join(_COLOURS)})\b"


class CannotPrint(Exception):
    """Standard output takes no text, as on a full disk. The text is the reason."""


def say(*lines: str, err: bool = False) -> bool:
    """Print lines for people. Return False if nobody reads them."""
    return _print(printed(*lines), err)


def say_data(data: object, indent: int | None = 2) -> bool:
    """Print data for programs: JSON, which spells control characters out too. Without `indent` it is one line. Return
    False if nobody reads it."""
    return _print(json.dumps(data, indent=indent) + "\n")


def _print(text: str, err: bool = False) -> bool:
    try:
        click.echo(text, err=err, nl=False)
    except OSError as error:
        if not err and error.errno != errno.EPIPE:
            raise CannotPrint(why(error)) from None
        return False
    return True


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for the head and for each row, in columns."""
    all = [head, *rows]
    widths = [max(len(printable(row[column])) for row in all) for column in range(len(head))]
    return [
        "  ".join(printable(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in all
    ]
