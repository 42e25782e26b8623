"""The code makes all moves of the table, and no others."""

from __future__ import annotations

import re
from itertools import product

import pytest
from groups import EVENTS, GROUPS

from elastic.core.group import MOVES, Group, Phase, diagram, transition
from elastic.core.group.state import Event

PAIRS = list(product(GROUPS.items(), EVENTS.items()))


@pytest.mark.parametrize(
    ("group", "event"),
    [(group, event) for (_, group), (_, event) in PAIRS],
    ids=[f"{group} + {event}" for (group, _), (event, _) in PAIRS],
)
def test_every_event_leaves_the_phase_or_makes_a_listed_move(group: Group, event: Event) -> None:
    after, _ = transition(group, event)
    assert after.phase is group.phase or after.phase in MOVES.get((group.phase, type(event)), ())


def test_every_listed_move_is_made() -> None:
    made = {(group.phase, type(event), transition(group, event)[0].phase) for (_, group), (_, event) in PAIRS}
    listed = {(phase, kind, target) for (phase, kind), targets in MOVES.items() for target in targets}
    assert listed - made == set()


def test_all_phases_and_all_kinds_of_events_are_represented() -> None:
    assert {group.phase for group in GROUPS.values()} == set(Phase)
    assert {type(event) for event in EVENTS.values()} == set(Event.__args__)


def test_no_move_leads_out_of_ended() -> None:
    assert not [pair for pair in MOVES if pair[0] is Phase.ENDED]


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
