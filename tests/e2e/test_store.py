"""The store under a job: away, back, gone, served by whoever leaves last, and full of what others write there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from jobs import (
    CONF,
    DEFAULT_RESOLVER,
    PATIENT,
    Jobs,
    alive,
    codes,
    end,
    kill,
    lose,
    run,
    slots,
    store_hosts_of,
    worlds,
)
from launches import ELASTIC, TIMEOUT_S, Launcher
from leftovers import alive_with
from processes import comes_true, dies, is_alive, is_stopped
from served import served

IMPATIENT = f"--rdzv-conf={CONF}is_host=false,join_timeout=3"
"""Not for the agent that serves the store, since that takes its time to start."""


def test_the_agent_that_serves_the_store_leaves_last(tcpstore_job: Jobs) -> None:
    three = tcpstore_job("3", own_store=True)
    agents = three.nodes("abc")
    run(agents)
    agents[1].signal(signal.SIGSTOP)
    agents[2].signal(signal.SIGSTOP)
    for agent in agents:
        agent.open_gate()
    three.reaches(lambda state: len(state.participants) == 2)
    agents[1].signal(signal.SIGCONT)
    agents[2].signal(signal.SIGCONT)
    assert codes(agent.ends() for agent in agents) == [0, 0, 0]


def test_of_several_agents_on_the_endpoints_host_one_serves_the_store(tcpstore_job: Jobs) -> None:
    """Nobody is told to."""
    three = tcpstore_job("3", own_store=True, conf="is_host=auto,")
    agents = [three.node(name, under=DEFAULT_RESOLVER) for name in "abc"]
    assert worlds(run(agents)) == {(0, "restart 0 of 3 workers")}
    assert codes(end(agents)) == [0, 0, 0]


@pytest.mark.parametrize(
    ("pause_s", "conf"),
    [(4.0, None), pytest.param(8.0, "", marks=pytest.mark.long)],
    ids=["short spans", "real spans"],
)
def test_while_the_store_is_paused_workers_run_on_and_afterwards_nobody_is_evicted(
    tcpstore_job: Jobs, nothing_left: str, pause_s: float, conf: str | None
) -> None:
    """For longer than a node may be silent, and not so long that its agent kills it."""
    spans = {} if conf is None else {"conf": conf}
    elastic = tcpstore_job("1:2", "--last-call=1000", own_store=True, **spans)
    agents = elastic.nodes("ab")
    told = run(agents)
    server = helper(nothing_left)
    os.kill(server, signal.SIGSTOP)
    time.sleep(pause_s)
    assert alive(told)
    os.kill(server, signal.SIGCONT)
    assert codes(end(agents)) == [0, 0]
    assert [elastic.report(name)["ending"]["round"] for name in "ab"] == [0, 0]


def helper(token: str) -> int:
    """The process that serves the job's own store."""
    (server,) = [process.pid for process in alive_with(token) if "store_host.py" in process.command]
    return server


@pytest.mark.parametrize(
    "signum", [signal.SIGKILL, pytest.param(signal.SIGSEGV, marks=pytest.mark.long), signal.SIGSTOP]
)
def test_a_store_whose_helper_alone_is_lost_is_served_again_and_costs_nobody_anything(
    tcpstore_job: Jobs, launch: Launcher, nothing_left: str, signum: signal.Signals
) -> None:
    conf = CONF if signum == signal.SIGSTOP else PATIENT  # one that stands still is killed after two TTLs
    both = tcpstore_job("1:2", "--max-restarts=1", "--last-call=1000", own_store=True, conf=conf)
    agents = both.nodes("ab")
    told = run(agents)
    before = both.reaches(lambda state: state.complete)
    os.kill(helper(nothing_left), signum)
    after = both.reaches(lambda state: state.complete and state.life != before.life)
    if after.job != before.job:  # the machine stood still for a TTL meanwhile: nobody who was awake knew the register
        assert conf == CONF and comes_true(lambda: has_slept(launch.traces))
        told = run(agents)
    assert (after.round, after.failures) == (0, 0)
    assert alive(told)
    kill(told[1].pid)
    assert worlds(run(agents)) == {(1, "restart 1 of 2 workers")}
    ended = end(agents)
    assert codes(ended) == [0, 0]
    how = "no answer for 6 s" if signum == signal.SIGSTOP else signum.name
    assert "it must run there" not in ended[0].err
    assert f"the store's helper was killed{':' if signum == signal.SIGSTOP else ' by'} {how}" in ended[0].err
    assert f"this node serves store {both.store} again" in ended[0].err


def has_slept(traces: Path) -> bool:
    """Whether an agent says that it stood still for longer than a TTL."""
    return any(b'"fed":{"is":"woke"}' in file.read_bytes() for file in traces.iterdir())


