"""Who reads the heartbeats of all in a large job: the coordinator, and eight stand-ins while it is silent."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import pytest
from attrs import evolve
from seats import seated
from worlds import heard, holding, name, operation, running

from elastic.core.rendezvous import Observe, Settings, turn, watch
from elastic.core.rendezvous.state import STAND_INS
from elastic.core.world import Node

MANY = running(" ".join(f"n{each:02}" for each in range(40)))
FIRST, *OTHERS = MANY.present
STANDING_IN = MANY.stand_ins
OTHER = next(node for node in OTHERS if node not in STANDING_IN)


def reads(who: Node, mute: Collection[Node]) -> tuple[tuple[Node, ...], ...]:
    """Return what this node reads in each second while these nodes are mute, before it loses its patience."""
    held, read = holding(name(who), MANY, Settings(MANY.limits, patience=9.0), ran=0), []
    for now in range(10):
        match turn(operation(watch), held, float(now)):
            case Observe(nodes):
                held = heard(held, {node: 0 if node in mute else now for node in nodes}, float(now), float(now))
                read.append(nodes)
            case _:
                pass
    return tuple(read)


def all_but(who: Node) -> tuple[Node, ...]:
    return tuple(node for node in MANY.present if node != who)


def test_the_next_node_and_seven_from_all_over_stand_in_for_the_coordinator() -> None:
    places = sorted(map(MANY.present.index, STANDING_IN))
    assert len(places) == STAND_INS and places[0] == 1
    assert max(later - earlier for earlier, later in pairwise([*places, len(MANY.present)])) <= 12


@pytest.mark.parametrize("count", [40, 400, 1_000])
def test_of_any_number_of_nodes_those_that_stand_in_lie_far_apart(count: int) -> None:
    state = seated(count, 1)
    places = sorted(map(state.present.index, state.stand_ins))
    gaps = [later - earlier for earlier, later in pairwise([*places, count])]
    assert max(gaps) <= count / 5 and min(gaps[:-1]) >= count / 20


def test_a_stand_in_that_goes_is_replaced_by_one() -> None:
    gone = STANDING_IN[3]
    left = evolve(MANY, seats={node: seat for node, seat in MANY.seats.items() if node != gone})
    assert len(set(STANDING_IN) - set(left.stand_ins)) == 1


def test_of_few_nodes_all_stand_in() -> None:
    for few in (running("a"), running("a b"), running("a b c d e f g h i")):
        assert set(few.stand_ins) == set(few.present[1:])


def test_while_the_coordinator_beats_it_alone_reads_all() -> None:
    assert set(reads(FIRST, ())) == {all_but(FIRST)}
    for who in (*STANDING_IN, OTHER):
        assert set(reads(who, ())) == {(FIRST,)}


def test_when_the_coordinator_is_silent_for_half_a_ttl_the_stand_ins_read_all() -> None:
    for who in STANDING_IN:
        read = reads(who, [FIRST])
        assert read[:4] == ((FIRST,),) * 4
        assert set(read[4:6]) == {all_but(who)}


def test_the_others_then_read_the_stand_ins_too_also_when_the_silent_one_is_dead() -> None:
    read = reads(OTHER, [FIRST])
    assert read[:4] == ((FIRST,),) * 4
    assert {frozenset(each) for each in read[4:]} == {frozenset((FIRST, *STANDING_IN))}


def test_when_all_stand_ins_are_silent_too_everybody_reads_all() -> None:
    read = reads(OTHER, [FIRST, *STANDING_IN])
    assert len(read[4]) == 1 + STAND_INS
    assert read[-1] == all_but(OTHER)


def test_who_has_seen_a_node_die_reads_it_on_though_others_do_too() -> None:
    """What shows that it lives after all is its heartbeat, so none of those who hold it for dead may look away."""
    *_, dead, who = [node for node in OTHERS if node not in STANDING_IN]
    held, state = holding(name(who), MANY, Settings(MANY.limits, patience=99.0), ran=0), operation(watch)
    mute, read = {FIRST, dead, *STANDING_IN}, frozenset[Node]()
    for now in range(18):
        if isinstance(ask := turn(state, held, float(now)), Observe):
            read = frozenset(ask.nodes)
            alive = () if now < 14 else STANDING_IN
            beats = {node: 0 if node in mute and node not in alive else now for node in ask.nodes}
            held = heard(held, beats, float(now), float(now))
    assert read == {FIRST, dead, *STANDING_IN}


def test_one_stand_in_that_beats_is_enough() -> None:
    assert max(map(len, reads(OTHER, [FIRST, *STANDING_IN[1:]]))) == 1 + STAND_INS
