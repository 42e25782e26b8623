"""A program of its own: it outlives an agent that was killed, and sees to it that none of the agent's workers does.

    python -I -S reaper.py TOKEN < pipe

The agent holds the pipe's only write end, so the pipe's end is the agent's end, however it came; an agent that ends well
kills its reaper first. Lines `+GROUP` and `-GROUP` say which process groups, one for each worker, the agent holds. At the
end of the pipe those are killed, and then whatever carries TOKEN in its environment: a worker's children that made their
own session, and a worker that was just being started, whose group the agent could not name yet. While the agent starts
processes it also holds the group `?`; then this program looks once more, for a process that did not carry TOKEN yet.

This program inherits the listening socket of the agent's links, and never looks at it. Other nodes find that port open
until this program ends, which is when the last process that it knows of is dead: no world starts beside workers that are
still being torn down.

Last come the processes that only remove what the others leave in shared memory (`cleans_up`): they get a moment for it.

The kernel's parent-death signal (setpriv) kills the workers themselves without this program. It does not reach their
children, nor a worker that had not asked for it yet.

Cheap to start, since that may take time from the first worker's start: `_signal` is the C half of `signal`, whose import
is a third of the start-up. Only SIGKILL ends this program: a service that stops the agent and all its helpers at once by
SIGTERM would otherwise take away the one that must be last.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os
import sys
import time

_PASSES_MAX = 100
"""Looks through /proc at most: a program that forks faster than it is killed must not keep this one for ever."""
_DYING_TIMEOUT_S = 10.0
"""The processes that one pass killed are waited for this long; a driver may take seconds to let go of one."""
_CLEANING_TIMEOUT_S = 5.0
"""A process that cleans up ends by itself within milliseconds, unless somebody else holds its pipe."""
STARTING = "?"
"""The name of no group. The agent holds it while it starts processes."""
_EXEC_TIMEOUT_S = 0.1
"""A new worker may take this long from fork to exec: meanwhile it has closed the pipe and does not carry the token yet."""
_TRACKER = b"from multiprocessing.resource_tracker import main"
_ARGUMENTS, _ENVIRONMENT = (48, 49), (50, 51)
"""The fields of /proc/PID/stat that say where these begin and end in its memory, numbered as proc(5) does."""
_LOOK_S = 0.005
"""The pause between two looks at a dying process where there is no pidfd."""
_DEAD = (b"Z", b"X", b"x")
_READS_MAX = 1000
_READ_PAUSE_S = 0.001
"""Retry count and pause for a process that is caught in the middle of an exec."""


def held_at_the_end(pipe: int) -> set[str]:
    """Read the pipe to its end, which is the agent's; return the groups that the agent still held then."""
    held: set[str] = set()
    rest = b""
    while chunk := os.read(pipe, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            change, name = line[:1], line[1:].decode("ascii", "replace")
            if change == b"+":
                held.add(name)
            elif change == b"-":
                held.discard(name)
    return held


def kill_groups(held: set[str]) -> None:
    for group in sorted(int(name) for name in held if name.isdigit()):
        if group > 1:  # 0 would be our own group, and 1 is init's
            _kill(-group)


def kill_carriers(
    token: bytes, dying_timeout_s: float = _DYING_TIMEOUT_S, before: frozenset[int] = frozenset()
) -> tuple[list[int], list[int]]:
    """Kill every process that has the token in its environment, but those that were killed before, and wait for its death;
    return them, and the processes that clean up behind the others: these are spared."""
    found = {pid: cleans_up(pid) for pid in carriers(token) if pid not in before}
    killed = [pid for pid, cleans in found.items() if not cleans]
    _kill_all(killed, dying_timeout_s)
    return killed, [pid for pid, cleans in found.items() if cleans]


def cleans_up(pid: int) -> bool:
    """Return True if this process only removes the shared memory and the semaphores that others leave: multiprocessing's
    resource tracker, or torch's manager of shared memory. It ends by itself when those others are dead."""
    words = command_of(pid).split(b"\0")
    return words[0].rpartition(b"/")[2] == b"torch_shm_manager" or any(word.startswith(_TRACKER) for word in words)


def carriers(token: bytes) -> list[int]:
    """Return the living processes that have the token in their environment."""
    return [pid for pid in _processes() if token in environment_of(pid)]


def kill_all_carriers(
    token: bytes, dying_timeout_s: float = _DYING_TIMEOUT_S, lasting: frozenset[int] = frozenset()
) -> None:
    """Kill the carriers, and those that they start meanwhile; then what has not finished cleaning up behind them. Those of
    `lasting` were killed, and are not waited for."""
    cleaning: list[int] = []
    for _ in range(_PASSES_MAX):
        killed, cleaning = kill_carriers(token, dying_timeout_s, lasting)
        if not killed:
            break
        lasting |= frozenset(filter(_is_dying, killed))  # held by the kernel, or by a tracer
    if cleaning:
        _wait_for(cleaning, min(_CLEANING_TIMEOUT_S, dying_timeout_s))
        _kill_all(carriers(token), dying_timeout_s)


def _kill_all(pids: list[int], dying_timeout_s: float) -> None:
    for pid in pids:
        _kill(pid)
    _wait_for(pids, dying_timeout_s)


def _kill(pid_or_minus_group: int) -> None:
    try:
        os.kill(pid_or_minus_group, signal.SIGKILL)
    except OSError:
        pass  # gone already, or another user's


def _processes() -> list[int]:
    me = os.getpid()
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != me]


