"""A real training over two nodes, through a worker's crash and the loss of a node."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from jobs import Jobs, codes, lose
from launches import TESTS, Launcher
from processes import dies

TRAIN = TESTS.parent / "examples" / "digits" / "train.py"
pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


def test_a_training_that_loses_a_worker_and_then_a_node_ends_with_the_weights_of_an_undisturbed_one(
    launch: Launcher, tcpstore_job: Jobs, tmp_path: Path
) -> None:
    """One restart is allowed: the worker's. What the lost node's peers suffer is refunded.

    The ranks of each round meet in its store, which the first agent serves. In an etcd the same is done without torch
    (test_node_loss.py)."""
    import torch

    disturbed, undisturbed = tmp_path / "disturbed.pt", tmp_path / "undisturbed.pt"
    train = (TRAIN, "--epochs=6")
    plain = launch("--nproc-per-node=2", *train, f"--save-final={undisturbed}")
    both = tcpstore_job("2", "--max-restarts=1", own_store=True)
    slowly = (
        *train,
        "--step-delay=0.03",
        f"--save-final={disturbed}",
        f"--checkpoint-dir={tmp_path}/checkpoints",
    )
    first, second = both.nodes("ab", program=slowly)
    assert plain.ends().code == 0
    first.prints("epoch 1/6")
    (pid,) = re.findall(r"rank 1 of 2, pid (\d+), restart 0", second.prints("rank 1 of 2"))
    os.kill(int(pid), signal.SIGKILL)
    assert dies(int(pid))
    second.prints("restart 1\n")
    first.prints("resumed after epoch ")
    lose(second)
    again = both.node("c", program=slowly)
    ended = [first.ends(), again.ends()]
    assert codes(ended) == [0, 0]
    assert ended[0].out.count("resumed after epoch ") == 2
    assert "restart 1\n" in ended[1].out
    assert [both.report(name)["restarts"] for name in "ac"] == [1, 1]
    final, other = (torch.load(path, weights_only=True) for path in (undisturbed, disturbed))
    assert final.keys() == other.keys() and final.keys()
    assert all(torch.equal(final[name], other[name]) for name in final)
