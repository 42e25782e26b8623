"""A step of a trace taken again: through the core's own functions, from what the trace says went in.

What the node remembers (`Held`), its agenda and its group are derived here as the agent derived them. Where the core decides
something else than the trace says, or where the trace's two halves do not fit (the group hears what no operation answered, a
request is submitted that no command made), the trace was not written by this core: the step `Differs`.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from attrs import frozen

from .. import inprocess
from ..caller import Terms
from ..caller import heard as heard_by_the_call
from ..evolving import evolve
from ..group import Group, Phase, begin, transition
from ..group.state import Closed, Command, Event, Gone, Over, Ready, Record, RecordUnstartable, Refused
from ..inprocess import Call
from ..inprocess.timers import IDLE, Timers
from ..node import farewell, requested
from ..node import heard as heard_by_the_group
from ..rendezvous import (
    Ask,
    Held,
    Outcome,
    Raise,
    Return,
    Write,
    gathered,
    heard,
    proposed,
    saw,
    silent,
    turn,
    unanswered,
    unreadable,
    woke,
)
from ..rendezvous.agenda import Agenda, Errand, Request, answered, begun, submitted
from ..rendezvous.context import Handler
from . import call_replica as of_calls
from .difference import Differs, same, spelled
from .steps import (
    Begun,
    Calling,
    CallStepped,
    Gathered,
    Header,
    Heard,
    Proposed,
    Saw,
    Silent,
    Started,
    Step,
    Stepped,
    Submitted,
    Turned,
    Unanswered,
    Unreadable,
    Woke,
    Working,
)

Item: TypeAlias = Request | Errand


@frozen
class Replica:
    """One agent, or one rank that calls, between two steps, and the words that are on their way between its two machines."""

    held: Held
    machine: Group | Call
    agenda: Agenda = Agenda()
    requests: tuple[Item, ...] = ()
    """What the machine requested and the rendezvous has not been given yet."""
    told: tuple[Event | inprocess.Event, ...] = ()
    """What the rendezvous answered and the machine has not heard yet."""

    timers: Timers = IDLE
    """Of a call."""

    @property
    def group(self) -> Group:
        """An agent's. Raises Differs."""
        if not isinstance(self.machine, Group):
            raise Differs("whose step this is", '"a worker group"', '"a call"')
        return self.machine

    @property
    def call(self) -> Call:
        """A rank's. Raises Differs."""
        if not isinstance(self.machine, Call):
            raise Differs("whose step this is", '"a call"', '"a worker group"')
        return self.machine


def newborn(header: Header) -> Replica:
    """Before its first step."""
    held = Held(header.node, header.profile, header.rendezvous, header.nonce)
    match header.machine:
        case Working(settings):
            return Replica(held, Group(header.node, settings))
        case Calling(settings, token):
            return Replica(held, Call(settings, token))
        case other:
            assert_never(other)


def taken(replica: Replica, step: Step) -> Replica:
    """The agent after a step. Raises Differs if the core would have taken another one."""
    held = replica.held
    match step:
        case Submitted(item):
            return _submitted(replica, item)
        case Begun():
            return _begun(replica, step)
        case Turned(now, ask):
            return _turned(replica, now, ask)
        case Saw(state, sent_at, now, here):
            return evolve(replica, held=saw(held, state, sent_at, now, here))
        case Heard(counters, sent_at, now, life):
            return evolve(replica, held=heard(held, counters, sent_at, now, life))
        case Proposed(proposal, count, now):
            return evolve(replica, held=proposed(held, proposal, count, now))
        case Gathered(proposals, now):
            return evolve(replica, held=gathered(held, proposals, now))
        case Woke(now):
            return evolve(replica, held=woke(held, now))
        case Unanswered(based_on, now):
            return evolve(replica, held=unanswered(held, based_on, now))
        case Silent(now):
            return evolve(replica, held=silent(held, now))
        case Unreadable(text):
            return evolve(replica, held=unreadable(held, text))
        case Stepped():
            return _stepped(replica, step)
        case CallStepped():
            stands = of_calls.stepped(of_calls.Standing(replica.call, replica.timers, replica.told), step)
            requests = (*replica.requests, *stands.requests)
            return evolve(replica, machine=stands.call, timers=stands.timers, told=stands.told, requests=requests)
        case Started(round):
            standing = replica.group.world.round if replica.group.world and replica.group.running else None
            same("workers started in round", round, standing, int | None)
            return replica
        case other:
            assert_never(other)


def _submitted(replica: Replica, item: Item) -> Replica:
    first, *rest = replica.requests or (None,)
    # each round has an endpoint of its own, which the agent drew
    if isinstance(first, Request) and isinstance(item, Request) and first.profile:
        first = evolve(first, profile=item.profile)
    same("what the agent requests", item, first, Request | Errand | None)
    agenda = submitted(replica.agenda, item)
    return evolve(replica, agenda=agenda, requests=tuple(rest))


def _begun(replica: Replica, step: Begun) -> Replica:
    if not replica.agenda.due:
        raise Differs("what begins", spelled(step, Begun), "nothing is due")
    agenda, held, _ = begun(replica.agenda, replica.held, step.now, step.jitter)
    same("what begins", step, evolve(step, handler=agenda.operation.handler if agenda.operation else None), Begun)
    return evolve(replica, agenda=agenda, held=held)


def _turned(replica: Replica, now: float, ask: Ask) -> Replica:
    under_way = replica.agenda.operation
    if under_way is None:
        raise Differs("what is asked for", spelled(ask, Ask), "nothing is under way")
    held = replica.held
    if isinstance(replica.machine, Call) and isinstance(ask, Write):
        # what its rank policy makes of a world is the rank's word
        held = evolve(held, policy=lambda world: ask.state.policy)
    same("what is asked for", ask, turn(under_way, held, now), Ask)
    match ask:
        case Return(answer) | (Raise() as answer):
            agenda, held = answered(replica.agenda, replica.held, answer)
            event = _heard(replica, under_way.handler, answer, held, now)
            return evolve(replica, agenda=agenda, held=held, told=(*replica.told, *([event] if event else [])))
        case _:
            return replica


def _heard(
    replica: Replica, handler: Handler, answer: Outcome | Raise, held: Held, now: float
) -> Event | inprocess.Event | None:
    """What the machine is to hear of an answer."""
    if isinstance(replica.machine, Call):
        return heard_by_the_call(handler, answer, Terms(), held)
    return heard_by_the_group(handler, answer, now)


def _stepped(replica: Replica, step: Stepped) -> Replica:
    event, told = step.event, replica.told
    if isinstance(event, Ready | Over | Closed | Refused | Gone):
        first, *rest = told or (None,)
        expected = evolve(first, at=event.at) if isinstance(first, Ready | Over | Closed | Refused | Gone) else None
        same("what the group hears", event, expected, Event | None)
        told = tuple(rest)
    group, commands = transition(replica.group, event) if event else begin(replica.group, step.at)
    same("what the group commands", step.commands, commands, tuple[Command, ...])
    requests = tuple(item for command in commands if (item := _request(command, replica)))
    ends = group.outcome if group.phase is Phase.ENDED and replica.group.phase is not Phase.ENDED else None
    if ends and (last := farewell(ends)):
        requests = (*requests, last)
    return evolve(replica, machine=group, told=told, requests=(*replica.requests, *requests))


def _request(command: Command, replica: Replica) -> Item | None:
    if isinstance(command, Record | RecordUnstartable):
        return Errand(None)
    return requested(command, replica.held.profile)
