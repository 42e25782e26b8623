"""A world of simulated nodes: the same `turn` and `transition` as production, under faults, in virtual time.

Pure and seedable. The only chance is `choose(n)`; nothing sleeps, and no thread runs.

    from elastic.core import sim

    run = sim.wander(seed=1, shape=sim.Shape(nodes=3))

The names are gathered in `public`, which is imported when the first of them is asked for: an agent that writes a trace needs
a few files of this room and no simulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .public import (
        ALWAYS,
        DRAWN,
        EVENTUALLY,
        FAULTS,
        SOMETIMES,
        Backend,
        Broken,
        Choose,
        Fact,
        Failed,
        Judge,
        Kind,
        Lanes,
        Left,
        Mark,
        Narrator,
        Operation,
        Property,
        Reaped,
        Run,
        Setting,
        Shape,
        Showed,
        Span,
        Started,
        Stepped,
        Story,
        StoryError,
        Succeeded,
        Tally,
        Violation,
        WaitsForever,
        World,
        Wrote,
        converges,
        drawn,
        one,
        parsed,
        run_seed,
        seeded,
        showed,
        shrunk,
        tell,
        wander,
    )

__all__ = [
    "ALWAYS",
    "DRAWN",
    "EVENTUALLY",
    "FAULTS",
    "SOMETIMES",
    "Backend",
    "Broken",
    "Choose",
    "Fact",
    "Failed",
    "Judge",
    "Kind",
    "Lanes",
    "Left",
    "Mark",
    "Narrator",
    "Operation",
    "Property",
    "Reaped",
    "Run",
    "Setting",
    "Shape",
    "Showed",
    "Span",
    "Started",
    "Stepped",
    "Story",
    "StoryError",
    "Succeeded",
    "Tally",
    "Violation",
    "WaitsForever",
    "World",
    "Wrote",
    "converges",
    "drawn",
    "one",
    "parsed",
    "run_seed",
    "seeded",
    "showed",
    "shrunk",
    "tell",
    "wander",
]

if not TYPE_CHECKING:  # pragma: no branch

    def __getattr__(name):
        if name in __all__:
            from . import public

            return getattr(public, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
