"""A job in an etcd with certificates and a password: that it runs, that the secret goes nowhere, what stays behind."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from etcds import Cluster, single
from jobs import PATIENT, STAY, TTL_S, alive, codes, end, jobs, lose, run, worlds
from launches import PROGRAMS, TESTS, Launch, Launcher
from processes import comes_true, dies

from elastic.adapters.store.tcpstore.wire import Address

SECRET = "correct-horse-battery"
RUN = "job-7"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """TLS with clients' certificates, and a user who may use elastic/ and nothing else."""
    with single(tmp_path_factory.mktemp("etcd"), Authority(tmp_path_factory.mktemp("authority"))) as etcd:
        for words in (
            "role add elastic",
            "role grant-permission elastic readwrite elastic/ --prefix=true",
            f"user add ann:{SECRET}",
            "user grant-role ann elastic",
            "user add root:root",
            "user grant-role root root",
            "auth enable",
        ):
            etcd.etcdctl(*words.split())
        etcd.user = "root:root"
        yield etcd


def node(launch: Launcher, etcd: Cluster, name: str, *program: str | Path, run: str = RUN, conf: str = "") -> Launch:
    """An agent, with the password in its environment unless `conf` has it in a file."""
    tls = etcd.tls
    assert tls
    return launch(
        "--nnodes=1:2",
        "--last-call=1000",
        f"--rdzv-endpoint=etcd://{etcd.endpoints}",
        f"--rdzv-id={run}",
        f"--rdzv-conf=cacert={tls.ca},cert={tls.client.certificate},key={tls.client.key},user=ann,"
        f"keep_alive_interval=0.3,keep_alive_max_attempt=6{conf}",
        f"--node-id={name}",
        *program,
        environment={} if conf else {"ELASTIC_ETCD_PASSWORD": SECRET},
    )


def under(etcd: Cluster, run: str) -> list[str]:
    return etcd.etcdctl("get", f"elastic/{run}/", "--prefix", "--keys-only").split()


