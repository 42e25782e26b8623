"""How the launcher ends, by signals and by its death: in order, at once, and with nothing left."""

from __future__ import annotations

import os
import signal

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


MOMENTS = ["click.core", "elastic.core.group", "elastic.adapters.agent.agent", "elastic.cli.launch"]


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


def test_a_signal_right_after_exec_ends_it(launch: Launcher) -> None:
    job = launch("--no-python", "sleep", "1000")
    job.signal(signal.SIGTERM)
    assert job.ends().code in after_end_by(signal.SIGTERM)
