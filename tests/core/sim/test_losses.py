"""A store that loses its memory: the judge finds a loss that costs more than it may (R10, R11, R13 to R15)."""

from __future__ import annotations

import pytest
from attrs import evolve
from simulated import TWO, at, both_running, remembers, then, world
from worlds import arrived, but, edited, holding, node, profile, running

from elastic.core.group import Phase
from elastic.core.properties.facts import Wrote
from elastic.core.rendezvous import (
    Arrive,
    Close,
    End,
    Evict,
    Held,
    Leave,
    RendezvousState,
    Restore,
    Violation,
    Write,
    restored,
    woke,
)
from elastic.core.sim.losses import KNOWN_BEATS, Losses, looked, slept
from elastic.core.sim.process import Process, Thread
from elastic.core.sim.simulation import World
from elastic.core.world import Ending, Life, Verdict, Why

WORLD = running("a b", size="2:3", restarts=3)
FAILED = edited(WORLD, "a", End(0, Why.FAILED))
CLOSED = edited(WORLD, "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)))


def back(held: RendezvousState, found: RendezvousState | None = None) -> RendezvousState:
    return restored(Restore(held, "again"), found)


# --- R10: no failure is forgotten


def taken_over(before: Held, state: RendezvousState, losses: Losses | None = None) -> None:
    """Judge that a process which held `before` takes over this state."""
    process = at(both_running(), "a")
    remembers(process, but(before, state=state, woke_at=None))
    (losses or Losses()).changed(process, before)


FORGETFUL = evolve(back(FAILED), failures=0)


def test_R10_a_restored_register_that_forgot_a_failure_is_seen() -> None:
    with pytest.raises(Violation, match="R10: a takes over 0 failures, and knew of 1"):
        taken_over(holding("a", FAILED), FORGETFUL)
    taken_over(holding("a", FAILED), back(FAILED))


@pytest.mark.parametrize(
    "state",
    [
        evolve(FORGETFUL, job="new"),
        evolve(FORGETFUL, base=()),
        evolve(FORGETFUL, base=((2, 9),)),
        evolve(FAILED, failures=0),
        evolve(FORGETFUL, life=FAILED.life),
    ],
    ids=[
        "of another job",
        "with a world of its own",
        "made of a later life with a world of its own",
        "of my life, with a refund",
        "of my life",
    ],
)
def test_R10_judges_only_restores_of_the_node_s_own_job(state: RendezvousState) -> None:
    taken_over(holding("a", FAILED), state)


def test_R10_asks_nothing_of_one_that_knew_of_a_restore_that_came_to_nothing() -> None:
    """The state that it held was made from less than the one that it takes over."""
    fork = evolve(back(FAILED), base=((1, 2),))
    taken_over(holding("a", fork), evolve(back(WORLD), base=((1, 9),), failures=0))


def test_R10_asks_nothing_of_a_sleeper_nor_of_one_that_held_nothing() -> None:
    taken_over(woke(holding("a", FAILED), 1.0), FORGETFUL)
    taken_over(holding("a", None), FORGETFUL)


def test_R10_asks_nothing_of_a_verdict() -> None:
    taken_over(holding("a", FAILED), evolve(FORGETFUL, closed=CLOSED.closed))


def test_R10_a_failure_that_was_forgiven_is_not_forgotten() -> None:
    losses = Losses()
    refunded = edited(FAILED, "a", gone := Evict(frozenset({node("b")})))
    losses.wrote(Wrote(node("a"), FAILED, gone, refunded), (), 0.0)
    taken_over(holding("a", FAILED), back(refunded), losses)
    assert losses.refunds == {"life": 1}


# --- R11: no verdict is forgotten

AGAIN = arrived(back(FAILED), "a")
COMPLETES = Wrote(node("b"), AGAIN, Arrive(profile("b")), arrived(AGAIN, "b"))
NOW = 20.0


def knower(
    held: Held | None = None, since: float = NOW - KNOWN_BEATS - 0.1, cut_until: float = 0.0, stood_until: float = 0.0
) -> Process:
    """Return a process that learned the verdict at this true time."""
    process = at(both_running(), "a")
    remembers(process, held or holding("a", CLOSED, at=process.clock.shows(since)))
    process.trouble.cut_out_until = cut_until
    process.stalls.stands(Thread.WAITER, 0.0, stood_until)
    return process


def test_R11_a_world_that_completes_while_a_node_knows_the_verdict_is_found() -> None:
    with pytest.raises(Violation, match="R11: round 1 is complete, but a knows the verdict"):
        Losses().wrote(COMPLETES, [knower()], NOW)


@pytest.mark.parametrize(
    "process",
    [
        knower(since=NOW - 1),
        knower(cut_until=NOW - 1),
        knower(stood_until=NOW + 1),
        knower(stood_until=NOW - 1),
        knower(holding("a", WORLD)),
        knower(holding("a", None)),
        knower(but(holding("a", CLOSED), state=evolve(CLOSED, job="other"))),
        knower(woke(holding("a", CLOSED), 1.0)),
        knower(but(holding("a", CLOSED), held_at=None)),
    ],
    ids=[
        "not for long",
        "out of reach",
        "asleep",
        "slept",
        "no verdict",
        "nothing",
        "another job's",
        "awoken",
        "unread",
    ],
)
def test_R11_asks_nothing_of_a_node_that_could_not_have_told(process: Process) -> None:
    Losses().wrote(COMPLETES, [process], NOW)


def test_R11_judges_only_worlds_that_complete() -> None:
    Losses().wrote(Wrote(node("b"), back(FAILED), Arrive(profile("b")), arrived(back(FAILED), "b")), [knower()], NOW)
    Losses().wrote(Wrote(node("b"), None, Restore(WORLD, "again"), back(WORLD)), [knower()], NOW)


# --- S15 across a loss


def test_S15_asks_nothing_of_a_first_write_that_comes_late_into_a_store_that_has_forgotten() -> None:
    """The node has left, and the register knew it; then a backup from before the register is put back."""
    made = world(
        "start a", "late-write a 3", "pass 1", "drain a", "pass 2", "older 1", "start a", setting="world nodes=1"
    )
    then(made, "pass 1")
    assert made.witness.judge.strength.excused["S15"] == 1


# --- R15: no failure is missing on record


def failed(*before: str) -> World:
    """Return a world whose last failure is on record, before the nodes are back."""
    return world(*TWO, *before, "fail b", "pass 0.0045", setting="world nodes=2 min=2 max=2 restarts=0")


def test_R15_a_job_that_fails_without_the_failure_on_record_is_seen() -> None:
    made = failed()
    made.store.records.clear()
    with pytest.raises(Violation, match="R15: job a@0 fails, and b knows a failure that is not on record"):
        then(made, "pass 1")


@pytest.mark.parametrize("loss", ["empty", "outage 1"])
def test_R15_what_the_store_has_forgotten_is_on_record_again(loss: str) -> None:
    made = then(failed(), loss, "pass 5")
    assert made.store.register and made.store.register.closed
    assert (made.witness.judge.strength.armed["R15"], made.witness.judge.strength.excused["R15"]) == (1, 0)


def test_R15_what_the_store_did_not_take_is_on_record_when_it_is_back() -> None:
    made = world(*TWO, "outage 1", "fail b", "pass 5", setting="world nodes=2 min=2 max=2 restarts=0")
    assert made.counts["an errand fails"] == 1
    assert made.witness.judge.strength.armed["R15"] == 1


def test_R15_asks_nothing_of_a_spare() -> None:
    made = world(*TWO, "start c", "pass 1", "fail b", "pass 5", setting="world nodes=3 min=2 max=2 restarts=0")
    assert made.store.register and made.store.register.closed
    assert made.witness.judge.strength.armed["R15"] == 1


def test_R15_asks_nothing_of_a_check_that_fails_while_the_verdict_is_sent() -> None:
    setting = "world nodes=2 max=1 restarts=0 seed=1548916480 standbys=3"
    made = world(
        "start a", "start b", "pass 2.5", "kill-worker b", "pass 0.04", "find-unfit b 1", "pass 5", setting=setting
    )
    assert made.store.register and made.store.register.closed
    assert made.witness.judge.strength.armed["R15"] == 1


def test_R15_asks_nothing_of_a_failure_that_the_store_did_not_take_in_this_life() -> None:
    made = failed()
    (record,) = made.store.records
    assert made.store.register
    at(made, "b").memory.refused[record[1]] = made.store.register.life
    made.store.records.clear()
    then(made, "pass 1")
    assert made.witness.judge.strength.excused["R15"] == 1


# --- who knows the verdict lingers


def test_a_node_that_knows_the_verdict_stays_until_the_store_knows_it() -> None:
    """The store forgets the verdict a millisecond after it was told. A node that was told restores it before it ends."""
    made = then(both_running(), "cancel", "pass 0.005")
    assert made.store.register and made.store.register.closed
    assert [process.group.phase for process in made.living()][:2] == [Phase.STOPPING, Phase.STOPPING]
    then(made, "empty", "pass 1")
    assert not [process for process in made.living() if not process.launch.operator]
    assert (made.counts["a verdict restored"], made.counts["who knows the verdict lingers"]) == (1, 2)
    then(made, "start a", "pass 1")
    assert made.counts["a late agent told the verdict"] == 1


def test_a_node_lingers_after_the_operation_that_is_under_way() -> None:
    """a stood still when the job was closed, and a worker of it failed then: the failure's record is under way when the last
    worker is dead."""
    made = world(*TWO, setting="world nodes=2 min=2 max=2 workers=2")
    a, told = at(made, "a"), list[str]()
    then(made, "pause a 1", "cancel", "pass 0.5", "fail a", "pass 0.5015")
    made.witness.tell = lambda when, who, what: told.append(f"{who} {what} {a.loop.request > 0}")
    then(made, "pass 0.1")
    assert told == ["a stopping → ended True", "a ends: cancelled True"]
    assert made.at("a") is None


def test_without_lingering_the_job_would_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from elastic.core import agent
    from elastic.core.sim import agents

    monkeypatch.setattr(agent, "farewell", lambda outcome: None)
    with pytest.raises(Violation, match="L18: a#1 hears Reaped, and knows otherwise: lingers"):
        then(both_running(), "cancel", "pass 0.005", "empty", "pass 1")
    monkeypatch.setattr(agents, "hears", lambda *told: None)
    made = then(both_running(), "cancel", "pass 0.005", "empty", "pass 1")
    assert made.store.register is None


# --- what else is seen of a loss


def test_a_start_is_held_back_while_the_answer_names_another_life() -> None:
    made = world("start a", "start b", "pass 0.0065", "empty", "pass 2", setting="world nodes=2 min=2 max=2")
    assert made.counts["start held back because the answer names another life"] >= 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_sleeper_adopts_the_world_that_went_on_without_it() -> None:
    made = then(then(both_running(), "pass 12"), "pause a 8", "pass 1", "empty", "pass 20")
    assert made.counts["a sleeper wakes into another life"] == 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_node_paused_for_less_than_a_ttl_did_not_sleep() -> None:
    made = then(then(both_running(), "pass 12"), "pause a 3", "pass 1", "empty", "pass 9")
    assert made.counts["a sleeper wakes into another life"] == 0
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_two_nodes_that_begin_anew_do_not_wait_for_the_join_timeout() -> None:
    """Both nodes slept, and the store came back with a world that they had run before the last one."""
    patient = "world nodes=2 min=2 max=2 join=600"
    made = world(
        *TWO, "fail a", "pass 4", "pause a 10", "pause b 10", "pass 1", "older 5.5", "pass 30", setting=patient
    )
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}
    assert made.counts["end by fenced"] == 1


