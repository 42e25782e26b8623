"""The ends of this node's workers: a failure goes on the job's record, and every end into this node's report.

`workers/child_processes.py` learns of an end and hands it over as an `Exit`; the rest of its way is in this file. The
agent's thread calls. The rendezvous' loop reads a failure and puts it on record, because logs and stores take time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial

from attrs import define, frozen

from ...core.ranks import Ranks
from ...core.world import Fault, Node
from ..rendezvous.loop import ToRecord
from ..store.port import Backend, StoreError, noted
from ..workers.attempts import Attempt
from ..workers.deaths import remark
from ..workers.error_files import exit_sentence, last_exception, read_error_file
from ..workers.logs import tail
from ..workers.worker_port import Exit

UNSTARTABLE = 127
"""The exit code of a worker that could not be started, as a shell has it."""
_SEARCHED = 200
"""So many of a log's last lines are searched for the exception that ended the worker."""
_DRAIN_TIMEOUT_S = 1.0
"""A failure's record waits so long for the end of the worker's own output."""


class How(Enum):
    """The kinds of a worker's end."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped by elastic"

    @property
    def torch_s(self) -> str:
        """The state in torch's events."""
        return "TERMINATED" if self is How.STOPPED else self.name


@frozen
class WorkerEnd:
    """The end of one of this node's workers. `exit_code` is subprocess's: negative for a signal."""

    round: int
    rank: int
    local_rank: int
    pid: int
    exit_code: int
    how: How


@define
class _Ended:
    attempt: Attempt
    exit: Exit
    is_failure: bool = False


class WorkerEnds:
    """The ends of this node's workers, those of one start at a time, which had this `round` and these `ranks`."""

    def __init__(
        self,
        node: Node,
        host: str,
        backend: Backend,
        submit: Callable[[ToRecord], None],
        wall_text: Callable[[], str],
        drain: Callable[[float], None],
    ) -> None:
        """`submit` hands a failure to the rendezvous' loop; `drain` waits until the workers' output is in their logs."""
        self._node = node
        self._host = host
        self._backend = backend
        self._submit = submit
        self._wall_text = wall_text
        self._drain = drain
        self.round, self.ranks = 0, Ranks(0, 0, 0, "", 0, ())
        self._ended: dict[int, _Ended] = {}
        self._under_way = 0
        self._own: list[Fault] = []

    def begin(self, round: int, ranks: Ranks) -> None:
        """Drop the ends of the round before."""
        self.round, self.ranks = round, ranks
        self._ended = {}

    def move(self, attempts: Mapping[int, Attempt]) -> None:
        """Count the ends to the world to which these attempts count now."""
        for local_rank, ended in self._ended.items():
            ended.attempt = attempts[local_rank]

    def add(self, attempt: Attempt, exit: Exit) -> None:
        """Note that this worker has ended so."""
        self._ended[exit.local_rank] = _Ended(attempt, exit)

    def drop(self, local_rank: int) -> None:
        """Drop the end of a worker that is started again."""
        del self._ended[local_rank]

    def of_round(self, stopped_at: float | None) -> tuple[WorkerEnd, ...]:
        """Return the ends by local rank. `stopped_at` is when the workers were told to end."""
        return tuple(_told(ended, stopped_at) for _, ended in sorted(self._ended.items()))

    # --- the job's record

    def record_failure(self, local_rank: int) -> None:
        """Have the end of this worker put on record as a failure."""
        ended = self._ended[local_rank]
        ended.is_failure = True
        self._put(
            partial(read_fault, ended.attempt, ended.exit, self._wall_text(), self._drain, ended.attempt.log_ends)
        )

    def record_unstartable(self, text: str) -> None:
        """Have it put on record that this node could not start its workers."""
        self._put(partial(unstartable_fault, self._node, self._host, self.round, self.ranks, self._wall_text(), text))

    def recorded(self, fault: Fault) -> None:
        """Take the word of the rendezvous' loop that it is done with this failure."""
        self._under_way -= 1
        noted(self._own, fault)

    @property
    def are_being_recorded(self) -> bool:
        """Return True while a failure of this node is on its way to the record."""
        return self._under_way > 0

    @property
    def own_faults(self) -> tuple[Fault, ...]:
        """The failures that this node put on record."""
        return tuple(self._own)

    def all_faults(self) -> tuple[Fault, ...]:
        """Return the failures that all nodes put on record, or this node's own if the store does not answer."""
        try:
            return self._backend.faults()
        except StoreError:
            return self.own_faults

    def _put(self, read: Callable[[], Fault]) -> None:
        self._under_way += 1
        self._submit(ToRecord(read))


def _told(ended: _Ended, stopped_at: float | None) -> WorkerEnd:
    attempt, exit = ended.attempt, ended.exit
    how = How.FAILED if ended.is_failure else how_it_ended(exit.code, exit.died_at, stopped_at)
    rank = attempt.ranks.workers[exit.local_rank].rank
    return WorkerEnd(attempt.round, rank, exit.local_rank, exit.pid, exit.code, how)


def how_it_ended(code: int, died_at: float, stopped_at: float | None) -> How:
    """Return how a worker ended that has not failed. `stopped_at` is when the workers were told to end."""
    stopped = code != 0 or (stopped_at is not None and died_at > stopped_at)
    return How.STOPPED if stopped else How.SUCCEEDED


def read_fault(
    attempt: Attempt, ended: Exit, when: str, drain: Callable[[float], None], log_ends: int | None = None
) -> Fault:
    """Return what is known of a worker's failure: from its exit code, its error file and the end of its log. Whatever is
    missing or unreadable is left out, or the text says so; nothing is raised."""
    drain(_DRAIN_TIMEOUT_S)
    log = attempt.log
    lines = tail(log, _SEARCHED, attempt.log_begins, log_ends) if log else ()
    found = read_error_file(attempt.error_file) if attempt.error_file else None
    message, where = (found.message, found.where) if found else last_exception(lines)
    return Fault(
        node=attempt.node,
        round=attempt.round,
        rank=attempt.ranks.workers[ended.local_rank].rank,
        local_rank=ended.local_rank,
        pid=ended.pid,
        exit_code=ended.code,
        after_s=ended.died_at - ended.started_at,
        world_size=attempt.ranks.world_size,
        host=attempt.host,
        when=when,
        message=message or exit_sentence(ended.code),
        where=where,
        log=str(log or ""),
        tail=lines,
        remark=remark(ended, explained=found is not None),
        callstack=found.callstack if found else "",
        error_file=str(attempt.error_file) if found else "",
    )


def unstartable_fault(node: Node, host: str, round: int, ranks: Ranks, when: str, text: str) -> Fault:
    """Return the failure of a node that could not start its workers. It is charged to the node's first worker."""
    first = ranks.workers[0]
    return Fault(node, round, first.rank, first.local_rank, 0, UNSTARTABLE, 0.0, ranks.world_size, host, when, text)
