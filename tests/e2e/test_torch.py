"""Real process groups and a real training over restarts."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from launches import PROGRAMS, TESTS, Launcher

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


@pytest.mark.long
def test_a_training_that_goes_on_in_standbys_ends_with_the_weights_of_an_undisturbed_one(
    launch: Launcher, tmp_path: Path
) -> None:
    """In new workers it does so too: test_nodes_torch.py."""
    import torch

    undisturbed, disturbed, report = (tmp_path / name for name in ("undisturbed.pt", "disturbed.pt", "report.json"))
    assert launch("--nproc-per-node=2", TRAIN, EPOCHS, f"--save-final={undisturbed}").ends().code == 0
    options = ("--nproc-per-node=2", "--max-restarts=1", f"--report={report}", *STANDBY)
    saved = (f"--save-final={disturbed}", f"--checkpoint-dir={tmp_path}/checkpoints")
    job = launch(*options, PROGRAMS / "halfway.py", TRAIN, EPOCHS, *saved)
    workers = job.hears(2)
    job.stands_by(2, workers)
    os.kill(workers[1].pid, signal.SIGKILL)
    ended = job.ends()
    assert ended.code == 0
    assert "resumed after epoch 2 from" in ended.out
    assert "all 2 workers succeeded · 1 restart," in ended.lines[-1]
    final, other = (torch.load(path, weights_only=True) for path in (undisturbed, disturbed))
    assert final.keys() == other.keys() and final.keys()
    assert all(torch.equal(final[name], other[name]) for name in final)
    assert json.loads(report.read_text())["here"]["standbys"]["became_workers"] == 4
