"""Links between agents on hosts of their own, in a network that refuses, drops and sends garbage: no living node is evicted
by a link, but one whose network refuses connections in its name, and that one once."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import define
from jobs import STAY, codes, end, lose, run, worlds
from launches import Launch, Launcher
from netlab import Host, Network, _iptables, network
from processes import TIMEOUT_S

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.port import OutOfReach
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address
from elastic.core.rendezvous import RendezvousState

PORT = 29400
CONF = "peer_links=true,keep_alive_interval=1,keep_alive_max_attempt=60,upscale_after=0.2"
"""A node that is silent is dead after a minute."""


@define(eq=False)
class Cluster:
    """Agents by name, each on the host of its name; the first one serves the store."""

    network: Network
    launch: Launcher
    agents: dict[str, Launch]

    def start(self, names: str) -> None:
        for name in names:
            host = self.network.host(name)
            self.agents[name] = self.launch(
                *("--nnodes=2:3", "--last-call=1000", "--rdzv-id=links", f"--node-id={name}"),
                *(f"--rdzv-endpoint={self.network.hosts['a'].address}:{PORT}", f"--local-addr={host.address}"),
                *(f"--rdzv-conf={CONF},is_host={'true' if name == 'a' else 'false'}", STAY),
                under=host.under,
            )
            self.reaches(lambda state, name=name: name in slots(state))  # type: ignore[misc]
        run(list(self.agents.values()))

    def host(self, name: str) -> Host:
        return self.network.hosts[name]

    def reaches(self, claim: Callable[[RendezvousState], bool]) -> RendezvousState:
        """Wait until this holds for the register."""
        ends_at = time.monotonic() + TIMEOUT_S
        backend = TCPStoreBackend(Address(self.network.hosts["a"].address, PORT), "links", SystemClock())
        try:
            while time.monotonic() < ends_at:
                state = answer(backend)
                if state and claim(state):
                    return state
            raise AssertionError("waited in vain")
        finally:
            backend.close()

    def link(self, name: str) -> int:
        """Return the port of this node's links, by its seat."""
        state = self.reaches(lambda state: name in slots(state))
        return next(seat.profile.link_port for node, seat in state.seats.items() if node.slot == name)

    def has_told(self, says: str, about: str) -> None:
        """Wait until a trace shows that a link has told this of a node."""
        ends_at = time.monotonic() + TIMEOUT_S
        while (says, about) not in told(self.launch.traces):
            assert time.monotonic() < ends_at, f"no link says {says} of {about}"
            time.sleep(0.05)


def answer(backend: TCPStoreBackend) -> RendezvousState | None:
    try:
        return backend.get().state
    except OutOfReach:
        time.sleep(0.05)
        return None


def slots(state: RendezvousState) -> list[str]:
    return [node.slot for node in state.seats]


def told(traces: Path) -> set[tuple[str, str]]:
    """Return what links have told, and of which slot, by all traces."""
    found = set()
    for file in traces.iterdir():
        for line in file.read_bytes().splitlines():
            fed = json.loads(line).get("fed") if b'"linked"' in line else None
            if isinstance(fed, dict) and fed.get("is") == "linked":
                found.add((fed["says"], fed["node"].partition("#")[0]))
    return found


@pytest.fixture
def cluster(launch: Launcher) -> Iterator[Cluster]:
    with network() as joined:
        yield Cluster(joined, launch, {})


def test_a_network_that_refuses_in_the_name_of_a_living_node_costs_one_round_once(cluster: Cluster) -> None:
    cluster.start("abc")
    port = cluster.link("b")
    rule = ("-p", "tcp", "--dport", str(port), "-j", "REJECT", "--reject-with", "tcp-reset")
    _iptables(cluster.host("b"), "-A", "INPUT", *rule)
    # b may be back before the others' round is complete, or end it as a newcomer
    state = cluster.reaches(lambda state: state.complete and state.round >= 1 and len(state.participants) == 3)
    assert (state.failures, state.round <= 2, cluster.link("b")) == (0, True, 0)
    lose(cluster.agents["c"])
    cluster.reaches(lambda now: now.complete and now.round == state.round + 1 and sorted(slots(now)) == ["a", "b"])
    stay = [cluster.agents["a"], cluster.agents["b"]]
    assert codes(end(stay)) == [0, 0]


def test_a_link_that_breaks_and_cannot_be_made_again_evicts_nobody(cluster: Cluster) -> None:
    """The network drops every new connection to b, and all else goes on."""
    cluster.start("abc")
    to_b = ("-A", "INPUT", "-p", "tcp", "--dport", str(cluster.link("b")))
    _iptables(cluster.host("b"), *to_b, "--syn", "-j", "DROP")
    _iptables(cluster.host("b"), *to_b, "!", "--syn", "-j", "REJECT", "--reject-with", "tcp-reset")
    cluster.has_told("suspect", "b")
    lose(cluster.agents["c"])
    state = cluster.reaches(lambda state: state.complete and state.round == 1)
    assert sorted(slots(state)) == ["a", "b"]
    assert codes(end([cluster.agents["a"], cluster.agents["b"]])) == [0, 0]


def test_garbage_and_many_idle_connections_at_the_port_harm_nobody(cluster: Cluster) -> None:
    cluster.start("abc")
    port, address = cluster.link("b"), cluster.host("b").address
    idle = []
    try:
        for count in range(300):
            made = socket.socket()
            made.setblocking(False)
            made.connect_ex((address, port))
            idle.append(made)
            if count % 3 == 0:
                with socket.create_connection((address, port), timeout=TIMEOUT_S) as garbage:
                    garbage.sendall(b"\x16\x03\x01" * 500)
        lose(cluster.agents["c"])
        stay = [cluster.agents["a"], cluster.agents["b"]]
        assert worlds(run(stay)) == {(1, "restart 0 of 2 workers")}
        lose(cluster.agents["b"])
        cluster.reaches(lambda state: slots(state) == ["a"])
    finally:
        for made in idle:
            made.close()
