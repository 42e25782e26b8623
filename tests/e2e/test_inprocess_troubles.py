"""Wrapped functions of several nodes that train on gloo: the store's host is lost, and a wrapper gives up on one node."""

from __future__ import annotations

from pathlib import Path

import pytest
from etcds import cluster, skip_without_etcd
from jobs import Jobs, codes, jobs, lose
from launches import PROGRAMS, Launch, Launcher, Told

from elastic.adapters.store.tcpstore.wire import Address

OUTLASTING = PROGRAMS / "outlasting.py"
SCOPE = ("--restart-scope=rank", "--last-call=1000")
LOSS = (OUTLASTING, "3", "loss")
BEGUN = "in 0 of 3 at 3"
WHOLE = "returned -21.0"
"""What three ranks come to that all took part in each step."""


def until(words: str, *agents: Launch) -> list[Told]:
    """Return what the one worker of each of these agents told when it told this."""
    found = list[Told]()
    for agent in agents:
        (told,) = agent.hears(1)
        while told.words != words:
            (told,) = agent.hears(1)
        found.append(told)
    return found


def pids(told: list[Told]) -> list[int]:
    return [each.pid for each in told]


def test_the_ranks_of_the_other_nodes_outlive_the_store_that_is_lost_with_its_node(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("1:3", *SCOPE, own_store=True)
    agents = made.nodes("abc", program=LOSS)
    first = until(BEGUN, *agents)
    lose(agents[0])
    agents[1].says("out of reach for")
    made.serves_anew()
    agents[0] = made.node("a", program=LOSS)
    last = until(WHOLE, *agents)
    assert pids(last)[1:] == pids(first)[1:]
    assert codes(agent.ends() for agent in agents) == [0, 0, 0]
    assert [made.report(name)["restarts"] for name in "abc"] == [0, 0, 0]


def test_the_ranks_of_the_other_nodes_outlive_a_member_of_etcd_that_is_lost_with_a_node(
    launch: Launcher, tmp_path: Path, shared_store: Address
) -> None:
    """The member that leads, so that all must wait for another leader."""
    skip_without_etcd()
    with cluster(tmp_path / "etcd") as etcd, jobs(launch, tmp_path, shared_store, etcd) as job:
        made = job("1:3", *SCOPE)
        agents = made.nodes("abc", program=LOSS)
        first = until(BEGUN, *agents)
        etcd.leader().kill()
        lose(agents[0])
        alone = until("in 1 of 2 at 3", *agents[1:])
        assert pids(alone) == pids(first)[1:]
        agents[0] = made.node("a", program=LOSS)
        last = until(WHOLE, *agents)
        assert pids(last)[1:] == pids(first)[1:]
        assert codes(agent.ends() for agent in agents) == [0, 0, 0]


INTERVALS = ("monitor_thread_interval=0.1", "monitor_process_interval=0.1", "progress_watchdog_interval=0.1")
LIMITS = {
    "stop": (*INTERVALS, "soft_timeout=2.0", "hard_timeout=4.0", "termination_grace_time=0.2"),
    "raise": ("max_rank_faults=1",),
}
"""The limits that the last rank exceeds on its node."""
SAID = {"stop": "no progress for 4 s (hard_timeout)", "raise": "ValueError: boom"}


@pytest.mark.parametrize("way", LIMITS)
def test_a_wrapper_that_gives_up_on_one_node_has_all_processes_start_anew(tcpstore_job: Jobs, way: str) -> None:
    """A wrapper ends its process with a code that says: no process alone is to be started again."""
    made = tcpstore_job("2", *SCOPE, "--max-restarts=1")
    agents = made.nodes("ab", program=(OUTLASTING, "2", way, *LIMITS[way]))
    first = until("begins", *agents)
    last = until("returned -18.0", *agents)
    assert ({each.round for each in first}, {each.round for each in last}) == ({0}, {1})
    assert set(pids(last)).isdisjoint(pids(first))
    assert codes(agent.ends() for agent in agents) == [0, 0]
    assert [made.report(name)["restarts"] for name in "ab"] == [1, 1]


@pytest.mark.parametrize("way", LIMITS)
def test_when_the_launcher_has_no_restart_either_both_nodes_name_the_rank_that_gave_up(
    tcpstore_job: Jobs, way: str
) -> None:
    made = tcpstore_job("2", *SCOPE, "--max-restarts=0")
    agents = made.nodes("ab", program=(OUTLASTING, "2", way, *LIMITS[way]))
    assert codes(agent.ends() for agent in agents) == [1, 1]
    for name in "ab":
        report = made.report(name)
        cause = report["failures"][report["cause"]]
        assert SAID[way] in cause["message"], cause
        assert cause["rank"] == 1
