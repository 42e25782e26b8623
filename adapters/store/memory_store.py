"""A register in this process's memory, for one agent, or for the many agents of a test's threads.

The store keeps the immutable values themselves, so nothing is encoded. One condition guards them and announces each change.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from ...core.rendezvous import Proposal, RendezvousState, Token
from ...core.rendezvous.actions import entrants
from ...core.world import Fault, Life, Node, Stacks, Unfit
from ..clock import Clock
from .notes import StandbyNote
from .port import UNFIT_MAX, Heartbeats, Shown, noted
from .queries import Query, Replies, Reply


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
        self.notes: dict[Node, StandbyNote] = {}
        self.stacks: dict[Node, Stacks] = {}
        self.query: Query | None = None
        self.replies: dict[Node, Reply] = {}
        self.unfit: list[Unfit] = []


class MemoryBackend:
    """One client of a MemoryStore."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._closed = False
        self.query: Query | None = None

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
            self.query = self._store.query
            return Shown(self._store.state).life

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        with self._store.changed:
            return Heartbeats({node: self._counter(node) for node in nodes}, Shown(self._store.state).life)

    def remove_heartbeat(self, node: Node) -> None:
        with self._store.changed:
            for of in (self._store.beats, self._store.proposals, self._store.notes):
                of.pop(node, None)

    def put_proposal(self, node: Node, proposal: Proposal) -> int:
        with self._store.changed:
            self._store.proposals[node] = proposal
            self._store.proposed[proposal.like] += 1
            return self._store.proposed[proposal.like]

    def proposals(self, nodes: Iterable[Node], entering: Token | None = None) -> Mapping[Node, Proposal]:
        with self._store.changed:
            proposals = self._store.proposals
            asked = {node: proposal for node in nodes if (proposal := proposals.get(node))}
            return {**asked, **entrants(proposals, entering)}

    def put_fault(self, fault: Fault) -> None:
        with self._store.changed:
            noted(self._store.faults, fault)

    def faults(self) -> tuple[Fault, ...]:
        with self._store.changed:
            return tuple(sorted(self._store.faults, key=lambda fault: fault.round))

    def put_note(self, node: Node, note: StandbyNote) -> None:
        with self._store.changed:
            self._store.notes[node] = note

    def notes(self, nodes: Iterable[Node]) -> Mapping[Node, StandbyNote]:
        with self._store.changed:
            return {node: note for node in nodes if (note := self._store.notes.get(node))}

    def put_stacks(self, stacks: Stacks) -> None:
        with self._store.changed:
            self._store.stacks[stacks.node] = stacks

    def stacks(self, nodes: Iterable[Node]) -> tuple[Stacks, ...]:
        with self._store.changed:
            return tuple(self._store.stacks[node] for node in nodes if node in self._store.stacks)

    def put_query(self, query: Query) -> None:
        with self._store.changed:
            self._store.query = query

    def withdraw_query(self, nodes: Iterable[Node]) -> None:
        with self._store.changed:
            self._store.query = None
            for node in nodes:
                self._store.replies.pop(node, None)

    def put_reply(self, reply: Reply) -> None:
        with self._store.changed:
            if self._store.query:
                self._store.replies[reply.stacks.node] = reply

    def replies(self, nodes: Iterable[Node]) -> Replies:
        with self._store.changed:
            replies = self._store.replies
            return Replies(self._store.query, {node: replies[node] for node in nodes if node in replies})

    def put_unfit(self, unfit: Unfit) -> None:
        with self._store.changed:
            self._store.unfit = [*self._store.unfit, unfit][-UNFIT_MAX:]

    def unfit(self) -> tuple[Unfit, ...]:
        with self._store.changed:
            return tuple(self._store.unfit)

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
