"""Which processes a test has left behind, and their end.

What a test starts inherits a token in its environment, however deep: launcher, workers, data loaders, reapers, whatever
became an orphan. `/proc/PID/environ` shows the environment that a process was executed with, so a scan for the token
finds them all, and nothing else. A process forked from pytest itself without an exec has pytest's environment and is
not seen.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from elastic.adapters.workers.watch.reaper import environment_of

VARIABLE = "ELASTIC_TEST_TOKEN"


@frozen
class Process:
    pid: int
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid}: {self.command}"


def carries(pid: int, entry: bytes) -> bool:
    """Whether it was executed with this entry, NAME=TEXT, in its environment."""
    return entry in environment_of(pid).split(b"\0")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "(just ended)"


def alive_with(token: str) -> list[Process]:
    """The processes that were executed with the token, this one left out."""
    entry = f"{VARIABLE}={token}".encode()
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    return [Process(pid, _command(pid)) for pid in pids if pid != os.getpid() and carries(pid, entry)]


def left_after(token: str, settle_s: float) -> list[Process]:
    """What is still alive once `settle_s` has passed; returns as soon as nothing is."""
    ends_at = time.monotonic() + settle_s
    while (left := alive_with(token)) and time.monotonic() < ends_at:
        time.sleep(0.02)
    return left


def kill(processes: list[Process], token: str) -> None:
    """SIGKILL, and only to what still carries the token: a process id may have found a new owner meanwhile."""
    entry = f"{VARIABLE}={token}".encode()
    for process in processes:
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(process.pid)
            try:
                if carries(process.pid, entry):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            finally:
                os.close(descriptor)
