"""How the launcher ends, by signals and by its death: in order, at once, and with nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from launches import PROGRAMS, TIMEOUT_S, Launcher, after_end_by
from leftovers import left_after
from processes import comes_true, is_alive, is_stopped

SIGNALLED = PROGRAMS / "signalled.py"
FAMILY = PROGRAMS / "family.py"
HANDLED = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]


@pytest.mark.parametrize("signum", HANDLED, ids=lambda signum: signum.name)
def test_a_signal_is_passed_on_as_the_same_and_the_workers_may_end(launch: Launcher, signum: signal.Signals) -> None:
    job = launch("--nproc-per-node=2", SIGNALLED, "end")
    job.hears(2)
    job.signal(signum)
    assert [told.words for told in job.hears(2)] == [f"got {signum.name}"] * 2
    ended = job.ends()
    assert ended.code == 128 + signum
    assert f"{signum.name}: passed on to 2 workers, up to 30 s to end; again kills them" in ended.lines
    assert ended.lines[-1].startswith(f"stopped by {signum.name} · 0 restarts, ")


def test_a_stopped_worker_obeys_a_signal_at_once(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--shutdown-timeout=1000", SIGNALLED, "end")
    for told in job.hears(2):
        os.kill(told.pid, signal.SIGSTOP)
        assert comes_true(lambda pid=told.pid: is_stopped(pid))  # type: ignore[misc]
    job.signal(signal.SIGTERM)
    assert [told.words for told in job.hears(2)] == ["got SIGTERM"] * 2
    assert job.ends().code == 143


@pytest.mark.parametrize(("first", "second"), [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)])
def test_a_second_signal_kills_at_once(launch: Launcher, first: signal.Signals, second: signal.Signals) -> None:
    job = launch("--nproc-per-node=2", "--shutdown-timeout=1000", SIGNALLED, "stay")
    job.hears(2)
    job.signal(first)
    assert [told.words for told in job.hears(2)] == [f"got {first.name}"] * 2
    job.signal(second)
    ended = job.ends()
    assert ended.code == 128 + first
    assert f"{second.name} again: 2 workers killed" in ended.lines


TRACES_EXIT = """
import ctypes, sys, time
assert ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), 0, 64) == 0
print("traces", flush=True)
time.sleep(1000)
"""
"""PTRACE_SEIZE with PTRACE_O_TRACEEXIT, and no wait: the process stops in its exit."""


@pytest.mark.parametrize("how", ["stopped", "restarted"])
def test_a_worker_that_a_debugger_stops_in_its_exit_does_not_hold_the_launcher(launch: Launcher, how: str) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", "--shutdown-timeout=1", "--grace=1", SIGNALLED, "end")
    first, held = sorted(job.hears(2), key=lambda told: told.rank)
    with subprocess.Popen([sys.executable, "-c", TRACES_EXIT, str(held.pid)], stdout=subprocess.PIPE) as debugger:
        try:
            assert debugger.stdout and debugger.stdout.readline() == b"traces\n"
            if how == "stopped":
                job.signal(signal.SIGTERM)
            else:
                os.kill(first.pid, signal.SIGKILL)
            job.says(f"local rank 1 is given up: pid {held.pid} is held in its exit by ")
            ended = job.ends()
        finally:
            debugger.kill()
    assert ended.code == (143 if how == "stopped" else 1), ended
    if how == "restarted":
        assert f"a worker that has ended (pid {held.pid}) is held by " in ended.err
    assert comes_true(lambda: not is_alive(held.pid))


def test_a_node_whose_killed_worker_is_held_for_a_while_restarts_once_it_is_dead(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=9", "--grace=1", SIGNALLED, "end")
    first, held = sorted(job.hears(2), key=lambda told: told.rank)
    with subprocess.Popen([sys.executable, "-c", TRACES_EXIT, str(held.pid)], stdout=subprocess.PIPE) as debugger:
        try:
            assert debugger.stdout and debugger.stdout.readline() == b"traces\n"
            os.kill(first.pid, signal.SIGKILL)
            job.says(f"a worker that has ended (pid {held.pid}) is held by ")
        finally:
            debugger.kill()
    job.hears(2)
    job.signal(signal.SIGTERM)
    assert job.ends().code == 143


LEAVES = PROGRAMS / "leaves.py"


def test_what_a_worker_leaves_may_end_after_the_job_has_succeeded(launch: Launcher) -> None:
    job = launch("--linger=1000", "--tee=3", LEAVES, "obeys")
    assert {told.words for told in job.hears(2)} == {"ends", "runs on"}
    job.says("local rank 0 left 1 process, up to 1000 s once the job has succeeded: python")
    job.open_gate()
    assert [told.words for told in job.hears(1)] == ["uploaded"]
    ended = job.ends()
    assert ended.code == 0 and ended.lines[-1].startswith("1 worker succeeded")


@pytest.mark.parametrize(("how", "killed"), [("obeys", False), ("ignores", True)])
def test_what_a_worker_leaves_is_told_to_end_then_killed_and_named(launch: Launcher, how: str, killed: bool) -> None:
    job = launch("--linger=0.2", LEAVES, how)
    ended = job.ends()
    assert ended.code == 0
    assert "what workers had left is told to end: python" in ended.err
    assert ("killed what workers had left: python" in ended.err) is killed
    assert "uploaded" not in [told.words for told in job.hears(2)]


def test_without_linger_what_a_worker_leaves_dies_with_it_and_nothing_is_said(launch: Launcher) -> None:
    ended = launch("--linger=0", LEAVES, "ignores").ends()
    assert ended.code == 0 and "left" not in ended.err


def test_a_failure_kills_what_a_rank_that_had_succeeded_left(launch: Launcher) -> None:
    job = launch("--linger=1000", "--nproc-per-node=2", LEAVES, "ignores")
    left = next(told for told in job.hears(2) if told.words == "runs on")
    job.says("local rank 0 left 1 process")
    job.open_gate(5)
    assert job.ends().code == 1
    assert not is_alive(left.pid)


def test_a_trainer_that_is_told_to_end_has_its_loaders_for_a_last_checkpoint(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", PROGRAMS / "saves_at_sigterm.py")
    assert [told.words for told in job.hears(2)] == ["trains"] * 2
    job.signal(signal.SIGTERM)
    assert [told.words for told in job.hears(2)] == ["saved 100"] * 2
    assert job.ends().code == 143


def test_what_a_shell_starts_has_the_grace_that_the_shell_does_not_need(launch: Launcher) -> None:
    """And it is named meanwhile. Under torchrun it has its time, too."""
    script = f"{sys.executable} {SIGNALLED} stay & wait"
    job = launch("--no-python", "--shutdown-timeout=1000", "bash", "-c", script)
    job.hears(1)
    job.signal(signal.SIGTERM)
    assert [told.words for told in job.hears(1)] == ["got SIGTERM"]
    job.says("local rank 0 has ended, and 1 process of its group runs on until SIGKILL: python")
    job.signal(signal.SIGTERM)
    assert job.ends().code == 143


def test_workers_that_do_not_end_in_the_shutdown_timeout_are_killed(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--shutdown-timeout=0.2", SIGNALLED, "stay")
    job.hears(2)
    job.signal(signal.SIGTERM)
    ended = job.ends()
    assert ended.code == 143
    assert "2 workers did not stop in time: SIGKILL" in ended.lines


def test_a_signal_while_workers_are_stopped_for_a_restart_ends_the_job(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=1", "--grace=1000", PROGRAMS / "stubborn.py")
    job.hears(1)
    job.open_gate()
    assert [told.words for told in job.hears(1)] == ["got SIGTERM"]
    job.signal(signal.SIGINT)
    assert [told.words for told in job.hears(1)] == ["got SIGINT"]
    job.signal(signal.SIGINT)
    assert job.ends().code == 130


def test_signals_that_were_not_named_are_not_handled(launch: Launcher) -> None:
    job = launch("--signals-to-handle=SIGUSR1", SIGNALLED, "end")
    job.hears(1)
    job.signal(signal.SIGTERM)
    assert job.ends().code == -signal.SIGTERM


def test_signals_that_were_named_are_handled(launch: Launcher) -> None:
    job = launch("--signals-to-handle=SIGUSR1,SIGTERM", "--no-python", "sleep", "1000")
    job.says("started in")
    job.signal(signal.SIGUSR1)
    ended = job.ends()
    assert ended.code == 128 + signal.SIGUSR1
    assert ended.lines[-1].startswith("stopped by SIGUSR1 · ")


def test_under_nohup_a_hangup_changes_nothing(launch: Launcher) -> None:
    job = launch("--nproc-per-node=2", PROGRAMS / "mute.py", under=("nohup",))
    job.hears(2)
    job.signal(signal.SIGHUP)
    job.open_gate()
    ended = job.ends()
    assert ended.code == 0
    assert ended.lines[-1].startswith("all 2 workers succeeded · ")


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGUSR1, signal.SIGABRT], ids=lambda signum: signum.name)
def test_a_launcher_that_is_killed_leaves_neither_workers_nor_their_children(
    launch: Launcher, nothing_left: str, signum: signal.Signals
) -> None:
    job = launch("--nproc-per-node=2", FAMILY, "wait")
    job.hears(6)
    job.signal(signum)
    assert job.ends().code == -signum
    assert left_after(nothing_left, TIMEOUT_S) == []


@pytest.mark.parametrize("signals", [1, 2])
def test_a_launcher_that_is_told_to_stop_leaves_nothing_either(launch: Launcher, signals: int) -> None:
    timeout = "--shutdown-timeout=0" if signals == 1 else "--shutdown-timeout=1000"
    job = launch("--nproc-per-node=2", timeout, FAMILY, "wait")
    family = job.hears(6)
    job.signal(signal.SIGTERM)
    if signals == 2:
        job.says("passed on")
        job.signal(signal.SIGTERM)
    assert job.ends().code == 143
    assert not any(is_alive(told.pid) for told in family)


MOMENTS = ["click.core", "elastic.core.group", "elastic.adapters.agent.agent", "elastic.cli.render.status"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=lambda signum: signum.name)
@pytest.mark.parametrize("module", MOMENTS)
def test_a_signal_that_comes_before_any_worker_runs_ends_it_without_a_traceback(
    launch: Launcher, module: str, signum: signal.Signals
) -> None:
    """Python tells of each import as it is done: the signal comes then, and lands in what follows."""
    job = launch("--no-python", "sleep", "1000", environment={"PYTHONPROFILEIMPORTTIME": "1"})
    job.says(f" {module}\n")
    job.signal(signum)
    ended = job.ends()
    assert ended.code in after_end_by(signum)
    assert "Traceback" not in ended.err


BLOCKING = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2})
os.execv(sys.argv[1], sys.argv[1:])
"""
UNDER_BLOCKED = (sys.executable, "-c", BLOCKING)


