"""Exhaustive: all that a few whole nodes can come to, with one or two faults, and that the goal stays in reach (L1)."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from enumerator import Enumerator, Found
from wholenode import Cost, Turn
from wholestate import Small
from wholeworld import WholeWorld

from elastic.core.rendezvous import Ask, Held, Limits, Operation, Settled, Status, Sync, Write, done, leave, turn
from elastic.core.rendezvous.actions import Action, Finish
from elastic.core.rendezvous.context import Context, Handler


def small(nodes: int, size: str, faults: int, restarts: int = 0, budget: int = 1) -> Small:
    """`size` as in --nnodes; `restarts` of agents, and a `budget` of restarts of the job."""
    least, _, most = size.partition(":")
    return Small(nodes, Limits(int(least), int(most or least), budget), faults, restarts=restarts)


# The numbers of states are pinned: a rule that changes what can happen changes them, and then somebody should know why.
SMALL = [
    (small(2, "1:2", 2), 24_128),
    (small(2, "1:2", 1, restarts=1), 8_821),
    (small(3, "2", 1), 13_315),
]


def explored(small: Small, turn: Turn = turn) -> Enumerator:
    enumerator = Enumerator(WholeWorld(small, turn))
    enumerator.explores()
    enumerator.judge_goals()
    return enumerator


@pytest.mark.parametrize(("small", "states"), SMALL)
def test_every_run_of_a_small_world_is_legal_and_never_out_of_reach_of_its_end(small: Small, states: int) -> None:
    assert len(explored(small).states) == states


# --- the enumerator can fail


def by(handler: Handler, mutant: Handler) -> Turn:
    """A node that decides by the mutant where it should by this handler."""

    def turned(operation: Operation, held: Held, now: float) -> Ask:
        return turn(evolve(operation, handler=mutant) if operation.handler is handler else operation, held, now)

    return turned


def barrier_does_not_watch(ctx: Context, deadline: float) -> Action:
    """Whoever is done waits for the verdict, and for nothing else."""
    told = ctx.state is not None and ctx.state.closed
    return done(ctx, deadline) if told or ctx.status is Status.IN else Sync(math.inf)


def leave_without_bump(ctx: Context, deadline: float) -> Action:
    return Finish(Settled()) if ctx.seat is None else leave(ctx, deadline)


def end_forgets_the_target(operation: Operation, held: Held, now: float) -> Ask:
    ask = turn(operation, held, now)
    if isinstance(ask, Write) and held.state is not None and ask.state.round > held.state.round:
        return evolve(ask, state=evolve(ask.state, target=0))
    return ask


MUTANTS = {
    "the barrier does not watch": (by(done, barrier_does_not_watch), Cost.FAIL, "L1"),
    "leave without the bump": (by(leave, leave_without_bump), Cost.LATE_WRITE, "S15"),
    "an end forgets the target": (end_forgets_the_target, Cost.FAIL, "V7"),
}


@pytest.mark.parametrize(("turn", "fault", "number"), MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_found(turn: Turn, fault: Cost, number: str) -> None:
    world = Small(2, Limits(2, 2, 1), 2, frozenset((fault, Cost.DRAIN)))
    explored(world)
    with pytest.raises(Found) as found:
        explored(world, turn)
    assert found.value.number == number
