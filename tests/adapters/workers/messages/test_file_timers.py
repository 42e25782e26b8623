"""File timers on a real pipe, with real processes that are really killed."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import pytest
from processes import TIMEOUT_S, comes_true, is_alive

from elastic.adapters import threads
from elastic.adapters.agent.watchdogs import Watchdogs, WatchedWorker
from elastic.adapters.launch_settings import STACKS_SIGNAL, WatchdogSettings
from elastic.adapters.workers.messages import file_timers as module
from elastic.adapters.workers.messages.error_files import read_error_file
from elastic.adapters.workers.messages.file_timers import FileTimers, parse
from elastic.adapters.workers.start_up import StackHandler
from elastic.adapters.workers.watch import stacks

Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def timers(tmp_path: Path) -> Iterator[FileTimers]:
    made = FileTimers(tmp_path / "timers", threads.shown)
    yield made
    made.close()


@pytest.fixture
def start(nothing_left: str) -> Iterator[Start]:
    """A worker: a session of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def one() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "1000"], start_new_session=True))
        return started[-1]

    yield one
    for process in started:
        process.kill()
        process.wait()


def line(pid: int, scope: str = "step", after_s: float = 0.0, signum: int = signal.SIGKILL) -> bytes:
    """As torch's client writes it; a negative span takes the timer back."""
    ends_at = -1 if after_s < 0 else time.time() + after_s
    request = {"version": 1, "pid": pid, "scope_id": scope, "expiration_time": ends_at, "signal": signum}
    return json.dumps(request).encode() + b"\n"


def send(timers: FileTimers, *lines: bytes) -> None:
    for each in lines:
        descriptor = os.open(timers.path, os.O_WRONLY | os.O_NONBLOCK)
        os.write(descriptor, each)
        os.close(descriptor)


def test_a_timer_that_expires_kills_its_process_alone_and_the_error_file_says_why(
    timers: FileTimers, start: Start, tmp_path: Path
) -> None:
    late, other = start(), start()
    timers.follow({late.pid: tmp_path / "error.json", other.pid: None})
    send(timers, line(other.pid, after_s=60), line(late.pid, after_s=0.05))
    assert late.wait(TIMEOUT_S) == -signal.SIGKILL
    assert is_alive(other.pid)
    found = read_error_file(tmp_path / "error.json")
    assert found and found.message == f"timer 'step' expired after 0.0 s: pid {late.pid} was sent SIGKILL"


def test_a_timer_that_is_taken_back_or_set_anew_does_not_expire(timers: FileTimers, start: Start) -> None:
    back, anew, last = start(), start(), start()
    timers.follow({process.pid: None for process in (back, anew, last)})
    send(timers, line(back.pid, after_s=0.3), line(anew.pid, after_s=0.3), line(back.pid, after_s=-1))
    send(timers, line(anew.pid, after_s=60), line(back.pid, "unknown", after_s=-1), line(last.pid, after_s=0.4))
    assert last.wait(TIMEOUT_S) == -signal.SIGKILL
    assert is_alive(back.pid) and is_alive(anew.pid)


def test_a_timer_that_expires_before_it_is_said_whose_it_is_expires_then(
    timers: FileTimers, start: Start, tmp_path: Path
) -> None:
    """A worker runs before its agent can follow it."""
    early, back, stranger = start(), start(), start()
    send(timers, line(stranger.pid), line(back.pid), line(early.pid))
    assert comes_true(lambda: len(timers._early) == 3)
    send(timers, line(back.pid, after_s=-1))
    assert comes_true(lambda: len(timers._early) == 2)
    timers.follow({early.pid: tmp_path / "error.json", back.pid: None})
    assert early.wait(TIMEOUT_S) == -signal.SIGKILL
    assert comes_true(lambda: not timers._early) and is_alive(stranger.pid) and is_alive(back.pid)
    timers.follow({stranger.pid: None})
    send(timers, line(stranger.pid, after_s=60))
    assert comes_true(lambda: bool(timers._timers)) and is_alive(stranger.pid)


def test_the_timers_of_processes_that_are_followed_no_longer_end(timers: FileTimers, start: Start) -> None:
    old, worker = start(), start()
    timers.follow({old.pid: None, worker.pid: None})
    send(timers, line(old.pid, after_s=60), line(worker.pid, after_s=60), line(1 << 22, after_s=60))
    assert comes_true(lambda: len(timers._timers) == 3)
    timers.follow({worker.pid: None})
    assert comes_true(lambda: [pid for pid, _ in timers._timers] == [worker.pid])


def test_a_real_time_signal_is_sent_and_named(timers: FileTimers, start: Start, tmp_path: Path) -> None:
    worker = start()
    timers.follow({worker.pid: tmp_path / "error.json"})
    send(timers, line(worker.pid, signum=signal.SIGRTMIN + 3))
    assert worker.wait(TIMEOUT_S) == -(signal.SIGRTMIN + 3)
    found = read_error_file(tmp_path / "error.json")
    assert found and found.message.endswith(f"pid {worker.pid} was sent SIGRTMIN+3")


