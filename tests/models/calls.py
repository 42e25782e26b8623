"""Calls for tests: those that events lead to, and the exhaustive search over every event of one rank's call.

The search counts tokens, rounds and tries from the present ones, so that it ends, and leaves out what no rule reads any
more. So two calls that can only do the same are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from attrs import evolve, frozen
from worlds import node

from elastic.core.inprocess import Call, Command, Event, OnInterrupt, Phase, Settings, begin, deadlines, transition
from elastic.core.inprocess.words import (
    AbortEnded,
    AtomicLeft,
    Closed,
    Elapsed,
    GateRead,
    How,
    Interrupted,
    Left,
    Over,
    Ready,
    Reason,
    Refused,
    Returned,
    SpanEnded,
    StoreBack,
    StoreLost,
    Terminated,
)
from elastic.core.world import Ending, Verdict, Why

VARIANTS = (
    Settings(fresh_after=2),
    Settings(max_iterations=1, max_faults=0, on_interrupt=OnInterrupt.LEAVE, fresh_after=None),
    Settings(max_repeats=0, fresh_after=None),
)
TRIES_MAX = 1
REPEATS_MAX = 1


def verdict(ending: Ending = Ending.CANCELLED, round: int = 0) -> Verdict:
    return Verdict(ending, round, node("b"), Why.ASKED)


def ready(round: int = 0, *, active: bool = True, enough: bool = True, agreed: bool = True) -> Ready:
    return Ready(round, active, enough, agreed)


def ended(call: Call, how: How = How.RETURNED) -> SpanEnded:
    return SpanEnded(call.token, how)


def elapsed(call: Call, timer: object) -> Elapsed:
    """Return the event that this timer of the call has elapsed."""
    (found,) = [each for each in deadlines(call) if each.timer is timer]
    return Elapsed(found)


def led(*events: Event | How, settings: Settings | None = None) -> Call:
    """Return the call after these events. A How ends the present span."""
    return told(*events, settings=settings)[0]


def told(*events: Event | How, settings: Settings | None = None) -> tuple[Call, tuple[Command, ...]]:
    """Return the call after these events, and the commands of the last one."""
    call, commands = begin(Call(settings or Settings()))
    for event in events:
        call, commands = transition(call, ended(call, event) if isinstance(event, How) else event)
    return call, commands


def events(call: Call) -> Iterator[Event]:
    """Yield each event that may come next, and stale ones."""
    round = -1 if call.round is None else call.round
    for active, enough, agreed in product((True, False), repeat=3):
        yield Ready(round + 1, active, enough, agreed)
    for of in {round, round + 1}:
        yield Over(of)
        yield from (Closed(verdict(ending, max(of, 0)), counted) for ending in Ending for counted in (True, False))
    for token in (call.token, call.token - 1):
        yield from (SpanEnded(token, how) for how in How)
        yield from (GateRead(token, 0), GateRead(token, 1), AtomicLeft(token))
    yield from (
        Refused(Why.TIMEOUT),
        Refused(Why.LIMITS),
        Left(),
        AbortEnded(),
        AbortEnded(True),
        StoreLost(),
        StoreBack(),
    )
    yield from (Interrupted(), Terminated())
    yield from (Elapsed(deadline) for deadline in deadlines(call))


@frozen
class Move:
    before: Call
    event: Event
    after: Call
    commands: tuple[Command, ...]
    known: Call
    """The call after it, counted anew."""


def _counted_anew(call: Call) -> Call:
    """Return the same call in its first round, with token 1, and without what no rule reads any more."""
    result, leaving, lost = call.result, call.leaving, call.store_lost
    return evolve(
        call,
        token=1,
        round=None if call.round is None else 0,
        faults=0,
        mark=None if leaving else call.mark,
        repeats=0 if leaving else min(call.repeats, REPEATS_MAX),
        barren=0 if leaving else call.barren,
        tries=min(call.tries, TRIES_MAX),
        verdict=evolve(call.verdict, round=0) if call.verdict else None,
        result=None if result is None else 0,
        leaving=leaving if leaving in (None, Reason.OUTCOME_UNKNOWN) else Reason.DRAINED,
        store_lost=lost and call.phase is Phase.RESERVE,
        outcome=None if call.outcome is None else Returned(None),
    )


@cache
def moves() -> tuple[Move, ...]:
    """Every step of every call. Equal calls, as they are before a step and counted anew after it, are one object."""
    todo = [_counted_anew(begin(Call(settings))[0]) for settings in VARIANTS]
    seen, found = {call: call for call in todo}, list[Move]()
    while todo:
        call = todo.pop()
        for event in events(call):
            after, commands = transition(call, event)
            counted = call if after is call else _counted_anew(after)
            known = call if after is call else seen.setdefault(counted, counted)
            found.append(Move(call, event, after, commands, known))
            if known is counted and known is not call:
                todo.append(known)
    return tuple(found)


@cache
def calls() -> tuple[Call, ...]:
    """Every call."""
    return tuple({id(move.before): move.before for move in moves()}.values())
