"""`elastic launch`: the command line -> LaunchSettings -> the agent -> an exit code."""

from __future__ import annotations

import errno
import json
import math
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeAlias, TypeVar

import click

from ..adapters import kernel
from ..adapters.agent.agent import Agent
from ..adapters.agent.watchdogs import CannotWatch
from ..adapters.clean_up import CleanUp
from ..adapters.clock import Clock, SystemClock
from ..adapters.disk import Disk, Patience, once
from ..adapters.launch_settings import Function, Kind, LaunchSettings, Program
from ..adapters.rendezvous.evictions import Evictions
from ..adapters.report.launch_report import Report, Result, write_report, write_whole
from ..adapters.report.news import CannotTrace, NoTrace, Observer, Observers, Trace
from ..adapters.signals import signals_as_events
from ..adapters.store.connection import AgentConnection
from ..adapters.store.port import Backend
from ..adapters.store.relay.relay_server import OwnJob, Relay
from ..adapters.terminal import printed, why
from ..adapters.threads import NoThread
from ..adapters.workers.devices.count import few_cpus
from ..adapters.workers.messages.error_files import reply
from ..adapters.workers.output.logs import ERROR_FILE_VARIABLE, CannotLog
from ..adapters.workers.start.spawner import Executor, Lent, Spawner
from ..adapters.workers.watch.oom_score import Protection
from ..adapters.workers.watch.orphans import Orphans
from ..adapters.workers.worker_port import CannotStart
from ..core.group.state import Drained, Refused, Unawaited
from ..core.rendezvous.state import successor
from ..core.values import evolve
from ..core.world import Node, Why
from . import main, places, slurm, tokens
from .agent_settings import finished_is_ok, launch_settings, script_program
from .exit_codes import UNFIT, exit_code
from .how_to_ask import how_to_ask
from .launch_options import LaunchOptions, lines_without_effect
from .manual import EPILOG, Manual
from .mistakes import Mistake
from .option import file_names, parameters
from .render.ending import render_report
from .render.patient import PatientText
from .render.status import StatusLines
from .render.text import count, say

if TYPE_CHECKING:
    from ..adapters.report.metrics import AgentMetrics
    from ..adapters.report.telemetry_spans import AgentSpans
    from ..adapters.store.secret import Secret
    from ..adapters.torch.telemetry import EventLog, MetricsLog, RendezvousLog
    from .etcd_place import EtcdPlace

_OF_NO_SCRIPT = (
    *("--nproc-per-node", "--nnodes", "--node-rank", "--standalone", "--max-restarts", "--tee", "--redirects"),
    *("--rdzv-endpoint", "--rdzv-id", "--rdzv-backend", "--rdzv-conf"),
)
"""The options of launchers that a script has hardly for itself."""
_NO_ROUTE_S = 1.0
"""How long an agent asks a store to which this host has no route: it was waited for already."""
PATIENCE_S = 5.0
"""How long the end waits for a terminal that does not take the text."""

Handler = TypeVar("Handler")


class Handle(Observer, Protocol):
    """The other thread's end of a launch: it observes the agent, and may stop what runs."""

    def stops_by(self, stop: Callable[[int], None]) -> None:
        """From now on this stops what runs, as the signal of that number would. It may be called at once."""


@click.command(
    cls=Manual,
    params=parameters(LaunchOptions),
    epilog=EPILOG,
    context_settings={
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 120,
    },
)
@click.argument("script", envvar=None, shell_complete=file_names)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=file_names)
@click.pass_context
def launch(ctx: click.Context, /, script: str, arguments: tuple[str, ...], **given: Any) -> int:
    """Run SCRIPT as a distributed PyTorch job, and keep it running.

    Takes torchrun's options, in both spellings and as PET_ variables. SCRIPT is started as --nproc-per-node workers, each
    with its rank in its environment.
    """
    options = LaunchOptions(**given)
    program = script_program(options, script, arguments, os.environ)
    if options.show_preload:
        return _show_preload(options, program)
    said = [*lines_without_effect(options, ctx), *lines_behind_script(program)]
    report, lines = launched(options, program, os.environ, said=said, is_alone=True)
    if report.exit_code:
        leave_reply(reply(report.cause) if report.cause else {"message": {"message": lines[0]}})
    return report.exit_code


