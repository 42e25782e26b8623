"""The agent's inbox: other threads and signal handlers post into it, the agent's own thread takes one message at a time.

Posting changes nothing else: a `put` of a SimpleQueue is safe in a signal handler, and wakes the agent.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TypeAlias

from ...core.agent import Acknowledged, Event
from ...core.group.state import Noticed, Signalled
from ...core.values import frozen
from ...core.world import NAME_MAX, Life, Notice
from ..clock import Clock
from ..report.news import LoopNotice, Remark, TimeTold, TraceLost, WatchdogTold
from ..signals import taken
from ..terminal import printable
from ..workers.messages.reports import Report
from ..workers.worker_port import Exit


@frozen
class Died:
    """A worker died and is not reaped yet."""

    local_rank: int
    pid: int


@frozen
class WorkerReport:
    """A worker that lives reported an uncaught exception, or that its interpreter begins to end."""

    local_rank: int
    pid: int
    report: Report


@frozen
class EndRead:
    """The output and the error file of a worker that ended so have been read."""

    end: Exit


@frozen
class Stuck:
    """A worker hangs in the kernel; `text` says where and for how long."""

    local_rank: int
    pid: int
    text: str


@frozen
class StandbyTold:
    """A standby has something to say, or is dead."""

    pid: int


@frozen
class WorkersReady:
    """Workers have said that their node may leave."""


@frozen
class Asked:
    """Something is to be done on the agent's thread: the health port wants a sign of life."""

    answer: Callable[[], None]


@frozen
class ThreadFailed:
    """An error that nobody foresaw has ended a thread without which there is no agent."""

    name: str
    error: BaseException


@frozen
class ChildDied:
    """A child of this process died: a worker, or an orphan that the agent has adopted."""


Message: TypeAlias = (
    Event
    | Died
    | EndRead
    | WorkerReport
    | Stuck
    | StandbyTold
    | WorkersReady
    | Asked
    | ThreadFailed
    | ChildDied
    | LoopNotice
    | TraceLost
    | Remark
    | TimeTold
    | WatchdogTold
)


class Inbox:
    """The messages that are not taken yet. Any thread may call each method but `take`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: SimpleQueue[Message] = SimpleQueue()
        self._signalled = False

    def take(self, until: float | None) -> Message | None:
        """Wait for the next message until this point in time (None: for ever) and return it; None if none came."""
        try:
            return taken(self._queue, math.inf if until is None else until - self._clock.now())
        except Empty:
            return None

    def post(self, message: Message) -> None:
        self._queue.put(message)

    def died(self, local_rank: int, pid: int) -> None:
        self.post(Died(local_rank, pid))

    def reported(self, local_rank: int, pid: int, report: Report) -> None:
        self.post(WorkerReport(local_rank, pid, report))

    def stuck(self, local_rank: int, pid: int, text: str) -> None:
        self.post(Stuck(local_rank, pid, text))

    def standby_told(self, pid: int) -> None:
        self.post(StandbyTold(pid))

    def workers_ready(self, at: float) -> None:
        self.post(WorkersReady())

    def asked(self, answer: Callable[[], None]) -> None:
        self.post(Asked(answer))

    def failed(self, error: BaseException) -> None:
        self.post(ThreadFailed(threading.current_thread().name, error))

    def watchdog_told(self, name: str, timer: Mapping[str, str]) -> None:
        self.post(WatchdogTold(name, timer, self._clock.now()))

    def beaten(self, sent_at: float, life: Life | None) -> None:
        self.post(Acknowledged(sent_at, life))

    def signalled(self, signum: int, frame: FrameType | None) -> None:
        self._signalled = True
        self.post(Signalled(signum, self._clock.now()))

    def drained(self, source: str, deadline_s: float, unfit: bool | None = None) -> None:
        """Take the word of this host that the node must be gone, or is unfit. A signal's handler may call this too."""
        notice = Notice(deadline_s, printable(source)[:NAME_MAX])
        self.post(Noticed(notice, self._clock.now(), unfit=unfit))

    def child_died(self, signum: int, frame: FrameType | None) -> None:
        self.post(ChildDied())

    def has_had_a_signal(self) -> bool:
        """Return True if a signal came, taken or not."""
        return self._signalled
