"""The last limit: a timer of the kernel that ends a process in which no Python code can run any longer.

The monitor process kills a process that hangs, at its limits. If the monitor is dead and the main thread holds the
interpreter's lock for ever, no thread can start another monitor, and this timer goes off. A thread that can run renews the
timer (`beat`), so it never goes off in a process that has a monitor or a working thread.

The timer is a separate one (timer_create), not `signal.setitimer`: a process has one of those, the program may need it, and
it outlives an exec. It sends SIGALRM, which ends a process that does not handle it and shows in the exit code; if the
program handles SIGALRM, the timer sends SIGKILL.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Final

from ..shared_page import NS
from ..user_stack import own

SLACK_S: Final = 30.0
"""The time beyond the hard limit in which the monitor notices, asks and kills."""
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
    """One timer of the kernel. A forked child has none."""

    def __init__(self, slack_s: float = SLACK_S) -> None:
        """Create the timer. Raises OSError if the kernel gives none."""
        self._slack_ns = int(slack_s * NS)
        self._lock = threading.RLock()
        self._limit = 0
        self._pid = os.getpid()
        self._timer = ctypes.c_void_p()
        self._library = ctypes.CDLL(None, use_errno=True)
        handled = signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
        event = _Sigevent(signo=signal.SIGKILL if handled else signal.SIGALRM, notify=SIGEV_SIGNAL)
        _checked(self._library.timer_create(CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)))

    @own
    def set(self, limit: int) -> None:
        """Put this hard limit in force, in nanoseconds; 0: no limit and no alarm."""
        with self._lock:
            self._limit = limit
            self._settime()

    @own
    def beat(self) -> None:
        """Renew the timer: a thread of this process is at work."""
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
        raise OSError(number, f"the kernel gives no timer: {os.strerror(number)}")
