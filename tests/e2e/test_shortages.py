"""Hosts that lack threads or descriptors for a moment: such a moment costs no job."""

from __future__ import annotations

import re
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest
from launches import ELASTIC, PROGRAMS, TIMEOUT_S, Launcher
from wrapped import comes_to, job

SCARCE = PROGRAMS / "scarce.py"
THREADLESS = PROGRAMS / "threadless.py"
NO_THREAD = "this host has no thread left for it (see ulimit -u, and pids.max of the container)"
HUGE_STACKS = 'ulimit -v 4000000; ulimit -s 8000000; exec "$@"'
"""Threads whose stacks do not fit into the address space."""

FEW_DESCRIPTORS = 'ulimit -n 7; exec "$@"'
"""Enough to listen, and too few to start a process."""


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
    assert "cannot start the workers: too many open files" in ended.err, ended.err
    assert again[0].round >= 2 and "Traceback" not in ended.err


def test_what_the_host_lacks_for_a_moment_is_tried_again_within_the_round(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", SCARCE, "1")
    job.hears(2)
    with without_descriptors(job.pid):
        job.open_gate(0)
        job.says("exit code 3 after")
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


def test_standbys_end_no_agent_that_has_too_few_descriptors(tmp_path: Path) -> None:
    script, said = tmp_path / "train.py", set[str]()
    script.touch()
    for limit in count(13, 3):
        command = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", ELASTIC, "launch", "--standby", str(script)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert "Traceback" not in ended.stderr
        if ended.returncode == 0:
            break
        said.update(re.findall("cannot start the workers: too many open files", ended.stderr))
    assert said


def test_a_host_without_a_free_thread_is_told_in_one_line() -> None:
    command = ["sh", "-c", HUGE_STACKS, "sh", ELASTIC, "launch", "--nproc-per-node=1", "--no-python", "true"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "no agent can run on this host" in ended.stderr and "thread" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


STORE = ("store", "--endpoint=localhost:0")
AGENT = ("launch", "--nnodes=1", "--rdzv-endpoint=localhost:0", "--no-python", "true")


@pytest.mark.parametrize(
    ("limit", "command", "reason"),
    [
        (HUGE_STACKS, STORE, NO_THREAD),
        (FEW_DESCRIPTORS, STORE, "too many open files"),
        (FEW_DESCRIPTORS, AGENT, "too many open files"),
    ],
)
def test_a_host_that_cannot_start_a_store_is_told_in_one_line(
    limit: str, command: tuple[str, ...], reason: str
) -> None:
    ended = subprocess.run(
        ["sh", "-c", limit, "sh", ELASTIC, *command], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert reason in ended.stderr.lower() and len(ended.stderr.splitlines()) == 1, ended.stderr


def test_a_wrapped_call_that_no_thread_is_left_for_says_so(launch: Launcher) -> None:
    running = job(launch, "start", ranks=1, program=THREADLESS)
    comes_to(running, f"0 raised NoThread [Errno 11] elastic-supervisor: {NO_THREAD}")
    assert running.ends().code == 1


def test_a_rank_that_no_thread_is_left_for_the_abort_of_leaves_and_the_others_go_on(launch: Launcher) -> None:
    running = job(launch, "abort", program=THREADLESS)
    comes_to(running, "0 in 0 of 2", "1 in 0 of 2")
    running.open_gate()
    last = f"last error here: NoThread: [Errno 11] elastic-abort: {NO_THREAD}"
    comes_to(running, f"1 raised Stopped rank 1: abort failed ({last})", "0 in 1 of 1")
    assert running.ends().code == 0


def test_a_killed_rank_is_missed_though_its_monitor_has_no_thread_to_speak_with(launch: Launcher) -> None:
    running = job(launch, "monitor", program=THREADLESS)
    comes_to(running, "0 in 0 of 2", "1 in 0 of 2")
    running.open_gate()
    comes_to(running, "0 in 1 of 1")
    assert running.ends().code == 0
