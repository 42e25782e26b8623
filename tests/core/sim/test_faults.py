"""The faults of a simulated world: each does what its name says, and the nodes get over it."""

from __future__ import annotations

import pytest
from attrs import fields, has
from simulated import TWO, at, both_running, then, world

from elastic.core.group import Phase
from elastic.core.group.state import Refused as GivenUp
from elastic.core.rendezvous import Prepared, Violation
from elastic.core.rendezvous.codec import FORMAT, Refused, decode, encode
from elastic.core.sim import process
from elastic.core.sim.faults import ON_NODE, ON_STORE
from elastic.core.sim.kinds import Kind, On
from elastic.core.sim.network import FOREIGN
from elastic.core.sim.process import Thread
from elastic.core.sim.run import converges
from elastic.core.sim.simulation import OTHER, USUAL
from elastic.core.world import Why

# --- heart, loop and waiter of one agent fail apart


def test_a_node_whose_heart_stands_still_is_evicted_and_comes_back() -> None:
    made = then(both_running(), "pause-heart b 9", "pass 9.5")
    assert (made.counts["end by lost"], made.counts["a heart goes on, and its node was evicted"]) == (1, 1)
    then(made, "pass 3")
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_heart_that_stands_still_for_less_than_a_ttl_costs_nothing() -> None:
    made = then(both_running(), "pause-heart b 3", "pass 9")
    assert (made.counts["end by lost"], at(made, "b").group.phase) == (0, Phase.RUNNING)


def test_with_the_fence_on_a_node_whose_heart_stands_still_kills_its_workers() -> None:
    made = world(*TWO, "pass 1", "pause-heart b 9", "pass 4", setting="world nodes=2 min=2 max=2 fence=3")
    assert (made.counts["self-fencing"], bool(at(made, "b").workers)) == (1, False)


def test_a_heartbeat_that_its_heart_hears_late_counts_from_when_it_was_sent() -> None:
    made = then(both_running(), "pass 0.0001", "pause-heart b 4", "pass 4.1")
    b = at(made, "b")
    assert b.group.heart.acked_at is not None and b.clock.shows(made.future.now) - b.group.heart.acked_at < 0.2
    assert made.counts["end by lost"] == 0


def test_a_node_starts_at_no_heartbeat_that_its_heart_hears_late() -> None:
    made = world("start a", "start b", setting="world nodes=2 min=2 max=2")
    while at(made, "a").group.phase is not Phase.HELD:
        then(made, "pass 0.001")
    then(made, "pause-heart a 4", "pass 4.5")
    assert (made.counts["start held back for a fresh heartbeat"], at(made, "a").group.phase) == (1, Phase.HELD)


def test_a_loop_that_stands_still_hears_everything_in_its_order() -> None:
    made = then(both_running(), "pause-loop b 4", "fail a", "pass 1", "succeed b", "pass 2.9")
    assert at(made, "b").group.phase is Phase.BARRIER  # nobody has told the agent of the failure
    then(made, "pass 3")
    assert made.counts["a loop goes on, and hears what it has missed"] == 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}
    converges(made)


def test_a_loop_that_goes_on_hears_its_agent_before_its_own_timers() -> None:
    """Else it ends the round for the newcomer, while the failure of its worker waits to be told."""
    made = world(
        "start a", "pass 5", "start b", "pass 1", "pause-loop a 2", "pass 1", "fail a", setting="world nodes=2 max=2"
    )
    converges(made)
    assert made.counts["end by failed"] == 1


def test_a_loop_that_stands_still_loses_no_seat_while_its_heart_beats() -> None:
    made = then(both_running(), "pause-loop b 20", "pass 25")
    assert (made.counts["end by lost"], at(made, "b").group.phase) == (0, Phase.RUNNING)


def test_a_pause_of_the_loop_may_be_longer_than_another_one_and_its_agent_may_be_paused_too() -> None:
    made = then(both_running(), "pause-loop b 1", "pause-loop b 3", "pause b 2", "fail a", "pass 2.5")
    assert at(made, "b").group.phase is Phase.RUNNING
    converges(then(made, "pass 5"))