def test_a_process_whose_stack_cannot_be_had_is_killed_all_the_same(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(pids: Collection[int], timeout_s: float) -> Mapping[int, str]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(stacks, "texts_of", lacks)
    settings, handler = WatchdogSettings(timer_file=str(tmp_path / "timers")), StackHandler(STACKS_SIGNAL, 1023)
    tells = (lambda *stuck: None, lambda answer: None, lambda name, timer: None)
    watchdogs = Watchdogs(settings, *tells, threads.shown, handler)
    watchdogs.start()
    try:
        worker = start()
        watchdogs.follow({worker.pid: WatchedWorker(0, tmp_path / "error.json")})
        with open(tmp_path / "timers", "wb") as pipe:
            pipe.write(line(worker.pid))
        assert worker.wait(TIMEOUT_S) == -signal.SIGKILL
        found = read_error_file(tmp_path / "error.json")
        assert found and found.message.startswith("timer 'step' expired")
    finally:
        watchdogs.close()


def test_each_scope_has_its_own_timer_and_the_first_one_counts(timers: FileTimers, start: Start) -> None:
    worker = start()
    timers.follow({worker.pid: None})
    send(timers, line(worker.pid, "outer", 60), line(worker.pid, "inner", 0.05, signal.SIGTERM))
    assert worker.wait(TIMEOUT_S) == -signal.SIGTERM


def test_a_child_of_a_worker_is_killed_and_the_worker_lives(
    timers: FileTimers, tmp_path: Path, nothing_left: str
) -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 1000 & echo $!; wait; exec sleep 1000"], stdout=subprocess.PIPE, start_new_session=True
    ) as worker:
        assert worker.stdout
        child = int(worker.stdout.readline())
        timers.follow({worker.pid: tmp_path / "error.json"})
        send(timers, line(child))
        assert comes_true(lambda: not is_alive(child)) and is_alive(worker.pid)
        worker.kill()


def test_nobody_but_a_worker_that_is_followed_can_be_killed_and_a_signal_of_0_kills_nobody(
    timers: FileTimers, start: Start, tmp_path: Path
) -> None:
    stranger, spared, worker, reason = start(), start(), start(), tmp_path / "error.json"
    timers.follow({spared.pid: reason, worker.pid: None})
    send(timers, line(stranger.pid), line(os.getpid()), line(spared.pid, signum=0), line(spared.pid, signum=999))
    send(timers, line(1 << 22), line(worker.pid, after_s=0.05))
    assert worker.wait(TIMEOUT_S) == -signal.SIGKILL
    assert is_alive(stranger.pid) and is_alive(spared.pid) and not reason.exists()


def test_so_many_timers_are_kept_and_no_more_until_some_end(
    timers: FileTimers, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMERS_MAX", 2)
    worker, stranger = start(), start()
    timers.follow({worker.pid: None})
    send(timers, line(stranger.pid), line(worker.pid, "first", after_s=60), line(worker.pid, "too many"))
    send(timers, line(worker.pid, "first", after_s=50))
    assert comes_true(
        lambda: len(timers._early) == 1 and [each.span_s < 55 for each in timers._timers.values()] == [True]
    )
    assert is_alive(worker.pid)
    send(timers, line(worker.pid, "first", after_s=-1), line(worker.pid, "now"))
    assert worker.wait(TIMEOUT_S) == -signal.SIGKILL


def test_lines_that_are_no_requests_are_passed_over(timers: FileTimers, start: Start) -> None:
    worker = start()
    timers.follow({worker.pid: None})
    whole = line(worker.pid)
    send(timers, b"\n{}\nnonsense\n[1]\n", b"x" * 4096, b"\n" + whole[:20], whole[20:])
    assert worker.wait(TIMEOUT_S) == -signal.SIGKILL


MONTH_S = 31 * 86_400.0


@pytest.mark.parametrize("after_s", [MONTH_S, math.inf])
def test_a_timer_of_a_month_or_without_end_keeps_no_other_from_expiring(
    timers: FileTimers, start: Start, after_s: float
) -> None:
    first, second = start(), start()
    timers.follow({first.pid: None, second.pid: None})
    send(timers, line(first.pid, "long", after_s), line(first.pid, "short", 0.05))
    assert first.wait(TIMEOUT_S) == -signal.SIGKILL
    send(timers, line(second.pid, "short", 0.05))
    assert second.wait(TIMEOUT_S) == -signal.SIGKILL


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"3",
        b'{"pid": 1}',
        b'{"pid": "x", "scope_id": 1, "expiration_time": 1, "signal": 9}',
        b"[" * 100_000,
        b'{"pid": 1%s, "scope_id": "", "expiration_time": 1, "signal": 9}' % (b"0" * 30),
        b'{"pid": 0, "scope_id": "", "expiration_time": 1, "signal": 9}',
        b'{"pid": 1, "scope_id": "", "expiration_time": NaN, "signal": 9}',
    ],
)
def test_what_is_no_request_is_none(text: bytes) -> None:
    assert parse(text) is None


def test_a_pipe_that_was_left_behind_is_made_anew_and_any_other_file_is_not_touched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "old")
    first = FileTimers(tmp_path / "old", threads.shown)
    first.close()
    first.close()
    assert not (tmp_path / "old").exists()
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(FileExistsError):
        FileTimers(tmp_path / "mine", threads.shown)
    assert (tmp_path / "mine").read_text() == "precious"
