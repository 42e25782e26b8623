"""The properties that need more than one state: named predicates over the facts of a run, each with its number.

Numbers and sentences are protocol.md's. `Judge` is told facts, in the order in which they came to be, by whoever knows them:
the simulator knows all, a merged trace of real agents most. A broken property is a `Violation`, as it is for `verify` and
`verify_step`, which judge each write here too, and which production runs before each write and after each read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, assert_never

from attrs import define, field, frozen

from ..group import MOVES, Group, Phase
from ..group.state import (
    SIGKILL,
    Close,
    Command,
    Elapsed,
    End,
    Event,
    Join,
    Leave,
    MarkDone,
    Record,
    RecordUnstartable,
    Signal,
    Signalled,
    Start,
)
from ..ranks import Ranks, assign
from ..rendezvous import (
    Arrive,
    Complete,
    Deed,
    Edit,
    Evict,
    Held,
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
from ..rendezvous.context import Handler
from ..rendezvous.verify import Finding
from ..world import Life, Node, Why, World, WorldId

ALWAYS = {
    "S2": "all who run a world hold the same one",
    "S3": "ranks are dense, and prefix sums of the local world sizes",
    "S9": "when workers of a world start, those of earlier ones are dead, but for those of a node that is no member of it",
    "S9 strong": "with the fence on these are dead too, unless their agent was paused, is told to leave, or was superseded",
    "S14b": "DONE says that the node's workers succeeded in this round",
    "S15": "who has left is never seated again",
    "R8": "nobody edits what another store had written: it is restored first",
    "R9": "a life begins once",
    "R10": "who takes over a restored register of its own job forgets no failure of a life in which a world was completed",
    "R11": "no world completes while somebody who is awake and within reach has known its verdict for long",
    "R12": "a store that is lost while all are well restarts nobody",
    "R13": "who is awake does not forget what the store has lost",
    "R14": "who has slept looks before it decides, and restores nothing from before its sleep that does not stand",
    "S17": "workers start at most once per node and world",
    "B4": "no more failures than rounds in which a worker failed",
    "F1": "nobody is fenced within a quarter of the TTL after a start",
    "G1": "the group moves by its table",
    "G2": "nobody joins with a worker alive",
    "G3": "what the others must know comes before our own workers are stopped, and nobody is signalled who is dead",
    "G4": "success is marked when all workers have succeeded, and a failure of a running world ends it",
    "G5": "ended is final, and nothing lives then",
    "G6": "whoever stops or leaves has a way out",
}
"""Beside those of one state and of one step (`verify`): what must hold at every point of every run."""
EVENTUALLY = {
    "L2": "every live node is in the one complete world, a spare, or told",
    "L3": "no healthy node is evicted",
    "L4": "no more rounds than causes for them",
    "L6": "every wait has a deadline and a reason that can be shown",
}
"""What a healed world must come to, and what must not happen on the way."""


@frozen
class Wrote:
    """A write of `node` landed: `edit` made `after` of `before` (None: of nothing). `here`: `before` had been written in the
    same store, and not in one of which that store is a copy."""

    node: Node
    before: RendezvousState | None
    edit: Deed
    after: RendezvousState
    here: bool = True

    @property
    def completes(self) -> bool:
        """A new world stands with it."""
        before, after = self.before, self.after
        if isinstance(self.edit, Restore):
            return False
        return after.complete and (before is None or not before.complete or after.round > before.round)


@frozen
class Started:
    """The workers of `node` in this world were started."""

    node: Node
    world: World


@frozen
class Failed:
    """A worker of `node` failed by itself, or could not be started."""

    node: Node
    world: WorldId


@frozen
class Succeeded:
    """All workers of `node` have succeeded."""

    node: Node
    world: WorldId


@frozen
class Reaped:
    """No worker of `node` lives."""

    node: Node


@frozen
class Left:
    """`node` was told that the register knows that it leaves."""

    node: Node


@frozen
class Stepped:
    """A step of the group."""

    before: Group
    event: Event
    after: Group
    commands: tuple[Command, ...]
    at: float


@frozen
class WaitsForever:
    """A node waits for the register to change, without a deadline."""

    held: Held
    handler: Handler


Fact: TypeAlias = Wrote | Started | Failed | Succeeded | Reaped | Left | Stepped | WaitsForever
Property: TypeAlias = Callable[["Judge", Fact], Iterable[Finding]]
"""One of a user's own: what this fact breaks, by a name and a sentence. The judge has seen this fact and all before it; what
else must be kept in mind goes into its notes."""


@define
class Judge:
    """What is remembered of a run, to judge its next fact by.

    `fenced`: the agents run with --on-store-loss=stop. `assign` is the policy that gives a world its ranks. `excused` are
    nodes whose agent was paused: nothing that stands still can stop its workers in time. `also` are a user's own properties,
    asked after ours.
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
    """Which job's register each life was."""
    begun: set[Life] = field(factory=set)
    left: set[Node] = field(factory=set)
    leaving: set[Node] = field(factory=set)
    excused: set[Node] = field(factory=set)
    superseded: set[Node] = field(factory=set)
    """Whose slot was started again: their supervisor holds them for gone, and is believed."""
    notes: dict[str, Any] = field(factory=dict)
    """What a user's properties keep in mind: a run begins with none."""

    def saw(self, fact: Fact) -> None:
        """Raises Violation."""
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
        """Whose world this is; a life of which no write was seen is taken for a job of its own."""
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
        yield from _of_write(before, edit, after)
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
            yield from _of_ranks(world, self.assign(world))
        members = {member.node for member in world.members}
        for other, ran in self.running.items():
            if self._is_earlier(ran.id, world.id) and other not in self.leaving:
                yield from self._still_running(other, ran, fact, other in members)
        self.started.add((node, world.id))
        self.running[node] = world

    def _is_earlier(self, ran: WorldId, world: WorldId) -> bool:
        """A world of the same job that was completed before."""
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


