"""Small traces for tests: agents that share a register in memory and take real steps, which are written down as they go.

What production does in threads is done here one after the other: `runs` carries an agent on until it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from attrs import define, field, frozen
from worlds import node, profile

from elastic.core.group import Group, begin, transition
from elastic.core.group import Settings as GroupSettings
from elastic.core.group.state import Beat, Beaten, Command, Event, Exited, Record, RecordUnstartable, Start
from elastic.core.node import farewell, follows, heard, requested
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
    Settings,
    Shown,
    Submitted,
    Told,
    Wait,
    Woke,
    Write,
    step,
)
from elastic.core.rendezvous.actions import entrants
from elastic.core.trace.lines import FORMAT, NAME, encoded
from elastic.core.trace.steps import STEPS, Calling, Header, Step, Trace, Working
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
    nonce: Life = field(init=False)
    """That it was born with."""

    def __attrs_post_init__(self) -> None:
        self.nonce = Life(f"by {self.name}")
        self.client = Client(Held(node(self.name), profile(self.name), self.settings, self.nonce))
        self.began_at = self.shared.tick()
        self.begins()

    def begins(self) -> None:
        """Its machine takes its first step."""
        raise NotImplementedError

    def answered(self, told: Told) -> None:
        """Its machine hears of an operation's end."""
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
            held.node,
            host,
            self.boot,
            *clocks,
            profile(self.name),
            self.nonce,
            self.settings,
            self.machine,
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
            if isinstance(notice, Told):
                self.answered(notice)

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
                shared.proposals[self.held.node] = proposal
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

    group: Group = field(init=False)
    lingers: bool = False
    of_group: GroupSettings = GroupSettings()

    def begins(self) -> None:
        self.group, commands = begin(Group(node(self.name), self.of_group), self.began_at)
        self._took(transition, None, commands, self.began_at)
        self._carry_out(commands)

    def answered(self, told: Told) -> None:
        if event := heard(told, self.shared.tick()):
            self.hears(event)

    @property
    def machine(self) -> Working:
        return Working(self.of_group)

    def hears(self, *events: Event) -> None:
        """The group hears these, one after the other, and what follows from them."""
        for event in events:
            self.group, commands = transition(self.group, event)
            self._took(transition, event, commands, self.shared.tick())
            self._carry_out(commands)
            if consequence := follows(event, self.group, self.shared.now):
                self.hears(consequence)
            if self.group.outcome and not self.lingers and (last := farewell(self.group.outcome)):
                self.lingers = True
                self._submits(last)

    def exits(self, code: int, local_rank: int = 0) -> None:
        self.hears(Exited(local_rank, code, self.shared.now, self.shared.tick()))

    def _carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if isinstance(command, Record | RecordUnstartable):
                self._submits(Errand(None))
            elif request := requested(command, profile(self.name)):
                self._submits(request)
            elif isinstance(command, Beat):
                at = self.shared.tick()
                self.hears(Beaten(at, at))
            elif isinstance(command, Start):
                self._took(Start, command.world.round, (4711,), self.shared.tick())


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
