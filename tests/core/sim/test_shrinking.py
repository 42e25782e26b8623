"""A run that breaks something is made smaller: fewer operations, plainer settings, and still the same is broken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from elastic.core.group import Phase
from elastic.core.sim.properties import Fact, Judge, Stepped, Wrote
from elastic.core.sim.run import Run, tell
from elastic.core.sim.shrink import shrunk
from elastic.core.sim.story import parsed


def two_in(judge: Judge, fact: Fact) -> Iterator[tuple[str, str]]:
    if isinstance(fact, Wrote) and len(fact.after.participants) > 1:
        yield "two", f"{len(fact.after.participants)} nodes are in"


def told(*lines: str) -> Run:
    return tell(parsed(lines), also=(two_in,))


def test_what_is_not_needed_is_left_out() -> None:
    run = told(
        "world min=2", "start c", "pass 0.5", "gap c", "pass 0.5", "start a", "pass 1", "fail a", "start b", "crash b"
    )
    smaller = shrunk(run)
    assert smaller.violation
    assert smaller.violation.number == "two"
    assert len(smaller.story.operations) <= 2


def test_settings_are_made_plainer_as_long_as_the_same_is_broken() -> None:
    lines = ("start a", "start b", "start c", "start d", "pass 1")
    run = told("world nodes=6 min=1 max=4 workers=2 seed=9 drift=0.01 fence=3 barrier=2", *lines)
    setting = shrunk(run).story.setting
    assert (setting.seed, setting.drift, setting.workers, setting.fence, setting.barrier) == (0, 0, 1, 0, 0)
    assert (setting.nodes, setting.max) == (2, 2)


def test_waits_that_follow_each_other_become_one() -> None:
    def late(judge: Judge, fact: Fact) -> Iterator[tuple[str, str]]:
        if isinstance(fact, Stepped) and fact.after.phase is Phase.LEAVING and fact.at > 0.9:
            yield "late", "it leaves after so long"

    lines = ["world nodes=1 max=1", "start a", "pass 0.5", "pass 0.5", "drain a"]
    run = tell(parsed(lines), also=(late,))
    assert [str(each) for each in shrunk(run).story.operations] == ["start a", "pass 1", "drain a"]
    assert all(shrunk(run, tries).violation for tries in range(20))


def test_a_run_in_which_nothing_is_broken_stays_as_it_is() -> None:
    run = tell(parsed(["world nodes=1 max=1", "start a", "pass 1"]))
    assert shrunk(run) is run


@pytest.mark.parametrize("tries", [0, 1, 3])
def test_no_more_tries_are_made_than_are_allowed(tries: int) -> None:
    """One that is cut short is still one that breaks the same."""
    smaller = shrunk(told("world min=2", "start a", "gap a", "start b", "pass 1"), tries)
    assert smaller.violation
    assert smaller.violation.number == "two"


def test_a_run_that_is_not_brought_to_its_end_ends_with_its_story() -> None:
    run = tell(parsed(["world nodes=1 max=1", "start a", "pass 1"]), ends=False)
    assert run.world.future.now == 1.0
    assert any(run.world.living())
