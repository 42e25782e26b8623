"""One step of a rank's call, taken again from its trace.

What the call hears of the rendezvous must have been answered, what the main thread tells it must have been ordered, and what
the gate says must have been asked. Which ranks are active in a world, and whether it is big enough, is taken at the rank's
word: its policy is a function, which no trace holds.
"""

from __future__ import annotations

from ...caller import wished
from ...evolving import evolve
from ...inprocess import Call, Command, Event, begin, transition
from ...inprocess.state import Aborting
from ...inprocess.words import AbortEnded, Closed, End, GateRead, Left, Over, Ready, Refused, SpanEnded
from ...rendezvous.agenda import Errand, Request
from ...world import Endpoint, Profile
from ..differs import same
from ..trace import CallStepped

ANY = Profile(Endpoint("any", 1))
"""What a rank says of itself is another thing in each round, and the shell's to say."""


def stepped(
    call: Call, told: tuple[object, ...], step: CallStepped
) -> tuple[Call, tuple[object, ...], tuple[Request | Errand, ...]]:
    """The call after a step, what it has not heard yet of `told`, and what it wishes for. Raises Differs."""
    event = step.event
    if isinstance(event, Ready | Over | Closed | Left | Refused):
        first, *rest = told or (None,)
        same("what the call hears", event, _at_its_word(event, first), Event | None)
        told = tuple(rest)
    elif event:
        same("what the call hears", event, _possible(call, event), Event | None)
    after, commands = transition(call, event) if event else begin(call)
    same("what the call commands", step.commands, commands, tuple[Command, ...])
    return after, told, tuple(wish for command in commands for wish in _wishes(command))


def _at_its_word(event: Event, answered: object) -> object:
    if isinstance(event, Ready) and isinstance(answered, Ready):
        return evolve(event, round=answered.round)
    return answered


def _possible(call: Call, event: Event) -> Event | None:
    """None for what nobody has caused."""
    match event:
        case SpanEnded(token) if token != call.token or call.span is None:
            return None
        case GateRead(token) if token != call.token or not call.asked:
            return None
        case AbortEnded() if call.abort not in (Aborting.RUNNING, Aborting.STUCK):
            return None
        case _:
            return event


def _wishes(command: Command) -> tuple[Request | Errand, ...]:
    """A fault is put on record behind the word that the round is over."""
    request = wished(command, ANY)
    record = (Errand(None),) if isinstance(command, End) else ()
    return (*((request,) if request else ()), *record)
