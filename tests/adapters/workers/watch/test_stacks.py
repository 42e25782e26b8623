"""The stacks of real workers: what each was doing, however it hangs, and that nobody else takes harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import sleep
from types import SimpleNamespace

import pytest
from processes import TIMEOUT_S, children_of, comes_true, command_of, is_stopped

from elastic.adapters.launch_settings import STACKS_SIGNAL, Kind, LaunchSettings, Program
from elastic.adapters.workers.start_up import StackHandler, StartUp, start_up
from elastic.adapters.workers.watch import stacks
from elastic.adapters.workers.watch.stacks import Sighting, Task, _Asked, see

HANDLER = StackHandler(STACKS_SIGNAL, 1023)
READY = "import sys; print('ready', flush=True)\n"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program as a worker begins, and waits for its first line."""
    started: list[subprocess.Popen[bytes]] = []

    def start(text: str, handler: StackHandler | None = HANDLER) -> subprocess.Popen[bytes]:
        file = tmp_path / f"p{len(started)}.py"
        file.write_text(READY + text)
        environment = StartUp(handler, 1022).environment(os.environ) if handler else None
        process = subprocess.Popen(
            [sys.executable, "-u", file],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout and process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)


@pytest.fixture(autouse=True)
def no_py_spy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python and the kernel tell here; py-spy has tests of its own."""
    monkeypatch.setattr(stacks, "texts_of", lambda pids, timeout_s: {})


def place(process: subprocess.Popen[bytes], ends: bool = True) -> str:
    return see({0: process.pid}, HANDLER, TIMEOUT_S, ends)[0].place


def comes_to(process: subprocess.Popen[bytes], expected: str) -> None:
    """Wait until the program is there: it has said that it is ready, and goes on."""
    assert comes_true(lambda: place(process) == expected), place(process)


HANGS = {
    "asleep": ("import time\ndef odd():\n    time.sleep(1000)\nodd()\n", "at p0.py:4 in odd"),
    "in C with Python's lock": (
        "import ctypes\ndef odd():\n    ctypes.PyDLL(None).pause()\nodd()\n",
        "at p0.py:4 in odd",
    ),
    "busy in C": ("def odd():\n    return 7 ** 10 ** 8\nodd()\n", "at p0.py:3 in odd"),
    "in a lock": (
        "import threading\nlock = threading.Lock()\nlock.acquire()\ndef odd():\n    lock.acquire()\nodd()\n",
        "at p0.py:6 in odd",
    ),
    "in a queue": (
        "import multiprocessing\ndef odd(queue):\n    queue.get()\nodd(multiprocessing.Queue())\n",
        "in _recv (p0.py:4 in odd)",
    ),
}


@pytest.mark.parametrize(("text", "expected"), HANGS.values(), ids=HANGS)
def test_the_line_where_a_worker_hangs_is_named(start: Start, text: str, expected: str) -> None:
    comes_to(start(text), expected)


def test_a_stopped_worker_answers_when_it_may_run_on(start: Start) -> None:
    worker = start("import os, signal\ndef odd():\n    os.kill(os.getpid(), signal.SIGSTOP)\nodd()\nsys.stdin.read()\n")
    assert comes_true(lambda: is_stopped(worker.pid))
    assert place(worker) == "at p0.py:4 in odd, stopped (SIGSTOP)"


def test_a_stopped_worker_that_may_not_run_on_is_sent_nothing(start: Start) -> None:
    stopped, other = start("sys.stdin.read()\n"), start("sys.stdin.read()\n")
    os.kill(stopped.pid, signal.SIGSTOP)
    assert comes_true(lambda: is_stopped(stopped.pid))
    comes_to(other, "at p1.py:2 in <module>")
    found = see({5: stopped.pid, 7: other.pid}, HANDLER)
    assert found[5].place == "stopped (SIGSTOP)" and found[7].place == "at p1.py:2 in <module>"
    pending = next(line for line in Path(f"/proc/{stopped.pid}/status").read_text().splitlines() if "ShdPnd" in line)
    assert int(pending.split()[1], 16) == 0


def test_a_worker_that_runs_without_pause_is_sent_nothing_unless_it_is_to_be_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elastic.adapters.workers.watch.stacks.texts_of", lambda pids, limit: {})
    worker = start("def odd():\n    return 7 ** 10 ** 8\nodd()\n")
    comes_to(worker, "at p0.py:3 in odd")
    found = see({0: worker.pid}, HANDLER)[0]
    assert (found.place, found.text) == ("running", "")


def test_the_main_thread_is_written_down_and_no_other_which_runs_on_meanwhile(start: Start) -> None:
    worker = start(
        "import threading\ndef beside():\n    threading.Event().wait()\n"
        "threading.Thread(target=beside, daemon=True).start()\nsys.stdin.read()\n"
    )
    comes_to(worker, "at p0.py:6 in <module>")
    lines = see({0: worker.pid}, HANDLER)[0].lines
    assert any("p0.py" in line and line.endswith("line 6 in <module>") for line in lines)
    assert not any(line.endswith(" in beside") for line in lines)
    assert lines[0] == "at p0.py:6 in <module>" and lines[1].startswith(f"kernel: task {worker.pid}, state ")


def test_a_machine_that_stands_still_meanwhile_costs_no_answer(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = start("sys.stdin.read()\n")
    comes_to(worker, "at p0.py:2 in <module>")
    hours = count(step=3600)
    monkeypatch.setattr(
        "elastic.adapters.workers.watch.stacks.time", SimpleNamespace(sleep=sleep, monotonic=lambda: next(hours))
    )
    assert see({0: worker.pid}, HANDLER)[0].place == "at p0.py:2 in <module>"


@pytest.mark.parametrize("blocks", [True, False])
def test_a_worker_has_not_answered_while_its_main_thread_writes(start: Start, tmp_path: Path, blocks: bool) -> None:
    how = "BLOCK" if blocks else "UNBLOCK"
    worker = start(
        f"import signal\nsignal.pthread_sigmask(signal.SIG_{how}, [{STACKS_SIGNAL}])\n"
        "print('set', flush=True)\nsys.stdin.read()\n"
    )
    assert worker.stdout and worker.stdout.readline() == b"set\n"
    (tmp_path / "text").write_text("Stack (most recent call first):\n")
    with (tmp_path / "text").open() as text:
        asked = _Asked(worker.pid, 1 << (STACKS_SIGNAL - 1), text.fileno())
        asked.look(0.0)
        asked.look(1.0)
        assert asked.has_answered is not blocks


def test_only_the_main_thread_is_asked_also_if_it_takes_no_signal(start: Start) -> None:
    worker = start(
        "import signal, threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, [{STACKS_SIGNAL}])\nprint('set', flush=True)\nsys.stdin.read()\n"
    )
    assert worker.stdout and worker.stdout.readline() == b"set\n"
    assert comes_true(lambda: place(worker).endswith("(kernel)")), place(worker)


def test_a_text_that_is_cut_names_no_place() -> None:
    text = 'Thread 0x1 (most recent call first):\n  File "a.py", line 3 in beside\n'
    cut = Sighting(1, text, (Task(1, "S"),), is_cut=True)
    assert (cut.place, cut.callstack) == ("asleep", "") and any("beside" in line for line in cut.lines)
    assert Sighting(1, text, (Task(1, "S"),)).place == "at a.py:3 in beside"


@pytest.mark.parametrize(
    "text",
    [
        f"import signal\nsignal.signal({STACKS_SIGNAL}, lambda *given: None)\n",
        f"import signal\nsignal.signal({STACKS_SIGNAL}, signal.SIG_IGN)\n",
        f"import signal\nsignal.signal({STACKS_SIGNAL}, signal.SIG_DFL)\n",
        f"import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [{STACKS_SIGNAL}])\n",
        "import os\nos.closerange(3, 2_000)\n",
        "import os\nos.closerange(3, 2_000)\nos.dup2(os.open('/dev/null', os.O_RDWR), 1023)\n",
        "import os\nos.execvp('cat', ['cat'])\n",
    ],
    ids=["own handler", "ignored", "default", "blocked", "closed", "another file", "executed afresh"],
)
def test_of_a_program_that_took_the_signal_or_the_descriptor_away_the_kernel_tells(start: Start, text: str) -> None:
    worker = start(text + "print('set', flush=True)\nsys.stdin.read()\n")
    if "exec" in text:  # a signal that is on its way meanwhile would kill it
        assert comes_true(lambda: Path(f"/proc/{worker.pid}/comm").read_text() == "cat\n")
    else:
        assert worker.stdout and worker.stdout.readline() == b"set\n"
    assert comes_true(lambda: place(worker).endswith("(kernel)")), place(worker)
    assert worker.poll() is None


def test_a_program_that_is_not_python_s_is_told_of_by_the_kernel(start: Start) -> None:
    worker = start("sys.stdin.read()\n", handler=None)
    assert comes_true(lambda: place(worker).startswith("asleep in "))
    assert see({0: worker.pid}, None)[0].place.startswith("asleep in ")


def test_the_dead_are_left_out(start: Start) -> None:
    worker = start("")
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    assert see({0: worker.pid, 1: 2**22 + 1}, HANDLER) == {}


def test_children_of_a_worker_have_no_handler_to_answer_with_or_answer_for_themselves(start: Start) -> None:
    """A forked child is like its parent; what is executed afresh inherits neither the descriptor nor the signal."""
    worker = start(
        "import multiprocessing, subprocess, sys\n"
        "def child(of):\n    of.recv()\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn'):\n"
        "        context = multiprocessing.get_context(method)\n"
        "        hear, tell = context.Pipe(False)\n"
        "        context.Process(target=child, args=(hear,)).start()\n"
        "    other = subprocess.Popen(['cat'], stdin=subprocess.PIPE, close_fds=False)\n"
        "    print('set', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    told = worker.stdout
    assert told and comes_true(lambda: b"set" in told.readline())
    children = children_of(worker.pid)
    assert len(children) == 4  # with the resource tracker
    (forked,) = (pid for pid in children if command_of(pid) == command_of(worker.pid))
    executed = set(children) - {forked}
    assert os.path.exists(f"/proc/{forked}/fd/{HANDLER.descriptor}")
    assert not any(os.path.exists(f"/proc/{pid}/fd/{HANDLER.descriptor}") for pid in executed)
    assert not any(b"ELASTIC_START_UP=" in Path(f"/proc/{pid}/environ").read_bytes() for pid in executed)
    comes_to(worker, "at p0.py:12 in <module>")
    assert all(os.path.exists(f"/proc/{pid}") for pid in children)


def test_many_looks_change_nothing_of_a_program_with_threads_and_children(start: Start) -> None:
    worker = start(
        "import hashlib, subprocess, threading\n"
        "def work(into):\n"
        "    while len(into) < 150 or not over.is_set():\n"
        "        into.append(hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2_000).hex()[:4])\n"
        "over = threading.Event()\n"
        "found = [[] for _ in range(4)]\n"
        "threads = [threading.Thread(target=work, args=(each,)) for each in found]\n"
        "for each in threads: each.start()\n"
        "for _ in range(20): subprocess.run(['true'], check=True)\n"
        "sys.stdin.readline()\n"
        "over.set()\n"
        "for each in threads: each.join()\n"
        "print(len({word for each in found for word in each}), sum(map(len, found)) >= 600, flush=True)\n"
    )
    assert worker.stdin
    looks = 0
    while looks < 4:
        looks += bool(see({0: worker.pid}, HANDLER))
    worker.stdin.write(b"\n")
    worker.stdin.flush()
    while worker.poll() is None:
        see({0: worker.pid}, HANDLER)
    assert worker.stdout and (worker.returncode, worker.stdout.read()) == (0, b"1 True\n")


def test_only_programs_of_this_very_python_begin_with_the_start_up_code() -> None:
    def found(kind: Kind, python: str, signum: int | None = STACKS_SIGNAL) -> StartUp | None:
        return start_up(LaunchSettings(Program(kind, "x", (), python), stacks_signal=signum))

    made = found(Kind.SCRIPT, sys.executable)
    assert made and made.stacks and made.stacks.signum == STACKS_SIGNAL
    assert made.reports < made.stacks.descriptor < 1024
    assert found(Kind.MODULE, sys.executable) == found(Kind.PATH, sys.executable) == made
    assert found(Kind.BINARY, "") is None
    assert found(Kind.SCRIPT, "/opt/other/python") is None
    assert found(Kind.SCRIPT, sys.executable, None) == StartUp(None, made.reports)
