"""The hang watch in simulated worlds: whom it blames, and that the judge finds what it does wrong (O11, O13, L13)."""

from __future__ import annotations

import pytest
from attrs import evolve

from elastic.core.hangs import Act, Blame, HangSettings, Others, Record, Withdraw
from elastic.core.rendezvous import Violation
from elastic.core.sim.hang_watches import IN_LOAD, HangWatches
from elastic.core.sim.simulation import World
from elastic.core.sim.story import parsed, parsed_operation


def told(head: str, operations: str) -> World:
    """Return the world after these operations, which is not healed."""
    world = World(parsed([f"world {head}"]).setting)
    for line in operations.split("; "):
        world.does(parsed_operation(line))
    return world


def watches(world: World) -> HangWatches:
    assert world.agents.hangs is not None
    return world.agents.hangs


STARTS = "start a; start b; start c; pass 1"


@pytest.mark.parametrize(
    ("head", "operations", "seen"),
    [
        ("max=3 hang=4 workers=2", "hang b; pass 12", "a hung worker is blamed"),
        ("max=3 hang=4", "hang b; hang b; pass 12", "a hung worker is blamed"),
        ("max=3 hang=4 alone=1", "hang b; pass 12", "a hung worker is blamed"),
        ("max=3 hang=4 links=1", "hang b; outage 8; pass 20", "a hung worker is blamed"),
        ("max=3 hang=4 reserves=2", "hang a; pass 12; drain a; pass 9", "a hung worker is blamed"),
        ("max=3 hang=4", "hang b; cut-out a 5; cut-in c 5; pass 30", "stacks are put on record again"),
        ("max=3 hang=4", "hang b; full 6; pass 30", "stacks are put on record again"),
        ("max=3 hang=4", "hang b; pass 4.6; empty; pass 30", "a hung worker is blamed"),
        ("max=3 hang=4", "hang b; pass 3; pause a 4; pass 20", "a hang that not all nodes suspect"),
        ("max=3 hang=4", "hang b; cut a 1; pass 30", "a hang is reported"),
        ("max=3 hang=4 restarts=0", "hang a; hang b; pass 5; fail c; pass 9", "a node suspects a hang"),
        ("max=3 hang=9 reserves=1", "hang c; pass 30", "a reserve"),
        ("min=3 max=3 hang=9", "unstartable b; fail a; pass 1; hang c; pass 30", "closed FAILED, cannot start"),
    ],
)
def test_a_hang_is_seen(head: str, operations: str, seen: str) -> None:
    assert told(head, f"{STARTS}; {operations}").counts[seen] > 0


def test_a_world_that_moves_again_in_time_blames_nobody() -> None:
    world = told("max=3 hang=4", f"{STARTS}; hang b; pass 4.3")
    world.heals()
    world.does(parsed_operation("pass 20"))
    assert world.counts["a suspected hang moves again"] > 0
    assert world.counts["a hung worker is blamed"] == 0


def test_O11_whoever_is_blamed_in_a_world_that_moves_is_found() -> None:
    world = told("max=3 hang=4", STARTS)
    process = world.at("a")
    assert process is not None
    with pytest.raises(Violation, match="O11: a blames rank 0, and its world moves"):
        watches(world)._blames(process, watches(world).followers[process.node], Blame(0, 4.0, False))


def test_O11_one_that_waits_like_the_others_is_not_odd() -> None:
    world = told("max=3 hang=4", f"{STARTS}; hang b; pass 4.3")
    process = world.at("a")
    assert process is not None
    hangs = watches(world)
    follower, stacks = hangs.followers[process.node], hangs.stacks
    with pytest.raises(Violation, match="O11: a blames rank 0 alone, which waits like the others"):
        hangs._blames(process, follower, Blame(0, 4.0, True))
    hangs.stacks = {node: evolve(each, places=((1, IN_LOAD), (2, IN_LOAD))) for node, each in stacks.items()}
    hangs._blames(process, follower, Blame(0, 4.0, True))
    assert world.witness.judge.strength.excused["O11"] == 1


@pytest.mark.parametrize(("pauses", "act"), [(4.3, Record()), (0.0, Withdraw())], ids=["put", "taken back"])
def test_O13_what_is_said_twice_is_found(pauses: float, act: Act) -> None:
    world = told("max=3 hang=4", f"{STARTS}; hang b; pass {pauses}")
    process, hangs = world.at("a"), watches(world)
    assert process is not None
    with pytest.raises(Violation, match="O13: a says twice: "):
        hangs._carries_out(process, hangs.followers[process.node], act, Others(()))


def test_O13_what_the_store_has_lost_may_be_said_again() -> None:
    world = told("max=3 hang=4", f"{STARTS}; hang b; pass 4.3")
    process, hangs = world.at("a"), watches(world)
    assert process is not None
    follower, lost = hangs.followers[process.node], Others((), on_record=False)
    for act in (Record(), Withdraw()):
        hangs._carries_out(process, follower, act, lost)
    assert world.witness.judge.strength.armed["O13"] == 2


def test_L13_a_world_that_stands_still_and_blames_nobody_is_found() -> None:
    world = told("max=3 hang=4", f"{STARTS}; hang b")
    watches(world).settings = HangSettings(1_000.0, restarts=True)
    with pytest.raises(Violation, match=r"L13: round 0 stands still since 1\.000 s, and nobody is blamed"):
        world.does(parsed_operation("pass 30"))


def test_L13_asks_nothing_where_something_else_happens() -> None:
    for other in ("outage 1", "cut a 1", "start a"):
        world = told("max=3 hang=4", f"{STARTS}; hang b")
        watches(world).settings = HangSettings(1_000.0, restarts=True)
        for line in (f"{other}", "pass 30"):
            world.does(parsed_operation(line))
        assert world.witness.judge.strength.excused["L13"] == 1
