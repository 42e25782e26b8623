"""A training over two nodes, through a worker's crash and the loss of a node."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import DEFAULT_RESOLVER, Jobs, codes, kill, lose, run, worlds
from launches import PROGRAMS

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


def test_a_training_that_loses_a_worker_and_then_a_node_does_each_step_once(job: Jobs, tmp_path: Path) -> None:
    """One restart is allowed: the worker's. What the lost node's peers suffer is refunded.

    The ranks of each round meet in its store, which the first agent serves. If the nodes meet in an etcd, rank 0 serves it.
    The training of examples/digits does, too, in test_torch.py."""
    both = job("2", "--max-restarts=1", own_store=True)
    program = (PROGRAMS / "resuming.py", tmp_path)
    first, second = both.nodes("ab", program=program, under=DEFAULT_RESOLVER)

    assert worlds(run([first, second])) == {(0, "from 0")}
    (stays,) = second.hears(1)
    assert stays.words == "stays at 3"
    kill(stays.pid)
    assert worlds(run([first, second])) == {(1, "from 3")}
    assert [told.words for told in second.hears(1)] == ["stays at 6"]
    lose(second)
    third = both.node("c", program=program)
    assert worlds(run([first, third])) == {(2, "from 6")}
    assert worlds(run([first, third])) == {(2, "ends with -32.0")}
    assert codes([first.ends(), third.ends()]) == [0, 0]
    assert [both.report(name)["restarts"] for name in "ac"] == [1, 1]
