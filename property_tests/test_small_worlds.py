"""Exhaustive: every state that two or three nodes can make of a register is legal, and every step between them too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations

import pytest
from explore import Explored, explore, judged, key
from worlds import node, profile, register

from elastic.core.rendezvous import Arrive, Done, Failing, Proposal, RendezvousState, Together
from elastic.core.rendezvous.codec import decode, encode
from elastic.core.world import Node


@cache
def explored(size: str, restarts: int, names: str) -> Explored:
    """Return all that these nodes can make of a register. Several tests look at the same world."""
    return explore(register(size, restarts), [node(name) for name in names.split()])


# The numbers are pinned: a rule that changes what can happen changes them, and its author must know why.
SMALL = [
    ("1:2", 0, "a b", 360, 1_166),
    ("2:2", 1, "a b", 815, 2_748),
    ("1:2", 1, "a b", 999, 3_344),
    ("1:2", 1, "a b a#2", 2_292, 11_651),
    ("1:2", 1, "a b c", 5_742, 32_757),
    pytest.param("2:2", 1, "a b c", 4_827, 28_101, marks=pytest.mark.long),
    pytest.param("2:3", 1, "a b c", 15_619, 100_680, marks=pytest.mark.long),
    ("2:4:2", 1, "a b c", 5_043, 29_505),
]


@pytest.mark.parametrize(("size", "restarts", "names", "states", "steps"), SMALL)
def test_every_state_of_a_small_world_and_every_step_verifies(
    size: str, restarts: int, names: str, states: int, steps: int
) -> None:
    world = explored(size, restarts, names)
    assert (world.states, world.steps) == (states, steps)


def test_every_state_of_a_small_world_of_segments_verifies() -> None:
    """a and b are in one rack, d and e in another one; a world has one of them."""
    world = explore(register("2:2:2", 0, "rack"), [node(name) for name in "abde"])
    assert (world.states, world.steps) == (3_376, 27_176)
    assert world.seen["a spare promoted"] and world.seen["complete at max"]


FAILING = [("1:1", 1, "a b", 295, 900), ("1:2", 2, "a b", 2_248, 7_562), ("1:2", 1, "a b a#2", 2_817, 14_287)]


@pytest.mark.parametrize(("size", "restarts", "names", "states", "steps"), FAILING)
def test_every_state_of_a_small_world_whose_nodes_may_be_set_aside_verifies(
    size: str, restarts: int, names: str, states: int, steps: int
) -> None:
    everybody = [node(name) for name in names.split()]
    world = explore(register(size, restarts), everybody, fails=Failing(2, 60.0))
    assert (world.states, world.steps) == (states, steps)
    assert world.seen["a node set aside"] and world.seen["a node back that was set aside"]
    assert world.seen["a node called back that was set aside"]


def test_every_state_of_a_small_world_comes_back_from_its_bytes() -> None:
    for state in explored("1:2", 1, "a b a#2").reached:
        assert decode(encode(state)) == state


def test_small_worlds_show_what_is_worth_having_seen() -> None:
    seen = explored("1:2", 1, "a b c").seen + explored("1:1", 0, "a b b#2").seen
    assert set(seen) == {
        "complete by last arrival",
        "complete by last call",
        "complete by a seat dropped",
        "complete at max",
        "quorum lost",
        "closed SUCCEEDED",
        "closed FAILED",
        "closed CANCELLED",
        "end by failed",
        "end by lost",
        "end by left",
        "end by upscale",
        "end by fenced",
        "a done node called back",
        "a done node dies",
        "refund",
        "refund over budget",
        "a death without refund",
        "a spare",
        "a spare promoted",
        "a newcomer behind a finishing round",
        "expected dropped as dead",
        "expected dropped as overdue",
        "the bump",
        "done before the others",
        "superseded EXPECTED",
        "superseded IN",
        "superseded WAITING",
    }


@pytest.mark.parametrize(("size", "restarts", "names"), [("1:2", 1, "a b a#2"), ("2:2", 1, "a b c")])
def test_a_batch_makes_what_its_proposals_make_one_after_the_other(size: str, restarts: int, names: str) -> None:
    """So it never has to stop early: an end, a completion or a verdict is the last thing that it can bring."""
    me, batches = node(names.split()[0]), Counter[str]()
    for state in explored(size, restarts, names).reached:
        for proposals in _proposals(state):
            batch = judged(state, Together(proposals), me) or state
            assert key(batch) == key(_one_by_one(state, proposals))
            batches["completes"] += batch.complete and not state.complete
            batches["closes"] += batch.closed is not None and not state.closed
            batches["changes two"] += sum(batch.seats[each] is not state.seats[each] for each in state.seats) > 1
    assert min(batches[what] for what in ("completes", "closes", "changes two")) > 0


def _proposals(state: RendezvousState) -> Iterator[Mapping[Node, Proposal]]:
    """Yield for each set of seated nodes that all ask to come back, or report the success of their workers."""
    for edit in (Arrive(profile("a")), Done(state.round)):
        for count in range(1, len(state.seats) + 1):
            for those in combinations(state.seats, count):
                yield dict.fromkeys(those, Proposal(state.era, edit))


def _one_by_one(state: RendezvousState, proposals: Mapping[Node, Proposal]) -> RendezvousState:
    for who, proposal in proposals.items():
        state = judged(state, proposal.edit, who) or state
    return state


@pytest.mark.parametrize(
    ("size", "restarts", "names"),
    [
        ("1:2", 1, "a b c"),
        pytest.param("3:3", 1, "a b c", marks=pytest.mark.long),
        ("2:2", 0, "a b a#2"),
    ],
)
def test_a_batch_seats_the_nodes_that_would_be_seated_one_by_one(size: str, restarts: int, names: str) -> None:
    everybody, batches = [node(name) for name in names.split()], Counter[str]()
    for state in explored(size, restarts, names).reached:
        if state.complete:
            continue
        entering = Proposal(state.era, Arrive(profile("a")), enters=True)
        for those in _of_other_slots(state, everybody):
            batch = judged(state, Together(dict.fromkeys(those, entering)), those[0]) or state
            alone = _one_by_one(state, dict.fromkeys(those, entering))
            assert batch.closed == alone.closed
            assert batch.closed or list(batch.seats) == list(alone.seats)
            batches["completes"] += batch.complete
            batches["several"] += len(those) > 1
    assert min(batches[what] for what in ("completes", "several")) > 0


def _of_other_slots(state: RendezvousState, everybody: list[Node]) -> Iterator[tuple[Node, ...]]:
    """Yield each set of nodes without a seat, of slots that nobody has, in the order of their names."""
    seated = {each.slot for each in state.seats}
    free = [each for each in sorted(everybody) if each.slot not in seated]
    for count in range(1, len(free) + 1):
        for those in combinations(free, count):
            if len({each.slot for each in those}) == count:
                yield those
