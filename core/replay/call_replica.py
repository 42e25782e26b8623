"""One step of a rank's call, taken again from its trace.

What the call hears of the rendezvous must have been answered, what the main thread tells it must have been ordered, what the
gate says must have been asked, and a deadline must have passed (but for those that progress moves, which no trace tells).
Which ranks are active in a world, and whether it is big enough, is taken at the rank's word: its policy is a function, which
no trace holds.
"""

from __future__ import annotations

import math

from attrs import frozen

from ..caller import wished
from ..evolving import evolve
from ..inprocess import Call, Command, Event, begin, transition
from ..inprocess.state import Aborting
from ..inprocess.timers import IDLE, Timers, running
from ..inprocess.words import (
    AbortEnded,
    Closed,
    Elapsed,
    End,
    GateRead,
    Left,
    Over,
    Ready,
    Refused,
    SpanEnded,
    Timer,
)
from ..rendezvous.agenda import Errand, Request
from ..world import Endpoint, Profile
from .difference import same
from .steps import CallStepped

ANY = Profile(Endpoint("any", 1))
"""What a rank says of itself is another thing in each round, and the shell's to say."""


@frozen
class Standing:
    """A call between two steps. `told`: what it has not heard yet; `wishes`: what it has wished for by its last step."""

    call: Call
    timers: Timers = IDLE
    told: tuple[object, ...] = ()
    wishes: tuple[Request | Errand, ...] = ()


def stepped(before: Standing, step: CallStepped) -> Standing:
    """After a step. Raises Differs."""
    call, told, event = before.call, before.told, step.event
    if isinstance(event, Ready | Over | Closed | Left | Refused):
        first, *rest = told or (None,)
        same("what the call hears", event, _at_its_word(event, first), Event | None)
        told = tuple(rest)
    elif event:
        same("what the call hears", event, event if _may_come(before, event, step.at) else None, Event | None)
    after, commands = transition(call, event) if event else begin(call)
    same("what the call commands", step.commands, commands, tuple[Command, ...])
    wishes = tuple(wish for command in commands for wish in _wishes(command))
    return Standing(after, running(before.timers, after, step.at), told, wishes)


def _at_its_word(event: Event, answered: object) -> object:
    if isinstance(event, Ready) and isinstance(answered, Ready):
        return evolve(event, round=answered.round)
    return answered


def _may_come(before: Standing, event: Event, at: float) -> bool:
    """Somebody has caused it."""
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


def _wishes(command: Command) -> tuple[Request | Errand, ...]:
    """A fault is put on record behind the word that the round is over."""
    request = wished(command, ANY)
    record = (Errand(None),) if isinstance(command, End) else ()
    return (*((request,) if request else ()), *record)
