"""Worlds whose workers restart alone: a change of nodes stops none of them."""

from __future__ import annotations

import pytest
from attrs import evolve

from elastic.core import sim
from elastic.core.group import Group, Phase, Settings
from elastic.core.group.state import Elapsed, Heart
from elastic.core.properties.facts import Fact, Moved, Started
from elastic.core.properties.group_laws import fences
from elastic.core.sim.run import converges
from elastic.core.world import Node


def told(*operations: str) -> tuple[sim.Run, list[Fact]]:
    """Return the run of this story, and which workers started or moved."""
    facts: list[Fact] = []

    def keeps(judge: sim.Judge, fact: Fact) -> list[tuple[str, str]]:
        if isinstance(fact, Started | Moved):
            facts.append(fact)
        return []

    story = sim.parsed(["world nodes=3 max=3 last_call=0.5 alone=1", *operations])
    return sim.tell(story, also=(keeps,)), facts


def of(facts: list[Fact], kind: type[Started | Moved]) -> list[tuple[str, int]]:
    return [(fact.node.slot, fact.world.round) for fact in facts if isinstance(fact, kind)]


def test_the_workers_of_the_others_move_when_a_node_is_lost_and_when_it_comes() -> None:
    run, facts = told("start a", "start b", "pass 3", "start c", "pass 3", "crash c", "pass 9")
    assert run.violation is None
    assert sorted(of(facts, Started)) == [("a", 0), ("b", 0), ("c", 1)]
    assert sorted(of(facts, Moved)) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_a_drained_node_goes_and_the_workers_of_the_others_move() -> None:
    run, facts = told("start a", "start b", "start c", "pass 3", "notice b 9", "pass 20")
    assert run.violation is None
    assert sorted(of(facts, Started)) == [("a", 0), ("b", 0), ("c", 0)]
    assert sorted(of(facts, Moved)) == [("a", 1), ("c", 1)]


def test_a_worker_that_fails_starts_again_and_moves_like_the_others() -> None:
    run, facts = told("start a", "start b", "pass 3", "fail a", "pass 1", "start c", "pass 3")
    assert run.violation is None
    assert sorted(of(facts, Moved)) == [("a", 1), ("b", 1)]


def test_a_node_that_is_done_is_done_in_the_next_round_too() -> None:
    run, facts = told("start a", "start b", "start c", "pass 3", "succeed a", "pass 1", "crash c", "pass 9")
    assert run.violation is None
    assert ("a", 1) in of(facts, Moved)
    assert ("a", 1) not in of(facts, Started)


def test_workers_that_fail_on_the_way_end_the_next_round() -> None:
    """c keeps the others waiting for a while."""
    story = ("start a", "start b", "start c", "pass 3", "pause c 2", "drain b", "pass 0.1")
    run, facts = told(*story, "fail a", "fail a", "pass 9")
    assert run.violation is None
    assert ("a", 1) in of(facts, Moved)
    assert ("a", 2) in of(facts, Started)


@pytest.mark.parametrize("moving", [False, True])
def test_a_worker_that_is_missing_and_never_entered_a_call_ends_the_round(moving: bool) -> None:
    """The node that waits for c, or for nobody, has two workers: one runs on."""
    first = "world nodes=3 max=3 last_call=0.5 alone=1 workers=2 enters=0", "start a", "start b", "start c", "pass 3"
    on_the_way = ("pause c 2", "drain b", "pass 0.1") if moving else ()
    story = sim.parsed([*first, *on_the_way, "fail a", "fail a", "pass 9"])
    run = sim.tell(story)
    register = run.world.store.register
    assert run.violation is None
    assert register is not None and (register.round, register.failures) == (1 + moving, 1)


@pytest.mark.parametrize(
    ("code", "shows", "failures"),
    [
        (143, "a worker stays missing by its exit code", 0),
        (71, "a worker ends the job for all", 1),
        (79, "a worker hears that the job is over", 0),
        (1, "", 0),
    ],
)
def test_the_exit_code_of_a_worker_says_what_becomes_of_the_job(code: int, shows: str, failures: int) -> None:
    story = sim.parsed(["world nodes=2 max=2 alone=1 codes=1 workers=2 last_call=0.5", "start a", "start b", "pass 3"])
    made = sim.tell(story, ends=False).world
    b = made.at("b")
    assert b is not None
    made.agents.workers.dies(b, 0, code, b.workers[0])
    made.does(sim.Operation(sim.Kind.PASS, span=5.0))
    register = made.store.register
    assert register is not None
    shown = [what for what in BY_CODE if made.counts[what]]
    assert shown[-1:] == ([shows] if shows else [])
    assert (register.failures, register.closed) == (failures, None)
    converges(made)


BY_CODE = (
    "a worker stays missing by its exit code",
    "a worker ends the job for all",
    "a worker hears that the job is over",
    "a worker cancels the job",
    "nobody tells of an end that a worker heard of",
)


def test_a_node_whose_last_worker_heard_of_an_end_that_nobody_tells_ends_the_round() -> None:
    made = sim.tell(
        sim.parsed(["world nodes=2 max=2 alone=1 codes=1", "start a", "start b", "pass 3"]), ends=False
    ).world
    b = made.at("b")
    assert b is not None
    made.agents.workers.dies(b, 0, 79, b.workers[0])
    made.does(sim.Operation(sim.Kind.PASS, span=29.0))
    assert (b.group.phase, made.counts["end by failed"]) == (Phase.BARRIER, 0)
    made.does(sim.Operation(sim.Kind.PASS, span=2.0))
    assert (made.counts["nobody tells of an end that a worker heard of"], made.counts["end by failed"]) == (1, 1)
    converges(made)


def test_the_last_worker_of_a_node_cancels_the_job() -> None:
    made = sim.tell(
        sim.parsed(["world nodes=2 max=2 alone=1 codes=1", "start a", "start b", "pass 3"]), ends=False
    ).world
    b = made.at("b")
    assert b is not None
    made.agents.workers.dies(b, 0, 76, b.workers[0])
    made.does(sim.Operation(sim.Kind.PASS, span=1.0))
    assert (made.counts["a worker cancels the job"], made.counts["closed CANCELLED"]) == (1, 1)
    converges(made)


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.MOVING])
def test_a_node_fences_itself_in_a_world_and_on_its_way_into_the_next(phase: Phase) -> None:
    before = Group(Node("a", 1), Settings(fence=3.0), phase=phase, heart=Heart(0.0))
    stopping = evolve(before, phase=Phase.STOPPING)
    assert fences(before, Elapsed(9.0), stopping)
    assert not fences(before, Elapsed(9.0), before)
    assert not fences(before, Elapsed(2.0), stopping)
    assert not fences(evolve(before, settings=Settings()), Elapsed(9.0), stopping)


def test_a_node_is_no_reserve_of_a_world_into_which_its_workers_move_as_members() -> None:
    story = ["world nodes=2 max=2 fence=3 reserves=1 alone=1", "start a", "start b", "pass 1", "cut-out a 1", "pass 5"]
    assert sim.tell(sim.parsed(story)).violation is None
