"""`elastic replay`: traces -> the core once more -> differences, broken properties, a timeline -> an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from ..adapters.report.trace_file import missing_parts, unbroken
from ..core.properties.judge import LAWS
from ..core.replay.call_restarts import Restart, restarts
from ..core.replay.comparison import Replayed, replayed
from ..core.replay.evidence import Judgement, judgement
from ..core.replay.history import History, histories
from ..core.replay.lanes import Lanes
from ..core.replay.timeline import Recovery, Round, lanes, recoveries, rounds
from ..core.trace.lines import traces
from ..core.trace.plain import plain
from ..core.trace.steps import Header
from ..core.values import frozen
from ..core.violation import Violation
from ..core.world import Node
from . import values
from .exit_codes import FAILED, SUCCEEDED
from .mistakes import Value
from .option import Command, file_names
from .render.node_runs import laws_data
from .render.picture import picture
from .render.rounds import names, rank_names, rendered, rendered_call
from .render.text import count, say, say_data
from .traces import draw, gone, note_header, reading

EPILOG = """\b
  elastic launch --trace=traces/ --nnodes=2 ... train.py     (on each node)
  elastic replay traces/*.ndjson
\b
The versions of the job's register put several traces in order; a missing trace is no fault.
Wrapped functions (elastic.inprocess) are traced beside the agents: rank_*.ndjson, one per call of each rank.
\b
Exit codes:  0 all is well · 1 a step differs or a property is broken · 2 a file cannot be read
"""


@frozen
class _Read:
    """A trace of a file, replayed."""

    path: str
    run: Replayed


@frozen
class _Judged:
    """A job, and what the judges say of its traces."""

    history: History
    judgement: Judgement

    @property
    def violation(self) -> Violation | None:
        return self.judgement.violation

    @property
    def armed(self) -> Mapping[str, int]:
        """Return how often each law was armed that traces can arm."""
        return {number: self.judgement.strength.armed[number] for number, law in LAWS.items() if law.is_traced}


@click.command(
    cls=Command, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the same as data, for programs: differences, rounds, times, lanes."
)
@click.option(
    "--picture",
    "svg",
    type=Value("FILE.svg", values.new_picture),
    metavar="FILE.svg",
    help="Draw one job's agents, or one call of its ranks if the traces are of nothing else, over time, to this file.",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=file_names)
def replay(files: tuple[str, ...], as_json: bool, svg: str | None) -> int:
    """Replay the traces of elastic launch --trace, and of the ranks under it, through the core.

    Every step must come out as it was traced, and the properties must hold over all traces together. Then a timeline says
    what happened when.
    """
    read = [each for path in files for each in _read(path)]
    _refuse_copies(read)
    judged = [_Judged(history, judgement(history)) for history in histories(each.run for each in read)]
    if as_json:
        say_data(_data(read, judged))
    else:
        say(*_lines(read, judged), *_missing(files))
    if svg:
        _draw(svg, judged)
    well = not any(each.run.differs for each in read) and not any(each.violation for each in judged)
    return SUCCEEDED if well else FAILED


def _read(path: str) -> list[_Read]:
    with reading(path):
        return [_Read(path, replayed(trace)) for trace in traces(unbroken(path))]


def _refuse_copies(read: Sequence[_Read]) -> None:
    """Raise Mistake for a trace that comes twice: its workers would seem to start twice."""
    first = dict[Header, str]()
    for each in read:
        note_header(first, each.path, each.run.trace.header)


def _draw(path: str, judged: Sequence[_Judged]) -> None:
    """Draw one job's agents, else one call's ranks. Raises Mistake for several."""
    jobs, calls = ([each.history for each in judged if each.history.calls is calls] for calls in (False, True))
    those = f"{_and(_jobs(judged))}; name those of one (rank_*.ndjson are of a call, the others of a job)"

    def drawn(history: History) -> str:
        return picture(lanes(history), f"replay: {count(len(history.runs), _who(history))}")

    draw(path, jobs or calls, those, drawn)
    if jobs and calls:
        without = f"shows the job without {count(len(calls), 'call')}; name the rank_*.ndjson of a call to draw it"
        say(f"elastic: --picture={path} {without}", err=True)


# --- for people


def _lines(read: Sequence[_Read], judged: Sequence[_Judged]) -> Iterator[str]:
    steps = sum(len(each.run.moments) for each in read)
    known = _names(judged)
    same = "" if any(each.run.differs for each in read) else ", all as traced"
    ranks = sum(each.run.calls for each in read)
    who = [count(number, what) for number, what in ((len(read) - ranks, "agent"), (ranks, "rank")) if number]
    yield f"elastic  {', '.join([*who, *_jobs(judged)])}: {count(steps, 'step')} taken again{same}"
    for each in read:
        yield from (f"  {line}" for line in _of_trace(each, known))
    for job in judged:
        yield from _of_job(job, known)


def _missing(files: Sequence[str]) -> Iterator[str]:
    """Yield a line for each trace that lacks parts."""
    for path, later, are_gone in gone(files):
        yield f"  missing    {are_gone}: {path}.{later} and later parts cannot be taken again without"


def _names(judged: Sequence[_Judged]) -> Mapping[Node, str]:
    agents = names({node: host for job in judged if not job.history.calls for node, host in job.history.hosts.items()})
    return {**agents, **rank_names(node for job in judged if job.history.calls for node in job.history.hosts)}


def _jobs(judged: Sequence[_Judged]) -> list[str]:
    calls = sum(job.history.calls for job in judged)
    return [count(number, what) for number, what in ((len(judged) - calls, "job"), (calls, "call")) if number]


def _and(words: Sequence[str]) -> str:
    return " and ".join(words)


def _who(history: History) -> str:
    return "rank" if history.calls else "agent"


def _of_trace(read: _Read, known: Mapping[Node, str]) -> Iterator[str]:
    run, node = read.run, known[read.run.trace.header.node]
    if run.differs:
        line, differs = run.differs
        yield f"DIFFERS  {node}, {read.path} line {line}: {differs.what}"
        yield f"         traced  {differs.traced}"
        yield f"         core    {differs.core}"
    elif not run.ended:
        where = " in the middle of a line" if run.trace.cut else ""
        who = "process" if run.calls else "agent"
        yield f"unended    {node}: the trace breaks off{where}: its {who} was killed, or still runs"


def _of_job(job: _Judged, known: Mapping[Node, str]) -> Iterator[str]:
    history = job.history
    if history.calls:
        yield f"  call       of {', '.join(sorted(known[run.trace.header.node] for run in history.runs))}"
    versions = count(len(history.states), "version")
    missing = f", {len(history.missing)} that nobody's trace shows" if history.missing else ""
    yield f"  register   {versions}{missing}" if history.states else "  register   nobody saw it"
    if not history.calls:
        often = job.armed
        yield f"  laws       {sum(map(bool, often.values()))} of {len(often)} armed (how often: --json)"
    yield f"  VIOLATION  {job.violation}" if job.violation else "  violations none"
    if len(history.origins) > 1:
        yield "  times      of different hosts are compared by their wall clocks"
    if history.calls:
        yield from rendered_call(rounds(history), restarts(history), known)
    else:
        yield from rendered(rounds(history), recoveries(history), known)


# --- for programs


def _data(read: Sequence[_Read], judged: Sequence[_Judged]) -> Any:
    return {"traces": [_trace_data(each) for each in read], "jobs": [_job_data(each) for each in judged]}


def _trace_data(read: _Read) -> Any:
    run = read.run
    differs = run.differs and {
        "line": run.differs[0],
        "what": run.differs[1].what,
        "traced": run.differs[1].traced,
        "core": run.differs[1].core,
    }
    node = plain(run.trace.header.node, Node)
    return {
        "file": read.path,
        "node": node,
        "steps": len(run.moments),
        "cut": run.trace.cut,
        "missing_parts": missing_parts(read.path),
        "ended": run.ended,
        "differs": differs,
    }


def _job_data(job: _Judged) -> Any:
    history, violation = job.history, job.violation
    return {
        "job": history.job,
        "run_id": history.runs[0].trace.header.run_id,
        "of": _who(history),
        "versions": len(history.states),
        "missing": list(history.missing),
        "violation": violation and {"number": violation.number, "fact": str(violation)},
        "laws": laws_data(job.judgement.strength, job.armed),
        "rounds": plain(rounds(history), tuple[Round, ...]),
        "recoveries": plain(recoveries(history), tuple[Recovery, ...]),
        "restarts": plain(restarts(history), tuple[Restart, ...]) if history.calls else [],
        "lanes": plain(lanes(history), Lanes),
    }
