"""How a wrapped call ends when it does not return: what is raised, and the exit code of a process that lets it through.

The user's own exception is raised where there is one that decides. The rest derive from SystemExit, so that a program that
catches nothing ends with the code that tells its launcher what to do (core/inprocess/exits.py); whoever wants to go on after
a failed job catches `Stopped`.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from ...core.inprocess.exits import EXIT_CODES, INTERNAL
from ...core.inprocess.words import Raised, Reason
from ..workers.error_files import leave_error_file
from ..workers.logs import ERROR_FILE_VARIABLE


class RestartAbort(SystemExit):
    """To be raised by user code: no more restarts, on any rank."""

    def __init__(self, *args: object) -> None:
        super().__init__(EXIT_CODES[Reason.GAVE_UP])
        self.args = args

    def __str__(self) -> str:
        return " ".join(map(str, self.args))


class Stopped(SystemExit):
    """The call is over and has no value. `reason` says why, `code` is the exit code."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(EXIT_CODES[reason] or INTERNAL)
        self.reason = reason
        self.text = text

    @property
    def exit_code(self) -> int:
        return int(str(self.code))

    def __str__(self) -> str:
        return self.text


class Unhealthy(Stopped):
    """A callback that looks after this rank failed: this process must not run another round."""


class OutcomeUnknown(Stopped):
    """The function returned `value` here, but nobody could say whether the job succeeded."""

    def __init__(self, reason: Reason, text: str, value: object) -> None:
        super().__init__(reason, text)
        self.value = value


OWN = (Reason.EXITED, Reason.INTERRUPTED, Reason.GAVE_UP, Reason.DRAINED)
"""What the user's own exception says, if there is one."""


UNMET = (Reason.STORE_LOST, Reason.TIMED_OUT, Reason.OUTCOME_UNKNOWN)
"""Where it matters in which store the ranks meet."""


def raised(outcome: Raised, rank: int, value: object, error: BaseException | None, meets_at: str) -> BaseException:
    """What the call raises. `error` is the last that this rank's code raised, `meets_at` the store, in words."""
    reason = outcome.reason
    if reason in OWN and error is not None and not isinstance(error, Exception):
        return error
    if reason is Reason.INTERRUPTED:
        return KeyboardInterrupt()
    text = f"rank {rank}: {reason.value}"
    if reason in UNMET:
        text += f" (the ranks meet in {meets_at})"
    if error is not None:
        text += f" (last error here: {type(error).__name__}: {error})"
    stopped = _stopped(reason, text, value)
    stopped.__cause__ = error
    return stopped


def _stopped(reason: Reason, text: str, value: object) -> Stopped:
    match reason:
        case Reason.UNFIT | Reason.UNHEALTHY:
            return Unhealthy(reason, text)
        case Reason.OUTCOME_UNKNOWN:
            return OutcomeUnknown(reason, text, value)
        case _:
            return Stopped(reason, text)


def tell(error: BaseException) -> None:
    """To stderr, since a SystemExit says nothing by itself, and to the launcher's error file, if there is one."""
    if not isinstance(error, Stopped | RestartAbort):
        return
    cause = error.__cause__
    callstack = "".join(traceback.format_exception(cause)) if cause else ""
    sys.stderr.write(f"{callstack}elastic: {error}\n")
    if path := os.environ.get(ERROR_FILE_VARIABLE):
        leave_error_file(Path(path), str(error), callstack)