@pytest.mark.long
def test_a_job_of_one_node_ends_well_however_often_its_store_is_lost(tcpstore_job: Jobs, nothing_left: str) -> None:
    one = tcpstore_job("1", "--max-restarts=0", own_store=True, conf=PATIENT)
    agents = one.nodes("a")
    told = run(agents)
    for epoch in (2, 3):
        os.kill(helper(nothing_left), signal.SIGKILL)
        one.reaches(lambda state, epoch=epoch: state.life.epoch == epoch)  # type: ignore[misc]
    assert alive(told)
    os.kill(helper(nothing_left), signal.SIGKILL)
    assert codes(end(agents)) == [0], "it ends while no store is there"
    assert one.report("a")["ending"]["round"] == 0


def test_a_job_of_one_node_ends_well_when_its_store_can_never_be_served(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    """Its helper dies at each start."""
    (tmp_path / "torch.py").write_text("raise SystemExit(7)\n")
    one = tcpstore_job("1", "--max-restarts=1", own_store=True)
    path = os.pathsep.join((str(tmp_path), launch.environment["PYTHONPATH"]))
    agent = one.node("a", environment={"PYTHONPATH": path})
    (told,) = run([agent])
    kill(told.pid)
    assert worlds(run([agent])) == {(1, "restart 1 of 1 workers")}
    (ended,) = end([agent])
    assert ended.code == 0
    assert f"this node serves store {one.store} no longer; its job goes on without one" in ended.err


def test_an_agent_of_several_nodes_ends_when_it_can_never_serve_the_store(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    """And not after `join_timeout`."""
    (tmp_path / "torch.py").write_text("raise SystemExit(7)\n")
    both = tcpstore_job("2", own_store=True)
    path = os.pathsep.join((str(tmp_path), launch.environment["PYTHONPATH"]))
    ended = both.node("a", environment={"PYTHONPATH": path}).ends()
    assert ended.code == 3
    assert f"so this node serves store {both.store} no longer" in ended.err
    assert f"gave up: this node cannot serve store {both.store}" in ended.err


def test_when_the_store_dies_with_its_agent_the_others_run_on_and_say_who_must_act(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("2", own_store=True, conf=PATIENT + "leave_timeout=1,")
    agents = both.nodes("ab")
    told = run(agents)
    (host,) = store_hosts_of(agents[0])
    agents[1].signal(signal.SIGSTOP)  # beside other work it may write there before the store has ended
    assert comes_true(lambda: is_stopped(agents[1].pid))
    agents[0].signal(signal.SIGKILL)
    assert agents[0].ends().code == -signal.SIGKILL and dies(host)
    agents[1].signal(signal.SIGCONT)
    agents[1].says(f"store {both.store} out of reach for ")
    assert is_alive(told[1].pid)
    agents[1].signal(signal.SIGTERM)
    assert agents[1].ends().code == 143


def test_the_agent_that_serves_the_store_is_lost_and_started_again_and_the_job_goes_on(tcpstore_job: Jobs) -> None:
    """Where it was, and not from its beginning: that costs the workers of the lost node and no restart."""
    both = tcpstore_job("2", "--max-restarts=1", own_store=True, conf=PATIENT)
    agents = both.nodes("ab")
    kill(run(agents)[0].pid)
    assert worlds(told := run(agents)) == {(1, "restart 1 of 2 workers")}
    lose(agents[0])
    both.serves_anew()
    agents[0] = both.node("a")
    assert worlds(run(agents)) == {(2, "restart 1 of 2 workers")}
    assert dies(told[1].pid)
    ended = end(agents)
    assert codes(ended) == [0, 0]
    assert "came back empty · restored from this node: round 1, 1 restart spent" in ended[1].err


def test_a_store_that_is_lost_while_all_are_well_restarts_nobody(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("1:2", "--last-call=1000", conf=PATIENT)
    with served() as store:
        both.store = store.address
        agents = both.nodes("ab")
        told = run(agents)
        before = both.reaches(lambda state: state.complete)
        lives = {before.life}
        for _ in range(2):
            store.is_lost()
            # the second one may be restored by the node that has not seen the first restored one
            after = both.reaches(lambda state: state.life not in lives)
            assert after.complete and after.world_id == before.world_id
            lives.add(after.life)
        assert alive(told)
        ended = end(agents)
    assert codes(ended) == [0, 0]
    assert [both.report(name)["ending"]["round"] for name in "ab"] == [0, 0]


def test_who_knows_the_verdict_tells_a_store_that_has_forgotten_it(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("2", conf=PATIENT)  # the node that stands still must not be lost meanwhile
    with served() as store:
        both.store = store.address
        agents = both.nodes("ab")
        run(agents)
        agents[1].signal(signal.SIGSTOP)
        agents[0].open_gate()
        agents[1].open_gate()
        both.reaches(lambda state: len(state.participants) == 1)
        store.closes()
        agents[1].signal(signal.SIGCONT)
        store.serves()
        assert codes(agent.ends() for agent in agents) == [0, 0]
        assert both.reaches(lambda state: state.closed is not None).round == 0


def test_who_follows_a_job_follows_it_on_when_its_store_is_lost_and_back(tcpstore_job: Jobs, launch: Launcher) -> None:
    both = tcpstore_job("1:2", "--last-call=1000", conf=PATIENT)
    with served() as store:
        both.store = store.address
        agents = both.nodes("ab")
        run(agents)
        words = [ELASTIC, "status", f"--rdzv-endpoint={both.store}", f"--rdzv-id={both.run_id}", "--watch", "--json"]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=launch.environment
        ) as watch:
            assert watch.stdout and watch.stderr
            try:
                assert json.loads(watch.stdout.readline())["state"] == "running"
                store.closes()
                assert watch.stderr.readline().endswith("; asking again\n")
                store.serves()
                both.reaches(lambda state: state.life.epoch == 2)
                assert codes(end(agents)) == [0, 0]
                *_, last = map(json.loads, watch.stdout)
                assert (last["state"], watch.wait(TIMEOUT_S)) == ("succeeded", 0)
            finally:
                watch.kill()


@pytest.mark.parametrize("outcome", ["fails", "succeeds"])
def test_a_node_whose_worker_ends_gives_up_after_the_join_timeout_when_the_store_is_gone(
    tcpstore_job: Jobs, outcome: str
) -> None:
    both = tcpstore_job("2", "--max-restarts=1", own_store=True)
    agents = [*both.nodes("a"), both.node("b", IMPATIENT)]
    told = run(agents)
    lose(agents[0])
    if outcome == "fails":
        kill(told[1].pid)
    else:
        agents[1].open_gate()
    ended = agents[1].ends()
    assert ended.code == 3
    assert str(both.store) in ended.err


def test_a_node_that_waits_for_others_gives_up_after_the_join_timeout_when_the_store_is_gone(
    tcpstore_job: Jobs,
) -> None:
    three = tcpstore_job("3", own_store=True)
    agents = [*three.nodes("a"), three.node("b", IMPATIENT)]
    three.reaches(lambda state: slots(state) == ["a", "b"])
    lose(agents[0])
    ended = agents[1].ends()
    assert ended.code == 3
    assert str(three.store) in ended.err


def test_an_agent_that_is_told_to_stop_takes_the_store_that_it_serves_along(tcpstore_job: Jobs) -> None:
    elastic = tcpstore_job("1:2", "--last-call=1000", own_store=True)
    agents = [*elastic.nodes("a"), elastic.node("b", IMPATIENT)]
    run(agents)
    agents[0].signal(signal.SIGTERM)
    assert agents[0].ends().code == 143
    agents[1].open_gate()
    ended = agents[1].ends()
    assert ended.code == 3
    assert str(elastic.store) in ended.err


def test_a_node_that_finds_no_store_gives_up_after_the_join_timeout(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("2", own_store=True)
    both._served = True
    ended = both.node("a", IMPATIENT).ends()
    assert ended.code == 3
    assert str(both.store) in ended.err


def test_whatever_a_port_scanner_sends_the_job_goes_on(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("2", "--max-restarts=1", own_store=True)
    agents = both.nodes("ab")
    told = run(agents)
    with ExitStack() as open_ones:
        for scan in scans():
            connection = open_ones.enter_context(socket.create_connection((both.store.host, both.store.port)))
            connection.sendall(scan)
        kill(told[1].pid)
        assert worlds(run(agents)) == {(1, "restart 1 of 2 workers")}
        assert codes(end(agents)) == [0, 0]


def scans() -> Iterator[bytes]:
    """Nothing, less than a greeting, other protocols, noise."""
    yield from (b"", b"\x00", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"SSH-2.0-scan\r\n")
    yield from (os.urandom(size) for size in (1, 5, 64, 4096))


def test_with_on_store_loss_stop_the_node_that_serves_stops_its_workers_too(
    tcpstore_job: Jobs, nothing_left: str
) -> None:
    """Its own store stands still: no copy of a rank runs anywhere while nobody can know who is there."""
    two = tcpstore_job(
        "2",
        "--max-restarts=0",
        "--on-store-loss=stop",
        "--grace=1",
        own_store=True,
        conf="keep_alive_interval=0.5,keep_alive_max_attempt=10,",
    )
    agents = two.nodes("ab")
    told = run(agents)
    os.kill(helper(nothing_left), signal.SIGSTOP)
    assert all(dies(worker.pid) for worker in told)
    assert {worker.words for worker in run(agents)} == {"restart 0 of 2 workers"}
    ended = end(agents)
    assert codes(ended) == [0, 0]
    assert "1 worker killed (--on-store-loss=stop)" in ended[0].err
