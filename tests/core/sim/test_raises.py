"""Workers that raise, echo and end in every order: the judge finds a cause that is none (G9), and there is none."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve
from simulated import ECHOED, echoing
from worlds import node

from elastic.core import sim
from elastic.core.group.state import Record
from elastic.core.properties.facts import Fact, Stepped
from elastic.core.rendezvous import Violation
from elastic.core.sim.raises import ECHO, OWN, Causes
from elastic.core.world import Fault, Life, Origin, World, WorldId

WORLD = World(WorldId(Life("life"), 0), (node("a"), node("b")), ())
NEXT = evolve(WORLD, id=WorldId(Life("life"), 1))
"""The next world of the same generation."""
PUT = WORLD.id, WORLD.generation
ENDED = Fault(node("a"), 0, 0, 0, 1, 1, 0.0, message=OWN, at_s=5.0)


def causes() -> Causes:
    made = Causes(sim.Judge())
    made.began(node("a"), 0, WORLD)
    return made


def test_a_round_s_cause_is_one_that_failed_by_itself() -> None:
    made = causes()
    made.put[PUT] = [ENDED, evolve(ENDED, node=node("b"), message=ECHO, origin=Origin.RAISE)]
    made.judges()
    assert (made.judge.strength.armed["G9"], made.judge.strength.excused["G9"]) == (1, 0)


def test_a_cause_that_did_not_fail_by_itself_is_found() -> None:
    made = causes()
    made.put[PUT] = [evolve(ENDED, node=node("b"))]
    with pytest.raises(Violation, match="G9: round 0 is said to have failed by b#1, which did not"):
        made.judges()


def test_a_failure_may_go_on_record_in_a_later_world_of_its_generation() -> None:
    made = causes()
    made.put[NEXT.id, NEXT.generation] = [evolve(ENDED, round=1)]
    made.judges()
    assert made.judge.strength.armed["G9"] == 1


def test_where_only_echoes_are_on_record_the_cause_is_open() -> None:
    made = causes()
    made.put[PUT] = [evolve(ENDED, node=node("b"), message=ECHO)]
    made.judges()
    assert made.judge.strength.excused["G9"] == 1


def test_a_record_that_the_store_is_given_again_counts_once() -> None:
    made, record = causes(), Record(0, 1, 5.0)
    made.told[node("a"), record] = WORLD, ENDED
    for what in (record, record, "another errand", Record(1, 1, 5.0)):
        made.takes(node("a"), what)
    assert made.put == {PUT: [ENDED]}


def told(operations: str, seed: int) -> tuple[sim.Run, Counter[Origin]]:
    """Return the run of this story, and how the failures on record became known."""
    heard = Counter[Origin]()

    def counts(judge: sim.Judge, fact: Fact) -> list[tuple[str, str]]:
        if isinstance(fact, Stepped):
            heard.update(each.origin or Origin.END for each in fact.commands if isinstance(each, Record))
        return []

    return sim.tell(echoing(operations, seed), also=(counts,)), heard


@pytest.mark.parametrize("operations", ECHOED)
def test_whoever_fails_with_peers_that_echo_is_named_or_it_is_open(operations: str) -> None:
    """property_tests/test_runs.py takes more seeds."""
    for seed in (3, 4):  # a worker fails that has raised, and an agent that stands still is told late
        run, _ = told(operations, seed)
        assert run.violation is None
        assert run.world.witness.judge.strength.armed["G9"] or "crash" in operations


def test_failures_become_known_by_raises_by_endings_and_by_ends() -> None:
    heard = Counter[Origin]()
    for seed in range(1, 41):
        heard += told("fail a", seed)[1]
        if set(heard) == set(Origin):
            return
    raise AssertionError(heard)