def lines_behind_script(program: Program) -> Iterator[str]:
    """Yield a line for each argument of a Python program that can hardly be meant for it."""
    named = dict.fromkeys(each.partition("=")[0].replace("_", "-") for each in program.arguments)
    for name in named if program.kind is not Kind.BINARY else ():
        if name in _OF_NO_SCRIPT:
            theirs = "which gets it; the options of elastic launch come before the script"
            yield f"elastic: {name} stands behind {program.name}, {theirs}"


def leave_reply(content: Mapping[str, Any]) -> None:
    """Write why nothing came of the job into the file that whoever started this launcher reads, in torch's form."""
    path = os.environ.get(ERROR_FILE_VARIABLE)
    try:
        if path:
            once(partial(write_whole, path, json.dumps(content)))
    except OSError as error:
        say(f"elastic: {ERROR_FILE_VARIABLE}={path} could not be written: {why(error)}", err=True)


def _show_preload(options: LaunchOptions, program: Program) -> int:
    """Print what standbys would import. Raises Mistake."""
    from importlib.util import find_spec

    from ..adapters.workers.start.standbys import imports  # no other launch needs them
    from .render.preload import render_imports

    try:
        found = imports(program, os.environ, options.preload)
    except CannotStart as reason:
        raise Mistake(f"--standby: {reason}") from None
    ours = program.python == sys.executable  # another Python's modules are unknown here
    missing = [each for each in options.preload or () if ours and find_spec(each.partition(".")[0]) is None]
    say(*render_imports(found, missing))
    return 0


def launched(
    options: LaunchOptions,
    program: Program | Function,
    environment: MutableMapping[str, str],
    spawner: Spawner | None = None,
    said: Sequence[str] = (),
    tells_failure: bool = True,
    is_alone: bool = False,
    handle: Handle | None = None,
) -> tuple[Report, Sequence[str]]:
    """Run the job; return how it ended, and the lines that say so to people. Raises Mistake.

    A secret is removed from `environment`. The lines of `said` are printed before all others. Without `tells_failure`, the
    lines of a failure are not printed: the caller shows them. `is_alone`: this process runs nothing else, so the agent may
    reap and kill all orphans below it, unless a handler or a plugin of logs is loaded.
    """
    try:
        return _launched(options, program, environment, spawner, said, tells_failure, is_alone, handle)
    except NoThread as error:
        raise no_agent(error) from None


def no_agent(error: NoThread) -> Mistake:
    return Mistake(f"no agent can run on this host: {error.strerror}")


