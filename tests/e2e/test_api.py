"""A program that calls `elastic.launch`, from outside: its own module's function, and nothing left however it ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

import pytest
from launches import PROGRAMS, TIMEOUT_S, Launch, Launcher
from leftovers import left_after
from processes import dies

from elastic.adapters.workers.function_call import StartMethod

Start = Callable[[str], Launch]


@pytest.fixture
def start(launch: Launcher, tmp_path: Path) -> Iterator[Start]:
    folder = tmp_path / "stage"
    folder.mkdir()
    with ExitStack() as stack:

        def start(method: str) -> Launch:
            command = [sys.executable, str(PROGRAMS / "launches_itself.py"), method]
            return Launch(command, launch.environment, folder, stack)

        yield start


@pytest.mark.parametrize("method", get_args(StartMethod))
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM], ids=lambda signum: signum.name)
def test_neither_workers_nor_their_children_nor_what_forked_them_outlive_the_program(
    start: Start, nothing_left: str, method: str, signum: signal.Signals
) -> None:
    job = start(method)
    family = job.hears(6)
    assert sorted(told.words for told in family) == ["child"] * 2 + ["session"] * 2 + ["worker"] * 2
    job.signal(signum)
    ended = job.ends()
    assert all(dies(told.pid) for told in family)
    assert left_after(nothing_left, TIMEOUT_S) == []
    if signum == signal.SIGTERM:
        assert ended.err.splitlines()[-1].startswith("elastic.cli.api.exceptions.SignalException: stopped by SIGTERM")
