"""What the workers of a node were doing: on the job's record, in files, and grouped over all nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from processes import comes_true
from worlds import LIFE, node, profile

from elastic.adapters.clock import SystemClock
from elastic.adapters.disk import Disk
from elastic.adapters.report.stack_records import Seen, StackRecords, grouped, write
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import STACKS
from elastic.adapters.store.port import Found, Log, OutOfReach, Place
from elastic.adapters.store.queries import Query, Reply
from elastic.adapters.workers.watch.stacks import Sighting, Task
from elastic.core.world import Member, Stacks, World, WorldId, world_of

ASLEEP = Sighting(7, "", (Task(7, "S", "futex_do_wait", "202"),))
HOSTILE = Sighting(8, "\x1b]0;title\x07\n\u202e", (Task(8, "R"),))


def world(round: int = 0) -> World:
    return world_of(WorldId(LIFE, round), tuple(Member(node(name), profile(name)) for name in "ab"))


def test_a_node_s_stacks_go_on_record_and_into_files_and_those_of_the_others_are_awaited(
    tmp_path: Path, disk: Disk
) -> None:
    backend = MemoryBackend(MemoryStore(), SystemClock())
    records = StackRecords(node("a"), backend, lambda: "now", disk)
    both = node("a"), node("b")
    assert not records.is_missing(world(), both)
    records.put(0, (Seen(1, 1, ASLEEP, tmp_path / "b"), Seen(0, 0, HOSTILE, None)))
    assert (
        records.is_missing(world(), both)
        and not records.is_missing(world(), [])
        and not records.is_missing(world(1), both)
    )
    records.close()
    records.close()
    (found,) = records.of(world())
    assert found.places == ((0, "outside Python"), (1, "asleep in futex_do_wait (kernel)"))
    assert records.of(world(1)) == ()
    backend.notes.put(STACKS, node("b"), Stacks(node("b"), 0))
    assert not records.is_missing(world(), both)
    assert (tmp_path / "b").read_text() == (
        "rank 1, local rank 1, pid 7, now\nasleep in futex_do_wait (kernel)\n"
        "kernel: task 7, state S, in futex_do_wait, system call 202\n\n\n"
    )


def test_workers_that_seem_to_hang_have_a_file_of_their_own_for_the_last_time(tmp_path: Path, disk: Disk) -> None:
    backend = MemoryBackend(MemoryStore(), SystemClock())
    records = StackRecords(node("a"), backend, iter(("once", "again", "late")).__next__, disk)
    stacks = tmp_path / "stacks.txt"
    for _ in range(2):
        records.suspect(0, (Seen(1, 1, ASLEEP, stacks), Seen(0, 0, ASLEEP, None)))
    records.suspect(0, ())
    records.close()
    assert records.of(world()) == (Stacks(node("a"), 0),) and not stacks.exists()
    assert stacks.with_name("hang.txt").read_text().startswith("rank 1, local rank 1, pid 7, again\n")


def test_a_store_that_falls_silent_takes_nothing_away_that_was_put_or_read(disk: Disk) -> None:
    class Silent(MemoryBackend):
        is_silent = False

        def clone(self) -> Silent:
            return Silent(self._store, self._clock)

        def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
            if self.is_silent:
                raise OutOfReach("no answer")
            return super().read(places, log)

    backend = Silent(MemoryStore(), SystemClock())
    records = StackRecords(node("a"), backend, lambda: "now", disk)
    backend.notes.put(STACKS, node("a"), Stacks(node("a"), 0))
    records.put(1, (Seen(0, 0, HOSTILE, None),))
    own, other = Stacks(node("a"), 1, ((0, "outside Python"),)), Stacks(node("b"), 1, ((1, "asleep"),))
    backend.is_silent = True
    assert records.of(world(1)) == (own,)
    backend.is_silent = False
    backend.notes.put(STACKS, other.node, other)
    assert set(records.of(world(1))) == {own, other}
    backend.is_silent = True
    assert set(records.of(world(1))) == {own, other} and records.of(world(2)) == ()
    records.close()


def test_who_asks_is_told_of_all_workers_and_of_one_of_them_all_that_is_known(disk: Disk) -> None:
    store = MemoryStore()
    backend = MemoryBackend(store, SystemClock())
    records = StackRecords(node("a"), backend, lambda: "now", disk)
    seen = Seen(3, 1, HOSTILE, None), Seen(2, 0, ASLEEP, None)
    for number, rank in enumerate((None, 3)):
        query = Query(str(number) * 16, 5, rank)
        backend.notes.put_query(query)
        records.reply(query, lambda: seen)
        assert comes_true(lambda: bool(backend.notes.replies([node("a")]).to(query)))  # noqa: B023
        text = "" if rank is None else "\n".join(HOSTILE.lines)
        places = ((2, "asleep in futex_do_wait (kernel)"), (3, "outside Python"))
        assert backend.notes.replies([node("a")]).replies == {
            node("a"): Reply(query.id, Stacks(node("a"), 5, places), text)
        }
    assert backend.notes.read(STACKS, [node("a")]) == {} and not records.is_missing(world(5), [node("b")])
    records.close()


def test_a_file_is_printable_and_written_once(tmp_path: Path) -> None:
    write(Seen(0, 0, HOSTILE, tmp_path / "a"), "now")
    text = (tmp_path / "a").read_text()
    assert text.endswith("\\x1b]0;title\\x07\n\\u202e\n")
    write(Seen(0, 0, ASLEEP, tmp_path / "a"), "later")
    assert (tmp_path / "a").read_text() == text
    write(Seen(0, 0, ASLEEP, tmp_path / "gone" / "a"), "later")


def test_places_are_grouped_over_the_nodes_the_largest_first() -> None:
    stacks = (Stacks(node("a"), 0, ((0, "x"), (1, "y"))), Stacks(node("b"), 0, ((3, "z"), (2, "y"))))
    assert list(grouped(stacks).items()) == [("y", (1, 2)), ("x", (0,)), ("z", (3,))]
    assert grouped(()) == {}