def test_a_copy_names_no_life_until_it_is_restored() -> None:
    named = [then(made := then(both_running(), "pass 12"), "older 0.5").store.named, then(made, "pass 1").store.named]
    assert [life.epoch if life else None for life in named] == [None, 2]


# --- R11, R13, R14: what is known is not given up, but by who has slept


def test_R13_a_job_that_is_forgotten() -> None:
    process = at(both_running(), "a")
    before = process.held
    remembers(process, but(before, state=None))
    with pytest.raises(Violation, match="R13: a forgets job"):
        Losses().changed(process, before)


def test_R11_a_verdict_that_is_given_up() -> None:
    process = at(both_running(), "a")
    remembers(process, holding("a", back(WORLD)))
    with pytest.raises(Violation, match="R11: a gives up the verdict"):
        Losses().changed(process, holding("a", CLOSED))


def test_R14_a_sleeper_that_decides_before_it_reads_the_register_is_found() -> None:
    process, losses = at(both_running(), "a"), Losses()
    remembers(process, holding("a", WORLD))
    leaves = Write(edited(WORLD, "a", Leave()), WORLD.token, Leave())
    slept(process, 10.0)
    with pytest.raises(Violation, match="R14: a has slept, and decides before it has looked"):
        losses.decides(process, leaves)
    looked(process, WORLD, 9.0)
    with pytest.raises(Violation, match="R14"):
        losses.decides(process, leaves)
    looked(process, back(WORLD), 11.0)
    losses.decides(process, leaves)
    offer = Write(back(WORLD), None, Restore(WORLD, "again"))
    with pytest.raises(Violation, match="R14: a restores what it held before it slept"):
        losses.decides(process, offer)
    slept(process, 20.0)
    looked(process, WORLD, 21.0)
    losses.decides(process, offer)


# --- how often a law was armed, and how often excused


def test_R11_is_armed_where_somebody_knows_the_verdict_and_excused_where_it_could_not_tell() -> None:
    losses = Losses()
    losses.wrote(COMPLETES, [knower(cut_until=NOW - 1), knower(holding("a", WORLD))], NOW)
    assert (losses.strength.armed["R11"], losses.strength.excused["R11"]) == (1, 1)


def test_R10_is_excused_where_those_who_had_forgotten_completed_a_world() -> None:
    process, losses = at(both_running(), "a"), Losses()
    forgot = evolve(FAILED, life=Life("another", FAILED.life.epoch + 1), failures=0)
    remembers(process, holding("a", forgot))
    losses.changed(process, holding("a", FAILED))
    assert (losses.strength.armed["R10"], losses.strength.excused["R10"]) == (1, 1)
