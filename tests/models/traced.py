"""Small traces for tests: agents that share a register in memory and take real steps, which are written down as they go.

What production does in threads is done here one after the other: `runs` carries an agent on until it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from attrs import define, field, frozen
from worlds import node, profile

from elastic.core import agent as core
from elastic.core.group import Group, transition
from elastic.core.group import Settings as GroupSettings
from elastic.core.group.state import Beat, Beaten, Exited, Record, RecordUnfit, RecordUnstartable, Start
from elastic.core.rendezvous import (
    Ask,
    Client,
    Counted,
    Did,
    Draw,
    Drawn,
    Errand,
    Gather,
    Heartbeats,
    Held,
    Idle,
    Input,
    Limits,
    Look,
    Notice,
    Observe,
    Passed,
    Pause,
    Proposal,
    Proposals,
    Propose,
    Pushed,
    RendezvousState,
    Request,
    Restore,
    Restored,
    Settings,
    Shown,
    Submitted,
    Told,
    Wait,
    Who,
    Woke,
    Write,
    join,
    step,
)
from elastic.core.rendezvous.actions import entrants
from elastic.core.trace.lines import FORMAT, NAME, encoded
from elastic.core.trace.steps import STEPS, Calling, Header, Step, Trace, Working
from elastic.core.values import evolve
from elastic.core.world import Life, Node

PAIR = Settings(Limits(2, 2, 3))
HELPED = Settings(Limits(2, 2, 3), helping_above=1)
HELD_BACK = Limits(1, 2, 3)
SOON_S = 0.05
"""A wait that is no longer is waited for."""


@define
class Shared:
    """The register, and the one clock: each look at it takes a hundredth of a second."""

    state: RendezvousState | None = None
    here: bool = True
    """The register was written in the store as it is now."""
    now: float = 100.0
    watchers: list[Party] = field(factory=list)
    """Who looks at each state."""
    proposals: dict[Node, Proposal] = field(factory=dict)

    def tick(self) -> float:
        self.now = round(self.now + 0.01, 2)
        return self.now

    def loses(self, older: RendezvousState | None = None) -> None:
        """The store begins anew: with nothing, or with a copy of what another one held."""
        self.state, self.here = older, older is None

    def written(self, write: Write) -> None:
        """If it is based on what stands."""
        if write.token == (self.state.token if self.state else None):
            self.state, self.here = write.state, self.here or isinstance(write.edit, Restore)

    @property
    def named(self) -> Life | None:
        return self.state.life if self.state and self.here else None


@define
class Party:
    """Whoever has a seat, and the way from its requests to the register; `boot` and `wall` are its host's."""

    name: str
    shared: Shared
    settings: Settings = PAIR
    boot: str = "boot"
    host: str = ""
    steps: list[Step] = field(factory=list)
    client: Client = field(init=False)
    ask: Ask = Idle()
    began_at: float = 0.0
    run_id: str = ""
    nonce: Life = field(init=False)
    """That it was born with."""

    def __attrs_post_init__(self) -> None:
        self.nonce = Life(f"by {self.name}")
        self.client = Client(Held(Who(node(self.name), profile(self.name), self.settings, self.nonce)))
        self.began_at = self.shared.tick()
        self.begins()

    def begins(self) -> None:
        """Its machine takes its first step."""
        raise NotImplementedError

    def noticed(self, notice: Notice) -> None:
        """Its machine hears what its client tells."""
        raise NotImplementedError

    @property
    def machine(self) -> Working | Calling:
        raise NotImplementedError

    @property
    def held(self) -> Held:
        return self.client.held

    def runs(self) -> None:
        """Until it waits for somebody else, or nothing is to be done."""
        while input := self._comes_of(self.ask):
            self._feeds(input)

    @property
    def header(self) -> Header:
        held, host = self.held, self.host or node(self.name).slot
        clocks = 1_000.0 + self.began_at, self.began_at
        return Header(
            NAME,
            FORMAT,
            held.who.node,
            host,
            self.boot,
            *clocks,
            profile(self.name),
            self.nonce,
            self.settings,
            self.machine,
            self.run_id,
        )

    @property
    def trace(self) -> Trace:
        return Trace(self.header, tuple(self.steps), tuple(range(2, len(self.steps) + 2)))

    @property
    def lines(self) -> list[bytes]:
        return lines(self.header, *self.steps)

    # --- as the loops do

    def _took(self, function: Callable[..., object], *given: object) -> None:
        self.steps.append(STEPS[function](*given))

    def _feeds(self, input: Input) -> None:
        now = self.shared.tick()
        self.client, ask, notices = step(self.client, input, now)
        self._took(step, input, now, ask)
        self.ask = ask or self.ask
        for notice in notices:
            self.noticed(notice)

    def feeds(self, *inputs: Input) -> None:
        """It hears these, one after the other."""
        for input in inputs:
            self._feeds(input)

    def _submits(self, item: Request | Errand) -> None:
        self._feeds(Submitted((item,)))

    def _comes_of(self, ask: Ask) -> Input | None:
        """None when there is nothing to do but to wait."""
        shared = self.shared
        match ask:
            case Draw():
                return Drawn(0.5)
            case Errand():
                return Did()
            case Look():
                return Shown(shared.state, shared.here)
            case Write():
                shared.written(ask)
                for agent in shared.watchers:
                    if agent is not self:
                        agent._feeds(Pushed(shared.state, shared.tick(), shared.here))
                return Shown(shared.state, shared.here)
            case Wait(token, until) if token != (shared.state.token if shared.state else None):
                return Pushed(shared.state, shared.tick(), shared.here)
            case Wait(until=until):
                return None if until > shared.now + SOON_S else Passed()
            case Observe(nodes):
                return Heartbeats(dict.fromkeys(nodes, int(shared.tick() * 10)), shared.named)
            case Propose(proposal):
                shared.proposals[self.held.who.node] = proposal
                return Counted(sum(each.like == proposal.like for each in shared.proposals.values()))
            case Gather(those, era):
                asked = {each: shared.proposals[each] for each in those}
                return Proposals({**asked, **entrants(shared.proposals, era)})
            case Idle() | Pause():
                return None
            case other:
                assert_never(other)

    def sleeps(self) -> None:
        """It stood still for long, and knows."""
        self._feeds(Woke())


