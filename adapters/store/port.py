"""The port to a job's store: what the rendezvous loop may ask of whatever keeps the register.

Every backend passes `tests/conformance.py`. States go in and out as values; a backend that keeps bytes
uses `core.rendezvous.codec` and raises `Unreadable` for what does not decode. A client belongs to one thread; `clone` gives
another thread its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from attrs import frozen

from ...core.rendezvous import RendezvousState, Token, Wish
from ...core.world import Fault, Life, Node

FAULTS_MAX = 4_096
"""Most failures that a job's record shows: the first half of them, and of all later ones the last half."""


def noted(faults: list[Fault], fault: Fault) -> None:
    """Put it behind these; of more than a record shows, one in the middle is let go of."""
    faults.append(fault)
    if len(faults) > FAULTS_MAX:
        del faults[FAULTS_MAX // 2]


class StoreError(Exception):
    """The store cannot do what was asked. The text names the store and says who must act."""


class OutOfReach(StoreError):
    """No answer, and nothing was written."""


class Denied(OutOfReach):
    """The store is there and will not have us, or is no store of ours: somebody must put that right."""


class OutcomeUnknown(StoreError):
    """A write was sent, its answer never came: it may have landed, may still land, or never."""


class Unreadable(StoreError):
    """The store holds something under our key that is no register."""


@frozen
class Shown:
    """What the store shows: the register, None when nothing was ever written. `here`: it was written in the very store that
    answered, and not in one of which that store is a copy (restored from a backup)."""

    state: RendezvousState | None
    here: bool = True

    @property
    def life(self) -> Life | None:
        """The life that stands where it was written."""
        return self.state.life if self.state and self.here else None


@frozen
class Heartbeats:
    """The last counter of each node, None for one that has none, and the life that stands beside them."""

    counters: Mapping[Node, int | None]
    life: Life | None


class Backend(Protocol):
    """One job's register, its nodes' heartbeats and its faults."""

    @property
    def lease_s(self) -> float | None:
        """So long a heartbeat stands after the last call of `heartbeat`, whatever its counter; what the store has granted,
        once it has. None where it stands for ever, so that only one that moves says that its node lives."""

    def get(self) -> Shown:
        """The register."""

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        """Write `state` if the register still is what `token` names (None: if there is none yet).

        Returns what stands now, either way: `state` itself when it was written. A state of another life may follow on one
        that stands, or be the first. On a copy nothing else is written: whoever does not know yet that it is one would make
        a second state of a version that there was already.
        """

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        """Return what stands as soon as it is no longer what `token` names, or at `until` on this host's monotonic clock.

        Pushed, not polled. Returns early when the client is closed.
        """

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        """Say that `node` lives; returns the life that stands where this was heard."""

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        """Those of these nodes."""

    def remove_heartbeat(self, node: Node) -> None:
        """`node` has learned the verdict and goes."""

    def put_wish(self, node: Node, wish: Wish) -> int:
        """Put down what `node` wishes, in the place of what it wished before. Returns how many have put down a wish of this
        kind in this era, this one included: a hint, which a try that was repeated may have made too high."""

    def wishes(self, nodes: Iterable[Node]) -> Mapping[Node, Wish]:
        """The last wishes of those of these nodes that have any; all that were counted are there. What nobody can read is
        no wish."""

    def put_fault(self, fault: Fault) -> None:
        """Add a worker's failure to the job's record."""

    def faults(self) -> tuple[Fault, ...]:
        """The failures on record, by round; those of one round in the order in which they were put. Of more than FAULTS_MAX
        those in the middle are left out: the first tell how it began, the last how it ended."""

    def clone(self) -> Backend:
        """A client of the same register for another thread."""

    def close(self) -> None:
        """Give up this client; a wait in it returns. Idempotent."""
