"""The laws of links: what a link tells (L15), to whom a node links (L16), and whom it suspects by what links tell (L17).

They are judged by what became of each connection, by the register that a node holds, and by the heartbeats that it reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from ..properties.law import Law, Strength
from ..rendezvous import Client, Heartbeats, Held, Input, Linked, RendezvousState, Status, Woke
from ..rendezvous.links import AGAIN_S, LATEST_S, Answered, Command, Connect, Ended, Event, Refused, Says, Tell
from ..rendezvous.state import AWAY
from ..violation import Finding, check
from ..world import Node

WATCHED = 3
"""To this many nodes each one links."""
EVIDENCE = 2
"""This many refusals in a row are evidence."""
SLACK_S = 1e-6

L15 = Law(
    "L15",
    "A link tells that it broke, where it stood and ended without a goodbye; that its node is gone, where it broke and was "
    "refused twice in a row since, or another incarnation answers; that the node refuses, twice in a row while the store "
    "is silent; that it answers, where it broke or the store is silent; and nothing else; one that broke is tried at once, "
    "and again where that ends for the first time, any other within 1 s, unless a goodbye or evidence ends it.",
    "something becomes of a connection between two nodes",
)
L16 = Law(
    "L16",
    "A node links to the next three nodes in the order of seats that have a port for it; while the store is silent, to the "
    "next three that no link has evidence against, beside the others, and again to one that said goodbye.",
    "a node with links is shown a register, or a silence",
)
L17 = Law(
    "L17",
    "A node suspects those whose links broke, until they answer, lose their seats, return to them, or have another "
    "heartbeat than in the first read since, and nobody after a sleep or in another life; evidence counts only of a "
    "suspect.",
    "a link tells a node of another one, or a suspect's heartbeat is read",
)


@define(eq=False)
class LinkPast:
    """Remembers the connections of one link."""

    stands: bool = False
    broke: bool = False
    """It stood, and ended without a goodbye. Since then its node has not answered."""
    refused: int = 0
    """How often in a row it was refused, since it broke or while the store was silent."""
    failed: int = 0
    """How often a try came to anything else, since it stood."""
    said_goodbye: bool = False
    is_gone: bool = False
    """It was told that the node is gone."""

    @property
    def is_evidence(self) -> bool:
        return self.is_gone or self.refused >= EVIDENCE or (self.broke and self.said_goodbye)

    def due(self, event: Event, me: Node, silent: bool) -> tuple[Says | None, tuple[float, float] | None]:
        """Return what is to be told of this event, and when the next try is due; and remember the event."""
        later, at_once, soon = (AGAIN_S, LATEST_S), (0.0, 0.0), (AGAIN_S, AGAIN_S)
        asks = self.broke or silent
        if isinstance(event, Ended) and event.goodbye:
            self.stands, self.said_goodbye = False, True
            return None, None
        if isinstance(event, Answered) and event.incarnation == me.incarnation:
            self.stands, self.broke, self.refused, self.failed = True, False, 0, 0
            self.said_goodbye = self.is_gone = False
            return (Says.ANSWERS if asks else None), None
        if isinstance(event, Answered) and self.broke:
            self.is_gone = True
            return Says.GONE, None
        if isinstance(event, Ended) and self.stands:
            self.stands, self.broke, self.refused, self.failed = False, True, 0, 0
            return Says.SUSPECT, at_once
        if isinstance(event, Refused) and asks:
            self.refused += 1
            if self.refused < EVIDENCE:
                return None, soon
            if self.broke:
                self.is_gone = True
                return Says.GONE, None
            self.failed += 1
            return Says.REFUSES, later
        self.refused, self.failed = 0, self.failed + 1
        first = isinstance(event, Ended) and self.broke and self.failed == 1
        return None, at_once if first else later


@define
class Doubt:
    """Holds what a node knows of another one that it suspects."""

    since: float
    beaten_at: float = -math.inf
    """When the suspecting node had sent its last acknowledged heartbeat, as evidence came."""
    is_gone: bool = False
    counter: int | None = None
    was_read: bool = False


@define
class LinkLaws:
    strength: Strength = field(factory=Strength)
    doubts: dict[Node, dict[Node, Doubt]] = field(factory=dict)
    """Node -> whom it is to suspect."""

    def hears(
        self, past: LinkPast, me: Node, event: Event, silent: bool, commands: Sequence[Command], now: float
    ) -> None:
        """Judge what a link to this node makes of an event. Raises Violation."""
        self.strength.armed["L15"] += 1
        says, span = past.due(event, me, silent)
        told = [each.says for each in commands if isinstance(each, Tell)]
        tries = [each.at - now for each in commands if isinstance(each, Connect)]
        if told != ([] if says is None else [says]):
            check([("L15", f"a link to {me} tells {told} of {event}, not {says}")])
        is_due = span is not None and len(tries) == 1 and span[0] - SLACK_S <= tries[0] <= span[1] + SLACK_S
        if not (is_due or (span is None and not tries)):
            check([("L15", f"a link to {me} is tried {tries} s after {event}, and is to be in {span} s")])

    def follows(self, held: Held, pasts: Mapping[Node, LinkPast]) -> None:
        """Judge to whom a node has links now. Raises Violation."""
        self.strength.armed["L16"] += 1
        silent = held.contact.silent_since is not None
        wanted = _wanted(
            held.view.state, held.who.node, [node for node, past in pasts.items() if silent and past.is_evidence]
        )
        if {*wanted} != pasts.keys():
            check([("L16", f"{held.who.node} has links to {sorted(pasts)}, not to {sorted(wanted)}")])
        if unasked := [node for node, past in pasts.items() if silent and past.said_goodbye and not past.is_evidence]:
            check(
                [("L16", f"{held.who.node} does not ask {unasked} again, which said goodbye, and the store is silent")]
            )

    def suspects(self, was: Client, fed: Input, client: Client, now: float) -> None:
        """Judge whom a client suspects after a step. Raises Violation."""
        check(self._suspects(was, fed, client, now))

    def _suspects(self, was: Client, fed: Input, client: Client, now: float) -> Iterator[Finding]:
        me, before, held = client.held.who.node, was.held, client.held
        doubts = self.doubts.setdefault(me, {})
        self.strength.armed["L17"] += isinstance(fed, Linked) or (isinstance(fed, Heartbeats) and bool(doubts))
        match fed:
            case Woke():
                doubts.clear()
            case Linked():
                _told(doubts, fed, before.contact.silent_since is not None, now)
            case Heartbeats(counters, life) if before.view.state is None or before.view.state.life == life:
                _read(doubts, counters, was.asked_at)
            case _:
                pass
        unclear = _moved(doubts, before.view.state, held.view.state)
        if was.pushed is not None or (before.doubt.woke_at is not None and held.doubt.woke_at is None):
            unclear |= doubts.keys()
        if missing := doubts.keys() - unclear - held.view.suspects.keys():
            yield "L17", f"{me} suspects {sorted(missing)} no longer, which have shown no sign of life"
        if more := held.view.suspects.keys() - doubts.keys():
            yield "L17", f"{me} suspects {sorted(more)}, whose links did not break, or which live"
        for node in unclear - held.view.suspects.keys():
            del doubts[node]
        for node, doubt in doubts.items():
            suspect = held.view.suspects[node]
            if (suspect.beaten_at, suspect.is_gone) != (doubt.beaten_at, doubt.is_gone):
                yield "L17", f"{me} has another evidence against {node} than its links told"


def _wanted(state: RendezvousState | None, me: Node, gone: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes to which this one is to have links."""
    seats = state.seats if state is not None and not state.closed else {}
    if me not in seats or seats[me].status in AWAY:
        return ()
    line = [node for node, seat in seats.items() if seat.status not in AWAY]
    others = [*line[line.index(me) + 1 :], *line[: line.index(me)]]
    linked = [node for node in others if seats[node].profile.link_port and node not in gone]
    return (*linked[:WATCHED], *(node for node in gone if node in seats))


