"""A node's record of its time in the store: put when there is something new, and at no other heartbeat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from worlds import edited, node, running

from elastic.adapters.agent.time_teller import TimeTeller
from elastic.adapters.clock import SystemClock
from elastic.adapters.report.news import Remark, TimeTold
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import TIMES
from elastic.adapters.store.port import OutOfReach, Place
from elastic.core.goodput import NodeRecord, Spent
from elastic.core.goodput.record import EVERY, HELD_BEATS, TAKEN_AT_ONCE
from elastic.core.rendezvous import Evict
from elastic.core.world import Life

A, B = node("a"), node("b")
LIFE, OTHER = Life("life"), Life("other")
TRAINED = ("training", "none")


class Clock(SystemClock):
    at = 100.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return 7.0


class Time:
    """The time of a node, as somebody sets it."""

    starts = 1
    asked = 0
    micros: int | None = 1
    error: Exception | None = None

    def spent(self, now: float) -> Spent | None:
        self.asked += 1
        if self.error:
            raise self.error
        return None if self.micros is None else Spent({TRAINED: self.micros})


class Store(MemoryBackend):
    """A store that counts what is asked of it, and may be out of reach."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), SystemClock())
        self.asked: list[str] = []
        self.is_silent = False
        self.fails = ""
        """What it does not answer."""

    def put(self, place: Place, data: Any) -> None:
        self._hears("put")
        super().put(place, data)

    def drop(self, places: Iterable[Place]) -> None:
        self._hears("drop")
        super().drop(places)

    def read(self, places: Iterable[Place], log: Any = None) -> Any:
        self._hears("read")
        return super().read(places, log)

    def _hears(self, what: str) -> None:
        if self.is_silent or what == self.fails:
            raise OutOfReach("silent")
        self.asked.append(what)


class Told:
    """A teller with what is around it."""

    def __init__(self) -> None:
        self.store, self.time, self.clock = Store(), Time(), Clock()
        self.news: list[TimeTold | Remark] = []
        self.teller = TimeTeller(self.store.notes, A, self.time, self.clock, self.news.append)  # type: ignore[arg-type]

    def beats(self, times: int = 1, life: Life | None = LIFE) -> list[str]:
        """Return what the store was asked beside these heartbeats."""
        before = len(self.store.asked)
        for _ in range(times):
            self.teller.beaten(life)
        return self.store.asked[before:]

    @property
    def record(self) -> NodeRecord | None:
        return self.store.notes.read(TIMES, [A]).get(A)


@pytest.fixture
def told() -> Told:
    return Told()


def test_it_is_put_once_for_each_start_of_the_workers_and_once_an_hour(told: Told) -> None:
    assert told.beats(5) == ["put"]
    told.time.starts, told.time.micros = 2, 20
    assert told.beats(5) == ["put"] and told.record == NodeRecord(A, Spent({TRAINED: 20}), at=7_000_000)
    asked = told.time.asked
    told.clock.at += EVERY / 1e6 - 1.0
    assert told.beats(5) == [] and told.time.asked == asked
    told.clock.at += 2.0
    assert told.beats(5) == ["put"]
    assert [each.record.own for each in told.news if isinstance(each, TimeTold)][1:] == [Spent({TRAINED: 20})] * 2


def test_it_is_put_anew_where_the_register_has_another_life_and_nothing_where_there_is_none(told: Told) -> None:
    assert told.beats(3, None) == []
    assert told.beats(3) == told.beats(3, OTHER) == ["put"]


def test_what_is_short_is_not_put(told: Told) -> None:
    told.time.micros = None
    assert told.beats(3) == [] and not told.teller.end() and told.teller.job(()) is None
    told.time.micros = 4
    assert told.beats(3) == ["put"]


def test_the_last_record_says_that_it_is_the_last(told: Told) -> None:
    told.beats()
    assert told.teller.end()
    assert told.beats(3) == ["put"]
    assert told.record and told.record.ended
    job = told.teller.job([NodeRecord(B, Spent({TRAINED: 2}))])
    assert job and (job.shares, job.nodes, set(job.ended)) == ({TRAINED: 3}, 2, {A})


def test_a_store_that_is_out_of_reach_is_told_later(told: Told) -> None:
    told.store.is_silent = True
    assert told.beats(3) == []
    told.store.is_silent = False
    assert told.beats(3) == ["put"] and told.record


def test_the_first_node_takes_over_and_removes_the_records_of_those_that_have_gone(told: Told) -> None:
    told.teller.sees(running("a b"))
    told.beats()
    told.store.notes.put(TIMES, B, NodeRecord(B, Spent({TRAINED: 10})))
    told.teller.sees(gone := edited(running("a b", "1:2"), "a", Evict(frozenset({B}))))
    told.store.is_silent = True
    assert told.beats() == []
    told.store.is_silent = False
    assert told.beats(3) == ["read", "put", "drop"]
    told.teller.sees(gone)
    assert told.beats(3) == [] and told.store.notes.read(TIMES, [B]) == {}
    assert told.record == NodeRecord(A, Spent({TRAINED: 1}), {TRAINED: 10}, 1, ((B, 0),), at=7_000_000)


