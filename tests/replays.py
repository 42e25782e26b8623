"""What real agents traced, taken again: what a test checks of every launcher that it started."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from goodputs import imbalances, read, spent

from elastic.adapters.report.trace_file import lines
from elastic.core.goodput import Book, added, booked
from elastic.core.replay.comparison import Replayed, replayed
from elastic.core.replay.evidence import broken
from elastic.core.replay.history import histories
from elastic.core.trace.lines import traces


def replays(folder: Path) -> list[Replayed]:
    """All traces of a folder; one that is empty is of an agent that ended before it began."""
    files = sorted(file for file in folder.glob("*.ndjson") if file.stat().st_size)
    return [replayed(trace) for file in files for trace in traces(lines(str(file)))]


def accounts(folder: Path) -> Book:
    """Where the time of these agents went."""
    agents = [run.trace for run in replays(folder) if not run.calls]
    return reduce(added, (booked(read(trace.header, trace.steps).all) for trace in agents), Book())


def complaints(runs: Sequence[Replayed], forged: bool = False) -> list[str]:
    """What these traces say that the core does not, where their nodes' time does not add up, and what must hold and does
    not, unless the register is forged."""
    wrong = imbalances([run.trace for run in runs])
    differs = [f"{run.trace.header.node} line {run.differs[0]}: {run.differs[1]}" for run in runs if run.differs]
    lives = () if forged else histories(runs)
    return wrong + differs + [str(violation) for history in lives if (violation := broken(history))]


def misreported(reports: Path, runs: Sequence[Replayed]) -> Iterator[str]:
    """Yield the reports in this folder that tell another time of their node than its trace. Both are exact."""
    traces = [run.trace for run in runs if run.ended and not run.calls]
    traced = {str(trace.header.node): spent(booked(read(trace.header, trace.steps).all)) for trace in traces}
    for file in sorted(reports.glob("*.json")):
        here = _here(file)
        told = {(each["bucket"], each["cause"]): each["micros"] for each in here.get("goodput", {}).get("shares", ())}
        if told and here["node"] in traced and told != traced[here["node"]]:
            yield f"{file.name}: {told}, and the trace tells {traced[here['node']]}"


def _here(file: Path) -> dict[str, Any]:
    """Return the node's own part of a report; nothing of another file."""
    try:
        report = json.loads(file.read_text())
    except ValueError:
        return {}
    here: dict[str, Any] = report.get("here", {}) if isinstance(report, dict) else {}
    return here
