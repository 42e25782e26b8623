"""The agent's end of the reaper."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import TIMEOUT_S, comes_true, dies

from elastic.adapters.workers.watch import reaper_process as module
from elastic.adapters.workers.watch.reaper_process import Guard


@pytest.fixture
def guard(nothing_left: str) -> Iterator[Guard]:
    guard = Guard()
    yield guard
    guard.close()


def victim(guard: Guard) -> subprocess.Popen[bytes]:
    environment = guard.environment(os.environ)
    return subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True)


def test_what_is_held_before_the_reaper_starts_is_told_when_it_does(guard: Guard) -> None:
    process = victim(guard)
    guard.hold([process.pid])
    guard.start()
    os.close(guard._pipe)  # as if this process had died
    assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    guard._pipe = os.open("/dev/null", os.O_WRONLY)


def test_a_close_kills_what_carries_the_token_and_the_reaper_and_nothing_else_and_may_be_repeated(guard: Guard) -> None:
    left, stranger = victim(guard), victim(Guard())
    guard.start()
    pid = guard.pid
    guard.hold([stranger.pid])
    guard.close()
    guard.close()
    assert guard.pid is None and pid is not None and dies(pid)
    assert left.wait(TIMEOUT_S) == -signal.SIGKILL
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait(TIMEOUT_S)


def test_the_reaper_knows_while_processes_are_being_started(guard: Guard) -> None:
    guard.start()
    pid = guard.pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    assert comes_true(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T")
    guard.expect()
    guard.hold([98, 97])
    guard.hold([96])
    with Path(f"/proc/{pid}/fd/0").open("rb", buffering=0) as pipe:
        assert pipe.read(4096) == b"+?\n+98\n+97\n-?\n+96\n"


def test_a_group_that_is_not_held_can_be_forgotten(guard: Guard) -> None:
    guard.forget(99)
    guard.hold([98, 97])
    guard.forget(98)
    assert list(guard._held) == [97]


def test_telling_a_dead_reaper_is_no_error(guard: Guard) -> None:
    guard.start()
    assert guard.pid is not None
    os.kill(guard.pid, signal.SIGKILL)
    os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)
    guard.hold([1 << 22])


def test_a_reaper_that_does_not_read_is_killed(guard: Guard) -> None:
    guard.start()
    assert guard.pid is not None
    os.kill(guard.pid, signal.SIGSTOP)
    for _ in range(100):
        guard.hold([1 << 30] * 200)
    assert dies(guard.pid)


def test_a_reaper_that_cannot_live_is_given_up(guard: Guard) -> None:
    guard.start()
    guard._starts = module.STARTS_MAX
    assert guard.start() is None
    assert guard.pid is None


def test_the_reaper_carries_no_token_and_none_of_the_agents_streams(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTIC_AGENT", "outer")
    guard.start()
    assert b"ELASTIC_AGENT" not in Path(f"/proc/{guard.pid}/environ").read_bytes()
    assert [os.readlink(f"/proc/{guard.pid}/fd/{stream}") for stream in (1, 2)] == ["/dev/null", "/dev/null"]
    assert sorted(os.listdir(f"/proc/{guard.pid}/fd"))[:3] == ["0", "1", "2"]


def test_no_descriptor_is_left_when_the_program_cannot_be_executed() -> None:
    guard = Guard(python="/no/such/python")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        guard.start()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_reaper_keeps_the_port_of_the_links_open_until_the_last_process_of_the_node_is_dead(
    nothing_left: str,
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    guard = Guard(listener=listener.fileno())
    process = victim(guard)
    guard.hold([process.pid])
    pidfd = guard.start()
    assert pidfd is not None
    listener.close()
    socket.create_connection(address, TIMEOUT_S).close()
    os.close(guard._pipe)  # as if this process had died
    process.wait(TIMEOUT_S)
    assert select.select([pidfd], [], [], TIMEOUT_S)[0]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, TIMEOUT_S)
    guard._pipe = os.open("/dev/null", os.O_WRONLY)
    guard.close()
