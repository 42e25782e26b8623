"""Where output goes when somebody does not do his part: a terminal that reads nothing, a child that holds on to the pipe."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import frozen
from launches import PROGRAMS, Launcher
from processes import comes_true

LOUD = PROGRAMS / "loud.py"


@frozen
class Terminal:
    """A pipe that is read when the test says so, or never."""

    path: Path
    _read: int

    def under(self) -> tuple[str, ...]:
        """What makes it stdout and stderr of a command."""
        return "sh", "-c", 'exec "$@" >"$0" 2>&1', str(self.path)

    def is_full(self) -> bool:
        """It takes no more than a few bytes."""
        write = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(write, b"x" * 4096)
        except BlockingIOError:
            return True
        finally:
            os.close(write)
        return False

    def read(self) -> bytes:
        return os.read(self._read, 1 << 20)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    os.mkfifo(tmp_path / "terminal")
    read = os.open(tmp_path / "terminal", os.O_RDWR)
    os.set_blocking(read, False)
    yield Terminal(tmp_path / "terminal", read)
    os.close(read)


def lines_of(logs: Path) -> Callable[[], int]:
    """How many lines of rank 0 are in its file."""

    def count() -> int:
        return sum(file.read_bytes().count(b"\n") for file in logs.rglob("attempt_0/0/stdout.log"))

    return count


def test_a_prompt_of_a_teed_worker_is_seen(launch: Launcher) -> None:
    job = launch("--tee=3", "--no-python", "sh", "-c", "printf 'name? ' >&2; exec sleep 1000")
    job.says("[default0]:name? ")
    job.signal(signal.SIGTERM)
    assert job.ends().code == 143


def test_what_the_launcher_says_behind_a_prompt_begins_a_line(launch: Launcher) -> None:
    script = "trap '' TERM; printf 'name? ' >&2; exec sleep 1000"
    job = launch("--tee=3", "--shutdown-timeout=1", "--no-python", "sh", "-c", script)
    job.says("[default0]:name? ")
    job.signal(signal.SIGTERM)
    lines = job.ends().err.splitlines()
    assert "[default0]:name? " in lines, lines
    at = lines.index("[default0]:name? ")
    assert re.match(r"\d\d:\d\d:\d\d elastic  ", lines[at + 1]), lines


def test_a_terminal_that_reads_nothing_keeps_no_job_from_succeeding_and_the_files_are_whole(
    launch: Launcher, terminal: Terminal, tmp_path: Path
) -> None:
    job = launch("--tee=3", "--log-dir", tmp_path / "logs", LOUD, "6000", under=terminal.under())
    job.hears(1)
    assert job.ends().code == 0
    assert lines_of(tmp_path / "logs")() == 6000


def test_a_terminal_that_reads_nothing_makes_a_loud_worker_wait_but_not_the_launcher(
    launch: Launcher, terminal: Terminal, tmp_path: Path
) -> None:
    job = launch("--tee=3", "--log-dir", tmp_path / "logs", LOUD, "1000000", "stay", under=terminal.under())
    (worker,) = job.hears(1)
    assert comes_true(lambda: terminal.is_full() and lines_of(tmp_path / "logs")() > 5_000)
    assert worker.words == "begins" and lines_of(tmp_path / "logs")() < 100_000
    job.signal(signal.SIGTERM)
    assert job.ends().code == 128 + signal.SIGTERM


def test_what_the_launcher_says_of_itself_does_not_wait_for_a_terminal(
    launch: Launcher, terminal: Terminal, tmp_path: Path
) -> None:
    job = launch("--max-restarts=1", PROGRAMS / "stay.py", under=terminal.under())
    (first,) = job.hears(1)
    assert comes_true(terminal.is_full)
    os.kill(first.pid, signal.SIGKILL)
    (second,) = job.hears(1)
    assert second.round == 1
    said = b""
    while terminal.is_full() or b"restart 1 of 1" not in said:
        said += terminal.read()
    job.open_gate()
    assert job.ends().code == 0


HOLDS = """
import subprocess, stage
subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("last words", flush=True)
stage.tell("holds")
"""


def test_a_child_that_keeps_the_pipe_open_keeps_neither_the_job_nor_its_last_words(
    launch: Launcher, tmp_path: Path
) -> None:
    script = tmp_path / "holds.py"
    script.write_text(HOLDS)
    job = launch("--tee=3", "--log-dir", tmp_path / "logs", script)
    job.hears(1)
    ended = job.ends()
    assert (ended.code, ended.out) == (0, "[default0]:last words\n")
    assert lines_of(tmp_path / "logs")() == 1


def test_bytes_that_are_no_text_reach_file_and_console_as_they_are(launch: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "bytes.py"
    script.write_text(r"import sys; sys.stdout.buffer.write(b'a\xff\xfe\n\x00\xc3'); sys.stdout.flush()")
    ended = launch("--tee=1", "--log-dir", tmp_path / "logs", script).ends()
    assert ended.code == 0
    assert ended.out == b"[default0]:a\xff\xfe\n[default0]:\x00\xc3\n".decode(errors="replace")
    (file,) = (tmp_path / "logs").rglob("stdout.log")
    assert file.read_bytes() == b"a\xff\xfe\n\x00\xc3"
