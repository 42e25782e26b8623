"""The rules for a store that comes back empty or with an older state: which state counts, and how a node writes it back.

The survivors give a store that lost its memory what they remember. Of two states of one job, the one with the higher
precedence counts. A world that was completed in the store as it is now counts more than any memory. A survivor writes back
what it held, except for what only the presence of a node can attest (docs/protocol.md#when-the-store-loses-its-memory).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ..values import evolve, frozen
from ..violation import Finding, check
from ..world import Life
from .actions import Edit
from .state import BASE_MAX, NOTHING, Precedence, RendezvousState, Status
from .verify import verify

UNATTESTED = (Status.WAITING, Status.LEAVING, Status.ASIDE)
"""What only presence can attest: a restore drops these seats."""


@frozen
class Restore:
    """Write this state back, as the first of another life with this nonce."""

    held: RendezvousState
    nonce: str


Deed: TypeAlias = Edit | Restore
"""The cause of a write: an edit, or a restore."""


def outranks(held: RendezvousState | None, found: RendezvousState | None) -> bool:
    """Return True if the state that I hold may replace the one that the store shows."""
    if held is None or found is None:
        return held is not None
    if held.job == found.job:
        return not found.closed and (held.closed is not None or held.precedence > found.precedence)
    return found.provisional and held.precedence > found.precedence


def restored(deed: Restore, found: RendezvousState | None) -> RendezvousState:
    """Return the state to write back over what the store shows (None: nothing).

    A waiting node must arrive again. A participant of an open round is expected back, unless the job is closed.
    """
    held, over = deed.held, found or deed.held
    stands = held.complete or held.closed is not None
    seats = {
        node: seat if stands or seat.status is not Status.IN else seat.become(Status.EXPECTED)
        for node, seat in held.seats.items()
        if seat.status not in UNATTESTED
    }
    return evolve(
        held,
        life=Life(deed.nonce, max(held.life.epoch, over.life.epoch) + 1),
        version=over.version + 1,
        seats=seats,
        quorum_at=held.quorum_at if stands else None,
        stale_before=over.version + 1,
        base=_base(held.precedence),
    )


def _base(precedence: Precedence) -> Precedence:
    """Return the precedence, cut to the length that is kept. The later epoch makes up for what is left out."""
    return precedence[:BASE_MAX]


def verify_restore(deed: Restore, found: RendezvousState | None, after: RendezvousState) -> None:
    """Raise a Violation for the first rule that a restore breaks."""
    verify(after)
    check(_of_restore(deed.held, found, after))


def _of_restore(held: RendezvousState, found: RendezvousState | None, after: RendezvousState) -> Iterator[Finding]:
    if found is not None:
        if found.closed and found.job == held.job and found.closed != held.closed:
            yield "R5", f"the verdict of job {held.job} is replaced"
        if not found.provisional and found.job != held.job:
            yield "R6", f"a world of another job, {found.job}, is replaced"
        if after.precedence <= found.precedence and not (held.closed and not found.closed):
            yield "R4", f"precedence {after.precedence} is written over {found.precedence}"
    if any(after.life.epoch <= state.life.epoch for state in (held, found) if state is not None):
        yield "R4", f"epoch {after.life.epoch} does not rise"
    if after.version != (found or held).version + 1:
        yield "S7", f"version {after.version} after {(found or held).version}"
    if not after.provisional or after.base == NOTHING:
        yield "R2", "restored, but it does not count for what it was made from"
    if _kept(after) != _kept(held):
        yield "R7", "what is restored is not what was held"
    if after.stale_before != after.version:
        yield (
            "R7",
            f"proposals are void up to version {after.stale_before}, but all of them came before {after.version}",
        )
    stands = held.complete or held.closed is not None
    attested = {node: seat for node, seat in held.seats.items() if seat.status not in UNATTESTED}
    if list(after.seats) != list(attested):
        yield "R7", f"{len(after.seats)} are seated, but {len(attested)} were"
    for node, was in attested.items():
        seat = after.seats.get(node)
        if seat != (was if stands else was.become(Status.EXPECTED)):
            yield "R7", f"{node} is restored as what nobody can attest"


def _kept(state: RendezvousState) -> tuple[object, ...]:
    job = state.job, state.limits, state.next_order, state.failures
    return (
        *job,
        state.round,
        state.generation,
        state.target,
        state.complete,
        state.completed_in,
        state.policy,
        state.closed,
        state.ended,
        state.progressed,
        state.fruitless,
        state.lost_starts,
    )