def holds(folder: Path, text: str) -> list[Path]:
    """The files below that hold this text."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_secret_reaches_neither_workers_nor_anything_that_is_written_down(
    guarded: Cluster, launch: Launcher, tmp_path: Path
) -> None:
    shown, logs = tmp_path / "shown", tmp_path / "logs"
    shown.mkdir()
    report = f"--report={tmp_path}/report.json"
    options: list[str | Path] = [report, f"--log-dir={logs}", "--tee=3", PROGRAMS / "show.py", shown]
    agents = [node(launch, guarded, name, *options) for name in "ab"]
    ended = [agent.ends() for agent in agents]
    assert codes(ended) == [0, 0]
    environment = json.loads((shown / "0.0.json").read_text())["environment"]
    assert environment["MASTER_PORT"] not in guarded.endpoints
    assert (
        not {"ELASTIC_ETCD_PASSWORD", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "GRPC_VERBOSITY"} & environment.keys()
    )
    assert SECRET not in "".join(each.out + each.err for each in ended)
    assert holds(tmp_path, SECRET) == []
    assert holds(launch.traces, '"leased":true')


def test_a_node_whose_password_is_wrong_is_told_before_anything_starts_and_the_secret_is_not_said(
    guarded: Cluster, launch: Launcher, tmp_path: Path
) -> None:
    wrong = tmp_path / "password"
    wrong.write_text("wrong-secret\n")
    ended = node(launch, guarded, "a", STAY, conf=f",password_file={wrong}").ends()
    assert ended.code == 2
    assert ended.err == (
        f"elastic: --rdzv-endpoint: etcd at {guarded.endpoints}: it refuses user ann with this password; see "
        "password_file=, or ELASTIC_ETCD_PASSWORD\n"
    )


def stands(cluster: Cluster) -> list[str]:
    """What is there of the job but where its workers were when they were stopped, and where the nodes' time went: these are
    for `elastic status`."""
    told = ("elastic/left/stacks/", "elastic/left/time/")
    return [key for key in under(cluster, "left") if not key.startswith(told)]


def test_a_job_leaves_its_verdict_for_late_nodes_and_nothing_else(
    guarded: Cluster, launch: Launcher, tmp_path: Path
) -> None:
    """One node is lost without a word: its lease takes its heartbeat away."""
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    conf = f",password_file={file}"
    agents = [node(launch, guarded, name, STAY, run="left", conf=conf) for name in "ab"]
    run(agents)
    lose(agents[1])
    assert worlds(run(agents[:1])) == {(1, "restart 0 of 1 workers")}
    assert codes(end(agents[:1])) == [0]
    assert comes_true(lambda: stands(guarded) == ["elastic/left/life", "elastic/left/register"])
    late = node(launch, guarded, "c", STAY, run="left", conf=conf).ends()
    assert late.code == 3
    assert comes_true(lambda: stands(guarded) == ["elastic/left/life", "elastic/left/register"])


def test_a_wait_for_an_etcd_that_is_not_there_says_what_must_be_done(
    guarded: Cluster, launch: Launcher, tmp_path: Path
) -> None:
    with single(tmp_path / "etcd") as away:
        away.members[0].kill()
        agent = launch(f"--rdzv-endpoint=etcd://{away.endpoints}", "--rdzv-id=x", STAY, traced=False)
        agent.says(f"store {away.endpoints} out of reach for")
        agent.says("a majority of its members must run there")
        away.members[0].start()
        agent.says("answers again")
        (worker,) = run([agent])
        agent.open_gate()
        assert agent.ends().code == 0
    assert worker.round == 0


def test_without_the_package_etcd3_the_extra_is_named(launch: Launcher, tmp_path: Path) -> None:
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text("import sys\nsys.modules['etcd3'] = None\n")
    ended = launch(
        "--rdzv-endpoint=etcd://localhost:1",
        "--rdzv-id=x",
        STAY,
        environment={"PYTHONPATH": f"{tmp_path}:{TESTS}"},
        traced=False,
    ).ends()
    assert (ended.code, ended.err) == (
        2,
        "elastic: --rdzv-backend=etcd: needs the package etcd3; install elastic-launch as before, with [etcd] behind it\n",
    )


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Cluster]:
    """For one test."""
    with single(tmp_path / "etcd") as etcd:
        yield etcd


def test_while_the_etcd_stands_still_workers_run_on_and_afterwards_nobody_is_evicted(
    launch: Launcher, tmp_path: Path, shared_store: Address, alone: Cluster
) -> None:
    """For longer than any lease: etcd itself holds them all for over when it goes on."""
    with jobs(launch, tmp_path, shared_store, alone) as make:
        elastic = make("1:2", "--last-call=1000")
        agents = elastic.nodes("ab")
        told = run(agents)
        alone.members[0].pause()
        agents[0].says("out of reach for")
        time.sleep(TTL_S)
        alone.members[0].resume()
        agents[0].says("answers again")
        time.sleep(2 * TTL_S)
        assert alive(told)
        assert codes(end(agents)) == [0, 0]
        assert [elastic.report(name)["ending"]["round"] for name in "ab"] == [0, 0]


def test_a_node_that_cannot_renew_its_lease_kills_its_workers_if_it_was_told_to(
    launch: Launcher, tmp_path: Path, shared_store: Address, alone: Cluster
) -> None:
    with jobs(launch, tmp_path, shared_store, alone) as make:
        one = make("1", "--on-store-loss=stop", conf="keep_alive_interval=0.5,keep_alive_max_attempt=10,")
        agent = one.node("a")
        (worker,) = run([agent])
        alone.members[0].kill()
        agent.says("1 worker killed (--on-store-loss=stop)")
        assert dies(worker.pid)
        alone.members[0].start()
        alone.wait_until_healthy()
        (again,) = run([agent])
        assert again.round > worker.round
        assert codes(end([agent])) == [0]


def test_a_cluster_that_is_restored_from_a_snapshot_is_given_back_what_the_agents_remember(
    launch: Launcher, tmp_path: Path, shared_store: Address
) -> None:
    """The snapshot is of round 0; the job is in round 1."""
    with single(tmp_path / "etcd") as etcd, jobs(launch, tmp_path, shared_store, etcd) as make:
        job = make("2", "--max-restarts=1", conf=PATIENT)
        agents = job.nodes("ab")
        first = run(agents)
        etcd.snapshot(tmp_path / "snapshot")
        os.kill(first[0].pid, signal.SIGKILL)
        told = run(agents)
        assert worlds(told) == {(1, "restart 1 of 2 workers")}
        etcd.restored(tmp_path / "snapshot")
        state = job.reaches(lambda state: state.life.epoch == 2)
        assert (state.complete, state.round, state.failures) == (True, 1, 1)
        assert alive(told)
        ended = end(agents)
        assert codes(ended) == [0, 0]
        assert any("came back with something older · restored from this node: round 1" in each.err for each in ended)
