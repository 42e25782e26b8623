"""A machine's table of moves, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

Phase = TypeVar("Phase", bound=Enum)


def drawn(moves: Mapping[tuple[Phase, type], tuple[Phase, ...]], first: Phase, last: Phase) -> str:
    """As a Mermaid state diagram: an arrow for each pair of phases, with the events that lead from one to the other."""
    arrows = dict[tuple[Phase, Phase], list[str]]()
    for (phase, event), targets in moves.items():
        for target in targets:
            arrows.setdefault((phase, target), []).append(event.__name__)
    lines = [f"    {start.name} --> {end.name}: {', '.join(events)}" for (start, end), events in arrows.items()]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first.name}", *lines, f"    {last.name} --> [*]"])
