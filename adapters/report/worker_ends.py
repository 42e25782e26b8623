"""The ends of this node's workers: a failure goes on the job's record, and every end into this node's report.

`workers/child_processes.py` learns of an end and hands it over as an `Exit`, and before it a `Report` of a worker that has
raised; the rest of their way is in this file. A raise goes on record at once, out of the error file. The end completes the
record: exit code, last lines of the log, and what the host knows of the death. The agent's thread calls. What a worker left
behind is read once, in another thread (`end_reader.py`). The rendezvous' loop puts it on record: logs and stores take time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial

from ...core.causes import echo, is_told, merged
from ...core.group.state import Record
from ...core.ranks import Ranks
from ...core.values import define, evolve, frozen
from ...core.world import Fault, Node, Origin
from .. import threads
from ..disk import Disk, StandsStill
from ..rendezvous.loop import ToRecord
from ..store.notes import FAULTS
from ..store.port import Backend, StoreError
from ..workers.messages.error_files import (
    STILL_RUNNING,
    ErrorFile,
    exit_sentence,
    last_exception,
    read_error_file,
    read_record,
)
from ..workers.messages.reports import Report
from ..workers.output.logs import last_lines, tail, written
from ..workers.start.attempts import Attempt
from ..workers.watch.death_causes import remark
from ..workers.worker_port import Exit
from .end_reader import EndReader

UNSTARTABLE = 127
"""The exit code of a worker that could not be started, as a shell has it."""
_SEARCHED = 200
"""This many of a log's last lines are searched for the exception that ended the worker."""
_DRAIN_TIMEOUT_S = 1.0
"""A failure's record waits this long for the end of the worker's own output."""


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
    is_echo: bool = False
    """It reads like an echo of a peer's failure."""
    found: Fault | None = None
    """Its output and error file tell this; None until they have been read whole."""


class WorkerEnds:
    """The ends of this node's workers, those of one start at a time, which had this `round` and these `ranks`."""

    def __init__(
        self,
        node: Node,
        host: str,
        backend: Backend,
        submit: Callable[[ToRecord], None],
        wall_text: Callable[[], str],
        drain: Callable[[float], bool],
        disk: Disk,
        failed: Callable[[BaseException], object] = threads.shown,
    ) -> None:
        """`submit` hands a failure to the rendezvous' loop; `drain` waits until the workers' output is in their logs.
        `failed` is called with an error that ends the thread that reads ends. `disk` has the logs and the error files."""
        self._node = node
        self._host = host
        self._backend = backend
        self._submit = submit
        self._wall_text = wall_text
        self._drain = drain
        self._disk = disk
        self._reader = EndReader(drain, failed)
        self.round, self.ranks = 0, Ranks(0, 0, 0, "", 0, ())
        self._ended: dict[int, _Ended] = {}
        self._raised: dict[int, Fault] = {}
        """The records of the workers that raised, by local rank."""
        self._told: dict[int, int] = {}
        """The last signals that workers were sent after they had raised, by local rank."""
        self._under_way = 0
        self._own: list[Fault] = []

    def begin(self, round: int, ranks: Ranks) -> None:
        """Drop the ends of the round before."""
        self.round, self.ranks = round, ranks
        self._ended, self._raised, self._told = {}, {}, {}

    def move(self, attempts: Mapping[int, Attempt]) -> None:
        """Count the ends to the world to which these attempts count now."""
        for local_rank, ended in self._ended.items():
            ended.attempt = attempts[local_rank]

    def add(self, attempt: Attempt, exit: Exit) -> None:
        """Note that this worker has ended so."""
        self._ended[exit.local_rank] = _Ended(attempt, exit)

    def add_raise(self, attempt: Attempt, local_rank: int, pid: int, report: Report) -> bool:
        """Note that this worker has raised; return True if what it raised reads like an echo of a peer's failure."""
        fault = self._raised[local_rank] = raise_fault(attempt, local_rank, pid, report, self._wall_text(), self._disk)
        return bool(echo(fault))

    def signalled(self, signum: int, local_ranks: Collection[int]) -> None:
        """Note that these workers are sent this signal by elastic."""
        self._told |= dict.fromkeys(self._raised.keys() & local_ranks, signum)

    def read(self, local_rank: int, then: Callable[[], None]) -> bool:
        """Have it read what this worker left behind, if its end may be an echo of a peer's failure: all that is known of the
        failure is its end. Return False if nothing is to be read. Another thread calls `then`, when that is done."""
        ended = self._ended[local_rank]
        if local_rank in self._raised or ended.exit.code == 0 or 0 > ended.exit.code != -signal.SIGABRT:
            return False

        def read(is_whole: bool) -> None:
            attempt = ended.attempt
            found = read_fault(attempt, ended.exit, self._disk, self._log_ends(attempt))
            ended.is_echo, ended.found = bool(echo(found)), found if is_whole else None
            then()

        try:
            self._reader.submit(read)
        except threads.NoThread:
            return False
        return True

    def is_echo(self, local_rank: int) -> bool:
        """Return True if what was read of this end reads like an echo of a peer's failure."""
        return self._ended[local_rank].is_echo

    def drop(self, local_rank: int) -> None:
        """Drop the end of a worker that is started again."""
        del self._ended[local_rank]
        self._raised.pop(local_rank, None)
        self._told.pop(local_rank, None)

    def of_round(self, stopped_at: float | None) -> tuple[WorkerEnd, ...]:
        """Return the ends by local rank. `stopped_at` is when the workers were told to end."""
        return tuple(_told(ended, stopped_at) for _, ended in sorted(self._ended.items()))

    def close(self) -> None:
        """End the thread that reads ends. Idempotent."""
        self._reader.close()

    # --- the job's record

    def record_failure(self, record: Record) -> None:
        """Have the raise or the end of this worker put on record as a failure."""
        raised = self._raised.get(record.local_rank)
        if record.code is None:
            if raised:
                self._put(lambda: raised)
            return
        ended = self._ended[record.local_rank]
        ended.is_failure = True
        attempt, origin, log_ends = ended.attempt, record.origin or Origin.END, self._log_ends(ended.attempt)
        told, when = self._told.get(record.local_rank), self._wall_text()

        def completed() -> Fault:
            if ended.found is None:
                self._drain(_DRAIN_TIMEOUT_S)
            found = ended.found or read_fault(attempt, ended.exit, self._disk, log_ends)
            rank = attempt.ranks.workers[record.local_rank].rank
            at_s, size = max(record.died_at, 0.0), attempt.ranks.world_size
            fault = evolve(found, origin=origin, at_s=at_s, round=attempt.round, rank=rank, world_size=size, when=when)
            if raised is None:
                return fault
            if not fault.error_file and raised.message:  # no end tells more than the exception did
                fault = evolve(fault, message=raised.message, where=raised.where, callstack=raised.callstack)
            remark = _late(ended.exit, raised.at_s) if told == -ended.exit.code else fault.remark
            return evolve(fault, round=raised.round, rank=raised.rank, remark=remark)

        self._put(completed)

    def record_unstartable(self, text: str) -> None:
        """Have it put on record that this node could not start its workers."""
        self._put(partial(unstartable_fault, self._node, self._host, self.round, self.ranks, self._wall_text(), text))

    def recorded(self, fault: Fault) -> None:
        """Take the word of the rendezvous' loop that it is done with this failure."""
        self._under_way -= 1
        FAULTS.keep(self._own, fault)

    def _log_ends(self, attempt: Attempt) -> int | None:
        """Return at which byte of its log the output of this attempt ends, once it has ended and before the next; None
        where the pump writes the log, which may be behind, and where the disk does not tell."""
        return written(self._disk, attempt.own_log)

    @property
    def are_being_recorded(self) -> bool:
        """Return True while a failure of this node is on its way to the record."""
        return self._under_way > 0

    @property
    def own_faults(self) -> tuple[Fault, ...]:
        """The failures that this node put on record."""
        return tuple(merged(self._own))

    def all_faults(self) -> tuple[Fault, ...]:
        """Return the failures that all nodes put on record, and those of this node that the store does not have."""
        try:
            found = self._backend.notes.faults()
        except StoreError:
            return self.own_faults
        own = [record for record in self._own if not is_told(record, found)]
        return tuple(sorted(merged((*found, *own)), key=lambda fault: fault.round))

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


