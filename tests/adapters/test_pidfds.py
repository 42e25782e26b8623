"""A process is watched where the kernel has no pidfd, as well as with one."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from processes import TIMEOUT_S, comes_true, no_thread_left

from elastic.adapters import pidfds
from elastic.adapters.pidfds import LOOK_S, StandIns, _Process
from elastic.adapters.threads import NoThread
from elastic.adapters.workers.watch.process_groups import died_within

ROOT = Path(__file__).parents[2]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_a_child_is_seen_to_die_and_stays_for_its_parent_to_reap(sleeper: subprocess.Popen[bytes]) -> None:
    stand_ins = StandIns()
    one, other = stand_ins.opened(sleeper.pid), stand_ins.opened(sleeper.pid)
    assert not died_within(one, 0.0)
    assert stand_ins.sent(one, signal.SIGTERM) and not stand_ins.sent(0, signal.SIGTERM)
    assert died_within(one, TIMEOUT_S) and died_within(other, TIMEOUT_S)
    late = stand_ins.opened(sleeper.pid)
    assert died_within(late, TIMEOUT_S), "a zombie is dead"
    assert sleeper.wait() == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        stand_ins.opened(sleeper.pid)
    for descriptor in (one, other, late):
        os.close(descriptor)


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process of another parent."""
    script = "sleep 1000 >/dev/null 2>&1 & echo $!"
    pid = int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout)
    yield pid
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_process_of_another_parent_is_seen_to_die(stranger: int) -> None:
    watched = StandIns().opened(stranger)
    assert not died_within(watched, 0.0)
    os.kill(stranger, signal.SIGKILL)
    assert died_within(watched, TIMEOUT_S)
    os.close(watched)


def test_a_look_for_which_no_descriptor_is_free_is_no_death(stranger: int) -> None:
    stand_ins = StandIns()
    watched = stand_ins.opened(stranger)
    with no_descriptor_free():
        assert not died_within(watched, 10 * LOOK_S)
        with pytest.raises(OSError, match="Too many open files"):
            stand_ins.opened(stranger)
    os.close(watched)


@contextmanager
def no_descriptor_free() -> Iterator[None]:
    free, (soft, hard) = os.dup(0), resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_later_process_of_the_same_number_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    stand_ins = StandIns()
    watched = stand_ins.opened(sleeper.pid)
    stand_ins._pipes[watched].process = _Process(sleeper.pid, b"1")
    with pytest.raises(ProcessLookupError):
        stand_ins.sent(watched, signal.SIGKILL)
    assert sleeper.poll() is None
    os.close(watched)


def test_a_closed_descriptor_leaves_nothing_behind(stranger: int, sleeper: subprocess.Popen[bytes]) -> None:
    stand_ins, descriptors = StandIns(), set(os.listdir("/proc/self/fd"))
    os.close(stand_ins.opened(stranger))
    assert comes_true(lambda: not stand_ins._awaited)
    assert not stand_ins._pipes and descriptors.issuperset(os.listdir("/proc/self/fd"))
    dead = stand_ins.opened(sleeper.pid)
    sleeper.kill()
    assert died_within(dead, TIMEOUT_S)
    with open("/dev/null") as other:
        os.dup2(other.fileno(), dead)
    assert not stand_ins.sent(dead, 0) and not stand_ins._pipes
    os.close(dead)


def test_a_descriptor_that_is_closed_while_a_death_is_told_is_no_error(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller closes it after the look and before the write: the other descriptors are told all the same."""
    stand_ins = StandIns()
    errors: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    closed, other = stand_ins.opened(sleeper.pid), stand_ins.opened(sleeper.pid)
    inode = pidfds._inode

    def closed_after_the_look(descriptor: int) -> int | None:
        found = inode(descriptor)
        if descriptor == closed and found is not None and sleeper.poll() is not None:
            os.close(closed)
        return found

    monkeypatch.setattr(pidfds, "_inode", closed_after_the_look)
    sleeper.kill()
    sleeper.wait()
    assert died_within(other, TIMEOUT_S)
    assert comes_true(lambda: not stand_ins._awaited) and not errors
    os.close(other)


def test_a_descriptor_of_the_number_of_a_closed_one_takes_nothing_of_it(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_ins, pipe = StandIns(), os.pipe
    first = stand_ins.opened(sleeper.pid)
    write = stand_ins._pipes[first].write
    assert write is not None

    def pipe_after_a_close() -> tuple[int, int]:
        os.close(first)
        return pipe()

    monkeypatch.setattr(os, "pipe", pipe_after_a_close)
    second = stand_ins.opened(sleeper.pid)
    assert second == first and len(stand_ins._pipes) == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(write)
    os.close(second)


def test_without_a_free_thread_nobody_is_told_of_a_death(sleeper: subprocess.Popen[bytes]) -> None:
    stand_ins, descriptors = StandIns(), set(os.listdir("/proc/self/fd"))
    with no_thread_left(), pytest.raises(NoThread):
        stand_ins.opened(sleeper.pid)
    assert not stand_ins._pipes and descriptors.issuperset(os.listdir("/proc/self/fd"))
    watched = stand_ins.opened(sleeper.pid)
    assert not died_within(watched, 0.0)
    os.close(watched)


def test_many_looks_at_one_process_cost_one_thread_and_no_descriptor(sleeper: subprocess.Popen[bytes]) -> None:
    stand_ins = StandIns()
    first = stand_ins.opened(sleeper.pid)
    descriptors = os.listdir("/proc/self/fd")
    for _ in range(20):
        os.close(stand_ins.opened(sleeper.pid))
        assert len(stand_ins._awaited) == 1
    assert len(os.listdir("/proc/self/fd")) <= len(descriptors) + 1
    sleeper.kill()
    assert comes_true(lambda: not stand_ins._awaited)
    os.close(first)


DIRECTLY = {
    "adapters/kernel.py": "looks if the kernel has it",
    "adapters/pidfds.py": "this",
    "adapters/workers/watch/reaper.py": "a program of its own, which looks at /proc instead",
    "adapters/inprocess/beside/supervisor.py": "a monitor inherits the kernel's, or looks at its parent",
}


def test_every_other_file_watches_processes_by_way_of_the_stand_in() -> None:
    found = {
        str(file.relative_to(ROOT))
        for room in ("adapters", "cli")
        for file in (ROOT / room).rglob("*.py")
        if "os.pidfd_open(" in (text := file.read_text()) or "signal.pidfd_send_signal(" in text
    }
    assert found == DIRECTLY.keys()
