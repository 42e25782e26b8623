"""A job on three etcd members while members, agents and the network between them fail: what must hold afterwards holds.

Every test ends with `lab.ends()`; that the agents' traces are what the core says, `launch` sees to.
"""

from __future__ import annotations

import http.client
import json
import signal
import time
from pathlib import Path

import pytest
import sums
from etcdlab import TTL_S, Lab
from etcds import Cluster
from jobs import alive, kill
from launches import Told
from processes import dies

OUTLASTS_S = 2 * TTL_S
"""Long enough that a silent node is gone."""


def goes_on(job: Lab, told: list[Told], names: str = "abc") -> list[Told]:
    """Nothing has happened to this world; and when one of its workers fails, the next one comes."""
    assert alive(told)
    kill(told[-1].pid)
    again = job.world(names)
    assert {worker.round for worker in again} == {told[0].round + 1}
    return again


# --- the members


def test_the_death_of_the_leader_costs_running_workers_nothing(on_etcd: Lab) -> None:
    told = on_etcd.start()
    on_etcd.cluster.leader().kill()
    goes_on(on_etcd, told)
    on_etcd.ends()


@pytest.mark.parametrize("pause_s", [OUTLASTS_S, pytest.param(20.0, marks=pytest.mark.long)], ids=["short", "20 s"])
def test_while_the_leader_is_paused_the_others_serve_the_job(on_etcd: Lab, pause_s: float) -> None:
    told = on_etcd.start()
    leader, paused_at = on_etcd.cluster.leader(), time.monotonic()
    leader.pause()
    told = goes_on(on_etcd, told)
    time.sleep(max(paused_at + pause_s - time.monotonic(), 0.0))
    leader.resume()
    goes_on(on_etcd, told)
    on_etcd.ends()


def test_while_the_majority_is_lost_workers_run_on_and_afterwards_nobody_was_evicted(on_etcd: Lab) -> None:
    told = on_etcd.start()
    for member in on_etcd.cluster.followers():
        member.kill()
    time.sleep(OUTLASTS_S)
    assert alive(told)
    on_etcd.mend()
    goes_on(on_etcd, told)
    on_etcd.ends()


def test_a_worker_that_fails_while_the_majority_is_lost_is_restarted_when_it_is_back(on_etcd: Lab) -> None:
    told = on_etcd.start()
    lost = on_etcd.cluster.followers()
    for member in lost:
        member.kill()
    kill(told[-1].pid)
    assert dies(told[-1].pid)
    on_etcd.mend()
    assert len(on_etcd.world("abc")) == 3
    on_etcd.ends()


def test_a_member_that_is_replaced_is_missed_by_nobody(on_etcd: Lab) -> None:
    told = on_etcd.start()
    on_etcd.cluster.replace(on_etcd.cluster.followers()[0])
    goes_on(on_etcd, told)
    on_etcd.ends()


# --- the network


def test_an_agent_that_cannot_reach_the_store_is_gone_for_the_others_and_comes_back(on_etcd: Lab) -> None:
    on_etcd.start()
    on_etcd.network.cut(on_etcd.host("c"), *on_etcd.stores)
    assert {worker.words for worker in on_etcd.world("ab")} == {"restart 0 of 2 workers"}
    on_etcd.network.heal()
    on_etcd.world("abc")
    on_etcd.ends()


@pytest.mark.parametrize(
    "direction", ["the agent is deaf", pytest.param("the members are deaf", marks=pytest.mark.long)]
)
def test_who_is_heard_only_one_way_is_gone_as_well(on_etcd: Lab, direction: str) -> None:
    on_etcd.start()
    victim = on_etcd.host("c")
    if direction == "the agent is deaf":
        on_etcd.network.deafen(victim, *on_etcd.stores)
    else:
        for store in on_etcd.stores:
            on_etcd.network.deafen(store, victim)
    on_etcd.world("ab")
    on_etcd.network.heal()
    on_etcd.world("abc")
    on_etcd.ends()


@pytest.mark.long
def test_an_agent_that_cannot_reach_one_member_uses_another(on_etcd: Lab) -> None:
    """Each of them another one, so that whoever an agent talks to, one of them loses it."""
    told = on_etcd.start()
    for name, store in zip("abc", on_etcd.stores, strict=True):
        on_etcd.network.cut(on_etcd.host(name), store)
    time.sleep(OUTLASTS_S)
    goes_on(on_etcd, told)
    on_etcd.ends()


