"""The lanes of a run: the phases of each node, and the faults that struck it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from elastic.core.properties.facts import Fact, Started
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import Action, Close, Context, handlers
from elastic.core.replay.lanes import Lanes, Mark, Span
from elastic.core.sim.drawing import STORE, drawn
from elastic.core.sim.own import Own
from elastic.core.sim.run import wander
from elastic.core.sim.shrink import shrunk
from elastic.core.sim.story import parsed
from elastic.core.sim.swarm import Shape
from elastic.core.world import Ending, Node, Verdict, Why

A, B = Node("a", 1), Node("b", 1)


def lanes(text: str) -> Lanes:
    return drawn(parsed(text.split("; ")))[1]


def kinds(lanes: Lanes, node: Node) -> list[str]:
    return [span.kind for span in lanes.spans if span.node == node]


def marks(lanes: Lanes, node: Node) -> list[tuple[str, str]]:
    return [(mark.kind, mark.label) for mark in lanes.marks if mark.node == node]


ONE = "world nodes=1 min=1 max=1; start a; pass 1"


def test_a_node_joins_holds_runs_waits_for_the_verdict_and_is_gone() -> None:
    alone = lanes(ONE)
    assert alone.nodes == (A,)
    assert kinds(alone, A) == ["joining", "held", "running", "barrier"]
    starts, ends = [span.start for span in alone.spans], [span.end for span in alone.spans]
    assert starts[0] == 0.0
    assert starts[1:] == ends[:-1]
    assert [span.label for span in alone.spans] == ["", "round 0", "round 0", "round 0"]


def test_a_write_shows_its_outcome() -> None:
    assert marks(lanes(ONE), A) == [("complete", "round 0"), ("closed", "closed SUCCEEDED")]


def test_the_end_of_a_round_says_why() -> None:
    told = marks(lanes("world nodes=2 min=2 max=2; start a; start b; pass 1; fail a; pass 1"), A)
    assert told[1:3] == [("fault", "fail"), ("end", "ends round 0 (failed)")]
    lost = lanes("world nodes=2 min=1 max=2; start a; start b; pass 1; crash a; pass 8")
    assert ("end", "evicts a: ends round 0 (lost)") in marks(lost, B)


def test_a_first_start_is_no_fault_and_a_second_one_has_a_lane_of_its_own() -> None:
    twice = lanes("world nodes=1 min=1 max=1; start a; pass 1; crash a; pass 1; start a; pass 1")
    assert twice.nodes == (A, Node("a", 2))
    assert marks(twice, A)[-1] == ("fault", "crash")
    assert marks(twice, Node("a", 2))[0] == ("fault", "started again")


def test_a_crash_ends_the_phase_of_its_node() -> None:
    crashed = lanes("world nodes=2 min=2 max=2; start a; pass 1; crash a; pass 5; start b; pass 1")
    assert [span for span in crashed.spans if span.node == A] == [Span(A, 0.0, 1.0, "joining")]


def test_a_spare_is_seen_to_wait() -> None:
    spare = lanes("world nodes=2 min=1 max=1; start a; pass 1; start b; pass 1")
    assert kinds(spare, B) == ["joining", "waiting"]


def test_a_spare_that_is_promoted_joins() -> None:
    promoted = lanes("world nodes=2 min=1 max=1; start a; pass 1; start b; pass 1; crash a; pass 9")
    assert kinds(promoted, B)[:4] == ["joining", "waiting", "joining", "held"]


def test_the_store_and_the_operator_have_lanes_too() -> None:
    store, operator = Node("store", 0), Node("operator", 0)
    told = lanes("world nodes=1 min=1 max=1; start a; pass 1; outage 3; pass 4; cancel; pass 1")
    assert told.nodes == (A, operator, store)
    assert marks(told, store) == [("fault", "outage 3 s")]
    assert marks(told, operator) == [("fault", "cancel"), ("closed", "closed CANCELLED")]


def test_a_loss_is_drawn_at_the_store_and_a_restore_is_a_write() -> None:
    told = lanes(
        "world nodes=2 min=2 max=2; start a; start b; pass 1; empty; pass 1; fail a; pass 1; older 1.5; pass 1; cancel; "
        "pass 0.005; empty; pass 1"
    )
    assert marks(told, Node("store", 0)) == [("fault", "empty"), ("fault", "older 1.5 s"), ("fault", "empty")]
    written = [label for node in (A, B) for _, label in marks(told, node)]
    assert sum(kind == "end" for node in (A, B) for kind, _ in marks(told, node)) == 1
    assert [mark.kind for mark in told.marks if mark.label.startswith("restores version")] == ["write", "write"]
    assert "closed CANCELLED" in written


def test_an_operation_without_effect_is_not_drawn() -> None:
    assert ("fault", "fail") not in marks(lanes("world nodes=1 min=1 max=1; start a; fail a; pass 1"), A)


def test_a_crash_of_an_absent_node_is_not_drawn() -> None:
    assert lanes("world nodes=1 min=1 max=1; crash a; start a").spans


def never(judge: Judge, fact: Fact) -> Iterator[tuple[str, str]]:
    if isinstance(fact, Started):
        yield "never", f"{fact.node} starts workers"


def test_a_run_that_was_drawn_is_shrunk() -> None:
    run, _ = drawn(parsed(["world", "start a", "start b", "pass 1"]), (never,))
    assert run.violation
    assert str(shrunk(run).story) == "world nodes=1 max=1"


def test_a_violation_is_drawn_where_the_run_stopped() -> None:
    run, told = drawn(parsed(ONE.split("; ")), also=(never,))
    assert run.violation
    assert told.marks[-1] == Mark(A, run.world.future.now, "violation", "never: a#1 starts workers")


def test_a_violation_before_any_start_is_drawn_at_the_store() -> None:
    """An operator closes a job that is not there."""

    def closes(ctx: Context, deadline: float) -> Action:
        return Close(Verdict(Ending.CANCELLED, 0, ctx.me, Why.OPERATOR))

    run, told = drawn(parsed(["world", "cancel", "pass 1"]), own=Own({handlers.close: closes}))
    assert run.violation and run.violation.number == "V14"
    assert [(mark.node, mark.kind) for mark in told.marks][-1] == (STORE, "violation")


@pytest.mark.parametrize("seed", range(6))
def test_a_drawn_run_is_the_run_that_was_drawn(seed: int) -> None:
    """Drawing changes nothing. The spans of a node follow each other, and all marks lie within the run."""
    run = wander(seed, Shape(operations=60))
    again, told = drawn(run.story)
    assert (again.world.steps, again.world.writes) == (run.world.steps, run.world.writes)
    assert told.spans
    for node in told.nodes:
        spans = [span for span in told.spans if span.node == node]
        assert all(span.start <= span.end for span in spans)
        assert all(one.end == two.start for one, two in pairwise(spans))
    assert {mark.node for mark in told.marks} <= set(told.nodes)
    assert all(0 <= mark.at <= run.world.future.now for mark in told.marks)
