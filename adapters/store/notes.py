"""The small records of a job, beside its register: which there are, and how they are put on a store's board and read.

Each kind of record is a folder of this table, and has its bytes in `note_codec.py`. A store's bytes are not trusted: what
nobody can read, or stands under another node's name, is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.causes import merged
from ...core.rendezvous import Proposal, Token
from ...core.rendezvous.actions import entering_in
from ...core.rendezvous.state import NODES_MAX
from ...core.values import field, frozen
from ...core.world import SEEN_MAX, Fault, Node, Stacks, Unfit
from .port import Board, Folder, Log, OutOfReach, Place, Record, Shelf, spelled
from .queries import LASTS_S, Query, Replies, Reply

if TYPE_CHECKING:
    from ...core.goodput.record import NodeRecord

FAULTS_MAX = 8_192
"""The most failure records that a job keeps: the first half, and the last ones of all later ones. An exception that was
reported when it was raised has two, which readers merge: so 4,096 failures are kept at least."""
FAULTS_HALF = FAULTS_MAX // 2
UNFIT_MAX = 64
"""The nodes that stay out. A job's record shows the last ones."""
ENTRANTS_MAX = 2 * NODES_MAX
"""If there are more proposals to enter, only the last ones are read. A try that was repeated has several numbers."""


@frozen
class StandbyNote:
    """The standbys of one node: how many are ready, and how many seconds the imports of the last one took. It is for people:
    nothing is decided by it."""

    ready: int
    imports_s: float | None
    """None if no standby has been ready yet."""