def test_what_a_loop_has_missed_is_not_heard_after_its_agent_is_over() -> None:
    made = then(both_running(), "pause-loop b 3", "drain b", "drain b", "pass 1", "cancel", "pass 5")
    assert not list(made.living())


def test_a_waiter_that_stands_still_brings_what_was_so_before() -> None:
    made = then(both_running(), "pause-waiter b 2", "fail a", "pass 1.9")
    assert at(made, "b").group.phase is Phase.RUNNING
    then(made, "pass 1")
    assert made.counts["a stale push"] >= 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_waiter_that_stands_still_sees_an_outage_late() -> None:
    made = then(both_running(), "pause-waiter b 3", "outage 1", "pass 5", "fail a", "pass 5")
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_waiter_may_begin_to_wait_while_it_stands_still() -> None:
    made = then(both_running(), "fail b", "pause-waiter b 0.5", "pass 5")
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


# --- requests that come twice, a full store, very late messages


def test_a_write_that_comes_twice_is_refused_the_second_time() -> None:
    made = then(both_running(), "twice a 0.5", "fail a", "pass 5")
    register = made.store.register
    assert register is not None
    assert (made.counts["a request comes twice"], register.failures, register.round) == (1, 1, 1)


def test_a_proposal_that_comes_twice_keeps_nobody_out() -> None:
    made = world(*TWO, "start c", "pass 3", "twice a 1", "fail a", "pass 10", setting="world helping=1")
    assert made.counts["a request comes twice"] >= 1
    converges(made)


def test_what_comes_twice_does_not_come_to_another_store() -> None:
    made = then(both_running(), "twice a 2", "fail a", "pass 1", "empty", "pass 3", "twice b 2", "fail b", "pass 1")
    then(made, "outage 3", "pass 5")
    assert made.counts["a request comes twice"] == 0
    converges(made)


def test_a_full_store_takes_no_write_and_answers_reads() -> None:
    made = then(both_running(), "full 20", "fail a", "pass 15")
    assert (made.counts["end by failed"], made.counts["end by lost"]) == (0, 0)
    assert made.counts["a write that finds no space"] > 5 and made.counts["an errand fails"] == 1
    then(made, "pass 10")
    assert (made.counts["end by failed"], made.counts["end by lost"]) == (1, 0)


def test_a_few_messages_are_very_late() -> None:
    made = world(*TWO, "pass 300", setting="world nodes=2 min=2 max=2 seed=3 tail=3")
    assert made.counts["end by lost"] == 0
    converges(made)


# --- agents and nodes that are not like the others


def test_workers_may_live_on_after_their_agent() -> None:
    made = then(both_running(), "kill b 3", "pass 2.9")
    b = made.by_slot["b"][0]
    assert (b.alive, bool(b.workers)) == (False, True)
    assert not then(made, "pass 0.2").by_slot["b"][0].workers
    converges(made)


def test_nodes_of_several_sizes_form_one_world() -> None:
    made = world(*TWO, "start c", "pass 3", setting="world unlike=3")
    register = made.store.register
    assert register is not None
    assert [seat.profile.local_world_size for seat in register.seats.values()] == [1, 3, 2]
    assert [seat.profile.role for seat in register.seats.values()] == ["default", "role2", "role1"]
    assert [len(process.workers) for process in made.living()] == [1, 2, 3]
    assert [member.node.slot for member in register.world.members] == ["a", "c", "b"]  # as their places have it


def test_an_agent_with_other_limits_is_refused_and_costs_nothing() -> None:
    made = then(both_running(), "drain b", "pass 1", "start-other b", "pass 3")
    assert made.at("b") is None and made.by_slot["b"][1].agent.outcome is not None
    converges(then(made, "start b", "pass 5"))


def test_an_agent_with_another_program_is_refused_where_programs_have_names() -> None:
    made = world(*TWO, "start-stranger c", "pass 3", setting="world named=1")
    outcome = made.by_slot["c"][0].agent.outcome
    assert isinstance(outcome, GivenUp) and outcome.why is Why.PROGRAM
    assert outcome.text == f"a#1 runs {USUAL}, this node was given {OTHER}"
    assert made.counts["refused for its program"] == 1
    converges(then(made, "start c", "pass 5"))


