"""The links between agents: which nodes this one watches, and what the end of a link tells of the node at its other end.

The kernel closes the sockets of a dead process, so the end of a link is an early sign of a death. It may also be the
network's doing. So the observer suspects the node, connects again, and judges by what comes of that. Nobody listens at the
port of a node whose processes are dead: a connection that is refused twice is evidence. Silence is none: heartbeats decide.

`transition` is the observer's end of one link. It knows no socket; the adapter and the simulator carry out its commands.
What evidence is worth is decided elsewhere (`memory`, `context`).
"""

from __future__ import annotations

from bisect import bisect_left
from enum import Enum
from itertools import islice
from typing import TypeAlias, assert_never

from attrs import frozen

from ..backoff import pause_s
from ..evolving import evolve
from ..world import Node
from .state import AWAY, RendezvousState

NEIGHBOURS = 3
"""How many nodes each node watches."""
REFUSALS = 2
"""A connection that is refused so often is evidence."""
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


def neighbours(state: RendezvousState | None, me: Node) -> tuple[Node, ...]:
    """Return the nodes that this one watches: the next in the order of seats, of those that have a link's port."""
    seat = state.seats.get(me) if state is not None and not state.closed else None
    if state is None or seat is None or seat.status in AWAY:
        return ()
    present = state.present
    place = bisect_left(present, seat.order, key=lambda node: state.seats[node].order)
    others = (present[at % len(present)] for at in range(place + 1, place + len(present)))
    return tuple(islice((node for node in others if state.seats[node].profile.link_port), NEIGHBOURS))


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


def transition(link: Link, event: Event, now: float) -> tuple[Link, tuple[Command, ...]]:
    """Return the link after this event, and what is to be done."""
    match event:
        case Answered(incarnation) if incarnation == link.node.incarnation:
            return Link(link.node, up=True), (Tell(Says.ANSWERS),) if link.suspected else ()
        case Answered() if link.suspected:
            return evolve(link, over=True), (Tell(Says.GONE),)
        case Ended(goodbye=True):
            return evolve(link, up=False, over=True), ()
        case Ended() if link.up:
            return Link(link.node, suspected=True), (Tell(Says.SUSPECT), Connect(now))
        case Ended() if link.suspected and not link.tries:
            return evolve(link, refusals=0, tries=1), (Connect(now),)
        case Refused() if link.suspected and link.refusals + 1 < REFUSALS:
            return evolve(link, refusals=link.refusals + 1), (Connect(now + AGAIN_S),)
        case Refused() if link.suspected:
            return evolve(link, over=True), (Tell(Says.GONE),)
        case Answered() | Ended() | Refused() | Failed():
            tries = link.tries + 1
            return evolve(link, refusals=0, tries=tries), (Connect(now + pause_s(tries, AGAIN_S, LATEST_S)),)
        case other:
            assert_never(other)
