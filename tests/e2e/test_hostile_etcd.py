"""What somebody else writes under a job's keys in an etcd: it is told at once, and workers run on until they end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from etcd_clients import addresses, made
from etcds import Cluster, single
from jobs import PATIENT, alive, codes, end, jobs, kill, run, worlds
from launches import Launcher
from processes import comes_true

from elastic.adapters.store.etcd.members import ranged, transacted
from elastic.adapters.store.etcd.rpc import rpc
from elastic.adapters.store.etcd.run_keys import put
from elastic.adapters.store.tcpstore.wire import Address

SOON_S = 60.0
"""A few heartbeats, on a machine that stands still meanwhile. Without a look beside heartbeats it is 40 s, or never."""


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with single(tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster


@pytest.mark.parametrize("key", ["register", "life"])
def test_a_poisoned_register_in_an_etcd_is_told_as_soon_as_in_a_tcpstore(
    launch: Launcher, tmp_path: Path, etcd: Cluster, key: str
) -> None:
    launch.forged = True
    with jobs(launch, tmp_path, Address("localhost", 1), etcd) as job:
        both = job("1:2", "--last-call=1000", conf=PATIENT)
        agents = both.nodes("ab")
        told = run(agents)
        both.reaches(lambda state: state.complete)
        client = made(addresses(etcd), both.run_id)
        client._client.ask(transacted, rpc.TxnRequest(success=[put(client._client.keys.key(key), b"garbage", 0)]))
        client.close()
        assert all(agent.says_within("holds no register", SOON_S) for agent in agents)
        assert alive(told)
        ended = end(agents)
    assert codes(ended) == [3, 3]
    assert all("--rdzv-id" in one.err for one in ended)


@pytest.mark.parametrize("key", ["register", "life"])
def test_a_key_that_somebody_deletes_is_written_again_and_the_job_goes_on(
    launch: Launcher, tmp_path: Path, etcd: Cluster, key: str
) -> None:
    with jobs(launch, tmp_path, Address("localhost", 1), etcd) as job:
        both = job("1:2", "--last-call=1000", "--max-restarts=1")
        agents = both.nodes("ab")
        told = run(agents)
        both.reaches(lambda state: state.complete)
        name = f"elastic/{both.run_id}/{key}"
        etcd.etcdctl("del", name)
        assert comes_true(lambda: bool(etcd.etcdctl("get", name)))
        assert alive(told)
        kill(told[0].pid)
        assert worlds(run(agents)) == {(1, "restart 1 of 2 workers")}
        ended = end(agents)
    assert codes(ended) == [0, 0], [one.err for one in ended]


@pytest.mark.parametrize("names", [["register"], ["life"], ["register", "life"]], ids="-".join)
def test_an_older_register_that_somebody_puts_back_is_told_and_healed_as_a_restore_is(
    launch: Launcher, tmp_path: Path, etcd: Cluster, names: list[str]
) -> None:
    """One key after the other, as a script would."""
    with jobs(launch, tmp_path, Address("localhost", 1), etcd) as job:
        both = job("1:2", "--last-call=1000", "--max-restarts=2")
        agents = both.nodes("ab")
        told = run(agents)
        both.reaches(lambda state: state.complete)
        asker = made(addresses(etcd), both.run_id)
        client = asker._client
        older = {kv.key: kv for kv in client.ask(ranged, client.keys.both()).kvs}
        kill(told[0].pid)
        told = run(agents)
        before = both.reaches(lambda state: state.complete and state.round == 1)
        for kv in (older[client.keys.key(name)] for name in names):
            client.ask(transacted, rpc.TxnRequest(success=[put(kv.key, kv.value, kv.lease)]))
        if "register" in names:
            after = both.reaches(lambda state: state.life.epoch == 2)
            assert (after.complete, after.round, after.world_id) == (True, 1, before.world_id)
            for agent in agents:
                agent.says(" · restored ")
        assert alive(told)
        kill(told[0].pid)
        assert worlds(run(agents)) == {(2, "restart 2 of 2 workers")}
        ended = end(agents)
        asker.close()
    assert codes(ended) == [0, 0], [one.err for one in ended]