def test_a_supervisor_starts_the_program_that_runs() -> None:
    made = world("start-stranger a", "start b", "pass 3", setting="world nodes=2 min=2 max=2 named=1")
    assert [made.starts_as(slot).value for slot in "ab"] == ["start-stranger", "start-stranger"]
    converges(made)
    assert made.counts["closed SUCCEEDED"] == 1


def test_the_first_round_waits_for_its_target_without_a_last_call() -> None:
    made = world("start a", "start b", "pass 0.5", setting="world first_target=2")
    assert made.counts["complete at the first target"] == 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_newcomer_waits_for_its_standbys_and_a_member_does_not() -> None:
    made = world("start a", "pass 3", "start b", "pass 1.5", setting="world nodes=2 max=2 standbys=2")
    register = made.store.register
    assert register is not None and [node.slot for node in register.seats] == ["a"]
    then(made, "pass 3")
    assert made.counts["held back until its standbys were ready"] == 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}
    then(made, "fail a", "pass 0.5")
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_node_that_stands_still_is_prepared_when_it_goes_on_and_a_dead_one_never() -> None:
    made = world(
        "start a", "pass 3", "start b", "pass 1", "pause b 3", "pass 2", setting="world nodes=2 max=2 standbys=2"
    )
    assert at(made, "b").agent.holds_back
    then(made, "pass 3")
    assert not at(made, "b").agent.holds_back and made.counts["held back until its standbys were ready"] == 1
    then(made, "crash b", "start b", "pass 1", "crash b", "pass 9")
    assert made.counts["held back until its standbys were ready"] == 1


def test_O10_a_newcomer_that_does_not_wait_for_its_standbys_is_found() -> None:
    made = world("start a", "pass 3", "start b", "pass 0.1", setting="world nodes=2 max=2 standbys=2")
    with pytest.raises(Violation, match="O10: b asks for a seat before its standbys are ready"):
        made.agents.loops.submit(at(made, "b"), Prepared())


def test_a_newcomer_is_shown_a_copy() -> None:
    made = world(*TWO, "pass 2", "pause a 1", "pause b 1", "older 0.5", "start c", "pass 3")
    assert made.counts["a newcomer is shown a copy"] == 1


def test_an_agent_of_another_version_is_refused_in_words_and_costs_nothing() -> None:
    made, told = both_running(), list[str]()
    made.witness.tell = lambda at, who, what: told.append(f"{who} {what}")
    then(made, "start-next b", "pass 3")
    assert made.counts["refused for its format"] == 1
    assert "b#2 ends: refused (illegal state)" in told
    assert (at(made, "b").group.phase, made.witness.ends.total()) == (Phase.RUNNING, 0)


def test_a_job_of_another_version_in_an_empty_store_is_left_alone() -> None:
    made = then(
        both_running(), "cut a 5", "cut b 5", "empty", "drain b", "pass 3", "start-next b", "start-next a", "pass 9"
    )
    assert made.store.format == 1
    converges(then(made, "cancel"))


def test_a_waiter_is_shown_a_register_of_another_version() -> None:
    made = then(both_running(), "gap a", "gap b", "empty", "start-next b", "pass 3")
    assert (made.store.format, at(made, "a").group.phase) == (1, Phase.RUNNING)  # its workers run on
    then(made, "fail a", "pass 5")
    assert made.at("a") is None and made.counts["refused for its format"] >= 1


def test_a_supervisor_starts_agents_that_the_register_takes() -> None:
    for kind in ("start-next", "start-other"):
        converges(world(f"{kind} a", "pass 2", setting="world nodes=2 min=2 max=2"))


def test_a_clock_that_was_set_back_keeps_its_node_out_until_its_old_seat_is_gone() -> None:
    made = then(both_running(), "crash b", "start-back b", "pass 1")
    assert [process.node.incarnation for process in made.by_slot["b"]] == [1, 0]
    converges(then(made, "pass 30"))


def test_a_clock_is_set_back_only_once() -> None:
    made = world("start-back a", "start-back a", "pass 1")
    assert [process.node.incarnation for process in made.by_slot["a"]] == [0, 1]


