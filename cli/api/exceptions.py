"""The exceptions of a launch, with torch's names and fields.

Where torch is imported, an exception is an instance of torch's own class too. So an `except` written for torchrun's
exceptions catches it, and torch's `@record` passes the first failure's error file on.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from ...adapters.report.launch_report import Report
from ...adapters.workers.messages.error_files import error_data, exit_sentence, failure_code, signal_name, timestamp
from ...core.group import Stopped
from ...core.group.state import Refused
from ...core.values import frozen
from ...core.world import Fault

Kind = TypeVar("Kind", bound="type[LaunchError]")
NOT_AVAILABLE = "<N/A>"


class LaunchError(Exception):
    """The job did not succeed, and the text is the report, as the command prints it. Or it did, and a value is lost."""

    values: Mapping[int, Any] = MappingProxyType({})
    """This maps the ranks of this node's other workers to what they returned, where a value is lost."""

    def __init__(self, text: str, report: Report) -> None:
        Exception.__init__(self, text)  # not torch's, which would print a report of its own
        self.report = report


@frozen
class ProcessFailure:
    """One worker's failure: torch's fields, and its host, which may be another one; its error file is there."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: Mapping[str, Any]
    message: Any
    timestamp: int
    host: str

    def signal_name(self) -> str:
        return signal_name(-self.exitcode) if self.exitcode < 0 else NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(LaunchError):
    """Workers failed and no restart was left, or the job made no progress (exit code 6).

    `failures` are those of the last round on all nodes, by rank, in the order in which the job saw them. Workers that the
    launcher stopped are not among them.
    """

    def __init__(self, name: str, text: str, report: Report) -> None:
        super().__init__(text, report)
        self.name = name
        self.failures = _failures(report)

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Return the cause, with its rank."""
        return next(iter(self.failures.items()))


class SignalException(LaunchError):
    """The signal `sigval` told this process to stop, and it has stopped its workers."""

    def __init__(self, text: str, report: Report, sigval: int) -> None:
        super().__init__(text, report)
        self.sigval = sigval


class RendezvousError(LaunchError):
    """This node could not join the job, or could not stay: closed, store out of reach, out of time."""


def error(name: str, text: str, report: Report) -> LaunchError:
    """Return what to raise for a job that did not succeed."""
    match report.result.outcome:
        case Stopped(signum):
            kind = _with_torch_s(SignalException, "torch.distributed.elastic.multiprocessing.api")
            return kind(text, report, signum)
        case Refused():
            return _with_torch_s(RendezvousError, "torch.distributed.elastic.rendezvous.api")(text, report)
        case _ if report.cause:
            return _with_torch_s(ChildFailedError, "torch.distributed.elastic.multiprocessing.errors")(
                name, text, report
            )
        case _:
            return LaunchError(text, report)


def lost_values(values: Mapping[int, Any], lost: Mapping[int, str], report: Report) -> LaunchError:
    """Return what to raise for a job that succeeded, and whose values of these ranks are lost."""
    raised = LaunchError(
        "the job succeeded, but a value is lost: " + "; ".join(f"rank {rank}: {why}" for rank, why in lost.items()),
        report,
    )
    raised.values = values
    return raised


def _with_torch_s(ours: Kind, module: str) -> Kind:
    """Return our class, mixed with torch's of that name if torch's module is imported: nobody else can catch it."""
    theirs = getattr(sys.modules.get(module), ours.__name__, None)
    made: Any = type(ours.__name__, (ours, theirs), {"__module__": ours.__module__}) if theirs else ours
    kind: Kind = made
    return kind


def _failures(report: Report) -> Mapping[int, ProcessFailure]:
    """Return the failures of the round that ended the job, by rank, the cause first."""
    cause = report.cause
    first: dict[int, Fault] = {}
    for fault in (*([cause] if cause else []), *report.echoes):
        first.setdefault(fault.rank, fault)  # a rank that is started again alone may fail several times
    return {rank: _failure(fault) for rank, fault in first.items()}


def _failure(fault: Fault) -> ProcessFailure:
    data = error_data(fault)
    return ProcessFailure(
        fault.local_rank,
        fault.pid,
        failure_code(fault),
        fault.error_file or NOT_AVAILABLE,
        data,
        data.get("message") if fault.callstack else fault.message or exit_sentence(fault.exit_code),
        timestamp(fault),
        fault.host,
    )
