"""Writes down what a node's workers were doing when they were stopped: in files beside their logs, and in the store. Tells
people who ask what the workers are doing now.

The agent's thread looks at the workers that it stops, which takes milliseconds. What may take longer (a disk, a store, a
look at workers that run on) has its own thread, which starts with the first stacks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from ...core.values import evolve, frozen
from ...core.world import Node, Stacks, World
from .. import threads
from ..disk import Disk, Patience, StandsStill
from ..store.notes import STACKS
from ..store.port import Backend, StoreError
from ..store.queries import Query, Reply

if TYPE_CHECKING:
    from ..workers.watch.stacks import Sighting

_JOIN_TIMEOUT_S = 5.0
_HANG = "hang.txt"
"""The file beside a worker's stacks.txt, for what it was doing when a hang was suspected last."""


@frozen
class Seen:
    """One worker that was seen, and the file for all that is known of it; None for no file."""

    rank: int
    local_rank: int
    sighting: Sighting
    file: Path | None


class StackRecords:
    """The stacks of one node, round after round, and those of the others. The agent's thread calls."""

    def __init__(self, node: Node, backend: Backend, wall_text: Callable[[], str], disk: Disk) -> None:
        """`backend` stays the caller's; the thread has a clone of it. `disk` has the files."""
        self._disk = disk
        self._node = node
        self._backend = backend
        self._wall_text = wall_text
        self._queue: SimpleQueue[Callable[[Backend], None] | None] = SimpleQueue()
        self._own: Backend | None = None
        self._thread: threading.Thread | None = None
        self._round: int | None = None
        self._known: dict[Node, Stacks] = {}
        """It holds what was put, or read, last: a store that is silent when the report is made takes nothing away."""

    def put(self, round: int, seen: tuple[Seen, ...], anew: bool = False) -> None:
        """Have these written down; `anew`: also over older ones. A host without a thread leaves them out."""
        if self._has_thread():
            self._round = round
            self._known[self._node] = stacks = self._stacks(round, seen)
            self._queue.put(partial(self._record, stacks, seen, self._wall_text(), anew))

    def suspect(self, round: int, seen: tuple[Seen, ...]) -> None:
        """Have it put on record that these workers seem to hang there; none: that they do not any more."""
        beside = (evolve(each, file=each.file and each.file.with_name(_HANG)) for each in seen)
        self.put(round, tuple(beside), anew=True)

    def reply(self, query: Query, look: Callable[[], tuple[Seen, ...]]) -> None:
        """Have this query answered by what a look shows. A host without a thread gives no answer."""
        if self._has_thread():
            self._queue.put(partial(self._reply, query, look))

    def _reply(self, query: Query, look: Callable[[], tuple[Seen, ...]], backend: Backend) -> None:
        seen = look()
        texts = ["\n".join(each.sighting.lines) for each in seen if each.rank == query.rank]
        with suppress(StoreError):
            backend.notes.put_reply(Reply(query.id, self._stacks(query.round, seen), "".join(texts)))

    def _stacks(self, round: int, seen: tuple[Seen, ...]) -> Stacks:
        in_order = sorted(seen, key=lambda each: each.rank)
        return Stacks(self._node, round, tuple((each.rank, each.sighting.place) for each in in_order))

    def _has_thread(self) -> bool:
        """Start the thread if there is none yet. Return False if the host has none for us."""
        if self._thread is None:
            try:
                own = self._backend.clone()
            except (StoreError, OSError):
                return False
            thread = threading.Thread(target=self._run, args=(own,), name="elastic-stacks", daemon=True)
            try:
                threads.start(thread, patience_s=0)
            except threads.NoThread:
                own.close()
                return False
            self._own, self._thread = own, thread
        return True

    def of(self, world: World) -> tuple[Stacks, ...]:
        """Return what the nodes of this world have put on record for its round, as far as the store has told of it."""
        nodes = world.nodes
        with suppress(StoreError):
            on_record = self._backend.notes.read(STACKS, nodes)
            self._known.update((node, each) for node, each in on_record.items() if each.round == world.round)
        found = (self._known[node] for node in nodes if node in self._known)
        return tuple(stacks for stacks in found if stacks.round == world.round)

    def is_missing(self, world: World, nodes: Collection[Node]) -> bool:
        """Return True if this node has put its stacks of this round, and one of these nodes has not yet."""
        return self._round == world.round and not {each.node for each in self.of(world)}.issuperset(nodes)

    def close(self, patience: Patience | None = None) -> None:
        """Have what is there written down, within a time, and end the thread. Idempotent."""
        if self._thread is None or self._own is None:
            return
        self._queue.put(None)
        self._thread.join(_JOIN_TIMEOUT_S)
        self._own.close()
        self._thread.join(_JOIN_TIMEOUT_S)
        with suppress(StandsStill):
            (patience or Patience()).spend(lambda left_s: self._disk.do(lambda: None, patience_s=left_s))

    def _record(self, stacks: Stacks, seen: tuple[Seen, ...], when: str, anew: bool, backend: Backend) -> None:
        self._disk.later(partial(_write, seen, when, anew))
        with suppress(StoreError):
            backend.notes.put(STACKS, stacks.node, stacks)

    def _run(self, backend: Backend) -> None:
        while job := self._queue.get():
            job(backend)


def _write(seen: tuple[Seen, ...], when: str, anew: bool) -> None:
    for each in seen:
        if anew and each.file:
            with suppress(OSError):
                each.file.unlink()
        write(each, when)


def write(seen: Seen, when: str) -> None:
    """Write all that is known of a worker into its file, unless there is one. A file that cannot be written is left out."""
    if seen.file is None:
        return
    title = f"rank {seen.rank}, local rank {seen.local_rank}, pid {seen.sighting.pid}, {when}"
    with suppress(OSError), open(seen.file, "x", encoding="utf-8") as file:
        file.write("\n".join((title, *seen.sighting.lines)) + "\n")


def grouped(stacks: tuple[Stacks, ...]) -> Mapping[str, tuple[int, ...]]:
    """Return the ranks at each place, the largest group first, and of equal ones that with the lowest rank."""
    found: dict[str, list[int]] = {}
    for each in stacks:
        for rank, place in each.places:
            found.setdefault(place, []).append(rank)
    by_size = sorted(found.items(), key=lambda item: (-len(item[1]), min(item[1])))
    return {place: tuple(sorted(ranks)) for place, ranks in by_size}