def _told(doubts: dict[Node, Doubt], linked: Linked, silent: bool, now: float) -> None:
    node = linked.node
    match linked.says:
        case Says.SUSPECT:
            doubts[node] = Doubt(now)
        case Says.ANSWERS:
            doubts.pop(node, None)
        case Says.GONE if node in doubts:
            doubts[node].is_gone = True
            doubts[node].beaten_at = doubts[node].beaten_at if linked.beaten_at is None else linked.beaten_at
        case Says.REFUSES if silent:
            doubts.setdefault(node, Doubt(now)).is_gone = True
        case _:
            pass


def _read(doubts: dict[Node, Doubt], counters: Mapping[Node, int | None], sent_at: float) -> None:
    for node, doubt in [each for each in doubts.items() if each[0] in counters and sent_at >= each[1].since]:
        if not doubt.was_read:
            doubt.was_read, doubt.counter = True, counters[node]
        elif counters[node] not in (None, doubt.counter):
            del doubts[node]


def _moved(doubts: dict[Node, Doubt], before: RendezvousState | None, after: RendezvousState | None) -> set[Node]:
    """Drop those of whom the register shows that they are gone or back; return those whose seats it shows as others."""
    if after is before:
        return set()
    if before is None or after is None or after.life != before.life or after.version < before.version:
        doubts.clear()
    unclear = set[Node]()
    for node in [*doubts]:
        was, now = (before.seats.get(node) if before else None), (after.seats.get(node) if after else None)
        if now is None or (was is not None and was.status is Status.EXPECTED and now.status is Status.IN):
            del doubts[node]
        elif now is not was:
            unclear.add(node)
    return unclear
