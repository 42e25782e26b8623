"""A register in this process's memory, for one agent, or for the many agents of a test's threads.

The store keeps the immutable values themselves, so nothing is encoded. One condition guards them and announces each change.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from ...core.rendezvous import Proposal, RendezvousState, Token
from ...core.world import Fault, Life, Node
from ..clock import Clock
from .port import Heartbeats, Shown, noted


class MemoryStore:
    """The values that all clients of one job share."""

    def __init__(self, lease_s: float | None = None) -> None:
        """Heartbeats stay for ever, or (with `lease_s`) until they were not renewed for so long."""
        self.lease_s = lease_s
        self.changed = threading.Condition()
        self.state: RendezvousState | None = None
        self.beats: dict[Node, tuple[int, float]] = {}
        self.proposals: dict[Node, Proposal] = {}
        self.proposed: Counter[str] = Counter()
        self.faults: list[Fault] = []


class MemoryBackend:
    """One client of a MemoryStore."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._closed = False

    def get(self) -> Shown:
        with self._store.changed:
            return Shown(self._store.state)

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        with self._store.changed:
            if self._token() == token:
                self._store.state = state
                self._store.changed.notify_all()
            return Shown(self._store.state)

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        with self._store.changed:
            while not self._closed and self._token() == token:
                left = until - self._clock.now()
                if left <= 0:
                    break
                self._store.changed.wait(min(left, threading.TIMEOUT_MAX))
            return Shown(self._store.state)

    @property
    def lease_s(self) -> float | None:
        return self._store.lease_s

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        with self._store.changed:
            self._store.beats[node] = counter, self._clock.now()
            return Shown(self._store.state).life

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        with self._store.changed:
            return Heartbeats({node: self._counter(node) for node in nodes}, Shown(self._store.state).life)

    def remove_heartbeat(self, node: Node) -> None:
        with self._store.changed:
            self._store.beats.pop(node, None)

    def put_proposal(self, node: Node, proposal: Proposal) -> int:
        with self._store.changed:
            self._store.proposals[node] = proposal
            self._store.proposed[proposal.like] += 1
            return self._store.proposed[proposal.like]

    def proposals(self, nodes: Iterable[Node]) -> Mapping[Node, Proposal]:
        with self._store.changed:
            return {node: proposal for node in nodes if (proposal := self._store.proposals.get(node))}

    def put_fault(self, fault: Fault) -> None:
        with self._store.changed:
            noted(self._store.faults, fault)

    def faults(self) -> tuple[Fault, ...]:
        with self._store.changed:
            return tuple(sorted(self._store.faults, key=lambda fault: fault.round))

    def clone(self) -> MemoryBackend:
        return MemoryBackend(self._store, self._clock)

    def close(self) -> None:
        with self._store.changed:
            self._closed = True
            self._store.changed.notify_all()

    def _counter(self, node: Node) -> int | None:
        counter, beaten_at = self._store.beats.get(node, (None, 0.0))
        lease_s = self._store.lease_s
        return counter if lease_s is None or self._clock.now() - beaten_at < lease_s else None

    def _token(self) -> Token | None:
        return self._store.state.token if self._store.state else None
