"""Process groups: signals, members, and the wait for the dying."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from processes import TIMEOUT_S, comes_true, is_alive

from elastic.adapters.workers.watch import process_groups as groups
from elastic.adapters.workers.watch.reaper import cleans_up


@pytest.fixture
def orphans(nothing_left: str, tmp_path: Path) -> Iterator[tuple[int, list[int]]]:
    """A group whose leader is dead and reaped, and its two members that live."""
    pids = tmp_path / "pids"
    script = f"sleep 1000 & echo $! >>{pids}; sleep 1000 & echo $! >>{pids}"
    leader = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    leader.wait(TIMEOUT_S)
    yield leader.pid, sorted(int(pid) for pid in pids.read_text().split())
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)


def test_the_members_of_a_group_are_its_living_processes(orphans: tuple[int, list[int]]) -> None:
    group, members = orphans
    assert sorted(groups.members(group)) == members
    os.kill(members[0], signal.SIGKILL)
    assert comes_true(lambda: groups.members(group) == members[1:])


def test_a_group_is_buried_when_its_last_member_is_dead(orphans: tuple[int, list[int]]) -> None:
    group, members = orphans
    assert groups.send(group, signal.SIGKILL)
    assert groups.end(group)
    assert not any(is_alive(pid) for pid in members)


def test_a_member_that_was_missed_by_the_signal_is_killed(orphans: tuple[int, list[int]]) -> None:
    group, members = orphans
    assert groups.end(group)
    assert not any(is_alive(pid) for pid in members)


@pytest.mark.parametrize(
    "command",
    [
        f"{sys.executable} -c 'import os; os.read(0, 1)' 'from multiprocessing.resource_tracker import main;main(3)'",
        "(exec -a torch_shm_manager sleep 1000)",
    ],
)
def test_a_member_that_only_cleans_up_is_left_alone_and_not_waited_for(nothing_left: str, command: str) -> None:
    script = f"{command} <&0 & echo $!; sleep 1000 & echo $!"
    leader = subprocess.Popen(
        ["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert leader.stdout
    cleaning, other = (int(leader.stdout.readline()) for _ in range(2))
    leader.stdout.close()
    leader.wait(TIMEOUT_S)
    assert comes_true(lambda: cleans_up(cleaning))
    assert groups.end(leader.pid)
    assert is_alive(cleaning) and not is_alive(other)
    os.kill(cleaning, signal.SIGKILL)
    assert leader.stdin
    leader.stdin.close()


def test_a_group_that_has_gone_is_buried_at_once() -> None:
    leader = subprocess.Popen(["true"], start_new_session=True)
    leader.wait(TIMEOUT_S)
    assert not groups.send(leader.pid, 0)
    assert groups.end(leader.pid)


def test_the_dead_that_nobody_reaps_do_not_hold_a_burial_up(nothing_left: str) -> None:
    leader = subprocess.Popen(["true"], start_new_session=True)
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
    assert groups.send(leader.pid, 0)
    assert groups.end(leader.pid)
    leader.wait(TIMEOUT_S)


def test_the_wait_is_bounded(orphans: tuple[int, list[int]]) -> None:
    group, members = orphans
    assert not groups._end(members[0], group, deadline=0.0) or not is_alive(members[0])
    assert not groups.end(group, timeout_s=-1.0) or not groups.members(group)


def test_a_process_that_is_gone_or_no_member_is_as_good_as_dead(orphans: tuple[int, list[int]]) -> None:
    group, _ = orphans
    assert groups._end(2**22 + 1, group, deadline=0.0)
    assert groups._end(os.getpid(), group, deadline=0.0)
    assert not groups._is_member(2**22 + 1, group)


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user's process")
def test_another_users_member_counts_but_cannot_be_killed(nothing_left: str, tmp_path: Path) -> None:
    read, write = os.pipe()
    leader = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.setuid(65534)
        answers = groups.send(leader.pid, signal.SIGKILL), groups.end(leader.pid, timeout_s=0.01)
        os.write(write, repr(answers).encode())
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(read, 100)
    os.close(read)
    os.close(write)
    leader.kill()
    leader.wait(TIMEOUT_S)
    assert told == b"(True, False)"
