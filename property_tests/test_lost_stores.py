"""Exhaustive: every state of a few whole nodes whose store comes back empty, or with what it held when it was copied.

Every write is judged (R2 to R8, and what is judged without a loss), and every start (one identity, one member list: S2). A
store that is lost while all is well stops no worker (R12). From every state the end stays in reach (L1).
"""

from __future__ import annotations

from functools import lru_cache

import pytest
from attrs import evolve
from enumerator import Enumerator, Found
from loststate import State
from lostworld import LostWorld
from profiles import SOAK
from walk import Turn
from wholenode import Cost
from wholestate import Small
from worlds import but

from elastic.core.rendezvous import Decision, Held, Limits, Operation, Restore, Status, Write, turn


def lossy(nodes: int, size: str, losses: int, *kinds: Cost, faults: int = 0, newcomers: int = 0) -> Small:
    """Return a small world with a store that may be lost. `size` is as in --nnodes; the newcomers start later."""
    least, _, most = size.partition(":")
    limits = Limits(int(least), int(most or least), 1)
    return Small(nodes, limits, faults, frozenset(kinds), losses=losses, newcomers=newcomers)


# The numbers of states are pinned: a rule that changes what can happen changes them, and its author must know why.
SMALL = [
    (lossy(1, "1", 2, Cost.EMPTY, Cost.OLDER), 187),
    (lossy(1, "1", 1, Cost.EMPTY, Cost.OLDER, Cost.SLEEP, faults=1), 163),
    (lossy(2, "2", 1, Cost.EMPTY), 1_641),
    (lossy(2, "2", 1, Cost.EMPTY, Cost.OLDER, newcomers=1), 3_791),
]
LARGE = [
    (lossy(1, "1", 2, Cost.EMPTY, Cost.OLDER, Cost.SLEEP, Cost.LATE_WRITE, faults=2), 14_436),
    (lossy(2, "1", 2, Cost.EMPTY, newcomers=1), 10_666),
    (lossy(2, "1:2", 1, Cost.EMPTY), 14_959),
    (lossy(2, "1:2", 1, Cost.EMPTY, newcomers=1), 15_044),
    (lossy(2, "2", 2, Cost.EMPTY), 19_104),
    (lossy(2, "2", 1, Cost.EMPTY, Cost.SLEEP, faults=1), 15_112),
    (lossy(2, "2", 1, Cost.OLDER, Cost.SLEEP, faults=1), 21_087),
    (lossy(2, "2", 1, Cost.EMPTY, Cost.LATE_WRITE, faults=1), 23_467),
    (lossy(2, "2", 1, Cost.OLDER, Cost.LATE_WRITE, faults=1), 38_060),
    (lossy(2, "2", 1, Cost.EMPTY, Cost.FAIL, faults=1), 31_003),
    (lossy(2, "2", 1, Cost.EMPTY, Cost.LOSE_REPLY, Cost.DRAIN, faults=1), 16_451),
    (lossy(2, "2", 1, Cost.EMPTY, Cost.FENCE, Cost.CANCEL, faults=1), 14_186),
    (lossy(2, "2", 2, Cost.EMPTY, Cost.OLDER), 89_184),
    (lossy(2, "1:2", 1, Cost.OLDER, newcomers=1), 37_315),
    (lossy(2, "1:2", 1, Cost.EMPTY, Cost.OLDER), 42_055),
    (lossy(2, "1:2", 1, Cost.OLDER, Cost.LATE_WRITE, faults=1), 608_236),
    (lossy(2, "1:2", 2, Cost.EMPTY, Cost.OLDER), 1_844_187),
]
"""The worlds that `make soak` adds, which takes minutes."""


@lru_cache(maxsize=len(SMALL))
def explored(small: Small, turn: Turn = turn) -> Enumerator[State]:
    enumerator = Enumerator(LostWorld(small, turn))
    enumerator.explores()
    enumerator.judge_goals()
    return enumerator


@pytest.mark.parametrize(("small", "states"), SMALL + LARGE * SOAK)
def test_every_run_of_a_small_world_with_losses_is_legal_and_can_end(small: Small, states: int) -> None:
    assert len(explored(small).states) == states


def test_small_worlds_that_lose_their_store_show_what_is_worth_having_seen() -> None:
    seen = set().union(*(explored(small).world.seen for small, _ in SMALL))
    assert seen == {"lost", "lost while all were well", "restored", "restored over what was there"}


# --- the enumerator can fail


def nobody_restores(operation: Operation, held: Held, now: float) -> Decision:
    """Survivors go on as if the store still held what they hold."""
    return turn(operation, but(held, instead=None), now)


def forgets_that_it_is_done(operation: Operation, held: Held, now: float) -> Decision:
    return turn(operation, but(held, done_in=None), now)


def vouches_for_who_was_in(operation: Operation, held: Held, now: float) -> Decision:
    ask = turn(operation, held, now)
    if not isinstance(ask, Write) or not isinstance(ask.edit, Restore):
        return ask
    was = ask.edit.held
    seats = {
        node: seat.become(Status.IN) if was.seats[node].status is Status.IN else seat
        for node, seat in ask.state.seats.items()
    }
    return evolve(ask, state=evolve(ask.state, seats=seats, quorum_at=was.quorum_at))


MUTANTS = {
    "nobody restores": (nobody_restores, "L1"),
    "who is done says so once": (forgets_that_it_is_done, "L1"),
    "in stays in at a restore": (vouches_for_who_was_in, "R7"),
}


@pytest.mark.parametrize(("turn", "number"), MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_found(turn: Turn, number: str) -> None:
    with pytest.raises(Found) as found:
        explored(lossy(2, "2", 1, Cost.EMPTY), turn)
    assert found.value.number == number
