"""The exhaustive enumerator over edits: it visits every state that a few nodes can make of a register.

States that differ only in names (version, round, arrival numbers) are one, because no rule depends on these numbers. The
number of states is then finite, so the search ends by itself. It judges every step.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator

from attrs import define, field
from seen import sometimes
from worlds import profile, racked

from elastic.core.rendezvous import (
    Arrive,
    Close,
    Complete,
    Done,
    Edit,
    End,
    Evict,
    Failing,
    Leave,
    Overdue,
    RendezvousState,
    Reserve,
    Violation,
    apply,
    verify,
    verify_step,
)
from elastic.core.world import Ending, Node, Verdict, Why

Apply = Callable[[RendezvousState, Edit, Node], RendezvousState]


@define
class Explored:
    """The result of a search."""

    states: int = 0
    steps: int = 0
    violations: set[str] = field(factory=set)
    seen: Counter[str] = field(factory=Counter)
    reached: list[RendezvousState] = field(factory=list)
    """One state of each kind that the rules can tell apart."""


def edits(
    state: RendezvousState, me: Node, closes: bool = True, reserves: bool = False, fails: Failing | None = None
) -> Iterator[Edit]:
    """Yield every edit that a node may ask for in this state, sensible or not. Late edits name the round before."""
    yield Arrive(racked(me.slot) if state.limits.segment else profile(me.slot))
    yield Leave()
    for round in {state.round, max(state.round - 1, 0)}:
        yield End(round, Why.FAILED, fails)
        yield End(round, Why.FENCED)
        if not state.finishing:  # no handler asks for an upscale then
            yield End(round, Why.UPSCALE)
        yield Done(round)
        if reserves:
            yield Reserve(round)
        yield Complete(round)
        yield Overdue(round)
    others = [node for node in state.seats if node != me]
    for dead in (*([node] for node in others), *([others] if len(others) > 1 else ())):
        yield Evict(frozenset(dead))
    if closes:
        yield Close(Verdict(Ending.CANCELLED, state.round, me, Why.ASKED))
        yield Close(Verdict(Ending.FAILED, state.round, me, Why.CANNOT_START))


def key(state: RendezvousState) -> Hashable:
    """Return what the rules can tell apart."""
    charged = state.ended is not None and state.ended.why is Why.FAILED
    return (
        state.complete,
        state.round == 0,  # a first world is in another order
        state.closed and (state.closed.ending, state.closed.why),
        tuple((node, seat.status, seat.failing) for node, seat in state.seats.items()),
        state.target,
        state.quorum_at is None,
        state.failures,
        state.ended.by if state.ended and charged else charged,
    )


def judged(before: RendezvousState, edit: Edit, me: Node, apply: Apply = apply) -> RendezvousState | None:
    """Return the state after the edit, or None if nothing changes. Raises Violation."""
    after = apply(before, edit, me)
    if after is before:
        return None
    verify(after)
    verify_step(before, after)
    return after


def explore(
    start: RendezvousState,
    nodes: list[Node],
    apply: Apply = apply,
    goes_on: bool = False,
    fails: Failing | None = None,
) -> Explored:
    """Visit every state that these nodes can reach from the start, breadth first. A node may tell that it `fails` so.

    Raises the first Violation; if it `goes_on`, it collects the numbers of all violations instead.
    """
    explored, known, ahead = Explored(), {key(start)}, deque([start])
    while ahead:
        state = ahead.popleft()
        explored.states += 1
        explored.reached.append(state)
        for me in nodes:
            for edit in edits(state, me, fails=fails):
                try:
                    after = judged(state, edit, me, apply)
                except Violation as violation:
                    if not goes_on:
                        raise
                    explored.violations.add(violation.number)
                    continue
                if after is None:
                    continue
                explored.steps += 1
                explored.seen.update(sometimes(state, edit, me, after))
                if key(after) not in known:
                    known.add(key(after))
                    ahead.append(after)
    return explored
