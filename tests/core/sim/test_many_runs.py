"""Many runs: their seeds share nothing, their shapes are checked, and a user's own properties are judged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import pytest

from elastic.core.properties.facts import Fact, Started, Wrote
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous.actions import Proposal
from elastic.core.sim.chance import seeded
from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import run_seed, tell, wander
from elastic.core.sim.shrink import shrunk
from elastic.core.sim.simulated_store import Store
from elastic.core.sim.story import QUICK, Backend, Operation, Story
from elastic.core.sim.swarm import Shape
from elastic.core.sim.swarm import setting as drawn
from elastic.core.world import Node


def test_neighbouring_seeds_have_no_run_in_common() -> None:
    seeds = [run_seed(seed, run) for seed in range(20) for run in range(500)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**64 for seed in seeds)


def test_a_run_s_seed_is_the_same_for_ever() -> None:
    assert [hex(run_seed(0x5EED, run)) for run in (0, 1)] == ["0x1282c5cd2debcee8", "0x6f8d8fc9a4144514"]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"nodes": 0}, "nodes: 1 to 4096, not 0"),
        ({"nodes": 4_097}, "nodes: 1 to 4096, not 4097"),
        ({"operations": -1}, "operations: 0 or more, not -1"),
        ({"operations": math.inf}, "operations: 0 or more, not inf"),
        ({"min": 6}, "min: 1 to 5, not 6"),
        ({"min": 0}, "min: 1 to 5, not 0"),
        ({"min": 3, "max": 2}, "min: 1 to 2, not 3"),
        ({"max": 0}, "max: 1 to 4096, not 0"),
        ({"max": 4_097}, "max: 1 to 4096, not 4097"),
    ],
)
def test_a_shape_that_no_world_can_have_is_refused(given: dict[str, float], refusal: str) -> None:
    with pytest.raises(ValueError, match=refusal):
        Shape(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [Shape(min=4), Shape(max=2), Shape(nodes=3, max=9), Shape(nodes=2, min=2, max=2)])
def test_a_world_has_the_limits_that_were_asked_for(shape: Shape) -> None:
    for seed in range(20):
        setting = drawn(seeded(seed), shape)
        limits = setting.limits
        assert shape.min in (None, limits.min_nodes)
        assert shape.max in (None, limits.max_nodes)
        assert 1 <= limits.min_nodes <= min(limits.max_nodes, setting.nodes)


def test_a_world_has_the_backend_that_was_asked_for() -> None:
    backends = {drawn(seeded(seed), Shape(backend=Backend.LEASE)).backend for seed in range(5)}
    assert backends == {Backend.LEASE}


def test_a_fault_is_one_of_those_that_can_be_drawn() -> None:
    with pytest.raises(ValueError, match="faults: crash: none of DRAWN"):
        Shape(faults=frozenset({"crash"}))  # type: ignore[arg-type]


def test_no_more_faults_happen_than_were_asked_for() -> None:
    for seed in range(20):
        assert {each.kind for each in wander(seed, Shape(operations=0)).story.operations} <= {Kind.START, Kind.PASS}


def test_a_proposal_that_the_network_delivers_twice_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    proposed, propose = Counter[tuple[int, Node, Proposal]](), Store.propose

    def counted(store: Store, node: Node, proposal: Proposal) -> int:
        proposed[(seed, node, proposal)] += 1
        return propose(store, node, proposal)

    monkeypatch.setattr(Store, "propose", counted)
    for seed in range(200):
        assert wander(seed, Shape(faults=frozenset({Kind.TWICE, Kind.START}))).violation is None
        if max(proposed.values(), default=0) > 1:
            break
    assert max(proposed.values()) > 1


def one_world(judge: Judge, fact: Fact) -> Iterator[tuple[str, str]]:
    if isinstance(fact, Started) and fact.world.id in judge.worlds and len(judge.worlds) > 1:
        yield "one world", f"round {fact.world.round} begins"


TWO_ROUNDS = Story(
    QUICK.but(nodes=2, min=1, max=2),
    (
        Operation(Kind.START, "a"),
        Operation(Kind.START, "b"),
        Operation(Kind.PASS, span=1.0),
        Operation(Kind.CUT, "b", 0.5),
        Operation(Kind.FAIL, "a"),
    ),
)


def test_a_user_s_property_is_judged_beside_ours() -> None:
    assert tell(TWO_ROUNDS).violation is None
    broken = tell(TWO_ROUNDS, also=(one_world,)).violation
    assert broken
    assert (broken.number, str(broken)) == ("one world", "one world: round 1 begins")


def test_a_story_that_breaks_a_user_s_property_is_shrunk_too() -> None:
    smaller = shrunk(tell(TWO_ROUNDS, also=(one_world,)))
    assert smaller.violation
    assert smaller.violation.number == "one world"
    assert Operation(Kind.CUT, "b", 0.5) not in smaller.story.operations
    assert Operation(Kind.FAIL, "a") in smaller.story.operations


def test_a_property_that_holds_changes_nothing() -> None:
    def holds(judge: Judge, fact: Fact) -> tuple[tuple[str, str], ...]:
        return ()

    plain, judged = wander(5, Shape()), wander(5, Shape(), also=(holds,))
    assert (plain.story, plain.world.steps) == (judged.story, judged.world.steps)


def test_a_user_s_property_knows_the_writer_of_each_write() -> None:
    writers: list[str] = []

    def notes(judge: Judge, fact: Fact) -> tuple[tuple[str, str], ...]:
        writers.extend([fact.node.slot] if isinstance(fact, Wrote) else [])
        return ()

    run = tell(TWO_ROUNDS, also=(notes,))
    assert len(writers) == run.world.writes
    assert set(writers) == {"a", "b"}