def test_agents_that_reach_the_store_but_not_each_other_try_until_they_do(on_etcd: Lab) -> None:
    told = on_etcd.start()
    on_etcd.network.cut(on_etcd.host("c"), on_etcd.host("a"), on_etcd.host("b"))
    assert all(dies(worker.pid) for worker in told)
    on_etcd.network.heal()
    on_etcd.world("abc")
    on_etcd.ends()


@pytest.mark.long
def test_a_member_that_is_cut_off_from_the_others_is_left_by_the_agents(on_etcd: Lab) -> None:
    told = on_etcd.start()
    leader = on_etcd.host_of(on_etcd.cluster.leader())
    on_etcd.network.cut(leader, *(store for store in on_etcd.stores if store is not leader))
    time.sleep(OUTLASTS_S)
    goes_on(on_etcd, told)
    on_etcd.ends()


# --- an agent


def test_an_agent_that_is_paused_past_its_lease_is_gone_and_comes_back(on_etcd: Lab) -> None:
    on_etcd.start()
    on_etcd.agents["c"].signal(signal.SIGSTOP)
    on_etcd.world("ab")
    on_etcd.agents["c"].signal(signal.SIGCONT)
    on_etcd.world("abc")
    on_etcd.ends()


@pytest.mark.long
def test_an_agent_that_missed_what_is_compacted_reads_afresh(on_etcd: Lab) -> None:
    """While it is cut off, its connections die with the members that they led to, the job moves on, and history goes."""
    on_etcd.start()
    on_etcd.network.cut(on_etcd.host("c"), *on_etcd.stores)
    for member in list(on_etcd.cluster.members):
        member.kill()
        member.start()
        on_etcd.cluster.wait_until_healthy()
    on_etcd.world("ab")
    on_etcd.cluster.compact()
    on_etcd.network.heal()
    on_etcd.world("abc")
    on_etcd.ends()


# --- what an operator does


@pytest.mark.long
def test_a_store_that_is_full_is_waited_for(on_etcd: Lab) -> None:
    told = on_etcd.start()
    for member in on_etcd.cluster.members:
        raise_alarm(member.place.host, member.place.client_port)
    assert "NOSPACE" in on_etcd.cluster.etcdctl("alarm", "list")
    kill(told[-1].pid)
    assert dies(told[-1].pid)
    time.sleep(OUTLASTS_S)
    assert sums.load(on_etcd.checkpoint).round <= told[0].round
    on_etcd.cluster.etcdctl("alarm", "disarm")
    assert len(on_etcd.world("abc")) == 3
    on_etcd.ends()


def raise_alarm(host: str, port: int) -> None:
    """As a member does that has reached its quota: etcdctl cannot."""
    connection = http.client.HTTPConnection(host, port, timeout=60.0)
    connection.request("POST", "/v3/maintenance/alarm", json.dumps({"action": "ACTIVATE", "alarm": "NOSPACE"}))
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.long
def test_a_role_that_is_revoked_in_mid_job_is_waited_for_and_named(on_etcd: Lab, tmp_path: Path) -> None:
    enable_users(on_etcd.cluster)
    (tmp_path / "password").write_text("secret")
    on_etcd.conf += f",user=job,password_file={tmp_path}/password"
    told = on_etcd.start()
    on_etcd.cluster.etcdctl("user", "revoke-role", "job", "writer")
    kill(told[-1].pid)
    on_etcd.agents["c"].says("user job may not read and write")
    assert sums.load(on_etcd.checkpoint).round <= told[0].round
    on_etcd.cluster.etcdctl("user", "grant-role", "job", "writer")
    assert {worker.round for worker in on_etcd.world("abc")} == {told[0].round + 1}
    on_etcd.ends()


def enable_users(cluster: Cluster) -> None:
    """root, who may all, and job, who may what a job needs."""
    for command in (
        "user add root:all",
        "role add root",
        "user grant-role root root",
        "user add job:secret",
        "role add writer",
        "role grant-permission writer readwrite elastic/ --prefix=true",
        "user grant-role job writer",
        "auth enable",
    ):
        cluster.etcdctl(*command.split())
    cluster.user = "root:all"
