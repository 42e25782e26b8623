"""The exit codes of a call that ends without a value, for the program that started the process."""

from __future__ import annotations

from collections.abc import Mapping

from .words import Reason

INTERNAL = 70
"""A fault of the wrapper itself."""

EXIT_CODES: Mapping[Reason, int | None] = {
    Reason.EXITED: None,
    Reason.INTERRUPTED: 130,
    Reason.GAVE_UP: 71,
    Reason.DRAINED: 143,
    Reason.UNFIT: 74,
    Reason.UNHEALTHY: 74,
    Reason.ABORT_HUNG: 75,
    Reason.ABORT_FAILED: 75,
    Reason.TOO_MANY_FAULTS: 71,
    Reason.CRASH_LOOP: 71,
    Reason.OTHER_POLICY: 71,
    Reason.OUTCOME_UNKNOWN: 72,
    Reason.STORE_LOST: 72,
    Reason.TIMED_OUT: 73,
    Reason.SUPERSEDED: 77,
    Reason.REFUSED: 73,
    Reason.ITERATIONS_SPENT: 71,
    Reason.TOO_FEW: 71,
    Reason.JOB_FAILED: 79,
    Reason.JOB_LIMIT: 79,
    Reason.JOB_CANCELLED: 76,
}
"""The exit code of the process if nobody catches the call's exception; None: the user's own exception decides."""

JOB_OVER = frozenset({71})
"""Codes of a rank that ends the job for all: restarts inside the processes are spent. The processes must start again."""
HEARD = frozenset({79})
"""Codes by which a rank says that another one has ended the job. That one's end is the first cause."""
FINAL = frozenset({0, 71, 76, 79, 130, 143})
"""Codes after which the same rank must not start again: the job is over, or this rank was told to leave."""
