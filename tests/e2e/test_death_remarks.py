"""Deaths that the kernel or a stranger brings about, for real: named as what they are, on the console and in the report."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from launches import PROGRAMS, Launch, Launcher

from elastic.adapters.workers.cgroups import counter

LIMIT = 160 << 20
"""Enough for the launcher and two small workers."""


def failures(job: Launch, file: Path) -> list[dict[str, Any]]:
    assert job.ends().code == 1
    found: list[dict[str, Any]] = json.loads(file.read_text())["failures"]
    return found


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A memory cgroup of ours, with a limit."""
    here = counter()
    if here is None or not here.in_cgroup:
        pytest.skip("NO MEMORY CGROUP HERE: that an out-of-memory kill is named as such is not tested")
    folder = here.file.parent / f"elastic-test-{os.getpid()}"
    limit = "memory.limit_in_bytes" if here.file.name == "memory.oom_control" else "memory.max"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(LIMIT))
        for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            if (folder / swap).exists():
                (folder / swap).write_text(str(LIMIT) if "memsw" in swap else "0")
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()
        pytest.skip(f"NO MEMORY CGROUP MAY BE MADE HERE ({error}): an out-of-memory kill is not tested")
    yield folder
    folder.rmdir()


def test_a_worker_that_is_killed_for_want_of_memory_is_told_as_such(
    launch: Launcher, cgroup: Path, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    enter = ("sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$0" "$@"')
    job = launch("--nproc-per-node=2", f"--report={file}", PROGRAMS / "hungry.py", under=enter)
    (failure,) = failures(job, file)
    assert (failure["rank"], failure["exit_code"]) == (1, -9)
    assert failure["remark"] == "out of memory (cgroup limit 160 MiB, oom_kill +1)"
    assert f": killed by SIGKILL: {failure['remark']}\n" in job.account()


def test_a_worker_that_is_killed_from_outside_is_told_as_such(launch: Launcher, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    job = launch("--nproc-per-node=2", f"--report={file}", PROGRAMS / "mute.py")
    _, victim = job.hears(2)
    os.kill(victim.pid, signal.SIGKILL)
    (failure,) = failures(job, file)
    if counter() is None:
        pytest.skip("NO COUNT OF OUT-OF-MEMORY KILLS HERE: who sent SIGKILL cannot be told")
    assert (failure["pid"], failure["remark"]) == (
        victim.pid,
        "sent by another process (not elastic, not the kernel's out-of-memory killer)",
    )


def test_of_a_worker_that_kills_itself_only_what_is_known_is_told(launch: Launcher, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    (failure,) = failures(
        launch("--nproc-per-node=2", f"--report={file}", PROGRAMS / "crash.py", "signal:9", "9"), file
    )
    assert failure["exit_code"] == -9
    assert failure["remark"].startswith(("sent by another process (not elastic", "not sent by elastic"))


def test_a_core_dump_is_told_with_its_place(launch: Launcher, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    enter = ("sh", "-c", f'cd {tmp_path} && ulimit -c unlimited && exec "$0" "$@"')
    job = launch("--nproc-per-node=2", f"--report={file}", PROGRAMS / "crash.py", "signal:11", "9", under=enter)
    job.says("failed")
    (failure,) = failures(job, file)
    assert failure["exit_code"] == -11
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    if pattern.startswith("|"):
        assert failure["remark"].startswith("core dumped to /")
    elif "/" not in pattern:
        (place,) = (path for path in tmp_path.iterdir() if path.name.startswith("core"))
        assert failure["remark"] == f"core dumped: {place}"
    else:
        assert failure["remark"].startswith("core dumped")
