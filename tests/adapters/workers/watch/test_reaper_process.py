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
from ports import listening
from processes import TIMEOUT_S, comes_true, dies

from elastic.adapters.workers.watch import reaper_process as module
from elastic.adapters.workers.watch.reaper_process import ReaperProcess


@pytest.fixture
def reaper(nothing_left: str) -> Iterator[ReaperProcess]:
    reaper = ReaperProcess()
    yield reaper
    reaper.close()


def victim(reaper: ReaperProcess) -> subprocess.Popen[bytes]:
    environment = reaper.environment(os.environ)
    return subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True)


def test_what_is_held_before_the_reaper_starts_is_told_when_it_does(reaper: ReaperProcess) -> None:
    process = victim(reaper)
    reaper.hold([process.pid])
    reaper.start()
    os.close(reaper._pipe)  # as if this process had died
    assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    reaper._pipe = os.open("/dev/null", os.O_WRONLY)


def test_a_close_kills_the_carriers_and_the_reaper_and_nothing_else_and_may_be_repeated(
    reaper: ReaperProcess,
) -> None:
    left, stranger = victim(reaper), victim(ReaperProcess())
    reaper.start()
    pid = reaper.pid
    reaper.hold([stranger.pid])
    reaper.close()
    reaper.close()
    assert reaper.pid is None and pid is not None and dies(pid)
    assert left.wait(TIMEOUT_S) == -signal.SIGKILL
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait(TIMEOUT_S)


def test_the_reaper_knows_while_processes_are_being_started(reaper: ReaperProcess) -> None:
    reaper.start()
    pid = reaper.pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    assert comes_true(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T")
    reaper.expect()
    reaper.hold([98, 97])
    reaper.hold([96])
    with Path(f"/proc/{pid}/fd/0").open("rb", buffering=0) as pipe:
        assert pipe.read(4096) == b"+?\n+98\n+97\n-?\n+96\n"


def test_a_group_that_is_not_held_can_be_forgotten(reaper: ReaperProcess) -> None:
    reaper.forget(99)
    reaper.hold([98, 97])
    reaper.forget(98)
    assert list(reaper._held) == [97]


def test_telling_a_dead_reaper_is_no_error(reaper: ReaperProcess) -> None:
    reaper.start()
    assert reaper.pid is not None
    os.kill(reaper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, reaper.pid, os.WEXITED | os.WNOWAIT)
    reaper.hold([1 << 22])


def test_a_reaper_that_does_not_read_is_killed(reaper: ReaperProcess) -> None:
    reaper.start()
    assert reaper.pid is not None
    os.kill(reaper.pid, signal.SIGSTOP)
    for _ in range(100):
        reaper.hold([1 << 30] * 200)
    assert dies(reaper.pid)


def test_a_reaper_that_cannot_live_is_given_up(reaper: ReaperProcess) -> None:
    reaper.start()
    reaper._starts = module.STARTS_MAX
    assert reaper.start() is None
    assert reaper.pid is None


def test_the_reaper_carries_no_token_and_none_of_the_agents_streams(
    reaper: ReaperProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTIC_AGENT", "outer")
    reaper.start()
    assert b"ELASTIC_AGENT" not in Path(f"/proc/{reaper.pid}/environ").read_bytes()
    assert [os.readlink(f"/proc/{reaper.pid}/fd/{stream}") for stream in (1, 2)] == ["/dev/null", "/dev/null"]
    assert sorted(os.listdir(f"/proc/{reaper.pid}/fd"))[:3] == ["0", "1", "2"]


def test_no_descriptor_is_left_when_the_program_cannot_be_executed() -> None:
    reaper = ReaperProcess(python="/no/such/python")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        reaper.start()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_reaper_keeps_the_port_of_the_links_open_until_the_last_process_of_the_node_is_dead(
    nothing_left: str,
) -> None:
    with listening() as listener:
        address = listener.getsockname()
        reaper = ReaperProcess(listener=listener.fileno())
        process = victim(reaper)
        reaper.hold([process.pid])
        pidfd = reaper.start()
        assert pidfd is not None
        listener.close()
        socket.create_connection(address, TIMEOUT_S).close()
        os.close(reaper._pipe)  # as if this process had died
        process.wait(TIMEOUT_S)
        assert select.select([pidfd], [], [], TIMEOUT_S)[0]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, TIMEOUT_S)
        reaper._pipe = os.open("/dev/null", os.O_WRONLY)
        reaper.close()
