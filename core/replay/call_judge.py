"""The judge of real calls: it holds the traces of all ranks to the laws of calls.

A trace holds what the driver heard and ordered, but not what the main thread did in between. So I5 is judged without the
depth of sections, and I6 without their entry. I11 and I12 are the register's own invariant B2. I14 to I19 need facts that no
trace holds: that no fault happened, or that nothing more can happen.

Facts come in an order that no rank could tell from the real one (`history`). A fact that no trace shows breaks no law.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, assert_never

from attrs import define, field

from ..inprocess import Call, Event, Phase, verify, verify_step
from ..inprocess.words import (
    Abort,
    AbortEnded,
    Command,
    Finish,
    GateRead,
    How,
    Ready,
    Run,
    Span,
    SpanEnded,
)
from ..properties import call_laws as laws
from ..rendezvous import Client, Pushed, RendezvousState, Shown, Write
from ..trace.steps import Asked, CallStepped
from ..values import frozen
from ..violation import Violation
from ..world import Ending, Node, Why
from .comparison import Moment


@frozen
class Took:
    """A step of a rank's call."""

    node: Node
    before: Call
    event: Event | None
    after: Call
    commands: tuple[Command, ...]


@frozen
class Injected:
    """The monitor made user code of this round end; the rank then saw this register."""

    node: Node
    round: int
    shown: RendezvousState


@frozen
class Stands:
    """A version of the register; `before` is the one before it, if known."""

    before: RendezvousState | None
    after: RendezvousState


@frozen
class BreaksOff:
    """The end of a trace whose rank may be dead."""

    node: Node


Fact: TypeAlias = Took | Injected | Stands | BreaksOff


def facts(node: Node, moments: tuple[Moment, ...], number: int) -> Iterator[Fact]:
    """Yield the facts that this moment of a rank holds."""
    moment = moments[number]
    if not isinstance(moment.step, CallStepped):
        return
    before, event = moment.before.call, moment.step.event
    yield Took(node, before, event, moment.after.call, moment.step.commands)
    foreign = isinstance(event, SpanEnded) and event.how is How.INJECTED and not before.asked
    if foreign and (shown := _shown_after(moment.at, moments[number:])):
        yield Injected(node, before.round or 0, shown)


def _shown_after(at: float, moments: Iterable[Moment]) -> RendezvousState | None:
    """Return the register in the answer to the first later question; for the rank's own write, the state before it."""
    written: tuple[RendezvousState | None, RendezvousState | None] = (None, None)
    for moment in moments:
        if not isinstance(moment.step, Asked):
            continue
        state, sent_at = _shown(moment.step, moment.before.client)
        if state and sent_at >= at:
            return written[1] if state == written[0] else state
        if isinstance(moment.step.ask, Write):
            written = (moment.step.ask.state, moment.after.held.view.state)
    return None


def _shown(step: Asked, client: Client) -> tuple[RendezvousState | None, float]:
    """The register that the client was shown, and when it had asked for it."""
    match step.fed:
        case Shown(state):
            return state, client.asked_at
        case Pushed(state, sent_at):
            return state, sent_at
        case _:
            return None, 0.0


@define
class _Rank:
    """The judge's memory of one rank."""

    call: Call
    runs: Run | None = None
    """The span that its main thread was ordered to run, until its end is told."""
    round: int = -1
    """The round of that span."""
    called_in: int = -1
    """The round in which the function was called last."""
    aborts: bool = False
    depth: int = 0
    """The depth of atomic sections in the gate's last answer."""


