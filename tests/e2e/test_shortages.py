"""Hosts that lack threads or descriptors for a moment: such a moment costs no job."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from launches import ELASTIC, PROGRAMS, TIMEOUT_S, Launcher

SCARCE = PROGRAMS / "scarce.py"
HUGE_STACKS = 'ulimit -v 4000000; ulimit -s 8000000; exec "$@"'
"""Threads whose stacks do not fit into the address space."""


@contextmanager
def without_descriptors(pid: int) -> Iterator[None]:
    """Meanwhile this process can open no descriptor: EMFILE."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_workers_that_cannot_be_started_for_now_cost_restarts_and_not_the_job(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=9", SCARCE, "1")
    job.hears(2)
    with without_descriptors(job.pid):
        job.open_gate(0)
        job.says("this node tries again in the next round")
    again = job.hears(2)
    job.open_gate(again[0].round)
    ended = job.ends()
    assert ended.code == 0, ended.err
    assert "cannot start the workers: too many open files" in ended.err
    assert again[0].round >= 2 and "Traceback" not in ended.err


def test_what_the_host_lacks_for_a_moment_is_tried_again_within_the_round(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", SCARCE, "1")
    job.hears(2)
    with without_descriptors(job.pid):
        job.open_gate(0)
        job.says("failed: exit code 3")
    (again, _) = job.hears(2)
    job.open_gate(again.round)
    assert job.ends().code == 0 and again.round == 1


def test_a_job_that_has_succeeded_ends_with_0_whatever_its_clean_up_lacks(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", SCARCE, "0")
    job.hears(2)
    with without_descriptors(job.pid):
        job.open_gate(0)
        ended = job.ends()
    assert ended.code == 0, ended.err
    assert "all 2 workers succeeded" in ended.err and "Traceback" not in ended.err


def test_a_host_without_a_free_thread_is_told_in_one_line() -> None:
    command = ["sh", "-c", HUGE_STACKS, "sh", ELASTIC, "launch", "--nproc-per-node=1", "--no-python", "true"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "no agent can run on this host" in ended.stderr and "thread" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
