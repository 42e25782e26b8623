"""A descriptor that becomes readable when a process is dead: the kernel's pidfd, or a slower stand-in where it has none.

Linux before 5.3, or a seccomp filter that was written for one, refuses `pidfd_open`. There a thread waits for the process,
in `waitid` if that is a child, else by looks at /proc, and then writes into a pipe, whose other end is the descriptor. The
process stays a zombie as long as its parent wants, as with a pidfd.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from contextlib import suppress

from ..core.values import define, frozen
from . import threads
from .process_stat import DEAD, stat

LOOK_S = 0.02
"""The pause between two looks at a process that another one has started."""
_REFUSED = (errno.ENOSYS, errno.EPERM, errno.EACCES)


@frozen
class _Process:
    """`began` is when the process began, in the kernel's words: a later process of this number is another one."""

    pid: int
    began: bytes


@define
class _Pipe:
    """The pipe that stands in for a pidfd. `write` is closed, and None, once the process is dead."""

    process: _Process
    inode: int
    write: int | None


class StandIns:
    """The watched processes, each with its thread and the pipes that tell of its end. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipes: dict[int, _Pipe] = {}
        """By their read ends, which belong to the callers."""
        self._awaited: set[_Process] = set()
        """Each of these has a thread that waits for its end."""

    def opened(self, pid: int) -> int:
        """Return a descriptor for this process, the caller's to close. Raises ProcessLookupError, NoThread, OSError."""
        found = _look(pid)
        if found is None:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        process, _ = found
        with self._lock:
            self._prune()
            read, write = os.pipe()
            self._prune()  # a caller may have closed a pipe since, and the new one have its number
            self._pipes[read] = _Pipe(process, os.fstat(read).st_ino, write)
            if process not in self._awaited:
                wait = threading.Thread(target=self._wait, args=(process,), name="elastic-wait", daemon=True)
                try:
                    threads.start(wait, patience_s=0.0)
                except threads.NoThread:
                    os.close(read)
                    self._prune()
                    raise
                self._awaited.add(process)
        return read

    def sent(self, descriptor: int, signum: int) -> bool:
        """Signal the process; return False if the descriptor is none of these. Raises OSError."""
        with self._lock:
            self._prune()
            pipe = self._pipes.get(descriptor)
        if pipe is None:
            return False
        found = _look(pipe.process.pid)
        if found is None or found[0] != pipe.process:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        os.kill(pipe.process.pid, signum)
        return True

    def _wait(self, process: _Process) -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        while not self._has_ended(process):
            time.sleep(LOOK_S)

    def _has_ended(self, process: _Process) -> bool:
        """Return True if the process is dead, which its pipes then tell, or if all of them are closed."""
        is_dead = _is_dead(process)
        with self._lock:
            self._prune()
            pipes = [pipe for pipe in self._pipes.values() if pipe.process == process]
            if pipes and not is_dead:
                return False
            self._awaited.discard(process)
            for pipe in pipes:
                if pipe.write is not None:
                    with suppress(BrokenPipeError):  # its caller has closed it since the look
                        os.write(pipe.write, b"\0")
                    os.close(pipe.write)
                    pipe.write = None
        return True

    def _prune(self) -> None:
        """Forget the pipes that the callers have closed."""
        closed = [read for read, pipe in self._pipes.items() if _inode(read) != pipe.inode]
        for read in closed:
            write = self._pipes.pop(read).write
            if write is not None:
                os.close(write)


def _inode(descriptor: int) -> int | None:
    try:
        return os.fstat(descriptor).st_ino
    except OSError:
        return None


def _is_dead(process: _Process) -> bool:
    try:
        found = _look(process.pid)
    except OSError:  # no descriptor is free for the look
        return False
    return found is None or found[0] != process or found[1]


def _look(pid: int) -> tuple[_Process, bool] | None:
    """Return the process of this number, and True if it is dead and not reaped; None if there is none. Raises OSError."""
    try:
        fields = stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Process(pid, fields[19]), fields[0] in DEAD


_stand_ins = StandIns()


def opened(pid: int) -> int:
    """Return a descriptor that becomes readable when this process is dead, the caller's to close. Raises OSError."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
    return _stand_ins.opened(pid)


def send(descriptor: int, signum: int) -> None:
    """Signal the process of such a descriptor. Raises OSError."""
    try:
        signal.pidfd_send_signal(descriptor, signum)
    except OSError as error:
        if not _stand_ins.sent(descriptor, signum):
            raise error from None
