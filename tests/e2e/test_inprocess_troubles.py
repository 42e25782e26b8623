"""Wrapped functions of several nodes that train on gloo: the store's host is lost, and a wrapper gives up on one node."""

from __future__ import annotations

from pathlib import Path

import pytest
from etcds import cluster, skip_without_etcd
from jobs import PATIENT, Jobs, codes, end, jobs, lose
from launches import PROGRAMS, Launch, Launcher, Told

from elastic.adapters.store.tcpstore.wire import Address

TROUBLED = PROGRAMS / "troubled.py"
SCOPE = ("--restart-scope=rank", "--last-call=1000")
LOSS = (PROGRAMS / "outlasting.py", "3")
MOVING = (PROGRAMS / "moving.py",)
BEGUN = "in 0 of 3 at 3"
WHOLE = "returned -21.0"
"""What three ranks come to that all took part in each step."""


def until(words: str, *agents: Launch) -> list[Told]:
    """Return what the one worker of each of these agents told when it told what ends so."""
    found = list[Told]()
    for agent in agents:
        (told,) = agent.hears(1)
        while not told.words.endswith(words):
            (told,) = agent.hears(1)
        found.append(told)
    return found


def pids(told: list[Told]) -> list[int]:
    return [each.pid for each in told]


@pytest.mark.long
def test_the_ranks_of_the_other_nodes_outlive_the_store_that_is_lost_with_its_node(tcpstore_job: Jobs) -> None:
    made = tcpstore_job("1:3", *SCOPE, own_store=True, conf=PATIENT)
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


@pytest.mark.long
def test_the_ranks_of_the_other_nodes_outlive_a_member_of_etcd_that_is_lost_with_a_node(
    launch: Launcher, tmp_path: Path, shared_store: Address
) -> None:
    """The member that leads, so that all must wait for another leader. With gloo the test above does it."""
    skip_without_etcd()
    with cluster(tmp_path / "etcd") as etcd, jobs(launch, tmp_path, shared_store, etcd) as job:
        made = job("1:3", *SCOPE)
        agents = made.nodes("abc", program=MOVING)
        first = until("in 0 of 3", *agents)
        etcd.leader().kill()
        lose(agents[0])
        alone = until(" of 2", *agents[1:])
        assert pids(alone) == pids(first)[1:]
        agents[0] = made.node("a", program=MOVING)
        last = until(" of 3", *agents)
        assert pids(last)[1:] == pids(first)[1:]
        assert codes(end(agents)) == [0, 0, 0]


INTERVALS = ("monitor_thread_interval=0.1", "monitor_process_interval=0.1", "progress_watchdog_interval=0.1")


def test_a_wrapper_that_gives_up_on_one_node_has_all_processes_start_anew(tcpstore_job: Jobs) -> None:
    """A wrapper ends its process with a code that says: no process alone is to be started again.

    The reports of both nodes name its rank."""
    made = tcpstore_job("2", *SCOPE, "--max-restarts=1")
    agents = made.nodes("ab", program=(TROUBLED, "2", "raise", "max_rank_faults=1"))
    first = until("begins", *agents)
    last = until("returned well", *agents)
    assert ({each.round for each in first}, {each.round for each in last}) == ({0}, {1})
    assert set(pids(last)).isdisjoint(pids(first))
    assert codes(agent.ends() for agent in agents) == [0, 0]
    for report in map(made.report, "ab"):
        named = [failure["message"] for failure in report["failures"] if failure["rank"] == 1]
        assert named == ["rank 1: too many faults of this rank (last error here: ValueError: boom)"]
        assert report["restarts"] == 1


@pytest.mark.long
def test_a_rank_that_its_monitor_ends_is_started_again_alone_and_the_other_node_s_outlives_it(
    tcpstore_job: Jobs,
) -> None:
    made = tcpstore_job("2", *SCOPE, "--max-restarts=1")
    limits = (*INTERVALS, "soft_timeout=5.0", "hard_timeout=8.0", "termination_grace_time=0.2")
    agents = made.nodes("ab", program=(TROUBLED, "2", "halt", *limits))
    first = until("in 0 of 2", *agents)
    last = until("returned well", *agents)
    assert [old == new for old, new in zip(pids(first), pids(last), strict=True)] == [True, False]
    assert codes(agent.ends() for agent in agents) == [0, 0]


STOPS = ("stop", *INTERVALS, "soft_timeout=2.0", "hard_timeout=4.0", "termination_grace_time=0.2")
GIVES_UP = ("raise", "max_rank_faults=1")


@pytest.mark.long
@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (STOPS, "no progress for 4 s (hard_timeout)"),
        (GIVES_UP, "rank 1: too many faults of this rank (last error here: ValueError: boom)"),
    ],
    ids=["stops", "gives up"],
)
def test_when_the_launcher_has_no_restart_either_both_nodes_name_the_rank_that_gave_up(
    tcpstore_job: Jobs, trouble: tuple[str, ...], said: str
) -> None:
    made = tcpstore_job("2", *SCOPE, "--max-restarts=0")
    agents = made.nodes("ab", program=(TROUBLED, "2", *trouble))
    assert codes(agent.ends() for agent in agents) == [1, 1]
    for name in "ab":
        report = made.report(name)
        cause = report["failures"][report["cause"]]
        assert said in cause["message"], cause
        assert (cause["rank"], cause["node"].partition("#")[0]) == (1, "b")
        assert report["restarts"] == 0


@pytest.mark.parametrize(("error", "times"), [("ValueError", 5), ("MemoryError", 2)])
def test_a_rank_that_fails_again_and_again_before_any_progress_has_a_fresh_process(
    launch: Launcher, error: str, times: int
) -> None:
    running = launch("--restart-scope=rank", "--max-restarts=1", "--nproc-per-node=2", PROGRAMS / "barren.py", error)
    assert [told.words for told in running.hears(times + 1)] == [*["fails"] * times, "is another process"]
    running.open_gate()
    assert [told.words for told in running.hears(2)] == ["returned well"] * 2
    ended = running.ends()
    assert ended.code == 0
    assert ended.err.count("raise getattr") == 2, "the first time, and as the process ends"
    assert ended.err.count("(the traceback is the same as before)") == times - 1
    assert "the same failure or a hang of this rank again and again, before any progress" in ended.err


@pytest.mark.parametrize("way", ["hang", "section", "interpreter"])
def test_a_rank_that_hangs_again_and_again_has_a_fresh_process(launch: Launcher, way: str) -> None:
    running = launch("--restart-scope=rank", "--max-restarts=1", "--nproc-per-node=2", PROGRAMS / "barren.py", way)
    assert [told.words for told in running.hears(3)] == ["fails", "fails", "is another process"]
    running.open_gate()
    assert [told.words for told in running.hears(2)] == ["returned well"] * 2
    ended = running.ends()
    assert ended.code == 0
    assert "the same failure or a hang of this rank again and again, before any progress" in ended.err
