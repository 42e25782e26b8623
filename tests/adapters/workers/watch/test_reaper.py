"""The reaper: alone, as a program on a pipe, and its parts on victims of ours."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from processes import TIMEOUT_S, comes_true, ignored_by, is_alive

from elastic.adapters.workers.watch import reaper

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(nothing_left: str) -> Iterator[Start]:
    """Starts a process in its own session, killed at the test's end at the latest."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, token: str = "", **options: object) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "TOKEN": token}
        process = subprocess.Popen(command, env=environment, start_new_session=True, **options)  # type: ignore[call-overload]
        started.append(process)
        return process  # type: ignore[no-any-return]

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()


@pytest.fixture
def token() -> str:
    """Of this test alone: whoever carries it on this host is killed."""
    return f"t0k3n-{uuid4().hex}"


@pytest.fixture
def run(start: Start) -> Callable[..., subprocess.Popen[bytes]]:
    def run(token: str = "no such token") -> subprocess.Popen[bytes]:
        return start(sys.executable, "-I", "-S", reaper.__file__, token, stdin=subprocess.PIPE, bufsize=0)

    return run


def tell(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin
    process.stdin.write(text.encode())


def end_agent(process: subprocess.Popen[bytes]) -> int:
    assert process.stdin
    process.stdin.close()
    return process.wait(TIMEOUT_S)


def sleeper(start: Start, token: str = "") -> subprocess.Popen[bytes]:
    """Its environment is seen a moment after it was executed."""
    sleeping = start("sleep", "1000", token=token)
    assert comes_true(lambda: token.encode() in reaper.environment_of(sleeping.pid))
    return sleeping


def test_a_group_that_is_held_at_the_end_is_killed(start: Start, run: Start) -> None:
    victim, reaping = sleeper(start), run()
    tell(reaping, f"+{victim.pid}\n")
    assert end_agent(reaping) == 0
    assert victim.wait(TIMEOUT_S) == -signal.SIGKILL


def test_a_group_that_was_forgotten_lives(start: Start, run: Start) -> None:
    other, reaping = sleeper(start), run()
    tell(reaping, f"+{other.pid}\n-{other.pid}\n")
    end_agent(reaping)
    assert other.poll() is None


def test_a_carrier_of_the_token_dies_with_the_groups_though_its_session_is_its_own(
    start: Start, run: Start, token: str
) -> None:
    victim, carrier, reaping = sleeper(start), sleeper(start, token=token), run(token)
    tell(reaping, f"+{victim.pid}\n")
    end_agent(reaping)
    assert carrier.wait(TIMEOUT_S) == -signal.SIGKILL


def test_a_worker_dies_that_was_just_being_started_and_whose_group_was_not_told(
    start: Start, run: Start, token: str
) -> None:
    carrier, reaping = sleeper(start, token=token), run(token)
    end_agent(reaping)
    assert carrier.wait(TIMEOUT_S) == -signal.SIGKILL


def test_no_signal_but_sigkill_ends_it_before_its_agent(start: Start, run: Start) -> None:
    victim, reaping = sleeper(start), run()
    ignored = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2]
    assert comes_true(lambda: ignored_by(reaping.pid) >= set(ignored))
    for signum in ignored:
        reaping.send_signal(signum)
    tell(reaping, f"+{victim.pid}\n")
    assert end_agent(reaping) == 0
    assert victim.wait(TIMEOUT_S) == -signal.SIGKILL


def read_all(*chunks: bytes) -> set[str]:
    """What is held after these chunks, each read by itself."""
    read, write = os.pipe()
    try:
        with os.fdopen(write, "wb", buffering=0) as pipe:
            for chunk in chunks:
                pipe.write(chunk)
        return reaper.held_at_the_end(read)
    finally:
        os.close(read)


def test_what_is_held_is_what_was_added_and_not_taken_away() -> None:
    assert read_all(b"+12\n+13\n+14\n-12\n") == {"13", "14"}


def test_garbage_and_a_last_line_that_was_cut_off_are_not_held() -> None:
    assert read_all(b"\n?5\n-7\n+12\n+13") == {"12"}


def test_a_start_under_way_is_held_until_it_is_over() -> None:
    assert read_all(b"+?\n+12\n") == {reaper.STARTING, "12"}
    assert read_all(b"+?\n", b"+12\n-?\n") == {"12"}


def test_a_line_may_come_in_two_chunks() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.close(read)
        os.write(write, b"+1234\n+56")
        select.poll().poll(50)  # so that the chunks are two, nearly always
        os.write(write, b"78\n")
        os._exit(0)
    os.close(write)
    assert reaper.held_at_the_end(read) == {"1234", "5678"}
    os.close(read)
    os.waitpid(child, 0)


def test_neither_its_own_group_nor_inits_nor_a_word_is_taken_for_a_group() -> None:
    reaper.kill_groups({"0", "1", "word", "-5", ""})  # else this process would be gone


def test_a_group_that_is_gone_is_no_error(start: Start) -> None:
    victim = start("true")
    victim.wait()
    reaper.kill_groups({str(victim.pid)})


