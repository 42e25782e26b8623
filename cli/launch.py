"""`elastic launch`: the command line -> LaunchSettings -> the agent -> an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, TextIO

import click
from attrs import evolve

from ..adapters.agent.agent import Agent
from ..adapters.agent.watchdogs import CannotWatch
from ..adapters.clock import Clock, SystemClock
from ..adapters.launch_settings import Function, LaunchSettings, Program
from ..adapters.report.launch_report import Report, Result, write_report
from ..adapters.report.news import CannotTrace, NoTrace, Observer, Observers, Trace
from ..adapters.store.connection import AgentConnection
from ..adapters.store.relay.relay_server import Relay
from ..adapters.workers.spawner import Spawner
from . import nodes, tokens
from .exit_codes import exit_code
from .handlers import telemetry
from .manual import EPILOG, Manual
from .mistakes import Mistake
from .options import all_options
from .program import script_program
from .rare_options import said_once
from .render.patient import PatientText
from .render.report import render_report
from .render.status import StatusLines
from .settings import launch_settings

PATIENCE_S = 5.0
"""How long the end waits for a terminal that does not read what was said."""


@click.command(
    cls=Manual,
    epilog=EPILOG,
    context_settings={
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 120,
    },
)
@all_options
@click.argument("script", envvar=None)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def launch(ctx: click.Context, /, **given: Any) -> int:
    """Run SCRIPT as a distributed PyTorch job, and keep it running.

    Takes torchrun's options, in both spellings and as PET_ variables. SCRIPT is started as --nproc-per-node workers, each
    with its rank in its environment.
    """
    report, _ = launched(given, script_program(given, os.environ), os.environ, said=list(said_once(ctx)))
    return report.exit_code


def launched(
    given: Mapping[str, Any],
    program: Program | Function,
    environment: MutableMapping[str, str],
    spawner: Spawner | None = None,
    said: Sequence[str] = (),
    tells_failure: bool = True,
) -> tuple[Report, Sequence[str]]:
    """Carry out what the options ask for: how it ended, and the lines for people. A secret is taken out of `environment`;
    `said` goes before all else. Without `tells_failure`, a failure's lines are the caller's to show. Raises Mistake."""
    where = nodes.place(given, environment, tokens.store_token(given["rdzv_conf"], environment))
    settings = launch_settings(given, program, where, environment)
    for line in said:
        print(line, file=sys.stderr)
    clock = SystemClock()
    logs = telemetry(given, settings, clock)
    err = PatientText(_stderr())
    status = StatusLines(err, settings, given["status"])
    connection, relay = None, None
    try:
        connection = where.open(settings.run_id, clock, settings.rendezvous)
        status.serves_store = connection.serves
        relay = _relay(connection)
        settings = evolve(settings, relay=relay.path if relay else "")
        observer = Observers(status, *logs)
        result, directory = _run(settings, connection, clock, observer, _trace(given["trace"]), spawner)
        code = exit_code(result.outcome)
        report = Report(settings, result, code, clock.now() - status.began_at)
        written, lost = _write(report, given["report"], directory)
        lines = [*render_report(report, written), *lost]
        if code == 0 or tells_failure:
            status.end(lines, well=code == 0 and not lost)
    finally:
        if relay is not None:
            relay.close()
        for log in logs:
            log.close()
        if connection is not None:
            connection.close(settings.rendezvous.ttl)
        err.close(PATIENCE_S)
    return report, lines


def _stderr() -> TextIO:
    """One with a descriptor: a notebook's own has none."""
    try:
        sys.stderr.fileno()
    except (OSError, ValueError):
        return sys.__stderr__ or open(os.devnull, "w")
    return sys.stderr


def _relay(connection: AgentConnection) -> Relay | None:
    try:
        return Relay(connection.beside)
    except OSError:
        return None  # whichever worker needs it says so


def _trace(path: str | None) -> Trace:
    if path is None:
        return NoTrace()
    from ..adapters.report.trace_file import TraceFile  # with the codec behind it, which an agent alone needs not

    return TraceFile(path)


def _run(
    settings: LaunchSettings,
    connection: AgentConnection,
    clock: Clock,
    observer: Observer,
    trace: Trace,
    spawner: Spawner | None,
) -> tuple[Result, str | None]:
    """What came of it, and where the report belongs if the user keeps logs."""
    try:
        agent = Agent(settings, connection.backend, clock, observer, trace, spawner)
    except ValueError as reason:
        raise Mistake(f"{'--log-dir' if settings.logs.directory else 'TMPDIR'}={reason}") from None
    except OSError as error:
        more = "; write: ulimit -n 4096" if error.errno == errno.EMFILE else ""
        raise Mistake(f"no agent can run on this host: {(error.strerror or str(error)).lower()}{more}") from None
    try:
        return agent.run(), agent.report_path
    except CannotTrace as reason:
        raise Mistake(f"--trace={reason}") from None
    except CannotWatch as reason:
        raise Mistake(str(reason)) from None


def _write(report: Report, *paths: str | None) -> tuple[list[str], list[str]]:
    """The files that now hold the report, and a line for each that could not be written: the job is over all the same."""
    written, lost = [], []
    for path in paths:
        try:
            if path:
                write_report(path, report)
                written.append(path)
        except OSError as error:
            lost.append(f"the report could not be written: {path}: {(error.strerror or str(error)).lower()}")
    return written, lost
