"""`elastic launch`: the command line -> LaunchSettings -> the agent -> an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import click
from attrs import fields

from ..adapters.agent import Agent
from ..adapters.backends.memory import MemoryBackend, MemoryStore
from ..adapters.clock import SystemClock
from ..adapters.report import Report, write_report
from ..adapters.settings import Kind, LaunchSettings, Logs, Program
from ..core import group, rendezvous
from . import values
from .exit_codes import exit_code
from .mistakes import Mistake
from .options import SECTIONS, Option, all_options
from .render.report import render_report
from .render.status import StatusLines

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
Exit codes:  0 succeeded · 1 failed · 2 a mistake in the command line · 3 rendezvous timed out or store lost
             128+n stopped by signal n
"""


class Manual(click.Command):
    """Shows the options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            options = [
                param for param in self.get_params(ctx) if isinstance(param, Option) and param.section == section
            ]
            with formatter.section(section):
                formatter.write_dl([record for param in options if (record := param.get_help_record(ctx))])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as mistake:
            mistake.ctx = ctx  # click does not say which command's option it was
            raise

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
def launch(**given: Any) -> int:
    """Run SCRIPT as a distributed PyTorch job, and keep it running.

    Takes torchrun's options, in both spellings and as PET_ variables. SCRIPT is started as --nproc-per-node workers, each
    with its rank in its environment.
    """
    settings = launch_settings(given, os.environ)
    status = StatusLines(sys.stderr, settings, quiet=given["status"] == "off")
    clock = SystemClock()
    try:
        agent = Agent(settings, MemoryBackend(MemoryStore(), clock), clock, status)
    except ValueError as reason:
        raise Mistake(f"--log-dir={reason}") from None
    result = agent.run()
    code = exit_code(result.outcome)
    report = Report(settings, result, code, clock.now() - status.began_at)
    written, lost = _write(report, given["report"], agent.report_path)
    status.end([*render_report(report, written), *lost])
    return code


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


def launch_settings(given: Mapping[str, Any], environment: Mapping[str, str]) -> LaunchSettings:
    """What the options ask for. Raises Mistake."""
    _check_nodes(given)
    min_nodes, max_nodes = given["nnodes"]
    limits = rendezvous.Limits(min_nodes, max_nodes, given["max_restarts"])
    meeting = _rendezvous(limits, given["rdzv_conf"])
    return LaunchSettings(
        program=_program(given, environment),
        local_world_size=given["nproc_per_node"],
        run_id=given["rdzv_id"] or os.urandom(8).hex(),
        role=given["role"],
        slot=given["node_id"],
        address=given["local_addr"] or "localhost",
        rendezvous=meeting,
        group=group.Settings(given["grace"], _shutdown_timeout(given, environment), meeting.leave_timeout, meeting.ttl),
        logs=_logs(given, environment),
        signals=given["signals_to_handle"],
        environment=dict(environment),
    )


def _check_nodes(given: Mapping[str, Any]) -> None:
    low, high = given["nnodes"]
    if high > 1:
        raise Mistake(f"--nnodes={low}:{high}: this version runs on one node; write --nnodes=1")
    if given["rdzv_backend"] not in ("c10d", "static"):
        raise Mistake(f"--rdzv-backend={given['rdzv_backend']}: this version knows c10d (and static); leave it out")
    if given["rdzv_endpoint"] and not given["standalone"]:
        raise Mistake(f"--rdzv-endpoint={given['rdzv_endpoint']}: this version runs on one node; write --standalone")


def _program(given: Mapping[str, Any], environment: Mapping[str, str]) -> Program:
    if given["no_python"] and given["module"]:
        raise Mistake("--no-python and --module: a module needs Python; leave one of them out")
    kind = Kind.BINARY if given["no_python"] else Kind.MODULE if given["module"] else Kind.SCRIPT
    return Program(kind, given["script"], given["arguments"], environment.get("PYTHON_EXEC") or sys.executable)


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
    return Logs(given["log_dir"], given["redirects"], given["tee"], given["local_ranks_filter"], template)


def _rendezvous(limits: rendezvous.Limits, conf: Mapping[str, str]) -> rendezvous.Settings:
    """The spans of --rdzv-conf. What torch knows and we have no use for is taken silently; what nobody knows is named."""
    ours = {field.name: field for field in fields(rendezvous.Settings) if field.name != "limits"}
    if conf.get("store_type") == "file":
        raise Mistake("--rdzv-conf: store_type=file: a file is no store for a job; leave it out")
    theirs = ("timeout", "read_timeout", "heartbeat_timeout", "is_host", "store_type")
    spans = {}
    for key, text in conf.items():
        if key in ours:
            spans[key] = _span(key, text, whole=not isinstance(ours[key].default, float))
        elif key not in theirs:
            _warn_unknown(key, (*ours, *theirs))
    try:
        return rendezvous.Settings(limits, **spans)
    except ValueError as reason:
        raise Mistake(f"--rdzv-conf: {reason}") from None


def _span(key: str, text: str, whole: bool) -> Any:
    try:
        return values.whole(text) if whole else values.seconds(text)
    except ValueError as reason:
        raise Mistake(f"--rdzv-conf: {key}={text}: {reason}") from None


def _warn_unknown(key: str, known: tuple[str, ...]) -> None:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1, 0.5)
    suggestion = f"; did you mean {near[0]}?" if near else ""
    names = ", ".join(known)
    print(f"elastic: --rdzv-conf: '{key}' is not a key{suggestion} (known: {names})", file=sys.stderr)
