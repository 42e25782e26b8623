"""A world of simulated nodes: its parts, its operations, and its processes; judged at every step.

Each process runs the same core as a real agent. Its questions go over the network to the store; its commands reach simulated
workers. The world decides nothing for them. A `Witness` sees everything; the first violation is raised where it happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..group import Group
from ..properties.judge import Judge, Property
from ..rendezvous import Client, Held, Request, close
from ..world import Ending, Endpoint, Life, Node, Profile
from .agents import Agents
from .chance import seeded
from .faults import OF_STORE, Faults, means_something
from .future import Future
from .losses import Losses
from .narration import Narrator
from .network import Network
from .process import Process
from .simulated_store import Store
from .story import Kind, Operation, Setting, name
from .witness import Witness

TURNS_MAX = 1_000
"""A process that turns more often at one time spins."""


class World:
    """A world to which operations are done. `tell` hears what happens, in words; `also` are a user's own properties."""

    def __init__(
        self,
        setting: Setting,
        tell: Narrator | None = None,
        also: tuple[Property, ...] = (),
        turns_max: int = TURNS_MAX,
    ) -> None:
        self.setting = setting
        self.by_node: dict[Node, Process] = {}
        """All that were ever started, in their order."""
        self.by_slot: dict[str, list[Process]] = {}
        """The same, by the slot that they were started on."""
        self.done = Counter[Kind]()
        self._operators = 0
        self._rendezvous, self._group = setting.rendezvous, setting.group
        self._choose = seeded(setting.seed)
        self.future = Future()
        self.store = Store(setting.backend, self._rendezvous.ttl)
        judge, losses = Judge(fenced=setting.fence > 0, also=also), Losses(2 * self._rendezvous.ttl)
        self.witness = Witness(setting, self.future, self.store, self.by_node, judge, losses, tell)
        self.network = Network(self.future, self.store, self._choose, setting.seed == 0, setting.interval)
        self.agents = Agents(setting, self._choose, self.future, self.network, self.witness, turns_max)
        self.network.tells(self.agents.loops, self.agents.hearts, self.witness)
        self.faults = Faults(self.future, self.store, self.network, self.witness, self.agents)

    # --- what is done to it

    def does(self, operation: Operation) -> None:
        """Do one operation. An operation that has no effect here does nothing. Raises Violation."""
        process = self.at(operation.slot)
        if operation.kind is not Kind.PASS:
            self.witness.losses.kept = None
        kind, span = operation.kind, operation.span
        if kind is Kind.PASS:
            self.future.passes(self.future.now + span)
        elif kind is Kind.START:
            if operation.slot in self.setting.slots:
                self._said(kind, operation.slot, "starts")
                self._starts(operation.slot)
        elif kind is Kind.CANCEL:
            self._said(kind, "operator", "closes the job")
            self._cancels()
        elif kind in OF_STORE:
            self._said(kind, "store", str(operation))
            self.faults.befall_store(kind, span)
        elif process is not None and means_something(kind, process):
            self._said(kind, process.name, str(operation))
            self.faults.befall(process, kind, span)

    def _said(self, kind: Kind, who: str, what: str) -> None:
        self.done[kind] += 1
        self.witness.narrates(who, what)

    def heals(self) -> None:
        """End all faults."""
        self.store.down_until = min(self.store.down_until, self.future.now)
        for process in self.by_node.values():
            process.heals()

    # --- processes come

    def _starts(self, slot: str) -> None:
        earlier = self.by_slot.setdefault(slot, [])
        process = self._process(Node(slot, len(earlier) + 1))
        self.by_node[process.node] = process
        earlier.append(process)
        self.agents.start(process)

    def _cancels(self) -> None:
        self._operators += 1
        process = self._process(Node("operator", self._operators), operator=True)
        self.agents.loops.submit(process, Request(close, ending=Ending.CANCELLED))

    def _process(self, node: Node, operator: bool = False) -> Process:
        setting, choose = self.setting, self._choose
        steady = setting.seed == 0
        offset = 0.0 if steady else setting.offset * choose(1_000) / 1_000
        rate = 1.0 + (0.0 if steady else setting.drift * (choose(2_001) - 1_000) / 1_000)
        profile = Profile(Endpoint(node.slot, 1), setting.workers, host=node.slot)
        held = Held(node, profile, self._rendezvous, Life(f"{name(node)}@{self.future.planned}"))
        return Process(
            name(node), node, Client(held), Group(node, self._group), offset, rate, self.future.now, operator=operator
        )

    # --- how it stands

    def living(self) -> Iterator[Process]:
        return self.witness.living()

    def at(self, slot: str) -> Process | None:
        """Return the process that an operation on this slot means: the latest that lives."""
        for process in reversed(self.by_slot.get(slot, ())):
            if process.alive:
                return process
        return None

    @property
    def steps(self) -> int:
        """Return the number of turns of rendezvous and transitions of groups."""
        return self.agents.loops.steps + self.agents.steps

    @property
    def writes(self) -> int:
        """Return the number of writes that landed."""
        return self.witness.writes

    @property
    def counts(self) -> Counter[str]:
        """Return how often each thing was seen."""
        return self.witness.counts
