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
from launches import PROGRAMS
from processes import TIMEOUT_S, comes_true

from elastic.adapters.workers.stuck import StuckWatch, state, stuck

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
    made = StuckWatch(AFTER_S, lambda *words: told.put(words))
    yield made, told
    made.close()


def test_a_worker_that_sleeps_so_for_too_long_is_told_of_once_with_the_place_in_the_kernel(
    watch: tuple[StuckWatch, SimpleQueue[Told]], sleeper: subprocess.Popen[bytes]
) -> None:
    looks, told = watch
    began_at = time.monotonic()
    looks.follow({sleeper.pid: 3, os.getpid(): 4, 1 << 22: 5})
    rank, pid, text = told.get(timeout=TIMEOUT_S)
    assert (rank, pid) == (3, sleeper.pid) and time.monotonic() - began_at >= AFTER_S
    where = Path(f"/proc/{pid}/wchan").read_text().strip("0")
    assert text == stuck(pid, AFTER_S) and (f"(state D) in {where} for" in text if where else "(state D) for" in text)
    time.sleep(AFTER_S)  # a second telling would have come by now
    assert told.empty()


def test_one_that_wakes_in_between_is_not_stuck(tmp_path: Path) -> None:
    """A /proc of paper, which says something else at each look."""
    told: SimpleQueue[Told] = SimpleQueue()
    (tmp_path / "7").mkdir()
    stat = tmp_path / "7" / "stat"
    watch = StuckWatch(AFTER_S, lambda *words: told.put(words), tmp_path)
    try:
        stat.write_text("7 (a ) b) S 1 1")
        watch.follow({7: 0})
        ends_at, letters = time.monotonic() + 4 * AFTER_S, ["D", "S"]
        while time.monotonic() < ends_at:
            letters.reverse()
            stat.write_text(f"7 (a ) b) {letters[0]} 1 1")
            seen = letters[0] == "D"
            assert comes_true(lambda seen=seen: bool(watch._since) == seen)  # type: ignore[misc]
        assert told.empty()
    finally:
        watch.close()


def test_a_process_that_is_gone_has_no_state_and_no_place(tmp_path: Path) -> None:
    assert state(1 << 22) is None
    assert stuck(1 << 22, 2.0) == "pid 4194304 was in uninterruptible sleep (state D) for 2 s, and was given up"
