"""Start threads on a host that is short of them for a moment, and hear of an error that ends one.

A limit of threads or of memory (`pids.max`, `ulimit -u`) is often reached for a moment only, because other programs start
and end. What can pass is tried again.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable

PATIENCE_S = 5.0
"""How long a start is tried again."""
_PAUSE_S = 0.05


class NoThread(OSError):
    """The host has had no thread to give for the whole time."""


def start(
    thread: threading.Thread, patience_s: float = PATIENCE_S, given_up: Callable[[], bool] = lambda: False
) -> None:
    """Start the thread. Raises NoThread when that has failed for `patience_s`, or when `given_up` says True."""
    ends_at = time.monotonic() + patience_s
    while True:
        try:
            thread.start()
            return
        except RuntimeError as error:
            if thread.ident is not None:  # it runs already, which is a mistake of the caller
                raise
            if time.monotonic() >= ends_at or given_up():
                text = "this host has no thread left for it (see ulimit -u, and pids.max of the container)"
                raise NoThread(errno.EAGAIN, f"{thread.name}: {text}") from error
        time.sleep(_PAUSE_S)


def shown(error: BaseException) -> None:
    """Have Python show an error that ends a thread."""
    raise error


def guarded(run: Callable[[], None], failed: Callable[[BaseException], object]) -> Callable[[], None]:
    """Return what a thread runs. `failed` is called from the thread with an error that nobody foresaw, which ends it: the
    rest of the program would wait for that thread for ever."""

    def run_guarded() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 the owner is told
            failed(error)

    return run_guarded
