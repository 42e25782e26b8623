"""Hosts that are not open to each other: a firewall with few ports, and an address that is translated."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from launches import PROGRAMS, Launch, Launcher
from netlab import Host, Network, network

PORT = 29400
OPEN = range(PORT, PORT + 10)
MEETS = PROGRAMS / "meets.py"


@pytest.fixture
def lab() -> Iterator[Network]:
    with network() as made:
        yield made


def open_hosts(lab: Network) -> tuple[Host, Host]:
    """Two hosts that let others come to ten ports alone."""
    hosts = lab.host("a"), lab.host("b")
    for host in hosts:
        lab.opens(host, OPEN)
    return hosts


def ports(agents: list[Launch]) -> set[int]:
    """Where the ranks of the next round have met."""
    return {int(word.words) for agent in agents for word in agent.hears(1)}


def test_what_listens_for_other_nodes_has_ports_that_are_open_and_the_next_round_others(
    lab: Network, launch: Launcher
) -> None:
    """Also after more rounds than there are ports: the kernel remembers a minute long who was connected to each. And a link
    tells of a death, of which the heartbeats would tell after ten minutes."""
    a, b = open_hosts(lab)
    conf = f"ports={OPEN[0]}-{OPEN[-1]},keep_alive_max_attempt=600"
    meet = ("--nnodes=1:2", "--last-call=1000", f"--rdzv-endpoint={a.address}:{PORT}", "--max-restarts=6")
    agents = [
        launch(f"--node-id={host.name}", *meet, f"--rdzv-conf={conf},is_host={is_host}", MEETS, "6", under=host.under)
        for host, is_host in ((a, "true"), (b, "false"))
    ]
    met = [ports(agents) for _ in range(7)]
    assert all(len(each) == 1 and each <= {*OPEN[1:]} for each in met)
    assert all(before != after for before, after in pairwise(met))
    agents[1].process.kill()
    assert ports(agents[:1]) <= {*OPEN[1:]}
    agents[0].open_gate()
    assert agents[0].ends().code == 0


def test_the_ranks_of_a_wrapped_function_meet_at_ports_that_are_open(lab: Network, launch: Launcher) -> None:
    a, b = open_hosts(lab)
    meet = ("--nnodes=2", f"--rdzv-endpoint={a.address}:{PORT}", f"--rdzv-conf=ports={OPEN[0]}-{OPEN[-1]}")
    agents = [launch("--restart-scope=rank", *meet, MEETS, "3", "wrapped", under=host.under) for host in (a, b)]
    met = [ports(agents) for _ in range(4)]
    assert all(len(each) == 1 and each <= {*OPEN[1:]} for each in met)
    assert all(before != after for before, after in pairwise(met))
    for agent in agents:
        agent.open_gate()
    assert [agent.ends().code for agent in agents] == [0, 0]


@pytest.mark.long
def test_static_nodes_meet_behind_a_firewall_that_is_open_from_the_master_s_port_on(
    lab: Network, launch: Launcher
) -> None:
    """As under torchrun, whose workers share the master's port with its agents."""
    a, b = open_hosts(lab)
    meet = ("--nnodes=2", f"--master-addr={a.address}", f"--master-port={PORT}", "--max-restarts=3")
    agents = [launch(*meet, f"--node-rank={rank}", MEETS, "3", under=host.under) for rank, host in enumerate((a, b))]
    assert all(ports(agents) <= {*OPEN[1:]} for _ in range(4))
    for agent in agents:
        agent.open_gate()
    assert [agent.ends().code for agent in agents] == [0, 0]


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.long)])
def test_a_node_with_few_ports_has_links_and_a_port_for_the_next_round_or_says_so(
    lab: Network, launch: Launcher, count: int
) -> None:
    """Beside the store's: a row of three took all."""
    host = lab.host("a")
    meet = ("--nnodes=1:2", "--last-call=0", f"--rdzv-endpoint={host.address}:{PORT}", "--max-restarts=3")
    agent = launch(*meet, f"--rdzv-conf=ports={PORT}-{PORT + count}", MEETS, "2", under=host.under)
    met = [ports([agent]) for _ in range(3)]
    agent.open_gate()
    ended = agent.ends()
    assert ended.code == 0
    assert all(before != after for before, after in pairwise(met)) is (count == 3)
    said = f"no links, heartbeats tell of deaths here: of the ports {PORT + 1}, none is free on this host"
    assert (said in ended.err) is (count == 1)


def test_a_node_that_may_have_no_port_says_so(launch: Launcher, port: int) -> None:
    """The test has the port."""
    ended = launch("--standalone", f"--rdzv-conf=ports={port}", PROGRAMS / "stay.py").ends()
    assert ended.code == 2
    assert f"of the ports {port}, none is free on this host; open more of them" in ended.err


def test_a_store_behind_an_address_that_no_node_has_is_served_by_the_node_that_is_told_so(
    lab: Network, launch: Launcher
) -> None:
    """As behind a service. Nobody served it, and both waited for ten minutes without a hint. The node that serves it does
    not reach that address itself, as in most networks that translate."""
    a, b = lab.host("a"), lab.host("b")
    service = "10.99.99.9"
    for host in (a, b):
        lab.translates(host, service, a)
    meet = ("--nnodes=2", f"--rdzv-endpoint={service}:{PORT}", "--rdzv-id=service", MEETS, "0")
    waiting = launch("--rdzv-conf=keep_alive_interval=1", *meet, under=b.under)
    waiting.says(f"if no node here has the address {service}: on the node behind it write --rdzv-conf=is_host=true")
    serving = launch("--rdzv-conf=is_host=true", *meet, under=a.under)
    serving.says(f"this node serves store {service}:{PORT}, which no interface here has as an address (is_host=true)")
    agents = [serving, waiting]
    assert len(ports(agents)) == 1
    for agent in agents:
        agent.open_gate()
    assert [agent.ends().code for agent in agents] == [0, 0]


def test_only_one_node_serves_the_store_behind_such_an_address(lab: Network, launch: Launcher) -> None:
    a, b = lab.host("a"), lab.host("b")
    service = "10.99.99.9"
    for host in (a, b):
        lab.translates(host, service, a)
    meet = ("--nnodes=1:2", "--last-call=0", f"--rdzv-endpoint={service}:{PORT}", "--rdzv-conf=is_host=true")
    first = launch(*meet, PROGRAMS / "stay.py", under=a.under)
    first.hears(1)
    ended = launch(*meet, PROGRAMS / "stay.py", under=b.under).ends()
    assert ended.code == 2
    assert "a store answers there, and the address is none of this host's; write is_host=false" in ended.err
    first.open_gate()
    assert first.ends().code == 0
