"""The law of how long a node waits (O19) finds one that waits longer or shorter than it may, or does not act."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve
from worlds import (
    arrived,
    but,
    circling,
    edited,
    heard,
    holding,
    node,
    operation,
    profile,
    register,
    running,
    with_one_aside,
)

from elastic.core.rendezvous import (
    Agenda,
    Arrive,
    Client,
    Close,
    Complete,
    Done,
    Drain,
    End,
    Held,
    Observe,
    Proposal,
    RendezvousState,
    Settings,
    Wait,
)
from elastic.core.rendezvous.context import Found, Handler, Operation, Proposed, Suspect
from elastic.core.rendezvous.handlers import close, end, join, leave, watch
from elastic.core.rendezvous.memory import advanced
from elastic.core.rendezvous.settings import FailureLimit
from elastic.core.rendezvous.sightings import Sightings
from elastic.core.rendezvous.turn import turn
from elastic.core.sim.wait_laws import Waits
from elastic.core.violation import Violation
from elastic.core.world import Ending, Notice, Party, Verdict, Why

RUNS = running("a b", "2:4")
OVER = edited(RUNS, "b", End(0, Why.FAILED))
MAY_FAIL = edited(running("a b", "2:4", restarts=3), "b", End(0, Why.FAILED))
FORMS = arrived(register("2:3"), "a b")
SPANS: Any = {"progress_after": 300.0, "join_timeout": 500.0, "overdue_timeout": 60.0, "patience": 0.6}


def holds(who: str, state: RendezvousState | None, ran: int | None = None, **also: Any) -> Held:
    limits = state.limits if state is not None else RUNS.limits
    return holding(who, state, Settings(limits=limits, **(SPANS | also)), ran=ran)


def is_found(held: Held, under_way: Operation, until: float, now: float = 0.0, arm: bool = False) -> bool:
    try:
        Waits().waits(Client(held, Agenda(operation=under_way)), Wait(held.token, until, arm), now)
    except Violation as violation:
        return violation.number == "O19"
    return False


def reads(held: Held, *others: str, at: float = 0.0) -> Held:
    return heard(held, {node(each): 1 for each in others}, at, at)


LONG: Any = {"deadline": 400.0}
ALONE = arrived(register("1:3"), "a")
WAITS = arrived(running("a b", "1:2"), "c")
PARTY = edited(circling("a"), "c", Arrive(evolve(profile("c"), party=Party("p", 2))))
AGAIN = arrived(arrived(edited(arrived(circling("a b", "1:9"), "c"), "a", End(0, Why.UPSCALE)), "a b c"), "d")
AGAIN = AGAIN if AGAIN.complete else edited(AGAIN, "a", Complete(1))
SELDOM: Any = {"keep_alive_interval": 1_000.0}
ONE = FailureLimit(1, 1_000.0, leaves=True)
VERDICT = Verdict(Ending.CANCELLED, 0, node("b"), Why.ASKED)


@pytest.mark.parametrize(
    ("held", "under_way", "now"),
    [
        (reads(holds("a", RUNS, ran=0), "b"), operation(watch, **LONG), 0.0),
        (holds("a", running("a"), ran=0), operation(watch, **LONG), 0.0),
        (but(reads(holds("a", RUNS, ran=0), "b"), instead=Found(None, RUNS, 1.0)), operation(watch, jitter=0.5), 0.0),
        (holds("a", circling("a"), ran=0), operation(watch), 0.0),
        (advanced(holds("a", edited(circling("a b"), "b", Done(0)), ran=0), 0, 2.0), operation(watch), 0.0),
        (holds("a", arrived(circling("a"), "c"), ran=0), operation(watch), 0.0),
        (holds("a", ALONE), operation(join, **LONG), 0.0),
        (holds("a", FORMS, last_call_timeout=3.0), operation(join, **LONG), 0.0),
        (holds("a", FORMS, last_call_timeout=3.0, first_call_timeout=7.0), operation(join, **LONG), 0.0),
        (holds("a", arrived(OVER, "a")), operation(join, **LONG), 0.0),
        (holds("c", WAITS), operation(join, **LONG), 0.0),
        (but(holds("a", ALONE), spare_at=300.0), operation(join, **LONG), 0.0),
        (holds("a", ALONE), operation(close, deadline=90.0, why=Why.CANNOT_START), 0.0),
        (holds("a", running("a b c"), ran=0), operation(end, jitter=0.5), 0.0),
        (holds("a", PARTY, ran=0, party_timeout=20.0, **SELDOM), operation(watch), 0.0),
        (holds("a", AGAIN, ran=1, **SELDOM), operation(watch), 0.0),
        (holds("b", with_one_aside(), **SELDOM), operation(join), 0.0),
        (but(holds("a", MAY_FAIL, **SELDOM, max_node_failures=ONE), failed_at=(0.0,)), operation(join), 0.0),
        (holds("a", arrived(register("1:2"), "a#2"), **SELDOM), operation(join), 0.0),
        (holds("a", arrived(register("1:2"), "a#2"), **SELDOM, leased=True), operation(join), 0.0),
        (holds("c", RUNS, **SELDOM), evolve(operation(join, **LONG), holds_back=True), 0.0),
    ],
)
def test_what_a_turn_waits_for_is_what_is_due(held: Held, under_way: Operation, now: float) -> None:
    read, wait = held, turn(under_way, held, now)
    if isinstance(wait, Observe):
        read = heard(held, dict.fromkeys(wait.nodes, 1), now, now)
        wait = turn(under_way, read, now)
    assert isinstance(wait, Wait)
    assert not is_found(read, under_way, wait.until, now)
    for lie in (wait.until - 0.1, wait.until + 0.1) if math.isfinite(wait.until) else (1e9,):
        assert is_found(read, under_way, lie, now)


def test_what_is_due_is_remembered_until_something_changes() -> None:
    judge, asked = Waits(), operation(watch)
    held = reads(holds("a", arrived(circling("a"), "c"), ran=0, **SELDOM), "c")
    client = Client(held, Agenda(operation=asked))
    for _ in range(2):
        judge.waits(client, Wait(held.token, 1.0), 0.0)
    with pytest.raises(Violation, match="O19"):
        judge.waits(evolve(client, held=but(held, spans={})), Wait(held.token, 1.0), 0.0)


def silent(who: str, *living: str, until: float) -> Held:
    """Return what a node of four holds whose others, but for these, have not moved since 0."""
    held, at = holds(who, running("a b c d"), ran=0), 0.0
    while at <= until:
        counters = {node(each): int(at) if each in living else 0 for each in "abcd" if each != who}
        held, at = heard(held, counters, at, at), at + 1.0
    return held


LATER = reads(holds("a", arrived(register("1:2"), "a#2")), "a#2")


@pytest.mark.parametrize(
    ("held", "handler", "due"),
    [
        (reads(holds("b", edited(FORMS, "b", Drain(node("b"), Notice(9.0, "a test")))), "a"), join, 1.0),
        (holds("c", RUNS), join, 0.0),
        (holds("c", None), join, 0.0),
        (holds("a", edited(RUNS, "b", Close(VERDICT)), ran=0), watch, 0.0),
        (reads(holds("a", RUNS, ran=0), "b"), join, 0.0),
        (reads(holds("a", OVER, ran=0), "b"), join, 0.0),
        (reads(holds("a", OVER, ran=0), "b"), watch, 0.0),
        (reads(holds("a", RUNS, ran=1), "b"), watch, 0.0),
        (reads(but(holds("a", RUNS, ran=0), done_in=RUNS.world_id), "b"), watch, 0.0),
        (reads(but(holds("a", RUNS, ran=0), reserve_in=RUNS.world_id), "b"), watch, 0.0),
        (reads(holds("a", RUNS, ran=0), "b"), leave, 0.0),
        (reads(holds("a", RUNS, ran=0), "b"), close, 0.0),
        (but(holds("a", None), silent_since=0.0), join, 0.0),
        (but(reads(holds("a", RUNS, ran=0), "b"), sightings=Sightings()), watch, 0.0),
        (reads(holds("b", with_one_aside()), "a", "c"), join, 1.0),
        (LATER, join, 1.0),
        (reads(holds("c", RUNS), "a"), watch, 0.0),
    ],
)
def test_a_node_that_waits_though_something_is_due_is_found(held: Held, handler: Handler, due: float) -> None:
    asked = operation(handler, deadline=300.0)
    assert is_found(held, asked, 0.5) and is_found(held, asked, 2.0)
    assert not is_found(held, asked, due)


def test_the_first_that_is_not_dead_evicts_at_once_and_the_next_ones_later() -> None:
    for who, at, waits in (("b", 5.0, False), ("c", 5.0, True), ("c", 6.0, False)):
        held = silent(who, *({"b", "c", "d"} - {who}), until=at)
        assert is_found(held, operation(watch), at + 1.0, at) is not waits
        for handler in () if waits else (watch, join):
            assert not is_found(held, operation(handler), at, at)
    assert is_found(silent("e", "b", "c", "d", until=5.0), operation(watch), 6.0, 5.0)
    assert not is_found(silent("e", "b", "c", "d", until=5.0), operation(join), 5.0, 5.0)


def test_evidence_is_acted_upon_at_once() -> None:
    seats = {who: evolve(seat, profile=evolve(seat.profile, link_port=1)) for who, seat in RUNS.seats.items()}
    held = reads(holds("a", evolve(RUNS, seats=seats), ran=0), "b")
    gone = but(held, suspects={node("b"): Suspect(0.0, 0.0, is_gone=True)})
    assert not is_found(held, operation(watch), 1.0) and is_found(gone, operation(watch), 1.0)


def test_who_cannot_be_sure_of_those_that_keep_it_out_looks_and_the_word_comes_in_time() -> None:
    asked = operation(join, deadline=300.0)
    assert not is_found(LATER, asked, 1.0)
    unread = but(LATER, sightings=evolve(LATER.view.sightings, read_at=-9.0))
    assert not is_found(unread, asked, -8.0)


def test_what_a_node_has_proposed_is_judged_elsewhere_and_the_waiter_is_armed_at_once() -> None:
    held = reads(holds("a", OVER, ran=0), "b")
    mine = but(held, proposed=Proposed(Proposal(OVER.era, Arrive(profile("a"))), 0.0, 1))
    assert is_found(held, operation(join), 0.5) and not is_found(mine, operation(join), 0.5)
    assert not is_found(reads(holds("a", RUNS, ran=0), "b"), operation(watch), 0.0, arm=True)


def test_a_node_that_has_read_no_register_waits_for_the_usual_last_call() -> None:
    held = holds("a", None, first_call_timeout=7.0)
    under_way = operation(close, why=Why.CANNOT_START, **LONG)
    since, last_call = under_way.since, held.who.settings.last_call_timeout
    assert not is_found(held, under_way, since + last_call) and is_found(held, under_way, since + 7.0)
