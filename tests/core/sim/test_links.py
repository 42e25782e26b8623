"""Links in the simulated world: what befalls them, and that L8 finds a living node that evidence evicts."""

from __future__ import annotations

import pytest
from simulated import at, then, world

from elastic.core.rendezvous import Linked, Violation
from elastic.core.rendezvous.links import Says
from elastic.core.sim.kinds import Kind
from elastic.core.sim.run import tell
from elastic.core.sim.simulation import World
from elastic.core.sim.story import parsed

LINKED = "world nodes=3 min=2 max=3 last_call=0.5 links=1"


def three(setting: str = LINKED) -> World:
    """Return a world in which a, b and c run and watch each other."""
    return world("start a", "start b", "start c", "pass 2.5", setting=setting)


def lost(made: World) -> int:
    return made.counts["end by lost"]


def test_a_node_that_dies_is_evicted_within_a_tenth_of_a_second() -> None:
    made = then(three(), "crash b", "pass 0.1")
    assert (lost(made), made.counts["evidence: refused twice"]) == (1, 2)


def test_without_links_silence_decides() -> None:
    made = then(three("world nodes=3 min=2 max=3 last_call=0.5"), "crash b", "pass 3")
    assert (lost(made), made.done[Kind.CRASH], lost(then(made, "pass 4"))) == (0, 1, 1)


def test_links_that_are_not_there_do_not_break() -> None:
    made = then(three("world nodes=3 min=2 max=3 last_call=0.5"), "refuse b 1", "unlink b", "mute b 1")
    assert not {Kind.REFUSE, Kind.UNLINK, Kind.MUTE} & made.done.keys()


def test_an_agent_that_is_killed_is_evicted_when_its_workers_are_dead() -> None:
    made = then(three(), "kill b 0.8", "pass 0.7")
    assert lost(made) == 0
    assert lost(then(made, "pass 0.2")) == 1


def test_a_broken_link_is_made_again() -> None:
    made = then(three(), "unlink b", "pass 8")
    assert (lost(made), made.counts["suspected, and answers"]) == (0, 4)


def test_a_node_that_stands_still_is_not_evicted_before_a_ttl() -> None:
    made = then(three(), "pause b 4", "unlink b", "pass 1", "unlink b", "pass 8")
    assert (lost(made), made.counts["suspected, and answers"]) == (0, 4)


def test_a_network_that_refuses_in_the_name_of_a_node_costs_it_one_round_once() -> None:
    made = then(three(), "refuse b 1", "pass 5")
    assert (lost(made), made.counts["evicted on evidence, and lives"]) == (1, 1)
    made = then(made, "refuse b 1", "pass 5")
    assert (lost(made), made.counts["an evicted live node returns"]) == (1, 1)


def test_a_link_that_carries_nothing_says_nothing() -> None:
    made = then(three(), "mute b 4", "pass 1", "crash b", "pass 2.9")
    assert lost(made) == 0
    assert lost(then(made, "pass 0.3")) == 1


def test_who_hears_late_that_a_link_has_ended_watches_that_node_no_longer() -> None:
    made = then(three(), "mute c 3", "crash b", "pass 4")
    assert (lost(made), made.counts["evidence: refused twice"]) == (1, 1)


def test_a_node_that_dies_while_the_network_refuses_in_its_name_is_lost_once() -> None:
    assert lost(then(three(), "refuse b 1", "crash b", "pass 3")) == 1


def test_a_connection_to_a_link_that_carries_nothing_fails() -> None:
    made = then(three(), "unlink b", "mute b 1", "pass 9")
    assert (lost(made), made.counts["suspected, and answers"]) == (0, 4)


def test_the_next_incarnation_at_the_port_is_evidence() -> None:
    made = then(three(), "mute a 1", "mute c 1", "crash b", "cut a 3", "cut c 3", "start b", "cut b 2", "pass 1.5")
    assert made.counts["evidence: another incarnation answers"] == 2


def test_who_leaves_says_goodbye() -> None:
    made = then(three(), "drain b", "pass 10")
    assert made.counts["evidence: refused twice"] == 0


def test_a_port_that_another_program_has_says_nothing() -> None:
    made = three(f"{LINKED} seed=1")
    b = at(made, "b")
    b.trouble.port_taken = True
    made = then(made, "crash b", "pass 2")
    assert (lost(made), made.counts["evidence: refused twice"]) == (0, 0)
    assert lost(then(made, "pass 5")) == 1


def test_a_node_that_lives_and_is_evicted_on_evidence_is_found() -> None:
    made = three()
    a, b = at(made, "a"), at(made, "b").node
    now = a.clock.shows(made.future.now)
    for says in (Says.SUSPECT, Says.GONE):
        made.agents.loops.hears(a, Linked(b, says, now))
    with pytest.raises(Violation, match="L8: b is thrown out on evidence, and lives"):
        then(made, "pass 1")


def test_evidence_is_judged_as_it_was_when_the_write_was_decided() -> None:
    """Found by the simulator (L8): the write that evicts a refused node landed eight seconds later."""
    story = "world nodes=2 max=1 links=1; start a; start b; pass 1; late-write a 8; refuse b 1; pass 10"
    assert tell(parsed(story.split("; "))).world.counts["evicted on evidence, and lives"] == 1


def test_a_node_that_evidence_evicts_a_second_time_is_found() -> None:
    made = three()
    made.witness.accused.add(at(made, "b").node)
    with pytest.raises(Violation, match="L8: b is thrown out on evidence a second time"):
        then(made, "refuse b 1", "pass 1")


def test_a_setting_of_links_is_0_or_1() -> None:
    with pytest.raises(ValueError, match="links"):
        parsed(["world links=2"])


def test_a_reserve_that_a_network_costs_its_seat_is_told_when_the_round_ends() -> None:
    """Its loss ends no round, so its workers run until the next one begins, and that does not wait for it."""
    setting = "world nodes=2 max=2 seed=1 fence=3 links=1 reserves=2"
    story = [setting, "start a", "pass 2", "start b", "pause-heart a 5", "pass 0.1", "refuse b 1", "pass 1"]
    run = tell(parsed(story))
    assert (run.violation, run.world.counts["evicted on evidence, and lives"]) == (None, 1)
