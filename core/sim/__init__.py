"""A world of simulated nodes: the same core as production, under faults, in virtual time.

Pure and seedable. The only chance is `choose(n)`; nothing sleeps, and no thread runs.

    from elastic.core import sim

    run = sim.wander(seed=1, shape=sim.Shape(nodes=3))

What must hold of a run is in `core.properties`. Real traces are taken again by `core.replay`. The simulator uses both.
"""

from __future__ import annotations

from ..properties.facts import Fact, Failed, Left, Reaped, Started, Stepped, Succeeded, WaitsForever, Wrote
from ..properties.judge import Judge, Property
from ..rendezvous import Violation
from ..replay.lanes import Lanes, Mark, Span
from .chance import Choose, one, seeded
from .drawing import drawn
from .kinds import Kind
from .narration import Narrator
from .own import Own
from .programs import Follows
from .run import Run, converges, run_seed, tell, wander
from .shrink import shrunk
from .simulation import World
from .sometimes import SOMETIMES
from .story import QUICK, Backend, Operation, Setting, Story, StoryError, parsed
from .swarm import DRAWN, Shape
from .tally import LAWS, Broken, Showed, Tally, showed
from .what_if import Forecast, Played, Supposition, calibration, record, what_if

__all__ = [
    "DRAWN",
    "LAWS",
    "QUICK",
    "SOMETIMES",
    "Backend",
    "Broken",
    "Choose",
    "Fact",
    "Failed",
    "Follows",
    "Forecast",
    "Judge",
    "Kind",
    "Lanes",
    "Left",
    "Mark",
    "Narrator",
    "Operation",
    "Own",
    "Played",
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
    "Supposition",
    "Tally",
    "Violation",
    "WaitsForever",
    "World",
    "Wrote",
    "calibration",
    "converges",
    "drawn",
    "one",
    "parsed",
    "record",
    "run_seed",
    "seeded",
    "showed",
    "shrunk",
    "tell",
    "wander",
    "what_if",
]
