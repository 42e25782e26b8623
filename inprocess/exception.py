"""The exceptions of the wrapper. What user code raises is an Exception here, or for `RestartAbort` a BaseException.

What a call raises at its end derives from SystemExit as well (`Stopped`), so a process that catches nothing ends with the
exit code that tells its launcher what to do.
"""

from __future__ import annotations

from ..adapters.inprocess.rank import outcomes
from ..adapters.inprocess.rank.outcomes import RestartAbort

__all__ = [
    "HealthCheckError",
    "InternalError",
    "OutcomeUnknown",
    "RestartAbort",
    "RestartError",
    "Stopped",
    "TimeoutError",
    "Unhealthy",
]


class RestartError(Exception):
    """The base of the others, and of what a call raises at its end."""


class HealthCheckError(RestartError):
    """A rank is not healthy, and must not run another iteration."""


class InternalError(RestartError):
    """The wrapper itself went wrong. The wrapper raises it nowhere: such a process ends with code 70."""


class TimeoutError(RestartError):
    """A callback took longer than its limit."""


class Stopped(outcomes.Stopped, RestartError):
    """The call is over and has no value. `reason` says why, `code` is the exit code."""


class Unhealthy(outcomes.Unhealthy, Stopped, HealthCheckError):
    """Raised when the health check failed: this process must not run another iteration."""


class OutcomeUnknown(outcomes.OutcomeUnknown, Stopped):
    """Raised when the function returned `value` here, but no store could confirm that the job succeeded."""


def ended(stopped: outcomes.Stopped) -> Stopped:
    """Return what the call raises, as a RestartError."""
    match stopped:
        case outcomes.Unhealthy():
            return Unhealthy(stopped.reason, stopped.text)
        case outcomes.OutcomeUnknown():
            return OutcomeUnknown(stopped.reason, stopped.text, stopped.value)
        case _:
            return Stopped(stopped.reason, stopped.text)
