"""Timers, stuck workers and the health check, as a job has them."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path

import pytest
from launches import PROGRAMS, TIMEOUT_S, Launcher
from processes import comes_true, is_stopped

TIMED = """
import os, signal, sys, time
from torch.distributed.elastic.timer import FileTimerClient, configure, expires
configure(FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
with expires(after=60):
    pass
if os.environ["ELASTIC_ROUND"] == "0" and os.environ["RANK"] == "1":
    with expires(after=0.2, scope="a long step"):
        signal.pause()
time.sleep(0.5)
"""


@pytest.mark.long
def test_a_timer_of_torch_s_client_that_expires_kills_the_worker_and_the_job_restarts(
    launch: Launcher, tmp_path: Path
) -> None:
    (tmp_path / "timed.py").write_text(TIMED)
    timed = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
    options = ("--nproc-per-node=2", "--max-restarts=1", f"--report={tmp_path}/report.json")
    ended = launch(*options, tmp_path / "timed.py", environment=timed).ends()
    assert ended.code == 0, ended.err
    assert "timer 'a long step" in ended.err and "was sent SIGKILL" in ended.err
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["restarts"] == 1
    assert (
        report["failures"][0]["where"]
        == f"timed.py:{TIMED.splitlines().index('        signal.pause()') + 1} in <module>"
    )
    assert list((tmp_path / "tmp").glob("watchdog_timer_*")) == []


def test_a_worker_that_hangs_in_the_kernel_is_a_failure_that_says_so(launch: Launcher, tmp_path: Path) -> None:
    job = launch(
        PROGRAMS / "sleeper.py",
        tmp_path / "pipe",
        environment={"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "0.5"},
    )
    ended = job.ends()
    assert ended.code == 1
    assert "was in uninterruptible sleep (state D)" in ended.err and "for 0.5 s, and was given up" in ended.err


def test_the_health_check_answers_for_as_long_as_the_agent_does(launch: Launcher, port: int) -> None:
    job = launch(PROGRAMS / "stay.py", environment={"TORCHELASTIC_HEALTH_CHECK_PORT": str(port)})
    job.hears(1)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=TIMEOUT_S) as answer:
        assert (answer.status, json.load(answer)["alive"]) == (200, True)
    job.signal(signal.SIGSTOP)
    assert comes_true(lambda: is_stopped(job.pid))
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=0.3)
    job.signal(signal.SIGCONT)
    job.open_gate()
    assert job.ends().code == 0
