"""What is progress of a worker while the store is silent, and since when a node stands still."""

from __future__ import annotations

import pytest
from attrs import evolve

from elastic.core.standstill import Sight, Watch, every_s, look

ONE, TWO = Sight(10, 5, 100, 101, "recv"), Sight(11, 0, 30, 30, "sleep")
LATER = {0: evolve(ONE, cpu_before=101, cpu_after=102), 1: TWO}
WATCH = look(Watch(), {0: ONE, 1: TWO}, 3.0)


def test_a_node_stands_still_from_the_first_look_on() -> None:
    assert WATCH.since == 3.0
    assert look(WATCH, LATER, 9.0).since == 3.0


def test_the_cpu_time_that_a_look_costs_is_no_progress() -> None:
    watch = look(look(WATCH, LATER, 9.0), {0: evolve(ONE, cpu_before=102, cpu_after=103), 1: TWO}, 10.0)
    assert watch.since == 3.0


@pytest.mark.parametrize(
    "sight",
    [
        evolve(TWO, output=1),
        evolve(TWO, cpu_before=31, cpu_after=31),
        evolve(TWO, stack="step"),
        evolve(TWO, pid=12),
        None,
    ],
    ids=["output", "CPU time", "stack", "another process", "gone"],
)
def test_one_worker_that_moves_is_enough(sight: Sight | None) -> None:
    sights = {rank: each for rank, each in {**LATER, 1: sight}.items() if each}
    assert look(WATCH, sights, 9.0).since == 9.0


def test_a_node_without_workers_does_not_stand_still() -> None:
    assert look(WATCH, {}, 9.0) == Watch()


def test_there_are_eight_looks_within_the_span() -> None:
    assert [every_s(30.0), every_s(600.0)] == [3.75, 15.0]
