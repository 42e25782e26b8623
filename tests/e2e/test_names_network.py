"""Names on hosts of their own: one that leads to several hosts, one that is known late, one that leads to the loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from launches import PROGRAMS, Launch, Launcher
from netlab import Host, Network, network

PORT = 29400


@pytest.fixture
def lab() -> Iterator[Network]:
    with network() as made:
        yield made


def shown(folder: Path, rank: int) -> dict[str, Any]:
    """The environment of a worker of the first round. Each node has a folder."""
    found: dict[str, Any] = json.loads((folder / f"0.{rank}.json").read_text())["environment"]
    return found


def test_of_a_name_of_several_hosts_each_does_not_serve_a_store_of_its_own(
    lab: Network, launch: Launcher, tmp_path: Path
) -> None:
    """A headless service leads to all its pods. With --nnodes=1:2 each was rank 0 of a job of its own, and all succeeded."""
    hosts = [lab.host("a"), lab.host("b")]
    for host in hosts:
        lab.resolves(host, *((each.address, "svc") for each in hosts))
        (tmp_path / host.name).mkdir()

    def started(host: Host, *options: str) -> Launch:
        to_meet = ("--nnodes=2", f"--rdzv-endpoint=svc:{PORT}", "--rdzv-id=svc", *options)
        return launch(*to_meet, PROGRAMS / "show.py", tmp_path / host.name, under=host.under)

    for ended in [agent.ends() for agent in [started(host) for host in hosts]]:
        assert ended.code == 2
        assert f"svc names several hosts ({hosts[0].address}, {hosts[1].address})" in ended.err
        assert "is_host=true on one of them and is_host=false on the others" in ended.err
    told = [started(host, f"--rdzv-conf=is_host={each}") for host, each in zip(hosts, ("true", "false"), strict=True)]
    assert [agent.ends().code for agent in told] == [0, 0]
    assert {shown(tmp_path / name, 0)["RANK"] for name in "ab"} == {"0", "1"}


def test_a_node_that_starts_before_the_store_s_name_is_known_has_an_address_that_others_reach(
    lab: Network, launch: Launcher, tmp_path: Path
) -> None:
    """It had its host's name for an address, and the other nodes could not resolve MASTER_ADDR."""
    a, b = lab.host("a"), lab.host("b")
    lab.resolves(a, (a.address, "master"))
    lab.resolves(b)
    for name in "ab":
        (tmp_path / name).mkdir()
    to_meet = ("--nnodes=2", f"--rdzv-endpoint=master:{PORT}", "--rdzv-id=late", PROGRAMS / "show.py")
    early = launch("--node-id=b", *to_meet, tmp_path / "b", under=b.under_its_name)
    early.says("this host does not know master, or has no route there; waiting for up to")
    lab.resolves(b, (a.address, "master"))
    other = launch("--node-id=a", *to_meet, tmp_path / "a", under=a.under_its_name)
    assert [each.ends().code for each in (early, other)] == [0, 0]
    masters = {shown(tmp_path / name, 0)["MASTER_ADDR"] for name in "ab"}
    assert masters <= {a.address, b.address} and len(masters) == 1


def test_a_name_that_is_never_known_ends_the_wait_with_the_code_of_the_rendezvous(
    lab: Network, launch: Launcher
) -> None:
    host = lab.host("a")
    lab.resolves(host)
    options = ("--nnodes=2", f"--rdzv-endpoint=master:{PORT}", "--rdzv-conf=join_timeout=1")
    ended = launch(*options, PROGRAMS / "stay.py", under=host.under).ends()
    assert ended.code == 3
    assert "this host does not know master, or has no route there; waiting for up to 1 s" in ended.err
    assert f"gave up: store master:{PORT} did not answer" in ended.err


