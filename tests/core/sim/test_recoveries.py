"""How long a world takes to rest after what befell it: L9 finds one that takes too long, L10 dead seats."""

from __future__ import annotations

import pytest
from simulated import TWO, at, both_running, hangs, then, world
from worlds import node

from elastic.core.group import Phase
from elastic.core.rendezvous import Violation
from elastic.core.sim.kinds import Kind
from elastic.core.sim.process import Process
from elastic.core.sim.recoveries import ALWAYS, PARTS, Recovery, bound, bound_of_the_dead, lengths
from elastic.core.sim.run import tell
from elastic.core.sim.simulation import World
from elastic.core.sim.story import QUICK, parsed

THREE = ("start a", "start b", "start c", "pass 1")
OF_THREE = "world nodes=3 min=2 max=3"


def last(made: World) -> Recovery:
    return made.witness.recoveries.over[-1]


def kinds(made: World) -> list[str]:
    return sorted(kind.value for kind in last(made).kinds)


def test_a_recovery_lasts_from_the_last_fault_to_rest() -> None:
    made = then(both_running(), "fail a", "pass 5")
    assert kinds(made) == ["fail"]
    assert 0.0 < last(made).took_s < 0.1
    assert last(made).may_s == bound(lengths(made.setting), {Kind.FAIL})
    many = len(made.witness.recoveries.over)
    assert len(then(made, "pass 50").witness.recoveries.over) == many


def test_a_fault_that_lasts_counts_from_its_end() -> None:
    made = then(both_running(), "cut a 8", "pass 5", "fail b", "pass 60")
    ends = [each for each in made.witness.recoveries.over if Kind.CUT in each.kinds]
    assert [sorted(kind.value for kind in each.kinds) for each in ends] == [["cut", "fail"]]
    assert ends[0].took_s < 6.0
    assert ends[0].at > 9.0


def test_a_world_that_needed_no_recovery_took_no_time() -> None:
    made = then(both_running(), "cut a 0.5", "pass 5")
    assert (kinds(made), last(made).took_s) == (["cut"], 0.0)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("hang a", "hang"),
        ("slow a 0.1", "slow"),
        ("late-write a 1", "late-write"),
        ("late-reply a 1", "late-reply"),
        ("lose-reply a", "lose-reply"),
        ("gap a", "gap"),
        ("unstartable a", "unstartable"),
    ],
)
def test_a_fault_that_waits_for_its_time_is_counted_where_it_comes(fault: str, kind: str) -> None:
    made = then(world(*THREE, fault, setting=OF_THREE), "fail b")
    assert {kind, "fail"} <= {each.value for each in made.witness.recoveries.kinds}


def test_a_world_that_moves_by_itself_is_an_episode_too() -> None:
    made = world(*TWO, "succeed a", "pass 9", setting="world nodes=2 min=1 max=2 barrier=2")
    assert kinds(made) == ["succeed"]
    made = then(made, "pass 1")
    then(made, "succeed b", "pass 9")
    assert not list(made.living())


def test_who_is_out_of_reach_or_too_few_are_not_calm() -> None:
    made = world(*TWO, "slow a 1.5", "crash b", "pass 50", setting="world nodes=2 min=1 max=2")
    assert made.witness.recoveries.calm_at == pytest.approx(made.future.now, abs=9.0)
    few = world("start a", "pass 40", setting="world nodes=2 min=2 max=2")
    few.witness.recoveries.moved()
    assert few.witness.recoveries.calm_at == few.future.now


# --- L9


def test_L9_a_world_that_does_not_rest_in_time_is_found() -> None:
    made = both_running()
    hangs(at(made, "a"))
    then(made, "fail b", f"pass {bound(lengths(made.setting), {Kind.FAIL}) - 0.5}")
    with pytest.raises(Violation, match=r"L9: no rest .* s after fail, at most .* s: round 1 open"):
        then(made, "pass 1")


def test_L9_a_world_without_a_register_is_found_too() -> None:
    made = both_running()
    for slot in "ab":
        hangs(at(made, slot))
    made.store.empties()
    with pytest.raises(Violation, match=r"L9: no rest .* s after no fault, at most .* s: no register"):
        then(made, "pass 0", "pass 9", "pass 0")


def test_the_bound_of_two_faults_is_that_of_the_parts_of_both() -> None:
    of = lengths(QUICK)
    assert bound(of, ()) == of["messages"] + of["ask"]
    assert bound(of, {Kind.FAIL}) == bound(of, ()) + of["stop"]
    assert bound(of, {Kind.FAIL, Kind.CRASH}) == bound(of, {Kind.CRASH})
    assert bound(of, {Kind.FAIL, Kind.GAP}) == pytest.approx(bound(of, {Kind.FAIL}) + of["look"])
    unanswered = {Kind.LOSE_REPLY, Kind.LATE_WRITE, Kind.LATE_REPLY}
    assert bound(of, unanswered) == pytest.approx(bound(of, ()) + 3 * of["again"])
    assert {*ALWAYS, *(part for kind in Kind for part in kind.row.recovery)} == PARTS.keys()


