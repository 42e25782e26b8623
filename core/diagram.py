"""A picture of a machine's table of moves."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

Phase = TypeVar("Phase", bound=Enum)


def drawn(moves: Mapping[tuple[Phase, type], tuple[Phase, ...]], first: Phase, last: Phase) -> str:
    """Return the table as a Mermaid state diagram: one arrow per pair of phases, with the events that lead along it."""
    arrows = dict[tuple[Phase, Phase], list[str]]()
    for (phase, event), targets in moves.items():
        for target in targets:
            arrows.setdefault((phase, target), []).append(event.__name__)
    lines = [f"    {start.name} --> {end.name}: {', '.join(events)}" for (start, end), events in arrows.items()]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first.name}", *lines, f"    {last.name} --> [*]"])