def test_signals_that_were_blocked_are_heard_and_block_none_of_the_workers(launch: Launcher) -> None:
    job = launch("--drain-signal=USR1", PROGRAMS / "masked.py", under=UNDER_BLOCKED)
    job.says("SIGUSR1, SIGTERM: blocked when this program began, heard from now on")
    (told,) = job.hears(1)
    assert told.words == "0" * 16
    job.signal(signal.SIGTERM)
    assert job.ends().code == 143


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_signals_that_the_caller_blocks_block_no_function(launch: Launcher, method: str) -> None:
    settings = json.dumps({"start_method": method})
    job = launch.command(*UNDER_BLOCKED, sys.executable, PROGRAMS / "launches_function.py", settings, "masked")
    (told,) = job.hears(1)
    assert told.words == "0" * 16
    job.signal(signal.SIGTERM)
    assert "SignalException: stopped by SIGTERM" in job.ends().err


def test_the_exit_code_of_a_function_is_right_though_the_caller_ignores_the_ends_of_children(launch: Launcher) -> None:
    under = ("env", "--ignore-signal=CHLD")
    settings = json.dumps({"start_method": "fork", "nproc_per_node": 2})
    job = launch.command(*under, sys.executable, PROGRAMS / "launches_function.py", settings, "ends_with", "7")
    assert "exit code 7" in job.ends().err


def test_a_launcher_in_a_standby_of_another_one_launches(launch: Launcher) -> None:
    """ELASTIC_STANDBY was inherited: each worker took itself for a standby, and waited for a rank."""
    outer = {"ELASTIC_STANDBY": "1000", "ELASTIC_START_UP": "50:-1:0:0:0", "ELASTIC_ROUND": "7"}
    job = launch(PROGRAMS / "mute.py", environment=outer)
    assert [told.round for told in job.hears(1)] == [0]
    job.open_gate()
    assert job.ends().code == 0


def test_a_signal_right_after_exec_ends_it(launch: Launcher) -> None:
    job = launch("--no-python", "sleep", "1000")
    job.signal(signal.SIGTERM)
    assert job.ends().code in after_end_by(signal.SIGTERM)
