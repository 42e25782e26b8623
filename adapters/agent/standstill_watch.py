"""Looks at the workers while the store is silent: the rendezvous' client is told since when none of them makes progress.

A node whose store is gone and whose peers are dead ends only if its workers stand still (`stranded` in the core's context).
`core.standstill` decides what is progress. A look may take a second, so the watch has a thread, from the first silence on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...core import standstill
from ...core.rendezvous import Standstill
from ...core.standstill import Sight, Watch
from .. import threads
from ..clock import Clock
from ..process_stat import stat
from ..workers.output.logs import size
from .hang_watch import Followed, Followers, family, is_dead, sign

_JOIN_TIMEOUT_S = 5.0


class StandstillWatch:
    """Looks at the workers that it follows, until `close`. `tell` is called in its thread, and `failed` with an error that
    ends it."""

    def __init__(
        self,
        join_timeout: float,
        clock: Clock,
        tell: Callable[[Standstill], None],
        failed: Callable[[BaseException], object],
    ) -> None:
        self._every_s = standstill.every_s(join_timeout)
        self._clock = clock
        self._tell = tell
        self._followers: Followers | None = None
        self._is_over = False
        self._wake = threading.Event()
        self._thread = threading.Thread(
            target=threads.guarded(self._run, failed), name="elastic-standstill", daemon=True
        )

    def follow(self, followers: Followers | None) -> None:
        """Look at these workers from now on, the store being silent; None: it answers. Raises NoThread."""
        self._followers = followers
        if followers and self._thread.ident is None:
            threads.start(self._thread)
        self._wake.set()

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._is_over = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_TIMEOUT_S)

    def _run(self) -> None:
        watch, told = Watch(), None
        while not self._is_over:
            followers = self._followers
            sights = _sights(followers) if followers else {}
            watch = standstill.look(watch, sights, self._clock.now())
            if watch.since != told:
                told = watch.since
                self._tell(Standstill(told))
            self._wake.wait(self._every_s if followers else None)
            self._wake.clear()


def _sights(followers: Followers) -> dict[int, Sight]:
    """Return what can be seen from outside of the workers that live."""
    live = {rank: worker for rank, worker in followers.workers.items() if not is_dead(worker.pid)}
    before = {rank: _cpu(worker) for rank, worker in live.items()}
    outputs = {rank: sum(map(size, worker.outputs)) for rank, worker in live.items()}
    stacks = {seen.rank: sign(seen.sighting) for seen in followers.look()}
    return {
        rank: Sight(worker.pid, outputs[rank], before[rank], _cpu(worker), stacks.get(rank, ""))
        for rank, worker in live.items()
    }


def _cpu(worker: Followed) -> int:
    """Return the CPU time of a worker and its descendants, in the kernel's ticks."""
    return sum(map(_ticks, family(worker.pid)))


def _ticks(pid: int) -> int:
    fields: Sequence[bytes] = ()
    with suppress(OSError):
        fields = stat(pid)
    return sum(map(int, fields[11:13]))
