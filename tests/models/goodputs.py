"""The laws of goodput, for tests: the account of a trace, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from elastic.core.goodput import (
    TRAINING,
    Account,
    Book,
    Entry,
    Kind,
    Ledger,
    Piece,
    added,
    booked,
    by_kind,
    cause,
    closed,
    follow,
    kept,
    losses,
    micros,
    opened,
    take,
)
from elastic.core.goodput.book import NO_LOSS
from elastic.core.group import Group
from elastic.core.trace.steps import Header, Step, Trace, Working, step_at


@frozen
class Reading:
    """The account of a node, when it began, and all that it has entered."""

    account: Account
    began: int
    entries: tuple[Entry, ...]

    @property
    def all(self) -> tuple[Entry, ...]:
        """Return the entries with those of which the account has yet to hear more."""
        return (*self.entries, *closed(self.account))

    @property
    def pieces(self) -> list[Piece]:
        return sorted((each for each in self.all if isinstance(each, Piece)), key=lambda piece: piece.start)


def read(header: Header, steps: Iterable[Step]) -> Reading:
    follower, entries = follow(header), list[Entry]()
    for step in steps:
        follower, more = take(follower, step)
        entries += more
    return Reading(follower.account, micros(header.now), tuple(entries))


def spent(book: Book) -> dict[tuple[str, str], int]:
    """Return the microseconds by bucket and cause, as a report has them."""
    return {(name, kind.value): time for (name, kind), time in by_kind(book).items()}


def beside(header: Header, steps: Iterable[Step], many: int) -> Ledger:
    """Return the ledger of an agent that enters so many steps at once."""
    follower, taken = follow(header), list[tuple[Step, Group | None]]()
    for step in steps:
        follower, _ = take(follower, step)
        taken.append((step, follower.account.group))
    ledger = Ledger(opened(header.node, header.now))
    for at in range(0, len(taken), many):
        ledger = kept(ledger, taken[at : at + many])
    return ledger


def gaps(reading: Reading, end: int | None = None) -> Iterator[str]:
    """Yield where the pieces of a node leave some of its time out, or have some of it twice; and what has no cause."""
    at = reading.began
    for piece in reading.pieces:
        if piece.start != at or piece.end <= at:
            yield f"{piece} begins at {piece.start}, the one before ended at {at}"
        at = piece.end
        if (piece.bucket in TRAINING) is not (piece.reason is Kind.NONE):
            yield f"{piece} has no cause, or needs none"
        if piece.bucket == "unknown" and piece.reason is not Kind.UNKNOWN:
            yield f"{piece}: what is not known has a cause"
    if at != (reading.account.at if end is None else end):
        yield f"the pieces end at {at}, the node at {end or reading.account.at}"


def totals(book: Book) -> tuple[int, int, int]:
    """Return all time three times: by share, by cause, and by what was lost and what was not."""
    by_cause = Counter[Kind]()
    for share, spent in book.shares.items():
        by_cause[cause(book, share).kind] += spent
    rest = sum(by_cause[kind] for kind in NO_LOSS)
    return sum(book.shares.values()), sum(by_cause.values()), rest + sum(loss.total for loss in losses(book))


def imbalances(traces: Sequence[Trace]) -> list[str]:
    """Return what is wrong with the account of these agents."""
    wrong, book, time = list[str](), Book(), 0
    for trace in traces:
        if isinstance(trace.header.machine, Working):
            reading = read(trace.header, trace.steps)
            end = max([micros(trace.header.now), *(micros(step_at(step)) for step in trace.steps)])
            wrong += gaps(reading, end)
            book, time = added(book, booked(reading.all)), time + end - reading.began
    if totals(book) != (time, time, time):
        wrong.append(f"the nodes' time is {time}, and adds up to {totals(book)}")
    return wrong
