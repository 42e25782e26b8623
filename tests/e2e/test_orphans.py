"""Orphans below the agent: adopted, reaped when they die, and gone at the end, whatever they hide."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from launches import PROGRAMS, Launcher
from processes import comes_true, is_alive

UNMARKED = PROGRAMS / "unmarked.py"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


@pytest.mark.parametrize("how", ["succeeds", "stopped"])
def test_a_child_without_session_and_environment_of_its_worker_does_not_outlive_the_launcher(
    launch: Launcher, how: str
) -> None:
    job = launch(UNMARKED)
    (told,) = job.hears(1)
    orphan = int(told.words)
    assert is_alive(orphan)
    if how == "succeeds":
        job.open_gate()
    else:
        job.signal(signal.SIGTERM)
    assert job.ends().code == (0 if how == "succeeds" else 143)
    assert not is_alive(orphan)


def test_an_orphan_that_dies_leaves_no_zombie(launch: Launcher) -> None:
    job = launch(UNMARKED)
    (told,) = job.hears(1)
    orphan = int(told.words)
    assert comes_true(lambda: parent_of(orphan) == job.pid)
    os.kill(orphan, signal.SIGKILL)
    assert comes_true(lambda: not Path(f"/proc/{orphan}").exists())
    job.open_gate()
    assert job.ends().code == 0


def test_a_child_that_the_launcher_had_before_is_left_alone(launch: Launcher, tmp_path: Path) -> None:
    """As in an entry point: sidecar & exec elastic launch …"""
    begin = 'sleep 1000 >/dev/null 2>&1 & echo $! >"$0"; exec "$@"'
    job = launch(UNMARKED, under=("sh", "-c", begin, str(tmp_path / "sidecar")))
    job.hears(1)
    sidecar = int((tmp_path / "sidecar").read_text())
    job.open_gate()
    assert job.ends().code == 0
    assert is_alive(sidecar)
    os.kill(sidecar, signal.SIGKILL)
