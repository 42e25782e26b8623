"""The judge of a run: it is told facts in the order in which they happened, and judges each by what it remembers.

A broken property is a `Violation`, as it is for `verify` and `verify_step`. These two judge each write here too; production
runs them before each write and after each read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, assert_never

from attrs import define, field

from ..group import Phase
from ..group.state import Signalled
from ..ranks import Ranks, assign
from ..rendezvous import (
    Arrive,
    Edit,
    RendezvousState,
    Restore,
    Status,
    Together,
    Violation,
    blank,
    join,
    verify,
    verify_restore,
    verify_step,
)
from ..rendezvous.verify import Finding
from ..world import Life, Node, Why, World, WorldId
from .facts import (
    Began,
    Decided,
    Fact,
    Failed,
    GaveUp,
    Holds,
    Judged,
    Left,
    Moved,
    Noted,
    Reaped,
    Slept,
    Started,
    Stepped,
    Succeeded,
    WaitsForever,
    Wrote,
)
from .outcomes import NEVER, Pasts
from .predicates import of_group, of_programs, of_ranks, of_restore, of_write
from .strength import Strength, by_decision, by_refusal, by_start, by_step, by_write

Property: TypeAlias = Callable[["Judge", Fact], Iterable[Finding]]
"""A property of a user: it yields what this fact breaks, as a name and a sentence. The judge has already seen this fact and
all before it. A property keeps in the judge's notes what it must remember."""


