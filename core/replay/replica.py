"""A replica of an agent, or of a rank: it takes the steps of a trace again, by the core's own functions.

The memory (`Held`), the agenda and the group are derived here as the agent derived them. A step `Differs` if the core
decides something else than the trace says. It also differs if the two halves of the trace do not fit: the group hears what
no operation answered, or a request is submitted that no command made."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from .. import agent as of_agents
from .. import inprocess
from ..agent import Agent, Effect, Submit
from ..agent import step as agent_step
from ..caller import Terms
from ..caller import heard as heard_by_the_call
from ..group import Group, Phase
from ..group.state import (
    Closed,
    Command,
    Event,
    Gone,
    Noticed,
    Over,
    Ready,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Refused,
)
from ..inprocess import Call
from ..inprocess.timers import IDLE, Timers
from ..rendezvous import (
    Ask,
    Client,
    Errand,
    Held,
    Input,
    Misfit,
    Notice,
    Prepared,
    Raise,
    Request,
    Restored,
    Submitted,
    Told,
    Who,
    Write,
    join,
)
from ..rendezvous import step as client_step
from ..trace.steps import Asked, Calling, CallStepped, HangEnd, Header, Started, Step, Stepped, Worked, Working
from ..values import evolve, frozen
from . import call_replica as of_calls
from .difference import Differs, same, spelled

Item: TypeAlias = Request | Errand


@frozen
class Replica:
    """One agent, or one rank that calls, between two steps, with the words that are on their way between its two
    machines."""

    client: Client
    machine: Agent | Call
    requests: tuple[Item, ...] = ()
    """Requests of the machine that the rendezvous has not been given yet."""
    told: tuple[inprocess.Event, ...] = ()
    """Answers of the rendezvous that the call has not heard yet."""
    notices: tuple[Notice, ...] = ()
    """Notices of the client that the agent has not heard yet."""

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
        return self.agent.group

    @property
    def agent(self) -> Agent:
        """Return the agent. Raises Differs."""
        if not isinstance(self.machine, Agent):
            raise Differs("whose step this is", '"a worker group"', '"a call"')
        return self.machine

    @property
    def phase(self) -> Phase | inprocess.Phase:
        """Return the phase of its machine."""
        return self.machine.group.phase if isinstance(self.machine, Agent) else self.machine.phase

    @property
    def call(self) -> Call:
        """Return the call of a rank. Raises Differs."""
        if not isinstance(self.machine, Call):
            raise Differs("whose step this is", '"a call"', '"a worker group"')
        return self.machine


def newborn(header: Header) -> Replica:
    """Return the replica before its first step."""
    client = Client(Held(Who(header.node, header.profile, header.rendezvous, header.nonce)))
    match header.machine:
        case Working(settings):
            return Replica(client, Agent(Group(header.node, settings)))
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
        case Worked() | HangEnd():
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
        client = evolve(client, held=evolve(client.held, who=evolve(client.held.who, policy=lambda world: policy)))
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
    if client.held.who.policy:
        client = evolve(client, held=evolve(client.held, who=evolve(client.held.who, policy=None)))
    answers = tuple(notice for notice in notices if isinstance(notice, Told))
    after = evolve(replica, client=client, requests=requests, answers=answers)
    if isinstance(replica.machine, Agent):
        return evolve(after, notices=(*replica.notices, *notices))
    events = (heard_by_the_call(each.handler, each.answer, Terms(), each.held) for each in answers)
    return evolve(after, told=(*replica.told, *(event for event in events if event)))


def _submitted(requests: tuple[Item, ...], items: tuple[Item | Prepared, ...]) -> tuple[Item, ...]:
    """Return the requests of the machine that are left."""
    for item in items:
        if isinstance(item, Prepared):
            continue
        first, *rest = requests or (None,)
        # each round has an endpoint of its own, which the agent drew; and only the agent knows its standbys
        if isinstance(first, Request) and isinstance(item, Request) and first.handler is join:
            first = evolve(first, profile=item.profile, holds_back=item.holds_back)
        same("what the agent requests", item, first, Request | Errand | None)
        requests = tuple(rest)
    return requests


def _stepped(replica: Replica, step: Stepped) -> Replica:
    """Let the agent take a step of its group. It has heard the notices of its client in their order."""
    agent, event, notices = replica.agent, step.event, replica.notices
    if event is None:
        agent, effects = of_agents.begin(agent, step.at)
    elif isinstance(event, FROM_CLIENT) or (isinstance(event, Noticed) and event.known):
        agent, effects, notices = _noticed(agent, notices, event.at)
        heard = next((effect.event for effect in effects if isinstance(effect, of_agents.Stepped)), None)
        same("what the group hears", event, heard, Event | None)
    else:
        agent, effects = agent_step(agent, event, step.at)
    commands = next((effect.commands for effect in effects if isinstance(effect, of_agents.Stepped)), ())
    same("what the group commands", step.commands, commands, tuple[Command, ...])
    requests = tuple(item for effect in effects if (item := _item(effect)))
    return evolve(replica, machine=agent, notices=notices, requests=(*replica.requests, *requests))


FROM_CLIENT = (Ready, Over, Closed, Refused, Gone)
"""The group hears these from the client alone. Its own notice it may hear from elsewhere, too."""


def _noticed(
    agent: Agent, notices: tuple[Notice, ...], at: float
) -> tuple[Agent, tuple[Effect, ...], tuple[Notice, ...]]:
    """Let the agent hear the notices up to the one that its group hears."""
    for number, notice in enumerate(notices, 1):
        if not isinstance(notice, Restored):
            agent, effects = agent_step(agent, notice, at)
            if any(isinstance(effect, of_agents.Stepped) for effect in effects):
                return agent, effects, notices[number:]
    return agent, (), ()


def _item(effect: Effect) -> Item | None:
    match effect:
        case Record() | RecordUnstartable() | RecordUnfit():
            return Errand(None)
        case Submit(Request() as request):
            return request
        case _:
            return None
