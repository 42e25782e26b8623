"""The heart: a thread that tells the store that this node lives, once per interval and whenever it is asked to.

The heart has a client of its own, so no wait of the rendezvous delays a heartbeat. Where the store itself ends a silent
node's heartbeat, the counter stays the same: renewing the heartbeat is enough, and adds nothing to the store. Each
acknowledgement carries the time at which the heartbeat was *sent*, because others may count from then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ...core.values import frozen
from ...core.world import Life, Node
from .. import threads
from ..clock import Clock
from ..store.port import BEATS_MAX, Backend, StoreError


@frozen
class _Beat:
    """Beat now."""


@frozen
class _Stop:
    """The agent is done."""


class Heart:
    """`beaten(sent_at, life)` is called, from this thread, for each heartbeat that the store acknowledged, with the life
    that stands there; `failed`, from this thread too, if an error ends it. `backend` is for this thread alone, and is closed
    at the end."""

    def __init__(
        self,
        backend: Backend,
        node: Node,
        interval_s: float,
        clock: Clock,
        beaten: Callable[[float, Life | None], None],
        failed: Callable[[BaseException], object],
    ) -> None:
        self._backend = backend
        self._node = node
        self._interval_s = interval_s
        self._clock = clock
        self._beaten = beaten
        self._inbox: SimpleQueue[_Beat | _Stop] = SimpleQueue()
        self._thread = threading.Thread(target=threads.guarded(self._run, failed), name="elastic-heart", daemon=True)

    def start(self) -> None:
        """Begin to beat. Raises NoThread."""
        threads.start(self._thread)

    def beat(self) -> None:
        self._inbox.put(_Beat())

    def stop(self) -> None:
        """Stop, and take this node's heartbeat away: the node knows how the job ended, or it leaves. Idempotent."""
        self._inbox.put(_Stop())
        if self._thread.ident is not None:
            self._thread.join(timeout=self._interval_s)
        self._backend.close()

    def _run(self) -> None:
        counter: int | None = None
        while not isinstance(self._next(), _Stop):
            counter = self._after(counter)
            if counter is not None:
                self._send(counter)
        try:
            self._backend.remove_heartbeat(self._node)
        except StoreError:
            pass  # it falls silent instead

    def _next(self) -> _Beat | _Stop:
        try:
            return self._inbox.get(timeout=self._interval_s)
        except Empty:
            return _Beat()

    def _after(self, last: int | None) -> int | None:
        """Return the next counter; the first one follows that of a process that beat for this node before. None: the store
        is silent. What stands there may be forged, so no counter is above BEATS_MAX: nobody would hear it."""
        if self._backend.lease_s is not None:
            return 1
        try:
            last = self._backend.heartbeats([self._node]).counters[self._node] if last is None else last
        except StoreError:
            return None
        return (last or 0) % BEATS_MAX + 1

    def _send(self, counter: int) -> None:
        sent_at = self._clock.now()
        try:
            life = self._backend.heartbeat(self._node, counter)
        except StoreError:
            return  # unacknowledged: its silence is what counts
        self._beaten(sent_at, life)
