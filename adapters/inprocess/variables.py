"""Numbers that the launcher's environment gives; a person may have set them by hand."""

from __future__ import annotations

import os

from ..store import numerals


def number(variable: str, default: int, least: int = 0) -> int:
    """Raises ValueError, which names the variable and what it holds."""
    text = os.environ.get(variable, str(default))
    found = numerals.number(os.fsencode(text))
    if found is None or found < least:
        raise ValueError(f"{variable}={text}: a whole number, at least {least}")
    return found


def rank_and_world_size() -> tuple[int, int]:
    rank, world_size = number("RANK", 0), number("WORLD_SIZE", 1, least=1)
    if rank >= world_size:
        raise ValueError(f"RANK={rank}, WORLD_SIZE={world_size}: ranks begin at 0, so the last is {world_size - 1}")
    return rank, world_size
