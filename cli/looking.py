"""Somebody who looks on at a job: reads its store again and again, writes nothing, and keeps a history of what was seen.

The store announces changes of the register. Heartbeats and failures it does not announce, so they are asked for.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ..adapters.clock import Clock, SystemClock
from ..adapters.store.notes import ENDED, STACKS, STANDBYS, TIMES, UNFIT
from ..adapters.store.port import Backend, OutOfReach, StoreError
from ..core.rendezvous import RendezvousState
from ..core.values import evolve, frozen
from ..core.world import Node
from .render.history import History, kept, observed, unanswered
from .render.job import Job
from .render.parting import LONG, NOBODY, Quiet

if TYPE_CHECKING:
    from ..core.goodput import NodeRecord
    from ..core.goodput.record import Shares

READ_EVERY_S = 1.0
READ_LEAST_S = 0.2
"""The shortest span between two changes that are shown: what comes sooner is shown together."""
LISTEN_S = 1.2
"""Somebody who looks once waits this long for a new heartbeat of each node: agents send one each second."""
LISTEN_EVERY_S = 0.15
REST = 20
"""Reading the failures takes at most one part in this many of the time: a job may have thousands of them."""


@frozen
class _Beat:
    """A heartbeat, when it was seen first, and since when it must have come: the look before that."""

    counter: int | None
    seen_at: float
    since: float


class Looking:
    """One who looks on. Times are in seconds since the look began."""

    def __init__(self, backend: Backend, history: History) -> None:
        self.backend, self.history = backend, history
        self.clock: Clock = SystemClock()
        self.began_at = self.clock.now()
        self.read_at = -math.inf
        self.answered_at = 0.0
        """The store's last answer."""
        self.took_s = 0.0
        """How long the store took for its last answer."""
        self.times: Mapping[Node, Shares] = {}
        """They say where the time of each node went, but for its present run. None of it goes back."""
        self._beats: dict[Node, _Beat] = {}
        """The last heartbeat of each node."""
        self._faults_of: str | None = None
        """The failures that are known are of this job."""
        self._faults_at = -math.inf
        """The failures are not read again before."""
        self._changed = True
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
        return {node: now - beat.seen_at for node, beat in beats.items() if beat.counter is not None}

    def unmoved(self) -> frozenset[Node]:
        """Return the nodes whose heartbeat is the one of the first look, and older than that."""
        return frozenset(node for node, beat in self._beats.items() if beat.since == -math.inf)

    def listen(self) -> None:
        """Read the heartbeats until each node has had a new one, for LISTEN_S at most. A lease's does not change, and when a
        job is over nobody sends any."""
        state, ends_at = self.job.state, self.at() + LISTEN_S
        if state is None or state.closed or self.backend.lease_s is not None:
            return
        with suppress(StoreError):
            while self.at() < ends_at and self.unmoved() & self.ages_s().keys():
                time.sleep(LISTEN_EVERY_S)
                self._hear(state)

    def await_register(self, within_s: float) -> None:
        """Wait this long for a register where there is none: a TCPStore that was started again gets it back. Raises
        StoreError."""
        ends_at = self.at() + within_s
        while self.job.state is None and self.backend.lease_s is None and self.at() < ends_at:
            self.look()

    def look(self) -> bool:
        """Wait for a change, or until it is time to ask. Return True if there is news to show. Raises StoreError."""
        before, since = self.job.state, self.answered_at
        token = before.token if before else None
        until = self.read_at + (READ_LEAST_S if self._changed else READ_EVERY_S)
        state = self.backend.wait_for_change(token, self.began_at + until).state
        if (state.token if state else None) != token:
            self.answered_at = self.at()
            quiet = self._quiet(before, state)
            self._see(evolve(self.job, state=state), since, quiet)
        over = self._changed and state is not None and state.closed is not None
        return self._read(state) if over or self.at() >= until else False

    def next(self, silent_max_s: float = math.inf) -> bool:
        """Look again. That the store does not answer is news once it has lasted; it is asked once more after a while. Raises
        StoreError if it has not answered for `silent_max_s` seconds."""
        try:
            return self.look()
        except StoreError as error:
            before = self.history.silence
            self.history = unanswered(self.history, str(error), self.answered_at, self.at())
            if before and self.at() - before.since >= silent_max_s:
                raise
            if self.history.silence != before:
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
            self._see(job, self.answered_at)
        changed, self._changed = self._changed, False
        return changed

    def _asked(self, state: RendezvousState | None) -> Job:
        if state is None:
            self.read_at = self.answered_at = self.at()
            return self.job
        heard = self._hear(state)
        unheard = frozenset(node for node, beat in heard.items() if beat is None)
        notes = self.backend.notes
        standbys, ended = notes.read(STANDBYS, state.present), notes.read(ENDED, state.present)
        job = evolve(self.job, unheard=unheard, standbys=standbys, ended=ended)
        if self.at() < self._faults_at:
            return job
        asked_at = self.at()
        faults, stacks = notes.faults(), tuple(notes.read(STACKS, state.present).values())
        unfit, times = notes.all(UNFIT), notes.read(TIMES, state.seats)
        self.times = self._grown(state, times)
        self._faults_at = self.at() + REST * (self.at() - asked_at)
        known, self._faults_of = job.faults if self._faults_of == state.job else (), state.job
        return evolve(job, faults=kept(known, faults), stacks=stacks, unfit=unfit, times=times)

    def _grown(self, state: RendezvousState, times: Mapping[Node, NodeRecord]) -> Mapping[Node, Shares]:
        """Return where the time of each seated node went. No number goes back: a store that has lost its memory
        is told again one by one."""
        before = {node: shares for node, shares in self.times.items() if node in state.seats}
        if not times:
            return before
        from ..core.goodput.record import grown  # a job that has just begun needs none of it

        return {**before, **{node: grown(before.get(node, {}), each.own.shares) for node, each in times.items()}}

    def _hear(self, state: RendezvousState) -> Mapping[Node, int | None]:
        """Read the heartbeats. Raises StoreError."""
        asked_at = self.at()
        heard = self.backend.heartbeats(state.present).counters
        last_at, self.read_at = self.read_at, self.at()
        self.answered_at, self.took_s = self.read_at, self.read_at - asked_at
        seen = ((node, counter, self._beats.get(node)) for node, counter in heard.items())
        self._beats = {
            node: was if was and was.counter == counter else _Beat(counter, self.read_at, last_at)
            for node, counter, was in seen
        }
        return heard

    def _quiet(self, before: RendezvousState | None, after: RendezvousState | None) -> Mapping[Node, Quiet]:
        """Return for how long those who have gone had no new heartbeat. A lease is asked for: it stands for a TTL after the
        last one, so it still stands only if that was less. Raises StoreError."""
        gone = [node for node in before.seats if node not in after.seats] if before and after else []
        if not gone:
            return NOBODY
        if self.backend.lease_s is not None:
            found = self.backend.heartbeats(gone).counters
            return {node: LONG if counter is None else Quiet(0.0, 0.0) for node, counter in found.items()}
        now, beats = self.at(), self._beats
        known = {node: beats[node] for node in gone if node in beats and beats[node].counter is not None}
        return {node: Quiet(now - beat.seen_at, now - beat.since) for node, beat in known.items()}

    def _see(self, job: Job, since: float, quiet: Mapping[Node, Quiet] = NOBODY) -> None:
        self.history, self._changed = observed(self.history, job, self.at(), since, quiet), True


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
