"""One node of a job, composed once: `step(agent, event, now) -> (agent, effects)`.

An agent is a worker group with what the agent itself keeps in mind: the register as it was shown last, the nodes that are
lost, the silence of the store, its standbys, its end. It hears its rendezvous' client, its heart, its workers and people.
Production, the simulator, the replay of traces and the models run this one function. Each step gives the group one event at
most, and its effects are done in their order. What follows from a step is heard as the next event (`Hear`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from .group import Group, Outcome, Phase, Stopped, transition
from .group import begin as first_step
from .group import state as of_group
from .group.state import Beaten, Command, Refused, Signalled
from .hangs import out_of_reach
from .node import acknowledged, asks_for_stacks, farewell, follows, heard, noticed, requested, still_lost, workless
from .rendezvous import Prepared, RendezvousState, Request, Seen, StoreBack, StoreSilent, Told, handlers
from .values import evolve, field, frozen
from .world import Ending, Life, Node, Verdict, Why, World

ANSWERED_MAX = 1_024
"""The ids of queries that an agent remembers. People ask a few questions of a job, and each id is worth some 100 bytes."""


# --- events: what an agent hears, beside what its group does ----------------------------------------------------------


@frozen
class Acknowledged:
    """A store that holds a register of this life acknowledged the heartbeat that was sent at this time."""

    sent_at: float
    life: Life | None


@frozen
class Settled:
    """The standbys are ready, or nothing is gained by waiting for them; or they are not."""

    are_settled: bool


@frozen
class Stands:
    """The workers of this round seem to hang, and stand where the hang watch has seen them; nowhere: one has moved."""

    round: int
    seen: Sequence[Any]


@frozen
class Hung:
    """The hang watch has found a hang of this round that people should hear of."""

    round: int
    report: Any


@frozen
class Queried:
    """A person asks what the workers of this round are doing now."""

    id: str
    round: int
    query: Any


Event: TypeAlias = (
    of_group.Event | Told | Seen | StoreSilent | StoreBack | Acknowledged | Settled | Stands | Hung | Queried
)


# --- effects: what is done, in this order, beside the commands of the group -------------------------------------------


@frozen
class Stepped:
    """The group took a step, the first one without an event. This is the first effect: a step is written down before its
    commands are carried out."""

    event: of_group.Event | None
    before: Group
    after: Group
    commands: tuple[Command, ...]


@frozen
class Submit:
    """Submit this to the rendezvous' client. A join has no profile yet: each start of the workers has its own endpoint."""

    item: Request | Prepared


@frozen
class See:
    """Look at the workers now: the next signal may end them."""


@frozen
class PutStacks:
    """Put on record what was seen of the workers of this round."""

    round: int


@frozen
class Suspect:
    """Put on record where the workers of this round stand; nowhere: one has moved."""

    round: int
    seen: Sequence[Any]


@frozen
class Report:
    """Report a hang to people."""

    report: Any


@frozen
class Reply:
    """Answer this query."""

    query: Any


@frozen
class FollowLinks:
    """Watch the neighbours that the register names now, and while the store is silent those behind them."""


@frozen
class FollowWorkers:
    """Look at the workers' progress while the store is silent, and not when it answers."""


@frozen
class ThrowOut:
    """Throw the ranks of the lost nodes out of the workers' registers, from now on."""


@frozen
class Rest:
    """The standbys wait for a while before they are replaced; longer where workers run."""

    is_busy: bool


@frozen
class Hear:
    """Let the agent hear this next."""

    event: of_group.Event


_Carried: TypeAlias = (
    of_group.Beat
    | of_group.Start
    | of_group.Move
    | of_group.StartAgain
    | of_group.Signal
    | of_group.Tell
    | of_group.Record
    | of_group.RecordUnstartable
    | of_group.Check
    | of_group.RecordUnfit
)
"""The commands of the group that are effects as they are. From each other one a request follows."""

Effect: TypeAlias = (
    _Carried
    | Stepped
    | Submit
    | See
    | PutStacks
    | Suspect
    | Report
    | Reply
    | FollowLinks
    | FollowWorkers
    | ThrowOut
    | Rest
    | Hear
)

FOLLOW_LINKS, FOLLOW_WORKERS, THROW_OUT, SEE = FollowLinks(), FollowWorkers(), ThrowOut(), See()
_LINKS: tuple[Effect, ...] = (FOLLOW_LINKS,)
_RESTS = {is_busy: Rest(is_busy) for is_busy in (False, True)}


# --- the agent --------------------------------------------------------------------------------------------------------


