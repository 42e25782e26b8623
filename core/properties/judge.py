"""The judge of a run: it is told facts in the order in which they happened, and asks the laws about each.

It keeps what the laws must remember. A law may look at anything here. It is asked about a step of a group after the
judge has noted that step, and about any other fact before. `verify` and `verify_step` judge each write here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, assert_never, get_args

from attrs import define, field

from ..group import Phase
from ..group.state import Elapsed, Signalled
from ..ranks import Ranks, assign
from ..rendezvous import Arrive, RendezvousState, Restore, Together, verify, verify_restore, verify_step
from ..rendezvous.handlers import drain
from ..violation import Finding, check
from ..world import Life, Node, World, WorldId
from . import group_laws, outcome_laws, register_laws, start_laws
from .facts import (
    Began,
    Decided,
    Fact,
    Failed,
    GaveUp,
    Holds,
    Judged,
    Left,
    Moved,
    Noted,
    Operated,
    Reaped,
    Slept,
    Started,
    Stepped,
    Succeeded,
    WaitsForever,
    Wrote,
)
from .law import Law, Strength, asked, by_number, findings, laws_of
from .pasts import Past

Property: TypeAlias = Callable[["Judge", Fact], Iterable[Finding]]
"""A property of a user: it yields what this fact breaks, as a name and a sentence. The judge has already seen this fact and
all before it. A property keeps in the judge's notes what it must remember."""
_ALL = laws_of(register_laws, start_laws, group_laws, outcome_laws)
LAWS: Mapping[str, Law] = by_number(_ALL)
"""The laws that this judge holds runs to, by number."""


ASKED = {
    kind: asked(each for each in _ALL if kind in each.facts) for kind in (*get_args(Judged), Restore, Life, Phase.ENDED)
}
"""These ask the laws about each kind of fact, in this order."""
ARMED_BY = {
    kind: tuple((each.number, each.holds) for each in _ALL if each.holds and kind in each.facts)
    for kind in (Wrote, Restore)
}
"""The conditions that arm the laws which `verify` judges, by edits and by restores."""


