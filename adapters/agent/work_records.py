"""Writes down what each start of a worker came to, when it has ended: its life, and what its page says (`core/work.py`).

The agent's own thread calls. While a worker runs its page is read for its step alone, at heartbeats, until one is above all
that were told before its round. The highest step that a local rank has told
goes into the pages of its later starts, so that they can tell when they have passed it. Ranks may count differently (a
trainer steps, an actor episodes), so one that has told none yet gets the lowest of the others' steps.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING

from ...core.causes import echo_of
from ..clock import Clock
from ..workers.messages.pages import put_before, read_step, take_page
from ..workers.messages.progress import VARIABLE
from ..workers.start.attempts import Attempt
from ..workers.worker_port import Exit

if TYPE_CHECKING:
    from ...core.trace.steps import HangEnd


class WorkRecords:
    """The starts of this node's workers, by local rank. `took` writes down a function of the core with what came of it."""

    def __init__(self, clock: Clock, took: Callable[..., object], blamed: Container[int] = ()) -> None:
        """`blamed` has the process ids of the workers that the hang watch has ended."""
        self._clock = clock
        self._blamed = blamed
        self._took = took
        self._running: dict[int, tuple[Attempt, int, int | None]] = {}
        """How each worker was started that has not ended, which start of its rank in the round it was, and what had been
        reached by then."""
        self._last: dict[int, tuple[int, int]] = {}
        """The round of the last start of each worker, and the number of that start."""
        self._reached: dict[int, int] = {}
        """The highest step that each local rank has told which has ended."""
        self._are_ahead = False
        """A worker was seen to be ahead of its bar in this round."""
        self._bars: dict[int, int] = {}
        """The highest step that was told before this round, by local rank; nothing where that is not known."""

    def begin(self, attempts: Mapping[int, Attempt]) -> None:
        """Note that these workers are about to start."""
        self._are_ahead = False
        for local_rank, attempt in attempts.items():
            round, number = self._last.get(local_rank, (None, 0))
            number = number + 1 if round == attempt.round else 0
            self._last[local_rank] = attempt.round, number
            before = self._reached.get(local_rank, min(self._reached.values(), default=None))
            self._running[local_rank] = attempt, number, before
            if before is not None:
                self._bars[local_rank] = before
            elif attempt.round == 0:
                self._bars[local_rank] = -1  # the job begins with this round
            else:
                self._bars.pop(local_rank, None)
            page = attempt.spec.environment.get(VARIABLE)
            if page and before is not None:
                put_before(page, before)

    def move(self) -> None:
        """Note that the workers run on in another round."""
        self._are_ahead = False
        for local_rank in self._bars.keys() & self._running.keys():
            self._bars[local_rank] = max(self._bars[local_rank], self._step(local_rank))

    def get_ahead(self) -> bool:
        """Return True, once in a round, if a worker that runs has told a step above all that were told before it."""
        if self._are_ahead:
            return False
        bars = self._bars.items()
        self._are_ahead = any(self._step(rank) > bar for rank, bar in bars if rank in self._running)
        return self._are_ahead

    def _step(self, local_rank: int) -> int:
        """Return the step of a worker that runs; -1 for none."""
        step = read_step(self._running[local_rank][0].spec.environment.get(VARIABLE))
        return -1 if step is None else step

    @staticmethod
    def get_ready() -> None:
        """Load what the end of a worker takes. While workers run there is time for it, and at a restart there is not."""
        from ...core import work  # noqa: F401

        echo_of("", None)  # Python keeps the patterns that it compiles here

    def ended(self, exit: Exit) -> None:
        """Write down what this worker came to. One that never ran came to nothing. A host that cannot load what this takes
        has no record of it."""
        if exit.local_rank not in self._running or not exit.pid:
            return
        attempt, number, before = self._running.pop(exit.local_rank)
        try:
            hung, page = self._hung(exit.pid), take_page(attempt.spec.environment.get(VARIABLE))
            from ...core.work import Worked, told
        except (ImportError, OSError):
            return
        began_at, ended_at = exit.started_at, max(exit.started_at, exit.died_at)
        at = max(ended_at, self._clock.now())
        rank = attempt.ranks.workers[exit.local_rank].rank
        life = Worked(attempt.round, rank, number, exit.was_standby, began_at, ended_at, at, before)
        work = told(life, page)
        if work.step is not None:
            self._reached[exit.local_rank] = max(work.step, self._reached.get(exit.local_rank, 0))
        if hung:
            self._took(hung, attempt.round, rank, at)
        self._took(told, work)

    def _hung(self, pid: int) -> type[HangEnd] | None:
        """Return what is written down of a worker that the hang watch has ended; None for another one."""
        if pid not in self._blamed:
            return None
        from ...core.trace.steps import HangEnd

        return HangEnd