def _of_write(before: RendezvousState, edit: Edit, after: RendezvousState) -> Iterator[Finding]:
    """What `verify` leaves out: it has no edit to judge by, and is not to count all seats at every read."""
    if after.round > before.round:
        yield from _of_new_round(before, after)
        return
    dropped = [node for node in before.expected if node not in after.seats]
    if after.target != max(before.target - len(dropped), 0):
        yield (
            "V7",
            f"{len(dropped)} are waited for no longer, but the target went from {before.target} to {after.target}",
        )
    ended, size = before.ended, len(after.members)
    lost = isinstance(edit, Evict) and ended is not None and any(node != ended.by for node in dropped)
    if lost and ended is not None and ended.why is Why.FAILED and after.failures == before.failures:
        yield "B2", "the loss of a member is charged as the failure that it led to"
    completes = after.complete and not before.complete and not isinstance(edit, Complete)
    if completes and size < after.limits.max_nodes and not 0 < after.target <= size:
        yield "V6", f"complete without a last call, with {size} of up to {after.limits.max_nodes} nodes"


def _of_new_round(before: RendezvousState, after: RendezvousState) -> Iterator[Finding]:
    if after.quorum_at not in (None, after.version):
        yield "V11", f"the quorum of a new round is older than the round: version {after.quorum_at}"
    if after.ended is not None and after.ended.why is Why.LEFT and after.ended.by in after.seats:
        yield "V8", f"the round ended because {after.ended.by} left, but it is still seated"
    if any(seat.status is Status.GONE and node in after.seats for node, seat in before.seats.items()):
        yield "V10", "who had left after it was done is expected back"


def _of_ranks(world: World, ranks: Mapping[Node, Ranks]) -> Iterator[Finding]:
    """By counting, not by the formula of `ranks`."""
    expected = 0
    for member in world.members:
        place = ranks[member.node]
        for local_rank, worker in enumerate(place.workers):
            if (worker.rank, worker.local_rank) != (expected, local_rank):
                yield "S3", f"worker {local_rank} of {member.node} has rank {worker.rank}, not {expected}"
            expected += 1
        if len(place.workers) != member.profile.local_world_size:
            yield "S3", f"{member.node} has {len(place.workers)} ranks for {member.profile.local_world_size} workers"
    if any(place.world_size != expected for place in ranks.values()):
        yield "S3", f"the world has {expected} workers, and some are told otherwise"


_ORDER: tuple[type[Command], ...] = (Record, RecordUnstartable, End, Close, Leave, Signal)
"""What the others must know comes before our own workers are stopped."""


def of_group(fact: Stepped) -> Iterator[Finding]:
    """What one step of a worker group breaks by itself."""
    for number, what in _of_step(fact):
        yield number, f"{what}: {fact.before.phase.name} + {fact.event} -> {fact.after.phase.name}: {fact.commands}"


def _of_step(fact: Stepped) -> Iterator[Finding]:
    before, event, after, commands = fact.before, fact.event, fact.after, fact.commands
    kinds = [type(command) for command in commands]
    if after.phase is not before.phase and after.phase not in MOVES.get((before.phase, type(event)), ()):
        yield "G1", "not in the table"
    if Start in kinds and (after.phase is not Phase.RUNNING or not after.running):
        yield "G1", "workers start outside RUNNING"
    if Join in kinds and after.running:
        yield "G2", f"joins while workers {sorted(after.running)} live"
    ranked = [_ORDER.index(kind) for kind in kinds if kind in _ORDER]
    if ranked != sorted(ranked):
        yield "G3", "in the wrong order"
    if Signal in kinds and not before.running:
        yield "G3", "signals workers that are dead"
    ends_none = Record in kinds and End not in kinds and before.phase is not Phase.STOPPING
    if ends_none and before.settings.alone is None:
        yield "G4", "a failure that ends no round"
    if MarkDone in kinds and after.running:
        yield "G4", f"done while workers {sorted(after.running)} live"
    if before.phase is Phase.ENDED and (commands or after != before):
        yield "G5", "after the end"
    if isinstance(event, Signalled) and after.phase not in (Phase.LEAVING, Phase.ENDED):
        yield "G6", "a signal that is not heeded"
    if after.phase is Phase.ENDED and after.running:
        yield "G5", f"ended while workers {sorted(after.running)} live"
    again = isinstance(event, Signalled) and before.phase is Phase.LEAVING and before.running
    if again and Signal(SIGKILL) not in commands:
        yield "G6", "a second signal that does not kill"
    if after.phase is Phase.LEAVING and not after.left and after.until is None:
        yield "G6", "leaves without end"
    stops = after.phase is Phase.STOPPING and before.phase is not Phase.STOPPING
    if stops and after.running and after.until is None and Signal(SIGKILL) not in commands:
        yield "G6", "stops without end"
    if Start in kinds and after.fence_at is not None and after.fence_at - fact.at < after.settings.ttl / 4:
        yield "F1", f"started at {fact.at:g}, to be fenced at {after.fence_at:g}"


def fences(before: Group, event: Event, after: Group) -> bool:
    """Whether this step is the one in which a node stops its workers because no heartbeat was acknowledged."""
    return before.phase is Phase.RUNNING and after.phase is Phase.STOPPING and isinstance(event, Elapsed)
