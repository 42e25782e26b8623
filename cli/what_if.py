"""`elastic what-if`: traces -> what they tell -> the same job in the simulator -> recorded, replayed and supposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from ..adapters.report.trace_file import lines
from ..core.rendezvous import Limits
from ..core.replay.chronicle import Chronicle, told
from ..core.sim.programs import Follows
from ..core.sim.what_if import AS_RECORDED, BAD, SEEDS, Forecast, Supposition
from ..core.sim.what_if import what_if as forecast
from ..core.trace.lines import traces
from ..core.trace.steps import Header, Trace, Working
from ..core.violation import Violation
from . import values
from .exit_codes import FAILED, SUCCEEDED
from .mistakes import Mistake, Value
from .option import Command, file_names
from .render.text import say, say_data
from .render.what_if import doubts, job_data, rendered
from .traces import gone, note_header, reading

SEEDS_MAX = 1_000
SPARES_MAX = 1_000

EPILOG = """\b
  elastic launch --trace=traces/ --nnodes=2 ... train.py     (on each node)
  elastic what-if traces/*.ndjson                            the job again, as it was: how well the simulator knows it
  elastic what-if traces/*.ndjson --spares=1 --ttl=2         what it would have been
\b
Name the traces of all nodes. What came from outside (failures, losses of nodes, drains) comes again; the core decides anew
what follows. docs/what-if.md says when not to trust it.
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
    follows: Follows,
    seeds: int,
    as_json: bool,
) -> int:
    """Run a recorded job again in the simulator: as it was, and with other settings.

    First as it was: this shows how well the simulator knows the job. It supposes nothing of one that it does not know.
    """
    supposed = Supposition(spares, standby_s, links, ttl, max_restarts, last_call, nodes)
    chronicle = _told(files)
    replayed = _forecast(chronicle, AS_RECORDED, follows, seeds)
    is_known = replayed.off <= BAD
    wanted = supposed != AS_RECORDED and is_known
    other = _forecast(chronicle, supposed, follows, seeds) if wanted else None
    if as_json:
        say_data(job_data(replayed, other, follows))
    else:
        say(*rendered(replayed, other), *doubts(replayed, other, follows))
    return SUCCEEDED if is_known else FAILED


def _forecast(chronicle: Chronicle, supposed: Supposition, follows: Follows, seeds: int) -> Forecast:
    try:
        return forecast(chronicle, supposed, follows, seeds)
    except ValueError as reason:
        raise Mistake(f"cannot be supposed: {reason}") from None
    except Violation as broken:
        raise Mistake(f"a simulated run broke a law, so nothing is told: {broken}; please report it") from None


def _told(files: Sequence[str]) -> Chronicle:
    """Return what these files tell. Raises Mistake."""
    for _, _, are_gone in gone(files):
        raise Mistake(f"{are_gone}: what came from outside then is not known, so it is not run again")
    try:
        return told(_traces(files))
    except ValueError as reason:
        raise Mistake(f"{reason}") from None


def _traces(files: Sequence[str]) -> Iterator[Trace]:
    found = dict[Header, str]()
    for path in files:
        with reading(path):
            for trace in traces(lines(path)):
                note_header(found, path, trace.header)
                if isinstance(trace.header.machine, Working):
                    yield trace
