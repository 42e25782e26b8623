"""`elastic what-if`: traces -> what they tell -> the same job in the simulator -> recorded, replayed and supposed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import click

from ..adapters.report.trace_file import unbroken
from ..core.rendezvous import Limits
from ..core.replay.chronicle import Chronicle, told_of
from ..core.sim.programs import Follows
from ..core.sim.what_if import AS_RECORDED, BAD, SEEDS, Forecast, Supposition, calibration
from ..core.sim.what_if import what_if as forecast
from ..core.trace.lines import streams
from ..core.trace.steps import Header, Step
from ..core.violation import Violation
from . import values
from .exit_codes import FAILED, SUCCEEDED
from .mistakes import Mistake, Value
from .option import Command, file_names
from .render.last_line import Progress
from .render.text import count, say, say_data
from .render.what_if import doubts, job_data, rendered
from .traces import Reading, gone, note_header, reading

SEEDS_MAX = 1_000
SPARES_MAX = 1_000

EPILOG = """\b
  elastic launch --trace=traces/ --nnodes=2 ... train.py     (on each node)
  elastic what-if traces/*.ndjson                            the job again, as it was: how well the simulator knows it
  elastic what-if traces/*.ndjson --spares=1 --ttl=2         what it would have been
\b
Name the traces of all nodes. What came from outside (failures, losses of nodes, drains) comes again; the core decides anew
what follows. What is doubtful, and what is assumed, stands below the table.
\b
Exit codes:  0 told · 1 the simulator does not find what was recorded, so it supposes nothing · 2 a file cannot be read,
the job cannot be run again, or a setting cannot be supposed
"""


def _seeds(text: str) -> int:
    if (number := values.positive(text)) > SEEDS_MAX:
        raise ValueError(f"at most {SEEDS_MAX} runs")
    return number


def _spares(text: str) -> int:
    if (number := values.whole(text)) > SPARES_MAX:
        raise ValueError(f"at most {SPARES_MAX} spares")
    return number


def _follows(text: str) -> Follows:
    known = {each.value: each for each in Follows}
    if text not in known:
        raise ValueError(f"write one of {', '.join(known)}")
    return known[text]


@click.command(
    "what-if",
    cls=Command,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.option(
    "--spares",
    type=Value("N", _spares),
    metavar="N",
    default="0",
    help="This many more nodes, from the beginning.",
)
@click.option(
    "--standby",
    "standby_s",
    type=Value("SECONDS", values.some_seconds),
    metavar="SECONDS",
    help="Workers start again from standbys: each start but a node's first takes this long to its first progress.",
)
@click.option(
    "--links", type=Value("true|false", values.yes_or_no), metavar="true|false", help="peer_links of --rdzv-conf."
)
@click.option(
    "--ttl",
    type=Value("SECONDS", values.some_seconds),
    metavar="SECONDS",
    help="The silence after which a node is lost: keep_alive_interval × keep_alive_max_attempt.",
)
@click.option("--max-restarts", type=Value("N", values.whole), metavar="N", help="Restarts of the job after failures.")
@click.option(
    "--last-call",
    type=Value("SECONDS", values.seconds),
    metavar="SECONDS",
    help="How long a round that has MIN nodes waits for more.",
)
@click.option(
    "--nnodes",
    "nodes",
    type=Value("N|MIN:MAX[:UNIT]", values.nodes),
    metavar="N|MIN:MAX[:UNIT]",
    help="Nodes of a round.",
)
@click.option(
    "--checkpoint-every",
    type=Value("SECONDS", values.some_seconds),
    metavar="SECONDS",
    help="From one save to the next. Each takes as long as in the record, and a restart begins after the last one.",
)
@click.option(
    "--follows",
    type=Value("time|node|program", _follows),
    metavar="time|node|program",
    default="time",
    show_default=True,
    help="When a failure of a worker comes again: at its time, when its node has run for as long, or at the same step.",
)
@click.option(
    "--seeds",
    type=Value("N", _seeds),
    default=str(SEEDS),
    show_default=True,
    help="How many runs there are of each job.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the same as data, for programs, in microseconds.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=file_names)
def what_if(
    files: tuple[str, ...],
    spares: int,
    standby_s: float | None,
    links: bool | None,
    ttl: float | None,
    max_restarts: int | None,
    last_call: float | None,
    nodes: Limits | None,
    checkpoint_every: float | None,
    follows: Follows,
    seeds: int,
    as_json: bool,
) -> int:
    """Run a recorded job again in the simulator: as it was, and with other settings.

    First as it was: this shows how well the simulator knows the job. It supposes nothing of one that it does not know.
    """
    supposed = Supposition(spares, standby_s, links, ttl, max_restarts, last_call, nodes, checkpoint_every)
    chronicle = _told(files)
    with _possible():
        recorded = calibration(chronicle, supposed)
    replayed = _forecast(chronicle, recorded, follows, seeds)
    is_known = replayed.off <= BAD
    wanted = supposed != AS_RECORDED and is_known
    other = _forecast(chronicle, supposed, follows, seeds, "supposed") if wanted else None
    if as_json:
        say_data(job_data(replayed, other, follows))
    else:
        say(*rendered(replayed, other), *doubts(replayed, other, follows))
    return SUCCEEDED if is_known else FAILED


def _forecast(
    chronicle: Chronicle, supposed: Supposition, follows: Follows, seeds: int, name: str = "as it was"
) -> Forecast:
    progress = Progress(sys.stderr, time.monotonic())

    def ran(done: int) -> None:
        if progress.is_due(now := time.monotonic()):
            progress.show(done, f"{done} of {count(seeds, 'run')}, {name}", now)

    try:
        with _possible():
            return forecast(chronicle, supposed, follows, seeds, ran=ran)
    except Violation as broken:
        raise Mistake(f"a simulated run broke a law, so nothing is told: {broken}; please report it") from None
    finally:
        progress.clear()


@contextmanager
def _possible() -> Iterator[None]:
    """Raise Mistake for what cannot be supposed."""
    try:
        yield
    except ValueError as reason:
        raise Mistake(f"cannot be supposed: {reason}") from None


def _told(files: Sequence[str]) -> Chronicle:
    """Return what these files tell. Raises Mistake."""
    for _, _, are_gone in gone(files):
        raise Mistake(f"{are_gone}: what came from outside then is not known, so it is not run again")
    with closing(Reading(files)) as read:
        try:
            return told_of(_streams(files, read))
        except ValueError as reason:
            raise Mistake(f"{reason}") from None


def _streams(files: Sequence[str], read: Reading) -> Iterator[tuple[Header, Iterator[Step]]]:
    """Yield the header and the steps of each trace. Raises Mistake."""
    found = dict[Header, str]()
    for path in files:
        with reading(path):
            for header, steps in streams(unbroken(path, read.reads)):
                note_header(found, path, header)
                yield header, _steps(path, steps)


def _steps(path: str, steps: Iterator[Step]) -> Iterator[Step]:
    with reading(path):
        yield from steps
