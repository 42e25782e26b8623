"""How simulated workers fail where their peers hear of it, and what must be known of it in the end (G9).

A worker exits, raises, begins to end, or is killed. Its report may reach its agent late. Its connections close at that time
or when it ends, and each peer in its world may then fail too, by an echo. So raises, echoes and ends come in every order,
over all nodes. In the end the records of each round must name a worker that failed by itself, or say that it is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol, assert_never

from attrs import define, field

from ..causes import choose as chosen
from ..causes import merged
from ..group.state import SIGKILL, Exiting, Raised, Record
from ..properties.facts import Failed, Wrote
from ..properties.judge import Judge
from ..properties.law import Law
from ..rendezvous import Violation
from ..values import evolve
from ..world import Fault, Generation, Node, Origin, Why, World, WorldId
from .chance import Choose, one
from .future import Future
from .kinds import Kind
from .network import Network
from .process import Hears, Process

TELLS_S = (0.0, 0.01, 0.2, 0.7)
"""How much later the agent hears of a report."""
ENDS_S = (0.001, 0.05, 0.4, 4.0)
"""How long a worker takes to end after it raised, or began to end."""
ECHOES_S = (0.0005, 0.02, 0.3)
"""How long a peer takes to fail when a connection closes."""
ECHO, OWN = "[gloo/transport/tcp/pair.cc:547] Connection closed by peer", "ValueError: the loss is nan"

G9 = Law(
    "G9",
    "What is on record of a failed round names a worker that failed by itself as its cause, or says that it is open "
    "which failed first.",
    "a round has failures on record, where peers may fail, too",
)


class Way(Enum):
    """How a worker fails."""

    EXIT = "exits, and there is no report"
    RAISE = "raises, and ends"
    STAY = "raises, and does not end by itself"
    END = "ends its interpreter with 7"
    KILLED = "is killed"


class Ends(Protocol):
    """This ends a worker: `Workers.dies`."""

    def __call__(self, process: Process, rank: int, code: int, start: int) -> None: ...


@define
class Raises:
    choose: Choose
    future: Future
    network: Network
    by_node: Mapping[Node, Process]
    judge: Judge
    seen: Callable[[str], None]
    hear: Hears
    befalls: Callable[[Process, Kind], None]
    dies: Ends
    causes: Causes

    def fail(self, process: Process, code: int = 1) -> None:
        """Let one of the workers fail in one of the ways; one that exits does so with this code."""
        rank, way = min(process.workers), one(self.choose, tuple(Way))
        if process.attempt.world is None or rank in process.attempt.reported:
            return
        self.causes.began(process.node, rank, process.attempt.world)
        self.judge.saw(Failed(process.node, process.attempt.world.id))
        closes_now = way in (Way.EXIT, Way.KILLED) or self.choose(2) == 0
        ends_in = 0.0
        match way:
            case Way.EXIT | Way.KILLED:
                self.dies(process, rank, code if way is Way.EXIT else -SIGKILL, process.workers[rank])
            case Way.RAISE | Way.STAY:
                ends_in = self._raises(process, rank, False, way is Way.STAY)
            case Way.END:
                process.attempt.began[rank] = began_at = process.clock.shows(self.future.now)
                self._tells(process, rank, Exiting(rank, began_at, began_at))
                ends_in = one(self.choose, ENDS_S)
                self.future.at(self.future.now + ends_in, self.dies, process, rank, 7, process.workers[rank])
            case other:
                assert_never(other)
        self._closes(process.attempt.world, process, rank, 0.0 if closes_now else ends_in)

    def closes(self, process: Process) -> None:
        """Let the peers of a node's workers hear that all its connections close."""
        if process.attempt.world is not None and process.workers:
            self._closes(process.attempt.world, process, None, 0.0)

    def _raises(self, process: Process, rank: int, is_echo: bool, stays: bool) -> float:
        """Let a worker raise. Return how long it takes to end by itself."""
        raised_at = process.clock.shows(self.future.now)
        self._tells(process, rank, Raised(rank, raised_at, raised_at, is_echo or None))
        ends_in = one(self.choose, ENDS_S)
        if not stays:
            code = one(self.choose, (1, 1, -6, 0))
            self.future.at(self.future.now + ends_in, self.dies, process, rank, code, process.workers[rank])
        return ends_in

    def _tells(self, process: Process, rank: int, report: Raised | Exiting) -> None:
        process.attempt.reported[rank] = report.at
        process.attempt.unheard[rank] = report
        self.future.at(self.future.now + one(self.choose, TELLS_S), self._told, process, rank, process.workers[rank])

    def _told(self, process: Process, rank: int, start: int) -> None:
        """The agent hears of a report, unless the worker's end came first."""
        if process.workers.get(rank) != start or rank not in process.attempt.unheard:
            return
        if not self.network.waits(process, self._told, process, rank, start):
            self.hear(process, evolve(process.attempt.unheard.pop(rank), at=process.clock.shows(self.future.now)))

    def _closes(self, world: World, process: Process, rank: int | None, after: float) -> None:
        """Let peers echo, of those that live in this world."""
        for node in world.nodes:
            peer = self.by_node.get(node)
            if peer is None or not peer.alive or (rank is None and peer is process):
                continue
            for other, start in peer.workers.items():
                if (peer is not process or other != rank) and self.choose(3):
                    at = self.future.now + after + one(self.choose, ECHOES_S)
                    self.future.at(at, self._echoes, peer, other, start, world.id)

    def _echoes(self, process: Process, rank: int, start: int, world: WorldId) -> None:
        lives = process.workers.get(rank) == start and rank not in process.attempt.reported and not process.hung
        if not lives or process.attempt.world is None or process.attempt.world.id != world:
            return
        self.seen("an echo of a failure")
        self.befalls(process, Kind.FAIL)
        self.judge.saw(Failed(process.node, world))
        process.attempt.echoed.add(rank)
        if self.choose(2):
            self._raises(process, rank, True, self.choose(4) == 0)
        else:
            self.dies(process, rank, -6, start)


