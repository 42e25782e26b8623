"""`elastic goodput`: traces -> the account of each node -> where the time went, and why.

Traces are read line by line; none is held whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import reduce
from typing import Any

import click

from ..adapters.report.trace_file import missing_parts, stretches
from ..core.goodput import (
    Book,
    Entry,
    Follower,
    Kind,
    Piece,
    added,
    booked,
    closed,
    follow,
    jobs,
    micros,
    of_job,
    take,
)
from ..core.group import Phase
from ..core.trace.lines import Corrupt, entries
from ..core.trace.steps import Header, Step, Working
from ..core.values import frozen
from ..core.world import Node
from . import values
from .exit_codes import SUCCEEDED
from .mistakes import Value
from .option import Command, file_names
from .render.goodput import FORMAT, job_data, rendered, span
from .render.goodput_picture import bars
from .render.rounds import names
from .render.text import count, say, say_data
from .traces import Reading, draw, gone, note_header, reading

EPILOG = """\b
  elastic launch --trace=traces/ --nnodes=2 ... train.py     (on each node)
  elastic goodput traces/*.ndjson --picture=goodput.svg
\b
Node time is added over all nodes, each from its agent's start to its end: 8 nodes have 8 hours in an hour.
Traces of wrapped functions' ranks (rank_*.ndjson) are left out.
\b
Exit codes:  0 told · 2 a file cannot be read
"""


@frozen
class _Agent:
    """This is what the trace of one agent tells."""

    path: str
    header: Header
    entries: tuple[Entry, ...]
    is_ended: bool

    @property
    def shift(self) -> int:
        """Return the microseconds from the clock of its host to the time of day there."""
        return micros(self.header.wall) - micros(self.header.now)


@click.command(
    cls=Command, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.option("--json", "as_json", is_flag=True, help="Print the same as data, for programs, in whole microseconds.")
@click.option(
    "--picture",
    "svg",
    type=Value("FILE.svg", values.new_picture),
    metavar="FILE.svg",
    help="Draw one job over time to this file: bars of its nodes' time, stacked by cause.",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=file_names)
def goodput(files: tuple[str, ...], as_json: bool, svg: str | None) -> int:
    """Say where the time of a job's nodes went, and why, by the traces of elastic launch --trace.

    Each microsecond of a node is in one bucket, with one cause. The dearest events come last.
    """
    found = dict[Header, str]()
    with closing(Reading(files)) as read:
        agents = [agent for path in files for agent in _agents(path, found, read)]
    whole = reduce(added, (booked(each.entries, each.shift) for each in agents), Book())
    hosts = {each.header.node: each.header.host for each in agents}
    ids = {each.header.node: each.header.run_id for each in agents}
    if svg:
        those = f"{count(len([job for job in jobs(whole) if job]), 'job')}; name those of one"
        title = f"goodput: {count(len(agents), 'agent')}"
        draw(svg, jobs(whole), those, lambda _: bars([(each.shift, each.entries) for each in agents], whole, title))
    if as_json:
        of_nodes = {each.header.node: _agent_data(each) for each in agents}
        books = {job: of_job(whole, job) for job in jobs(whole)}
        told = [
            {"run_id": _run_id(book, ids), **job_data(job, book, names(hosts), of_nodes)} for job, book in books.items()
        ]
        say_data({"format": FORMAT, "jobs": told})
    else:
        say(*_lines(whole, hosts, ids, len(found) - len(agents)), *_missing(files))
    return SUCCEEDED


# --- what is read


def _agents(path: str, found: dict[Header, str], read: Reading) -> Iterator[_Agent]:
    """Yield the agents of this file. Traces of ranks are `found`, and that is all. Raises Mistake."""
    header: Header | None = None
    follower: Follower | None = None
    kept = list[Entry]()
    for entry in _entries(path, read):
        if isinstance(entry, Header):
            if header and follower:
                yield _agent(path, header, follower, kept)
            note_header(found, path, entry)
            follower = follow(entry) if isinstance(entry.machine, Working) else None
            header, kept = entry, []
        elif follower:
            follower, more = take(follower, entry)
            kept += more
    if header and follower:
        yield _agent(path, header, follower, kept)


def _agent(path: str, header: Header, follower: Follower, kept: Sequence[Entry]) -> _Agent:
    group = follower.account.group
    is_ended = group is not None and group.phase is Phase.ENDED
    those = (*kept, *closed(follower.account))
    if not any(isinstance(each, Piece) for each in those):
        at = follower.account.at
        those = (*those, Piece(header.node, at, at, "waiting", Kind.FIRST))  # it was there, if for no time
    return _Agent(path, header, those, is_ended)


def _entries(path: str, read: Reading) -> Iterator[Header | Step | None]:
    """Yield the headers and steps of a file; None where parts are missing. Raises Mistake."""
    has_header = False
    for index, (part, lines) in enumerate(stretches(path, read.reads)):
        if index:
            yield None
        with reading(part):
            for number, entry in entries(lines):
                has_header = has_header or isinstance(entry, Header)
                if entry and not has_header:
                    raise Corrupt(number, "a step before any header")
                if entry:
                    yield entry
            if not has_header:
                raise Corrupt(1, "no header: it is empty, or no trace")


# --- what is told


def _run_id(book: Book, ids: Mapping[Node, str]) -> str:
    """Return the name that its user gave this job; empty if no trace tells."""
    return next(filter(None, (ids[node] for node in sorted({share.node for share in book.shares}))), "")


def _lines(whole: Book, hosts: Mapping[Node, str], ids: Mapping[Node, str], ranks: int) -> Iterator[str]:
    of = jobs(whole)
    met = [job for job in of if job]
    without = f" ({count(ranks, 'trace')} of ranks left out)" if ranks else ""
    yield f"elastic  {count(len(hosts), 'agent')}, {count(len(met), 'job')}{without}"
    for job in met or of:
        book = of_job(whole, job)
        if len(met) > 1:
            run_id = _run_id(book, ids)
            yield from ("", f"  job {run_id} ({job})" if run_id else f"  job {job}")
        yield from rendered(book, names(hosts))
    if alone := hosts.keys() - whole.meetings.keys():
        spent = span(sum(spent for share, spent in whole.shares.items() if share.node in alone))
        where = "in none of these" if len(met) > 1 else "counted above"
        yield f"  no job     {count(len(alone), 'agent')} met none: {spent}, {where}"


def _missing(files: Sequence[str]) -> Iterator[str]:
    """Yield a line for each trace that lacks parts."""
    for _, _, are_gone in gone(files):
        yield f"  missing    {are_gone}: the time of its node is unknown from there to what shows what it does"


def _agent_data(agent: _Agent) -> Any:
    return {
        "file": agent.path,
        "host": agent.header.host,
        "began": agent.header.wall,
        "ended": agent.is_ended,
        "missing_parts": missing_parts(agent.path),
    }
