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
    Violation,
    blank,
    join,
    verify,
    verify_restore,
    verify_step,
)
from ..rendezvous.verify import Finding
from ..world import Life, Node, World, WorldId
from .facts import Fact, Failed, Left, Reaped, Started, Stepped, Succeeded, WaitsForever, Wrote
from .predicates import of_group, of_ranks, of_write

Property: TypeAlias = Callable[["Judge", Fact], Iterable[Finding]]
"""A property of a user: it yields what this fact breaks, as a name and a sentence. The judge has already seen this fact and
all before it. A property keeps in the judge's notes what it must remember."""


@define
class Judge:
    """The memory by which the next fact of a run is judged.

    `fenced`: the agents run with --on-store-loss=stop. `assign` is the policy that gives a world its ranks. `excused` are
    nodes whose agent was paused: a paused agent cannot stop its workers in time. `also` are a user's own properties, asked
    after ours.
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
    jobs: dict[Life, str] = field(factory=dict)
    """Life -> the job whose register it was."""
    begun: set[Life] = field(factory=set)
    left: set[Node] = field(factory=set)
    leaving: set[Node] = field(factory=set)
    excused: set[Node] = field(factory=set)
    superseded: set[Node] = field(factory=set)
    """Nodes whose slot was started again: the supervisor says that they are gone, and is believed."""
    notes: dict[str, Any] = field(factory=dict)
    """The memory of a user's properties; empty when a run begins."""

    def saw(self, fact: Fact) -> None:
        """Judge one fact. Raises Violation."""
        for number, text in self._findings(fact):
            raise Violation(number, text)
        for property in self.also:
            for number, text in property(self, fact):
                raise Violation(number, text)

    def _findings(self, fact: Fact) -> Iterator[Finding]:
        match fact:
            case Stepped():
                if fact.after.phase is Phase.LEAVING:
                    self.leaving.add(fact.after.node)
                if fact.commands or fact.after.phase is not fact.before.phase or isinstance(fact.event, Signalled):
                    yield from of_group(fact)
            case Wrote():
                yield from self._wrote(fact)
            case Started():
                yield from self._started(fact)
            case Failed(_, world):
                self.failed.setdefault(self.job(world), set()).add(world)
            case Succeeded(node, world):
                self.succeeded.add((node, world))
            case Reaped(node):
                self.running.pop(node, None)
            case Left(node):
                self.left.add(node)
            case WaitsForever(held, handler):
                if handler is join and (held.state is None or held.node not in held.state.redundancy_list):
                    yield "L6", f"{held.node} waits to join without end, and is no spare"
            case other:
                assert_never(other)

    def job(self, world: WorldId) -> str:
        """Return the job of this world. A life of which no write was seen counts as a job of its own."""
        return self.jobs.get(world.life, world.life.nonce)

    def _wrote(self, fact: Wrote) -> Iterator[Finding]:
        self.register = fact.after
        self.jobs[fact.after.life] = fact.after.job
        if fact.before is None or isinstance(fact.edit, Restore):
            if fact.after.life in self.begun:
                yield "R9", f"{fact.node} begins {fact.after.life}, which had begun before"
            self.begun.add(fact.after.life)
        if isinstance(fact.edit, Restore):
            verify_restore(fact.edit, fact.before, fact.after)
            self.left.clear()  # what was restored may be older than their leave
        else:
            yield from self._edited(fact, fact.edit)

    def _edited(self, fact: Wrote, edit: Edit) -> Iterator[Finding]:
        before, after = fact.before or blank(fact.after.life, fact.after.limits), fact.after
        verify(after)
        verify_step(before, after)
        if not fact.here:
            yield "R8", f"{edit} of {fact.node} changes what another store had written"
        yield from of_write(before, edit, after)
        failed = self.failed.get(after.job, ())
        if after.failures > len(failed):
            rounds = sorted(world.round for world in failed)
            yield "B4", f"{after.failures} failures, but workers failed in rounds {rounds}"
        if before.seats is after.seats:
            return
        if isinstance(edit, Arrive):
            kin = [node for node in before.seats if node.slot == fact.node.slot]
            self.superseded.update(node for node in kin if node not in after.seats)
        for node, seat in after.seats.items():
            was = before.seats.get(node)
            if was is seat:
                continue
            if was is None and node in self.left:
                yield "S15", f"{node} is seated after it had left"
            newly_done = seat.status is Status.DONE and (was is None or was.status is not Status.DONE)
            if newly_done and (node, after.world_id) not in self.succeeded:
                yield "S14b", f"{node} is done in round {after.round}, in which its workers have not succeeded"

    def _started(self, fact: Started) -> Iterator[Finding]:
        node, world = fact.node, fact.world
        seen = world.id in self.worlds
        if self.worlds.setdefault(world.id, world) != world:
            yield "S2", f"the world of round {world.round} is another one for {node}"
        if (node, world.id) in self.started:
            yield "S17", f"the workers of {node} start twice in round {world.round}"
        if not seen:
            yield from of_ranks(world, self.assign(world))
        members = {member.node for member in world.members}
        for other, ran in self.running.items():
            if self._is_earlier(ran.id, world.id) and other not in self.leaving:
                yield from self._still_running(other, ran, fact, other in members)
        self.started.add((node, world.id))
        self.running[node] = world

    def _is_earlier(self, ran: WorldId, world: WorldId) -> bool:
        """Return True if `ran` is a world of the same job that was completed before `world`."""
        order = (ran.life.epoch, ran.round) < (world.life.epoch, world.round)
        return order and self.job(ran) == self.job(world)

    def _still_running(self, other: Node, ran: World, fact: Started, member: bool) -> Iterator[Finding]:
        text = (
            f"workers of {other} still run in round {ran.round} while those of {fact.node} start in {fact.world.round}"
        )
        if member:
            yield "S9", text
        elif (
            self.fenced
            and other not in self.excused
            and other not in self.superseded
            and ran.id.life == fact.world.id.life
        ):
            yield "S9 strong", text  # after a loss a world may be complete before a survivor could answer