@define
class Causes:
    """What failed by itself in each world, and what is on record of it."""

    judge: Judge
    own: set[tuple[Generation, Node, int]] = field(factory=set)
    """The workers that failed by themselves: node and local rank. One may be put on record in a later world of its
    generation."""
    told: dict[tuple[Node, Record], tuple[World, Fault]] = field(factory=dict)
    """What nodes have told their clients to put on record, with the world."""
    put: dict[tuple[WorldId, Generation], list[Fault]] = field(factory=dict)
    """What the store has taken, in that order."""
    by: dict[WorldId, Node] = field(factory=dict)
    """Whose write ended the world by a failure."""

    def began(self, node: Node, rank: int, world: World) -> None:
        self.own.add((world.generation, node, rank))

    def tells(self, process: Process, record: Record) -> None:
        rank, world = record.local_rank, process.attempt.world
        assert world is not None  # it has had workers
        text = ECHO if rank in process.attempt.echoed else OWN
        at_s, origin = record.died_at, record.origin or Origin.END
        fault = Fault(
            process.node,
            world.round,
            rank,
            rank,
            process.attempt.number,
            record.code,
            0.0,
            message=text,
            origin=origin,
            at_s=at_s,
        )
        self.told[process.node, record] = world, fault

    def takes(self, node: Node, what: object) -> None:
        """The store has taken a record; one that it had lost may come again."""
        world, fault = self.told.get((node, what), (None, None)) if isinstance(what, Record) else (None, None)
        if world is not None and fault is not None:
            records = self.put.setdefault((world.id, world.generation), [])
            records.extend([fault] if fault not in records else [])

    def wrote(self, fact: Wrote) -> None:
        before, ended = fact.before, fact.after.ended
        world = before.world_id if before is not None and before.complete else None
        if world and ended and ended.round == world.round and ended.why is Why.FAILED:
            self.by[world] = ended.by

    def judges(self) -> None:
        """Judge G9, at the end of a run: each round's cause is a worker that failed by itself, or is said to be open."""
        for (world, generation), records in self.put.items():
            cause = chosen(merged(records), self.by.get(world))
            self.judge.strength.armed["G9"] += 1
            self.judge.strength.excused["G9"] += cause is not None and not cause.is_sure
            if cause and cause.is_sure and (generation, cause.fault.node, cause.fault.local_rank) not in self.own:
                raise Violation(
                    "G9", f"round {world.round} is said to have failed by {cause.fault.node}, which did not"
                )
