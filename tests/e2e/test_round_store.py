"""The store of a round, where the workers meet: the agent that serves the job's store serves it too, if it is the first."""

from __future__ import annotations

import os
import signal

import pytest
from jobs import Jobs, codes, end, in_each, kill, run, worlds
from launches import PROGRAMS, Told
from leftovers import alive_with
from processes import dies

from elastic.adapters.store.tcpstore.wire import Address, WireClient

LATE = PROGRAMS / "late_client.py"
FRESH = PROGRAMS / "fresh_store.py"
PLACE = PROGRAMS / "meeting_place.py"


def met(told: list[Told]) -> tuple[str, str]:
    """Where the ranks of a round meet, and who serves: "True" for an agent. All ranks were told one thing."""
    ((_, words),) = worlds(told)
    *_, port, by_agent = words.split()
    return port, by_agent


def marked_late(place: str) -> int:
    """Count as one more worker of rank 0 in the store there, as a client that comes late. Return the count."""
    host, _, port = place.rpartition(":")
    with WireClient(Address(host, int(port)), 60.0, 1_000) as client:
        client.greet()
        return client.add("workers of rank 0", 1)


def test_a_rank_0_that_ends_first_takes_no_store_along(tcpstore_job: Jobs) -> None:
    """`new_group` and a late client found none."""
    both = tcpstore_job("2", own_store=True)
    agents = both.nodes("ab", program=(LATE,))
    told = run(agents)
    assert met(told)[1] == "True"
    assert dies(told[0].pid)
    agents[1].open_gate()
    (late,) = agents[1].hears(1)
    assert late.words == "late: value"
    assert codes(agent.ends() for agent in agents) == [0, 0]


def test_each_round_has_a_store_and_a_port_of_its_own_and_finds_nothing_that_the_last_one_wrote(
    tcpstore_job: Jobs,
) -> None:
    """torch meets there over rounds in test_nodes_torch.py. In the later rounds rank 0 ends first, and a late client still
    finds what it wrote."""
    both = tcpstore_job("2", "--max-restarts=2", own_store=True)
    agents = both.nodes("ab", program=(FRESH,))
    places = []
    for round in range(3):
        told = run(agents)
        places.append(met(told))
        assert {(each.round, each.words.partition(" of")[0]) for each in told} == {(round, "found nothing")}
        if round == 0:
            kill(told[0].pid)
            continue
        agents[0].open_gate()
        assert dies(told[0].pid)
        assert marked_late(places[-1][0]) == 2
        if round == 1:
            kill(told[1].pid)
    assert codes(end(agents)) == [0, 0]
    assert {by_agent for _, by_agent in places} == {"True"}
    assert len({port for port, _ in places}) == 3


@pytest.mark.parametrize("first", ["0", pytest.param("1", marks=pytest.mark.long)])
def test_who_serves_is_told_by_the_first_node_to_all(tcpstore_job: Jobs, first: str) -> None:
    """The agent that serves the job's store may not be the first one. Then rank 0 serves, as where no agent serves."""
    both = tcpstore_job("2", own_store=True)
    second = "1" if first == "0" else "0"
    agents = [
        both.node("a", f"--node-rank={first}", program=(PLACE,)),
        both.node("b", f"--node-rank={second}", program=(PLACE,)),
    ]
    assert met(run(agents))[1] == str(first == "0")
    for agent in agents:
        agent.signal(signal.SIGTERM)
    assert codes(agent.ends() for agent in agents) == [143, 143]


@pytest.mark.parametrize(("job", "options"), in_each(("--restart-scope=rank",), ()), indirect=["job"])
def test_rank_0_serves_where_workers_start_again_alone_and_where_no_agent_serves(
    job: Jobs, options: tuple[str, ...]
) -> None:
    """Ranks that are told so meet in test_inprocess_torch.py and test_nodes_torch.py. No agent serves an etcd, so workers
    that start again alone change nothing there."""
    both = job("2", *options, own_store=bool(options))
    agents = both.nodes("ab", program=(PLACE,))
    assert met(run(agents))[1] == "False"
    for agent in agents:
        agent.signal(signal.SIGTERM)
    assert codes(agent.ends() for agent in agents) == [143, 143]


def helper(token: str) -> int:
    (pid,) = [each.pid for each in alive_with(token) if "store_host.py" in each.command]
    return pid


def test_a_round_whose_store_dies_runs_on_and_a_late_client_finds_an_empty_one(
    tcpstore_job: Jobs, nothing_left: str
) -> None:
    """No worker needs it, so there is no failure, and no restart is spent: none is allowed."""
    both = tcpstore_job("2", "--max-restarts=0", own_store=True)
    agents = both.nodes("ab", program=(FRESH,))
    told = run(agents)
    os.kill(helper(nothing_left), signal.SIGKILL)
    agents[0].says("the store's helper was killed by SIGKILL")
    assert marked_late(met(told)[0]) == 1
    assert codes(end(agents)) == [0, 0]
    assert [both.report(name)["restarts"] for name in "ab"] == [0, 0]