# --- L10


def watches_nobody(process: Process) -> None:
    """It hears no heartbeats from now on, and nobody knows."""
    hangs(process)


def test_the_dead_lose_their_seats_in_time() -> None:
    made = world(*THREE, "crash a", "pass 0.5", "crash b", setting="world nodes=3 min=1 max=3")
    then(made, f"pass {bound_of_the_dead(made.setting)}", "pass 1")
    register = made.store.register
    assert register is not None
    assert [node.slot for node in register.seats] == ["c"]
    assert made.witness.judge.strength.armed["L10"] == 2


def test_L10_a_dead_node_that_keeps_its_seat_is_found() -> None:
    made = world(*THREE, setting=OF_THREE)
    for slot in "bc":
        watches_nobody(at(made, slot))
    then(made, "crash a", f"pass {bound_of_the_dead(made.setting) - 1}")
    with pytest.raises(Violation, match=r"L10: a#1 died .* s ago: round 0 complete \[a:in b:in c:in\]"):
        then(made, "pass 2")


@pytest.mark.parametrize("fault", ["outage 9", "cut b 9", "gap c", "older 0.1"])
def test_L10_asks_nothing_while_somebody_could_not_hear(fault: str) -> None:
    made = world(*THREE, setting=OF_THREE)
    for slot in "bc":
        watches_nobody(at(made, slot))
    then(made, "crash a", "pass 9", fault, f"pass {bound_of_the_dead(made.setting) - 5}")
    assert made.witness.recoveries.heard_at > 9.0


def test_L10_asks_for_a_dead_node_s_seat_beside_a_drained_one_that_is_at_work() -> None:
    made = world(*THREE, setting=OF_THREE)
    for slot in "bc":
        watches_nobody(at(made, slot))
    with pytest.raises(Violation, match=r"L10: a#1 died"):
        then(made, "hang b", "notice b 60", "crash a", f"pass {bound_of_the_dead(made.setting) + 1}")


def test_L10_counts_from_when_somebody_is_there_to_notice() -> None:
    setting = "world helping=1"
    newcomer = world("start a", "start b", "slow b 0.6", "pass 1", "crash a", "pass 5", setting=setting)
    assert newcomer.witness.recoveries.heard_at == pytest.approx(4.9, abs=0.1)
    slow = world(*THREE, "slow b 0.6", "start a", "pass 1", "crash a", "pass 8", setting=setting)
    assert slow.witness.recoveries.heard_at == pytest.approx(6.4, abs=0.1)


def test_L10_a_seat_that_was_kept_for_too_long_is_found_when_it_is_taken() -> None:
    made = world(*THREE, "crash c", "pass 1", setting=OF_THREE)
    register = made.store.register
    assert register is not None and node("c") in register.seats
    made.witness.recoveries.dead_s = 3.0  # less than a TTL
    with pytest.raises(Violation, match=r"L10: c#1 died .* s ago: round 1 open \[a:expected b:expected\]"):
        then(made, "pass 9")


def test_L10_asks_nothing_while_nobody_is_there_to_notice() -> None:
    made = world(*TWO, "crash a", "crash b", "pass 40", "pass 40", setting="world nodes=2 min=1 max=2")
    strength = made.witness.judge.strength
    assert (strength.armed["L10"], strength.excused["L10"]) == (2, 1)
    assert {process.group.phase for process in made.by_node.values()} == {Phase.RUNNING}


@pytest.mark.parametrize(
    ("setting", "story"),
    [
        ("nodes=2 max=2 seed=2 links=1 reserves=1", "start a,start b,pass 1,refuse a 1,pass 30"),
        ("nodes=4 max=4 seed=9 reserves=2", "start a,start b,start c,start d,start c,pass 30"),
    ],
    ids=["evicted", "replaced"],
)
def test_a_world_rests_while_a_reserve_that_lost_its_seat_waits_for_the_end_of_the_round(
    setting: str, story: str
) -> None:
    assert tell(parsed([f"world {setting}", *story.split(",")])).violation is None


def test_a_world_that_moves_by_itself_after_a_long_rest_has_recovered_from_what_was_before() -> None:
    """The last worker of b heard of an end during an outage, and b waits 30 s for the word of that."""
    made = world("start b", "pass 6.3", "outage 1", setting="world nodes=2 max=2 alone=1 codes=1")
    b = at(made, "b")
    made.agents.workers.dies(b, 0, 79, b.workers[0])
    before = len(made.witness.recoveries.over)
    then(made, "pass 34")
    over = made.witness.recoveries.over[before:]
    assert [sorted(kind.value for kind in each.kinds) for each in over] == [["outage"], ["fail"]]
    assert b.group.phase is Phase.RUNNING
