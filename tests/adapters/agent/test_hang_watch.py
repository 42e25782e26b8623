"""The hang watch before real processes: what it takes for a move, and whom it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
from attrs import evolve
from processes import comes_true, cut_name, is_stopped
from worlds import LIFE, node, profile

from elastic.adapters import threads
from elastic.adapters.agent.hang_watch import Followed, Followers, HangWatch, counters, sign
from elastic.adapters.clock import SystemClock
from elastic.adapters.report.stack_records import Seen
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import STACKS
from elastic.adapters.workers.messages.pages import read_page
from elastic.adapters.workers.messages.progress import VARIABLE
from elastic.adapters.workers.watch.stacks import Sighting, Task, see
from elastic.core.agent import Hung, Stands
from elastic.core.hangs import HangSettings, Watch
from elastic.core.world import Member, Node, Stacks, World, WorldId, world_of

TOLD = SimpleQueue[Stands | Hung]
SLEEPS = "import time; time.sleep(1_000)"
CALLS = "import elastic, time\nwhile True:\n    elastic.progress(); time.sleep(0.01)"
WORLD = world_of(WorldId(LIFE, 0), (Member(node("a"), profile("a")), Member(node("b"), profile("b"))))


def see_all(pids: Mapping[int, int]) -> tuple[Seen, ...]:
    return tuple(Seen(rank, rank, sighting, None) for rank, sighting in see(pids, None).items())


@contextmanager
def watched(
    tmp_path: Path, programs: Sequence[str], settings: HangSettings, store: MemoryStore | None = None
) -> Iterator[tuple[TOLD, list[subprocess.Popen[bytes]], HangWatch]]:
    told: TOLD = SimpleQueue()
    backend = MemoryBackend(store or MemoryStore(), SystemClock())
    watch = HangWatch(settings, node("a"), backend, None, SystemClock(), told.put, threads.shown)
    workers, running = dict[int, Followed](), list[subprocess.Popen[bytes]]()
    try:
        for rank, program in enumerate(programs):
            page, log = f"{tmp_path}/page.{rank}", tmp_path / f"{rank}.log"
            with log.open("wb") as out:
                command = [sys.executable, "-u", "-c", program]
                running.append(subprocess.Popen(command, stdout=out, env={VARIABLE: page}, start_new_session=True))
            workers[rank] = Followed(running[-1].pid, page, (log, tmp_path / "none"), tmp_path / f"error.{rank}")

        def look() -> tuple[Seen, ...]:
            return see_all({rank: worker.pid for rank, worker in workers.items()})

        watch.start()
        watch.follow(Followers(WORLD, workers, look))
        yield told, running, watch
    finally:
        watch.close()
        watch.close()
        for process in running:
            process.kill()
            process.wait()


def test_a_node_that_stands_still_says_so_and_takes_it_back_when_a_worker_runs_on(tmp_path: Path) -> None:
    waits = (
        f"import os, time\nwhile not os.path.exists({str(tmp_path / 'gate')!r}): time.sleep(0.001)\nprint(1)\n{SLEEPS}"
    )
    with watched(tmp_path, [SLEEPS, "import signal; signal.pause()"], HangSettings(0.4)) as (told, _, watch):
        standing = told.get()
        assert isinstance(standing, Stands) and [each.rank for each in standing.seen] == [0, 1]
        while not isinstance(hung := told.get(), Hung):
            pass  # a start may be slow, and look like a hang
        suspected = hung.report
        assert (suspected.round, suspected.missing, suspected.odd) == (0, (node("b"),), None)
        assert suspected.silent_s >= 0.4 and suspected.stacks[0].node == node("a")
        watch.follow(None)
    with watched(tmp_path, [SLEEPS, waits], HangSettings(0.4)) as (told, _, _):
        told.get()
        (tmp_path / "gate").touch()
        while (heard := told.get()) != Stands(0, ()):
            assert isinstance(heard, Stands | Hung)


def test_a_node_whose_stacks_the_store_does_not_show_says_again_where_they_are(tmp_path: Path) -> None:
    """Nobody puts here what the watch tells, as where the store was away."""
    with watched(tmp_path, [SLEEPS], HangSettings(0.4)) as (told, _, _):
        standings = 0
        while standings < 2:
            heard = told.get()
            standings = standings + 1 if isinstance(heard, Stands) and heard.seen else standings


def test_what_a_node_says_counts_once_though_the_store_shows_it_too() -> None:
    """Else a rank that is alone at its place would seem to be two."""
    backend = MemoryBackend(MemoryStore(), SystemClock())
    watch = HangWatch(HangSettings(9.0), node("a"), backend, None, SystemClock(), lambda told: None, threads.shown)
    own, other = (Stacks(node(name), 0, ((rank, name),)) for rank, name in enumerate("ab"))
    watch._own = own
    for stacks in (own, other, Stacks(node("c"), 1, ((2, "of another round"),))):
        backend.notes.put(STACKS, stacks.node, stacks)
    others = watch._others(WORLD)
    assert (others.stacks, others.on_record) == ((own, other), True)
    watch.close()


def test_the_watch_begins_anew_with_a_round(tmp_path: Path) -> None:
    """People have heard of the hang of round 0. That the workers of round 1 stand still is another one."""
    with watched(tmp_path, [SLEEPS], HangSettings(0.4)) as (told, running, watch):
        while not isinstance(told.get(), Hung):
            pass
        again = evolve(WORLD, id=WorldId(LIFE, 1))
        worker = Followed(running[0].pid, None, (), None)
        watch.follow(Followers(again, {0: worker}, lambda: see_all({0: running[0].pid})))
        while not (isinstance(heard := told.get(), Hung) and heard.round == 1):
            pass


class Hand(SystemClock):
    """A clock that a test sets."""

    at = 1_000.0

    def now(self) -> float:
        return self.at


@pytest.mark.parametrize("is_stopped", [False, True])
def test_nothing_is_said_of_workers_that_are_being_stopped_while_the_watch_looks(is_stopped: bool) -> None:
    """A look takes its time. What it finds of workers that are stopped by then is no hang, and blames nobody."""
    told, clock = list[Stands | Hung](), Hand()

    def absent(world: World) -> Sequence[Node]:
        watch.follow(None if is_stopped else followers)
        return ()

    backend = MemoryBackend(MemoryStore(), clock)
    watch = HangWatch(HangSettings(4.0), node("a"), backend, None, clock, told.append, threads.shown, absent)
    with subprocess.Popen(["sleep", "1000"]) as process:
        followers = Followers(WORLD, {0: Followed(process.pid, None, (), None)}, lambda: see_all({0: process.pid}))
        seen = Watch()
        for _ in range(10):
            watch.follow(followers)
            seen = watch._look(seen, followers)
            clock.at += 1.0
        process.kill()
    watch.close()
    assert bool(told) is not is_stopped


def test_a_worker_that_calls_for_progress_stands_still_when_it_calls_no_longer(tmp_path: Path) -> None:
    with watched(tmp_path, [SLEEPS, CALLS], HangSettings(0.4)) as (told, running, _):
        assert comes_true(lambda: read_page(f"{tmp_path}/page.1").calls > 0)
        while not told.empty():
            told.get()
        running[1].send_signal(19)
        assert comes_true(lambda: is_stopped(running[1].pid))
        while not (isinstance(heard := told.get(), Stands) and heard.seen):
            pass


def test_the_rank_that_is_elsewhere_than_all_others_is_killed_with_a_word_why(tmp_path: Path) -> None:
    store = MemoryStore()
    backend = MemoryBackend(store, SystemClock())
    with watched(tmp_path, [SLEEPS], HangSettings(0.4, restarts=True), store) as (told, running, watch):
        standing = told.get()
        assert isinstance(standing, Stands)
        backend.notes.put(STACKS, node("b"), Stacks(node("b"), 0, ((1, "elsewhere"), (2, "elsewhere"))))
        assert running[0].wait() == -9
        assert watch.blamed == {running[0].pid}
        while not isinstance(heard := told.get(), Hung) or heard.report.missing:
            pass
        assert heard.report.odd == 0
    (error,) = tmp_path.glob("error.*")
    said = json.loads(error.read_text())["message"]["message"]
    assert said.startswith("hang: no rank made progress for ") and "; this rank alone was " in said


def test_the_counts_of_the_kernel_tell_if_a_thread_moves_that_runs() -> None:
    asleep, runs = Task(1, "S", "futex"), Task(threading.get_native_id(), "R")
    text = "Stack (most recent call first):"
    assert sign(Sighting(1, text, (asleep,))) == text
    own = sign(Sighting(threading.get_native_id(), text, (runs,)))
    assert own.startswith(text) and "voluntary_ctxt_switches" in own
    assert text not in sign(Sighting(1, text, (asleep,), is_cut=True))
    assert sign(Sighting(2**22 + 1, "", ())) == "\n ()"


def test_a_shell_that_waits_for_a_child_moves_as_its_child_does() -> None:
    waits = "import os\nwhile os.read(0, 1): os.write(1, b'x')"
    shell = ["sh", "-c", f'{sys.executable} -c "{waits}"; true']
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        inwards, outwards, seen = process.stdin, process.stdout, set[str]()
        asleep = Task(process.pid, "S", "do_wait")
        assert inwards and outwards

        def moves() -> bool:
            inwards.write(b"x")
            outwards.read(1)
            seen.add(sign(Sighting(process.pid, "", (asleep,))))
            return len(seen) == 4  # the kernel counts a child only when it had to wait

        assert comes_true(moves)
        assert sign(Sighting(process.pid, "text", (asleep,))) == "text"
        inwards.close()


def test_a_process_whose_name_is_cut_in_a_character_is_looked_at_like_any() -> None:
    with cut_name():
        assert len(counters(os.getpid())) == 2
