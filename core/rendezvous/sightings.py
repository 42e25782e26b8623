"""Who is alive, by this observer's own clock: the memory of its failure detector.

Nobody's clock but mine is read: a heartbeat is a counter, and what counts is when I saw it move; where the store itself ends
the heartbeat of a silent node (`leased`), one that is there is as good as one that moved. A node is dead for me when the
*sending time* of my last answered read lies a TTL past its last move. Silence that I was not there to hear does not
count: when two of my answered reads lie further apart than two heartbeats, every sighting starts afresh, so my own outage,
pause or partition evicts nobody.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from ..evolving import evolve
from ..world import Node
from .state import RendezvousState, Seat, Status


@frozen
class Sighting:
    """A node's heartbeat counter (None: it has none), and when I last saw it move, or a write of the node's own
    (`vouched`)."""

    counter: int | None
    moved_at: float
    vouched: bool = False


@frozen
class Sightings:
    """Of the nodes that I read last; `read_at` is when I sent that read, `since` when the sightings last started afresh."""

    of: Mapping[Node, Sighting] = field(factory=dict)
    read_at: float | None = None
    since: float = -math.inf

    def silence(self, node: Node) -> float:
        """How long the node was silent when I last asked; 0 for one that I do not watch."""
        seen = self.of.get(node)
        return max(self.read_at - seen.moved_at, 0.0) if seen and self.read_at is not None else 0.0


def observe(
    sightings: Sightings,
    counters: Mapping[Node, int | None],
    sent_at: float,
    now: float,
    afresh_after: float,
    ttl: float,
    leased: bool = False,
) -> Sightings:
    """What I know after a read of these counters, sent and answered at these points of my clock. A counter that was there
    and is gone says that its node has ended, or that its lease ran out: dead at once, unless it has written since. Within a
    TTL after the store was away for me it says less: it may have stood still, and ended leases that nobody could renew."""
    stale = sightings.read_at is None or sent_at - sightings.read_at > afresh_after
    outage = stale and sightings.read_at is not None
    since = now if outage else sightings.since
    seen = {}
    for node, counter in counters.items():
        last = None if stale else sightings.of.get(node)
        if last and last.counter == counter and not (leased and counter is not None):
            seen[node] = last
        elif last and counter is None:
            counts = not last.vouched and now - since >= ttl
            seen[node] = Sighting(None, -math.inf if counts else last.moved_at, last.vouched)
        else:
            seen[node] = Sighting(counter, now)
    return Sightings(seen, sent_at, since)


def refreshed(sightings: Sightings, nodes: Iterable[Node], now: float) -> Sightings:
    """A change of a node's own seat is as good as a heartbeat."""
    alive = {node: Sighting(sightings.of[node].counter, now, vouched=True) for node in nodes if node in sightings.of}
    return evolve(sightings, of={**sightings.of, **alive}) if alive else sightings


def signs_of_life(before: RendezvousState | None, after: RendezvousState) -> tuple[Node, ...]:
    """The nodes whose own writes stand between these two states of one life, however many lie between."""
    if before is None:
        return ()
    later = after.round > before.round
    changed = [(node, was, seat) for node, seat in after.seats.items() if (was := before.seats.get(node)) is not seat]
    return tuple(node for node, was, seat in changed if _has_acted(was, seat, later))


def _has_acted(before: Seat | None, after: Seat, later: bool) -> bool:
    """Only an arrival seats a node or makes it IN again, but for a promotion; only its own word makes it DONE or RESERVE."""
    if before is None:
        return True
    if after.status in (Status.DONE, Status.RESERVE):
        return later or before.status is not after.status
    if after.status is Status.IN:
        return before.status is Status.EXPECTED or (later and before.status is not Status.WAITING)
    return False
