"""Stacks of Python processes that write none themselves: by the real py-spy, and what is made of its output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import comes_true, is_stopped

from elastic.adapters.workers.messages.stack_text import main_thread, place, threads
from elastic.adapters.workers.watch import py_spy
from elastic.adapters.workers.watch.py_spy import text_of, texts_of
from elastic.adapters.workers.watch.stacks import see

LONG_S = 600.0
PROGRAM = """
import sys, threading, time
def beside():
    threading.Event().wait()
threading.Thread(target=beside, daemon=True).start()
class Odd:
    def step(self, secret):
        print("ready", flush=True)
        while True:
            time.sleep(1000)
Odd().step("hunter2")
"""
needs_it = pytest.mark.skipif(py_spy.py_spy() is None, reason="there is no py-spy here; write: pip install py-spy")


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout and process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def readable(pid: int) -> bool:
    """Return True if the kernel lets us read this process at all."""
    try:
        with open(f"/proc/{pid}/mem", "rb"):
            return True
    except OSError:
        return False


def frame(name: str = "step", file: str = "/a/train.py", line: object = 3) -> dict[str, Any]:
    return {"name": name, "filename": file, "line": line, "locals": [{"name": "secret", "repr": "hunter2"}]}


def said(*threads: tuple[int, list[dict[str, Any]]]) -> bytes:
    return json.dumps(
        [{"os_thread_id": tid, "thread_id": tid + 1, "frames": frames} for tid, frames in threads]
    ).encode()


@needs_it
@pytest.mark.parametrize("stopped", [False, True], ids=["runs", "stopped"])
def test_a_python_that_writes_no_stacks_is_read_and_left_as_it_is(
    worker: subprocess.Popen[bytes], stopped: bool
) -> None:
    if not readable(worker.pid):
        pytest.skip("the kernel lets nobody read another process's memory here")
    hangs = "at train.py:10 in step"
    assert comes_true(lambda: place(main_thread(texts_of([worker.pid], LONG_S).get(worker.pid, "")).frames) == hangs)
    if stopped:
        os.kill(worker.pid, signal.SIGSTOP)
        assert comes_true(lambda: is_stopped(worker.pid))
    assert comes_true(lambda: worker.pid in texts_of([worker.pid], LONG_S))
    text = texts_of([worker.pid], LONG_S)[worker.pid]
    assert place(main_thread(text).frames) == hangs and "hunter2" not in text
    assert [thread.frames[-1].function for thread in threads(text)] == ["_bootstrap", "<module>"]
    expected = "at train.py:10 in step" + (", stopped (SIGSTOP)" if stopped else "")
    assert comes_true(lambda: see({0: worker.pid}, None)[0].place == expected)
    assert worker.poll() is None and is_stopped(worker.pid) is stopped


@needs_it
def test_what_is_no_python_is_left_to_the_kernel_and_hides_no_other(worker: subprocess.Popen[bytes]) -> None:
    if not readable(worker.pid):
        pytest.skip("the kernel lets nobody read another process's memory here")
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            assert comes_true(lambda: set(texts_of([other.pid, worker.pid], LONG_S)) == {worker.pid})
            assert see({0: other.pid}, None)[0].place.endswith("(kernel)")
        finally:
            other.kill()


def test_what_is_no_python_is_not_even_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else each node of a job of shell scripts would start one more process at each failure."""
    program, asked = tmp_path / "py-spy", tmp_path / "asked"
    monkeypatch.setattr(py_spy, "py_spy", lambda: str(program))
    program.write_text(f'#!/bin/sh\necho "$*" >> {asked}\n')
    program.chmod(0o700)
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            comes_true(lambda: Path(f"/proc/{other.pid}/comm").read_text() == "sleep\n")
            assert texts_of([other.pid, os.getpid()], LONG_S) == {}
        finally:
            other.kill()
    assert [line.split()[-1] for line in asked.read_text().splitlines()] == [str(os.getpid())]


@pytest.mark.parametrize("program", [None, "/nowhere/py-spy"])
def test_a_host_without_it_leaves_all_to_the_kernel(monkeypatch: pytest.MonkeyPatch, program: str | None) -> None:
    monkeypatch.setattr(py_spy, "py_spy", lambda: program)
    assert texts_of([os.getpid()], LONG_S) == {}


def test_one_that_hangs_is_ended_and_one_that_writes_without_end_is_cut(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "py-spy"
    monkeypatch.setattr(py_spy, "py_spy", lambda: str(program))
    for does in ("exec sleep 1000", "exec yes"):
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o700)
        assert texts_of([os.getpid()], 0.05) == {}
    assert not [pid for pid in map(str, Path("/proc/self/task").glob("*/children")) if Path(pid).read_text().split()]


def test_the_kernel_kills_it_first_when_memory_is_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It inherits the score of an agent, which may be the one of a process that is never killed."""
    program, found = tmp_path / "py-spy", tmp_path / "found"
    monkeypatch.setattr(py_spy, "py_spy", lambda: str(program))
    waits = "until [ $score = 1000 ]; do read score </proc/$$/oom_score_adj; done"
    program.write_text(f"#!/bin/sh\nscore=none; {waits}; : >{found}\n")
    program.chmod(0o700)
    assert comes_true(lambda: not texts_of([os.getpid()], 0.5) and found.exists())


def test_the_main_thread_comes_last_and_functions_have_the_names_that_python_gives_them() -> None:
    text = text_of(7, said((7, [frame("Odd.step"), frame("<module>", line=9)]), (8, [frame("f.<locals>.g")])))
    assert text == (
        "Thread 0x0000000000000009 (most recent call first):\n"
        '  File "/a/train.py", line 3 in g\n\n'
        "Thread 0x0000000000000008 (most recent call first):\n"
        '  File "/a/train.py", line 3 in step\n'
        '  File "/a/train.py", line 9 in <module>'
    )
    assert place(main_thread(text).frames) == "at train.py:3 in step"


def test_names_that_lie_make_no_other_frames_and_much_is_cut() -> None:
    lie = frame("x\nThread 0x1 (most recent call first):", 'a"\n  File "b', 1)
    assert [len(each.frames) for each in threads(text_of(7, said((7, [lie]))))] == [1]
    deep = text_of(7, said((7, [frame("f" * 10_000)] * 1_000), *((tid, [frame()]) for tid in range(100, 1_100))))
    assert len(threads(deep)) == 100 and len(main_thread(deep).frames) == 100 and len(deep) < 200_000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b"[1]",
        b"null",
        said((7, [frame(line="x")])),
        said((7, [frame(line=None)])),
        b'[{"os_thread_id":7,"thread_id":[],"frames":[]}]',
    ],
    ids=lambda data: data[:40].decode("latin1"),
)
def test_what_is_no_dump_is_nothing(data: bytes) -> None:
    assert text_of(7, data) == ""
