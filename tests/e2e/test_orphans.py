"""Orphans below the agent: adopted, reaped when they die, and gone at the end, whatever they hide."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from launches import PROGRAMS, Launcher
from processes import comes_true, command_of, is_alive

UNMARKED = PROGRAMS / "unmarked.py"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


CALLER = """
import sys, elastic
try:
    elastic.launch(elastic.LaunchSettings(nproc_per_node=1))(sys.argv[1])
except elastic.SignalException:
    sys.exit(143)
"""
BESIDE = {
    "alone": (),
    "metrics": ("--metrics-handler=console",),
    "events": ("--event-log-handler=console",),
    "a program": (CALLER,),
}
"""What else runs in the launcher's process."""


@pytest.mark.parametrize("how", ["succeeds", "stopped"])
@pytest.mark.parametrize("beside", BESIDE)
def test_a_child_without_session_and_environment_of_its_worker_does_not_outlive_the_launcher(
    launch: Launcher, how: str, beside: str
) -> None:
    options = BESIDE[beside]
    calls = CALLER in options
    job = launch.command(sys.executable, "-c", *options, UNMARKED) if calls else launch(*options, UNMARKED)
    (told,) = job.hears(1)
    orphan = int(told.words)
    assert is_alive(orphan)
    if how == "succeeds":
        job.open_gate()
    else:
        job.signal(signal.SIGTERM)
    assert job.ends().code == (0 if how == "succeeds" else 143)
    assert not is_alive(orphan)


def test_a_standby_that_became_a_worker_leaves_no_orphan_beside_a_handler(launch: Launcher) -> None:
    job = launch("--metrics-handler=console", "--standby=1", "--max-restarts=1", UNMARKED)
    (first,) = job.hears(1)
    job.says("1 standby ready")
    os.kill(first.pid, signal.SIGKILL)
    (second,) = job.hears(1)
    job.open_gate()
    assert job.ends().code == 0
    assert not any(map(is_alive, (int(first.words), int(second.words))))


CALLS = """
import signal, subprocess, sys, threading, elastic

def other_code():
    with open(sys.argv[2]) as gate:
        children.append(subprocess.Popen(["sh", "-c", "read line; exit 3"], stdin=gate))

def on_the_main_thread(signum, frame):
    children.append(subprocess.Popen(["sleep", "1000"], env={}))

children = []
signal.signal(signal.SIGUSR2, on_the_main_thread)
threading.Thread(target=other_code).start()
elastic.launch(elastic.LaunchSettings(nproc_per_node=1))(sys.argv[1])
print(children[0].wait(), children[1].poll())
children[1].kill()
"""


def children_of_the_main_thread(pid: int) -> dict[str, int]:
    """Return the children that the kernel lists below this thread, by their last argument."""
    pids = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return {command_of(each).rstrip("\0").rpartition("\0")[2]: each for each in pids}


def test_children_that_a_program_starts_during_its_job_are_its_own(launch: Launcher, tmp_path: Path) -> None:
    """A child of a thread that has ended is listed below the main thread, as an orphan is."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "calls.py").write_text(CALLS)
    job = launch.command(sys.executable, tmp_path / "calls.py", PROGRAMS / "stay.py", gate)
    job.hears(1)
    with gate.open("w"):
        assert comes_true(lambda: "read line; exit 3" in children_of_the_main_thread(job.pid))
        of_a_thread = children_of_the_main_thread(job.pid)["read line; exit 3"]
        job.signal(signal.SIGUSR2)
        assert comes_true(lambda: "1000" in children_of_the_main_thread(job.pid))
    assert comes_true(lambda: not is_alive(of_a_thread))
    job.open_gate()
    assert job.ends().out == "3 None\n"


def test_beside_a_handler_the_server_of_the_workers_adopts_their_orphans(launch: Launcher) -> None:
    """The handler may have children, and nothing tells them from orphans."""
    job = launch("--metrics-handler=console", UNMARKED)
    (told,) = job.hears(1)
    server = parent_of(told.pid)
    assert comes_true(lambda: parent_of(int(told.words)) == server) and parent_of(server) == job.pid
    job.open_gate()
    assert job.ends().code == 0
    assert not is_alive(server)


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
