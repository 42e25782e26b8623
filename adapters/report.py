"""How the job ended, in one value that every node makes alike: what the final report shows and `report.json` holds."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from attrs import frozen

from ..core.group import Stopped
from ..core.group.state import Refused
from ..core.world import Ending, Fault, Verdict, Why
from .agent import Result
from .settings import LaunchSettings
from .workers.errors import exit_sentence


@frozen
class Report:
    """One launch, afterwards."""

    settings: LaunchSettings
    result: Result
    exit_code: int
    duration_s: float

    @property
    def max_restarts(self) -> int:
        return self.settings.rendezvous.limits.max_restarts

    @property
    def over_budget(self) -> bool:
        outcome = self.result.outcome
        return isinstance(outcome, Verdict) and outcome.ending is Ending.FAILED and outcome.why is Why.FAILED

    @property
    def restarts(self) -> int:
        """How many the job has spent."""
        if self.over_budget:
            return self.max_restarts
        return self.result.state.failures if self.result.state else 0

    @property
    def world_size(self) -> int:
        """How many workers the last world had; 0 if there was none, or none is known."""
        state = self.result.state
        return sum(member.profile.local_world_size for member in state.world.members) if state and state.complete else 0

    @property
    def others(self) -> int:
        """The workers of the last failed round that did not fail."""
        if self.cause is None:
            return 0
        return self.cause.world_size - sum(fault.round == self.cause.round for fault in self.result.faults)

    @property
    def cause(self) -> Fault | None:
        """The first failure of the last round in which a worker failed."""
        faults = self.result.faults
        return next((fault for fault in faults if fault.round == faults[-1].round), None)

    @property
    def earlier(self) -> tuple[Fault, ...]:
        """The first failure of each round before that one."""
        firsts = {fault.round: fault for fault in reversed(self.result.faults)}
        return tuple(firsts[round] for round in sorted(firsts))[:-1]


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain values: the same on every node but for `here`. `format` moves when a key changes or goes."""
    return {
        "format": 1,
        "run_id": report.settings.run_id,
        "ending": _ending(report),
        "restarts": report.restarts,
        "max_restarts": report.max_restarts,
        "failures": [_fault_as_json(fault) for fault in report.result.faults],
        "here": {
            "node": str(report.result.node),
            "exit_code": report.exit_code,
            "duration_s": round(report.duration_s, 3),
        },
    }


def _ending(report: Report) -> dict[str, Any]:
    match report.result.outcome:
        case Verdict(ending, round, by, why):
            return {"state": ending.value, "why": why.value, "round": round, "by": str(by)}
        case Refused(why, text):
            return {"state": "refused", "why": why.value, "text": text}
        case Stopped(signum):
            return {"state": "stopped", "signal": signum}


def _fault_as_json(fault: Fault) -> dict[str, Any]:
    return {
        "round": fault.round,
        "node": str(fault.node),
        "host": fault.host,
        "rank": fault.rank,
        "local_rank": fault.local_rank,
        "pid": fault.pid,
        "exit_code": fault.exit_code,
        "exit": exit_sentence(fault.exit_code),
        "when": fault.when,
        "after_s": round(fault.after_s, 3),
        "message": fault.message,
        "where": fault.where,
        "log": fault.log,
        "tail": list(fault.tail),
    }


def write_report(path: str, report: Report) -> None:
    """Write it whole or not at all. Raises OSError."""
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(as_json(report), file, indent=2)
            file.write("\n")
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
