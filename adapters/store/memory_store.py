"""A register in this process's memory, for one agent, or for the many agents of a test's threads.

The store keeps the immutable values themselves, so nothing is encoded. One condition guards them and announces each change.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ...core.rendezvous import RendezvousState, Token
from ...core.world import Life, Node
from ..clock import Clock
from .notes import GOING, QUERY, Notes
from .port import Found, Heartbeats, Log, Place, Shelf, Shown, spelled
from .queries import Query


class MemoryStore:
    """The values that all clients of one job share."""

    def __init__(self, lease_s: float | None = None) -> None:
        """Heartbeats stay for ever, or (with `lease_s`) until they were not renewed for this long."""
        self.lease_s = lease_s
        self.changed = threading.Condition()
        self.state: RendezvousState | None = None
        self.beats: dict[Node, tuple[int, float]] = {}
        self.records: dict[str, Any] = {}
        """The record at the key of each place of a shelf."""
        self.logs: dict[str, list[tuple[str, Any]]] = {}
        """The records of each log, with their names."""
        self.counted: dict[str, str] = {}
        """The log of each name that was counted in one."""
        self.tallies: Counter[str] = Counter()


class MemoryBackend:
    """One client of a MemoryStore."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._closed = False
        self.notes = Notes(self, is_plain=True)
        self.heard: Query | None = None

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
            self.heard = self._store.records.get(QUERY.name)
            return Shown(self._store.state).life

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        with self._store.changed:
            return Heartbeats({node: self._counter(node) for node in nodes}, Shown(self._store.state).life)

    def remove_heartbeat(self, node: Node) -> None:
        with self._store.changed:
            self._store.beats.pop(node, None)
            for shelf in GOING:
                self._store.records.pop(Place(shelf, spelled(node)).key, None)

    def put(self, place: Place, data: Any) -> None:
        with self._store.changed:
            match place.folder:
                case Shelf(under=Shelf(name=above)) if above not in self._store.records:
                    pass
                case Shelf():
                    self._store.records[place.key] = data
                case log:
                    log.keep(self._store.logs.setdefault(log.name, []), (place.name, data))

    def count(self, tally: str, place: Place, data: Any, over: str = "") -> int:
        store = self._store
        with store.changed:
            if isinstance(place.folder, Log):
                if last := store.counted.get(place.name):
                    store.logs[last] = [each for each in store.logs[last] if each[0] != place.name]
                store.counted[place.name] = place.folder.name
            self.put(place, data)
            store.tallies[tally] += 1
            store.tallies.pop(over, None)
            return store.tallies[tally]

    def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
        with self._store.changed:
            records = self._store.records
            tail = self._store.logs.get(log.name, ()) if log else ()
            return {each: records[each.key] for each in places if each.key in records}, [data for _, data in tail]

    def drop(self, places: Iterable[Place]) -> None:
        with self._store.changed:
            for place in places:
                self._store.records.pop(place.key, None)

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


class EncodedBackend(MemoryBackend):
    """A client for somebody who is no node: its records are bytes, while the node's own clients keep them as they are."""

    def put(self, place: Place, data: bytes) -> None:
        from .note_codec import decoded  # a register in memory needs no codec, until somebody asks

        record = decoded(place.folder, data)
        if record is not None:
            super().put(place, record)

    def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
        from .note_codec import encoded

        found, tail = super().read(places, log)
        records = {place: encoded(place.folder, record) for place, record in found.items()}
        return records, [encoded(log, record) for record in tail] if log else []

    def clone(self) -> EncodedBackend:
        return EncodedBackend(self._store, self._clock)