def test_carriers_are_dead_when_the_kill_returns(start: Start, token: str) -> None:
    carriers = [sleeper(start, token=token) for _ in range(3)]
    killed, cleaning = reaper.kill_carriers(token.encode())
    assert killed and cleaning == []
    assert not any(is_alive(carrier.pid) for carrier in carriers)
    assert reaper.kill_carriers(token.encode()) == ([], [])


def test_where_nothing_is_left_each_process_of_the_host_is_looked_at_once(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, look = list[int](), reaper.environment_of

    def noted(pid: int) -> bytes:
        looked.append(pid)
        return look(pid)

    monkeypatch.setattr(reaper, "environment_of", noted)
    reaper.kill_all_carriers(token.encode())
    assert os.getppid() in looked and len(looked) == len(set(looked))


@pytest.fixture
def left() -> Iterator[Path]:
    """A file in shared memory, which its maker did not remove."""
    file = Path(f"/dev/shm/left-{uuid4().hex}")
    file.touch()
    yield file
    file.unlink(missing_ok=True)


def tracker(start: Start, left: Path, token: str) -> tuple[subprocess.Popen[bytes], int]:
    """The resource tracker of whoever holds the descriptor, told of the file."""
    read, write = os.pipe()
    os.write(write, f"REGISTER:/{left.name}:shared_memory\n".encode())
    command = f"from multiprocessing.resource_tracker import main;main({read})"
    tracking = start(sys.executable, "-c", command, token=token, pass_fds=[read], stderr=subprocess.DEVNULL)
    os.close(read)
    assert comes_true(lambda: signal.SIGTERM in ignored_by(tracking.pid))
    return tracking, write


def test_what_removes_the_shared_memory_of_carriers_ends_by_itself(start: Start, token: str, left: Path) -> None:
    tracking, write = tracker(start, left, token)
    start("sleep", "1000", token=token, pass_fds=[write])
    os.close(write)
    reaper.kill_all_carriers(token.encode())
    assert tracking.wait(TIMEOUT_S) == 0 and not left.exists()


def test_the_end_of_the_agent_leaves_no_shared_memory_of_its_groups(start: Start, token: str, left: Path) -> None:
    tracking, write = tracker(start, left, token)
    victim = start("sleep", "1000", pass_fds=[write])
    os.close(write)
    reaper.end({str(tracking.pid), str(victim.pid)}, token.encode())
    assert victim.wait(TIMEOUT_S) == -signal.SIGKILL
    assert tracking.wait(TIMEOUT_S) == 0 and not left.exists()


def test_what_does_not_end_by_itself_in_time_is_killed(
    start: Start, token: str, left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "_CLEANING_TIMEOUT_S", 0.01)
    tracking, write = tracker(start, left, token)
    reaper.kill_all_carriers(token.encode())
    os.close(write)
    assert tracking.wait(TIMEOUT_S) == -signal.SIGKILL


def test_a_carrier_is_seen_while_it_executes_another_program(start: Start, token: str) -> None:
    again = "import os, sys; os.execv(sys.executable, [sys.executable, '-ISc', sys.argv[1], sys.argv[1]])"
    carrier = start(sys.executable, "-ISc", again, again, token=token)
    assert comes_true(lambda: token.encode() in reaper.environment_of(carrier.pid))
    assert all(token.encode() in reaper.environment_of(carrier.pid) for _ in range(10_000))


def test_what_cleans_up_is_known_from_the_moment_in_which_it_is_started(start: Start) -> None:
    """A worker may die just after its tracker was spawned. The tracker shows no arguments before its exec is done."""
    waits = "from multiprocessing.resource_tracker import main; import time; time.sleep(1000)"
    assert all(reaper.cleans_up(start(sys.executable, "-ISc", waits).pid) for _ in range(20))


def test_a_process_that_was_given_no_environment_is_not_waited_for(start: Start) -> None:
    bare = start("env", "-i", "sleep", "1000")
    assert comes_true(lambda: not reaper._may_yet_show_it(bare.pid, reaper._ENVIRONMENT))
    assert reaper.environment_of(bare.pid) == b""


def test_the_end_looks_again_until_there_is_no_carrier(start: Start, token: str) -> None:
    group, carrier = sleeper(start), sleeper(start, token=token)
    reaper.end({str(group.pid)}, token.encode())
    assert not is_alive(group.pid) or group.wait(TIMEOUT_S)
    assert not is_alive(carrier.pid)


def test_the_end_in_the_middle_of_a_start_looks_once_more_for_carriers(start: Start, token: str) -> None:
    carrier = sleeper(start, token=token)
    reaper.end({reaper.STARTING}, token.encode())
    assert not is_alive(carrier.pid)


def test_a_process_that_is_gone_is_not_waited_for() -> None:
    reaper._wait_for([2**22 + 1])
    assert reaper.environment_of(2**22 + 1) == b""


def test_a_member_of_a_group_lives_though_its_environment_is_empty_until_it_is_dead(start: Start) -> None:
    victim = start("env", "-i", "sleep", "1000")
    group = {str(victim.pid)}
    assert reaper.living(group) == [victim.pid]
    victim.kill()
    reaper.outlive(group)  # a dead one that nobody has reaped is dead
    assert reaper.living(group) == []
    assert not is_alive(victim.pid)
