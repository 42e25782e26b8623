"""The ledger of an agent: it tells what its account has entered, and does not grow."""

from __future__ import annotations

import pytest
from goodputs import beside, read
from traced import Pair, finished, restored, started

from elastic.core.goodput import booked, by_kind, whole
from elastic.core.rendezvous import Limits, Settings

MANY = Settings(Limits(2, 2, 1_000))


def failing(rounds: int) -> Pair:
    """Return a job in which a worker of b fails so many times."""
    pair = started(MANY)
    for _ in range(rounds):
        pair.b.exits(9)
        pair.run()
        pair.a.exits(-15)
        pair.run()
    return finished(pair)


@pytest.mark.parametrize("many", [1, 7, 1_000])
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_ledger_tells_what_the_whole_account_does(name: str, many: int) -> None:
    for pair in (finished(), restored(), failing(12)):
        agent = getattr(pair, name)
        ledger, reading = beside(agent.header, agent.steps, many), read(agent.header, agent.steps)
        assert by_kind(whole(ledger)) == by_kind(booked(reading.all))


def test_a_ledger_does_not_grow_with_the_rounds() -> None:
    def size(rounds: int) -> int:
        agent = failing(rounds).b
        book = beside(agent.header, agent.steps, 10).book
        return sum(
            len(each) for each in (book.shares, book.began, book.awaited, book.ends, book.culprits, book.meetings)
        )

    assert size(20) == size(60) < 150