def test_a_node_that_leaves_has_a_heartbeat_s_time_to_put_its_last_record(told: Told) -> None:
    told.teller.sees(running("a b"))
    told.beats()
    told.store.notes.put(TIMES, B, NodeRecord(B, Spent({TRAINED: 10})))
    told.teller.sees(edited(running("a b", "1:2"), "a", Evict(frozenset({B}))))
    told.beats()
    told.store.notes.put(TIMES, B, NodeRecord(B, Spent({TRAINED: 20}), ended=True))
    told.beats(2)
    assert told.record and told.record.taken == {TRAINED: 20}


def test_a_node_that_ends_takes_over_at_once(told: Told) -> None:
    told.teller.sees(running("a b"))
    told.beats()
    told.store.notes.put(TIMES, B, NodeRecord(B, Spent({TRAINED: 10})))
    told.teller.sees(edited(running("a b", "1:2"), "a", Evict(frozenset({B}))))
    told.teller.end()
    assert told.beats() == ["read", "put", "drop"] and told.record and told.record.taken == {TRAINED: 10}


def test_many_that_have_gone_are_taken_over_beside_many_heartbeats(told: Told) -> None:
    names = " ".join(f"n{number:03}" for number in range(2 * TAKEN_AT_ONCE))
    there = running(f"a {names}", "1:999")
    gone = [each for each in there.seats if each != A]
    told.teller.sees(there)
    told.beats()
    for each in gone:
        told.store.notes.put(TIMES, each, NodeRecord(each, Spent({TRAINED: 1})))
    told.teller.sees(edited(there, "a", Evict(frozenset(gone))))
    told.beats()
    for left in (TAKEN_AT_ONCE, 0):
        assert told.beats() == ["read", "put", "drop"]
        assert len(told.store.notes.read(TIMES, gone)) == left
    assert told.beats(3) == [] and told.record and told.record.taken == {TRAINED: len(gone)}


def test_a_record_that_could_not_be_removed_is_removed_later(told: Told) -> None:
    told.teller.sees(running("a b"))
    told.beats()
    told.store.notes.put(TIMES, B, NodeRecord(B, Spent({TRAINED: 10})))
    told.teller.sees(edited(running("a b", "1:2"), "a", Evict(frozenset({B}))))
    told.store.fails = "drop"
    told.beats(3)
    assert told.record and told.record.taken == {TRAINED: 10} and told.store.notes.read(TIMES, [B])
    told.store.fails = ""
    told.beats()
    assert told.record.taken == {TRAINED: 10} and not told.store.notes.read(TIMES, [B])
    assert told.beats(3) == []


def test_a_node_that_has_lost_its_seat_waits_until_the_others_have_read(told: Told) -> None:
    told.teller.sees(running("a b"))
    told.beats()
    told.teller.sees(edited(running("a b", "1:2"), "b", Evict(frozenset({A}))))
    told.time.starts, told.time.micros = 2, 3
    assert told.beats(HELD_BEATS) == []
    told.store.notes.drop(TIMES, [A])
    assert told.beats(3) == ["read"] * 3  # it has no seat: nobody would take over what it put now
    told.teller.sees(running("a b"))
    assert told.beats(3) == ["read", "put"]
    assert told.record == NodeRecord(A, Spent({TRAINED: 2}), part=1, at=7_000_000)


def test_a_node_whose_record_nobody_took_counts_on(told: Told) -> None:
    told.teller.sees(running("a b"))
    told.beats()
    told.teller.sees(edited(running("a b", "1:2"), "b", Evict(frozenset({A}))))
    told.teller.sees(running("a b"))
    told.time.starts, told.time.micros = 2, 3
    assert told.beats(HELD_BEATS + 1) == ["read", "put"]
    assert told.record == NodeRecord(A, Spent({TRAINED: 3}), at=7_000_000)


def test_an_error_at_the_end_costs_the_record_alone(told: Told) -> None:
    told.time.error = RuntimeError("a bug")
    assert not told.teller.end() and told.teller.job(()) is None
    (said,) = told.news
    assert isinstance(said, Remark)


def test_an_error_is_told_once_and_costs_the_record_alone(told: Told) -> None:
    told.time.error = KeyError("a share")
    assert told.beats(3) == []
    (said,) = told.news
    assert isinstance(said, Remark) and "is not told to the store: KeyError: 'a share'" in said.text
    assert not told.teller.end() and told.teller.job(()) is None


def test_a_node_that_has_lost_its_seat_puts_its_last_record_at_once(told: Told) -> None:
    told.teller.sees(running("a b"))
    told.beats()
    told.teller.sees(edited(running("a b", "1:2"), "b", Evict(frozenset({A}))))
    told.time.micros = 5
    assert told.beats(2) == []
    told.teller.sees(running("a b"))
    assert told.teller.end()
    assert "put" in told.beats() and told.record and told.record.ended