@frozen
class Agent:
    """One node's part in one job."""

    group: Group
    puts_stacks: bool = True
    """It goes on record what workers were doing that are stopped because of a failure."""
    state: RendezvousState | None = None
    """The register as it was shown last."""
    complete: RendezvousState | None = None
    """The register as it was shown last with a complete round: its participants ran workers."""
    world: World | None = None
    """The world of the workers that run, or ran last."""
    lost: Mapping[Node, int] = field(factory=dict)
    """The nodes that were evicted and have no seat again, each with the round that was over then. An agent whose workers
    start again with all others keeps none."""
    silent_since: float | None = None
    """The time since which the store does not answer."""
    are_settled: bool = True
    """Its standbys are what it waits for. So it is for an agent without standbys."""
    holds_back: bool = False
    """Its join asks for no seat in a job that runs, before the standbys are settled."""
    suspected: int | None = None
    """The round whose workers have their stacks on record because they seem to hang."""
    answered: tuple[str, ...] = ()
    """The ids of the last queries that were answered: a node that reads one in the store may put it back."""
    is_known_to_leave: bool = False
    """The register has told that this node has left, or that the job is closed."""
    lingers: bool = False
    """The agent is over, and stays until the store is seen to know the verdict."""

    @property
    def outcome(self) -> Outcome | None:
        """How the agent's part ended; None before its end."""
        return self.group.outcome


Step: TypeAlias = tuple[Agent, tuple[Effect, ...]]


def begin(agent: Agent, at: float) -> Step:
    """Return the first step of an agent."""
    group, commands = first_step(agent.group, at)
    agent, effects = _commanded(evolve(agent, group=group), commands, None)
    return agent, (Stepped(None, group, group, commands), *effects)


def step(agent: Agent, event: Event, now: float) -> Step:
    """Return the agent after this event, and what is done because of it."""
    match event:
        case Acknowledged():
            return _acknowledged(agent, event, now)
        case Seen():
            return _shown(agent, event.state, now)
        case Told():
            return _told(agent, event, now)
        case StoreSilent(at=at):
            return evolve(agent, silent_since=at), (FOLLOW_LINKS, FOLLOW_WORKERS)
        case StoreBack():
            return evolve(agent, silent_since=None), (FOLLOW_LINKS, FOLLOW_WORKERS)
        case Settled(are_settled):
            return _settled(agent, are_settled)
        case Stands():
            return _stands(agent, event)
        case Hung(round, report):
            return agent, (Report(report),) if _runs(agent, round) else ()
        case Queried():
            return _queried(agent, event)
        case other:
            return _hears(agent, other, now)


# --- what the group hears ---------------------------------------------------------------------------------------------


def _acknowledged(agent: Agent, event: Acknowledged, now: float) -> Step:
    """Take an acknowledgement, if it is one of the register that this node was shown."""
    if not acknowledged(event.life, agent.state):
        return agent, ()
    return _hears(agent, Beaten(event.sent_at, now), now)


def _shown(agent: Agent, state: RendezvousState, now: float) -> Step:
    """Take the register as it stands: nodes may be lost, and this node may have notice there."""
    before, known, lost = agent.state, agent.lost, agent.lost
    if agent.group.settings.alone:
        lost = still_lost(known, before, state)
    complete = state if state.complete else agent.complete
    agent = evolve(agent, state=state, complete=complete, lost=lost)
    is_news = lost is not known and bool(lost.items() - known.items())
    first = (THROW_OUT, FOLLOW_LINKS) if is_news else _LINKS
    if (notice := noticed(state, agent.group, now)) is None:
        return agent, first
    agent, effects = _hears(agent, notice, now)
    return agent, (*effects, *first)


def _told(agent: Agent, told: Told, now: float) -> Step:
    """Take what came of an operation of the rendezvous."""
    if told.handler is handlers.linger:
        return evolve(agent, lingers=False), ()
    event = heard(told, now)
    return _hears(agent, event, now) if event else (agent, ())


def _hears(agent: Agent, event: of_group.Event, now: float) -> Step:
    """Let the group take this event. One that is over takes none: a signal then ends the wait for the store."""
    before = agent.group
    if before.phase is Phase.ENDED:
        return evolve(agent, lingers=False) if isinstance(event, Signalled) else agent, ()
    group, commands = transition(before, event)
    stepped, after = Stepped(event, before, group, commands), evolve(agent, group=group)
    if not commands and group.phase is before.phase and type(event) not in _TELLING:
        return after, (stepped,)
    if isinstance(event, of_group.Gone | of_group.Closed):
        after = evolve(after, is_known_to_leave=True)
    after, effects = _commanded(after, commands, _round_on_record(agent, event, group))
    effects.insert(0, stepped)
    if group.phase is not before.phase or any(isinstance(each, of_group.StartAgain) for each in commands):
        effects.append(_RESTS[bool(group.running)])
    if consequence := follows(event, group, now):
        effects.append(Hear(consequence))
    if group.outcome and (last := farewell(group.outcome)):
        after = evolve(after, lingers=True)
        effects.append(Submit(last))
    return after, tuple(effects)


