"""The calls of the kernel without which no worker can be watched, looked for before a job is joined.

An old kernel has no such call. A container's seccomp filter that was written for one refuses it, though the kernel has it.
Both would otherwise come out as a program that cannot be started, which ends the job on all nodes.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Callable, Mapping

_REFUSED = (errno.ENOSYS, errno.EPERM, errno.EACCES)


def _epoll() -> int:
    epoll = select.epoll()
    number = os.dup(epoll.fileno())
    epoll.close()
    return number


CALLS: Mapping[str, tuple[str, Callable[[], int]]] = {
    "eventfd2": ("2.6.27", lambda: os.eventfd(0, os.EFD_CLOEXEC)),
    "epoll_create1": ("2.6.27", _epoll),
}
"""The calls, each with the first version of Linux that has it, and a try of it that returns a descriptor."""


def slower() -> str:
    """Return the sentence for a host on which deaths are noticed by threads that wait (pidfds.py); else it is empty."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        if error.errno in _REFUSED:
            return f"{_refused('pidfd_open', error)}: a thread watches each process, so a restart takes a little longer"
    return ""


def _refused(name: str, error: OSError) -> str:
    reason = os.strerror(error.errno or 0).lower()
    return f"this kernel ({os.uname().release}) or its seccomp filter has no {name} ({reason})"


def missing() -> str:
    """Return the sentence for a call that this host refuses; empty if it has all of them. A host that only lacks a
    descriptor for the moment has them."""
    if not os.path.isdir("/proc/self/task"):
        return "/proc is not mounted here, and processes are looked for there: mount -t proc proc /proc"
    for name, (version, call) in CALLS.items():
        try:
            os.close(call())
        except OSError as error:
            if error.errno in _REFUSED:
                needs = f"it takes Linux {version}, and a container runtime that lets the call pass"
                return f"{_refused(name, error)}: {needs}"
    return ""
