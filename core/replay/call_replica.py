"""The replay of one step of a rank's call, from its trace.

Each event needs its cause: the rendezvous answered it, the main thread was ordered to run it, the gate was asked for it, or
its deadline has passed. Deadlines that progress moves are not checked, since no trace holds progress. The active ranks of a
world, and its size being sufficient, are taken from the rank's trace: its policy is a function, which no trace holds.
"""

from __future__ import annotations

import math

from ..caller import requested
from ..inprocess import Call, Command, Event, begin, transition
from ..inprocess.state import Aborting
from ..inprocess.timers import IDLE, Timers, running
from ..inprocess.words import (
    AbortEnded,
    Close,
    Closed,
    Elapsed,
    End,
    GateRead,
    Left,
    Over,
    Ready,
    Record,
    Refused,
    SpanEnded,
    Timer,
)
from ..rendezvous import Errand, Request
from ..trace.steps import CallStepped
from ..values import evolve, frozen
from ..world import Endpoint, Profile
from .difference import same

ANY = Profile(Endpoint("any", 1))
"""A profile for comparisons: the real one differs in each round, and the core does not choose it."""


@frozen
class Standing:
    """A call between two steps. `told` holds the answers that it has not heard yet, `requests` what its last step asked
    for."""

    call: Call
    timers: Timers = IDLE
    told: tuple[Event, ...] = ()
    requests: tuple[Request | Errand, ...] = ()


def stepped(before: Standing, step: CallStepped) -> Standing:
    """Return the call after a step. Raises Differs if the trace says otherwise."""
    call, told, event = before.call, before.told, step.event
    if isinstance(event, Ready | Over | Closed | Left | Refused):
        first, *rest = told or (None,)
        same("what the call hears", event, _at_its_word(event, first), Event | None)
        told = tuple(rest)
    elif event:
        same("what the call hears", event, event if _may_come(before, event, step.at) else None, Event | None)
    after, commands = transition(call, event) if event else begin(call)
    same("what the call commands", step.commands, commands, tuple[Command, ...])
    requests = tuple(request for command in commands for request in _requests(command))
    return Standing(after, running(before.timers, after, step.at), told, requests)


def _at_its_word(event: Event, answered: object) -> object:
    if isinstance(event, Ready) and isinstance(answered, Ready):
        return evolve(event, round=answered.round)
    return answered


def _may_come(before: Standing, event: Event, at: float) -> bool:
    """Return True if this event has its cause."""
    call = before.call
    match event:
        case SpanEnded(token):
            return token == call.token and call.span is not None
        case GateRead(token):
            return token == call.token and call.asked
        case AbortEnded():
            return call.abort in (Aborting.RUNNING, Aborting.STUCK)
        case Elapsed(deadline) if deadline.timer not in (Timer.SOFT, Timer.HARD):
            return at >= before.timers.began_at.get(deadline, -math.inf) + deadline.after_s
        case _:
            return True


def _requests(command: Command) -> tuple[Request | Errand, ...]:
    """Return what this command asks of the register. A failure record follows the end of the round, and precedes the end of
    the job."""
    request = requested(command, ANY)
    before = (Errand(None),) if isinstance(command, Close | Record) else ()
    after = (Errand(None),) if isinstance(command, End) else ()
    return (*before, *((request,) if request else ()), *after)
