"""Runs of the simulator: the same seed is the same run. property_tests/test_runs.py asks many runs what they show."""

from __future__ import annotations

from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import Run, wander
from elastic.core.sim.story import parsed_operation, parsed_setting
from elastic.core.sim.swarm import Shape, _bursts_of

RUNS = 40


def test_each_burst_of_a_world_that_has_features_is_of_operations_on_its_nodes() -> None:
    setting = parsed_setting("world nodes=4 max=4 alone=1 codes=1 hang=9 shutdown=2 give_up=2 party=2")
    bursts = [burst.format("a", "b") for burst in _bursts_of(setting, "b", losses=1)]
    assert "fail a; fail a; fail a" in bursts
    done = [parsed_operation(line) for burst in bursts for line in burst.split("; ")]
    assert {each.slot for each in done} == {"", "a", "b"}


def test_a_cancelled_job_may_lose_its_store_a_moment_later() -> None:
    shape = Shape(nodes=2, faults=frozenset((Kind.CANCEL, Kind.EMPTY)), operations=5)
    runs = ([each.kind for each in wander(seed, shape).story.operations] for seed in range(RUNS))
    loss = [Kind.CANCEL, Kind.PASS, Kind.EMPTY, Kind.PASS]
    assert any(kinds[place : place + len(loss)] == loss for kinds in runs for place in range(len(kinds)))


def _narrated(seed: int) -> tuple[Run, list[str]]:
    lines = list[str]()
    return wander(seed, Shape(), lambda at, who, what: lines.append(f"{at} {who} {what}")), lines


def test_the_same_seed_is_the_same_run() -> None:
    assert _narrated(7)[1] == _narrated(7)[1]
    assert _narrated(7)[1] != _narrated(8)[1]
