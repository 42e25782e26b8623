"""Adds up the entries of one node or of many: the time in each bucket by its cause, and the dearest events.

Only a book says causes. A node hears that a round is over; another node's entries tell whose failure that was. The books of
parts add up to the book of the whole, in any order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, assert_never

from ..values import evolve, field, frozen
from ..world import Node, Why
from .entries import KINDS, Arrival, Culprit, Death, Entry, Kind, Meeting, Piece, Reason, RoundEnd


@frozen
class Share:
    """A node in a bucket for a reason; `job` is that of a round. `tail`: as of a piece."""

    node: Node
    bucket: str
    reason: Reason
    job: str = ""
    tail: int | None = None


def share(piece: Piece) -> Share:
    """Return where the time of this piece is booked."""
    job = piece.job if isinstance(piece.reason, int) or piece.tail is not None else ""
    return Share(piece.node, piece.bucket, piece.reason, job, piece.tail)


@frozen
class Book:
    """What entries add up to."""

    shares: Mapping[Share, int] = field(factory=dict)
    """Share -> its microseconds."""
    began: Mapping[Share, int] = field(factory=dict)
    """Share -> when its first piece began, in microseconds."""
    awaited: Mapping[tuple[str, Node], int] = field(factory=dict)
    """Job and node -> for how long others waited there for that node, all added."""
    ends: Mapping[tuple[str, int], RoundEnd] = field(factory=dict)
    """Job and round -> the last word on its end."""
    drains: Mapping[tuple[str, int], frozenset[Node]] = field(factory=dict)
    """Job and round -> the nodes that ended it and were drained, by any word. Who joins later no longer sees the notice."""
    arrivals: Mapping[tuple[str, int], frozenset[Node]] = field(factory=dict)
    """Job and round -> the nodes that came for its end."""
    deaths: Mapping[tuple[str, int], frozenset[Node]] = field(factory=dict)
    """Job and round -> the nodes whose agents were dead then, as links told."""
    culprits: Mapping[tuple[str, int, Node], Culprit] = field(factory=dict)
    meetings: Mapping[Node, Meeting] = field(factory=dict)
    """Node -> the last job that it met."""


def booked(entries: Iterable[Entry], shift: int = 0) -> Book:
    """Return the sum of these entries. `shift`: microseconds from the node's clock to one that all nodes share."""
    shares, awaited, began = Counter[Share](), Counter[tuple[str, Node]](), dict[Share, int]()
    ends = dict[tuple[str, int], RoundEnd]()
    drains, arrivals, deaths = (defaultdict[tuple[str, int], frozenset[Node]](frozenset) for _ in range(3))
    culprits = dict[tuple[str, int, Node], Culprit]()
    meetings = dict[Node, Meeting]()
    for each in entries:
        match each:
            case Piece(start=start, end=end, job=job, awaits=awaits):
                its = share(each)
                shares[its] += end - start
                began[its] = min(began.get(its, start + shift), start + shift)
                awaited.update({(job, node): end - start for node in awaits})
            case RoundEnd(job, round, by=by):
                ends[job, round] = _surer(ends.get((job, round), each), each)
                if by and each.is_drain:
                    drains[job, round] |= {by}
            case Arrival(job, round, node):
                arrivals[job, round] |= {node}
            case Death(job, round, node):
                deaths[job, round] |= {node}
            case Culprit(job, round, node):
                culprits[job, round, node] = _first(culprits.get((job, round, node), each), each)
            case Meeting(node):
                meetings[node] = _last(meetings.get(node, each), each)
            case other:
                assert_never(other)
    return Book(shares, began, awaited, ends, drains, arrivals, deaths, culprits, meetings)


def added(one: Book, other: Book) -> Book:
    """Return the sum of two books."""
    return Book(
        _merged(one.shares, other.shares, int.__add__),
        _merged(one.began, other.began, min),
        _merged(one.awaited, other.awaited, int.__add__),
        _merged(one.ends, other.ends, _surer),
        _merged(one.drains, other.drains, frozenset.__or__),
        _merged(one.arrivals, other.arrivals, frozenset.__or__),
        _merged(one.deaths, other.deaths, frozenset.__or__),
        _merged(one.culprits, other.culprits, _first),
        _merged(one.meetings, other.meetings, _last),
    )


T = TypeVar("T")
K = TypeVar("K")


def _merged(one: Mapping[K, T], other: Mapping[K, T], both: Callable[[T, T], T]) -> Mapping[K, T]:
    return {**one, **{key: both(one[key], value) if key in one else value for key, value in other.items()}}


def _surer(one: RoundEnd, other: RoundEnd) -> RoundEnd:
    """Return the later word of the two: another register may have refunded a failure, or name more nodes as lost."""
    return max(one, other, key=lambda each: (each.known_at, each.is_drain, each.why.value, str(each.by), each.lost))


