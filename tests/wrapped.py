"""What end-to-end tests of wrapped functions have in common: a job of such a program, and the words that its ranks tell."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from launches import PROGRAMS, Launch, Launcher

RESTARTS = PROGRAMS / "restarts.py"
LATER = 2
"""The gate of what goes wrong `later`."""
FIRST_GATE, SECOND_GATE = 10, 20
"""Of the first call of the function, and of the second."""
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="no torch here, which serves a store")


def job(
    launch: Launcher,
    *arguments: str,
    ranks: int = 2,
    restarts: int = 0,
    program: str | Path = RESTARTS,
    under: tuple[str, ...] = (),
) -> Launch:
    scope = ("--restart-scope=rank", f"--max-restarts={restarts}")
    return launch(*scope, f"--nproc-per-node={ranks}", program, *arguments, under=under)


def told(running: Launch, count: int) -> list[str]:
    return [f"{each.rank} {each.words}" for each in running.hears(count)]


def begun(
    running: Launch,
    iteration: int = 0,
    ranks: tuple[int, ...] = (0, 1),
    more: int = 0,
    first_gate: int = FIRST_GATE,
) -> list[str]:
    """All are in the function of this iteration, and what is to go wrong there may; what was told until then besides."""
    heard = told(running, len(ranks) + more)
    there = entered(iteration, *ranks, of=len(ranks))
    assert set(there) <= set(heard), (heard, running.account())
    running.open_gate(first_gate + iteration)
    return sorted(set(heard) - set(there))


def comes_to(running: Launch, *words: str) -> None:
    """All of this is told, sooner or later, whatever else is."""
    missing = set(words)
    while missing:
        missing -= set(told(running, 1))


def entered(iteration: int, *ranks: int, of: int = 2) -> list[str]:
    """Survivors move up: the first of them is rank 0."""
    return [f"{rank} in {iteration} of {of} as {place}" for place, rank in enumerate(ranks)]


def returned(iteration: int, *ranks: int) -> list[str]:
    return [f"{rank} returned {rank} in {iteration}" for rank in ranks]
