"""What the author of a simulator or of a model-based test imports, gathered. `elastic.core.sim` gives out these names."""

from __future__ import annotations

from ..rendezvous import Violation
from .chance import Choose, one, seeded
from .drawing import drawn
from .facts import Fact, Failed, Left, Reaped, Started, Stepped, Succeeded, WaitsForever, Wrote
from .judge import Judge, Property
from .lanes import Lanes, Mark, Span
from .narration import Narrator
from .properties import ALWAYS, EVENTUALLY
from .run import Run, converges, run_seed, tell, wander
from .shrink import shrunk
from .sometimes import SOMETIMES
from .story import Backend, Kind, Operation, Setting, Story, StoryError, parsed
from .swarm import DRAWN, FAULTS, Shape
from .tally import Broken, Showed, Tally, showed
from .world import World

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
