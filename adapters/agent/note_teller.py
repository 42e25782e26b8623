"""Tells the store, beside the heartbeats, what `elastic status` shows of this node: standbys, workers that ended early.

The heart's thread writes: it has just heard from the store, so the write seldom waits. A store that has lost its memory is
told again.
"""

from __future__ import annotations

from typing import Any

from ...core.world import Life, Node
from ..store.notes import Notes
from ..store.port import Record, Shelf, StoreError


class NoteTeller:
    """The notes of one node in the store, kept up to date."""

    def __init__(self, notes: Notes, node: Node) -> None:
        """`notes` are for the heart's thread."""
        self._notes = notes
        self._node = node
        self._last: dict[Shelf[Any], Any] = {}
        self._told: dict[Shelf[Any], tuple[Any, Life]] = {}

    def tell(self, shelf: Shelf[Record], note: Record) -> None:
        """Write this after the next heartbeat. Any thread may call it."""
        self._last = {**self._last, shelf: note}

    def beaten(self, life: Life | None) -> None:
        """Write what is new. The heart's thread calls this after an acknowledged heartbeat, with the register's life. A
        store without a register is told nothing yet."""
        if life is None:
            return
        for shelf, note in self._last.items():
            if self._told.get(shelf) == (note, life):
                continue
            try:
                self._notes.put(shelf, self._node, note)
            except StoreError:
                return  # the next heartbeat tries again
            self._told[shelf] = note, life
