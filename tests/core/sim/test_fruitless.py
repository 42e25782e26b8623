"""Simulated nodes that die as one after each start: the job goes in circles and ends, unless its rounds grow old."""

from __future__ import annotations

import pytest

from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import Run, tell
from elastic.core.sim.story import PROGRESS_BEATS, Operation, Story, parsed
from elastic.core.world import Why

BEGINS = "world attempts=3 min={min} max=2 give_up={give_up} counts_failures={counts}\nstart a\nstart b\npass 3\n"


def told(circle: str, rounds: int, least: int = 2, give_up: int = 4, counts: int = 0) -> Run:
    text = BEGINS.format(min=least, give_up=give_up, counts=counts) + circle * rounds
    run = tell(parsed(text.splitlines()))
    assert run.violation is None, run.violation
    return run


def why(run: Run) -> Why | None:
    register = run.world.store.register
    return register.closed.why if register and register.closed else None


AT_ONCE = "crash b\nstart b\npass 3\n"
LATE = "crash b\npass 9\nstart b\npass 3\n"


@pytest.mark.parametrize(
    ("circle", "least"), [(AT_ONCE, 2), (AT_ONCE, 1), (LATE, 1)], ids=["at once", "elastic", "late"]
)
def test_a_job_that_goes_in_circles_ends_within_its_rounds_and_all_that_live_are_told(circle: str, least: int) -> None:
    run = told(circle, 4, least)
    assert why(run) is Why.FRUITLESS
    assert run.world.counts["closed FAILED: no progress"] == 1
    assert not list(run.world.living())


def test_a_node_that_comes_back_late_ends_two_rounds_in_each_circle() -> None:
    run = told(LATE, 2, least=1)
    assert why(run) is Why.FRUITLESS
    assert run.world.counts["a round ends for the return of a lost node"] == 2


def test_a_job_whose_rounds_grow_old_goes_on() -> None:
    run = told(f"crash b\nstart b\npass {PROGRESS_BEATS + 4}\n", 9)
    assert why(run) is Why.DONE
    assert run.world.counts["fruitless rounds count no longer"] == 1


@pytest.mark.parametrize(("counts", "ends"), [(0, Why.DONE), (1, Why.FRUITLESS)])
def test_failures_count_where_they_are_to(counts: int, ends: Why) -> None:
    assert why(told("fail b\npass 3\n", 3, give_up=3, counts=counts)) is ends


def test_drains_and_first_comers_do_not_count() -> None:
    run = told("drain b\npass 3\nstart b\npass 6\n", 4, least=1, give_up=1)
    assert why(run) is Why.DONE


def test_a_job_without_a_limit_goes_round_and_round() -> None:
    run = told(AT_ONCE, 12, give_up=0)
    assert why(run) is Why.DONE
    assert run.world.counts["end by lost"] == 12


def test_it_is_told_that_a_round_has_grown_old() -> None:
    told_of = list[str]()
    text = BEGINS.format(min=2, give_up=2, counts=0) + f"crash b\nstart b\npass {PROGRESS_BEATS + 4}\n"
    tell(parsed(text.splitlines()), lambda at, who, what: told_of.append(what))
    assert any(each.startswith("says that round 1 makes progress → ") for each in told_of)


def test_a_job_whose_steps_rise_in_each_round_goes_on() -> None:
    run = told("crash b\nstart b\npass 3\nadvance a\npass 1\n", 9, give_up=1)
    assert why(run) is Why.FRUITLESS, "the first round has no step"
    run = told("advance a\npass 1\ncrash b\nstart b\npass 3\n", 9, give_up=1)
    assert why(run) is Why.DONE


def test_an_agent_that_stands_still_hears_of_steps_when_it_wakes() -> None:
    run = told("pause a 1\nadvance a\npass 3\ncrash b\nstart b\npass 3\n", 5, give_up=1)
    assert why(run) is Why.DONE


def test_a_newcomer_that_cannot_start_workers_goes_and_ends_no_round() -> None:
    run = told("start-unable c\npass 9\n", 1, least=1)
    assert why(run) is Why.DONE
    assert run.world.counts["the job goes on without a node that cannot start workers"] == 1


def test_a_newcomer_that_dies_of_each_round_that_begins_for_it_ends_the_job() -> None:
    """The worker of the other node takes its grace to end, and the newcomer is dead before the round is complete."""
    run = told("crash b\npass 9\n" + "advance a\npass 1\nhang a\nstart b\npass 2\ncrash b\npass 9\n", 1, least=1)
    assert why(run) is not Why.FRUITLESS
    circle = "hang a\nstart b\npass 2\ncrash b\npass 9\n"
    run = told(circle, 4, least=1)
    assert why(run) is Why.FRUITLESS


def test_a_store_that_loses_its_memory_forgets_no_circle() -> None:
    story = parsed((BEGINS.format(min=2, give_up=3, counts=0) + AT_ONCE * 2).splitlines())
    loses = (Operation(Kind.EMPTY), Operation(Kind.PASS, span=3.0))
    again = tuple(parsed(("world\n" + AT_ONCE).splitlines()).operations)
    run = tell(Story(story.setting, (*story.operations, *loses, *again)))
    assert run.violation is None, run.violation
    assert why(run) is Why.FRUITLESS
