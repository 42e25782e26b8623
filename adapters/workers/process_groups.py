"""Process groups: one worker and the children that stayed with it.

A group's number is the process id of its leader, the worker. While the leader is not reaped, even dead, the kernel
gives that number to nobody else; a group that still has members keeps it too. So a signal sent to a group before its
leader is reaped meets that group and no other.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

from ..clock import poll_ms
from .reaper import cleans_up

WAIT_TIMEOUT_S = 5.0
"""A process that was killed is waited for so long: a driver may hold on to it for seconds."""


def send(group: int, signum: int) -> bool:
    """Signal every member; return False if there is none (left)."""
    try:
        os.killpg(group, signum)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # members that run as another user
    return True


def died_within(pidfd: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(poll_ms(timeout_s)))


def kill(leader: int) -> None:
    """Kill the leader of a group, which is not reaped yet, and nothing else."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(leader, signal.SIGKILL)


def end(group: int, timeout_s: float = WAIT_TIMEOUT_S) -> bool:
    """Kill what is left of a group whose leader is reaped, and wait for its death; return True if nothing lives.

    Nearly always the first question answers it. Else the members are looked up in /proc, where one that is dead but not
    yet reaped by its own parent does not count. Nor does one that only cleans up behind the others: it is left alone, and
    not waited for.
    """
    deadline = time.monotonic() + timeout_s
    while send(group, 0):
        alive = members(group)
        others = [pid for pid in alive if not cleans_up(pid)]
        if not others:
            return True
        if len(others) == len(alive):
            send(group, signal.SIGKILL)
        for pid in others:  # all of them, before the wait for one
            _end(pid, group, 0.0)
        if not all(_end(pid, group, deadline) for pid in others):
            send(group, signal.SIGKILL)
            return False
    return True


def members(group: int) -> list[int]:
    """Return the living processes of a group."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_member(int(name), group)]


def _is_member(pid: int, group: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            state, _parent, pgrp, _rest = stat.read().rpartition(b") ")[2].split(b" ", 3)
    except OSError:
        return False
    return int(pgrp) == group and state not in (b"Z", b"X")


def _end(pid: int, group: int, deadline: float) -> bool:
    """Kill the process and return True if it is dead by the deadline. It may have joined after the group was killed."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return True  # no such process
    try:
        if not _is_member(pid, group):
            return True  # the process id is somebody else's by now
        _kill(pidfd)
        return died_within(pidfd, deadline - time.monotonic())
    finally:
        os.close(pidfd)


def _kill(pidfd: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        pass  # dead, or another user's