def _first_ends(ends: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
    return ends[:SEEN_MAX]


@frozen
class EarlyEnds:
    """The workers of one node that have ended with 0 in this round, while others may run on: each rank, and the time of day
    on its host. It is bounded, because it travels through a store. It is for people: nothing is decided by it."""

    round: int
    ends: tuple[tuple[int, str], ...] = field(default=(), converter=_first_ends)


@frozen
class Entrant:
    """The proposal of a node to enter, for readers that do not know the node yet."""

    node: Node
    proposal: Proposal


STANDBYS = Shelf[StandbyNote]("standbys")
ENDED = Shelf[EarlyEnds]("ended", is_large=True)
TIMES: Shelf[NodeRecord] = Shelf("time", is_large=True, owner=lambda record: record.node)
"""They tell where the time of the nodes went."""
STACKS = Shelf[Stacks]("stacks", is_large=True, owner=lambda stacks: stacks.node)
"""They tell where a node's workers were when they were stopped last."""
QUERY = Shelf[Query]("query", lasts_s=LASTS_S)
REPLIES = Shelf[Reply]("reply", is_large=True, owner=lambda reply: reply.stacks.node, under=QUERY)
PROPOSALS = Shelf[Proposal]("wish")
FAULTS = Log[Fault](
    "faults",
    FAULTS_HALF,
    FAULTS_HALF,
    lambda fault: f"{fault.round}/{spelled(fault.node)}/{os.urandom(8).hex()}",
    is_large=True,
)
UNFIT = Log[Unfit]("unfit", 0, UNFIT_MAX, lambda unfit: spelled(unfit.node))
GOING = (PROPOSALS, STANDBYS, ENDED)
"""A node that goes takes its records of these along."""
_SHELVES: Mapping[str, Shelf[Any]] = {
    each.name: each for each in (STANDBYS, ENDED, TIMES, STACKS, QUERY, REPLIES, PROPOSALS)
}
_LOGS: Mapping[str, Log[Any]] = {each.name: each for each in (FAULTS, UNFIT)}


def entering(kind: str) -> Log[Entrant]:
    """Return the log of the proposals to enter of this kind: an era."""
    counter = f"numbers/{kind}"
    return Log(f"enter/{kind}", 0, ENTRANTS_MAX, lambda each: spelled(each.node), wraps=False, counter=counter)


def log(name: str) -> Log[Any]:
    """Return the log of this name. Raises KeyError."""
    head, _, kind = name.partition("/")
    return entering(kind) if head == "enter" else _LOGS[name]


def place(folder: str, name: str) -> Place:
    """Return the place of this name in the folder of this name. Raises KeyError."""
    return Place(_SHELVES.get(folder) or log(folder), name)


class Notes:
    """The records of one board, for one thread."""

    def __init__(self, board: Board, is_plain: bool = False) -> None:
        """`is_plain`: the board keeps the records themselves, and no bytes."""
        self._board = board
        self._is_plain = is_plain
        self._began: dict[Node, str] = {}
        """The kind that each node was the first to propose."""

    def put(self, shelf: Shelf[Record], node: Node, record: Record) -> None:
        """Put the record of this node, in the place of its last one."""
        self._board.put(Place(shelf, spelled(node)), self._encoded(shelf, record))

    def read(self, shelf: Shelf[Record], nodes: Iterable[Node]) -> Mapping[Node, Record]:
        """Return the records of those of these nodes that have one."""
        places = {Place(shelf, spelled(node)): node for node in nodes}
        return self._of(shelf, places, self._board.read(places)[0])

    def drop(self, shelf: Shelf[Any], nodes: Iterable[Node]) -> None:
        """Remove the records of these nodes."""
        self._board.drop(Place(shelf, spelled(node)) for node in nodes)

    def add(self, log: Log[Record], record: Record) -> None:
        """Add this record to the log."""
        self._board.put(Place(log, log.named(record)), self._encoded(log, record))

    def all(self, log: Log[Record]) -> tuple[Record, ...]:
        """Return the records of the log in the order in which they were put."""
        return tuple(self._all(log, self._board.read((), log)[1]))

    def faults(self) -> tuple[Fault, ...]:
        """Return the failures on record, by round, those of one round in the order in which they were put: two records of
        one failure count once, in the place of the first. Of more than FAULTS_MAX records the middle is left out: the first
        show how it began, the last how it ended."""
        return tuple(sorted(merged(self.all(FAULTS)), key=lambda fault: fault.round))

    # --- queries

    @property
    def query(self) -> Query | None:
        """The query that stood there at the last heartbeat of this client."""
        return self._one(QUERY, self._board.heard)

    def put_query(self, query: Query) -> None:
        """Ask all agents this, in the place of any other query. After LASTS_S nobody answers any more."""
        self._board.put(Place(QUERY), self._encoded(QUERY, query))

    def withdraw_query(self, nodes: Iterable[Node]) -> None:
        """Remove the query that this client has put, and the replies of these nodes."""
        self._board.drop((Place(QUERY), *(Place(REPLIES, spelled(node)) for node in nodes)))

    def put_reply(self, reply: Reply) -> None:
        """Answer the query that stands there."""
        self.put(REPLIES, reply.stacks.node, reply)

    def replies(self, nodes: Iterable[Node]) -> Replies:
        """Return the query that stands there, and the replies of those of these nodes that have answered one."""
        places = {Place(REPLIES, spelled(node)): node for node in nodes}
        found, _ = self._board.read((Place(QUERY), *places))
        return Replies(self._one(QUERY, found.get(Place(QUERY))), self._of(REPLIES, places, found))

    # --- proposals

    def put_proposal(self, node: Node, proposal: Proposal) -> int:
        """Put down what `node` proposes, in the place of what it proposed before. Returns how many have put down a proposal
        of this kind in this era, this one included: a hint, which a try that was repeated may have made too high."""
        like = proposal.like
        folder: Folder = entering(like) if proposal.enters else PROPOSALS
        place = Place(folder, spelled(node))
        data = self._encoded(folder, Entrant(node, proposal) if proposal.enters else proposal)
        begun = self._began.get(node, like)
        count = self._board.count(like, place, data, begun if begun != like else "")  # nobody counts on there
        if count == 1:
            self._began[node] = like
        elif begun != like:
            del self._began[node]
        return count

    def proposals(self, nodes: Iterable[Node], entering_at: Token | None = None) -> Mapping[Node, Proposal]:
        """Return the last proposals of those of these nodes that have any, and of all that propose to enter in the era
        `entering_at` (None: of none). All that were counted are there."""
        places = {Place(PROPOSALS, spelled(node)): node for node in nodes}
        log = entering(entering_in(entering_at)) if entering_at else None
        found, tail = self._board.read(places, log)
        entrants = self._all(log, tail) if log else ()
        fitting = (each for each in entrants if each.proposal.enters and each.proposal.era == entering_at)
        return {**self._of(PROPOSALS, places, found), **{each.node: each.proposal for each in fitting}}

    # --- the data

    def _of(self, shelf: Shelf[Record], places: Mapping[Place, Node], found: Mapping[Place, Any]) -> dict[Node, Record]:
        """Return the records of this shelf in the data at these places."""
        decoded, owner = self._decoder(shelf), shelf.owner
        read = {node: decoded(found[place]) for place, node in places.items() if place in found}
        return {node: each for node, each in read.items() if each is not None and (not owner or owner(each) == node)}

    def _one(self, shelf: Shelf[Record], data: Any) -> Record | None:
        return self._decoder(shelf)(data) if data else None

    def _all(self, log: Log[Record], data: Iterable[Any]) -> list[Record]:
        decoded = self._decoder(log)
        return [record for each in data if (record := decoded(each)) is not None]

    def _encoded(self, folder: Shelf[Record] | Log[Record], record: Record) -> Any:
        if self._is_plain:
            return record
        with _loading():
            from .note_codec import encoded  # a register in memory needs no codec

        return encoded(folder, record)

    def _decoder(self, folder: Shelf[Record] | Log[Record]) -> Callable[[Any], Record | None]:
        """Return what makes a record of data: None of what nobody can read."""
        if self._is_plain:
            return lambda data: data
        with _loading():
            from .note_codec import decoded

        return partial(decoded, folder)


@contextmanager
def _loading() -> Iterator[None]:
    """Raises OutOfReach if the codec cannot be loaded now, as on a host without a free descriptor."""
    try:
        yield
    except (ImportError, OSError) as error:
        raise OutOfReach(f"the codec of records cannot be loaded: {error}") from error