def _launched(
    options: LaunchOptions,
    program: Program | Function,
    environment: MutableMapping[str, str],
    spawner: Spawner | None,
    said: Sequence[str],
    tells_failure: bool,
    is_alone: bool,
    handle: Handle | None,
) -> tuple[Report, Sequence[str]]:
    if refused := kernel.missing():
        raise Mistake(refused)
    token = tokens.store_token(options.rdzv_conf, environment)
    where = places.place(options, environment, token)
    is_finished_ok = finished_is_ok(options)  # before the wait for a route
    settings = _settings(options, program, where, environment, token)
    say(*said, err=True)
    clock, err, failures = SystemClock(), PatientText(_stderr()), list[Exception]()
    status = StatusLines(err, settings, options.status)
    for warning in _of_cpus(settings):
        status.warn(warning)
    with CleanUp(failures) as last, CleanUp(failures) as closing:
        last.callback(_end, err, failures)
        observers, plugged = _observers(options, settings, clock, status, closing)
        adopts = is_alone and not plugged and settings.logs_plugin is None  # other code: its children are its own
        executor = None if adopts or spawner else _serving(closing)  # it has the score of before
        protection = Protection()
        if is_alone:
            protection.begin()  # before the store's helper starts, which inherits it
            closing.closes(protection.end)
        connection = where.open(settings.run_id, clock, settings.rendezvous, status.warn)
        last.closes(partial(connection.close, settings.rendezvous.ttl))
        status.serves_store = connection.serves
        evictions, patience = Evictions(), Patience()
        if relay := _relay(connection, evictions, settings):
            closing.closes(relay.close)
        settings = evolve(settings, relay=relay.path if relay else "", serves_store=connection.serves)
        status.begins(connection.place, how_to_ask(options, settings.run_id, connection.place, settings.relay))
        orphans = Orphans(connection.children) if adopts else None
        for warning in filter(None, (kernel.slower(), protection.warning())):
            status.warn(warning)
        parts = spawner and Lent(spawner), orphans, evictions.evict, patience, protection, executor, connection.rounds
        observer = Observers(status, *observers, *([handle] if handle else []))
        make = partial(_made, settings, clock, observer, partial(_trace, options.trace, is_alone), parts, handle)
        with CleanUp(failures) as lent:
            if spawner:
                lent.closes(spawner.close)
            result, directory, gone_by = _run(make, settings, connection.backend, failures, status.warn)
        code = exit_code(result.outcome, is_finished_ok and result.had_a_seat)
        of_calls = relay.restarts if relay else 0
        report = Report(settings, result, code, clock.now() - status.began_at, of_calls)
        written, lost = _write(report, patience, options.report, directory)
        lines = [*render_report(report, written), *lost]
        last_lines = lines if code == 0 or tells_failure else []
        status.end(last_lines, well=code == 0 and not lost, tells_failures=report.cause is not None)
        if settings.serves_store and gone_by is not None and isinstance(result.outcome, Drained):
            _serve_on(connection, settings, gone_by, status, handle)
        elif settings.serves_store and result.others and (code == UNFIT or isinstance(result.outcome, Unawaited)):
            _serve_on(connection, settings, math.inf, status, handle)
    return report, lines


def _end(err: PatientText, failures: Sequence[Exception]) -> None:
    for failure in failures:
        err.write(printed(f"elastic  the clean-up at the end was not complete: {failure}"))
    err.close(PATIENCE_S)


def _of_cpus(settings: LaunchSettings) -> Iterator[str]:
    """Yield what people should know of this host's CPUs."""
    if few := few_cpus(settings.local_world_size):
        yield few
    if settings.cpus:
        from ..adapters.workers.devices.kfd import unplaced  # few jobs are bound

        if text := unplaced():
            yield text


def _observers(
    options: LaunchOptions, settings: LaunchSettings, clock: Clock, status: StatusLines, closing: CleanUp
) -> tuple[Sequence[Observer], bool]:
    """Return the observers that were asked for, and if some of them run code of others. Raises Mistake."""
    logs = telemetry(options, settings, clock, status.warn)
    for log in logs:
        closing.closes(log.close)
    name = settings.slot or socket.gethostname()
    if metrics := _metrics(options, name):
        closing.closes(metrics.close)
    if spans := _spans(options, settings, name, clock, status):
        closing.closes(spans.close)
    return (*logs, *([metrics] if metrics else []), *([spans] if spans else [])), bool(logs)


def _settings(
    options: LaunchOptions,
    program: Program | Function,
    where: places.Place | EtcdPlace,
    environment: Mapping[str, str],
    token: Secret | None,
) -> LaunchSettings:
    """Return what the agent is to do, with the address at which the other nodes reach this one, and the interface of that
    for the workers' libraries. This waits for a route to the store; without one the agent soon says so, and ends."""
    settings = evolve(launch_settings(options, program, where, environment), token=token)
    met = options.rdzv_endpoint
    is_own = options.standalone or (met is not None and met.addresses[0][1] == 0)  # nobody else knows the port
    if not is_own and (text := slurm.crowd(environment, options.nnodes.max_nodes, options.nproc_per_node)):
        say(f"elastic: {text}", err=True)
    if options.nnodes.max_nodes == 1:
        return settings if options.local_addr else evolve(settings, address=where.own_address())
    spans = settings.rendezvous
    if not (options.local_addr or where.await_route(spans.join_timeout)):
        spans = evolve(spans, join_timeout=min(spans.join_timeout, _NO_ROUTE_S))
    from ..adapters.workers.start.interfaces import interface_variables  # a job of one node needs none

    address = options.local_addr or where.own_address()
    inherited = {**settings.environment, **interface_variables(environment, address)}
    return evolve(settings, address=address, rendezvous=spans, environment=inherited)


