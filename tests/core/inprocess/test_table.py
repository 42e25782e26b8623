"""The picture of a call is drawn from its table of moves. property_tests/test_call_moves.py holds the code to the table."""

from __future__ import annotations

import re

from elastic.core.inprocess import MOVES, diagram


def test_the_diagram_shows_every_move() -> None:
    text = diagram()
    assert text.startswith("stateDiagram-v2\n    [*] --> JOINING\n")
    assert text.endswith("\n    ENDED --> [*]")
    drawn = {
        (start, end, event)
        for start, end, events in re.findall(r"^ {4}(\w+) --> (\w+): (.+)$", text, re.MULTILINE)
        for event in events.split(", ")
    }
    listed = {(phase.name, to.name, event.__name__) for (phase, event), targets in MOVES.items() for to in targets}
    assert drawn == listed
