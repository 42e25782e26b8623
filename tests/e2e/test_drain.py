"""A node is drained: its workers save a checkpoint, the others go on without it, and no restart is charged."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from jobs import Job, Jobs, alive, asked, codes, end, lose, run, worlds
from launches import PROGRAMS, Launch, Launcher, Told
from processes import is_alive

from elastic.adapters.rendezvous.operator import operator_name

DRAINED = PROGRAMS / "drained.py"
AGAIN_READY = PROGRAMS / "again_ready.py"
AFTER = (1, "restart 0 of 2 workers")
"""What the workers tell that go on: another round, and no restart."""


def three(job: Jobs, folder: Path, *options: str) -> tuple[Job, list[Launch], list[Told]]:
    made = job("1:3", "--last-call=1000", "--grace=2", *options)
    agents = made.nodes("abc", program=(DRAINED, folder))
    return made, agents, run(agents)


def saved(folder: Path) -> list[list[object]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("checkpoint-*.json"))]


def test_a_node_that_an_operator_drains_saves_and_leaves_and_no_restart_is_charged(
    job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    made, agents, told = three(job, tmp_path)
    a, b, c = agents
    nobody = asked(made, "z", launch=launch, command="drain")
    assert nobody.returncode == 2 and "z: no such node in this job; it has a, b, c" in nobody.stderr
    drained = asked(made, "b", "--deadline=600", launch=launch, command="drain")
    assert drained.returncode == 0, drained
    assert "b leaves within 600 s, 2 nodes go on" in drained.stdout
    left = b.ends()
    assert left.code == 5 and f"drained by an operator ({operator_name()})" in left.err
    assert not alive(one for one in told if one.rank == 1)
    assert saved(tmp_path) == [[f"an operator ({operator_name()})", pytest.approx(3.0)]]
    assert worlds(run([a, c])) == {AFTER}
    assert codes(end([a, c])) == [0, 0]
    assert (made.report("a")["restarts"], made.report("b")["ending"]["state"]) == (0, "drained")


def test_a_signal_and_a_file_drain_a_node_from_its_own_host(tcpstore_job: Jobs, tmp_path: Path) -> None:
    """The signal comes to all processes, as Slurm sends it. It is for the agent alone."""
    file = tmp_path / "maintenance"
    made, agents, told = three(
        tcpstore_job, tmp_path, "--drain-signal=USR1", f"--drain-file={file}", "--drain-deadline=600"
    )
    a, b, c = agents
    for one in told:
        os.kill(one.pid, signal.SIGUSR1)
    b.signal(signal.SIGUSR1)
    assert b.ends().code == 5
    assert worlds(run([a, c])) == {AFTER}
    file.touch()
    assert codes([a.ends(), c.ends()]) == [5, 5]
    assert {source for source, _ in saved(tmp_path)} == {"the signal SIGUSR1", f"the file {file}"}
    assert made.report("c")["ending"] == {"state": "drained", "source": f"the file {file}"}


def test_a_node_whose_workers_do_not_answer_leaves_before_its_deadline(tcpstore_job: Jobs, launch: Launcher) -> None:
    two = tcpstore_job("1:2", "--last-call=1000", "--grace=1")
    a, b = agents = two.nodes("ab")
    run(agents)
    assert asked(two, "b", "--deadline=3", launch=launch, command="drain").returncode == 0
    assert b.ends().code == 5
    assert worlds(run([a])) == {(1, "restart 0 of 1 workers")}
    refused = asked(two, "a", launch=launch, command="drain")
    assert refused.returncode == 2 and "the job needs the node" in refused.stderr and "--force" in refused.stderr
    assert asked(two, "a", "--force", launch=launch, command="drain").returncode == 0
    assert codes(end([a])) == [0]


def test_a_worker_that_was_ready_failed_and_was_started_again_is_waited_for(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    one = tcpstore_job("1:1", "--nproc-per-node=2", "--restart-scope=rank", "--max-restarts=1", "--grace=2")
    (a,) = agents = one.nodes("a", program=(AGAIN_READY, tmp_path))
    run(agents, 2)
    assert asked(one, "a", "--deadline=600", "--force", launch=launch, command="drain").returncode == 0
    assert a.ends().code == 5
    assert (tmp_path / "saved").exists()


def test_a_drained_node_serves_the_store_until_the_others_have_gone(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    two = tcpstore_job("1:2", "--last-call=1000", "--grace=1", "--max-restarts=1", own_store=True)
    a, b = agents = two.nodes("ab", program=(DRAINED, tmp_path))
    run(agents)
    assert "a     running, serves the store" in asked(two, launch=launch).stdout
    refused = asked(two, "a", launch=launch, command="drain")
    assert refused.returncode == 2
    assert (
        "a: its agent serves the store, without which the others run on but cannot re-form: --force" in refused.stderr
    )
    drained = asked(two, "a", "--force", "--deadline=600", launch=launch, command="drain")
    assert drained.returncode == 0
    assert "1 node goes on · --force overrides: its agent serves the store" in drained.stdout
    a.says("this node has left · its agent serves the store for 1 node, at most ")
    (told,) = run([b])
    os.kill(told.pid, signal.SIGKILL)
    assert worlds(run([b])) == {(2, "restart 1 of 1 workers")}, "the store is there"
    assert is_alive(a.pid)
    assert codes(end([b])) == [0]
    assert a.ends().code == 5


def test_a_drained_node_serves_the_store_no_longer_when_the_last_other_agent_is_dead(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    """Nobody is left to evict it."""
    two = tcpstore_job("1:2", "--last-call=1000", "--grace=1", own_store=True)
    a, b = agents = two.nodes("ab", program=(DRAINED, tmp_path))
    run(agents)
    assert asked(two, "a", "--force", "--deadline=600", launch=launch, command="drain").returncode == 0
    a.says("this node has left · its agent serves the store for 1 node, at most ")
    lose(b)
    left = a.ends()
    assert (left.code, "ends with this agent" in left.err) == (5, False)


@pytest.mark.parametrize("how", ["the deadline", "a signal"])
def test_a_drained_node_takes_the_store_along_at_its_deadline_or_by_a_signal(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path, how: str
) -> None:
    two = tcpstore_job("1:2", "--last-call=1000", "--grace=1", own_store=True)
    a, b = agents = two.nodes("ab", program=(DRAINED, tmp_path))
    run(agents)
    deadline = f"--deadline={5 if how == 'the deadline' else 600}"
    assert asked(two, "a", "--force", deadline, launch=launch, command="drain").returncode == 0
    told = run([b])
    if how == "a signal":
        a.says("this node has left · its agent serves the store")
        a.signal(signal.SIGTERM)
    left = a.ends()
    assert left.code == 5
    assert "the store of 1 other node ends with this agent" in left.err
    assert alive(told)
