"""The notes of a node in the store: written beside heartbeats, and again where it got lost."""

from __future__ import annotations

from typing import Any

from worlds import node

from elastic.adapters.agent.note_teller import NoteTeller
from elastic.adapters.clock import SystemClock
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import ENDED, STANDBYS, EarlyEnds, StandbyNote
from elastic.adapters.store.port import OutOfReach, Place
from elastic.core.world import Life

NONE, SOME = StandbyNote(0, None), StandbyNote(2, 1.5)
LIFE, OTHER = Life("life"), Life("other")


class Store(MemoryBackend):
    """A store that counts writes, and may be out of reach."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), SystemClock())
        self.written: list[object] = []
        self.is_silent = False

    def clone(self) -> Store:
        return self

    def put(self, place: Place, data: Any) -> None:
        if self.is_silent:
            raise OutOfReach("silent")
        self.written.append(data)
        super().put(place, data)


def test_each_change_is_written_once_after_a_heartbeat() -> None:
    store = Store()
    teller = NoteTeller(store.notes, node("a"))
    teller.beaten(LIFE)
    teller.tell(STANDBYS, NONE)
    assert store.written == []
    for note in (NONE, SOME):
        teller.tell(STANDBYS, note)
        for _ in range(3):
            teller.beaten(LIFE)
    assert store.written == [NONE, SOME]
    assert store.notes.read(STANDBYS, [node("a")]) == {node("a"): SOME}


def test_notes_of_two_kinds_are_written_beside_each_other() -> None:
    store, ended = Store(), EarlyEnds(3, ((0, "12:00"),))
    teller = NoteTeller(store.notes, node("a"))
    teller.tell(STANDBYS, SOME)
    teller.tell(ENDED, ended)
    teller.beaten(LIFE)
    assert store.written == [SOME, ended]
    assert store.notes.read(ENDED, [node("a"), node("b")]) == {node("a"): ended}


def test_a_store_without_a_register_is_told_nothing_and_one_that_lost_its_memory_is_told_again() -> None:
    store = Store()
    teller = NoteTeller(store.notes, node("a"))
    teller.tell(STANDBYS, NONE)
    teller.beaten(None)
    assert store.written == []
    teller.beaten(LIFE)
    teller.beaten(OTHER)
    assert store.written == [NONE, NONE]


def test_a_store_that_is_out_of_reach_is_told_after_a_later_heartbeat() -> None:
    store = Store()
    teller = NoteTeller(store.notes, node("a"))
    teller.tell(STANDBYS, NONE)
    store.is_silent = True
    teller.beaten(LIFE)
    store.is_silent = False
    teller.beaten(LIFE)
    assert store.written == [NONE]
