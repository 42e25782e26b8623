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
from collections.abc import Sequence
from contextlib import suppress

from ... import pidfds
from ...clock import poll_ms
from ...process_stat import DEAD, stat
from ...terminal import printable
from .reaper import cleans_up, command_of

WAIT_TIMEOUT_S = 5.0
"""A process that was killed is waited for this long: a driver may hold on to it for seconds."""
_NAMED_MAX = 4
_COMPILES = b"torch/_inductor/compile_worker/"


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


def send_alone(leader: int, signum: int) -> None:
    """Signal the leader of a group, which is not reaped yet, and nothing else."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(leader, signum)


def tell(group: int, signum: int) -> None:
    """Signal every member, and let a stopped one run: the signal waits for that."""
    send(group, signum)
    send(group, signal.SIGCONT)


def tell_alone(leader: int, signum: int) -> None:
    """Do the same for the leader alone."""
    send_alone(leader, signum)
    send_alone(leader, signal.SIGCONT)


def send_children(group: int, signum: int) -> None:
    """Signal every member but the leader, which is not reaped yet."""
    for pid in members(group):
        if pid != group and (pidfd := opened(pid, group)) is not None:
            _send(pidfd, signum)
            os.close(pidfd)


def others(group: int) -> list[int]:
    """Return the living members that do more than to clean up behind the others; the leader is dead."""
    return [pid for pid in members(group) if pid != group and not cleans_up(pid)] if send(group, 0) else []


def left(group: int) -> list[int]:
    """Return the living members that may have something to finish: torch's compile workers have not."""
    return [pid for pid in others(group) if _COMPILES not in command_of(pid)]


def wait(group: int, timeout_s: float) -> None:
    """Wait until no other member does more than to clean up; the leader is dead."""
    deadline = time.monotonic() + timeout_s
    for pid in others(group):
        if (pidfd := opened(pid, group)) is not None:
            died_within(pidfd, max(deadline - time.monotonic(), 0.0))
            os.close(pidfd)


def tracer(pid: int) -> int | None:
    """Return which process traces this one, as a debugger does; None for no one that can be seen."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            found = next((line for line in status if line.startswith(b"TracerPid:")), b"0")
    except OSError:
        return None
    return int(found.split()[-1]) or None


def counted(pids: Sequence[int]) -> str:
    """Return how many processes these are, as `1 process` or `3 processes`."""
    return "1 process" if len(pids) == 1 else f"{len(pids)} processes"


def named(pids: Sequence[int]) -> str:
    """Return the names of these processes, as `python3 (pid 123), sh (pid 124)`: a few of them."""
    texts = [f"{_name(pid)} (pid {pid})" for pid in pids[:_NAMED_MAX]]
    return ", ".join([*texts, *([f"{len(pids) - _NAMED_MAX} more"] if len(pids) > _NAMED_MAX else [])])


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return printable(comm.read().decode(errors="replace").strip()) or "?"
    except OSError:
        return "?"


def kill(leader: int) -> None:
    """Kill the leader of a group, which is not reaped yet, and nothing else."""
    send_alone(leader, signal.SIGKILL)


def end(group: int, timeout_s: float = WAIT_TIMEOUT_S) -> bool:
    """Kill what is left of a group whose leader is reaped, and wait for its death; return True if nothing lives.

    Nearly always the first question answers it. Else the members are looked up in /proc, where one that is dead but not
    yet reaped by its own parent does not count. Nor does one that only cleans up behind the others: it is left alone, and
    not waited for.
    """
    deadline = time.monotonic() + timeout_s
    while send(group, 0):
        alive = members(group)
        ending = [pid for pid in alive if not cleans_up(pid)]
        if not ending:
            return True
        if len(ending) == len(alive):
            send(group, signal.SIGKILL)
        for pid in ending:  # all of them, before the wait for one
            _end(pid, group, 0.0)
        if not all(_end(pid, group, deadline) for pid in ending):
            send(group, signal.SIGKILL)
            return False
    return True


def members(group: int) -> list[int]:
    """Return the living processes of a group."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_member(int(name), group)]


def _is_member(pid: int, group: int) -> bool:
    try:
        state, _parent, pgrp, *_rest = stat(pid)
    except OSError:
        return False
    return int(pgrp) == group and state not in DEAD


def opened(pid: int, group: int) -> int | None:
    """Return a pidfd of this member, the caller's to close; None if it is dead and its number perhaps another's."""
    try:
        pidfd = pidfds.opened(pid)
    except OSError:
        return None
    if _is_member(pid, group):
        return pidfd
    os.close(pidfd)
    return None


def _end(pid: int, group: int, deadline: float) -> bool:
    """Kill the process and return True if it is dead by the deadline. It may have joined after the group was killed."""
    pidfd = opened(pid, group)
    if pidfd is None:
        return True
    try:
        _send(pidfd, signal.SIGKILL)
        return died_within(pidfd, deadline - time.monotonic())
    finally:
        os.close(pidfd)


def _send(pidfd: int, signum: int) -> None:
    with suppress(OSError):  # dead, or another user's
        pidfds.send(pidfd, signum)
