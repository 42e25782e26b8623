"""The form of a story file: blocks of commands, `----`, and what comes of them; everything else is for the reader.

A story is run from its first line to its last, and compared as a whole; REWRITE=1 records it instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

RULE = "----"

Teller = Callable[[str], list[str]]
"""Carries out one command; returns what came of it."""


def retold(text: str, teller: Teller) -> str:
    """The story as it goes now."""
    return "\n".join(_retold(text.splitlines(), teller)) + "\n"


def check(path: Path, teller: Teller) -> None:
    recorded = path.read_text()
    now = retold(recorded, teller)
    if os.environ.get("REWRITE"):
        path.write_text(now)
    else:
        assert now == recorded, f"{path.name} goes otherwise now; REWRITE=1 records it"


def _retold(lines: list[str], teller: Teller) -> Iterator[str]:
    told: list[str] | None = []  # what the commands since the last rule came to; None: old text, passed over
    for line in lines:
        if line == RULE:
            yield line
            yield from told or ["(nothing)"]
            told = None
        elif not line or line.startswith("#"):
            assert not told, f"what comes of it has no place: {RULE} is missing above {line!r}; {told}"
            told = []
            yield line
        elif told is not None:
            yield line
            told += teller(line)