def test_another_version_is_refused_in_the_words_of_the_codec() -> None:
    register = both_running().store.register
    assert register is not None
    with pytest.raises(Refused, match=f"^{FOREIGN} {FORMAT + 1}, this version reads {FOREIGN} {FORMAT}$"):
        decode(encode(register).replace(b'"format":%d' % FORMAT, b'"format":%d' % (FORMAT + 1)))


def test_leases_run_out_again_when_an_outage_of_minutes_is_healed() -> None:
    converges(world("start b", "pass 1", "outage 160", "crash b", setting="world max=1 backend=lease"))


def test_an_outage_may_begin_in_another_one() -> None:
    made = then(both_running(), "outage 3", "pass 1", "outage 5", "pass 1")
    assert (made.store.down_since, made.store.down_until) == (1.0, 7.0)


def test_a_waiter_that_has_missed_a_change_hears_that_its_store_is_lost() -> None:
    made = then(both_running(), "gap b", "fail a", "pass 0.3", "empty", "pass 3")
    assert made.counts["restored by a survivor"] == 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_failure_of_which_the_store_has_forgotten_is_restored() -> None:
    made = world(*TWO, "pass 1", "fail b", "crash a", "pass 1", "older 1", setting="world nodes=2 min=2 max=2 seed=1")
    converges(made)
    assert made.counts["restored over an older fork"] == 1


def test_a_node_that_cannot_send_ends_without_its_farewell() -> None:
    made = world(*TWO, "pass 1", "cut-out a 30", "drain a", "pass 5.1", setting="world nodes=2 min=1 max=2")
    register = made.store.register
    assert register is not None
    assert (made.at("a"), [node.slot for node in register.seats]) == (None, ["a", "b"])
    then(made, "pass 3")
    assert (made.counts["end by left"], made.counts["end by lost"]) == (0, 1)


def test_a_newcomer_waits_behind_a_round_that_is_about_to_end() -> None:
    made = world(*TWO, "pass 2", "succeed a", "pass 0.1", "start c", "pass 1", setting="world nodes=3 min=2 max=2")
    assert made.counts["a newcomer behind a finishing round"] == 1


def test_a_supervisor_starts_no_agent_when_the_job_is_over() -> None:
    made = world(*TWO, "outage 10", "pass 7.5", "pause-loop b 10", setting="world nodes=2 max=1 join=15")
    converges(made)
    assert (made.counts["closed SUCCEEDED"], made.counts["a late agent told the verdict"]) == (1, 1)


def test_an_agent_that_stands_still_is_signalled_and_checked_when_it_goes_on() -> None:
    made = then(both_running(), "pause a 2")
    made.agents.are_signalled(at(made, "a"), 15)
    then(made, "pass 1")
    assert at(made, "a").group.phase is Phase.RUNNING
    then(made, "pass 2")
    assert (made.at("a"), made.counts["end by left"]) == (None, 1)
    checked = world("start a", "start b", "pause a 3", "pass 2", setting="world nodes=2 min=2 max=2 checks=1")
    assert at(checked, "a").group.phase is Phase.CHECKING
    assert at(then(checked, "pass 4"), "a").group.phase is Phase.RUNNING


def test_an_agent_that_stands_still_is_given_notice_when_it_goes_on() -> None:
    made = then(both_running(), "pause b 2", "notice b 30", "pass 1")
    assert at(made, "b").group.deadline is None
    then(made, "pass 2")
    assert at(made, "b").group.deadline is not None
    converges(made)


# --- operators, and what workers may take to end


SEATS = "world nodes=4 min=1 max=3"


@pytest.mark.parametrize(
    ("before", "seed", "shows"),
    [
        (("succeed b", "pass 0.2", "drain b", "pass 1"), 5, "a drain refused: no such node"),
        (("crash b", "pass 0.1"), 5, "an operator drains a dead node"),
    ],
)
def test_an_operator_drains_any_node_that_the_register_names_or_named(
    before: tuple[str, ...], seed: int, shows: str
) -> None:
    made = world("start a", "start b", "start c", "pass 3", setting=f"{SEATS} seed={seed}")
    then(made, *before, *["drain-seat 8", "pass 0.3"] * 6)
    assert made.counts[shows] > 0
    assert made.done[Kind.DRAIN_SEAT] == 6
    converges(made)


