"""Real process groups and a real training over restarts."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from launches import PROGRAMS, TESTS, Launcher

TRAIN = TESTS.parent / "examples" / "digits" / "train.py"
pytestmark = pytest.mark.slow


def test_every_attempt_connects_at_once_and_on_a_port_of_its_own(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=3", PROGRAMS / "reduce.py", "3")
    told = job.hears(8)
    ended = job.ends()
    ports = {worker.round: worker.words.split()[-1] for worker in told}
    assert ended.code == 0
    assert sorted((worker.round, worker.rank) for worker in told) == [(n, rank) for n in range(4) for rank in (0, 1)]
    assert {worker.words for worker in told} == {f"sum 3 at {port}" for port in ports.values()}
    assert len(set(ports.values())) == 4
    assert "all 2 workers succeeded · 3 restarts," in ended.lines[-1]


def test_a_training_whose_worker_is_killed_ends_with_the_weights_of_an_undisturbed_one(
    launch: Launcher, tmp_path: Path
) -> None:
    import torch

    disturbed, undisturbed = tmp_path / "disturbed.pt", tmp_path / "undisturbed.pt"
    two, epochs = ("--nproc-per-node=2", "--max-restarts=1"), "--epochs=4"
    assert launch(*two, TRAIN, epochs, f"--save-final={undisturbed}").ends().code == 0
    saved = (f"--save-final={disturbed}", f"--checkpoint-dir={tmp_path}/checkpoints")
    job = launch(*two, PROGRAMS / "halfway.py", TRAIN, epochs, *saved)
    _, victim = job.hears(2)
    os.kill(victim.pid, signal.SIGKILL)
    ended = job.ends()
    assert ended.code == 0
    assert "resumed after epoch 2 from" in ended.out
    assert "all 2 workers succeeded · 1 restart," in ended.lines[-1]
    first, second = (torch.load(path, weights_only=True) for path in (undisturbed, disturbed))
    assert first.keys() == second.keys() and first.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