@pytest.mark.long
@pytest.mark.parametrize("endpoint", ["address", "name"])
def test_gloo_connects_nodes_whose_own_names_lead_to_the_loopback(
    lab: Network, launch: Launcher, endpoint: str
) -> None:
    """As on Debian, whose /etc/hosts gives the host's name the address 127.0.1.1. The workers waited for each other."""
    a, b = lab.host("a"), lab.host("b")
    lab.resolves(a, ("127.0.1.1", a.name))
    lab.resolves(b, ("127.0.1.1", b.name), (a.address, a.name))
    meets = f"--rdzv-endpoint={a.address if endpoint == 'address' else a.name}:{PORT}"
    common = (meets, "--rdzv-id=gloo", "--nnodes=2", PROGRAMS / "reduce.py", "0")
    agents = [launch(*common, under=host.under_its_name) for host in (a, b)]
    assert [agent.ends().code for agent in agents] == [0, 0]


def test_a_host_whose_own_name_leads_to_the_loopback_has_an_address_that_others_reach(
    lab: Network, launch: Launcher, tmp_path: Path
) -> None:
    """Debian's /etc/hosts gives a host's own name 127.0.1.1. The other nodes got that name for MASTER_ADDR."""
    a, b = lab.host("a"), lab.host("b")
    lab.resolves(a, ("127.0.1.1", "a"))
    lab.resolves(b)
    for name in "ab":
        (tmp_path / name).mkdir()
    common = "--nnodes=2", "--rdzv-id=own"
    first = launch(*common, f"--rdzv-endpoint=a:{PORT}", PROGRAMS / "show.py", tmp_path / "a", under=a.under_its_name)
    first.says(
        f"elastic: a is this host's loopback, so other nodes are told {a.address}, of its default route; --local-addr="
    )
    to_a = f"--rdzv-endpoint={a.address}:{PORT}"
    other = launch(*common, to_a, PROGRAMS / "show.py", tmp_path / "b", under=b.under_its_name)
    assert [each.ends().code for each in (first, other)] == [0, 0]
    masters = {
        shown(tmp_path / name, int(path.name.split(".")[1]))["MASTER_ADDR"]
        for name in "ab"
        for path in (tmp_path / name).glob("0.*.json")
    }
    assert len(masters) == 1 and masters <= {a.address, b.address}


def test_a_loopback_address_beside_nodes_of_other_hosts_is_refused_in_words(lab: Network, launch: Launcher) -> None:
    """It was MASTER_ADDR for all, and the other hosts' workers waited for a rank 0 of their own host."""
    a, b = lab.host("a"), lab.host("b")
    common = "--nnodes=1:3", "--rdzv-id=lo", "--max-restarts=0", "--last-call=0", "--rdzv-conf=upscale_after=0.2"
    stays = PROGRAMS / "stay.py"
    first = launch(*common, "--node-id=a", f"--rdzv-endpoint=localhost:{PORT}", stays, under=a.under_its_name)
    first.says("started")
    beside = launch(*common, "--node-id=a2", f"--rdzv-endpoint=localhost:{PORT}", stays, under=a.under_its_name)
    beside.says("2 nodes")
    to_a = f"--rdzv-endpoint={a.address}:{PORT}"
    refused = launch(*common, "--node-id=b", to_a, stays, under=b.under_its_name).ends()
    assert refused.code == 3
    assert "on a has the address localhost" in refused.err
    assert f"this node on b has {b.address}; a loopback address leads each host to itself" in refused.err
    assert first.process.poll() is None and beside.process.poll() is None


def test_a_node_that_does_not_know_the_address_of_another_says_whose(lab: Network, launch: Launcher) -> None:
    a, b = lab.host("a"), lab.host("b")
    lab.resolves(a, (a.address, "pod-a"))
    lab.resolves(b)
    common = "--nnodes=2", f"--rdzv-endpoint={a.address}:{PORT}", "--rdzv-id=whose", "--max-restarts=0"
    launch(*common, "--node-id=first", "--local-addr=pod-a", PROGRAMS / "stay.py", under=a.under_its_name)
    other = launch(*common, "--node-id=second", PROGRAMS / "stay.py", under=b.under_its_name)
    other.says("first has the address pod-a, which this host does not know")
