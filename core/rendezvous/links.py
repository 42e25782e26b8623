"""The links between agents: which nodes this one watches, and what the end of a link tells of the node at its other end.

The kernel closes the sockets of a dead process, so the end of a link is an early sign of a death. It may also be the
network's doing. So the observer suspects the node, connects again, and judges by what comes of that. Nobody listens at the
port of a node whose processes are dead: a connection that is refused twice is evidence. Silence is none: heartbeats decide.

While the store is silent, nobody can be evicted, but a node that waits wants to know if all its peers are dead. So the links
move on from a dead node to the next one, and a port that refuses counts though its link never stood.

`transition` is the observer's end of one link. It knows no socket; the adapter and the simulator carry out its commands.
What evidence is worth is decided elsewhere (`memory`, `context`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from enum import Enum
from itertools import islice
from typing import TypeAlias, assert_never

from ..backoff import pause_s
from ..values import evolve, frozen
from ..world import Node
from .state import AWAY, RendezvousState

NEIGHBOURS = 3
"""How many nodes each node watches."""
REFUSALS = 2
"""This many refusals of a connection in a row are evidence."""
AGAIN_S = 0.02
"""From one refusal to the next try; also the first pause after another failure, which doubles."""
LATEST_S = 1.0
"""The longest pause between two tries."""


class Says(Enum):
    """A link tells this of its node."""

    SUSPECT = "suspect"
    """The link ended without a goodbye."""
    GONE = "gone"
    """The port of the node refuses connections, or a later incarnation answers there: this one and its workers are dead."""
    ANSWERS = "answers"
    """The same incarnation answers: the network broke the link."""
    REFUSES = "refuses"
    """The port of the node refuses connections while the store is silent, and no link to it stood before."""


def neighbours(state: RendezvousState | None, me: Node, gone: Collection[Node] = ()) -> tuple[Node, ...]:
    """Return the nodes that this one watches: the next in the order of seats, of those that have a link's port. It watches
    those that are gone beside them."""
    seat = state.seats.get(me) if state is not None and not state.closed else None
    if state is None or seat is None or seat.status in AWAY:
        return ()
    present = state.present
    place = bisect_left(present, seat.order, key=lambda node: state.seats[node].order)
    others = (present[at % len(present)] for at in range(place + 1, place + len(present)))
    linked = (node for node in others if state.seats[node].profile.link_port and node not in gone)
    return *islice(linked, NEIGHBOURS), *(node for node in gone if node in state.seats)


@frozen
class Link:
    """The observer's end of a link, between two events."""

    node: Node
    up: bool = False
    """Both have said hello."""
    suspected: bool = False
    """It was up, and ended without a goodbye."""
    refusals: int = 0
    """How often in a row a connection was refused since then."""
    tries: int = 0
    """How often it failed otherwise since it was up."""
    over: bool = False
    """Nothing is expected of it any longer: the node said goodbye, or is gone."""

    @property
    def is_gone(self) -> bool:
        """The node is dead, as far as this link can tell."""
        return (self.over and self.suspected) or self.refusals >= REFUSALS


def followed(links: Mapping[Node, Link], state: RendezvousState | None, me: Node, silent: bool) -> Mapping[Node, Link]:
    """Return the links that this node is to have now. While the store is silent, a link moves on from a dead node to the
    next one, and a node that said goodbye is asked again."""
    gone = [node for node, link in links.items() if silent and link.is_gone]
    kept = {node: link for node, link in links.items() if link.is_gone or not (silent and link.over)}
    return {node: kept.get(node) or Link(node) for node in neighbours(state, me, gone)}


# --- events


@frozen
class Answered:
    """A node of this slot has said hello."""

    incarnation: int


@frozen
class Refused:
    """The connection was refused."""


@frozen
class Ended:
    """The connection ended; `goodbye` if the node had said so."""

    goodbye: bool = False


@frozen
class Failed:
    """The connection timed out, the node cannot be reached, or another program answered."""


Event: TypeAlias = Answered | Refused | Ended | Failed

# --- commands


@frozen
class Connect:
    """Connect at this point in time."""

    at: float


@frozen
class Tell:
    """Tell the client."""

    says: Says


Command: TypeAlias = Connect | Tell


def transition(link: Link, event: Event, now: float, silent: bool = False) -> tuple[Link, tuple[Command, ...]]:
    """Return the link after this event, and what is to be done. `silent`: the store does not answer."""
    match event:
        case Answered(incarnation) if incarnation == link.node.incarnation:
            return Link(link.node, up=True), (Tell(Says.ANSWERS),) if link.suspected or silent else ()
        case Answered() if link.suspected:
            return evolve(link, over=True), (Tell(Says.GONE),)
        case Ended(goodbye=True):
            return evolve(link, up=False, over=True), ()
        case Ended() if link.up:
            return Link(link.node, suspected=True), (Tell(Says.SUSPECT), Connect(now))
        case Ended() if link.suspected and not link.tries:
            return evolve(link, refusals=0, tries=1), (Connect(now),)
        case Refused() if (link.suspected or silent) and link.refusals + 1 < REFUSALS:
            return evolve(link, refusals=link.refusals + 1), (Connect(now + AGAIN_S),)
        case Refused() if link.suspected:
            return evolve(link, over=True), (Tell(Says.GONE),)
        case Refused() if silent:
            tries = link.tries + 1
            return evolve(link, refusals=REFUSALS, tries=tries), (Tell(Says.REFUSES), _later(tries, now))
        case Answered() | Ended() | Refused() | Failed():
            tries = link.tries + 1
            return evolve(link, refusals=0, tries=tries), (_later(tries, now),)
        case other:
            assert_never(other)


def _later(tries: int, now: float) -> Connect:
    return Connect(now + pause_s(tries, AGAIN_S, LATEST_S))
