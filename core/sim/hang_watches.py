"""The hang watches of simulated agents: looks at the workers, the stacks on record, and what `core.hangs` makes of them. The
counterpart of `adapters/agent/hang_watch.py`.

When the workers of one node hang, those of its peers wait for them, so the whole world stands still. O11, O13 and L13 judge
what the watches make of it: nobody is blamed in a world that moves, nothing is said twice, and a world that stands still is
found in time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import assert_never

from attrs import define, field

from .. import agent
from ..agent import Hung, PutStacks, See, Stands, Suspect, absent
from ..group import Phase
from ..group.state import SIGKILL
from ..hangs import (
    Act,
    Blame,
    HangSettings,
    Others,
    Record,
    Report,
    Sight,
    Watch,
    Withdraw,
    asks,
    look,
    until,
)
from ..properties.facts import Failed
from ..properties.law import Law
from ..ranks import assign
from ..rendezvous import Status
from ..values import evolve
from ..violation import Violation
from ..world import Node, Stacks, World, WorldId
from .future import Future
from .kinds import Kind
from .links import Links
from .network import ANSWER_TIMEOUT_S, Network
from .process import Attempt, Hears, Process
from .story import Setting
from .witness import Witness
from .workers import Workers

IN_LOAD = "in load"
"""A worker that hangs stands here."""

O11 = Law(
    "O11",
    "A worker is blamed for a hang only when its whole world has stood still for `timeout_s`, and as the odd one only if "
    "it hangs.",
    "a worker is blamed for a hang",
)
O13 = Law(
    "O13",
    "A hang watch takes back only a suspicion of its own that stands, and puts one on record again only where the store "
    "does not show it.",
    "a hang watch puts its suspicion on record again, or takes it back",
)
L13 = Law(
    "L13",
    "Where hangs are watched for, a world that stands still has a worker that is blamed in time, if the store answers and "
    "nothing else befalls its members.",
    "workers of a world hang",
)


@define
class Follower:
    """What the watch of one agent knows of one round."""

    world: World
    ranks: Mapping[int, int]
    """The rank of each of the node's workers, by its local rank."""
    watch: Watch = field(factory=Watch)
    own: Stacks | None = None
    """Where the node's workers stand, while it suspects a hang."""