def test_there_is_nobody_to_drain_before_the_job_or_where_nobody_is_given_notice() -> None:
    assert world("drain-seat 8").done[Kind.DRAIN_SEAT] == 0
    assert world(*TWO, "drain-seat 8", setting="world notices=0").done[Kind.DRAIN_SEAT] == 0


@pytest.mark.parametrize(("shutdown", "lives_s"), [(0.5, 0.5), (6, 6.0), (0, 3.0)])
def test_workers_have_another_time_to_end_where_their_agent_is_signalled(shutdown: float, lives_s: float) -> None:
    made = world(*TWO, "hang b", "drain b", setting=f"world nodes=2 max=2 shutdown={shutdown}")
    b = at(made, "b")
    then(made, f"pass {lives_s - 0.1}")
    assert b.workers
    then(made, "pass 0.2")
    assert not b.workers
    assert made.counts["workers killed after another time than the grace"] == (shutdown > 0)
    converges(made)


# --- checks of nodes


def test_an_unfit_node_stays_out_and_the_others_run() -> None:
    made = world("start a", "start b", "unfit b", "pass 5", setting="world nodes=2 checks=1")
    assert made.counts["an unfit node leaves"] == 1
    assert [process.name for process in made.living()] == ["a"]
    converges(made)


@pytest.mark.parametrize(
    ("fault", "shows", "for_s"),
    [("hang-check", "a check that hangs", 4.5), ("break-check", "a check that says nothing", 0.5)],
)
def test_a_check_that_says_nothing_of_its_node_lets_it_join(fault: str, shows: str, for_s: float) -> None:
    made = world("start a", "start b", f"{fault} b", f"pass {for_s}", setting="world nodes=2 min=2 max=2 checks=1")
    assert made.counts[shows] == 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}
    converges(made)


def test_of_two_nodes_that_fail_only_that_is_checked_again_whose_failure_ended_the_round() -> None:
    made = world(*TWO, "fail a", "fail b", "pass 1", setting="world nodes=2 min=2 max=2 checks=1")
    assert made.counts["checked again after a failure of its own"] == 1
    assert made.counts["not checked after another node's failure"] == 1
    converges(made)


def test_a_world_without_checks_has_none_that_could_fail() -> None:
    made = then(both_running(), "unfit b", "fail b", "pass 1")
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


# --- reserves


def test_the_last_members_of_a_world_are_its_reserves_and_nobody_waits_for_their_work() -> None:
    made = world(*TWO, "start c", "pass 2", "fail c", setting="world reserves=2")
    register = made.store.register
    assert register is not None
    assert {node.slot: seat.status.value for node, seat in register.seats.items()} == {
        "a": "in",
        "b": "reserve",
        "c": "reserve",
    }
    then(made, "succeed a", "pass 1")
    assert made.counts["closed SUCCEEDED"] == 1 and not list(made.living())


def test_a_reserve_that_dies_ends_no_round_and_one_that_lives_is_called_back() -> None:
    made = world(*TWO, "start c", "pass 2", "crash c", "pass 9", setting="world reserves=2")
    assert (made.counts["a reserve goes, and its round goes on"], made.counts["end by lost"]) == (1, 0)
    then(made, "fail a", "pass 2")
    assert made.counts["a reserve called back"] == 1
    converges(made)


def test_a_world_of_one_has_no_reserve() -> None:
    made = world("start a", "pass 5", setting="world reserves=1")
    assert made.counts["a reserve"] == 0
    converges(made)


def test_a_reserve_that_was_replaced_is_asked_nothing_more() -> None:
    """The supervisor says that it is gone. Its workers may end after those of the next round have started."""
    made = world(*TWO, "start b", "fail a", "pass 0.5", setting="world nodes=2 max=2 fence=3 reserves=1 seed=5")
    assert "b#1" in {str(node) for node in made.witness.judge.superseded}
    converges(made)


