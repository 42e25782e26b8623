"""What real agents traced, taken again: what a test checks of every launcher that it started."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from goodputs import imbalances, read

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
