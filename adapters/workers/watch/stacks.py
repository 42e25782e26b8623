"""The stacks of a node's workers, asked for all at once: what each of them was doing.

Python writes them itself where the start-up code has asked it to (start_up.py), in milliseconds. The agent sends the
signal only to a process that catches it and still has our file open: a program that was executed afresh has neither, and the
signal would kill it. Any other worker, and one that does not answer in time, is read by py-spy, if that is installed and the
kernel allows it. Else the kernel tells state, wait channel and system call. Arguments of calls and values of variables are
never read.
"""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ....core.values import define, evolve, frozen
from ... import pidfds
from ...terminal import printable
from ..messages.stack_text import as_traceback, main_thread, place
from ..start_up import StackHandler
from . import unkillable
from .py_spy import texts_of

TIMEOUT_S = 1.0
"""All workers together have this long to answer."""
PY_SPY_S = 0.5
"""Those that have not answered may be read by py-spy for this long."""
TEXT_MAX = 2**17
"""This many bytes of a worker's own text are read."""
_SILENCE_S = 0.05
"""A worker that took the signal and wrote nothing for this long has a handler of its own for it."""
_PAUSES_S = (0.0002, 0.0005, 0.001, 0.002, 0.004, 0.008)
_TASKS_MAX = 64
_NAME = "/memfd:elastic-stacks (deleted)"
_looking = threading.Lock()
_DEAD = "ZX"
_STOPPED, _RUNNING, _ASLEEP = "TRS"
_RESTS, _REST_S = 20, 0.001
"""How many times a look waits for a running thread to sleep, and the pause between."""
_STATES = {
    "R": "running",
    "S": "asleep",
    "D": "in uninterruptible sleep",
    "T": "stopped (SIGSTOP)",
    "t": "stopped by a debugger",
}


@frozen
class Task:
    """A thread as the kernel sees it. `waits_in` is a function of the kernel, `call` the number of a system call."""

    tid: int
    state: str
    waits_in: str = ""
    call: str = ""

    @property
    def place(self) -> str:
        state = _STATES.get(self.state, f"in state {self.state}")
        return f"{state} in {self.waits_in} (kernel)" if self.waits_in and self.state in "SD" else state

    @property
    def line(self) -> str:
        waits = f", in {self.waits_in}" if self.waits_in else ""
        return f"kernel: task {self.tid}, state {self.state}{waits}{f', system call {self.call}' if self.call else ''}"


@frozen
class Sighting:
    """One worker as it was seen: Python's text, if it wrote one, and the kernel's view.

    `is_cut`: it had not written all of its text when the time was over, so the text names no place.
    """

    pid: int
    text: str
    tasks: tuple[Task, ...]
    is_cut: bool = False

    def told_by(self, text: str) -> Sighting:
        """Return the same with this text."""
        return evolve(self, text=text, is_cut=False)

    @property
    def place(self) -> str:
        """Return where its main thread is."""
        kernel = self.tasks[0].place if self.tasks else "out of sight"
        if not self.text or self.is_cut:
            return kernel
        found = place(main_thread(self.text).frames)
        return f"{found}, {kernel}" if self.tasks and self.tasks[0].state == _STOPPED else found

    @property
    def callstack(self) -> str:
        """Return the main thread's stack as a traceback has it; empty if Python has not told of it."""
        return "" if self.is_cut else as_traceback(main_thread(self.text).frames)

    @property
    def lines(self) -> list[str]:
        """Return all that is known, line by line, printable."""
        return [self.place, *(task.line for task in self.tasks), "", *map(printable, self.text.split("\n"))]


@define
class _Asked:
    """A worker whose main thread was sent the signal."""

    pid: int
    bit: int
    file: int
    silent_since: float | None = None
    has_answered: bool = False

    def look(self, now: float) -> None:
        """See whether it has written its stacks, is dead, or took the signal and wrote nothing. `now` is in seconds."""
        status = _status(self.pid)
        if status is None:
            self.has_answered = True
            return
        if any(_has(status, signals, self.bit) for signals in (b"SigPnd", b"ShdPnd", b"SigBlk")):
            return  # it is still to come, or the handler writes: the kernel blocks the signal meanwhile
        self.silent_since = now if self.silent_since is None else self.silent_since
        self.has_answered = os.fstat(self.file).st_size > 0 or now - self.silent_since >= _SILENCE_S


def see(
    workers: Mapping[int, int], handler: StackHandler | None, timeout_s: float = TIMEOUT_S, ends: bool = False
) -> dict[int, Sighting]:
    """Return what these workers are doing, as their numbers in `workers` name them; those that are dead are left out.

    The values of `workers` are process ids. `ends`: they are to be ended anyway, so a stopped one runs on and answers, and a
    busy one is asked. Other workers are sent the signal while their main thread sleeps, or not at all: Python may die of
    SIGSEGV as it writes a stack that it is about to change. One thread looks at a time: two would write over each other.
    """
    with _looking:
        return _seen(workers, handler, timeout_s, ends)


def last_sight(pid: int, handler: StackHandler | None) -> Sighting | None:
    """Look at a worker that is killed next, whatever the look shows: a host that lacks what this takes shows nothing."""
    try:
        return see({0: pid}, handler, ends=True).get(0)
    except (ImportError, OSError):
        return None


