"""The agent's inbox: many post, from threads of theirs or a signal handler; the agent's own takes one by one.

Who posts changes nothing: a `put` of a SimpleQueue is safe in a signal handler, and wakes the agent at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TypeAlias

from attrs import frozen

from ...core.group.state import Event, Signalled
from ...core.world import Life
from ..clock import Clock
from ..report.news import Notice, TraceLost


@frozen
class Died:
    """A worker died and is not reaped yet."""

    local_rank: int
    pid: int


@frozen
class Stuck:
    """A worker hangs in the kernel; what that means is in its error file if it has one."""

    local_rank: int
    pid: int
    text: str


@frozen
class Asked:
    """Somebody asks whether the agent's thread lives."""

    answer: Callable[[], None]


@frozen
class Heartbeat:
    """A heartbeat that was sent then was acknowledged by a store in which this life stands."""

    sent_at: float
    life: Life | None


Message: TypeAlias = Event | Died | Stuck | Asked | Heartbeat | Notice | TraceLost


class Inbox:
    """What was posted and not taken yet. Each method but `take` may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: SimpleQueue[Message] = SimpleQueue()
        self._signalled = False

    def take(self, until: float | None) -> Message | None:
        """The next one, waited for until this point in time (None: as long as it takes); None if none came."""
        left = None if until is None else max(until - self._clock.now(), 0.0)
        try:
            return self._queue.get(timeout=None if left is None else min(left, threading.TIMEOUT_MAX))
        except Empty:
            return None

    def post(self, message: Message) -> None:
        self._queue.put(message)

    def died(self, local_rank: int, pid: int) -> None:
        self.post(Died(local_rank, pid))

    def stuck(self, local_rank: int, pid: int, text: str) -> None:
        self.post(Stuck(local_rank, pid, text))

    def asked(self, answer: Callable[[], None]) -> None:
        self.post(Asked(answer))

    def beaten(self, sent_at: float, life: Life | None) -> None:
        self.post(Heartbeat(sent_at, life))

    def signalled(self, signum: int, frame: FrameType | None) -> None:
        self._signalled = True
        self.post(Signalled(signum, self._clock.now()))

    def has_had_a_signal(self) -> bool:
        """Taken or not."""
        return self._signalled
