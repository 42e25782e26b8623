"""Tells the store, beside the heartbeats, how many standbys of this node are ready. `elastic status` shows it.

The heart's thread writes: it has just heard from the store, so the write seldom waits. A store that has lost its memory is
told again.
"""

from __future__ import annotations

from ...core.world import Life, Node
from ..store.notes import STANDBYS, StandbyNote
from ..store.port import Backend, StoreError


class StandbyTeller:
    """A note of one node in the store, kept up to date."""

    def __init__(self, backend: Backend, node: Node) -> None:
        self._backend = backend.clone()
        self._node = node
        self._note = StandbyNote(0, None)
        self._told: tuple[StandbyNote, Life] | None = None

    def tell(self, note: StandbyNote) -> None:
        """Write this after the next heartbeat. Any thread may call it."""
        self._note = note

    def beaten(self, life: Life | None) -> None:
        """Write what is new. The heart's thread calls this after an acknowledged heartbeat, with the register's life. A
        store without a register is told nothing yet."""
        note = self._note
        if life is None or (note, life) == self._told:
            return
        try:
            self._backend.notes.put(STANDBYS, self._node, note)
        except StoreError:
            return  # the next heartbeat tries again
        self._told = note, life

    def close(self) -> None:
        self._backend.close()
