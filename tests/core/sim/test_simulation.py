"""The simulated world: an operation has the effect that its name says, and a broken property is found."""

from __future__ import annotations

import math

import pytest
from attrs import evolve, fields
from simulated import TWO, at, both_running, hangs, remembers, then, world
from worlds import but, reseated

from elastic.core.group import Group, Phase
from elastic.core.group.state import Elapsed
from elastic.core.rendezvous import Request, Status, Violation, reserve
from elastic.core.rendezvous.context import Fact
from elastic.core.rendezvous.sightings import Sighting, Sightings
from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import converges, tell
from elastic.core.sim.simulation import World
from elastic.core.sim.story import QUICK, Operation, parsed
from elastic.core.sim.witness import MAY_END
from elastic.core.world import Why


def test_two_nodes_come_to_run() -> None:
    made = both_running()
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_an_operation_that_applies_to_nothing_does_nothing() -> None:
    made = world("fail a", "start a", "fail a", "succeed a", "hang a", setting="world")
    assert (made.done[Kind.START], made.done[Kind.FAIL], made.done[Kind.SUCCEED]) == (1, 0, 0)


def test_a_slow_node_that_gets_no_answer_in_time_is_not_dead() -> None:
    made = world(*TWO, "slow b 2.5", "pass 30", setting="world nodes=2 min=2 max=2")
    assert (made.counts["end by lost"], at(made, "b").group.phase) == (0, Phase.RUNNING)


def test_a_write_that_is_late_may_land_after_its_node_has_read_again() -> None:
    made = then(both_running(), "late-write b 3", "fail b", "pass 2.003", "cut-out b 1.5", "pass 5")
    assert made.counts["a write lands after its node re-read"] == 1
    assert made.witness.ends.total() == 1


def test_a_write_that_is_late_may_land_before_its_node_can_read_again() -> None:
    made = then(both_running(), "late-write b 3", "fail b", "pass 0.5", "cut-in b 5", "pass 3.2")
    assert (made.counts["a late write lands"], made.counts["a write lands after its node re-read"]) == (1, 0)


def test_an_operators_cancel_reaches_everybody() -> None:
    made, told = both_running(), list[str]()
    made.witness.tell = lambda at, who, what: told.append(f"{who} {what}")
    made.does(Operation(Kind.CANCEL))
    made.does(Operation(Kind.PASS, span=1.0))
    assert not list(made.living())
    assert made.counts["closed CANCELLED"] == 1
    assert told[1].startswith("operator closes CANCELLED → 3")
    assert {"a ends: cancelled", "b ends: cancelled"} <= set(told)


def test_a_worker_that_is_ready_while_its_agent_sleeps_is_heard_when_that_wakes() -> None:
    made = then(both_running(), "notice b 20", "pass 9", "pause b 3", "pass 2")
    assert at(made, "b").group.phase is Phase.RUNNING
    then(made, "pass 4")
    assert made.at("b") is None


def test_a_round_that_loses_a_node_in_its_last_call_loses_its_quorum() -> None:
    made = world(*TWO, "crash b", "pass 9", setting="world nodes=2 min=2 max=3 last_call=30")
    assert (made.counts["quorum lost"], made.counts["rounds completed"]) == (1, 0)


def test_a_node_that_is_done_may_die_and_ends_no_round() -> None:
    made = then(both_running(), "succeed b", "pass 1", "crash b", "pass 9")
    assert (made.counts["a done node dies"], at(made, "a").group.phase) == (1, Phase.RUNNING)


def test_a_program_that_cannot_be_started_closes_the_job() -> None:
    made = world("start a", "unstartable a", "pass 1", setting="world max=1")
    assert made.counts["closed FAILED, cannot start"] == 1


def test_a_start_that_may_not_fail_again_is_a_failure_of_its_round() -> None:
    over = (
        world("start a", "unstartable a", "pass 9", setting=f"world nodes=1 max=1 seed={seed}") for seed in range(1, 9)
    )
    first = next(made for made in over if made.counts["a start fails, and may not fail again"])
    assert (first.counts["end by failed"], first.counts["closed FAILED, cannot start"]) == (1, 0)
    assert at(first, "a").group.phase is Phase.RUNNING


def test_a_run_is_told_in_words() -> None:
    lines = list[str]()
    text = """
world nodes=3 min=1 max=3 barrier=2 last_call=0.5 grace=20
start a
start b
pass 1
crash b
pass 8
start b
pass 3
hang b
fail a
pass 12
succeed a
pass 4
drain a
pass 9
"""
    assert tell(parsed(text.splitlines()), lambda at, who, what: lines.append(what)).violation is None
    told = "\n".join(lines)
    for words in (
        "arrives →",
        "completes round 0",
        "evicts b",
        "ends round 1 (upscale)",
        "ends round 2 (failed)",
        "waits no longer in round 3",
        "is done in round",
        "held → running",
        "ends: succeeded",
    ):
        assert words in told, words


# --- what must not happen


def test_L6_a_process_that_spins_is_seen() -> None:
    made = World(QUICK, turns_max=1)
    with pytest.raises(Violation, match="L6: a spins"):
        made.does(Operation(Kind.START, "a"))


