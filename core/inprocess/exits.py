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
    Reason.HUNG: 78,
    Reason.UNFIT: 74,
    Reason.UNHEALTHY: 74,
    Reason.ABORT_HUNG: 75,
    Reason.ABORT_FAILED: 75,
    Reason.TOO_MANY_FAULTS: 71,
    Reason.CRASH_LOOP: 71,
    Reason.STUCK: 74,
    Reason.OTHER_POLICY: 71,
    Reason.OUTCOME_UNKNOWN: 72,
    Reason.STORE_LOST: 72,
    Reason.TIMED_OUT: 73,
    Reason.SUPERSEDED: 77,
    Reason.REFUSED: 73,
    Reason.ITERATIONS_SPENT: 71,
    Reason.TOO_FEW: 80,
    Reason.JOB_FAILED: 79,
    Reason.JOB_LIMIT: 79,
    Reason.JOB_CANCELLED: 76,
}
"""The exit code of the process if nobody catches the call's exception; None: the user's own exception decides."""

CANCELS = 76
"""A rank that a KeyboardInterrupt has made cancel the job ends as those that hear of that. One that leaves alone ends with
the code of its reason."""


def exit_code(reason: Reason, closing: bool) -> int | None:
    """Return the exit code of a call that ends for this reason. `closing`: it has ended the job for all."""
    return CANCELS if reason is Reason.INTERRUPTED and closing else EXIT_CODES[reason]


CANCELLED = frozenset({CANCELS})
"""Codes by which a rank says that a KeyboardInterrupt has cancelled the job, here or elsewhere. Nobody starts again."""
REPLACED = frozenset({Reason.UNHEALTHY, Reason.STUCK, Reason.ABORT_HUNG, Reason.ABORT_FAILED, Reason.HUNG})
"""The reasons after which the launcher starts the same rank again, so that the next world waits for it (`replace_wait`)."""

MISSED = frozenset({80})
"""Codes of a rank that ends the job for all because too few ranks are left. The failure of a missing one came first."""
JOB_OVER = frozenset({71}) | MISSED
"""Codes of a rank that ends the job for all: restarts inside the processes are spent. The processes must start again."""
HEARD = frozenset({79})
"""Codes by which a rank says that another one has ended the job. That one's end is the first cause."""
FINAL = frozenset({0, 71, 76, 79, 80, 130, 143})
"""Codes after which the same rank must not start again: the job is over, or this rank was told to leave."""
