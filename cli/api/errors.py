"""How a launch can fail, as a program catches it: torch's names and fields.

Where torch is imported, what is raised is an instance of torch's own class too, so that an `except` written for torchrun's
exceptions catches it, and torch's `@record` hands the first failure's error file on.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from attrs import frozen

from ...adapters.report.launch_report import Report
from ...adapters.workers.error_files import error_data, exit_sentence, signal_name, timestamp
from ...core.group import Stopped
from ...core.group.state import Refused
from ...core.world import Fault

Kind = TypeVar("Kind", bound="type[LaunchError]")
NOT_AVAILABLE = "<N/A>"


class LaunchError(Exception):
    """The job did not succeed; the text is the report, as the command prints it."""

    def __init__(self, text: str, report: Report) -> None:
        Exception.__init__(self, text)  # not torch's, which would print a report of its own
        self.report = report


@frozen
class ProcessFailure:
    """One worker's failure: torch's fields, and on which host. It may be another one's, where the error file then is."""

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
    """Workers failed and no restart was left. `failures` are those of the last round by rank, on all nodes, in the order in
    which the job saw them; workers that the launcher stopped are not among them."""

    def __init__(self, name: str, text: str, report: Report) -> None:
        super().__init__(text, report)
        self.name = name
        self.failures = failures(report)

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The cause, with its rank."""
        return next(iter(self.failures.items()))


class SignalException(LaunchError):
    """This process was told to stop, by the signal `sigval`, and has stopped its workers."""

    def __init__(self, text: str, report: Report, sigval: int) -> None:
        super().__init__(text, report)
        self.sigval = sigval


class RendezvousError(LaunchError):
    """This node did not come into the job, or could not stay: closed, its store out of reach, time ran out."""


def error(name: str, text: str, report: Report) -> LaunchError:
    """What to raise for a job that did not succeed."""
    match report.result.outcome:
        case Stopped(signum):
            kind = _also_torch_s(SignalException, "torch.distributed.elastic.multiprocessing.api")
            return kind(text, report, signum)
        case Refused():
            return _also_torch_s(RendezvousError, "torch.distributed.elastic.rendezvous.api")(text, report)
        case _ if report.cause:
            return _also_torch_s(ChildFailedError, "torch.distributed.elastic.multiprocessing.errors")(
                name, text, report
            )
        case _:
            return LaunchError(text, report)


def _also_torch_s(ours: Kind, module: str) -> Kind:
    """Who catches torch's class has imported it."""
    theirs = getattr(sys.modules.get(module), ours.__name__, None)
    made: Any = type(ours.__name__, (ours, theirs), {"__module__": ours.__module__}) if theirs else ours
    kind: Kind = made
    return kind


def failures(report: Report) -> Mapping[int, ProcessFailure]:
    """Those of the round that ended the job, by rank, the cause first."""
    cause = report.cause
    others = [fault for fault in report.result.faults if cause and fault.round == cause.round and fault != cause]
    return {fault.rank: failure(fault) for fault in (*([cause] if cause else []), *others)}


def failure(fault: Fault) -> ProcessFailure:
    data = error_data(fault)
    return ProcessFailure(
        fault.local_rank,
        fault.pid,
        fault.exit_code,
        fault.error_file or NOT_AVAILABLE,
        data,
        data.get("message") if fault.callstack else fault.message or exit_sentence(fault.exit_code),
        timestamp(fault),
        fault.host,
    )
