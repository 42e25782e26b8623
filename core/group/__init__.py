"""What this node's workers do: `transition(group, event) -> (group, commands)`."""

from .state import Group, Outcome, Phase, Settings, Stopped
from .table import MOVES, diagram
from .transition import Step, begin, transition

__all__ = ["MOVES", "Group", "Outcome", "Phase", "Settings", "Step", "Stopped", "begin", "diagram", "transition"]
