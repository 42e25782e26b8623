"""A replica of an agent, or of a rank: it takes the steps of a trace again, by the core's own functions.

The memory (`Held`), the agenda and the group are derived here as the agent derived them. A step `Differs` if the core
decides something else than the trace says. It also differs if the two halves of the trace do not fit: the group hears what
no operation answered, or a request is submitted that no command made."""

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
from ..rendezvous import Ask, Client, Errand, Held, Input, Misfit, Prepared, Raise, Request, Submitted, Told, Write
from ..rendezvous import step as client_step
from ..trace.steps import Asked, Calling, CallStepped, Header, Started, Step, Stepped, Working
from . import call_replica as of_calls
from .difference import Differs, same, spelled

Item: TypeAlias = Request | Errand


@frozen
class Replica:
    """One agent, or one rank that calls, between two steps, with the words that are on their way between its two
    machines."""

    client: Client
    machine: Group | Call
    requests: tuple[Item, ...] = ()
    """Requests of the machine that the rendezvous has not been given yet."""
    told: tuple[Event | inprocess.Event, ...] = ()
    """Answers of the rendezvous that the machine has not heard yet."""

    answers: tuple[Told, ...] = ()
    """What came of operations in the last step of the client."""
    timers: Timers = IDLE
    """The timers of a call."""

    @property
    def held(self) -> Held:
        """Return the node's memory."""
        return self.client.held

    @property
    def group(self) -> Group:
        """Return the worker group of an agent. Raises Differs."""
        if not isinstance(self.machine, Group):
            raise Differs("whose step this is", '"a worker group"', '"a call"')
        return self.machine

    @property
    def call(self) -> Call:
        """Return the call of a rank. Raises Differs."""
        if not isinstance(self.machine, Call):
            raise Differs("whose step this is", '"a call"', '"a worker group"')
        return self.machine


def newborn(header: Header) -> Replica:
    """Return the replica before its first step."""
    client = Client(Held(header.node, header.profile, header.rendezvous, header.nonce))
    match header.machine:
        case Working(settings):
            return Replica(client, Group(header.node, settings))
        case Calling(settings, token):
            return Replica(client, Call(settings, token))
        case other:
            assert_never(other)


def taken(replica: Replica, step: Step) -> Replica:
    """Return the replica after a step. Raises Differs if the core would have taken another one."""
    match step:
        case Asked():
            return _asked(replica, step)
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


def _asked(replica: Replica, traced: Asked) -> Replica:
    client, requests = replica.client, replica.requests
    if isinstance(traced.fed, Submitted):
        requests = _submitted(requests, traced.fed.items)
    if isinstance(replica.machine, Call) and isinstance(traced.ask, Write):
        # what its rank policy makes of a world is the rank's word
        policy = traced.ask.state.policy
        client = evolve(client, held=evolve(client.held, policy=lambda world: policy))
    try:
        client, ask, notices = client_step(client, traced.fed, traced.now)
    except Misfit as misfit:
        raise Differs("what the client is fed", spelled(traced.fed, Input), f"none of that: {misfit}") from misfit
    try:
        same("what is asked for", traced.ask, ask, Ask | None)
    except Differs as differs:
        refusals = (notice.answer for notice in notices if isinstance(notice, Told))
        why = "".join(f", refused: {each.text}" for each in refusals if isinstance(each, Raise))
        raise Differs(differs.what, differs.traced, f"{differs.core}{why}") from None
    if client.held.policy:
        client = evolve(client, held=evolve(client.held, policy=None))
    answers = tuple(notice for notice in notices if isinstance(notice, Told))
    events = (_heard(replica, answer, traced.now) for answer in answers)
    told = (*replica.told, *(event for event in events if event))
    return evolve(replica, client=client, requests=requests, told=told, answers=answers)


def _submitted(requests: tuple[Item, ...], items: tuple[Item | Prepared, ...]) -> tuple[Item, ...]:
    """Return the requests of the machine that are left."""
    for item in items:
        if isinstance(item, Prepared):
            continue
        first, *rest = requests or (None,)
        # each round has an endpoint of its own, which the agent drew; and only the agent knows its standbys
        if isinstance(first, Request) and isinstance(item, Request) and first.profile:
            first = evolve(first, profile=item.profile, holds_back=item.holds_back)
        same("what the agent requests", item, first, Request | Errand | None)
        requests = tuple(rest)
    return requests


def _heard(replica: Replica, told: Told, now: float) -> Event | inprocess.Event | None:
    """Return the event that the machine hears of an answer."""
    if isinstance(replica.machine, Call):
        return heard_by_the_call(told.handler, told.answer, Terms(), told.held)
    return heard_by_the_group(told, now)


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
