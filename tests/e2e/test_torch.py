"""Real process groups and a real training over restarts."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from jobs import Jobs, lose, run, worlds
from launches import PROGRAMS, TESTS, Launcher, launcher

TRAIN = TESTS.parent / "examples" / "digits" / "train.py"


def test_every_attempt_connects_at_once_and_on_a_port_of_its_own(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=2", PROGRAMS / "reduce.py", "2")
    told = job.hears(6)
    ended = job.ends()
    ports = {worker.round: worker.words.split()[-1] for worker in told}
    assert ended.code == 0
    assert sorted((worker.round, worker.rank) for worker in told) == [(n, rank) for n in range(3) for rank in (0, 1)]
    assert {worker.words for worker in told} == {f"sum 3 at {port}" for port in ports.values()}
    assert len(set(ports.values())) == 3
    assert "all 2 workers succeeded · 2 restarts," in ended.lines[-1]


EPOCHS = "--epochs=4"
STANDBY = ("--standby", "--preload=torch,sklearn.datasets")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The weights of a training to which nothing happens."""
    import torch

    folder = tmp_path_factory.mktemp("undisturbed")
    with launcher(folder) as launch:
        assert launch("--nproc-per-node=2", TRAIN, EPOCHS, f"--save-final={folder}/final.pt").ends().code == 0
    weights: dict[str, Any] = torch.load(folder / "final.pt", weights_only=True)
    assert weights
    return weights


@pytest.mark.long
@pytest.mark.parametrize("standby", [(), STANDBY], ids=["new workers", "standbys"])
def test_a_training_whose_worker_is_killed_ends_with_the_weights_of_an_undisturbed_one(
    launch: Launcher, tmp_path: Path, undisturbed: dict[str, Any], standby: tuple[str, ...]
) -> None:
    """It loses a node below."""
    import torch

    disturbed, report = tmp_path / "disturbed.pt", tmp_path / "report.json"
    options = ("--nproc-per-node=2", "--max-restarts=1", f"--report={report}", *standby)
    saved = (f"--save-final={disturbed}", f"--checkpoint-dir={tmp_path}/checkpoints")
    job = launch(*options, PROGRAMS / "halfway.py", TRAIN, EPOCHS, *saved)
    workers = job.hears(2)
    if standby:
        job.stands_by(2, workers)
    os.kill(workers[1].pid, signal.SIGKILL)
    ended = job.ends()
    assert ended.code == 0
    assert "resumed after epoch 2 from" in ended.out
    assert "all 2 workers succeeded · 1 restart," in ended.lines[-1]
    weights = torch.load(disturbed, weights_only=True)
    assert undisturbed.keys() == weights.keys()
    assert all(torch.equal(undisturbed[name], weights[name]) for name in undisturbed)
    standbys = json.loads(report.read_text())["here"].get("standbys", {"became_workers": 0})
    assert standbys["became_workers"] == (4 if standby else 0)


@pytest.mark.long
def test_a_training_that_loses_a_node_goes_on_with_another_to_the_weights_of_an_undisturbed_one(
    tcpstore_job: Jobs, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    """Over two nodes of one worker each; no restart is allowed, and none is spent."""
    import torch

    both = tcpstore_job("2", "--max-restarts=0", own_store=True)
    saved = (f"--save-final={tmp_path}/disturbed.pt", f"--checkpoint-dir={tmp_path}/checkpoints")
    program = (PROGRAMS / "halfway.py", TRAIN, EPOCHS, *saved)
    first, second = both.nodes("ab", program=program)
    assert worlds(run([first, second])) == {(0, "in the middle of epoch 3")}
    lose(second)
    third = both.node("c", program=program)
    (ended, other) = [first.ends(), third.ends()]
    assert (ended.code, other.code) == (0, 0)
    assert "resumed after epoch 2 from" in ended.out
    assert [both.report(name)["restarts"] for name in "ac"] == [0, 0]
    weights = torch.load(tmp_path / "disturbed.pt", weights_only=True)
    assert undisturbed.keys() == weights.keys()
    assert all(torch.equal(undisturbed[name], weights[name]) for name in undisturbed)
