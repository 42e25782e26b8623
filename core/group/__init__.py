"""The worker group of one node, as a machine: `transition(group, event) -> (group, commands)`."""

from .state import Alone, Group, Outcome, Phase, Settings, Stopped
from .table import MOVES, diagram
from .transition import Step, begin, transition

__all__ = [
    "MOVES",
    "Alone",
    "Group",
    "Outcome",
    "Phase",
    "Settings",
    "Step",
    "Stopped",
    "begin",
    "diagram",
    "transition",
]