_TELLING = (of_group.Exited, of_group.Gone, of_group.Closed)
"""More may follow from these events, though the group neither moves nor commands."""


def _commanded(agent: Agent, commands: tuple[Command, ...], round: int | None) -> tuple[Agent, list[Effect]]:
    """Return the effects of the group's commands. Of `round` it goes on record what the workers were doing: they are looked
    at before their first signal, and nothing waits for the record."""
    effects: list[Effect] = []
    is_seen = round is None
    for command in commands:
        if not is_seen and isinstance(command, of_group.Signal):
            effects.append(SEE)
            is_seen = True
        agent, more = _command(agent, command)
        effects += more
    if round is not None:
        effects += (PutStacks(round),) if is_seen else (SEE, PutStacks(round))
    return agent, effects


def _command(agent: Agent, command: Command) -> Step:
    match command:
        case of_group.Join():
            holds_back = not agent.are_settled
            return _submits(agent, requested(command, holds_back=holds_back), holds_back)
        case of_group.End() | of_group.MarkDone() | of_group.Leave() | of_group.Drain() | of_group.Close():
            return _submits(agent, requested(command), holds_back=False)
        case of_group.Start(world) | of_group.Move(world):
            return evolve(agent, world=world), (command,)
        case of_group.StartAgain():
            more = () if agent.silent_since is None else (FOLLOW_WORKERS,)
            return evolve(agent, suspected=None), (command, *more)
        case (
            of_group.Beat()
            | of_group.Signal()
            | of_group.Tell()
            | of_group.Record()
            | of_group.RecordUnstartable()
            | of_group.Check()
            | of_group.RecordUnfit()
        ):
            return agent, (command,)
        case other:
            assert_never(other)


def _submits(agent: Agent, request: Request | None, holds_back: bool) -> Step:
    assert request
    return agent if holds_back is agent.holds_back else evolve(agent, holds_back=holds_back), (Submit(request),)


def _round_on_record(agent: Agent, event: of_group.Event, after: Group) -> int | None:
    """Return the round whose workers' stacks go on record; None if none do, or if they are on record:
    workers that hang, with the one that was blamed and is dead."""
    world = agent.world
    if not agent.puts_stacks or world is None or world.round == agent.suspected:
        return None
    return world.round if asks_for_stacks(event, agent.group, after) else None


# --- what the agent hears beside --------------------------------------------------------------------------------------


def _settled(agent: Agent, are_settled: bool) -> Step:
    """Let this node ask for a seat in a running job, if its standbys are what it waits for."""
    if are_settled and agent.holds_back:
        return evolve(agent, are_settled=True, holds_back=False), (Submit(Prepared()),)
    return agent if are_settled is agent.are_settled else evolve(agent, are_settled=are_settled), ()


def _stands(agent: Agent, event: Stands) -> Step:
    """Put on record where workers stand that run."""
    if not _runs(agent, event.round):
        return agent, ()
    suspected = event.round if event.seen else None
    return evolve(agent, suspected=suspected), (Suspect(event.round, event.seen),)


def _runs(agent: Agent, round: int) -> bool:
    """Return True if the workers of this round run. The hang watch may speak of workers that run no longer."""
    return agent.group.phase is Phase.RUNNING and agent.world is not None and agent.world.round == round


def _queried(agent: Agent, event: Queried) -> Step:
    """Answer a query once, if it is about this round. One that its asker left behind is about an older one."""
    if agent.state is None or event.round != agent.state.round or event.id in agent.answered:
        return agent, ()
    return evolve(agent, answered=(*agent.answered, event.id)[-ANSWERED_MAX:]), (Reply(event.query),)


# --- what others may ask ----------------------------------------------------------------------------------------------


def absent(agent: Agent, world: World, links: Mapping[Node, bool], now: float, ttl: float) -> tuple[Node, ...]:
    """Return the members of this world that are dead or out of reach, as links to nodes and the silence of the store tell,
    or have no work."""
    far = out_of_reach(world.nodes, agent.group.node, links, agent.silent_since, now, ttl)
    return (*far, *workless(agent.state, world))


def awaited(agent: Agent) -> tuple[Node, ...]:
    """Return the nodes whose stacks the end of a failed job waits for: those that ran workers and are still present."""
    outcome = agent.outcome
    if not (isinstance(outcome, Verdict) and outcome.ending is Ending.FAILED and agent.state and agent.complete):
        return ()
    present = agent.state.present
    return tuple(node for node in agent.complete.participants if node in present)


def is_hurried(agent: Agent) -> bool:
    """Return True if the end waits for no store: this node was told to stop, and the register has not heard of that; or it
    has given a silent store up."""
    if isinstance(agent.outcome, Refused):
        return agent.outcome.why is Why.UNCONFIRMED
    return isinstance(agent.outcome, Stopped) and not agent.is_known_to_leave
