"""Run many simulations on many cores, and yield what each showed in the order of their numbers.

Workers are fresh processes (spawn: no thread of ours is copied) that take chunks of run numbers. A few chunks are queued
ahead, never more, so a campaign without end has a short queue. The workers stop when the caller stops: at the end of their
chunk, or with this process. What they import to begin with is not looked for in the folder in which the command is run.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import count, islice
from multiprocessing import get_context, parent_process

from ...core.sim.calls.call_sometimes import SOMETIMES as OF_CALLS
from ...core.sim.calls.nodes_walk import walked_over_nodes
from ...core.sim.calls.over_nodes import SOMETIMES as OVER_NODES
from ...core.sim.calls.walk import Walk, walked
from ...core.sim.run import run_seed, wander
from ...core.sim.swarm import Shape
from ...core.sim.tally import Broken, Showed, showed
from ...core.values import frozen
from .own_property import loaded

FAULT = "fault: "
"""So a step of a world of calls notes a fault."""
_CHUNK = 8
"""The number of runs in a chunk."""
_AHEAD = 2
"""The number of chunks per worker that run or wait."""


@frozen
class Campaign:
    """Runs that belong together: a seed, their shape, and where a user's own properties are written down."""

    seed: int
    shape: Shape
    properties: tuple[tuple[str, str], ...] = ()
    """A Python file, and the name of the function in it."""

    def run(self, number: int) -> Showed:
        also = tuple(loaded(path, name) for path, name in self.properties)
        try:
            return showed(number, wander(run_seed(self.seed, number), self.shape, also=also))
        except Exception as bug:
            bug.add_note(f"in run {number} of seed {self.seed:#x}, {self.shape}")
            raise


@frozen
class Calls:
    """Runs of ranks that call wrapped functions. Their time, writes, rounds and operations are not counted."""

    seed: int
    properties: tuple[tuple[str, str], ...] = ()
    nodes: int | None = None
    """The ranks live in the workers of this many simulated nodes; None: there are no nodes."""

    @property
    def sometimes(self) -> tuple[str, ...]:
        return OF_CALLS if self.nodes is None else OVER_NODES

    def walk(self, number: int, tell: bool = False) -> Walk:
        seed, also = run_seed(self.seed, number), tuple(loaded(*each) for each in self.properties)
        return walked(seed, also=also) if self.nodes is None else walked_over_nodes(seed, self.nodes, tell, also)

    def run(self, number: int) -> Showed:
        walk = self.walk(number)
        seen = {what: often for what, often in walk.seen.items() if what in self.sometimes or what.startswith(FAULT)}
        broken = Broken(*walk.broken) if walk.broken else None
        return Showed(number, walk.steps, 0, 0, 0.0, {}, seen, broken, walk.strength)


def campaign(what: Campaign | Calls, runs: int | None, jobs: int) -> Generator[Showed, None, None]:
    """Yield what each run shows, from number 0 on; without end if `runs` is None."""
    numbers = iter(range(runs) if runs is not None else count())
    if jobs == 1:
        yield from map(what.run, numbers)
        return
    with _safe_path(), ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_begins) as workers:
        under_way = deque[Future[list[Showed]]]()
        try:
            while True:
                while len(under_way) < jobs * _AHEAD and (chunk := list(islice(numbers, _CHUNK))):
                    under_way.append(_submitted(workers, what, chunk))
                if not under_way:
                    return
                yield from under_way.popleft().result()
        finally:
            workers.shutdown(cancel_futures=True)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Meanwhile a Python that is started looks for no module in its folder: a queue.py there is none of Python's own."""
    given = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if given is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = given


def _submitted(workers: ProcessPoolExecutor, what: Campaign | Calls, chunk: list[int]) -> Future[list[Showed]]:
    """Submit a chunk. A worker that starts here ignores Ctrl-C, and the SIGTERM that `timeout` sends to the whole group: the
    caller hears it and ends the workers in order."""
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        return workers.submit(_chunk, what, chunk)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


def _chunk(what: Campaign | Calls, numbers: list[int]) -> list[Showed]:
    return [what.run(number) for number in numbers]


_COLLECTED_EVERY = 50_000
"""New objects between two garbage collections. A run makes many values and hardly a reference cycle: Python's default, 700,
costs 2 % of the time."""


def collect_seldom() -> None:
    """Collect garbage seldom, in a process that only simulates."""
    gc.set_threshold(_COLLECTED_EVERY)


def _begins() -> None:
    """Set up a worker: it ends with the process that started it."""
    collect_seldom()
    threading.Thread(target=_ends_with_its_parent, daemon=True).start()


def _ends_with_its_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