@define
class HangWatches:
    setting: Setting
    future: Future
    network: Network
    witness: Witness
    workers: Workers
    links: Links
    by_node: Mapping[Node, Process]
    hear: Hears
    settings: HangSettings = field(init=False)
    followers: dict[Node, Follower] = field(factory=dict)
    stacks: dict[Node, Stacks] = field(factory=dict)
    """What the store has on record."""
    seen: dict[Node, tuple[tuple[int, str], ...]] = field(factory=dict)
    """Where each node has seen its workers before it stopped them."""
    hung_at: dict[Node, tuple[Attempt, float]] = field(factory=dict)
    """When the workers of this attempt of a node began to hang."""
    blamed_at: dict[WorldId, float] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.settings = HangSettings(self.setting.hang, restarts=True)

    # --- looks

    def starts(self, process: Process) -> None:
        """Begin to look at the workers of this agent."""
        self._later(process, self.settings.every_s)

    def _later(self, process: Process, span: float) -> None:
        self.future.at(process.clock.true(process.clock.shows(self.future.now) + span), self._looks, process)

    def _looks(self, process: Process) -> None:
        if not process.alive or self.network.waits(process, self._looks, process):
            return
        world = process.attempt.world
        if process.group.phase not in (Phase.RUNNING, Phase.MOVING) or world is None:
            self.followers.pop(process.node, None)
            self._later(process, self.settings.every_s)
            return
        follower = self.followers.get(process.node)
        if follower is None or follower.world.id != world.id:
            workers = assign(world)[process.node].workers
            follower = Follower(world, {each.local_rank: each.rank for each in workers})
            self.followers[process.node] = follower
        now = process.clock.shows(self.future.now)
        sights = self._sights(process, follower)
        for rank in asks(follower.watch, sights):
            sights[rank] = evolve(sights[rank], stack=_place(process))
        others = self._others(process, follower, now)
        follower.watch, acts = look(follower.watch, sights, others, now, self.settings)
        for act in acts:
            self._carries_out(process, follower, act, others)
        self._later(process, until(follower.watch, now, self.settings) - now)

    def _sights(self, process: Process, follower: Follower) -> dict[int, Sight]:
        """Return what a look shows of each living worker. A worker that moves has printed since the last look, or has called
        for progress: every second one calls. Reserves wait, and so do all for the next round."""
        since, ranks = self.still_since(follower.world), follower.ranks
        waits = process.attempt.idle or process.group.phase is Phase.MOVING
        shows = 1 + int(1e6 * (0.0 if waits else self.future.now if since is None else since))
        return {
            ranks[local]: Sight(start, calls=shows) if ranks[local] % 2 else Sight(start, output=shows)
            for local, start in process.workers.items()
        }

    def _others(self, process: Process, follower: Follower, now: float) -> Others:
        """Return what the members have on record, as far as the store tells it."""
        own, held, world = follower.own, process.held, follower.world
        linked = {node: line.accepted for node, line in self.links.lines.get(process.node, {}).items()}
        away = absent(process.agent, world, linked, now, held.who.settings.ttl)
        is_idle = process.attempt.idle or process.node in away  # a reserve knows it before the register does
        if own is None or not self._reaches_store(process):
            return Others(world.nodes, () if own is None else (own,), away, is_idle=is_idle)
        found = [each for node in world.nodes if (each := self.stacks.get(node)) and each.round == world.round]
        others = tuple(each for each in found if each.node != process.node)
        return Others(world.nodes, (own, *others), away, own in found, is_idle)

    def _reaches_store(self, process: Process) -> bool:
        now = self.future.now
        return self.network.store.down_until <= now and process.trouble.cut_until <= now

    # --- what follows

    def _carries_out(self, process: Process, follower: Follower, act: Act, others: Others) -> None:
        world, again = follower.world, follower.own is not None
        if isinstance(act, Record | Withdraw) and (again or isinstance(act, Withdraw)):
            self.witness.judge.strength.armed["O13"] += 1
            if others.on_record if isinstance(act, Record) else not again:
                raise Violation("O13", f"{process.name} says twice: {act}")
        match act:
            case Record():
                self.witness.seen("stacks are put on record again" if again else "a node suspects a hang")
                follower.own = Stacks(process.node, world.round, self._places(process))
                self.hear(process, Stands(world.round, follower.own.places))
            case Withdraw():
                self.witness.seen("a suspected hang moves again")
                follower.own = None
                self.hear(process, Stands(world.round, ()))
            case Report():
                self.hear(process, Hung(world.round, act))
            case Blame():
                self._blames(process, follower, act)
            case other:
                assert_never(other)

    def does(self, process: Process, effect: See | PutStacks | Suspect | agent.Report) -> None:
        """Carry out what the agent of this process makes of it, or of the end of its workers."""
        match effect:
            case See():
                self.seen[process.node] = self._places(process)
            case PutStacks(round):
                self.witness.seen("stacks are put on record before workers are stopped")
                self._puts(process, Stacks(process.node, round, self.seen.pop(process.node)))
            case Suspect(round, places):
                self._puts(process, Stacks(process.node, round, tuple(places)))
            case agent.Report(report):
                self.witness.seen("a hang that not all nodes suspect" if report.missing else "a hang is reported")
            case other:
                assert_never(other)

    def _places(self, process: Process) -> tuple[tuple[int, str], ...]:
        """Return where each living worker of this node stands, by rank."""
        world = process.attempt.world
        workers = assign(world)[process.node].workers if world else ()
        return tuple((each.rank, _place(process)) for each in workers if each.local_rank in process.workers)

    def _puts(self, process: Process, stacks: Stacks) -> None:
        if process.trouble.cut_out_until <= self.future.now:
            self.future.at(self.future.now + self.network.delay(process), self._lands, stacks)

    def _lands(self, stacks: Stacks) -> None:
        if not self.network.store.refuses_writes(self.future.now):
            self.stacks[stacks.node] = stacks

    def forgets(self) -> None:
        """Forget what is on record: the store has lost its memory."""
        self.stacks.clear()

    def _blames(self, process: Process, follower: Follower, blame: Blame) -> None:
        """Kill the worker that is blamed, and judge O11."""
        world = follower.world
        since, now, strength = self.still_since(world), self.future.now, self.witness.judge.strength
        strength.armed["O11"] += 1
        if since is None or now - since < self.settings.timeout_s * (1 - 2 * self.setting.drift):
            raise Violation("O11", f"{process.name} blames rank {blame.rank}, and its world moves")
        if blame.is_odd and not process.hung:  # as far as the places on record can tell it
            shown = [place for each in self._others(process, follower, now).stacks for _, place in each.places]
            if shown.count(IN_LOAD) == 1:
                raise Violation("O11", f"{process.name} blames rank {blame.rank} alone, which waits like the others")
            strength.excused["O11"] += 1
        self.witness.seen("a hung worker is blamed")
        self.witness.narrates(process.name, f"blames rank {blame.rank} for a hang")
        self.blamed_at[world.id] = now
        self.witness.judge.saw(Failed(process.node, world.id))
        self.witness.befalls(process, Kind.FAIL)
        local = next(each.local_rank for each in assign(world)[process.node].workers if each.rank == blame.rank)
        self.witness.blames.began(process.node, local, world)
        self.workers.dies(process, local, -SIGKILL, process.workers[local])

    # --- hangs

    def hangs(self, process: Process) -> None:
        """Note that this node's workers hang from now on. Unless something else happens, that is found in time (L13)."""
        world, now = process.attempt.world, self.future.now
        if self.hung_at.get(process.node, (None,))[0] is not process.attempt:
            self.hung_at[process.node] = process.attempt, now
        if world is not None and not process.attempt.idle:
            settings = self.settings
            span = settings.timeout_s + 6 * settings.every_s + settings.patience_s + ANSWER_TIMEOUT_S
            bound = (span + 4 * self.setting.tail) * (1 + 2 * self.setting.drift)
            self.future.at(now + bound, self._is_found, world, now)

    def heals(self) -> None:
        self.hung_at.clear()

    def still_since(self, world: World) -> float | None:
        """Return since when this world stands still, or None if it moves: since the workers of a member hang."""
        if not self.hung_at:
            return None
        return min((self.hung_at[each.node][1] for each in self._hung(world)), default=None)

    def _hung(self, world: World) -> list[Process]:
        """Return the members whose workers hang. Those of a reserve keep nobody waiting."""
        return [each for node in world.nodes if (each := self.by_node[node]).hung and _works(each, world)]

    def _is_found(self, world: World, since: float) -> None:
        """Judge L13: a world that stood still for this time, while nothing else happened, has a worker that was blamed."""
        members = [self.by_node[node] for node in world.nodes]
        register = self.network.store.register
        at_work = [each for each in members if register and each.node in register.those(Status.IN)]
        store, strength = self.network.store, self.witness.judge.strength
        strength.armed["L13"] += 1
        if self.blamed_at.get(world.id, -math.inf) >= since:
            return
        still = self.still_since(world)
        quiet = (
            still is not None
            and max(still, self.witness.recoveries.calm_at, store.down_until, store.full_until) <= since
        )
        runs = all(each.group.phase is Phase.RUNNING for each in at_work)
        if quiet and runs and all(each.is_well(since) for each in members):
            raise Violation("L13", f"round {world.round} stands still since {since:.3f} s, and nobody is blamed")
        strength.excused["L13"] += 1


def _works(process: Process, world: World) -> bool:
    """Return True if workers of this node live, and have a part in this world."""
    own = process.attempt.world
    return own is not None and own.generation == world.generation and bool(process.workers) and not process.attempt.idle


def _place(process: Process) -> str:
    return IN_LOAD if process.hung else "in sleep" if process.attempt.idle else "in all_reduce"
