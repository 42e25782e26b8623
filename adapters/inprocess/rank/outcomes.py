"""The exceptions with which a wrapped call ends when it does not return, and the process's exit code for each.

If the user's own exception decides, it is raised. The others derive from SystemExit: a program that catches nothing ends
with the code that tells its launcher what to do (core/inprocess/exits.py). A program that goes on after a failed job
catches `Stopped`.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from ....core.inprocess.exits import EXIT_CODES, INTERNAL, exit_code
from ....core.inprocess.words import Raised, Reason
from ...workers.messages.error_files import leave_error_file
from ...workers.output.logs import ERROR_FILE_VARIABLE
from ...workers.startup.elastic_raise import text_of


class RestartAbort(SystemExit):
    """Raised by user code to end the job: no rank restarts again."""

    def __init__(self, *args: object) -> None:
        super().__init__(EXIT_CODES[Reason.GAVE_UP])
        self.args = args

    def __str__(self) -> str:
        return " ".join(map(text_of, self.args))


class Interrupted(KeyboardInterrupt, SystemExit):
    """The KeyboardInterrupt of a call. It ends a process that does not catch it with a code for its launcher: by SIGINT, as
    Python ends for other ones, it would be one that failed and starts again."""

    def __init__(self, code: int) -> None:
        SystemExit.__init__(self, code)

    def __str__(self) -> str:
        return "interrupted"


class NestedCall(RuntimeError):
    """Raised where a wrapped function is called inside of another one. It ends the job: the next iteration would raise it
    again."""


class Stopped(SystemExit):
    """The call is over and has no value. `reason` says why, `code` is the exit code."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(EXIT_CODES[reason] or INTERNAL)
        self.args = reason, text
        self.reason = reason
        self.text = text

    @property
    def exit_code(self) -> int:
        return int(str(self.code))

    def __str__(self) -> str:
        return self.text


class Unhealthy(Stopped):
    """Raised when finalize or the health check failed, or the function failed again and again before any progress: this
    process must not run another round."""


class OutcomeUnknown(Stopped):
    """Raised when the function returned `value` here, but the register could not be asked if the job succeeded."""

    def __init__(self, reason: Reason, text: str, value: object) -> None:
        super().__init__(reason, text)
        self.args = reason, text, value
        self.value = value


OWN = (Reason.EXITED, Reason.GAVE_UP, Reason.DRAINED)
"""The reasons for which the user's own exception is raised, if there is one."""


UNMET = (Reason.STORE_LOST, Reason.TIMED_OUT, Reason.OUTCOME_UNKNOWN)
"""The reasons for which the text names the store in which the ranks meet."""


def raised(
    outcome: Raised,
    closing: bool,
    rank: int,
    value: object,
    error: BaseException | None,
    meets_at: str,
    others: str,
) -> BaseException:
    """Return what the call raises. `closing`: this rank has ended the job for all. `error` is the last error of this rank's
    code, `meets_at` the name of the store, `others` the rank that ended the job, with its failure, if that was another
    one."""
    reason = outcome.reason
    if reason is Reason.INTERRUPTED:
        interrupted = Interrupted(exit_code(reason, closing) or INTERNAL)
        interrupted.__cause__ = error
        return interrupted
    if reason in OWN and error is not None and not isinstance(error, Exception):
        return error
    text = f"rank {rank}: {reason.value}"
    if reason in UNMET:
        text += f" (the ranks meet in {meets_at})"
    if others:
        text += f" ({others})"
    if error is not None:
        text += f" (last error here: {said(error)})"
    stopped = _stopped(reason, text, value)
    stopped.__cause__ = error
    return stopped


def _stopped(reason: Reason, text: str, value: object) -> Stopped:
    match reason:
        case Reason.UNFIT | Reason.UNHEALTHY | Reason.STUCK:
            return Unhealthy(reason, text)
        case Reason.OUTCOME_UNKNOWN:
            return OutcomeUnknown(reason, text, value)
        case _:
            return Stopped(reason, text)


def said(error: BaseException) -> str:
    """Return an error's type and text. An error that users write may fail to say its text."""
    return f"{type(error).__name__}: {text_of(error)}".removesuffix(": ")


def tell(error: BaseException) -> None:
    """Write the error to stderr, since a SystemExit prints nothing, and to the launcher's error file, if there is one."""
    if not isinstance(error, Stopped | RestartAbort | Interrupted):
        return
    cause = error.__cause__
    callstack = "".join(traceback.format_exception(cause)) if cause else ""
    with suppress(AttributeError, OSError, ValueError):  # none, one that nobody reads, a closed one
        sys.stderr.write(f"{callstack}elastic: {error}\n")
    if path := os.environ.get(ERROR_FILE_VARIABLE):
        leave_error_file(Path(path), str(error), callstack)
