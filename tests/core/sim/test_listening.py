"""The law of whose heartbeats a node reads (O18) finds a node that reads others, fewer or more."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import but, edited, heard, holding, node, nodes, running

from elastic.core.properties.law import Strength
from elastic.core.rendezvous import Close, Held, Observe, RendezvousState, Violation
from elastic.core.rendezvous.context import Suspect
from elastic.core.sim.listening import listens
from elastic.core.world import Ending, Verdict, Why

RUNS = running("a b c d")
MANY = running("a b c d e f g h i j k l")


def knows(who: str, read_at: float = 0.0, state: RendezvousState = RUNS, **counters: int | None) -> Held:
    """Return what a node holds that has read these heartbeats at 0, and again then."""
    held = holding(who, state)
    for at in sorted({0.0, read_at}):
        held = heard(held, {node(each): count for each, count in counters.items()}, at, at)
    return held


def asked(held: Held, reads: str, now: float = 0.0) -> bool:
    """Return True if the law lets this node read the heartbeats of these."""
    try:
        listens(Strength(), held, Observe(tuple(sorted(nodes(reads)))), now)
    except Violation as violation:
        return violation.number != "O18"
    return True


def test_the_coordinator_reads_all_others_and_these_read_it() -> None:
    for who, reads in (("a", "b c d"), ("b", "a"), ("c", "a"), ("d", "a")):
        held = holding(who, RUNS)
        assert [each for each in ("b c d", "b c", "a", "a b") if asked(held, each)] == [reads]


def test_the_coordinator_that_reads_its_own_heartbeat_is_found() -> None:
    held = holding("a", RUNS)
    assert RUNS.first is not None
    with pytest.raises(Violation, match="O18"):
        listens(Strength(), held, Observe((RUNS.first,)), 0.0)


def test_suspects_and_those_without_a_heartbeat_are_read_too() -> None:
    doubts = but(holding("c", RUNS), suspects={node("b"): Suspect(0.0), node("z"): Suspect(0.0)})
    assert asked(doubts, "a b") and not asked(doubts, "a")
    unheard = knows("c", a=1, d=None)
    assert asked(unheard, "a d") and not asked(unheard, "a")


def test_those_who_stand_in_read_all_when_the_coordinator_is_silent_for_half_a_ttl() -> None:
    for read_at, reads in ((1.9, "a"), (2.5, "a c d")):
        held = knows("b", 1.0, a=1)
        held = heard(held, {node("a"): 1}, read_at, read_at)
        assert asked(held, reads, read_at) and not asked(held, "a c", read_at)


def test_the_first_that_is_not_dead_is_the_coordinator_and_the_others_read_the_stand_ins() -> None:
    slow = but(holding("b", RUNS), suspects={node("a"): Suspect(0.0, 0.0, is_gone=True)})
    ports = {who: evolve(seat, profile=evolve(seat.profile, link_port=1)) for who, seat in MANY.seats.items()}
    many = evolve(MANY, seats=ports)
    few = evolve(RUNS, seats={who: ports[who] for who in RUNS.seats})
    assert asked(but(slow, state=few), "a c d") and not asked(but(slow, state=few), "a")
    far = next(who for who in many.members[1:] if who not in many.stand_ins)
    held = but(holding(far.slot, many), suspects=slow.view.suspects)
    known = {many.members[0], many.members[1], *many.stand_ins}
    assert asked(held, " ".join(each.slot for each in known))
    assert not asked(held, " ".join(each.slot for each in many.members if each != far))


def test_all_read_all_when_those_who_stand_in_are_silent_too() -> None:
    far = next(who for who in MANY.members[1:] if who not in MANY.stand_ins)
    counters = {each.slot: 1 for each in (MANY.members[0], *MANY.stand_ins)}
    held = holding(far.slot, MANY)
    for at in (0.0, 1.0, 2.0, 2.6):
        held = heard(held, {node(each): count for each, count in counters.items()}, at, at)
    assert asked(held, " ".join(each.slot for each in MANY.members if each != far), 2.6)


def test_nothing_is_asked_of_a_node_without_a_seat_or_a_register() -> None:
    strength = Strength()
    closed = edited(RUNS, "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)))
    for held in (holding("a", None), holding("z", RUNS), holding("a", closed)):
        listens(strength, held, Observe((node("z"),)), 0.0)
    assert not strength.armed
