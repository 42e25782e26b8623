"""Somebody asks all agents what their workers are doing: who is heard, who is waited for, and that nothing stays."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import pytest
from worlds import node

from elastic.adapters.clock import SystemClock
from elastic.adapters.report.stack_query import OTHERS_S, new_query, replies_to
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import Notes
from elastic.adapters.store.port import OutOfReach
from elastic.adapters.store.queries import Query, Replies, Reply
from elastic.core.world import Node, Stacks

A, B = node("a"), node("b")
LONG_S = 1_000.0


class Steps(SystemClock):
    """A second passes with each look at it."""

    def __init__(self) -> None:
        self._seconds = count()

    def now(self) -> float:
        return float(next(self._seconds))


class Asked(Notes):
    """A store with agents that answer each query at once. It loses the first queries."""

    def __init__(self, store: MemoryStore, *agents: Node, loses: int = 0) -> None:
        super().__init__(MemoryBackend(store, SystemClock()), is_plain=True)
        self._agents = agents
        self._loses = loses
        self.asked: list[Query] = []

    def put_query(self, query: Query) -> None:
        self.asked.append(query)
        if len(self.asked) > self._loses:
            super().put_query(query)
            for each in self._agents:
                self.put_reply(Reply(query.id, Stacks(each, query.round)))


def ask(notes: Notes, timeout_s: float = LONG_S) -> tuple[Query, set[Node]]:
    query = new_query(4, None)
    return query, set(replies_to(query, (A, B), notes, Steps(), timeout_s))


def test_all_answer_and_nothing_stays() -> None:
    store = MemoryStore()
    notes = Asked(store, A, B)
    query, found = ask(notes)
    assert (found, notes.asked, store.records) == ({A, B}, [query], {})


@pytest.mark.parametrize("agents", [(A,), ()], ids=len)
def test_who_does_not_answer_is_left_out_and_nothing_stays(agents: tuple[Node, ...]) -> None:
    store = MemoryStore()
    notes = Asked(store, *agents)
    query, found = ask(notes, 3.0)
    assert (found, notes.asked, store.records) == ({*agents}, [query], {})


def test_another_s_query_stands_as_long_as_it_may_and_is_left_alone() -> None:
    store = MemoryStore()
    other = new_query(4, None)
    Asked(store, A, B).put_query(other)
    notes = Asked(store, A, B)
    assert ask(notes, OTHERS_S - 1)[1] == set()
    assert (notes.asked, store.records["query"], len(store.records)) == ([], other, 3)


def test_another_s_query_is_waited_for_until_it_is_withdrawn() -> None:
    class Busy(Asked):
        looks = 0

        def replies(self, nodes: Iterable[Node]) -> Replies:
            self.looks += 1
            if self.looks == 3:
                self.withdraw_query((A, B))
            return super().replies(nodes)

    store = MemoryStore()
    Asked(store, A, B).put_query(new_query(4, None))
    notes = Busy(store, A, B)
    query, found = ask(notes)
    assert (found, notes.asked, notes.looks, store.records) == ({A, B}, [query], 4, {})


def test_a_query_whose_asker_is_gone_is_replaced() -> None:
    store = MemoryStore()
    Asked(store, A, B).put_query(new_query(4, None))
    assert ask(Asked(store, A, B))[1] == {A, B} and store.records == {}


def test_a_query_that_the_store_has_lost_is_put_again() -> None:
    store = MemoryStore()
    notes = Asked(store, A, B, loses=2)
    query, found = ask(notes)
    assert (found, notes.asked, store.records) == ({A, B}, [query] * 3, {})


def test_a_store_that_goes_away_is_an_error_and_not_two() -> None:
    class Gone(Asked):
        def replies(self, nodes: Iterable[Node]) -> Replies:
            if self.asked:
                raise OutOfReach("nobody listens")
            return super().replies(nodes)

        def withdraw_query(self, nodes: Iterable[Node]) -> None:
            raise OutOfReach("nobody listens either")

    with pytest.raises(OutOfReach, match=r"listens$"):
        ask(Gone(MemoryStore()))
