"""Nodes of a job that are told to stop, at every point of its way: each leaves, in order, with the signal's exit code."""

from __future__ import annotations

import os
import signal

from jobs import CONF, Jobs, alive, codes, end, kill, only_in, run, slots, worlds
from leftovers import alive_with

from elastic.core.rendezvous import Status


@only_in("tcpstore")
def test_all_nodes_that_are_told_to_stop_at_once_end_at_once_and_charge_nothing(job: Jobs) -> None:
    """As a scheduler does it that takes its machines back."""
    three = job("3", "--max-restarts=1", "--nproc-per-node=2")
    agents = three.nodes("abc")
    told = run(agents, each=2)
    for agent in agents:
        agent.signal(signal.SIGTERM)
    assert codes(agent.ends() for agent in agents) == [143, 143, 143]
    assert not any(alive([worker]) for worker in told)
    assert [three.report(name)["ending"] for name in "abc"] == [{"state": "stopped", "signal": 15}] * 3
    assert [three.report(name)["restarts"] for name in "abc"] == [0, 0, 0]


@only_in("tcpstore")
def test_a_node_that_waits_for_the_others_to_come_back_leaves_alone(job: Jobs) -> None:
    both = job("2", "--max-restarts=1", "--grace=1000", conf=f"{CONF}same_program=false,")
    agents = [both.node("a")]
    both.reaches(lambda state: slots(state) == ["a"])
    stubborn = "trap '' TERM; echo up; while :; do sleep 1000; done"
    agents.append(both.node("b", program=["--no-python", "sh", "-c", stubborn]))
    (worker,) = agents[0].hears(1)
    agents[1].prints("up")
    kill(worker.pid)
    back = [Status.IN, Status.EXPECTED]
    both.reaches(lambda state: state.round == 1 and [seat.status for seat in state.seats.values()] == back)
    agents[0].signal(signal.SIGINT)
    assert agents[0].ends().code == 130
    agents[1].signal(signal.SIGTERM)
    agents[1].says("passed on")
    agents[1].signal(signal.SIGTERM)
    assert agents[1].ends().code == 143


@only_in("tcpstore")
def test_a_node_that_is_done_and_is_told_to_stop_leaves_and_the_others_finish(job: Jobs) -> None:
    elastic = job("1:2", "--last-call=1000")
    agents = elastic.nodes("ab")
    run(agents)
    agents[0].open_gate()
    elastic.reaches(lambda state: Status.DONE in [seat.status for seat in state.seats.values()])
    agents[0].signal(signal.SIGTERM)
    assert agents[0].ends().code == 143
    assert codes(end(agents[1:])) == [0]


def test_a_node_whose_store_stands_still_leaves_within_the_leave_timeout(tcpstore_job: Jobs, nothing_left: str) -> None:
    conf = "leave_timeout=1,keep_alive_interval=5,keep_alive_max_attempt=30,"  # the helper is not replaced meanwhile
    both = tcpstore_job("2", own_store=True, conf=conf)
    agents = both.nodes("ab")
    told = run(agents)
    (server,) = [process.pid for process in alive_with(nothing_left) if "store_host.py" in process.command]
    os.kill(server, signal.SIGSTOP)
    try:
        agents[1].signal(signal.SIGTERM)
        assert agents[1].ends().code == 143
        assert not alive(told[1:])
        assert alive(told[:1])
    finally:
        os.kill(server, signal.SIGCONT)
    agents[0].signal(signal.SIGTERM)
    assert agents[0].ends().code == 143
    assert worlds(told) == {(0, "restart 0 of 2 workers")}