class Spins(Group):
    """A group whose timer is always due."""

    @property
    def until(self) -> float:
        return 0.0


def test_L6_a_timer_that_is_due_and_does_nothing_is_seen() -> None:
    made = both_running()
    a = at(made, "a")
    a.agent = evolve(a.agent, group=Spins(**{each.name: getattr(a.group, each.name) for each in fields(Group)}))
    made.agents.hear(a, Elapsed(a.clock.shows(made.future.now)))
    with pytest.raises(Violation, match="L6: the timer of a passes without end"):
        then(made, "pass 1")


def test_L6_a_process_that_asks_without_end_is_seen() -> None:
    made = both_running()
    a = at(made, "a")
    a.loop.second, a.loop.asked_before = int(made.future.now), -999
    made.does(Operation(Kind.FAIL, "b"))
    with pytest.raises(Violation, match="L6: a asks without end"):
        made.does(Operation(Kind.PASS, span=0.5))


def test_L6_nodes_whose_heartbeats_come_often_may_ask_as_often() -> None:
    story = parsed(["world interval=0.01", "start a", "start b", "pass 5", "fail a", "pass 5", "crash b", "pass 5"])
    assert tell(story).violation is None


def test_L2_a_node_that_gives_up_in_a_world_that_is_well_is_found() -> None:
    made = world("start a", setting="world nodes=2 min=2 max=2 join=15")
    made.witness.well_at = 10.0
    with pytest.raises(Violation, match="L2: a has found no world, but all has been well for long"):
        made.does(Operation(Kind.PASS, span=20.0))


def test_S14b_a_node_whose_workers_have_work_and_that_becomes_a_reserve_is_found() -> None:
    made = both_running()
    made.agents.loops.submit(at(made, "b"), Request(reserve))
    with pytest.raises(Violation, match="S14b: b#1 is a reserve in round 0, in which its workers have work"):
        made.does(Operation(Kind.PASS, span=1.0))


def test_L7_a_question_counts_as_asked_when_it_was_asked() -> None:
    made = both_running()
    a = at(made, "a")
    then(made, "cut-in a 9", "pause-loop a 6", "pass 6.01")
    assert a.loop.tried_at < made.future.now - 5.0


def test_an_illegal_register_is_named() -> None:
    made = both_running()
    register = made.store.register
    assert register is not None
    made.store.register = evolve(reseated(register, a=Status.EXPECTED), version=register.version + 1)
    made.network.forgets()
    made.does(Operation(Kind.FAIL, "b"))
    with pytest.raises(Violation, match="S4: b end: a world of 1 nodes, outside 2 to 2"):
        made.does(Operation(Kind.PASS, span=1.0))


def test_L3_an_eviction_of_a_node_that_is_well_is_found() -> None:
    made = both_running()
    a, b = at(made, "a"), at(made, "b")
    now = a.clock.shows(made.future.now)
    seen_dead = Sightings({b.node: Sighting(1, now - 9)}, now)
    remembers(a, but(a.held, sightings=seen_dead, spans={Fact.DEAD: (True, now)}))
    with pytest.raises(Violation, match="L3: a throws out b, whose heartbeats came in time"):
        made.does(Operation(Kind.PASS, span=3.0))


def test_L2_a_node_that_never_comes_to_rest_is_seen() -> None:
    made = world(*TWO, setting="world nodes=2 min=2 max=2 join=600")
    a = at(made, "a")
    hangs(a)
    made.does(Operation(Kind.FAIL, "b"))
    made.witness.recoveries.calm_at = math.inf  # L9 would see it sooner
    with pytest.raises(Violation, match=r"L2: after .* s without faults: a \(running\)"):
        converges(made)


ENDS = {
    Why.FAILED: (*TWO, "fail a", "pass 1"),
    Why.LOST: (*TWO, "crash a", "pass 9"),
    Why.LEFT: (*TWO, "drain a", "pass 5"),
    Why.UPSCALE: ("start a", "pass 3", "start b", "pass 3"),
    Why.FENCED: (*TWO, "cut a 4", "pass 5"),
}


@pytest.mark.parametrize("why", MAY_END)
def test_L4_a_round_that_nothing_ended_is_seen(why: Why) -> None:
    made = then(both_running(), "fail a", "pass 1", "drain a", "pass 5", "start a", "pass 5")
    made.witness.judges_rounds()
    made.witness.ends[why] += 1
    with pytest.raises(Violation, match=f"L4: . rounds ended as {why.value}, and . may have: .*'failures': 1"):
        made.witness.judges_rounds()


def test_each_reason_of_a_rounds_end_has_its_causes() -> None:
    ends = {why: world(*operations, setting="world nodes=2 max=2 fence=3") for why, operations in ENDS.items()}
    assert {why: dict(made.witness.ends) for why, made in ends.items()} == {why: {why: 1} for why in ends}
    for made in ends.values():
        made.witness.judges_rounds()
        assert made.witness.judge.strength.armed["L4"] == 1


