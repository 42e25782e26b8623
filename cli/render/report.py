"""The end of a launch, for people: one line when it went well, else what failed first, what it cost, what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from signal import Signals
from typing import assert_never

from ...adapters.report import Report
from ...adapters.workers.errors import exit_sentence
from ...core.group import Stopped
from ...core.group.state import Refused
from ...core.world import Ending, Fault, Verdict, Why
from .sentences import who
from .words import count, first_line


def render_report(report: Report, paths: Sequence[str]) -> list[str]:
    """The lines of it. `paths` are the files that hold more."""
    outcome = report.result.outcome
    match outcome:
        case Verdict(Ending.SUCCEEDED):
            size = report.world_size
            workers = "the job" if not size else "1 worker" if size == 1 else f"all {size} workers"
            return [f"{workers} succeeded · {_cost(report)}"]
        case Verdict():
            return [_headline(report, outcome), *_rows(report, paths)]
        case Refused():
            return [_refused(outcome, report)]
        case Stopped(signum):
            return [f"stopped by {Signals(signum).name} · {_cost(report)}"]
        case other:
            assert_never(other)


def _refused(refused: Refused, report: Report) -> str:
    """Why this node had to end without knowing how the job does, and what to do."""
    settings, text = report.settings, refused.text or "no more is known"
    match refused.why:
        case Why.TIMEOUT:
            waited = f"{settings.rendezvous.join_timeout:g} s (--rdzv-conf=join_timeout=...)"
            return f"gave up: no round began within {waited} · {text}"
        case Why.LIMITS:
            return f"refused: {text}; all nodes of a job must be given the same"
        case Why.SUPERSEDED:
            return f"ended: {text}"
        case Why.UNCONFIRMED:
            limit = f"{settings.rendezvous.join_timeout:g} s (join_timeout)"
            return f"gave up: store {settings.store} did not answer for {limit}"
        case _:
            return f"ended: {refused.why.value} · store {settings.store}: {text}"


def _cost(report: Report) -> str:
    return f"{count(report.restarts, 'restart')}, {report.duration_s:.1f} s"


def _headline(report: Report, verdict: Verdict) -> str:
    if verdict.why is Why.CANNOT_START:
        return "FAILED: the program cannot be started; no restart was spent, since it cannot help"
    if verdict.ending is not Ending.FAILED:
        return f"{verdict.ending.name}: {verdict.why.value}, by {verdict.by}"
    allowed = f"{count(report.max_restarts, 'restart') if report.max_restarts else 'no restart'} allowed"
    return f"FAILED: {count(report.restarts + 1, 'failure')}, {allowed} (--max-restarts={report.max_restarts})"


def _rows(report: Report, paths: Sequence[str]) -> list[str]:
    rows = [*_cause(report), *_earlier(report.earlier)]
    if report.others and report.over_budget:
        rows.append(
            ("others", f"{count(report.others, 'worker')} of that round did not fail; what ran was stopped by us")
        )
    rows.extend(("hint", text) for text in _hint(report))
    rows.extend(("details", path) for path in paths)
    return [f"  {title:<13} {text}" for title, text in rows]


def _cause(report: Report) -> list[tuple[str, str]]:
    fault = report.cause
    if fault is None:
        return []
    place = who(fault.node, fault.host, report.result.state)
    if not fault.pid:
        return [("first cause", f"{place}: {fault.message}")]
    clock = fault.when.rpartition(" ")[2]
    rows = [("first cause", f"{place} rank {fault.rank}, round {fault.round}, {clock}: {failure(fault)}")]
    if fault.log:
        rows.append(("", f"log: {fault.log} ({place})"))
    return rows


def failure(fault: Fault) -> str:
    """How it ended and what it said: `exit code 1: RuntimeError: … (train.py:88 in step)`."""
    ended = exit_sentence(fault.exit_code)
    said = "" if fault.message == ended else f": {first_line(fault.message)}"
    return f"{ended}{said}{f' ({fault.where})' if fault.where else ''}"


def _earlier(faults: Sequence[Fault]) -> list[tuple[str, str]]:
    told = [f"round {fault.round} rank {fault.rank} {failure(fault)}" for fault in faults[-3:]]
    more = [f"{count(len(faults) - 3, 'round')} more"] if len(faults) > 3 else []
    return [("before that", " · ".join((*more, *told)))] if told else []


def _hint(report: Report) -> list[str]:
    """What the failures have in common."""
    if report.cause is None or not report.earlier:
        return []
    all_ = (*report.earlier, report.cause)
    if len({(fault.host, fault.rank) for fault in all_}) > 1:
        return []
    if len({fault.message for fault in all_}) == 1:
        return [f"rank {report.cause.rank} failed the same way in {len(all_)} rounds: a restart does not help"]
    return [f"rank {report.cause.rank} on {report.cause.host} failed in {len(all_)} rounds"]
