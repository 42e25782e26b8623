"""The account of an agent that runs, with what it has entered so far: as small after a year as after a day.

Of a round that ended long ago no register tells anything new. Its time is kept by the kind of its cause alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ..group import Group
from ..trace.steps import Step
from ..values import field, frozen
from .account import Account, closed
from .book import Book, Share, added, booked, bucket, cause
from .entries import Entry
from .follower import took

ROUNDS_KEPT = 8
"""The causes of this many rounds before the present one may still change."""


@frozen
class Ledger:
    """An account, and the book of its node."""

    account: Account
    book: Book = field(factory=Book)


def kept(ledger: Ledger, steps: Iterable[tuple[Step, Group | None]]) -> Ledger:
    """Take steps of the agent, each with the worker group after it, if it was a step of that."""
    account, entries = ledger.account, list[Entry]()
    for step, group in steps:
        account, more = took(account, step, group)
        entries += more
    book = _settled(added(ledger.book, booked(entries)), account) if entries else ledger.book
    return Ledger(account, book)


def whole(ledger: Ledger) -> Book:
    """Return the book with what is not entered yet, as things stand."""
    return added(ledger.book, booked(closed(ledger.account)))


def _settled(book: Book, account: Account) -> Book:
    """Return the book without the rounds that nothing is entered for any longer."""
    needed, newest = {*_needed(account)}, account.state.round if account.state else 0

    def is_open(job: str, round: int) -> bool:
        return (job, round) in needed or (job == account.job and round >= newest - ROUNDS_KEPT)

    shares, began = Counter[Share](), dict[Share, int]()
    for share, spent in book.shares.items():
        rounds = [each for each in (share.reason, share.tail) if isinstance(each, int)]
        if not any(is_open(share.job, round) for round in rounds):
            its = Share(share.node, bucket(book, share), cause(book, share).kind)
        else:
            its = share
        shares[its] += spent
        began[its] = min(began.get(its, book.began[share]), book.began[share])
    return Book(
        shares,
        began,
        ends={key: each for key, each in book.ends.items() if is_open(*key)},
        drains={key: each for key, each in book.drains.items() if is_open(*key)},
        deaths={key: each for key, each in book.deaths.items() if is_open(*key)},
        arrivals={key: each for key, each in book.arrivals.items() if is_open(*key)},
        culprits={key: each for key, each in book.culprits.items() if is_open(*key[:2])},
        meetings=book.meetings,
    )


def _needed(account: Account) -> Iterator[tuple[str, int]]:
    """Yield the rounds that what comes next may be entered for."""
    group, run, stretch = account.group, account.run, account.stretch
    rounds = [(account.job, account.reason)]
    if group and group.world:
        rounds.append((account.job, group.world.round))
    if run:
        rounds += [(run.job, run.reason), *([] if run.ended is None else [(run.job, run.ended)])]
    if stretch:
        rounds.append((stretch.job, stretch.reason))
    yield from ((job, round) for job, round in rounds if isinstance(round, int))
