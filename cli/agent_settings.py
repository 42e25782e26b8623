"""Options and environment -> `LaunchSettings`, the workers' program included. Nothing starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ..adapters.agent.watchdogs import HEALTH_PORT, TIMER_FILE
from ..adapters.launch_settings import (
    STACKS_SIGNAL,
    DrainSettings,
    Function,
    Kind,
    LaunchSettings,
    Logs,
    NodeCheck,
    Program,
    StandbySettings,
    WatchdogSettings,
)
from ..adapters.workers.devices.nvml import NoDevices, nvlink_domain
from ..adapters.workers.output.logs import temporaries
from ..adapters.workers.start.environment import TRACE, inherited
from ..adapters.workers.start.programs import check_program
from ..adapters.workers.worker_port import CannotStart
from ..core import group, rendezvous
from ..core.values import evolve
from . import slurm, values
from .launch_options import LaunchOptions
from .mistakes import Mistake
from .places import Place
from .render.text import say
from .rendezvous_settings import FENCE, alone, listening, rendezvous_settings

if TYPE_CHECKING:
    from ..adapters.workers.worker_port import LogsSpecs
    from ..core.hangs import HangSettings
    from .etcd_place import EtcdPlace

NVLINK = "nvlink"
"""The label whose value NVML tells where the user does not."""
SHUTDOWN_TIMEOUT = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
EXIT_BARRIER_TIMEOUT = "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT"
PREFIX_TEMPLATE = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"
ENABLE_TIMER = "TORCHELASTIC_ENABLE_FILE_TIMER"
STUCK_AFTER = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"
"""Variables of torch."""

STACKS_VARIABLE = "ELASTIC_STACKS_SIGNAL"
"""The signal at which workers write their stacks, by number, or off."""

ANY_JOB = "none"
"""The name of a job that was given none, on an endpoint where nodes meet."""

Read = TypeVar("Read")


def finished_is_ok(options: LaunchOptions) -> bool:
    """Return True if a node that comes back to a job which has succeeded ends with 0. Raises Mistake."""
    finished = options.rdzv_conf.get("finished")
    if finished not in (None, "ok"):
        raise Mistake(f"--rdzv-conf: finished={finished}: write ok, or leave it out")
    if finished and not (options.rdzv_id and options.node_id):
        raise Mistake(
            "--rdzv-conf: finished=ok: needs --rdzv-id and --node-id, by which a node that comes back is known"
        )
    return finished is not None


def launch_settings(
    options: LaunchOptions, program: Program | Function, where: Place | EtcdPlace, environment: Mapping[str, str]
) -> LaunchSettings:
    """Return what the agent is to do. Without `--local-addr` its address is one of this host alone. Raises Mistake."""
    spans, logs = rendezvous_settings(options), _logs(options, environment)
    signum = environment.get(STACKS_VARIABLE) or str(STACKS_SIGNAL)
    run_id = options.rdzv_id or _run_id(options, where)
    if run_id == ANY_JOB and not options.rdzv_id and "same_program" not in options.rdzv_conf:
        spans = evolve(spans, same_program=rendezvous.Comparison.ARGUMENTS)
    return LaunchSettings(
        program=program,
        local_world_size=options.nproc_per_node,
        run_id=run_id,
        role=options.role,
        slot=options.node_id or _slot(options),
        place=slurm.place(environment) if options.node_rank is None else (options.node_rank,),
        labels=_labels(options),
        rank_keys=options.rank_policy,
        address=options.local_addr or "localhost",
        store=where.name,
        rendezvous=spans,
        group=_group(options, spans, environment),
        logs=logs,
        logs_plugin=_logs_plugin(options.logs_specs, logs),
        signals=options.signals_to_handle,
        linger_s=options.linger,
        drain=_drain(options),
        environment={**inherited(environment), **_ranks_trace(options.trace)},
        virtual_local_rank=_virtual_local_rank(options, environment),
        cpus=_cpus(options, environment),
        listening=listening(options, where.port),
        standby=standby_settings(options, program),
        watchdogs=watchdog_settings(environment),
        node_check=NodeCheck(options.node_check, options.node_check_timeout) if options.node_check else None,
        hang=_hang(options),
        stacks_signal=_read(values.stacks_signal, STACKS_VARIABLE, signum),
    )


def _labels(options: LaunchOptions) -> tuple[tuple[str, str], ...]:
    """Return this node's labels. If the job runs on segments of NVLink domains, its own is one of them. A node without the
    label of the segments is told that it is a spare."""
    label, size = options.segment or ("", 0)
    if not label or label in {**dict(options.labels), "host": "", "role": ""}:
        return options.labels
    if label == NVLINK and (domain := nvlink_domain()):
        return tuple(sorted((*options.labels, (label, domain))))
    lacks = "NVML knows no NVLink domain of this host" if label == NVLINK else f"this node has no label {label}"
    say(f"elastic: --segment={label}:{size}: {lacks}, so the node is a spare; write --labels={label}=VALUE", err=True)
    return options.labels


def _drain(options: LaunchOptions) -> DrainSettings:
    """Return what drains this node. Raises Mistake."""
    signum = options.drain_signal
    if signum is not None and signum in options.signals_to_handle:
        raise Mistake(f"--drain-signal={signum.name}: --signals-to-handle has it too; leave it out of one of them")
    check = options.watch_check
    watch = NodeCheck(check, options.node_check_timeout, options.watch_check_every) if check else None
    return DrainSettings(signum, options.drain_file, options.drain_deadline, watch)


def standby_settings(options: LaunchOptions, program: Program | Function) -> StandbySettings | None:
    """Return what standbys are wanted. Only Python can import something before its program begins."""
    if options.standby is None or (isinstance(program, Program) and program.kind is Kind.BINARY):
        return None
    return StandbySettings(0 if options.standby == "each" else options.standby, options.preload)


def _run_id(options: LaunchOptions, where: Place | EtcdPlace) -> str:
    """Return the name of a job that was given none: a random one for a node that meets no other, else one for all nodes."""
    if isinstance(where, Place) and where.run_id:
        return where.run_id
    alone = isinstance(where, Place) and where.endpoint is None
    placed = options.is_static and (options.rdzv_endpoint or options.master_port)
    return os.urandom(8).hex() if alone and not placed else ANY_JOB


def _slot(options: LaunchOptions) -> str | None:
    """Return the place of a node with a node rank in a static job. A later start of that node takes the place over."""
    return str(options.node_rank) if options.is_static and options.node_rank is not None else None


# --- the workers' program


def script_program(
    options: LaunchOptions, script: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> Program:
    """Return what every worker executes. Raises Mistake."""
    if options.use_env and options.no_use_env:
        raise Mistake("--use-env and --no-use-env: one is the other's opposite; leave one of them out")
    local_rank = ("--local-rank=${local_rank}",) if options.no_use_env else ()
    if not script:
        raise Mistake("SCRIPT is empty; write the name of a script, a module (--module) or a program (--no-python)")
    kind = _kind(options)
    if kind is Kind.MODULE and script.endswith(".py"):
        raise Mistake(f"{script}: a module's name has no .py; write {script[:-3]}, or leave --module out")
    return Program(kind, script, (*local_rank, *arguments), _python(environment))


def _kind(options: LaunchOptions) -> Kind:
    if options.run_path:
        return Kind.PATH
    if options.no_python and options.module:
        raise Mistake("--no-python and --module: a module needs Python; leave one of them out")
    return Kind.BINARY if options.no_python else Kind.MODULE if options.module else Kind.SCRIPT


def _python(environment: Mapping[str, str]) -> str:
    """Return the interpreter that PYTHON_EXEC names, else this one. Raises Mistake."""
    named = environment.get("PYTHON_EXEC")
    if not named:
        return sys.executable
    try:
        check_program(named, environment.get("PATH"))
    except CannotStart as reason:
        raise Mistake(f"PYTHON_EXEC={reason}; name a Python, or unset it") from None
    return named


# --- the group of workers


def _group(options: LaunchOptions, spans: rendezvous.Settings, environment: Mapping[str, str]) -> group.Settings:
    shutdown_timeout = options.shutdown_timeout
    if shutdown_timeout is None:
        shutdown_timeout = _read(values.seconds, SHUTDOWN_TIMEOUT, environment.get(SHUTDOWN_TIMEOUT, "30"))
    barrier_timeout = options.exit_barrier_timeout
    if barrier_timeout is None and (text := environment.get(EXIT_BARRIER_TIMEOUT)):
        barrier_timeout = _read(values.exit_barrier, EXIT_BARRIER_TIMEOUT, text)
    try:
        return group.Settings(
            grace=options.grace,
            shutdown_timeout=shutdown_timeout,
            leave_timeout=spans.leave_timeout,
            ttl=spans.ttl,
            keep_alive_interval=spans.keep_alive_interval,
            start_timeout=spans.join_timeout,
            barrier_timeout=spans.barrier_timeout if barrier_timeout is None else barrier_timeout,
            fence=FENCE * spans.ttl if options.on_store_loss == "stop" else None,
            alone=alone(spans.limits),
            checks=True if options.node_check else None,
        )
    except ValueError as reason:
        raise Mistake(
            f"--on-store-loss=stop: {reason}; heartbeats of 1 s and more attempts leave time to stop the workers, like "
            "--rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=5"
        ) from None


def _hang(options: LaunchOptions) -> HangSettings | None:
    if options.hang_timeout is None:
        return None
    from ..core.hangs import HangSettings  # no other launch needs them

    return HangSettings(options.hang_timeout, options.on_hang == "restart")


def _virtual_local_rank(options: LaunchOptions, environment: Mapping[str, str]) -> bool:
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    wanted, there = options.nproc_per_node, len(visible.split(",")) if visible else 0
    if options.virtual_local_rank and visible is not None and wanted > max(there, 1):
        remedy = f"write --nproc-per-node={there}" if there else "leave it out"
        raise Mistake(
            f"--virtual-local-rank: {wanted} workers, each with a device of its own, but CUDA_VISIBLE_DEVICES={visible} "
            f"names {there}; {remedy}"
        )
    return options.virtual_local_rank


def _cpus(options: LaunchOptions, environment: Mapping[str, str]) -> tuple[frozenset[int], ...]:
    mode = options.numa_binding
    if mode is None:
        return ()
    from ..adapters.workers.devices import kfd
    from ..adapters.workers.devices.numa import CannotBind, bindings, visible_gpus

    try:
        workers = options.nproc_per_node
        gpus = visible_gpus(environment.get("CUDA_VISIBLE_DEVICES")) or kfd.visible_gpus(environment, workers)
        return bindings(mode, workers, gpus)
    except (CannotBind, NoDevices) as reason:
        raise Mistake(f"--numa-binding={mode}: {reason}") from None


# --- logs and traces


def _logs(options: LaunchOptions, environment: Mapping[str, str]) -> Logs:
    return Logs(
        options.log_dir,
        options.redirects,
        options.tee,
        options.local_ranks_filter,
        environment.get(PREFIX_TEMPLATE),
        options.duplicate_stdout_filters,
        options.duplicate_stderr_filters,
    )


def _logs_plugin(name: str | LogsSpecs | None, logs: Logs) -> LogsSpecs | None:
    if not isinstance(name, str):
        return name
    from ..adapters.workers.output.plugged_logs import make_plugin

    try:
        return make_plugin(name, logs)
    except ValueError as reason:
        raise Mistake(f"--logs-specs={name}: {reason}") from None


def _ranks_trace(path: str | None) -> Mapping[str, str]:
    """Return the variable that tells the workers where to trace their wrapped functions: beside the agent's trace.

    The path is absolute, since a worker may have a working directory of its own.
    """
    if path is None:
        return {}
    is_directory = path.endswith("/") or os.path.isdir(path)
    return {TRACE: os.path.abspath(path if is_directory else f"{path}.ranks")}


# --- what torch's agent watches when a variable asks for it


def watchdog_settings(environment: Mapping[str, str]) -> WatchdogSettings:
    """Return what the variables ask for: file timers, workers stuck in the kernel, a health check. Raises Mistake."""
    stuck, health = environment.get(STUCK_AFTER), environment.get(HEALTH_PORT)
    host, port = _read(values.listener, HEALTH_PORT, health) if health else (values.LOOPBACK, None)
    return WatchdogSettings(
        _timer_file(environment),
        (_read(values.seconds, STUCK_AFTER, stuck, " (0 for never)") or None) if stuck else None,
        port,
        host,
    )


def _timer_file(environment: Mapping[str, str]) -> str | None:
    if environment.get(ENABLE_TIMER) != "1":
        return None
    return environment.get(TIMER_FILE) or os.path.join(
        temporaries(environment), f"watchdog_timer_{os.urandom(8).hex()}"
    )


def _read(read: Callable[[str], Read], variable: str, text: str, also: str = "") -> Read:
    """Return what a variable says. Raises Mistake with the variable, the value and the remedy; `also` ends its line."""
    try:
        return read(text)
    except ValueError as reason:
        raise Mistake(f"{variable}={text}: {reason}{also}") from None
