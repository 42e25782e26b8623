"""Simulated nodes that fail too often are set aside, come back after their cool-down, and stay where they are needed."""

from __future__ import annotations

from elastic.core.sim.run import Run, tell
from elastic.core.sim.story import parsed

RETURNS = """world node_failures=1 window=20 restarts=9
start a
start b
start c
pass 3
fail b
pass 10
"""
NEEDED = """world nodes=2 min=2 max=2 node_failures=1 window=20 restarts=9
start a
start b
pass 1
fail b
"""
CALLED = """world min=2 node_failures=1 window=1000 restarts=9
start a
start b
start c
pass 3
fail b
pass 5
crash c
pass 20
"""
EXPLAINED = """world node_failures=1 window=20 restarts=9
start a
start b
start c
pass 3
crash c
fail b
pass 1
"""


def told(text: str) -> Run:
    run = tell(parsed(text.splitlines()))
    assert run.violation is None, run.violation
    return run


def seen(run: Run) -> list[str]:
    return [what for what in run.world.counts if "aside" in what or "failing" in what]


def armed(run: Run) -> dict[str, int]:
    return {law: many for law, many in run.world.witness.judge.strength.armed.items() if law in LAWS}


LAWS = ("V17", "V18", "V19", "V20", "O9")


def test_a_node_that_failed_too_often_is_set_aside_and_returns_after_its_cool_down() -> None:
    run = told(RETURNS)
    assert seen(run) == ["a failing node is set aside", "a node that is set aside returns"]
    assert armed(run).keys() == {"V17", "V19", "V20", "O9"}


def test_a_node_that_the_job_needs_stays() -> None:
    assert seen(told(NEEDED)) == ["a failing node stays: the job needs it"]


def test_a_node_that_is_set_aside_is_called_back_when_the_others_are_too_few() -> None:
    run = told(CALLED)
    assert seen(run)[:2] == ["a failing node is set aside", "a node that is set aside is called back"]
    assert armed(run)["V20"]


def test_a_node_whose_failure_a_lost_node_explains_stays() -> None:
    assert seen(told(EXPLAINED)) == []
