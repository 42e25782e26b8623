"""The job's record of failures: what this node adds to it, and what stands there in the end."""

from __future__ import annotations

from collections.abc import Callable

from ...core.world import Fault
from ..rendezvous.loop import RendezvousLoop, ToRecord
from ..store.port import Backend, StoreError, noted


class FailureRecord:
    """Held by the agent's thread, which reads it; the rendezvous' loop writes."""

    def __init__(self, backend: Backend, rendezvous: RendezvousLoop) -> None:
        self._backend = backend
        self._rendezvous = rendezvous
        self._under_way = 0
        self._own: list[Fault] = []

    @property
    def is_under_way(self) -> bool:
        """Whether a failure of this node is still being put there."""
        return self._under_way > 0

    @property
    def own(self) -> tuple[Fault, ...]:
        """What this node put there."""
        return tuple(self._own)

    def put(self, read: Callable[[], Fault]) -> None:
        """Have it read, and put there."""
        self._under_way += 1
        self._rendezvous.submit(ToRecord(read))

    def was_put(self, fault: Fault) -> None:
        self._under_way -= 1
        noted(self._own, fault)

    def all(self) -> tuple[Fault, ...]:
        """What stands there for all, or, when the store does not say, what this node put there."""
        try:
            return self._backend.faults()
        except StoreError:
            return self.own