# --- parties


def test_a_newcomer_waits_for_its_party() -> None:
    setting = "world nodes=4 max=4 party=2 party_wait=6"
    made = world(*TWO, "pass 3", "start c", "pass 4", setting=setting)
    assert (made.counts["a newcomer without its party"], made.counts["end by upscale"]) == (1, 0)
    then(made, "start d", "pass 2")
    assert (made.counts["end by upscale"], made.counts["a newcomer that waited for its party in vain"]) == (1, 0)
    converges(made)


def test_a_party_that_never_comes_is_not_waited_for_without_end() -> None:
    made = world(*TWO, "pass 3", "start c", "pass 9", setting="world nodes=4 max=4 party=2 party_wait=6")
    assert made.counts["a newcomer that waited for its party in vain"] == 1
    converges(made)


def test_the_last_party_of_a_world_may_be_smaller() -> None:
    made = world(*TWO, "pass 3", "start c", "pass 4", setting="world party=2 party_wait=6")
    assert made.counts["a newcomer without its party"] == 0
    assert at(made, "c").group.phase is Phase.RUNNING


# --- workers


def test_a_worker_that_is_killed_has_failed() -> None:
    """Its code is that of workers whose agent has killed them, but it ends its round. One that hangs can be killed too."""
    made = then(both_running(), "hang b", "kill-worker b", "pass 2")
    assert made.counts["end by failed"] == 1
    assert {process.group.phase for process in made.living()} == {Phase.RUNNING}


def test_a_node_that_is_found_unfit_at_work_is_drained_and_ends_as_unfit() -> None:
    made = then(world("start a", "start b", "start c", "pass 3"), "find-unfit b 8", "pass 1")
    assert at(made, "b").group.deadline is not None and at(made, "b").group.phase is Phase.RUNNING
    b = made.by_slot["b"][-1]
    then(made, "pass 9")
    assert isinstance(b.group.outcome, GivenUp) and b.group.outcome.why is Why.UNFIT
    converges(made)


# --- the table of operations


def test_each_operation_on_a_node_or_the_store_has_an_effect_or_leaves_a_mark() -> None:
    """A notice is given by the world, which may send an operator."""
    of_nodes = {kind for kind in Kind if kind.row.on is On.NODE and not kind.row.stays}
    assert of_nodes | {Kind.HANG} == ON_NODE.keys() | {Kind.NOTICE}
    assert ON_STORE.keys() == {kind for kind in Kind if kind.row.on is On.STORE}
    assert not [kind for kind in Kind if kind.row.stays and kind.row.on is not On.NODE]


def test_a_mark_stands_until_it_comes_or_is_taken_away() -> None:
    made = then(both_running(), "gap b", "slow b 0.1", "unstartable b")
    marks = at(made, "b").trouble.marks
    assert marks == {Kind.GAP: 1.0, Kind.SLOW: 0.1, Kind.UNSTARTABLE: 1.0}
    then(made, "slow b 0", "fail a", "pass 3")
    assert marks == {}


def test_a_standstill_is_not_forgotten_when_it_is_over() -> None:
    """Each thread has its own; that of the process holds for all of them."""
    made = then(both_running(), "pause-loop b 2", "pause-heart b 0.5", "pass 9")
    now, stalls = made.future.now, at(made, "b").stalls
    assert (now - stalls.ends[Thread.LOOP], now - stalls.ends[Thread.HEART]) == pytest.approx((7.0, 8.5))
    assert stalls.until(Thread.PROCESS, Thread.WAITER) == 0.0
    assert now - stalls.over_at == pytest.approx(7.0)
    assert at(made, "b").is_well(now - 6.9) and not at(made, "b").is_well(now - 7.1)


def test_neither_a_process_nor_a_part_of_it_has_more_than_fifteen_fields() -> None:
    parts = [each for each in vars(process).values() if isinstance(each, type) and each.__module__ == process.__name__]
    sizes = {part.__name__: len(fields(part)) for part in parts if has(part)}
    assert len(sizes) == 11
    assert {part: many for part, many in sizes.items() if many > 15} == {}
