"""`elastic launch`: the command line -> LaunchSettings -> the agent -> an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click
from attrs import evolve

from ..adapters.agent import Agent, Result
from ..adapters.backends.relay_host import Relay
from ..adapters.clock import Clock, SystemClock
from ..adapters.meeting import Meeting
from ..adapters.news import CannotTrace, NoTrace, Observer, Observers, Trace
from ..adapters.oversight import CannotOversee
from ..adapters.report import Report, write_report
from ..adapters.settings import Function, Kind, LaunchSettings, Program
from ..adapters.workers.environment import TRACE
from ..adapters.workers.logs import Logs
from ..adapters.workers.nvml import NoDevices
from ..adapters.workers.port import CannotStart
from ..adapters.workers.processes import Spawner
from ..adapters.workers.programs import check_program
from ..core import group, rendezvous
from . import etcd, nodes, tokens, values
from .abbreviations import in_full
from .exit_codes import exit_code
from .handlers import telemetry
from .mistakes import Mistake
from .option import SECTIONS, Command, Option
from .options import all_options
from .oversight import oversight
from .rare_options import said_once
from .render.patient import PatientText
from .render.report import render_report
from .render.status import StatusLines

if TYPE_CHECKING:
    from ..adapters.workers.plugged_logs import LogsSpecs

PATIENCE_S = 5.0
"""How long the end waits for a terminal that does not read what was said."""
FENCE = 0.6
"""Of the TTL: the age of the last acknowledged heartbeat at which --on-store-loss=stop kills the workers."""

EPILOG = """\b
Everything after SCRIPT belongs to the script. ${local_rank} in an argument becomes the worker's.
\b
  elastic launch --nproc-per-node=4 train.py --epochs 10
  elastic launch --nproc-per-node=gpu --max-restarts=3 --tee=3 --log-dir=logs -m my.training
\b
Workers find torchrun's variables (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, ...) and also
ELASTIC_ROUND (counts the rounds of the job: a fencing token for checkpoints) and ELASTIC_NODE_ID.
OMP_NUM_THREADS is 1 if it is not set and a node has several workers.
\b
When a worker fails, all are stopped and, while --max-restarts allows it, started again within milliseconds.
A worker's whole process group dies with it, and all of them die with this command, whatever kills it.
\b
Exit codes:  0 succeeded · 1 failed · 2 a mistake in the command line · 3 rendezvous timed out
             128+n stopped by signal n
"""


class Manual(Command):
    """Shows the options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            options = [
                param for param in self.get_params(ctx) if isinstance(param, Option) and param.section == section
            ]
            with formatter.section(section):
                formatter.write_dl([record for param in options if (record := param.get_help_record(ctx))])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        return super().parse_args(ctx, in_full(args, options))

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "SCRIPT", "[ARGUMENTS]..."]


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
    meeting = where.open(settings.run_id, clock, settings.rendezvous)
    status.serves_store = meeting.serves
    relay = _relay(meeting)
    try:
        settings = evolve(settings, relay=relay.path if relay else "")
        observer = Observers(status, *logs)
        result, directory = _run(settings, meeting, clock, observer, _trace(given["trace"]), spawner)
        code = exit_code(result.outcome)
        report = Report(settings, result, code, clock.now() - status.began_at)
        written, lost = _write(report, given["report"], directory)
        lines = [*render_report(report, written), *lost]
        if code == 0 or tells_failure:
            status.end(lines, well=code == 0 and not lost)
    finally:
        if relay:
            relay.close()
        for log in logs:
            log.close()
        meeting.close(settings.rendezvous.ttl)
        err.close(PATIENCE_S)
    return report, lines


def _stderr() -> TextIO:
    """One with a descriptor: a notebook's own has none."""
    try:
        sys.stderr.fileno()
    except (OSError, ValueError):
        return sys.__stderr__ or open(os.devnull, "w")
    return sys.stderr


def _relay(meeting: Meeting) -> Relay | None:
    try:
        return Relay(meeting.beside)
    except OSError:
        return None  # whichever worker needs it says so


def _trace(path: str | None) -> Trace:
    if path is None:
        return NoTrace()
    from ..adapters.trace import TraceFile  # with the codec behind it, which an agent alone needs not

    return TraceFile(path)


def _ranks_trace(path: str | None) -> Mapping[str, str]:
    """What tells the workers where their wrapped functions are traced: beside the agent, whatever their own directory is."""
    if path is None:
        return {}
    is_directory = path.endswith("/") or os.path.isdir(path)
    return {TRACE: os.path.abspath(path if is_directory else f"{path}.ranks")}


def _run(
    settings: LaunchSettings,
    meeting: Meeting,
    clock: Clock,
    observer: Observer,
    trace: Trace,
    spawner: Spawner | None,
) -> tuple[Result, str | None]:
    """What came of it, and where the report belongs if the user keeps logs."""
    try:
        agent = Agent(settings, meeting.backend, clock, observer, trace, spawner)
    except ValueError as reason:
        raise Mistake(f"{'--log-dir' if settings.logs.directory else 'TMPDIR'}={reason}") from None
    try:
        return agent.run(), agent.report_path
    except CannotTrace as reason:
        raise Mistake(f"--trace={reason}") from None
    except CannotOversee as reason:
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


