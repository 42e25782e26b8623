"""`elastic replay`: traces -> the core once more -> what differs, what was broken, what happened when -> an exit code."""

from __future__ import annotations

import click

from ..adapters.trace import lines
from ..core.sim.replay import Replayed, replayed
from ..core.sim.trace import Corrupt, traces
from .exit_codes import FAILED, SUCCEEDED
from .mistakes import Mistake


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def replay(files: tuple[str, ...]) -> int:
    """Run what elastic launch --trace wrote through the core once more.

    Every step must come out as it was traced.
    """
    runs = [run for path in files for run in _replayed(path)]
    for run in runs:
        if run.differs:
            click.echo(f"{run.trace.header.node} line {run.differs[0]}: {run.differs[1]}")
    return FAILED if any(run.differs for run in runs) else SUCCEEDED


def _replayed(path: str) -> list[Replayed]:
    try:
        return [replayed(trace) for trace in traces(lines(path))]
    except Corrupt as reason:
        raise Mistake(f"{path}: {reason}") from None
    except OSError as error:
        raise Mistake(f"{path}: {(error.strerror or str(error)).lower()}") from None
