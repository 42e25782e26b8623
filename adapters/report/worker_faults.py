"""A worker's failure, read from what it left behind: its exit code, its error file, the end of its log."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from ...core.ranks import Ranks
from ...core.world import Fault, Node
from ..workers.attempts import Attempt
from ..workers.deaths import remark
from ..workers.error_files import error_bytes, exit_sentence, last_exception, read_error_file
from ..workers.logs import NOWHERE, tail
from ..workers.worker_port import Exit, WorkerSpec

UNSTARTABLE = 127
SEARCHED = 200
"""How many of a log's last lines are searched for the exception that ended the worker."""
DRAIN_TIMEOUT_S = 1.0
"""How long a failure's record waits for the end of the worker's own output."""


def read_fault(attempt: Attempt, ended: Exit, when: str, drain: Callable[[float], None]) -> Fault:
    """What is known of a worker's failure. Total: whatever is missing or unreadable is left out or said."""
    drain(DRAIN_TIMEOUT_S)
    log = _log(attempt.spec)
    lines = tail(log, SEARCHED) if log else ()
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
    """A program that cannot be executed, charged to the node's first worker. 127 is a shell's code for it."""
    first = ranks.workers[0]
    return Fault(node, round, first.rank, first.local_rank, 0, UNSTARTABLE, 0.0, ranks.world_size, host, when, text)


def _log(spec: WorkerSpec) -> Path | None:
    """The file in which a failing program would have said why."""
    for sink in (spec.stderr, spec.stdout):
        if sink.file is not None and sink.file != NOWHERE:
            return sink.file
    return None


def error_data(fault: Fault) -> dict[str, Any]:
    """What its error file holds, if that is here; else as much of it as the job has on record."""
    if not fault.error_file:
        return {"message": "<NONE>"}
    with suppress(OSError, ValueError):
        data = json.loads(error_bytes(Path(fault.error_file)))
        if isinstance(data, dict):
            return data
    extra = {"py_callstack": fault.callstack, "timestamp": str(timestamp(fault))}
    return {"message": {"message": fault.message, "extraInfo": extra}}


def timestamp(fault: Fault) -> int:
    """When it was put on record, in Unix seconds, if that host's local time is this one's."""
    with suppress(ValueError):
        return int(datetime.fromisoformat(fault.when).timestamp())
    return 0