def launch_settings(
    given: Mapping[str, Any],
    program: Program | Function,
    where: nodes.Place | etcd.EtcdPlace,
    environment: Mapping[str, str],
) -> LaunchSettings:
    """What the options ask for. Raises Mistake."""
    meeting, logs = nodes.settings(given), _logs(given, environment)
    return LaunchSettings(
        program=program,
        local_world_size=given["nproc_per_node"],
        run_id=given["rdzv_id"] or _run_id(given, where),
        role=given["role"],
        slot=given["node_id"] or nodes.slot(given),
        node_rank=given["node_rank"],
        address=given["local_addr"] or where.own_address(),
        store=where.name,
        rendezvous=meeting,
        group=_group(given, meeting, environment),
        logs=logs,
        logs_plugin=_logs_plugin(given["logs_specs"], logs),
        signals=given["signals_to_handle"],
        environment={**environment, **_ranks_trace(given["trace"])},
        virtual_local_rank=_virtual_local_rank(given, environment),
        cpus=_cpus(given, environment),
        oversight=oversight(environment),
    )


def _run_id(given: Mapping[str, Any], where: nodes.Place | etcd.EtcdPlace) -> str:
    """Nodes that are to meet must call the job by one name; a node alone calls it by any, unless it is told of a place."""
    alone = isinstance(where, nodes.Place) and where.endpoint is None
    placed = nodes.is_static(given) and (given["rdzv_endpoint"] or given["master_port"])
    return os.urandom(8).hex() if alone and not placed else "none"


def _group(given: Mapping[str, Any], meeting: rendezvous.Settings, environment: Mapping[str, str]) -> group.Settings:
    try:
        return group.Settings(
            grace=given["grace"],
            shutdown_timeout=_shutdown_timeout(given, environment),
            leave_timeout=meeting.leave_timeout,
            ttl=meeting.ttl,
            keep_alive_interval=meeting.keep_alive_interval,
            start_timeout=meeting.join_timeout,
            fence=FENCE * meeting.ttl if given["on_store_loss"] == "stop" else None,
            alone=_alone(given),
        )
    except ValueError as reason:
        raise Mistake(
            f"--on-store-loss=stop: {reason}; heartbeats of 1 s and more attempts leave time to stop the workers, like "
            "--rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=5"
        ) from None


def _alone(given: Mapping[str, Any]) -> group.Alone | None:
    if given["restart_scope"] == "group":
        return None
    from ..core.inprocess.exits import FINAL, JOB_OVER  # which no other launch needs

    return group.Alone(given["max_restarts"], FINAL, JOB_OVER)


def script_program(given: Mapping[str, Any], environment: Mapping[str, str]) -> Program:
    """What every worker executes. Raises Mistake."""
    if given["use_env"] and given["no_use_env"]:
        raise Mistake("--use-env and --no-use-env: one is the other's opposite; leave one of them out")
    local_rank = ("--local-rank=${local_rank}",) if given["no_use_env"] else ()
    if not given["script"]:
        raise Mistake("SCRIPT is empty; write the name of a script, a module (--module) or a program (--no-python)")
    kind = _kind(given)
    if kind is Kind.MODULE and given["script"].endswith(".py"):
        raise Mistake(
            f"{given['script']}: a module's name has no .py; write {given['script'][:-3]}, or leave --module out"
        )
    return Program(kind, given["script"], (*local_rank, *given["arguments"]), _python(environment))


def _python(environment: Mapping[str, str]) -> str:
    """The interpreter that PYTHON_EXEC names, else this one. Raises Mistake."""
    named = environment.get("PYTHON_EXEC")
    if not named:
        return sys.executable
    try:
        check_program(named, environment.get("PATH"))
    except CannotStart as reason:
        raise Mistake(f"PYTHON_EXEC={reason}; name a Python, or unset it") from None
    return named


def _kind(given: Mapping[str, Any]) -> Kind:
    if given["run_path"]:
        return Kind.PATH
    if given["no_python"] and given["module"]:
        raise Mistake("--no-python and --module: a module needs Python; leave one of them out")
    return Kind.BINARY if given["no_python"] else Kind.MODULE if given["module"] else Kind.SCRIPT


def _virtual_local_rank(given: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    wanted, there = given["nproc_per_node"], len(visible.split(",")) if visible else 0
    if given["virtual_local_rank"] and visible is not None and there < wanted:
        remedy = f"write --nproc-per-node={there}" if there else "leave it out"
        raise Mistake(
            f"--virtual-local-rank: {wanted} workers, each with a device of its own, but CUDA_VISIBLE_DEVICES={visible} "
            f"names {there}; {remedy}"
        )
    return bool(given["virtual_local_rank"])


def _cpus(given: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[frozenset[int], ...]:
    mode = given["numa_binding"]
    if mode is None:
        return ()
    from ..adapters.workers.numa import CannotBind, bindings, visible_gpus

    try:
        return bindings(mode, given["nproc_per_node"], visible_gpus(environment.get("CUDA_VISIBLE_DEVICES")))
    except (CannotBind, NoDevices) as reason:
        raise Mistake(f"--numa-binding={mode}: {reason}") from None


def _shutdown_timeout(given: Mapping[str, Any], environment: Mapping[str, str]) -> float:
    if given["shutdown_timeout"] is not None:
        return float(given["shutdown_timeout"])
    text = environment.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30")
    try:
        return values.seconds(text)
    except ValueError as reason:
        raise Mistake(f"TORCH_ELASTIC_SHUTDOWN_TIMEOUT={text}: {reason}") from None


def _logs(given: Mapping[str, Any], environment: Mapping[str, str]) -> Logs:
    template = environment.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE")
    return Logs(
        given["log_dir"],
        given["redirects"],
        given["tee"],
        given["local_ranks_filter"],
        template,
        given["duplicate_stdout_filters"],
        given["duplicate_stderr_filters"],
    )


def _logs_plugin(name: str | None, logs: Logs) -> LogsSpecs | None:
    if name is None:
        return None
    from ..adapters.workers.plugged_logs import make_plugin

    try:
        return make_plugin(name, logs)
    except ValueError as reason:
        raise Mistake(f"--logs-specs={name}: {reason}") from None
