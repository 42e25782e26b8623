"""What a node asks and writes in one round: the judge finds a node that does more than it has causes for (L11)."""

from __future__ import annotations

import pytest
from attrs import evolve
from simulated import TWO, at, both_running, then, world
from worlds import arrived, node, profile, register, running

from elastic.core.properties.law import Strength
from elastic.core.rendezvous import (
    Arrive,
    Done,
    Drain,
    Edit,
    Evict,
    Gather,
    Look,
    Observe,
    Propose,
    Question,
    RendezvousState,
    Restore,
    Violation,
    Write,
)
from elastic.core.rendezvous.actions import Proposal
from elastic.core.sim.process import Process
from elastic.core.sim.traffic import OWN, VERSIONS, Tally, Traffic
from elastic.core.world import Life, Notice

WORLD = running("a b", size="2:3")
QUESTIONS: tuple[Question, ...] = (
    Write(WORLD, WORLD.token, Done(0)),
    Look(),
    Propose(Proposal(WORLD.era, Done(0))),
    Gather(()),
    Observe(()),
)


def a_process() -> Process:
    """Return a, which has just started and was shown nothing."""
    return at(world("start a"), "a")


def asking(**tally: float) -> Traffic:
    """Return the traffic of a world in which a has asked nothing in this round, and has these causes."""
    return Traffic(1.0, of={node("a"): Tally(0.0, **tally)})  # type: ignore[arg-type]


def asks(traffic: Traffic, question: Question, times: int, now: float = 0.0) -> None:
    process = a_process()
    for _ in range(times):
        traffic.asks(process, question, now)


def writes(traffic: Traffic, edit: Edit | Restore, before: RendezvousState | None, after: RendezvousState) -> None:
    traffic.wrote(node("a"), before, Write(after, before.token if before else None, edit))


def test_a_write_that_is_refused_by_what_its_node_holds_is_a_cause_to_write_again() -> None:
    """The store comes back as an older copy, twice while b's first write is on its way."""
    starts = [f"start {slot}" for slot in "abcd"]
    made = world(
        *starts, "pass 0.02", "older 0.01", "pass 0.01", "older 1", "pass 2", setting="world nodes=4 max=1 seed=3"
    )
    assert made.counts["the store came back older"] + made.counts["the store came back empty"] == 2


@pytest.mark.parametrize("question", QUESTIONS)
def test_L11_a_node_that_asks_more_often_than_it_has_causes_is_found(question: Question) -> None:
    own = OWN[type(question)]
    for causes, many in (({}, 0), ({"shown": 3}, 3), ({"prompts": 2}, 2), ({"shown": 3, "prompts": 2}, 5)):
        asks(asking(**causes), question, own + many)
        with pytest.raises(Violation, match=rf"L11: a#?1? .* {own + many + 1} times in a round, in which it was shown"):
            asks(asking(**causes), question, own + many + 1)


def test_heartbeats_may_be_read_once_in_each_interval_and_nothing_else_by_the_clock() -> None:
    asks(asking(), Observe(()), 2 + 7, now=7.0)
    with pytest.raises(Violation, match="L11: a reads heartbeats 10 times"):
        asks(asking(), Observe(()), 2 + 8, now=7.9)
    with pytest.raises(Violation, match="L11: a reads the register 2 times"):
        asks(asking(), Look(), 2, now=99.0)


def test_a_restore_is_not_counted() -> None:
    restore = Write(WORLD, None, Restore(WORLD, "again"))
    asks(asking(), restore, 50)
    traffic = Traffic(1.0)
    for _ in range(50):
        writes(traffic, Restore(WORLD, "again"), None, WORLD)
    assert traffic.written == {}


def test_a_round_begins_with_nothing_asked() -> None:
    made = world(*TWO, "fail a", "pass 5", setting="world nodes=2 min=2 max=2")
    tally = made.witness.traffic.of[node("a")]
    assert tally.state is not None
    assert tally.state.round == 1
    assert tally.asked[Write] <= 1 + tally.shown
    assert (tally.prompts, made.witness.judge.strength.armed["L11"]) == (0, 4)
    then(made, "outage 3", "pass 3")
    assert made.witness.traffic.of[node("a")].prompts > 0


def test_L11_a_node_that_writes_too_many_versions_of_a_round_is_found() -> None:
    traffic = Traffic(1.0, Strength())
    for _ in range(VERSIONS):
        writes(traffic, Done(0), WORLD, WORLD)
    with pytest.raises(Violation, match=f"L11: a#?1? writes {VERSIONS + 1} versions in round 0"):
        writes(traffic, Done(0), WORLD, WORLD)


def test_the_versions_of_another_round_or_life_count_anew_and_evictions_and_notices_not_at_all() -> None:
    traffic = Traffic(1.0)
    for each in (WORLD, evolve(WORLD, round=1), evolve(WORLD, life=Life("new"))):
        for _ in range(VERSIONS):
            writes(traffic, Done(0), each, each)
            writes(traffic, Evict(frozenset()), each, each)
            writes(traffic, Drain(node("a"), Notice(3.0, "signal")), each, each)
    first = arrived(register("2"), "a")
    writes(traffic, Arrive(profile("a")), None, first)
    assert traffic.written[node("a")] == ((first.life, 0), 1)


def test_who_was_dropped_and_comes_again_counts_anew() -> None:
    traffic = Traffic(1.0)
    for _ in range(VERSIONS):
        writes(traffic, Done(0), WORLD, WORLD)
    without = evolve(WORLD, seats={each: seat for each, seat in WORLD.seats.items() if each != node("a")})
    traffic.wrote(node("b"), WORLD, Write(without, WORLD.token, Evict(frozenset({node("a")}))))
    assert node("a") not in traffic.written


def test_L11_a_waiter_waits_for_one_change_at_a_time() -> None:
    made = both_running()
    a = at(made, "a")
    assert a.waiter.waits
    a.client = evolve(a.client, armed=False)
    with pytest.raises(Violation, match="L11: a waits for the next change twice at once"):
        then(made, "pass 2")


def test_L11_a_node_that_waits_has_a_waiter() -> None:
    made = both_running()
    at(made, "a").waiter.waits = False
    with pytest.raises(Violation, match="L11: a waits, and nothing waits for the next change"):
        then(made, "pass 2")
