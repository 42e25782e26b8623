"""The memory of a node's failure detector: which nodes are alive, by the observer's own clock.

No clock but the observer's is read. A heartbeat is a counter, and what counts is when the observer saw it move. Some stores
end the heartbeat of a silent node by themselves (`leased`). There a heartbeat that exists is as good as one that moved.

A node is dead when the observer *sent* its last answered read a TTL after it had last seen the counter move. Silence that
the observer could not hear does not count. When two of its answered reads lie further apart than two heartbeats, every
sighting starts afresh, unless the store has answered something else in between. So an outage, a pause or a partition of
the observer evicts nobody.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ..values import evolve, field, frozen
from ..world import Node
from .state import RendezvousState, Seat, Status


@frozen
class Sighting:
    """A node's heartbeat counter (None: it has none), and when I last saw it move.

    With `vouched`, that was a write of the node's own instead.
    """

    counter: int | None
    moved_at: float
    vouched: bool = False


@frozen
class Sightings:
    """The sightings of my last read. `read_at` is when I sent that read, `since` when the sightings last started afresh."""

    of: Mapping[Node, Sighting] = field(factory=dict)
    read_at: float | None = None
    since: float = -math.inf
    aside: Mapping[Node, Sighting] = field(factory=dict)
    """The sightings of the read before, of nodes that the last read left out. Whom a node watches changes with each round,
    and may leave somebody out for one read."""
    oldest: float = field(init=False, eq=False, repr=False)
    """When the node that is silent for longest was last seen to move."""

    @oldest.default
    def _oldest(self) -> float:
        return min([seen.moved_at for seen in self.of.values()], default=math.inf)

    def silence(self, node: Node) -> float:
        """Return how long the node was silent when I last asked; 0 for one that I do not watch."""
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
    asked_at: float = -math.inf,
) -> Sightings:
    """Return the sightings after a read of these counters, sent and answered at these times of my clock.

    `asked_at` is when I sent the last other request of those that the store has answered without a gap since the last read.

    A counter that existed and is gone says that its node ended, or that its lease ran out. Such a node is dead at once,
    unless it has written since. That does not hold within a TTL after the store was out of my reach: the store may have
    stood still, and then ended leases that nobody could renew.
    """
    stale = sightings.read_at is None or sent_at - max(sightings.read_at, asked_at) > afresh_after
    outage = stale and sightings.read_at is not None
    since = now if outage else sightings.since
    seen = {}
    for node, counter in counters.items():
        last = None if stale else sightings.of.get(node, sightings.aside.get(node))
        if last and last.counter == counter and not (leased and counter is not None):
            seen[node] = last
        elif last and counter is None:
            counts = not last.vouched and now - since >= ttl
            seen[node] = Sighting(None, -math.inf if counts else last.moved_at, last.vouched)
        else:
            seen[node] = Sighting(counter, now)
    aside = {} if stale else {node: last for node, last in sightings.of.items() if node not in counters}
    return Sightings(seen, sent_at, since, aside)


def refreshed(sightings: Sightings, nodes: Iterable[Node], now: float) -> Sightings:
    """Return the sightings after these nodes changed their seats. Such a change is as good as a heartbeat."""
    acted = frozenset(nodes)
    if acted.isdisjoint((*sightings.of, *sightings.aside)):
        return sightings
    alive = {node: Sighting(seen.counter, now, vouched=True) for node, seen in sightings.of.items() if node in acted}
    aside = {node: seen for node, seen in sightings.aside.items() if node not in acted}
    return evolve(sightings, of={**sightings.of, **alive}, aside=aside)


def signs_of_life(before: RendezvousState | None, after: RendezvousState, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return those of these nodes whose own writes lie between two states of one life. Other states may lie between them."""
    if before is None:
        return ()
    later, were = after.round > before.round, before.seats
    seated = [(node, were.get(node), seat) for node in nodes if (seat := after.seats.get(node))]
    return tuple([node for node, was, seat in seated if was is not seat and _has_acted(was, seat, later)])


def _has_acted(before: Seat | None, after: Seat, later: bool) -> bool:
    """Return True if only a write of the node's own explains its seat.

    Only its arrival seats a node, or makes it IN again, except for a promotion. Only its own write makes it DONE or RESERVE.
    """
    if before is None:
        return True
    if after.status in (Status.DONE, Status.RESERVE):
        return later or before.status is not after.status
    if after.status is Status.IN:
        return before.status is Status.EXPECTED or (later and before.status is not Status.WAITING)
    return False
