"""Signals as events while an agent, or a store server, runs; afterwards they mean again what they meant before."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, MappingProxyType
from typing import Any


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
