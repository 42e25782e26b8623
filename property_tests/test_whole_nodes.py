"""Exhaustive: every state of a few whole nodes with a few faults is legal, and its end stays in reach (L1)."""

from __future__ import annotations

import math
from functools import lru_cache

import pytest
from attrs import evolve
from enumerator import Enumerator, Found
from profiles import SOAK
from symmetry import Symmetry
from walk import Turn
from wholenode import Cost
from wholestate import FAULTS, Small, State
from wholeworld import WholeWorld
from worlds import but

from elastic.core.rendezvous import (
    Decision,
    Evict,
    Held,
    Limits,
    Operation,
    Settled,
    Status,
    Sync,
    Wait,
    Write,
    done,
    join,
    leave,
    turn,
)
from elastic.core.rendezvous.actions import Action, Finish
from elastic.core.rendezvous.context import Context, Handler


def small(nodes: int, size: str, faults: int, *kinds: Cost, restarts: int = 0, budget: int = 1, **rest: bool) -> Small:
    """Return a small world. `size` is as in --nnodes, `restarts` are those of agents, `budget` is the job's."""
    least, _, most = size.partition(":")
    limits = Limits(int(least), int(most or least), budget)
    return Small(nodes, limits, faults, frozenset(kinds) or FAULTS, restarts, **rest)


# The numbers of states are pinned: a rule that changes what can happen changes them, and its author must know why.
SMALL = [
    (small(2, "1:2", 2), 27_500),
    (small(2, "1:2", 1, restarts=1), 10_379),
    (small(3, "2", 1), 13_741),
]
LARGE = [
    (small(2, "1", 2, restarts=1), 18_956),
    (small(2, "1:2", 2, budget=0), 22_905),
    (small(2, "1:2", 2, restarts=1), 327_075),
    (small(2, "1:2", 2, fence=True), 35_893),
    (small(2, "1:2", 2, barrier=True), 39_678),
    (small(2, "1:2", 3), 186_077),
    (small(2, "2", 3), 69_836),
    (small(2, "2", 2, restarts=2), 162_323),
    (small(3, "1", 1), 2_781),
    (small(3, "1:2", 1), 49_386),
    (small(3, "1:3", 1), 190_538),
    (small(3, "2:3", 1), 105_940),
    (small(3, "2:3", 1, fence=True), 121_723),
    (small(3, "3", 1, restarts=1), 103_610),
    (small(3, "2", 1, restarts=1), 56_351),
    (small(3, "1:2", 1, restarts=1, budget=0), 202_729),
    (small(3, "2:3", 1, restarts=1, budget=0), 507_456),
    (small(3, "2", 2), 306_818),
    (small(3, "3", 2), 594_737),
    (small(3, "1:2", 2, Cost.CRASH, Cost.FAIL, Cost.SUSPECT), 514_095),
    (small(3, "2:3", 2, Cost.LATE_WRITE, Cost.DRAIN), 267_880),
    (small(4, "3:4", 0), 61_218),
    (small(4, "4", 1), 1_057_265),
]
"""The worlds that `make soak` adds, which takes some ten minutes."""


@lru_cache(maxsize=len(SMALL))
def explored(small: Small, turn: Turn = turn) -> Enumerator[State]:
    world = WholeWorld(small, turn)
    enumerator = Enumerator(world, Symmetry(world).canonical)
    enumerator.explores()
    enumerator.judge_goals()
    return enumerator


def test_small_worlds_of_whole_nodes_show_what_is_worth_having_seen() -> None:
    seen = set().union(*(explored(small).world.seen for small, _ in SMALL))
    assert seen == {
        "a death without refund",
        "a done node called back",
        "a done node dies",
        "a newcomer behind a finishing round",
        "a spare",
        "a spare promoted",
        "closed CANCELLED",
        "closed FAILED",
        "closed SUCCEEDED",
        "complete at max",
        "complete by a seat dropped",
        "complete by last arrival",
        "complete by last call",
        "done before the others",
        "end by failed",
        "end by left",
        "end by lost",
        "end by upscale",
        "expected dropped as dead",
        "expected dropped as overdue",
        "quorum lost",
        "refund",
        "superseded DONE",
        "superseded EXPECTED",
        "superseded GONE",
        "superseded IN",
        "superseded WAITING",
        "the bump",
    }


@pytest.mark.parametrize(("small", "states"), SMALL + LARGE * SOAK)
def test_every_run_of_a_small_world_is_legal_and_never_out_of_reach_of_its_end(small: Small, states: int) -> None:
    assert len(explored(small).states) == states


# --- the enumerator can fail


def by(handler: Handler, mutant: Handler) -> Turn:
    """Return a turn that decides by the mutant in place of this handler."""

    def turned(operation: Operation, held: Held, now: float) -> Decision:
        return turn(evolve(operation, handler=mutant) if operation.handler is handler else operation, held, now)

    return turned


def barrier_does_not_watch(ctx: Context, deadline: float) -> Action:
    """A node that is done waits only for the verdict."""
    told = ctx.state is not None and ctx.state.closed
    return done(ctx, deadline) if told or ctx.status is Status.IN else Sync(math.inf)


def join_finishes_with_the_round_just_run(ctx: Context, deadline: float) -> Action:
    return join(evolve(ctx, held=but(ctx.held, mine=None, ran=frozenset())), deadline)


def leave_without_bump(ctx: Context, deadline: float) -> Action:
    return Finish(Settled()) if ctx.seat is None else leave(ctx, deadline)


def end_forgets_the_target(operation: Operation, held: Held, now: float) -> Decision:
    ask = turn(operation, held, now)
    if isinstance(ask, Write) and held.view.state is not None and ask.state.round > held.view.state.round:
        return evolve(ask, state=evolve(ask.state, target=0))
    return ask


def nobody_evicts(operation: Operation, held: Held, now: float) -> Decision:
    ask = turn(operation, held, now)
    evicts = isinstance(ask, Write) and isinstance(ask.edit, Evict)
    return Wait(held.token, held.who.settings.join_timeout) if evicts else ask


MUTANTS = {
    "nobody evicts the dead": (nobody_evicts, small(2, "1:2", 1, Cost.CRASH), "L1"),
    "the barrier does not watch": (by(done, barrier_does_not_watch), small(2, "2", 1, Cost.FAIL), "L1"),
    "join finishes with the round just run": (
        by(join, join_finishes_with_the_round_just_run),
        small(2, "2", 1, Cost.FENCE, fence=True),
        "S17",
    ),
    "leave without the bump": (by(leave, leave_without_bump), small(2, "2", 2, Cost.LATE_WRITE, Cost.DRAIN), "S15"),
    "an end forgets the target": (end_forgets_the_target, small(2, "2", 1, Cost.FAIL), "V7"),
}


@pytest.mark.parametrize(("turn", "world", "number"), MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_found(turn: Turn, world: Small, number: str) -> None:
    explored(world)
    with pytest.raises(Found) as found:
        explored(world, turn)
    assert found.value.number == number


def test_a_finding_is_told_by_the_shortest_history_that_leads_there() -> None:
    with pytest.raises(Found) as found:
        explored(Small(2, Limits(2, 2, 1), 2), by(leave, leave_without_bump))
    assert str(found.value).splitlines() == [
        "a: looks",
        "a: writes Arrive, late [late write]",
        "a: it is told to stop [drain]",
        "a: looks",
        "S15: a is seated after it had left",
    ]
