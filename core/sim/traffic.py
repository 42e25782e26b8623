"""How much a node asks of the store in one round (L11): its questions by kind, and the versions that it writes.

A question has a cause. A node asks because the register has changed, because something prompts it (a question without an
answer, a sleep, the word of a link, a loss of the store), or because time has passed. So what a node asks in one round is
bounded by the versions that it was shown, by what prompted it and, for heartbeats, by the clock. What it writes is
bounded by its part in a round. No bound depends on the number of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from ..properties.law import Law, Strength
from ..rendezvous import (
    Drain,
    Evict,
    Gather,
    Look,
    Observe,
    Propose,
    Question,
    RendezvousState,
    Restore,
    Violation,
    Write,
)
from ..world import Life, Node
from .process import Process
from .story import Setting

OWN: Mapping[type, int] = {Write: 1, Look: 1, Propose: 0, Gather: 0, Observe: 2}
"""The most questions of this kind of a node in one round, beside one for each version that it was shown, one for each
prompt and, of heartbeats, one for each interval and each half TTL. It reads three times at once where it finds the
coordinator dead, and then those who stand in for it."""
VERSIONS = 5
"""The most versions that a node writes in one round, beside restores, evictions and notices: each of these has its cause."""
KINDS: Mapping[type, str] = {
    Write: "writes",
    Look: "reads the register",
    Propose: "proposes",
    Gather: "reads proposals",
    Observe: "reads heartbeats",
}

L11 = Law(
    "L11",
    "What a node asks and writes in one round is bounded by its causes, and by no number of nodes ([how "
    "much](#traffic)).",
    "a node is shown a round",
)


def rate(setting: Setting) -> float:
    """Return how often in a second a node may read heartbeats, by the fastest clock: once for each interval, and once more
    whenever the coordinator has been silent for half a TTL."""
    return (1 + setting.drift) * (1 / setting.interval + 2 / setting.rendezvous.ttl)


@define
class Tally:
    """What one node has asked in the round that it knows."""

    since: float
    state: RendezvousState | None = None
    """The last version that it was shown."""
    shown: int = 0
    """How many versions of this round it was shown."""
    prompts: int = 0
    """This many times it had to ask again, though the register had not changed."""
    asked: dict[type, int] = field(factory=lambda: dict.fromkeys(OWN, 0))


@define
class Traffic:
    """What each node has asked and written, in the round that it is in."""

    rate: float
    """How many times a node may read heartbeats in a second."""
    strength: Strength = field(factory=Strength)
    of: dict[Node, Tally] = field(factory=dict)
    written: dict[Node, tuple[tuple[Life, int], int]] = field(factory=dict)
    """This maps a node to the round that it wrote in last, and to the number of its versions there."""

    def shows(self, process: Process, now: float) -> None:
        """Note that the node holds another version now."""
        tally, state = self._tally(process, now), process.held.view.state
        was = tally.state
        if state is not None and (was is None or (was.life, was.round) != (state.life, state.round)):
            tally = self.of[process.node] = Tally(now)
            self.strength.armed["L11"] += 1
        tally.state = state
        tally.shown += 1

    def prompted(self, process: Process, now: float) -> None:
        """Note that the node may ask again: a question or its waiter has no answer, it slept, a link tells of a node, or the
        store has lost its memory."""
        self._tally(process, now).prompts += 1

    def asks(self, process: Process, question: Question, now: float) -> None:
        """Judge a question. Raises Violation."""
        kind = type(question)
        if kind not in OWN or (isinstance(question, Write) and isinstance(question.edit, Restore)):
            return
        tally = self._tally(process, now)
        tally.asked[kind] = asked = tally.asked[kind] + 1
        may = OWN[kind] + tally.shown + tally.prompts
        if asked > may and (kind is not Observe or asked > may + (now - tally.since) * self.rate):
            raise Violation("L11", f"{process.name} {KINDS[kind]} {asked} times in a round, {_causes(tally)}")

    def _tally(self, process: Process, now: float) -> Tally:
        known = self.of.get(process.node)
        if known is None:
            known = self.of[process.node] = Tally(now)
        return known

    def wrote(self, node: Node, before: RendezvousState | None, write: Write) -> None:
        """Judge a version that has landed. Raises Violation."""
        after = write.state
        if before is not None:
            for each in before.seats:
                if each not in after.seats:
                    self.written.pop(each, None)  # it was dropped, and may come back
        if isinstance(write.edit, Restore | Evict | Drain):
            return
        state = before or after
        round = state.life, state.round
        which, many = self.written.get(node, (round, 0))
        many = many + 1 if which == round else 1
        self.written[node] = round, many
        if many > VERSIONS:
            raise Violation("L11", f"{node} writes {many} versions in round {state.round}")


def _causes(tally: Tally) -> str:
    return f"in which it was shown {tally.shown} versions and prompted {tally.prompts} times"
