"""Two worlds of one job that run at once in two lives: the judge counts them, and finds one that runs too long (S18)."""

from __future__ import annotations

import pytest
from simulated import TWO, at, hangs, then, world

from elastic.core.rendezvous import Violation
from elastic.core.sim.overlaps import bound
from elastic.core.sim.recoveries import PARTS
from elastic.core.sim.simulation import World
from elastic.core.sim.story import QUICK

SETTING = "world nodes=2 min=1 max=2"
NAME = "two worlds of one job in two lives"


def beside(*more: str) -> World:
    """Return a world in which a, which is cut off, runs the world that the store has lost, and b another one."""
    return world(*TWO, "pass 3", "cut a 20", "older 0.1", "pass 15", *more, setting=SETTING)


def armed(made: World) -> int:
    return made.witness.judge.strength.armed["S18"]


def test_the_bound_is_that_of_one_question_a_look_and_the_stop_of_the_workers() -> None:
    assert bound(QUICK) == sum(PARTS[part](QUICK) for part in ("messages", "ask", "look", "stop"))


def test_two_worlds_of_one_job_are_counted_once_for_each_node_astray() -> None:
    made = beside()
    assert {ran.id.round for ran in made.witness.judge.running.values()} == {0, 1}
    assert len({ran.id.life for ran in made.witness.judge.running.values()}) == 2
    assert (armed(made), made.counts[NAME]) == (1, 1)
    then(made, "pass 20")
    assert (armed(made), made.counts[NAME]) == (1, 1)
    assert made.witness.overlaps.since == {}
    assert 0.0 < made.witness.overlaps.longest_s < bound(made.setting)


def test_a_node_that_cannot_hear_has_its_time_when_it_can() -> None:
    for trouble in ("slow a 1", "pause a 30", "outage 30", "cut a 30", "late-write a 1"):
        made = beside(trouble, "pass 20")
        assert armed(made) == 1, trouble
        assert made.witness.overlaps.longest_s < bound(made.setting), trouble


def test_S18_a_world_of_another_life_that_runs_on_is_found() -> None:
    made = beside()
    hangs(at(made, "a"))
    with pytest.raises(Violation, match=r"S18: a#1 runs round 0 of another life for .* s, at most .* s"):
        then(made, "pass 5", "pass 9", "pass 1", "gap b", "pass 1")


def test_S18_is_not_armed_while_one_world_runs_or_without_a_loss() -> None:
    assert armed(world(*TWO, "pass 3", "cut a 20", "pass 30", setting=SETTING)) == 0
    assert armed(world(*TWO, "empty", "pass 9", "older 0.1", "pass 9", setting=SETTING)) == 0
    alone = world(*TWO, "crash b", "empty", "pass 3", setting=SETTING)
    assert armed(alone) == 0


def test_S18_is_not_armed_by_workers_that_live_on_into_the_next_world_of_another_life() -> None:
    """c has been told of it, and a and b are about to be."""
    made = world("start a", "start b", "pass 5", "start c", "empty", setting="world nodes=3 alone=1")
    then(made, "pass 2")
    lives = {ran.id.life for ran in made.witness.judge.running.values()}
    assert (armed(made), len(lives), len(made.witness.judge.worlds)) == (0, 1, 2)
