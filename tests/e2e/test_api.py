"""A program that calls `elastic.launch`, from outside: its own module's function, and nothing left however it ends."""

from __future__ import annotations

import signal
import sys
from typing import get_args

import pytest
from launches import PROGRAMS, TIMEOUT_S, Launcher
from leftovers import left_after
from processes import dies

from elastic.adapters.workers.start.function_call import StartMethod


@pytest.mark.parametrize("method", get_args(StartMethod))
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM], ids=lambda signum: signum.name)
def test_neither_workers_nor_their_children_nor_what_forked_them_outlive_the_program(
    launch: Launcher, nothing_left: str, method: str, signum: signal.Signals
) -> None:
    job = launch.command(sys.executable, PROGRAMS / "launches_itself.py", method)
    family = job.hears(6)
    assert sorted(told.words for told in family) == ["child"] * 2 + ["session"] * 2 + ["worker"] * 2
    job.signal(signum)
    ended = job.ends()
    assert all(dies(told.pid) for told in family)
    assert left_after(nothing_left, TIMEOUT_S) == []
    if signum == signal.SIGTERM:
        assert ended.err.splitlines()[-1].startswith("elastic.cli.api.exceptions.SignalException: stopped by SIGTERM")
