"""The standstill watch before real processes: who stands still, and who makes progress."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from processes import comes_true
from worlds import LIFE, node, profile

from elastic.adapters import threads
from elastic.adapters.agent.hang_watch import Followed, Followers
from elastic.adapters.agent.standstill_watch import StandstillWatch
from elastic.adapters.clock import SystemClock
from elastic.adapters.report.stack_records import Seen
from elastic.adapters.workers.watch.stacks import see
from elastic.core.rendezvous import Standstill
from elastic.core.world import Member, WorldId, world_of

WORLD = world_of(WorldId(LIFE, 0), (Member(node("a"), profile("a")),))
ANSWER_S = 60.0


@contextmanager
def watched(folder: Path, *command: str) -> Iterator[tuple[StandstillWatch, SimpleQueue[Standstill], Sequence[int]]]:
    """A watch that follows this process, what it tells, and one entry for each look."""
    told, looks, log = SimpleQueue[Standstill](), list[int](), folder / "out.log"
    watch = StandstillWatch(0.4, SystemClock(), told.put, threads.shown)
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, start_new_session=True) as running:

        def look() -> tuple[Seen, ...]:
            looks.append(running.pid)
            return tuple(Seen(rank, rank, sighting, None) for rank, sighting in see({0: running.pid}, None).items())

        try:
            watch.follow(Followers(WORLD, {0: Followed(running.pid, None, (log,), None)}, look))
            yield watch, told, looks
        finally:
            watch.close()
            watch.close()
            running.kill()


def test_a_worker_that_sleeps_stands_still_until_the_store_answers(tmp_path: Path) -> None:
    with watched(tmp_path, "sleep", "1000") as (watch, told, looks):
        assert comes_true(lambda: len(looks) >= 30)
        last = told.get(timeout=ANSWER_S)
        while not told.empty():
            last = told.get()
        assert comes_true(lambda: len(looks) >= 60)
        assert told.empty() and last.since is not None
        watch.follow(None)
        assert told.get(timeout=ANSWER_S) == Standstill(None)


def test_a_worker_that_prints_or_computes_makes_progress_again_and_again(tmp_path: Path) -> None:
    for program in ("while True: sum(range(100_000))", "import time\nwhile True: print('step'); time.sleep(0.1)"):
        with watched(tmp_path, sys.executable, "-u", "-c", program) as (_, told, _):
            times = [told.get(timeout=ANSWER_S).since for _ in range(4)]
            assert None not in times
            assert times == sorted(times, key=lambda since: since or 0.0) and len({*times}) == 4


def test_a_watch_that_never_looked_is_closed_at_once() -> None:
    watch = StandstillWatch(600.0, SystemClock(), lambda told: None, threads.shown)
    watch.follow(None)
    watch.close()


BURNS = """
import signal, time

def burn(*_):
    began = time.process_time()
    while time.process_time() < began + 0.05:
        pass
    print("burnt", flush=True)

signal.signal(signal.SIGUSR1, burn)
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_what_a_look_costs_a_worker_is_no_progress() -> None:
    """A worker writes its stack itself, which takes CPU time."""
    command, told = (sys.executable, "-c", BURNS), SimpleQueue[Standstill]()
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as running:
        looks = list[int]()
        assert running.stdout is not None
        running.stdout.readline()

        def look() -> tuple[Seen, ...]:
            assert running.stdout is not None
            running.send_signal(signal.SIGUSR1)
            looks.append(len(running.stdout.readline()))
            return ()

        watch = StandstillWatch(0.4, SystemClock(), told.put, threads.shown)
        try:
            watch.follow(Followers(WORLD, {0: Followed(running.pid, None, (), None)}, look))
            assert comes_true(lambda: len(looks) >= 12)
            assert told.qsize() <= 4  # a tick of a look may be counted after it; if all were progress, 12 would be told
        finally:
            watch.close()
            running.kill()
