"""The host of the store dies, or the store alone: which failures are charged, that none is forgotten, and who waits on."""

from __future__ import annotations

import signal

import pytest
from jobs import CONF, PATIENT, Jobs, codes, end, kill, lose, run, worlds
from launches import PROGRAMS
from processes import dies, is_alive
from served import served


@pytest.mark.parametrize("nnodes", ["2", "1:2"])
def test_a_failure_that_the_death_of_the_stores_host_explains_costs_no_restart(tcpstore_job: Jobs, nnodes: str) -> None:
    """No restart is allowed, and the store comes back empty."""
    both = tcpstore_job(nnodes, "--max-restarts=0", "--last-call=1000", own_store=True, conf=PATIENT)
    agents = both.nodes("ab")
    told = run(agents)
    lose(agents[0])
    kill(told[1].pid)  # as gloo does when a peer is gone
    agents[1].says("failed")
    both.serves_anew()
    agents[0] = both.node("a")
    assert worlds(run(agents)) == {(1, "restart 0 of 2 workers")}
    assert codes(end(agents)) == [0, 0]
    assert [both.report(name)["restarts"] for name in "ab"] == [0, 0]


def test_a_failure_that_nobody_recorded_because_the_store_was_away_is_in_every_report(tcpstore_job: Jobs) -> None:
    """Nobody has died, so it is charged."""
    both = tcpstore_job("2", "--max-restarts=0", conf=PATIENT)
    with served() as store:
        both.store = store.address
        agents = both.nodes("ab")
        told = run(agents)
        store.closes()
        kill(told[1].pid)
        agents[1].says("failed")
        store.serves()
        assert codes(agent.ends() for agent in agents) == [1, 1]
    failures = [[each["rank"] for each in both.report(name)["failures"]] for name in "ab"]
    assert failures == [[1], [1]]


def test_a_store_that_has_forgotten_a_failure_is_given_it_back(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("2", "--max-restarts=1", conf=PATIENT)
    with served() as store:
        both.store = store.address
        agents = both.nodes("ab")
        kill(run(agents)[1].pid)
        told = run(agents)
        assert worlds(told) == {(1, "restart 1 of 2 workers")}
        store.is_lost()
        both.reaches(lambda state: state.life.epoch == 2)
        kill(told[0].pid)
        assert codes(agent.ends() for agent in agents) == [1, 1]
    failures = [[(each["round"], each["rank"]) for each in both.report(name)["failures"]] for name in "ab"]
    assert failures == [[(0, 1), (1, 0)]] * 2


SPINS = (PROGRAMS / "spins.py", "all")


def impatient(join_timeout: float) -> str:
    return f"--rdzv-conf={CONF}is_host=false,join_timeout={join_timeout}"


def test_a_node_whose_store_and_peers_are_dead_ends_when_its_workers_stand_still(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("2", own_store=True)
    agents = [*both.nodes("a"), both.node("b", impatient(4))]
    run(agents)
    lose(agents[0])
    ended = agents[1].ends()
    assert ended.code == 3
    assert f"store {both.store} did not answer for 4 s (join_timeout), the other nodes" in ended.err
    assert "of round 0 are dead (a), and no worker here has made progress" in ended.err


def test_the_last_node_of_a_large_world_ends_when_all_others_and_the_store_are_dead(tcpstore_job: Jobs) -> None:
    """A node keeps links to three others; those move on from the dead."""
    six = tcpstore_job("6", own_store=True)
    agents = [*six.nodes("abcde"), six.node("f", impatient(6))]
    run(agents)
    for agent in agents[:5]:
        lose(agent)
    ended = agents[5].ends()
    assert ended.code == 3
    assert "of round 0 are dead (a, b, c, d, e), and no worker here has made progress" in ended.err


def test_a_node_whose_store_and_peers_are_dead_is_left_alone_while_its_workers_make_progress(
    tcpstore_job: Jobs,
) -> None:
    both = tcpstore_job("2", own_store=True)
    agents = [*both.nodes("a", program=SPINS), both.node("b", impatient(3), program=SPINS)]
    told = run(agents)
    lose(agents[0])
    agents[1].says(f"store {both.store} out of reach for ")
    assert not agents[1].says_within("gave up", 9.0)
    assert is_alive(told[1].pid)
    agents[1].signal(signal.SIGTERM)
    assert agents[1].ends().code == 143


def test_a_rank_that_hangs_is_ended_though_the_other_node_is_dead_and_the_store_is_gone(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("2", "--hang-timeout=2", "--on-hang=restart", own_store=True)
    agents = [*both.nodes("a", program=SPINS[:1]), both.node("b", impatient(60), program=SPINS[:1])]
    told = run(agents)
    lose(agents[0])
    assert dies(told[1].pid)
    agents[1].says("hang: no rank made progress")
    agents[1].signal(signal.SIGTERM)
    assert agents[1].ends().code == 143
