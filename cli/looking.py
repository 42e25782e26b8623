"""Somebody who looks on at a job: reads its store again and again, writes nothing, and keeps a history of what was seen.

The store announces changes of the register. Heartbeats and failures it does not announce, so they are asked for.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from attrs import Factory, define, evolve, field

from ..adapters.clock import Clock, SystemClock
from ..adapters.store.port import AgentBackend, OutOfReach, StoreError
from ..core.rendezvous import RendezvousState
from ..core.world import Node
from .render.history import History, observed, unanswered
from .render.job import Job

READ_EVERY_S = 1.0
READ_LEAST_S = 0.2
"""Changes that follow each other quickly are shown together, so often at most."""
REST = 20
"""Reading the failures takes at most one part in so many of the time: a job may have thousands of them."""


@define
class Looking:
    """One who looks on. Times are in seconds since the look began."""

    backend: AgentBackend
    history: History
    clock: Clock = field(factory=SystemClock)
    began_at: float = field(default=Factory(lambda self: self.clock.now(), takes_self=True))
    read_at: float = -math.inf
    took_s: float = 0.0
    """How long the store took for its last answer."""
    _beats: dict[Node, tuple[int | None, float]] = field(factory=dict)
    """The last heartbeat of each node, and when it was seen first."""
    _faults_at: float = -math.inf
    """The failures are not read again before."""
    _changed: bool = True
    """Something was seen that was not shown yet."""

    @property
    def job(self) -> Job:
        return self.history.job

    def at(self) -> float:
        """Return the time now."""
        return self.clock.now() - self.began_at

    def ages_s(self) -> Mapping[Node, float]:
        """Return how long ago each node's heartbeat was a new one. A lease's does not change, so there none is known."""
        if self.backend.lease_s is not None:
            return {}
        beats, now = self._beats, self.at()
        return {node: now - since for node, (beat, since) in beats.items() if beat is not None}

    def look(self) -> bool:
        """Wait for a change, or until it is time to ask. Return True if there is news to show. Raises StoreError."""
        token = self.job.state.token if self.job.state else None
        until = self.read_at + (READ_LEAST_S if self._changed else READ_EVERY_S)
        state = self.backend.wait_for_change(token, self.began_at + until).state
        if (state.token if state else None) != token:
            self._see(evolve(self.job, state=state))
        over = self._changed and state is not None and state.closed is not None
        return self._read(state) if over or self.at() >= until else False

    def next(self, silent_max_s: float = math.inf) -> bool:
        """Look again. That the store does not answer is news once; it is asked once more after a while. Raises StoreError
        if it has not answered for `silent_max_s` seconds."""
        try:
            return self.look()
        except StoreError as error:
            before, self.history = self.history.silent, unanswered(self.history, str(error), self.at())
            if before and self.at() - before[1] >= silent_max_s:
                raise
            if self.history.silent != before:
                return True
        time.sleep(READ_EVERY_S)
        return False

    def _read(self, state: RendezvousState | None) -> bool:
        """Read what the register does not hold. The store of a job that is over may be gone before that."""
        try:
            job = self._asked(state)
        except OutOfReach:
            if not (state and state.closed and self._changed):
                raise
            job = self.job
        if job != self.job or self.history.silent:
            self._see(job)
        changed, self._changed = self._changed, False
        return changed

    def _asked(self, state: RendezvousState | None) -> Job:
        if state is None:
            self.read_at = self.at()
            return self.job
        asked_at = self.at()
        heard = self.backend.heartbeats(state.present).counters
        self.read_at = self.at()
        self.took_s = self.read_at - asked_at
        seen = ((node, beat, self._beats.get(node)) for node, beat in heard.items())
        self._beats = {node: was if was and was[0] == beat else (beat, self.read_at) for node, beat, was in seen}
        unheard = frozenset(node for node, beat in heard.items() if beat is None)
        job = evolve(self.job, unheard=unheard, standbys=self.backend.notes(state.present))
        if self.at() < self._faults_at:
            return job
        asked_at = self.at()
        faults, stacks = self.backend.faults(), self.backend.stacks(state.present)
        unfit = self.backend.unfit()
        self._faults_at = self.at() + REST * (self.at() - asked_at)
        return evolve(job, faults=faults, stacks=stacks, unfit=unfit)

    def _see(self, job: Job) -> None:
        self.history, self._changed = observed(self.history, job, self.at()), True


@contextmanager
def until_signalled() -> Iterator[None]:
    """Run what stands below until SIGINT or SIGTERM comes, which ends it in order. A second one ends this process."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {signum: signal.signal(signum, signal.default_int_handler) for signum in signals}
    try:
        yield
    except KeyboardInterrupt:
        for signum in signals:
            signal.signal(signum, signal.SIG_DFL)
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
