"""A file whose appearance drains a node."""

from __future__ import annotations

import threading
from pathlib import Path

from elastic.adapters import threads
from elastic.adapters.agent.drain_file import DrainFile

WAIT_S = 60.0


def test_it_is_told_once_when_the_file_appears(tmp_path: Path) -> None:
    file, told = tmp_path / "maintenance", threading.Semaphore(0)
    look = DrainFile(str(file), told.release, threads.shown, every_s=0.01)
    look.start()
    assert not told.acquire(timeout=0.1)
    file.symlink_to("nowhere")
    assert told.acquire(timeout=WAIT_S)
    look.close()


def test_a_file_that_is_there_already_counts(tmp_path: Path) -> None:
    (tmp_path / "maintenance").touch()
    told = threading.Semaphore(0)
    look = DrainFile(str(tmp_path / "maintenance"), told.release, threads.shown)
    look.start()
    assert told.acquire(timeout=WAIT_S)
    look.close()