@define
class Judge:
    """The memory by which the next fact of a run is judged.

    `fenced`: the agents run with --on-store-loss=stop. `assign` is the policy that gives a world its ranks. `excused` maps
    each node whose agent was paused to when that ends, by its clock: a paused agent cannot stop its workers in time, nor can
    a dead one whose workers outlive its TTL. `also` are a user's own properties, asked after ours.
    """

    fenced: bool = False
    assign: Callable[[World], Mapping[Node, Ranks]] = assign
    also: tuple[Property, ...] = ()
    register: RendezvousState | None = None
    worlds: dict[WorldId, World] = field(factory=dict)
    running: dict[Node, World] = field(factory=dict)
    started: set[tuple[Node, WorldId]] = field(factory=set)
    succeeded: set[tuple[Node, WorldId | None]] = field(factory=set)
    failed: dict[str, set[WorldId]] = field(factory=dict)
    """Job -> the worlds in which a worker failed."""
    failures: set[tuple[Node, WorldId | None]] = field(factory=set)
    """Whose workers failed, and in which worlds."""
    jobs: dict[Life, str] = field(factory=dict)
    """Life -> the job whose register it was."""
    begun: set[Life] = field(factory=set)
    stayed: frozenset[Node] = frozenset()
    """The members of the last world that have kept their seats since, where worlds have whole units."""
    left: set[Node] = field(factory=set)
    leaving: set[Node] = field(factory=set)
    excused: dict[Node, float] = field(factory=dict)
    misled: dict[Node, int] = field(factory=dict)
    """Nodes that were evicted on evidence though they lived -> the round that was open then. They are told, but late."""
    alone: set[Node] = field(factory=set)
    """Nodes whose workers restart alone, and live through a change of nodes."""
    superseded: set[Node] = field(factory=set)
    """Nodes whose slot was started again: the supervisor says that they are gone, and is believed."""
    pasts: dict[Node, Past] = field(factory=dict)
    strength: Strength = field(factory=Strength)
    notes: dict[str, Any] = field(factory=dict)
    """The memory of a user's properties; empty when a run begins."""

    def saw(self, fact: Fact) -> None:
        """Judge one fact. Raises Violation."""
        if isinstance(fact, Holds):  # by far the most, and nothing to be judged yet
            self.past(fact.held.who.node).held.append((fact.at, fact.held))
        elif isinstance(fact, Stepped):
            self._stepped(fact)
        elif isinstance(fact, Wrote):
            self._wrote(fact)
        else:
            check(self._asks(type(fact), fact))
            self._notes(fact)
        for property in self.also:
            check(property(self, fact))

    def _asks(self, kind: type | Phase, fact: Fact) -> Iterator[Finding]:
        return findings(ASKED[kind], self, fact, self.strength)

    def _stepped(self, fact: Stepped) -> None:
        node, phase = fact.after.node, fact.after.phase
        if fact.after.settings.alone is not None:
            self.alone.add(node)
        if phase is Phase.LEAVING:
            self.leaving.add(node)
        self.past(node).stepped(fact)
        if fact.commands or fact.moves or isinstance(fact.event, Signalled | Elapsed):
            check((number, f"{text}: {fact}") for number, text in self._asks(Stepped, fact))
            if fact.moves and phase is Phase.ENDED:
                check(self._asks(Phase.ENDED, fact))

    def _wrote(self, fact: Wrote) -> None:
        kind, after = (Restore if fact.restores else Wrote), fact.after
        was = fact.was if kind is Wrote else fact.before or after
        self.strength.arms(number for number, holds in ARMED_BY[kind] if holds(was, after))
        if fact.before is None or fact.restores:
            check(self._asks(Life, fact))
        if isinstance(fact.edit, Restore):
            verify_restore(fact.edit, fact.before, after)
        else:
            verify(after)
            verify_step(was, after)
        check(self._asks(kind, fact))
        self.register = after
        if after.limits.node_unit > 1:
            self.stayed = _stayed(self.stayed, after, fact.restores)
        self.jobs[after.life] = after.job
        if fact.before is None or fact.restores:
            self.begun.add(after.life)
        if fact.restores:
            self.forgets()
        if isinstance(fact.edit, Arrive | Together) and was.seats is not after.seats:
            kin = [node for node in was.seats if node.slot == fact.node.slot]
            self.superseded.update(node for node in kin if node not in after.present)

    def _notes(self, fact: Judged) -> None:
        """Remember a fact that was judged."""
        match fact:
            case Started(node, world):
                self.started.add((node, world.id))
                self.worlds.setdefault(world.id, world)
                self.running[node] = world
            case Moved(node, world):
                self.worlds.setdefault(world.id, world)
                if node in self.running:
                    self.running[node] = world
            case Failed(node, at):
                self.failures.add((node, at))
                self.failed.setdefault(self.job(at), set()).add(at)
            case Succeeded(node, at):
                self.succeeded.add((node, at))
            case Reaped(node):
                self.running.pop(node, None)
            case Left(node):
                self.left.add(node)
                self.past(node).gone = True
            case Noted(node):
                del self.past(node).drains[:1]
            case Began(node, since):
                self.past(node).joins_since = since
            case GaveUp(held, handler, why):
                self.past(held.who.node).refusals.add(why)
                if handler is drain:
                    del self.past(held.who.node).drains[:1]
            case Slept(node, woke_at):
                self.past(node).woke_at = woke_at
            case Decided() | Operated() | WaitsForever() | Stepped() | Wrote():
                pass
            case other:
                assert_never(other)

    def forgets(self) -> None:
        """Let nobody owe a failure: a store has lost what it held, or got back something older, so a world may stand again
        that had failed."""
        for past in self.pasts.values():
            self.strength.excused["B5"] += past.owes is not None
            past.owes = None

    def past(self, node: Node) -> Past:
        """Return what this node's agent has been through."""
        known = self.pasts.get(node)
        if known is None:
            known = self.pasts[node] = Past()
        return known

    def job(self, world: WorldId) -> str:
        """Return the job of this world. A life without a write that was seen counts as a job of its own."""
        return self.jobs.get(world.life, world.life.nonce)

    def is_earlier(self, ran: WorldId, world: WorldId) -> bool:
        """Return True if `ran` is a world of the same job that was completed before `world`."""
        order = (ran.life.epoch, ran.round) < (world.life.epoch, world.round)
        return order and self.job(ran) == self.job(world)

    def earlier(self, world: WorldId) -> list[World]:
        """Return the worlds of the same job that were completed before this one."""
        return [each for id, each in self.worlds.items() if self.is_earlier(id, world)]


def _stayed(stayed: frozenset[Node], state: RendezvousState, restored: bool) -> frozenset[Node]:
    """Return the members of the last world that have kept their seats. Of an open round that is restored nothing is known:
    it may be older than that world."""
    if state.complete:
        return frozenset(state.members)
    return frozenset() if restored else stayed.intersection((*state.expected, *state.participants))
