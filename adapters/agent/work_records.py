"""Writes down what each start of a worker came to, when it has ended: its life, and what its page says (`core/work.py`).

The agent's own thread calls. Nobody reads a page for this while its worker runs. The highest step that any worker of this
node has told goes into the pages of those that start later, so that they can tell when they have passed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define

from ...core.work import Said, Worked, told
from ..clock import Clock
from ..workers.messages.pages import put_before, take_page
from ..workers.messages.progress import VARIABLE
from ..workers.start.attempts import Attempt
from ..workers.worker_port import Exit


@define
class _Start:
    """The start of a worker. `number` counts the starts of its rank in the round."""

    round: int
    rank: int
    number: int
    page: str | None
    before: int | None
    runs: bool = True


class WorkRecords:
    """The starts of this node's workers, by local rank. `tell` is given what each came to."""

    def __init__(self, clock: Clock, tell: Callable[[Worked], object]) -> None:
        self._clock = clock
        self._tell = tell
        self._starts: dict[int, _Start] = {}
        self._reached: int | None = None
        """The highest step that any worker which has ended had told."""

    def begin(self, attempts: Mapping[int, Attempt]) -> None:
        """Note that these workers are about to start."""
        for local_rank, attempt in attempts.items():
            last, page = self._starts.get(local_rank), attempt.spec.environment.get(VARIABLE)
            number = last.number + 1 if last and last.round == attempt.round else 0
            rank = attempt.ranks.workers[local_rank].rank
            self._starts[local_rank] = _Start(attempt.round, rank, number, page, self._reached)
            if page and self._reached is not None:
                put_before(page, self._reached)

    def ended(self, exit: Exit) -> None:
        """Tell what this worker came to. One that never ran came to nothing."""
        start = self._starts.get(exit.local_rank)
        if start is None or not start.runs or not exit.pid:
            return
        start.runs = False
        ended_at = max(exit.started_at, exit.died_at)
        life = Worked(
            start.round,
            start.rank,
            start.number,
            exit.was_standby,
            exit.started_at,
            ended_at,
            max(ended_at, self._clock.now()),
            start.before,
        )
        work = told(life, take_page(start.page) if start.page else Said())
        if work.step is not None:
            self._reached = work.step if self._reached is None else max(self._reached, work.step)
        self._tell(work)