def _first(one: Culprit, other: Culprit) -> Culprit:
    return min(one, other, key=lambda each: (not each.is_hang, each.rank is None, each.rank))


def _last(one: Meeting, other: Meeting) -> Meeting:
    return max(one, other, key=lambda each: (each.number, each.job))


def jobs(book: Book) -> tuple[str, ...]:
    """Return the jobs of the nodes, each once. Nodes that no register was shown belong to the only job; with several, or
    with none, to ""."""
    found = tuple(sorted({_job_of(book, share.node) for share in book.shares}))
    return found[1:] if len(found) == 2 and not found[0] else found


def of_job(book: Book, job: str) -> Book:
    """Return the part of the nodes whose last job this is."""
    those = (job, "") if jobs(book) == (job,) else (job,)
    return evolve(
        book,
        shares={share: spent for share, spent in book.shares.items() if _job_of(book, share.node) in those},
        began={share: at for share, at in book.began.items() if _job_of(book, share.node) in those},
        awaited={(of, node): spent for (of, node), spent in book.awaited.items() if of == job},
    )


def _job_of(book: Book, node: Node) -> str:
    return book.meetings[node].job if node in book.meetings else ""


def by_kind(book: Book) -> Counter[tuple[str, Kind]]:
    """Return the microseconds by bucket and kind of cause."""
    found = Counter[tuple[str, Kind]]()
    for share, micros in book.shares.items():
        found[bucket(book, share), cause(book, share).kind] += micros
    return found


# --- causes -----------------------------------------------------------------------------------------------------------


@frozen
class Cause:
    """Why a node was in a bucket. `by` is the node whose write ended the round; of a failure `rank` is the worker's, if its
    node's trace tells; of a loss `lost` are the names of the nodes, as far as the register tells; `came` are the nodes that
    an upscale was for, or that came in place of lost or drained ones, as far as their traces tell."""

    kind: Kind
    job: str = ""
    round: int | None = None
    by: Node | None = None
    rank: int | None = None
    lost: tuple[str, ...] = ()
    came: tuple[Node, ...] = ()
    died: tuple[Node, ...] = ()
    """Names the nodes of a loss whose agents were dead, as links told. Others fell silent, or no peer has a trace."""


def bucket(book: Book, share: Share) -> str:
    """Return the bucket of this share, as far as the book knows."""
    return "hanging" if _hung(book, share) else share.bucket


def cause(book: Book, share: Share) -> Cause:
    """Return the cause of this share, as far as the book knows. A failure that a loss explains is a loss."""
    round = share.tail if share.tail is not None and _hung(book, share) else share.reason
    if isinstance(round, Kind):
        return Cause(round)
    if (end := book.ends.get((share.job, round))) is None:
        return Cause(Kind.UNKNOWN, share.job, round)
    if end.why is Why.FAILED and end.by:
        culprit = book.culprits.get((share.job, round, end.by))
        kind = Kind.HANG if culprit and culprit.is_hang else Kind.FAILURE
        return Cause(kind, share.job, round, end.by, culprit.rank if culprit else None)
    place, kind = (share.job, round), KINDS[end.why]
    if end.why is Why.LEFT and end.by in book.drains.get(place, ()):
        kind = Kind.DRAIN
    came = sorted(book.arrivals.get(place, ())) if kind in (Kind.UPSCALE, Kind.LOSS, Kind.DRAIN) else ()
    died = sorted(book.deaths.get(place, ())) if kind is Kind.LOSS else ()
    return Cause(kind, *place, end.by, lost=end.lost if kind is Kind.LOSS else (), came=tuple(came), died=tuple(died))


def _hung(book: Book, share: Share) -> bool:
    """Return True if the workers hung that made no progress any longer: their round's end was that of a hang."""
    if share.tail is None or (end := book.ends.get((share.job, share.tail))) is None:
        return False
    culprit = book.culprits.get((share.job, share.tail, end.by)) if end.by else None
    return end.why is Why.FAILED and culprit is not None and culprit.is_hang


@frozen
class Loss:
    """What one cause took of the nodes' time: microseconds by bucket, and when the first of them began."""

    cause: Cause
    began: int
    buckets: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.buckets.values())


NO_LOSS = (Kind.NONE, Kind.PROGRAM, Kind.SPARE, Kind.END)
"""Causes that nobody would call an event."""


def losses(book: Book) -> tuple[Loss, ...]:
    """Return what each event took, the dearest first."""
    spent, began = defaultdict[Cause, Counter[str]](Counter), dict[Cause, int]()
    for share, micros in book.shares.items():
        its = cause(book, share)
        if its.kind not in NO_LOSS:
            spent[its][bucket(book, share)] += micros
            began[its] = min(began.get(its, book.began[share]), book.began[share])
    found = [Loss(its, began[its], buckets) for its, buckets in spent.items()]
    return tuple(
        sorted(found, key=lambda loss: (-loss.total, loss.began, loss.cause.kind.value, loss.cause.round or 0))
    )
