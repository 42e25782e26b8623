"""The recipes for Slurm run as the pages in docs have them, on a cluster of two nodes (`make slurm`).

They take a minute, most of which Slurm waits before it looks at a job's time. What a recipe asks of a node's devices is left
out, and its time is shorter: SMALLER.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from attrs import frozen
from launches import PROGRAMS
from processes import comes_true
from slurmlab import Cluster, cluster

ROOT = Path(__file__).parents[2]
SMALLER = {
    " --gpus-per-node=8": "",
    "--nproc-per-node=gpu": "--nproc-per-node=1",
    "--time=1-0": "--time=1",
    "--signal=USR1@120": "--signal=USR1@55",
    "train.py": str(PROGRAMS / "slurm.py"),
}
TIMEOUT_S = 150.0

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif("ELASTIC_SLURM" not in os.environ, reason="takes a minute and a Slurm; write: make slurm"),
]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    with cluster() as made:
        yield made


def recipe(page: str, word: str) -> str:
    """Return the script of a page in which this word stands, for a small cluster."""
    blocks = re.findall(r"(?:^    .*\n)+", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    (script,) = [dedent(block) for block in blocks if "srun" in block and word in block]
    for large, small in SMALLER.items():
        script = script.replace(large, small)
    return script if script.startswith("#!") else f"#!/bin/bash\n#SBATCH --nodes=2\n{script}"


@frozen
class Job:
    slurm: Cluster
    folder: Path
    number: str

    def told(self, name: str = "told") -> list[str]:
        """Return what the workers have told: the job's name, round, rank, size, node and restarts of each."""
        path = self.folder / name
        return sorted(path.read_text().splitlines()) if path.exists() else []

    def tells(self, *lines: str) -> None:
        expected = sorted(f"{self.number}.{line}" for line in lines)
        assert comes_true(lambda: self.told() == expected, TIMEOUT_S), (self.told(), self.output)

    def ends(self) -> str:
        """Let the workers succeed; return how the job ended."""
        (self.folder / "go").touch()
        assert comes_true(lambda: self.slurm.state(self.number) not in ("RUNNING", "COMPLETING"), TIMEOUT_S)
        return self.slurm.state(self.number)

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()


def queued(slurm: Cluster, folder: Path, script: str) -> Job:
    return Job(slurm, folder, slurm.submits(script, folder))


@pytest.mark.parametrize("page", ["operate.md", "migrate.md"])
def test_two_nodes_meet_and_their_ranks_follow_slurm_s_numbers(slurm: Cluster, tmp_path: Path, page: str) -> None:
    job = queued(slurm, tmp_path, recipe(page, "--nnodes=2 "))
    job.tells("0 0 0 2 n1 0", "0 0 1 2 n2 0")
    assert job.ends() == "COMPLETED", job.output


def test_ranks_follow_slurm_s_numbers_when_the_first_node_comes_last(slurm: Cluster, tmp_path: Path) -> None:
    """The store is a command of its own here, so the second node may be the first that arrives."""
    script = recipe("launch.md", "elastic store")
    late = "bash -c 'until [ $SLURM_NODEID != 0 ] || elastic status --rdzv-endpoint=n1 --rdzv-id=$SLURM_JOB_ID.0; do :; done"
    late = f'{late}; exec "$@"\' -'
    job = queued(slurm, tmp_path, script.replace("elastic launch", f"{late} elastic launch"))
    job.tells("0 0 0 2 n1 0", "0 0 1 2 n2 0")
    assert job.ends() == "COMPLETED", job.output


def test_a_job_goes_on_without_a_node_that_is_set_down(slurm: Cluster, tmp_path: Path) -> None:
    """It has more time than this test takes, so Slurm's signal does not come."""
    job = queued(slurm, tmp_path, recipe("operate.md", "--nnodes=1:2 ").replace("--time=1 ", "--time=20 "))
    both = "0 0 0 2 n1 0", "0 0 1 2 n2 0"
    job.tells(*both)
    slurm.asks("scontrol", "update", "nodename=n2", "state=down", "reason=test")
    job.tells(*both, "0 1 0 1 n1 0")
    job.ends()
    assert "1 worker succeeded · 0 restarts" in job.output
    assert comes_true(slurm.is_idle, TIMEOUT_S)


def test_slurm_s_signal_drains_and_the_job_is_queued_again_under_its_own_name(slurm: Cluster, tmp_path: Path) -> None:
    job = queued(slurm, tmp_path, recipe("operate.md", "--nnodes=1:2 "))
    first = "0 0 0 2 n1 0", "0 0 1 2 n2 0"
    job.tells(*first)
    assert comes_true(lambda: job.told("saved") == job.told(), TIMEOUT_S), job.output
    slurm.starts_again_at_once(job.number)
    job.tells(*first, "1 0 0 2 n1 0", "1 0 1 2 n2 0")
    assert job.ends() == "COMPLETED", job.output
