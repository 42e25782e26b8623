"""Uninterruptible sleep, for real: a process that waits in vfork for a child that waits for a pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest
from attrs import frozen
from launches import PROGRAMS
from processes import TIMEOUT_S, comes_true, cut_name

from elastic.adapters import threads
from elastic.adapters.workers.watch.unkillable import LOOKS, StuckWatch, state, stuck

AFTER_S = 0.4
Told = tuple[int, int, str]


@pytest.fixture
def sleeper(nothing_left: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Sleeps so from the start, until the pipe is opened."""
    with subprocess.Popen(
        [sys.executable, PROGRAMS / "sleeper.py", tmp_path / "pipe"], start_new_session=True, stderr=subprocess.DEVNULL
    ) as process:
        assert comes_true(lambda: state(process.pid) == "D")
        yield process
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def watch() -> Iterator[tuple[StuckWatch, SimpleQueue[Told]]]:
    told: SimpleQueue[Told] = SimpleQueue()
    made = StuckWatch(AFTER_S, lambda *words: told.put(words), threads.shown)
    yield made, told
    made.close()


def test_a_worker_that_sleeps_so_for_too_long_is_told_of_with_the_place_in_the_kernel(
    watch: tuple[StuckWatch, SimpleQueue[Told]], sleeper: subprocess.Popen[bytes]
) -> None:
    looks, told = watch
    began_at = time.monotonic()
    looks.follow({sleeper.pid: 3, os.getpid(): 4, 1 << 22: 5})
    rank, pid, text = told.get(timeout=TIMEOUT_S)
    assert (rank, pid) == (3, sleeper.pid) and time.monotonic() - began_at >= AFTER_S
    where = Path(f"/proc/{pid}/wchan").read_text().strip("0")
    assert text == stuck(pid, AFTER_S) and (f"(state D) in {where} for" in text if where else "(state D) for" in text)


@frozen
class Paper:
    """A /proc of paper, with one process. Each look at it waits until it is said what is seen."""

    folder: Path

    @property
    def stat(self) -> Path:
        return self.folder / "7" / "stat"

    def make(self) -> None:
        self.stat.parent.mkdir()
        os.mkfifo(self.stat)

    def show(self, letter: str) -> None:
        self.stat.write_text(f"7 (a ) b) {letter} 1 1")

    def close(self) -> None:
        """Whoever looks now sees nothing, and nobody looks again."""
        descriptor = os.open(self.stat, os.O_RDWR)
        self.stat.unlink()
        os.close(descriptor)


@pytest.fixture
def paper(tmp_path: Path) -> Iterator[tuple[Paper, StuckWatch, SimpleQueue[Told]]]:
    told: SimpleQueue[Told] = SimpleQueue()
    made = Paper(tmp_path)
    made.make()
    watch = StuckWatch(AFTER_S, lambda *words: told.put(words), threads.shown, tmp_path)
    yield made, watch, told
    watch.follow({})
    made.close()
    watch.close()


def test_who_wakes_or_whose_watch_stood_still_is_not_stuck_and_who_is_stuck_is_told_of_once(
    paper: tuple[Paper, StuckWatch, SimpleQueue[Told]],
) -> None:
    proc, watch, told = paper
    watch.follow({7: 3})
    proc.show("D")
    assert comes_true(lambda: watch._looks == {7: 1})
    time.sleep(
        2 * AFTER_S
    )  # as a launcher that was stopped, or whose host was: the worker has not slept longer for that
    proc.show("D")
    assert comes_true(lambda: watch._looks == {7: 2})
    proc.show("S")
    assert comes_true(lambda: not watch._looks)
    for looks in range(1, LOOKS + 1):
        proc.show("D")
        assert comes_true(lambda looks=looks: watch._looks == {7: looks})  # type: ignore[misc]
    assert told.empty()
    proc.show("D")
    assert told.get(timeout=TIMEOUT_S) == (3, 7, stuck(7, AFTER_S, proc.folder))
    for _ in range(LOOKS + 2):
        before = watch._looks
        proc.show("D")
        assert comes_true(lambda before=before: watch._looks is not before)  # type: ignore[misc]
    assert told.empty()


def test_a_process_that_is_gone_has_no_state_and_no_place(tmp_path: Path) -> None:
    assert state(1 << 22) is None
    assert stuck(1 << 22, 2.0) == "pid 4194304 was in uninterruptible sleep (state D) for 2 s, and was given up"


def test_a_process_whose_name_is_cut_in_a_character_is_looked_at_like_any() -> None:
    with cut_name():
        assert state(os.getpid()) == "R"