def _serving(closing: CleanUp) -> Executor:
    """Return the executor beside other code in this process: the workers' orphans are not the agent's."""
    from ..adapters.workers.start.forks import Serving  # most launches need none

    serving = Serving()
    closing.closes(serving.close)
    return serving


def _serve_on(
    connection: AgentConnection, settings: LaunchSettings, gone_by: float, status: StatusLines, handle: Handle | None
) -> None:
    """Keep the store up for the other nodes after this one was drained, stays out or waits no longer. A signal ends that."""
    if handle:
        handle.stops_by(lambda signum: connection.let_go())

    def waits(others: int) -> None:
        status.serves_on(others, gone_by)

    with signals_as_events(settings.signals, lambda signum, frame: connection.let_go()):
        others = connection.outlast(gone_by, waits)
    if others:
        status.warn(f"the store of {count(others, 'other node')} ends with this agent, which must be gone by now")


def telemetry(
    options: LaunchOptions, settings: LaunchSettings, clock: Clock, warn: Callable[[str], None]
) -> list[EventLog | MetricsLog | RendezvousLog]:
    """Return the observers that pass torch's events and metrics to the handlers of the options. Raises Mistake."""
    events, metrics = options.event_log_handler, options.metrics_handler
    if (events, metrics) == ("null", "null") and "torch" not in sys.modules:  # a program may have put handlers there
        return []
    from ..adapters.torch.telemetry import (  # most jobs need none
        EventLog,
        MetricsLog,
        RendezvousLog,
        event_handler,
        metrics_handler,
        rendezvous_handler,
    )

    events_to = _handler("--event-log-handler", event_handler, events)
    metrics_to = _handler("--metrics-handler", metrics_handler, metrics)
    rendezvous_to = _handler("--event-log-handler", rendezvous_handler, events)
    logs: list[EventLog | MetricsLog | RendezvousLog] = []
    try:
        if events_to:
            logs.append(EventLog(events_to, events, settings, options.backend, clock, warn))
        if rendezvous_to:
            logs.append(RendezvousLog(rendezvous_to, settings, warn))
    except ValueError as reason:
        raise Mistake(str(reason)) from None
    if metrics_to:
        logs.append(MetricsLog(metrics_to, settings, clock, warn))
    return logs


def _metrics(options: LaunchOptions, name: str) -> AgentMetrics | None:
    """Return the observer that serves Prometheus, if one was asked for. Raises Mistake."""
    if options.metrics is None:
        return None
    try:
        from ..adapters.report.metrics import AgentMetrics  # few jobs need it, and its package may not be there
    except ImportError:
        raise Mistake(
            "--metrics: needs the package prometheus-client; install elastic-launch as before, with [metrics] behind it"
        ) from None
    host, port = options.metrics
    try:
        return AgentMetrics(host, port, name)
    except OSError as error:
        raise Mistake(f"--metrics={host}:{port}: {why(error)}; name a port that is free on this host") from None


def _spans(
    options: LaunchOptions, settings: LaunchSettings, name: str, clock: Clock, status: StatusLines
) -> AgentSpans | None:
    """Return the observer that sends spans, if they were asked for. Raises Mistake."""
    if options.otel_endpoint is None:
        return None
    try:
        from ..adapters.report.telemetry_spans import AgentSpans  # few jobs need it, and its packages may not be there

        return AgentSpans(options.otel_endpoint, settings.run_id, name, clock, status.warn)
    except ImportError:
        raise Mistake(
            "--otel-endpoint: needs the packages of OpenTelemetry; install elastic-launch as before, with [otel] behind it"
        ) from None
    except OSError as error:
        raise Mistake(f"--otel-endpoint: {why(error)}") from None
    except (ValueError, RuntimeError) as error:  # OpenTelemetry's own variables
        raise Mistake(f"--otel-endpoint: {error}; correct or unset that variable") from None


def _handler(option: str, find: Callable[[str], Handler], name: str) -> Handler:
    try:
        return find(name)
    except ValueError as reason:
        raise Mistake(f"{option}={name}: {reason}") from None


