"""What a group may not do with failures is found, and what it does is not."""

from __future__ import annotations

import pytest
from groups import ALL_GONE, ALONE, ECHO, FAIL, RAISE, RUN, exited, led, noticed, over

from elastic.core.group import Group, transition
from elastic.core.group.state import Command, Elapsed, End, Event, Exited, Exiting, Raised, Record, Signal, Signalled
from elastic.core.properties.facts import Stepped
from elastic.core.properties.group_laws import G4, G6
from elastic.core.properties.judge import Judge
from elastic.core.properties.law import Strength, asked, findings
from elastic.core.world import Origin, Why

FAILED, OPEN = End(Why.FAILED), End(Why.FAILED, is_open=True)
RUNNING, WAITS, LEFT = led(*RUN), led(*ECHO), led(*RAISE, exited(1, -15, at=1.1))
REAL, ON_RECORD = Raised(1, 0.9, 1.2), Record(1, None, 0.9, Origin.RAISE)
EARLY, LATE = Exited(1, 7, 1.2, 1.2, is_echo=True, began_at=0.9), Exited(1, 7, 1.3, 1.3, began_at=1.1)


def found(before: Group, event: Event, *commands: Command) -> list[str]:
    after, _ = transition(before, event)
    step = Stepped(before, event, after, commands, 0.0)
    return [number for number, _ in findings(asked((G4, G6)), Judge(), step, Strength())]


@pytest.mark.parametrize(
    ("number", "group", "event", "commands"),
    [
        ("G4", RUNNING, REAL, (ON_RECORD,)),
        ("G4", RUNNING, exited(1, 1), (Record(1, 1, 0.0),)),
        ("G4", WAITS, REAL, (ON_RECORD,)),
        ("G4", RUNNING, REAL, (ON_RECORD, OPEN)),
        ("G4", WAITS, REAL, (ON_RECORD, OPEN)),
        ("G4", WAITS, Elapsed(1.5), ()),
        ("G4", WAITS, Elapsed(1.5), (FAILED,)),
        ("G4", RUNNING, ECHO[-1], (Record(0, None, 1.0, Origin.RAISE), FAILED)),
        ("G4", WAITS, EARLY, (Record(1, 7, 0.9, Origin.ENDING),)),
        ("G4", WAITS, LATE, (Record(1, 7, 1.1, Origin.ENDING), FAILED)),
        ("G4", RUNNING, EARLY, (Record(1, 7, 0.9, Origin.ENDING),)),
        ("G4", RUNNING, Elapsed(1.5), (OPEN,)),
        ("G4", led(*FAIL), Raised(1, 1.5, 1.5), (Record(1, None, 1.5, Origin.RAISE),)),
        ("G6", RUNNING, REAL, (ON_RECORD, FAILED, Signal(15))),
        ("G6", LEFT, Elapsed(2.9), (Signal(15),)),
        ("G6", led(*RAISE), Elapsed(3.0), (Signal(15),)),
        ("G6", led(*RAISE, settings=ALONE), Elapsed(2.9), (Signal(15),)),
        ("G6", led(*RAISE, Elapsed(3.0), settings=ALONE), Elapsed(4.0), (Signal(15),)),
    ],
)
def test_what_a_group_may_not_do(number: str, group: Group, event: Event, commands: tuple[Command, ...]) -> None:
    assert found(group, event, *commands) == [number]


@pytest.mark.parametrize(
    ("group", "event"),
    [
        (RUNNING, REAL),
        (RUNNING, ECHO[-1]),
        (RUNNING, exited(1, 1)),
        (led(), over()),
        (led(*RUN, settings=ALONE), exited(1, 71)),
        (RUNNING, EARLY),
        (WAITS, EARLY),
        (WAITS, LATE),
        (WAITS, REAL),
        (WAITS, Elapsed(1.4)),
        (WAITS, Elapsed(1.5)),
        (WAITS, exited(0, 1)),
        (led(*ECHO, *ALL_GONE), Elapsed(1.5)),
        (led(*ECHO, exited(1, -15)), Elapsed(31.0)),
        (LEFT, Elapsed(3.0)),
        (led(*RUN, Exiting(1, 0.5, 0.5), RAISE[-1]), Elapsed(3.0)),
        (led(*RAISE, settings=ALONE), Elapsed(3.0)),
        (led(*RAISE, settings=ALONE), Signalled(15, 1.1)),
        (led(*RAISE, noticed(300.0, at=1.1), exited(1, -15)), Elapsed(3.0)),
    ],
)
def test_what_a_group_does_is_right(group: Group, event: Event) -> None:
    assert found(group, event, *transition(group, event)[1]) == []
