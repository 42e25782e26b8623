"""Processes that lost their parent below the agent: the agent adopts them, reaps the dead, and kills the rest at its end.

A worker's child may have a session of its own and an empty environment; neither its group nor its token finds it then. But
when its parents are dead the kernel gives it to the agent, which asked to be the reaper of its descendants. So does a
container give its orphans to its first process.

Only a process that runs nothing but an agent may adopt orphans. An event handler, a plugin of logs, or a program that calls
`elastic.launch` has children too, and nothing tells them from orphans: when the thread that started a child has ended, the
kernel lists the child below the main thread, like an orphan; its environment may be empty, and a dead process shows none. To
reap one would take its exit code from its parent, and `Popen.wait` would return 0. There a server executes the workers, and
adopts their orphans (`Serving` in forks.py).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext, suppress

from ... import pidfds
from .process_groups import died_within

_PR_SET_CHILD_SUBREAPER = 36
_PASSES_MAX = 100
"""A program that forks faster than it is killed must not keep the agent for ever."""
_DYING_TIMEOUT_S = 5.0


class Orphans:
    """The orphans of this process. Children that it has when this is made are left alone."""

    def __init__(self, spared: Callable[[], AbstractContextManager[Collection[int]]] = lambda: nullcontext(())) -> None:
        """`spared` returns a context with children that outlive all others. While it is open, none is started."""
        self._spared = spared
        self._before = set(_children())
        self._adopts = False

    def adopt(self) -> None:
        """Ask the kernel for the orphans. Idempotent. Raises ImportError or OSError if the host lacks what that takes."""
        if not self._adopts:
            _ask_for_orphans(True)
            self._adopts = True

    def reap(self, own: Collection[int]) -> None:
        """Reap the dead orphans. Other code waits for the children in `own`. If no descriptor is free, the next call reaps
        them. The kernel gives orphans to the main thread, so this reads only that thread's children: each restart waits for
        this call."""
        with suppress(OSError):
            for pid in _children_of(os.getpid()):
                if pid not in own and pid not in self._before:
                    _reaped(pid)

    def kill(self) -> None:
        """Kill the living orphans, and those that they leave, and adopt no more. Call this when all other children are gone.
        Raises OSError if some live on."""
        try:
            with self._spared() as spared:
                lasting = self._killed(spared)
            if lasting:
                raise OSError(f"orphans that could not be killed live on: {', '.join(map(str, sorted(lasting)))}")
        finally:
            if self._adopts:
                self._adopts = False
                _ask_for_orphans(False)

    def _killed(self, spared: Collection[int]) -> set[int]:
        """Kill all orphans; return those that live on: another user's, and those that the kernel does not let die."""
        lasting, ends_at = set[int](), time.monotonic() + _DYING_TIMEOUT_S
        for _ in range(_PASSES_MAX):
            orphans = set(_children()) - self._before - {*spared} - lasting
            if not orphans:
                break
            for pid in orphans:
                try:
                    os.kill(pid, signal.SIGKILL)
                except PermissionError:
                    lasting.add(pid)
            lasting.update(pid for pid in orphans - lasting if not _dies(pid, ends_at))
        return lasting


def _ask_for_orphans(asks: bool) -> None:
    import ctypes  # which costs some milliseconds before the first worker runs

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(asks), 0, 0, 0)


def _children() -> list[int]:
    """Return the children of all threads of this process, dead ones included."""
    found = []
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):  # the thread has ended; or the kernel has no such file
            found += _children_of(int(thread))
    return found


def _children_of(thread: int) -> list[int]:
    with open(f"/proc/self/task/{thread}/children", "rb", buffering=0) as children:
        return [int(pid) for pid in children.readall().split()]


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _dies(pid: int, ends_at: float) -> bool:
    try:
        pidfd = pidfds.opened(pid)
    except OSError:
        return _reaped(pid)
    try:
        return died_within(pidfd, max(ends_at - time.monotonic(), 0.0)) and _reaped(pid)
    finally:
        os.close(pidfd)
