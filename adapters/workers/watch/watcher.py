"""One thread that waits for processes to die, and says so at once.

A pidfd becomes readable when its process is dead (a zombie until it is reaped), so one epoll over pidfds waits for any
number of them without a look at a clock. A callback runs on this thread, once per pidfd, and must be quick.

An event carries the number of its descriptor. Before it is handled, another thread may close that one and watch another,
which has the same number; so the descriptor is looked at once more.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ... import threads
from .process_groups import died_within

_JOIN_TIMEOUT_S = 5.0
_ONCE = select.EPOLLIN | select.EPOLLONESHOT


class Watcher:
    """Starts its thread with the first pidfd at the latest. One other thread calls; callbacks may watch and forget too.
    `failed` is called with an error that ends the thread."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        failed: Callable[[BaseException], object] = threads.shown,
    ) -> None:
        self._clock = clock
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._then: dict[int, Callable[[float], None]] = {}
        self._due: list[tuple[float, Callable[[], None]]] = []
        self._lock = threading.Lock()
        self._stops = False
        run = threads.guarded(self._run, failed)
        self._thread = threading.Thread(target=run, name="elastic-watcher", daemon=True)

    def start(self) -> None:
        """Start the thread. Best done before the machine is busy with new processes: it waits for the thread. Idempotent."""
        if self._thread.ident is None:
            threads.start(self._thread, 0.0)

    def watch(self, pidfd: int, then: Callable[[float], None]) -> None:
        """Call `then` once, on the watcher's thread, when the process is dead, with the time at which that was seen: one
        time for all that were dead by then, however long the callbacks take."""
        self._then[pidfd] = then
        self._epoll.register(pidfd, _ONCE)
        self.start()

    def later(self, span_s: float, then: Callable[[], None]) -> None:
        """Call `then` after this span, on the watcher's thread. No effect when stopped."""
        with self._lock:
            self._due.append((self._clock() + span_s, then))
            if not self._epoll.closed:
                os.eventfd_write(self._wake, 1)

    def forget(self, pidfd: int) -> None:
        """Watch a pidfd no longer; call this before it is closed. No effect on one that is not watched, or when stopped."""
        if self._then.pop(pidfd, None) is not None and not self._epoll.closed:
            self._epoll.unregister(pidfd)

    def stop(self) -> None:
        """End the thread; no callback runs afterwards. Idempotent."""
        if self._epoll.closed:
            return
        self._stops = True
        os.eventfd_write(self._wake, 1)
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT_S)
        if not self._thread.is_alive():
            with self._lock:
                self._epoll.close()
                os.close(self._wake)

    def _run(self) -> None:
        while True:
            dead = self._epoll.poll(self._until_due_s())
            seen_at = self._clock()
            self._pass(seen_at)
            for ready, _ in dead:
                if ready == self._wake:
                    os.eventfd_read(self._wake)
                    if self._stops:
                        return
                elif then := self._then.get(ready):
                    if died_within(ready, 0):
                        then(seen_at)
                    else:
                        self._watch_on(ready)

    def _until_due_s(self) -> float | None:
        with self._lock:
            return max(min(at for at, _ in self._due) - self._clock(), 0.0) if self._due else None

    def _pass(self, now: float) -> None:
        with self._lock:
            due = [then for at, then in self._due if at <= now]
            self._due = [each for each in self._due if each[0] > now]
        for then in due:
            then()

    def _watch_on(self, pidfd: int) -> None:
        with suppress(OSError):  # it has just been forgotten
            self._epoll.modify(pidfd, _ONCE)