def command_of(pid: int) -> bytes:
    """Return the command line of a process; empty if it is gone, or another user's."""
    return _shown(pid, "cmdline", _ARGUMENTS)


def environment_of(pid: int) -> bytes:
    """Return the environment of a process; empty if it is gone, or another user's."""
    return _shown(pid, "environ", _ENVIRONMENT)


def _shown(pid: int, file: str, place: tuple[int, int]) -> bytes:
    """Return what this file of /proc shows of a process. In the middle of an exec that is nothing for a moment: then it is
    read again."""
    for _ in range(_READS_MAX):
        try:
            with open(f"/proc/{pid}/{file}", "rb", buffering=0) as shows:
                found = shows.read()
            if found or not _may_yet_show_it(pid, place):
                return found
        except OSError:
            break  # gone, or another user's
        _pause(_READ_PAUSE_S)
    return b""


def _may_yet_show_it(pid: int, place: tuple[int, int]) -> bool:
    """Return True if a process that showed nothing was in the middle of an exec. Raises OSError if it is gone."""
    fields = _stat(pid)
    memory, code, begin, end = (int(fields[number - 3]) for number in (23, 26, *place))
    return memory > 0 and (code == 0 or begin < end)  # a kernel thread and a zombie have no memory


def _wait_for(pids: list[int], dying_timeout_s: float = _DYING_TIMEOUT_S) -> None:
    """Wait until all of them are dead: one that is being torn down still shows its environment."""
    import select

    ends_at = time.monotonic() + dying_timeout_s
    pidfds = []
    for pid in pids:
        try:
            pidfds.append(os.pidfd_open(pid))
        except ProcessLookupError:
            pass
        except OSError:  # this kernel has none
            while _is_dying(pid) and time.monotonic() < ends_at:
                _pause(_LOOK_S)
    for pidfd in pidfds:
        ready = select.poll()
        ready.register(pidfd, select.POLLIN)
        ready.poll(max(ends_at - time.monotonic(), 0) * 1000)
        os.close(pidfd)


def _is_dying(pid: int) -> bool:
    """Return True if this process, which was killed, is not dead yet."""
    try:
        return _stat(pid)[0] not in _DEAD
    except OSError:
        return False


def _stat(pid: int) -> list[bytes]:
    """Return what process_stat.py returns: this program imports nothing of the package. Raises OSError."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()


def _pause(span_s: float) -> None:
    import select

    select.poll().poll(max(span_s, 0) * 1000)


def living(groups: set[str]) -> list[int]:
    """Return the processes of these groups that are not dead, those without an environment too: one that is being torn down
    has none any longer, and may take seconds to let go of a device."""
    found = []
    for pid in _processes():
        try:
            state, _, group, *_ = _stat(pid)
        except OSError:
            continue  # gone
        if group.decode() in groups and state not in _DEAD:
            found.append(pid)
    return found


def outlive(groups: set[str]) -> None:
    """Wait until nothing of these groups lives. Until then the agent's port is open, by which other nodes know of them."""
    while pids := living(groups):
        _wait_for(pids)


def end(held: set[str], token: bytes) -> None:
    began_at = time.monotonic()
    members = living(held)
    cleaning = [pid for pid in members if cleans_up(pid)]
    if cleaning:
        for pid in set(members).difference(cleaning):
            _kill(pid)
        kill_all_carriers(token)
    kill_groups(held)
    kill_all_carriers(token)
    if STARTING in held:
        _pause(began_at + _EXEC_TIMEOUT_S - time.monotonic())
        kill_carriers(token)
    outlive(held)


def main() -> None:
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_IGN)
    token = sys.argv[1].encode()
    end(held_at_the_end(0), token)


if __name__ == "__main__":
    main()
    os._exit(0)  # 5 ms before Python has taken itself apart: the port of the links closes now