@define
class Judge:
    """The memory by which the next fact of a run is judged.

    `fenced`: the agents run with --on-store-loss=stop. `assign` is the policy that gives a world its ranks. `excused` maps
    each node whose agent was paused to when that ends, by its clock: a paused agent cannot stop its workers in time, nor can
    a dead one whose workers outlive its TTL. `also` are a user's own properties, asked after ours.
    """

    fenced: bool = False
    assign: Callable[[World], Mapping[Node, Ranks]] = assign
    also: tuple[Property, ...] = ()
    register: RendezvousState | None = None
    worlds: dict[WorldId, World] = field(factory=dict)
    running: dict[Node, World] = field(factory=dict)
    started: set[tuple[Node, WorldId]] = field(factory=set)
    succeeded: set[tuple[Node, WorldId | None]] = field(factory=set)
    failed: dict[str, set[WorldId]] = field(factory=dict)
    """Job -> the worlds in which a worker failed."""
    failures: set[tuple[Node, WorldId]] = field(factory=set)
    """Whose workers failed, and in which worlds."""
    jobs: dict[Life, str] = field(factory=dict)
    """Life -> the job whose register it was."""
    begun: set[Life] = field(factory=set)
    left: set[Node] = field(factory=set)
    leaving: set[Node] = field(factory=set)
    excused: dict[Node, float] = field(factory=dict)
    misled: dict[Node, int] = field(factory=dict)
    """Nodes that were evicted on evidence though they lived -> the round that was open then. They are told, but late."""
    alone: set[Node] = field(factory=set)
    """Nodes whose workers restart alone, and live through a change of nodes."""
    superseded: set[Node] = field(factory=set)
    """Nodes whose slot was started again: the supervisor says that they are gone, and is believed."""
    pasts: Pasts = field(factory=Pasts)
    strength: Strength = field(factory=Strength)
    notes: dict[str, Any] = field(factory=dict)
    """The memory of a user's properties; empty when a run begins."""

    def saw(self, fact: Fact) -> None:
        """Judge one fact. Raises Violation."""
        if isinstance(fact, Holds):  # by far the most, and nothing to be judged yet
            self.pasts.holds(fact)
        else:
            for number, text in self._findings(fact):
                raise Violation(number, text)
        for property in self.also:
            for number, text in property(self, fact):
                raise Violation(number, text)

    def _findings(self, fact: Judged) -> Iterator[Finding]:
        arms = self.strength.arms
        match fact:
            case Stepped():
                if fact.after.settings.alone is not None:
                    self.alone.add(fact.after.node)
                if fact.after.phase is Phase.LEAVING:
                    self.leaving.add(fact.after.node)
                if fact.commands or fact.after.phase is not fact.before.phase or isinstance(fact.event, Signalled):
                    arms(by_step(fact))
                    yield from of_group(fact)
                yield from self.pasts.stepped(fact, self.excused.get(fact.after.node, -NEVER), self.strength)
            case Wrote():
                arms(by_write(fact))
                yield from self._wrote(fact)
            case Moved(node, world):
                if node in self.running:
                    self.running[node] = world
                yield from self._entered(fact)
            case Started():
                arms(by_start(fact, fact.world.id in self.worlds))
                yield from self._started(fact)
            case Failed(node, world):
                self.failures.add((node, world))
                self.failed.setdefault(self.job(world), set()).add(world)
            case Succeeded(node, world):
                self.succeeded.add((node, world))
            case Reaped(node):
                self.running.pop(node, None)
            case Left(node):
                self.strength.armed["S15"] += 1
                self.left.add(node)
                self.pasts.left(fact)
            case Noted():
                self.pasts.noted(fact)
            case Began():
                self.pasts.began(fact)
            case Decided(held):
                seat = held.state.seats.get(held.node) if held.state else None
                is_aside = seat is not None and seat.status is Status.ASIDE
                arms(by_decision(fact.edit, self.pasts.past(held.node).owes is not None, is_aside))
                yield from self.pasts.decided(fact, held.node in self.running, self.failures)
            case GaveUp():
                arms(by_refusal(fact))
                yield from self.pasts.gave_up(fact)
            case Slept():
                self.pasts.slept(fact)
            case WaitsForever(held, handler):
                self.strength.armed["L6"] += 1
                if handler is join and (held.state is None or not held.state.is_spare(held.node)):
                    yield "L6", f"{held.node} waits to join without end, and is no spare"
            case other:
                assert_never(other)

    def forgets(self) -> None:
        """The register may be older than what was written: a world may stand that had failed."""
        self.strength.excused["B5"] += self.pasts.forgets()

    def job(self, world: WorldId) -> str:
        """Return the job of this world. A life of which no write was seen counts as a job of its own."""
        return self.jobs.get(world.life, world.life.nonce)

    def _wrote(self, fact: Wrote) -> Iterator[Finding]:
        self.strength.armed["R8"] += not fact.here
        forgot = fact.before is None and self.register is not None
        self.register = fact.after
        self.jobs[fact.after.life] = fact.after.job
        if fact.before is None or isinstance(fact.edit, Restore):
            self.strength.armed["R9"] += 1
            if fact.after.life in self.begun:
                yield "R9", f"{fact.node} begins {fact.after.life}, which had begun before"
            self.begun.add(fact.after.life)
        if isinstance(fact.edit, Restore):
            verify_restore(fact.edit, fact.before, fact.after)
            yield from of_restore(fact.after)
            self._seats_again(sum(node in fact.after.seats for node in self.left))
            self.forgets()
        else:
            yield from self._edited(fact, fact.edit, forgot)

    def _seats_again(self, many: int) -> None:
        """Note that so many who had left have a seat again, because a store was given what was older."""
        self.strength.armed["S15"] += many
        self.strength.excused["S15"] += many

    def _edited(self, fact: Wrote, edit: Edit, forgot: bool) -> Iterator[Finding]:
        """Judge a write that restores nothing. `forgot`: the store had another register, and has lost it."""
        before, after = fact.before or blank(fact.after.life, fact.after.limits, fact.after.target), fact.after
        verify(after)
        verify_step(before, after)
        if fact.before is None and after.closed and after.closed.why is Why.OPERATOR:
            yield "V14", f"{fact.node} closes a job that is not there, in an operator's name"
        if not fact.here:
            yield "R8", f"{edit} of {fact.node} changes what another store had written"
        yield from of_write(before, edit, after)
        failed = self.failed.get(after.job, ())
        if after.failures > len(failed):
            rounds = sorted(world.round for world in failed)
            yield "B4", f"{after.failures} failures, but workers failed in rounds {rounds}"
        if before.seats is after.seats:
            return
        if isinstance(edit, Arrive | Together):
            kin = [node for node in before.seats if node.slot == fact.node.slot]
            self.superseded.update(node for node in kin if node not in after.present)
        if isinstance(edit, Together):
            yield from of_programs(before, fact.node, after)
        for node, seat in after.seats.items():
            was = before.seats.get(node)
            if was is seat:
                continue
            if node in self.left and (was is None or (was.status is Status.EXPECTED and seat.status is Status.IN)):
                yield from self._returns(node, forgot)
            newly_done = seat.status is Status.DONE and (was is None or was.status is not Status.DONE)
            self.strength.armed["S14b"] += newly_done
            if newly_done and (node, after.world_id) not in self.succeeded:
                yield "S14b", f"{node} is done in round {after.round}, in which its workers have not succeeded"

    def _returns(self, node: Node, forgot: bool) -> Iterator[Finding]:
        """Judge that a node which has left gets a seat, or comes back to one."""
        if forgot:
            self._seats_again(1)  # its first write came late, into a store that has forgotten
        else:
            yield "S15", f"{node} is seated after it had left"

    def _started(self, fact: Started) -> Iterator[Finding]:
        node, world = fact.node, fact.world
        if (node, world.id) in self.started:
            yield "S17", f"the workers of {node} start twice in round {world.round}"
        self.started.add((node, world.id))
        yield from self._entered(fact)
        self.running[node] = world

    def _entered(self, fact: Started | Moved) -> Iterator[Finding]:
        """Judge that workers of this node belong to this world from now on."""
        node, world = fact.node, fact.world
        seen = world.id in self.worlds
        if self.worlds.setdefault(world.id, world) != world:
            yield "S2", f"the world of round {world.round} is another one for {node}"
        if not seen:
            yield from of_ranks(world, self.assign(world))
        members = frozenset(world.nodes)
        earlier = [each for id, each in self.worlds.items() if self._is_earlier(id, world.id)]
        self.strength.armed["S9"] += bool(earlier)
        outside = self.fenced and any(node not in members for each in earlier for node in each.nodes)
        self.strength.armed["S9 strong"] += outside
        for other, ran in self.running.items():
            if self._is_earlier(ran.id, world.id):
                yield from self._still_running(other, ran, fact, other in members)

    def _is_earlier(self, ran: WorldId, world: WorldId) -> bool:
        """Return True if `ran` is a world of the same job that was completed before `world`."""
        order = (ran.life.epoch, ran.round) < (world.life.epoch, world.round)
        return order and self.job(ran) == self.job(world)

    def _is_on_its_way_out(self, node: Node) -> bool:
        """Return True if the register says that this node leaves: it was drained while its workers were being stopped."""
        seat = self.register.seats.get(node) if self.register else None
        return seat is not None and seat.status is Status.LEAVING

    def _still_running(self, other: Node, ran: World, fact: Started | Moved, member: bool) -> Iterator[Finding]:
        if not member and not self.fenced:
            return
        if other in self.alone and ran.generation == fact.world.generation:
            return  # its workers live through changes of nodes, and each call judges which of its iterations counts
        number = "S9" if member else "S9 strong"
        late = ran.id.life != fact.world.id.life  # after a loss a world may be complete before a survivor could answer
        late = late or ran.id.round < self.misled.get(other, 0)
        if (
            other in self.leaving
            or self._is_on_its_way_out(other)
            or (not member and (other in self.excused or other in self.superseded or late))
        ):
            self.strength.excused[number] += 1
            return
        text = (
            f"workers of {other} still run in round {ran.round} while those of {fact.node} start in {fact.world.round}"
        )
        if member:
            yield "S9", text
        else:
            yield "S9 strong", text
