"""Runs of the simulator: the same seed is the same run, and no run breaks a property."""

from __future__ import annotations

from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import Run, tell, wander
from elastic.core.sim.story import Backend, parsed
from elastic.core.sim.swarm import Shape

RUNS = 40
"""property_tests/test_simulator.py makes 1,000."""


def test_no_run_breaks_a_property() -> None:
    runs = [wander(seed, Shape(nodes=2 + seed % 5)) for seed in range(RUNS)]
    assert [(seed, str(run.violation)) for seed, run in enumerate(runs) if run.violation] == []


def test_a_cancelled_job_may_lose_its_store_a_moment_later() -> None:
    shape = Shape(nodes=2, faults=frozenset((Kind.CANCEL, Kind.EMPTY)), operations=5)
    runs = [[each.kind for each in wander(seed, shape).story.operations] for seed in range(RUNS)]
    loss = [Kind.CANCEL, Kind.PASS, Kind.EMPTY, Kind.PASS]
    assert any(kinds[place : place + len(loss)] == loss for kinds in runs for place in range(len(kinds)))


def _narrated(seed: int) -> tuple[Run, list[str]]:
    lines = list[str]()
    return wander(seed, Shape(), lambda at, who, what: lines.append(f"{at} {who} {what}")), lines


def test_the_same_seed_is_the_same_run() -> None:
    assert _narrated(7)[1] == _narrated(7)[1]
    assert _narrated(7)[1] != _narrated(8)[1]


def _told(text: str) -> list[str]:
    lines = list[str]()
    tell(parsed(text.splitlines()), lambda at, who, what: lines.append(f"{at} {who} {what}"))
    return lines


def test_a_run_told_again_from_its_text_is_the_same_run() -> None:
    for seed in range(5):
        run, lines = _narrated(seed)
        assert _told(str(run.story)) == lines


def test_a_run_keeps_the_settings_that_were_asked_for() -> None:
    shape = Shape(
        nodes=4, min=2, max=3, backend=Backend.LEASE, faults=frozenset((Kind.CRASH, Kind.START)), operations=10
    )
    for seed in range(20):
        run = wander(seed, shape)
        setting = run.story.setting
        assert (setting.nodes, setting.backend) == (4, Backend.LEASE)
        assert (setting.limits.min_nodes, setting.limits.max_nodes) == (2, 3)
        assert {operation.kind for operation in run.story.operations} <= {Kind.CRASH, Kind.START, Kind.PASS}


def test_without_faults_a_run_still_ends_in_success() -> None:
    for seed in range(20):
        run = wander(seed, Shape(faults=frozenset()))
        assert run.violation is None
        assert run.world.counts["closed SUCCEEDED"] == 1
