"""The last limit: a timer of the kernel that ends a process in which nothing can run any longer, not even Python.

The monitor process kills a hang at its limits. If it is dead, and the main thread holds the interpreter's lock for ever,
nobody in the process can start another; this timer then goes off. Whoever is able to run sets it anew (`beat`), so it never
goes off in a process that has a monitor or a thread at work.

A timer of its own (timer_create), not `signal.setitimer`: there is one of those in a process, the program may want it, and
it outlives an exec. It sends SIGALRM, which ends a process that does not handle it, so that the exit code tells what it was;
and SIGKILL if the program handles SIGALRM.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Final

from .own_code import own
from .shared_page import NS

SLACK_S: Final = 30.0
"""Beyond the hard limit: the monitor's time to notice, to ask, to kill."""
SIGEV_SIGNAL: Final = 0
CLOCK_MONOTONIC: Final = 1


class _Sigevent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )


class _Itimerspec(ctypes.Structure):
    _fields_ = (
        ("every_s", ctypes.c_long),
        ("every_ns", ctypes.c_long),
        ("after_s", ctypes.c_long),
        ("after_ns", ctypes.c_long),
    )


class Alarm:
    """One timer. A forked child has none."""

    def __init__(self, slack_s: float = SLACK_S) -> None:
        """Raises OSError where the kernel gives no timer."""
        self._slack_ns = int(slack_s * NS)
        self._lock = threading.Lock()
        self._limit = 0
        self._pid = os.getpid()
        self._timer = ctypes.c_void_p()
        self._library = ctypes.CDLL(None, use_errno=True)
        handled = signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
        event = _Sigevent(signo=signal.SIGKILL if handled else signal.SIGALRM, notify=SIGEV_SIGNAL)
        _checked(self._library.timer_create(CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)))

    @own
    def set(self, limit: int) -> None:
        """The hard limit that is now in force, in nanoseconds; 0: none, and no alarm."""
        with self._lock:
            self._limit = limit
            self._settime()

    @own
    def beat(self) -> None:
        """Somebody is at work here: all the time once more."""
        with self._lock:
            self._settime()

    def close(self) -> None:
        with self._lock:
            if os.getpid() == self._pid:
                self._library.timer_delete(self._timer)
            self._pid = -1

    @own
    def _settime(self) -> None:
        if os.getpid() != self._pid:
            return
        after = self._limit + self._slack_ns if self._limit else 0
        spec = _Itimerspec(0, 0, after // NS, after % NS)
        _checked(self._library.timer_settime(self._timer, 0, ctypes.byref(spec), None))


@own
def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"no timer of the kernel's: {os.strerror(number)}")