def _stderr() -> TextIO:
    """Return standard error, or the process' own where that has no descriptor, as in a notebook."""
    try:
        sys.stderr.fileno()
    except (OSError, ValueError):
        return sys.__stderr__ or open(os.devnull, "w")
    return sys.stderr


def _relay(connection: AgentConnection, evictions: Evictions, settings: LaunchSettings) -> Relay | None:
    """Return what the workers reach the store by, and this user's commands the job. A host that cannot have one runs
    without: a worker that needs it fails."""
    try:
        return Relay(
            connection.beside, evictions.follow, OwnJob(settings.run_id, connection.place, connection.for_others)
        )
    except (OSError, RuntimeError):  # no socket, no thread
        return None


def _trace(path: str | None, is_alone: bool, is_first: bool, run_id: str) -> Trace:
    """Return the trace of an agent. The time of the first one begins with its program, if that runs nothing else."""
    began_at = main.began_at if is_alone and is_first else None
    if path is None:
        return NoTrace(began_at)
    from ..adapters.report.trace_file import TraceFile  # brings the codec, which an agent alone does without

    return TraceFile(path, began_at=began_at, run_id=run_id)


Ran: TypeAlias = tuple[Result, str | None, float | None]
"""The result of an agent, where the report belongs if the user keeps logs, and when a drained node must be gone."""


def _made(
    settings: LaunchSettings,
    clock: Clock,
    observer: Observer,
    trace: Callable[[bool, str], Trace],
    parts: tuple[Any, ...],
    handle: Handle | None,
    backend: Backend,
    node: Node | None = None,
) -> Agent:
    agent = Agent(settings, backend, clock, observer, trace(node is None, settings.run_id), *(*parts, node))
    if handle:
        handle.stops_by(agent.stop)
    return agent


def _run(
    make: Callable[..., Agent],
    settings: LaunchSettings,
    backend: Backend,
    failures: list[Exception],
    warn: Callable[[str], None],
) -> Ran:
    """Run an agent; and another, as the successor of a dead start of its slot, if the first was refused because that was
    later. Return what came of the last one. `failures` gets those of their clean-up. Raises Mistake."""
    ran = _run_once(partial(make, backend), settings, failures)
    result, *_ = ran
    if not (isinstance(result.outcome, Refused) and result.outcome.why is Why.BEHIND):
        return ran
    if (heir := successor(result.state, result.node)) is None:
        return ran
    warn(
        f"the last start of {heir.slot} is dead, and was later than this one by its clock: this host's clock is behind, "
        "or was; the node takes that seat"
    )
    with CleanUp(failures) as closing:
        backend = backend.clone()
        closing.closes(backend.close)
        return _run_once(partial(make, backend, heir), settings, failures)


def _run_once(make: Callable[[], Agent], settings: LaunchSettings, failures: list[Exception]) -> Ran:
    try:
        agent = make()
    except CannotLog as reason:
        if settings.logs.directory is None and "TMPDIR" not in os.environ:
            raise Mistake(f"--log-dir is missing, and there is no place for temporary files: {reason}") from None
        raise Mistake(f"{'--log-dir' if settings.logs.directory else 'TMPDIR'}={reason}") from None
    except OSError as error:
        more = "; write: ulimit -n 4096" if error.errno == errno.EMFILE else ""
        raise Mistake(f"no agent can run on this host: {why(error)}{more}") from None
    try:
        return agent.run(), agent.report_path, agent.gone_by
    except CannotTrace as reason:
        raise Mistake(f"--trace={reason}") from None
    except CannotWatch as reason:
        raise Mistake(str(reason)) from None
    finally:
        failures += agent.failures


def _write(report: Report, patience: Patience, *paths: str | None) -> tuple[list[str], list[str]]:
    """Write the report to files; return those that hold it, and a line for each that could not be written."""
    written, lost = [], []
    disk = Disk()
    for path in paths:
        try:
            if path:
                patience.spend(partial(disk.do, partial(write_report, path, report), lambda written: None))
                written.append(path)
        except OSError as error:
            lost.append(f"the report could not be written: {path}: {why(error)}")
    disk.close()
    return written, lost