def test_a_successor_is_the_loss_of_the_node_before_it() -> None:
    made = then(both_running(), "start a", "pass 5")
    assert dict(made.witness.ends) == {Why.LOST: 1}
    assert made.witness.causes["successors"] == 1


# --- helping

CROWD = ("start a", "start b", "start c", "start d", "pass 3")
HELPED = "world nodes=4 min=4 max=4 helping=1"


def test_many_nodes_come_back_by_one_write() -> None:
    made, told = world(*CROWD, setting=HELPED), list[str]()
    made.witness.tell = lambda at, who, what: told.append(what)
    made = then(made, "fail b", "pass 0.5")
    assert any(what.startswith("writes for a, b, c, d → 4: round 1 complete") for what in told)
    assert made.counts["a batch completes the round"] == 1
    assert made.writes == 2 + 2
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_many_nodes_that_succeed_close_the_job_by_one_write() -> None:
    made = world(*CROWD, *(f"succeed {slot}" for slot in "abcd"), "pass 2", setting=HELPED)
    assert made.counts["a batch closes the job"] == 1
    assert made.writes == 2 + 1


@pytest.mark.parametrize("fault", ["lose-reply b", "late-write c 3", "late-write d 0.3"])
def test_a_proposal_that_is_late_or_made_twice_keeps_nobody_out(fault: str) -> None:
    made = world(*CROWD, "fail a", "pass 0.001", fault, "pass 8", setting=HELPED)
    assert (made.witness.ends.total(), {process.group.phase for process in made.living()}) == (1, {Phase.RUNNING})


def test_when_the_last_one_that_proposed_is_gone_another_writes_for_all() -> None:
    made = world(*CROWD, "fail a", "pass 0.001", "crash d", "pass 2", setting=HELPED)
    assert made.counts["written for those whose last is late or gone"] == 1
    assert made.counts["a batch of more than one"] == 1


def test_a_fleet_that_starts_together_is_complete_in_two_versions() -> None:
    made = world(*CROWD, setting=HELPED)
    assert made.counts["who enters together completes the round"] == 1
    assert made.writes == 2
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_fleet_of_many_is_complete_in_two_versions() -> None:
    setting = parsed(["world nodes=64 min=64 max=64 seed=3"]).setting
    made = world(*(f"start {slot}" for slot in setting.slots), "pass 3", setting=str(setting))
    assert made.writes == 2
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_who_comes_later_than_the_others_is_waited_for_and_the_others_are_not_lost() -> None:
    made = world("start a", "start b", "start c", "pass 2", "start d", "pass 3", setting=HELPED)
    assert made.counts["written for those whose last is late or gone"] == 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


@pytest.mark.parametrize("fault", ["lose-reply b", "late-write c 3", "twice d 0.3", "crash b", "drain b"])
def test_a_proposal_to_enter_that_is_late_or_lost_or_of_one_that_goes_keeps_nobody_out(fault: str) -> None:
    begun = ("start a", "start b", "start c", "start d", "pass 0.002", fault, "pass 0.5", "start b", "pass 20")
    made = world(*begun, setting=HELPED)
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_who_leaves_before_its_proposal_to_enter_is_written_is_never_seated() -> None:
    made = world("start a", "start b", "start c", "pass 0.3", "drain b", "pass 3", setting=HELPED)
    assert made.counts["a bump voids a proposal to enter"] == 1
    assert made.witness.judge.register is not None
    assert {node.slot for node in made.witness.judge.register.seats} == {"a", "c"}


def test_what_was_proposed_in_a_store_that_came_back_older_is_void() -> None:
    made = world(*CROWD, "fail a", "pass 0.02", "older 1", "pass 20", setting=HELPED)
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_an_operation_tells_if_it_had_an_effect() -> None:
    world = World(QUICK)
    told = [
        world.does(each) for each in parsed(["world", "fail a", "start a", "pass 1", "crash a", "crash a"]).operations
    ]
    assert told == [False, True, True, True, False]


def test_a_job_that_has_ended_is_not_cancelled() -> None:
    world = World(QUICK)
    story = parsed(["world", "start a", "start b", "start c", "pass 3", "cancel", "pass 3", "cancel"])
    assert [world.does(each) for each in story.operations][-3:] == [True, True, False]


def test_a_slot_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"crash z: there is no slot z in this world \(a to c\)"):
        World(QUICK).does(Operation(Kind.CRASH, "z"))


def test_a_heartbeat_that_is_answered_later_than_an_answer_may_come_is_not_acknowledged() -> None:
    """Found by the simulator (S9 strong): a node whose questions all went unanswered was heard, and was not fenced."""
    story = "world nodes=1 max=1 interval=20 fence=60 overdue=80; start a; pass 30; slow a 1.5; pass 90"
    assert tell(parsed(story.split("; ")), ends=False).world.counts["self-fencing"] == 1


def test_an_agent_that_lingers_ends_at_a_signal() -> None:
    made = then(both_running(), "cancel", "pass 0.004", "outage 9", "pass 1")
    lingers = [process for process in made.living() if process.agent.outcome is not None]
    assert lingers
    for process in lingers:
        made.does(Operation(Kind.DRAIN, process.node.slot))
    assert not any(process.alive for process in lingers)
