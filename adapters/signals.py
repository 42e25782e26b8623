"""Signals as events while an agent, or a store server, runs; afterwards they mean again what they meant before."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType, MappingProxyType
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_HEARD_S = 1.0
"""A signal is heard after this many seconds at the latest, whatever the main thread waits for."""


def taken(queue: SimpleQueue[_Item], within_s: float = math.inf) -> _Item:
    """Wait for the next item, which a signal's handler may have put there, and return it. Raises queue.Empty after
    `within_s` seconds.

    CPython calls handlers between two steps of the main thread. A signal that comes after the last of them and before the
    wait begins does not end the wait, nor does one that another thread was given. So no wait here is a long one.
    """
    until = time.monotonic() + within_s
    while (left_s := max(until - time.monotonic(), 0.0)) > _HEARD_S:
        try:
            return queue.get(timeout=_HEARD_S)
        except Empty:
            pass  # handlers are called here
    return queue.get(timeout=left_s)


@contextmanager
def signals_as_events(
    signals: Iterable[signal.Signals],
    post: Callable[[int, FrameType | None], None],
    child_died: Callable[[int, FrameType | None], None] | None = None,
    further: Mapping[signal.Signals, Callable[[int, FrameType | None], None]] = MappingProxyType({}),
) -> Iterator[str]:
    """Post each of these signals instead of what it meant before, and call what is given for each further one. Yield what
    people should know of signals that were blocked, which no handler would hear; empty if none of these was. Called from
    another thread than the main one, which alone may handle signals, this changes nothing.

    SIGCHLD gets its default action back: if it is ignored, as some supervisors leave it, the kernel drops exit codes. No
    signal is blocked any longer, neither here nor in the processes that are started meanwhile.
    """
    before: dict[signal.Signals, Any] = {}
    blocked: set[int] | None = None
    try:
        if threading.current_thread() is threading.main_thread():
            before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, child_died or signal.SIG_DFL)
            for signum, handler in further.items():
                before[signum] = signal.signal(signum, handler)
            for signum in signals:
                if not (signum == signal.SIGHUP and signal.getsignal(signum) is signal.SIG_IGN):  # nohup
                    before[signum] = signal.signal(signum, post)
            blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
        names = [each.name for each in signal.Signals if each in (blocked or ()) and each in before]
        yield f"{', '.join(names)}: blocked when this program began, heard from now on" if names else ""
    finally:
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for signum, meant in before.items():
            signal.signal(signum, meant)
