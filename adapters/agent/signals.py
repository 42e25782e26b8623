"""Signals as events while an agent runs; afterwards they mean again what they meant before."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def signals_as_events(
    signals: Iterable[signal.Signals], post: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Each of these is posted, if this is the main thread, which alone may say so; else nothing is changed.

    SIGCHLD must not be ignored, as some supervisors leave it: the kernel would throw the exit codes away.
    """
    before = {}
    try:
        if threading.current_thread() is threading.main_thread():
            before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for signum in signals:
                if not (signum == signal.SIGHUP and signal.getsignal(signum) is signal.SIG_IGN):  # nohup
                    before[signum] = signal.signal(signum, post)
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
