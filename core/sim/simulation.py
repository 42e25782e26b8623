"""A world of simulated nodes: its parts, its operations, and its processes; judged at every step.

Each process runs the same core as a real agent. Its questions go over the network to the store; its commands reach simulated
workers. The world decides nothing for them. A `Witness` sees everything; the first violation is raised where it happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from ..agent import Agent
from ..group import Group
from ..properties.judge import Judge, Property
from ..rendezvous import Client, Drain, Held, Request, Settings, Who, close, drain
from ..rendezvous.state import AWAY, Seat, successor
from ..values import evolve
from ..world import Ending, Endpoint, Life, Node, Notice, Profile, Why
from ..world import World as RunWorld
from .agents import Agents
from .chance import one, seeded
from .faults import Faults, means_something
from .future import Future
from .hang_watches import HangWatches
from .kinds import Kind, On
from .links import Links
from .losses import Losses
from .lost_worlds import LostWorlds
from .narration import Narrator
from .network import Network
from .overlaps import Overlaps
from .overlaps import bound as longest_overlap
from .own import CORE, Own
from .owners import Owners
from .process import Clock, Launch, Process
from .raises import Causes
from .recoveries import Recoveries
from .simulated_store import Store
from .story import Operation, Setting, name
from .traffic import Traffic, rate
from .witness import Witness

TURNS_MAX = 1_000
"""A process that turns more often at one time spins."""
USUAL, OTHER = "train.py", "other.py"
"""The programs that workers run."""


class World:
    """A world to which operations are done. `tell` hears what happens, in words; `also` are a user's own properties, and
    `own` are a user's own parts in each node. Raises ValueError for a setting of the user's that the Setting must say."""

    def __init__(
        self,
        setting: Setting,
        tell: Narrator | None = None,
        also: tuple[Property, ...] = (),
        turns_max: int = TURNS_MAX,
        own: Own = CORE,
    ) -> None:
        self.setting = setting
        self.own = own
        self.by_node: dict[Node, Process] = {}
        """All that were ever started, in their order."""
        self.by_slot: dict[str, list[Process]] = {}
        """The same, by the slot that they were started on."""
        self.done = Counter[Kind]()
        self._operators = 0
        self._rendezvous, self._group = own.settings_of(setting.rendezvous, setting.group)
        self._policy = own.digest
        self._choose = seeded(setting.seed)
        self.future = Future()
        self.store = Store(setting.backend, self._rendezvous.ttl)
        judge = Judge(fenced=setting.fence > 0, also=also)
        losses = Losses(setting.interval, strength=judge.strength)
        lost_worlds = LostWorlds(setting.interval, setting.fence > 0, setting.tail, judge.strength)
        recoveries = Recoveries(setting, self.future, self.store, self.by_node, judge.strength)
        counts = Counter[str]()
        overlaps = Overlaps(self.future, self.store, self.by_node, judge, counts, longest_overlap(setting))
        self.witness = Witness(
            setting,
            self.future,
            self.store,
            self.by_node,
            judge,
            losses,
            lost_worlds,
            recoveries,
            overlaps,
            Traffic(rate(setting), judge.strength),
            Causes(judge),
            Owners(judge.strength),
            tell,
            counts=counts,
        )
        self.network = Network(self.future, self.store, self._choose, setting.seed == 0, setting.interval, setting.tail)
        self.agents = Agents(setting, self._choose, self.future, self.network, self.witness, turns_max, self._succeeds)
        self.agents.loops.turn = own.turn
        self.network.tells(self.agents.loops, self.agents.hearts, self.witness)
        self.links = Links(
            self.future,
            self.network,
            self._choose,
            setting.seed == 0,
            self.by_node,
            self.by_slot,
            self.witness,
            self.agents.loops.hears,
        )
        self.agents.loops.links = self.links
        if setting.hang:
            parts = self.future, self.network, self.witness, self.agents.workers, self.links
            self.agents.hangs = HangWatches(setting, *parts, self.by_node, self.agents.hear)
        self.faults = Faults(
            self.future, self.store, self.network, self.witness, self.agents, self.links, setting.fence
        )

    # --- what is done to it

    def does(self, operation: Operation) -> bool:
        """Do one operation. Returns False if it has no effect as things stand: to fail workers that do not run does nothing.
        Raises ValueError for a slot that this world does not have, and Violation."""
        slots, often = self.setting.slots, self.done[operation.kind]
        if operation.slot and operation.slot not in slots:
            raise ValueError(
                f"{operation}: there is no slot {operation.slot} in this world ({slots[0]} to {slots[-1]})"
            )
        kind, span = operation.kind, operation.span
        process = self.at(operation.slot)
        if process is not None and not means_something(kind, process, self.setting):
            process = None
        if process is not None:
            self.witness.lost_worlds.befalls(process, kind)
        if kind is Kind.PASS:
            self.future.passes(self.future.now + span)
        elif kind.row.on is On.SLOT:
            self._starts(kind, operation.slot)
        elif kind is Kind.CANCEL:
            if self.store.register is None or not self.store.register.closed:
                self._said(kind, "operator", "closes the job")
                self._operates(Request(close, Why.OPERATOR, Ending.CANCELLED))
        elif kind is Kind.DRAIN_SEAT:
            self._drains_any(operation)
        elif kind is Kind.NOTICE and process is not None:
            self._said(kind, process.name, str(operation))
            self._gives_notice(process, Notice(span, "a test"))
        elif kind.row.on is On.STORE:
            self._said(kind, "store", str(operation))
            self.faults.befall_store(kind, span)
        elif process is not None:
            self._said(kind, process.name, str(operation))
            self.faults.befall(process, kind, span)
        self.witness.moved()
        return kind is Kind.PASS or self.done[kind] > often

    def _said(self, kind: Kind, who: str, what: str) -> None:
        self.done[kind] += 1
        self.witness.recoveries.befalls(kind)
        self.witness.narrates(who, what)

    def heals(self) -> None:
        """End all faults."""
        store, now = self.store, self.future.now
        store.down_until, store.full_until = min(store.down_until, now), min(store.full_until, now)
        store.refreshed_at = min(store.refreshed_at, now)  # leases run out again
        for process in self.by_node.values():
            process.trouble.heals()
        if self.agents.hangs:
            self.agents.hangs.heals()
        self.witness.recoveries.heals()

    def stands_still_for(self) -> float:
        """Return for how long an agent, or a thread of one, goes on to stand still."""
        now = self.future.now
        return max([0.0, *(process.stalls.over_at - now for process in self.living())])

    def ends_misfits(self) -> None:
        """End the agents that cannot read the register that stands, or with which no other host's can be. After a loss, the
        job of another version may have begun in their place; their workers would run on."""
        for process in list(self.living()):
            is_foreign = self.store.register is not None and process.launch.format != self.store.format
            if is_foreign or process.launch.is_local:
                self.faults.befall(process, Kind.CRASH, 0.0)

    def starts_as(self, slot: str) -> Kind:
        """Return how an agent starts on this slot that the register takes."""
        register = self.store.register
        if register is None:
            return Kind.START
        if self.store.format:
            return Kind.START_NEXT
        if register.limits != self.setting.limits:
            return Kind.START_OTHER
        role = self.setting.profile(slot, 1).role
        those = (seat.profile for seat in register.seats.values() if seat.status not in AWAY)
        strange = (each.role == role and OTHER in (each.program, each.arguments) for each in those)
        return Kind.START_STRANGER if any(strange) else Kind.START

    # --- processes come

    def _starts(self, kind: Kind, slot: str) -> None:
        earlier = self.by_slot.setdefault(slot, [])
        incarnation = self._next(slot).incarnation
        if kind is Kind.START_BACK:
            used = {process.node.incarnation for process in earlier}
            incarnation = next((each for each in reversed(range(incarnation)) if each not in used), incarnation)
        self._said(kind, slot, "starts" if kind is Kind.START else kind.value)
        watches = any(process.alive and process.held.view.state is None for process in earlier)
        if watches or self.setting.named > 1 or self.done[Kind.START_LOCAL]:
            self.witness.recoveries.befalls(Kind.START_BACK)  # who is kept out by others watches them first
        settings, limits = self._rendezvous, self._rendezvous.limits
        if kind is Kind.START_OTHER:
            settings = evolve(settings, limits=evolve(limits, max_restarts=limits.max_restarts + 1))
        which, named = OTHER if kind is Kind.START_STRANGER else USUAL, self.setting.named
        program = USUAL if named > 1 else which if named or which == OTHER else ""
        arguments, is_local = which if named > 1 else "", kind is Kind.START_LOCAL
        able = kind is not Kind.START_UNABLE
        launch = Launch(self.future.now, int(kind is Kind.START_NEXT), program, arguments, is_local, able)
        self._begins(Node(slot, incarnation), settings, launch)

    def _succeeds(self, process: Process) -> None:
        """Start the agent of this process again, whose clock is behind: it follows the last start of its slot."""
        heir, now = successor(process.agent.state, process.node), self.future.now
        assert heir, "incarnations are small numbers here"
        heir = max(heir, self._next(heir.slot))  # or two might be one
        self.witness.seen("a clock is behind: the successor of a dead start")
        self.future.at(now, self._begins, heir, process.held.who.settings, evolve(process.launch, at=now))

    def _next(self, slot: str) -> Node:
        """Return a node of this slot that is later than all that were started there."""
        earlier = [process.node.incarnation for process in self.by_slot[slot]]
        return Node(slot, max([len(earlier), *earlier]) + 1)

    def _begins(self, node: Node, settings: Settings, launch: Launch) -> None:
        process = self._process(node, settings, launch)
        self.by_node[node] = process
        self.by_slot[node.slot].append(process)
        self.agents.start(process)

    def _gives_notice(self, process: Process, notice: Notice) -> None:
        """Let a node hear that it must be gone; every second time by an operator, who insists every second time."""
        drawn = 0 if self.setting.seed == 0 else self._choose(4)
        if drawn % 2:
            self._drains(process.node, notice, insists=drawn == 3)
        else:
            self.agents.are_noticed(process, notice)

    def _drains_any(self, operation: Operation) -> None:
        """Let an operator drain a node that has a seat, or had one; every second time one that is dead or gone, if there is
        one, and every second time the operator insists."""
        register = self.store.register
        if register is None or not self.setting.notices:
            return
        known = [*register.seats, *(node for node in self.by_node if node not in register.seats)]
        gone = [node for node in known if node not in register.seats or not self._is_there(register.seats[node], node)]
        node = one(self._choose, gone if gone and self._choose(2) else known)
        self.witness.lost_worlds.befalls(self.by_node[node], operation.kind)
        self._said(operation.kind, "operator", f"{operation}: {name(node)}")
        self._drains(node, Notice(operation.span, "a test"), insists=self._choose(2) == 1)

    def _is_there(self, seat: Seat, node: Node) -> bool:
        return seat.status not in AWAY and self.by_node[node].alive

    def _drains(self, node: Node, notice: Notice, insists: bool) -> None:
        self._operates(Request(drain, drain=Drain(node, notice), forced=True if insists else None), node)

    def _operates(self, request: Request, names: Node | None = None) -> None:
        self._operators += 1
        launch = Launch(self.future.now, self.store.format, operator=True, names=names)
        process = self._process(Node("operator", self._operators), self._rendezvous, launch)
        self.agents.loops.submit(process, request)

    def _process(self, node: Node, settings: Settings, launch: Launch) -> Process:
        setting, choose = self.setting, self._choose
        steady = setting.seed == 0
        offset = 0.0 if steady else setting.offset * choose(1_000) / 1_000
        rate = 1.0 + (0.0 if steady else setting.drift * (choose(2_001) - 1_000) / 1_000)
        own = Profile(Endpoint(node.slot, 1), 1)
        profile = (
            own if launch.operator else setting.profile(node.slot, 1, launch.program, launch.is_local, launch.arguments)
        )
        life = Life(f"{name(node)}@{self.future.planned}")
        policy = self._policy or (partial(_signed, node) if setting.seed % 2 else None)
        held = Held(Who(node, profile, settings, life, policy=policy))
        return Process(node, Client(held), Agent(Group(node, self._group)), Clock(offset, rate), launch)

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


def _signed(by: Node, world: RunWorld) -> str:
    """Return the digest of a world where no user gives a policy: who signed it, so that another signature is seen (V13)."""
    return f"{len(world.nodes)} by {name(by)}"
