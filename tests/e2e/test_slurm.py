"""The recipes for Slurm run as the pages in docs have them, on a cluster of three nodes (`make slurm`).

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
SPARES = ROOT / "examples/slurm/spares.sh"

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
    script = smaller(script)
    return script if script.startswith("#!") else f"#!/bin/bash\n#SBATCH --nodes=2\n{script}"


def smaller(script: str) -> str:
    for large, small in SMALLER.items():
        script = script.replace(large, small)
    return script


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


def queued(slurm: Cluster, folder: Path, script: str, *arguments: str) -> Job:
    return Job(slurm, folder, slurm.submits(script, folder, *arguments))


def hosts(job: Job) -> set[str]:
    """Return the hosts of the last round that the workers of this job have told of, and none if one is missing."""
    lines = [line.split() for line in job.told() if line.startswith(f"{job.number}.0 ")]
    last = max((int(round) for _, round, *_ in lines), default=0)
    found = {host for _, round, _, _, host, _ in lines if int(round) == last}
    return found if len(found) == 2 else set()


def unfit_of(job: Job) -> str:
    """Wait for the host that fails; return its name."""
    bad = job.folder / "bad"
    assert comes_true(lambda: bad.exists() and bad.read_text() != "", TIMEOUT_S), job.output
    return bad.read_text()


NAMES = {"n1", "n2", "n3"}


def test_a_node_that_fails_again_and_again_leaves_and_a_spare_takes_its_place(slurm: Cluster, tmp_path: Path) -> None:
    job = queued(slurm, tmp_path, smaller(SPARES.read_text()), str(PROGRAMS / "slurm.py"), "fails")
    fit = NAMES - {unfit_of(job)}
    assert comes_true(lambda: hosts(job) == fit, TIMEOUT_S), (job.told(), job.output)
    assert job.ends() == "COMPLETED", job.output


def test_a_job_with_too_few_nodes_left_is_queued_again_without_the_one_that_left(
    slurm: Cluster, tmp_path: Path
) -> None:
    """It has no spare, and waits less than ten minutes for one."""
    script = smaller(SPARES.read_text()).replace("--nodes=3", "--nodes=2").replace("false ", "false,join_timeout=20 ")
    job = queued(slurm, tmp_path, script, str(PROGRAMS / "slurm.py"), "fails")
    fit = NAMES - {unfit_of(job)}
    assert comes_true(lambda: "Submitted batch job " in job.output, TIMEOUT_S), (job.told(), job.output)
    again = Job(slurm, tmp_path, job.output.partition("Submitted batch job ")[2].split()[0])
    assert comes_true(lambda: hosts(again) == fit, TIMEOUT_S), (job.told(), job.output)
    assert again.ends() == "COMPLETED"
    assert slurm.state(job.number) == "FAILED"


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