def _late(ended: Exit, raised_at: float) -> str:
    """Return the remark on a worker that raised, went on, and was ended by elastic."""
    how = "killed" if ended.code == -signal.SIGKILL else "told to end"
    return f"{STILL_RUNNING} {ended.died_at - raised_at:.0f} s after its exception, {how}"


def _error_file(attempt: Attempt, disk: Disk) -> ErrorFile | None:
    """Return what the worker's error file says; None if there is none, or if its disk stands still."""
    with suppress(StandsStill):
        return disk.do(partial(read_error_file, attempt.error_file)) if attempt.error_file else None
    return None


def raise_fault(attempt: Attempt, local_rank: int, pid: int, report: Report, when: str, disk: Disk) -> Fault:
    """Return what is known of a worker that raised and has not ended: its error file."""
    found = _error_file(attempt, disk) or read_record(report.record)
    return Fault(
        node=attempt.node,
        round=attempt.round,
        rank=attempt.ranks.workers[local_rank].rank,
        local_rank=local_rank,
        pid=pid,
        exit_code=None,
        after_s=report.after_s,
        world_size=attempt.ranks.world_size,
        host=attempt.host,
        when=when,
        message=found.message if found else "",
        where=found.where if found else "",
        log=str(attempt.log or ""),
        callstack=found.callstack if found else "",
        error_file=str(attempt.error_file) if found and not report.record else "",
        origin=Origin.RAISE,
        at_s=report.at,
    )


def read_fault(attempt: Attempt, ended: Exit, disk: Disk, log_ends: int | None = None, when: str = "") -> Fault:
    """Return what is known of a worker's failure: from its exit code, its error file and the end of its log. Where the log
    could not be written, or its disk stands still, its last lines are those that the agent carried. Whatever is missing or
    unreadable is left out, or the text says so; nothing is raised."""
    log, kept = attempt.log, ended.kept()
    lines = last_lines(kept.last, _SEARCHED) if kept else ()
    with suppress(StandsStill):
        if log and (kept is None or kept.is_written):
            lines = disk.do(partial(tail, log, _SEARCHED, attempt.log_begins, log_ends))
    found = _error_file(attempt, disk)
    if kept and not kept.has_file:
        log = None
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
