"""Restart of single workers: when a worker starts again, when it stays missing, and how the node ends then."""

from __future__ import annotations

import pytest
from groups import FAIL, RUN, commands, exited, led, over

from elastic.core.group import Alone, Group, Phase, Settings, transition
from elastic.core.group.state import SIGTERM, Command, End, Event, MarkDone, Reaped, Record, Signal, StartAgain
from elastic.core.world import Why

TWICE = Settings(alone=Alone(2, frozenset({76}), frozenset({71})))


def alone(*events: Event) -> Group:
    return led(*RUN, *events, settings=TWICE)


def told(group: Group, *events: Event) -> tuple[Phase, tuple[Command, ...]]:
    for event in events[:-1]:
        group, _ = transition(group, event)
    return transition(group, events[-1])[0].phase, commands(group, events[-1])


def test_a_worker_that_fails_is_started_again_and_the_others_run_on() -> None:
    assert told(alone(), exited(0, -9)) == (Phase.RUNNING, (Record(0, -9, 0.0), StartAgain(0)))
    assert alone(exited(0, -9)).running == {0, 1}


def test_the_budget_is_the_node_s_in_this_world() -> None:
    spent = alone(exited(0, 1), exited(1, 1))
    assert told(spent, exited(0, 1)) == (Phase.RUNNING, (Record(0, 1, 0.0),))
    assert spent.restarted == 2
    again = led(*RUN, exited(0, 1), over(0), exited(0, -15), exited(1, -15), Reaped(2.0), settings=TWICE)
    assert again.phase is Phase.JOINING
    assert led(*FAIL).restarted == 0


def test_a_worker_with_a_final_exit_code_stays_missing_and_the_others_run_on() -> None:
    assert told(alone(), exited(0, 76)) == (Phase.RUNNING, (Record(0, 76, 0.0),))


def test_when_the_last_worker_is_gone_the_success_of_another_counts() -> None:
    assert told(alone(exited(0, 0)), exited(1, 76)) == (Phase.BARRIER, (Record(1, 76, 0.0), MarkDone()))
    assert told(alone(exited(1, 76)), exited(0, 0)) == (Phase.BARRIER, (MarkDone(),))
    assert told(alone(exited(0, 76)), exited(1, 76)) == (Phase.STOPPING, (Record(1, 76, 0.0), End(Why.FAILED)))


@pytest.mark.parametrize("earlier", [(), (exited(1, -9),)])
def test_a_worker_that_says_that_all_have_given_up_ends_the_round(earlier: tuple[Event, ...]) -> None:
    phase, words = told(alone(), *earlier, exited(0, 71))
    assert (phase, words) == (Phase.STOPPING, (Record(0, 71, 0.0), End(Why.FAILED), Signal(SIGTERM)))


def test_a_new_world_begins_with_the_whole_budget() -> None:
    second = led(*RUN, exited(0, 1), exited(1, 1), exited(0, 0), exited(1, 0), settings=TWICE)
    assert (second.phase, second.restarted, second.succeeded) == (Phase.BARRIER, 2, True)


def test_less_than_no_restart_is_refused() -> None:
    with pytest.raises(ValueError, match="restarts_max: 0 or more, not -1"):
        Alone(-1)