@define
class CallJudge:
    """The judge of the ranks of one register. It remembers what it needs to judge the next fact."""

    register: RendezvousState | None = None
    ranks: dict[Node, _Rank] = field(factory=dict)
    members: dict[int, tuple[Node, ...]] = field(factory=dict)
    active: dict[int, dict[Node, bool]] = field(factory=dict)
    """For each round: which nodes are active, by their own traces."""
    unseated: frozenset[Node] = frozenset()

    def saw(self, fact: Fact) -> None:
        """Judge the next fact. Raises Violation, or the call's own Violation."""
        match fact:
            case Took():
                self._took(fact)
            case Injected(node, round, shown):
                if not laws.is_over(shown, node, round):
                    raise Violation("I5", f"{node} is hit though round {round} stands")
            case Stands(before, after):
                self._stands(before, after)
            case BreaksOff(node):
                self.ranks.pop(node, None)
            case other:
                assert_never(other)

    def _took(self, fact: Took) -> None:
        verify(fact.after)
        if fact.event:
            verify_step(fact.before, fact.event, fact.after, fact.commands)
        rank = self.ranks.setdefault(fact.node, _Rank(fact.before))
        rank.call = fact.after
        match fact.event:
            case Ready(round, active):
                self.active.setdefault(round, {})[fact.node] = active
            case SpanEnded():
                rank.runs = None
            case AbortEnded():
                rank.aborts = False
            case GateRead(depth=depth):
                rank.depth = depth
            case _:
                pass
        for command in fact.commands:
            self._ordered(fact, rank, command)

    def _ordered(self, fact: Took, rank: _Rank, command: Command) -> None:
        match command:
            case Run(span):
                laws.I2.judge(fact.node, f"is ordered to {span.value}", rank.runs.span.value if rank.runs else None)
                laws.I3.judge(fact.node, command, rank.aborts)
                rank.runs, rank.round = command, fact.after.round or 0
                if span is Span.FUNCTION:
                    self._called(fact.node, rank)
            case Abort():
                if rank.runs and rank.depth:
                    raise Violation("I6", f"abort of {fact.node} starts while it is in an atomic section")
                rank.aborts = True
            case Finish(outcome):
                laws.I7.judge(self.register, fact.node, outcome)
                laws.I9.judge(self.register, fact.node, outcome)
            case _:
                pass

    def _called(self, node: Node, rank: _Rank) -> None:
        laws.I1.judge(node, rank.called_in, rank.round)
        rank.called_in = rank.round
        for other in self.members.get(rank.round, ()):
            its = self.ranks.get(other)
            if its and its.runs and its.runs.span in laws.ROUND_OF_USER:
                laws.I4.judge(node, rank.round, other, its.round)

    def _stands(self, before: RendezvousState | None, after: RendezvousState) -> None:
        self.register = after
        if after.complete:
            self.members[after.round] = after.members
        if before is None:
            self.unseated = frozenset()
            return
        laws.I13.judge(after, self.unseated)
        gone = before.seats.keys() - after.seats.keys()
        self.unseated |= frozenset(node for node in gone if self._leaves(node))
        if after.closed and not before.closed and after.closed.ending is Ending.SUCCEEDED:
            self._succeeded(after)
        active = self._active(before)
        if active is not None and after.round > before.round and after.ended and after.ended.why is not Why.UPSCALE:
            laws.I10.judge(before, after, active)

    def _leaves(self, node: Node) -> bool:
        rank = self.ranks.get(node)
        return rank is not None and rank.call.leaving is not None

    def _active(self, state: RendezvousState) -> frozenset[Node] | None:
        """Return the active nodes of this state's round; None if a member's trace is missing."""
        known = self.active.get(state.round, {})
        told = state.complete and known.keys() >= set(state.members)
        return frozenset(node for node in known if known[node]) if told else None

    def _succeeded(self, after: RendezvousState) -> None:
        active = self._active(after)
        known = {node for node, was_active in self.active.get(after.round, {}).items() if was_active}
        stay = {node: rank.call for node, rank in self.ranks.items() if rank.call.phase is not Phase.ENDED}
        held = [(node, stay[node]) for node in sorted(known & stay.keys() & after.seats.keys())]
        laws.I8.judge(after.round, active is not None and not active, held)