def _seen(
    workers: Mapping[int, int], handler: StackHandler | None, timeout_s: float, ends: bool
) -> dict[int, Sighting]:
    tasks = {name: found for name, pid in workers.items() if (found := _tasks(pid, 1)) and found[0].state not in _DEAD}
    asked: dict[int, _Asked] = {}
    try:
        for name in tasks:
            if handler and (one := _ask(workers[name], handler, ends)):
                asked[name] = one
        _wait(asked, timeout_s)
        seen = {name: _sighting(workers[name], asked.get(name), tasks[name]) for name in tasks}
        texts = texts_of([each.pid for each in seen.values() if not each.text or each.is_cut], PY_SPY_S)
        return {name: each.told_by(texts[each.pid]) if each.pid in texts else each for name, each in seen.items()}
    finally:
        for one in asked.values():
            os.close(one.file)


def _ask(pid: int, handler: StackHandler, ends: bool) -> _Asked | None:
    """Send the signal; None to a worker that would not write its stacks, or that may not be disturbed now."""
    bit = 1 << (handler.signum - 1)
    try:
        process = pidfds.opened(pid)
    except OSError:
        return None
    try:
        status = _status(pid)
        if not status or not _has(status, b"SigCgt", bit):
            return None
        # A signal to the process could be taken by any thread, which would write its own stack, or none.
        file = None if _has(status, b"SigBlk", bit) else _opened(f"/proc/{pid}/fd/{handler.descriptor}")
        if file is None:
            return None
        is_stopped = b"\nState:\tT" in status
        if not (ends or _comes_to_rest(pid)) or not _sent(process, pid, handler.signum, is_stopped):
            os.close(file)
            return None
        return _Asked(pid, bit, file)
    finally:
        os.close(process)


def _sent(process: int, pid: int, signum: int, resume: bool) -> bool:
    """Send the signal to the main thread of the very process that was looked at: its id may be another's by now."""
    import ctypes  # a job in which nothing fails needs none of it

    with suppress(OSError, AttributeError):
        pidfds.send(process, 0)
        if ctypes.CDLL(None).tgkill(pid, pid, signum) == 0:
            if resume:
                pidfds.send(process, signal.SIGCONT)
            return True
    return False


def _comes_to_rest(pid: int) -> bool:
    """Wait a little until the main thread sleeps in the kernel; return False if it does not."""
    for _ in range(_RESTS):
        state = unkillable.state(pid)
        if state != _RUNNING:
            return state == _ASLEEP
        time.sleep(_REST_S)
    return False


def _opened(path: str) -> int | None:
    """Open the file under a worker's descriptor, emptied; None if it is not ours."""
    with suppress(OSError):
        if os.readlink(path) != _NAME:
            return None
        file = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(0, "not a regular file")
            os.ftruncate(file, 0)
        except OSError:
            os.close(file)
            raise
        return file
    return None


def _wait(asked: Mapping[int, _Asked], timeout_s: float) -> None:
    """Wait until all have answered. A pause counts twice its length at most: a machine may have stood still meanwhile."""
    waiting, looks, waited_s = list(asked.values()), 0, 0.0
    while waiting and waited_s < timeout_s:
        pause_s = min(_PAUSES_S[min(looks, len(_PAUSES_S) - 1)], timeout_s - waited_s)
        began = time.monotonic()
        time.sleep(pause_s)
        waited_s += min(time.monotonic() - began, 2 * pause_s)
        looks += 1
        for one in waiting:
            one.look(waited_s)
        waiting = [one for one in waiting if not one.has_answered]


def _sighting(pid: int, asked: _Asked | None, before: tuple[Task, ...]) -> Sighting:
    data = os.pread(asked.file, TEXT_MAX, 0) if asked else b""
    is_cut = asked is not None and not asked.has_answered
    tasks = before if data and not is_cut else _tasks(pid, _TASKS_MAX) or before
    return Sighting(pid, data.decode("ascii", "backslashreplace"), tasks, is_cut)


# --- what the kernel tells


def _status(pid: int) -> bytes | None:
    """Return what the kernel says of the main thread; None if it is dead."""
    status = _bytes(Path(f"/proc/{pid}/status"))
    return None if not status or b"\nState:\tZ" in status or b"\nState:\tX" in status else status


def _has(status: bytes, field: bytes, bit: int) -> bool:
    """Return True if this set of signals has that one."""
    _, _, rest = status.partition(b"\n" + field + b":\t")
    return bool(int(rest[:16] or b"0", 16) & bit)


def _tasks(pid: int, most: int) -> tuple[Task, ...]:
    """Return the first threads of a process, the main one first; none if it is gone."""
    return tuple(task for tid in _tids(pid)[:most] if (task := _task(Path(f"/proc/{pid}/task/{tid}"), tid)))


def _tids(pid: int) -> list[int]:
    """Return the ids of its threads, the main one first; none if it is gone."""
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")), key=lambda tid: (tid != pid, tid))
    except OSError:
        return []


def _task(folder: Path, tid: int) -> Task | None:
    state = unkillable.state(tid, folder.parent)
    waits_in, call = _read(folder / "wchan").strip("0\n"), _read(folder / "syscall").partition(" ")[0].strip()
    return Task(tid, state, printable(waits_in[:64]), call if call.isdecimal() else "") if state else None


def _read(file: Path) -> str:
    return _bytes(file).decode("ascii", "replace")


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