@define
class Agent(Party):
    """One node with its workers."""

    agent: core.Agent = field(init=False)
    of_group: GroupSettings = GroupSettings()

    def begins(self) -> None:
        self.agent = core.Agent(Group(node(self.name), self.of_group))
        self._does(*core.begin(self.agent, self.began_at), self.began_at)

    @property
    def group(self) -> Group:
        return self.agent.group

    def noticed(self, notice: Notice) -> None:
        if isinstance(notice, Told):
            self.shared.tick()
        if not isinstance(notice, Restored):
            self.hears(notice)

    @property
    def machine(self) -> Working:
        return Working(self.of_group)

    def hears(self, *events: core.Event) -> None:
        """It hears these, one after the other, and what follows from them."""
        for event in events:
            self._does(*core.step(self.agent, event, self.shared.now))

    def exits(self, code: int, local_rank: int = 0) -> None:
        self.hears(Exited(local_rank, code, self.shared.now, self.shared.tick()))

    def _does(self, agent: core.Agent, effects: Iterable[core.Effect], at: float | None = None) -> None:
        self.agent = agent
        for effect in effects:
            match effect:
                case core.Stepped(event, commands=commands):
                    self._took(transition, event, commands, self.shared.tick() if at is None else at)
                case Record() | RecordUnstartable() | RecordUnfit():
                    self._submits(Errand(None))
                case core.Submit(Request() as request):
                    joins = request.handler is join
                    self._submits(evolve(request, profile=profile(self.name)) if joins else request)
                case Beat():
                    sent_at = self.shared.tick()
                    self.hears(Beaten(sent_at, sent_at))
                case Start(world):
                    self._took(Start, world.round, (4711,), self.shared.tick())
                case core.Hear(consequence):
                    self.hears(consequence)
                case _:
                    pass


def lines(*steps: Header | Step) -> list[bytes]:
    """As they stand in a file."""
    told, last = list[bytes](), None
    for each in steps:
        line, last = encoded(each, last)
        told.append(line)
    return told


@frozen
class Pair:
    """Nodes a and b, each with one worker."""

    a: Agent
    b: Agent

    def run(self) -> Pair:
        """Both, until both wait."""
        agents, stood = (self.a, self.b), None
        while stood != (stood := [(each.client, each.group) for each in agents]):
            for each in agents:
                each.runs()
        return self


def started(settings: Settings = PAIR) -> Pair:
    """Their workers run in round 0."""
    shared = Shared()
    return Pair(Agent("a", shared, settings), Agent("b", shared, settings)).run()


def restarted(settings: Settings = PAIR) -> Pair:
    """A worker of b failed; they run in round 1."""
    pair = started(settings)
    pair.b.exits(9)
    pair.run()
    pair.a.exits(-15)
    return pair.run()


def restored() -> Pair:
    """And then the store came back empty: they run on in round 1 of another life."""
    pair = restarted()
    pair.a.shared.loses()
    return pair.run()


def finished(pair: Pair | None = None) -> Pair:
    """And then all workers succeed."""
    pair = pair or restarted()
    pair.a.exits(0)
    pair.b.exits(0)
    return pair.run()
