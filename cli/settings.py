"""What the options and the environment say of a launch -> `LaunchSettings`. Nothing starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..adapters.launch_settings import Function, LaunchSettings, Logs, Program
from ..adapters.workers.environment import TRACE
from ..adapters.workers.nvml import NoDevices
from ..core import group, rendezvous
from . import etcd, nodes, values
from .mistakes import Mistake
from .watchdog_variables import watchdog_settings

if TYPE_CHECKING:
    from ..adapters.workers.plugged_logs import LogsSpecs

FENCE = 0.6
"""Of the TTL: the age of the last acknowledged heartbeat at which --on-store-loss=stop kills the workers."""


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
        watchdogs=watchdog_settings(environment),
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


def _ranks_trace(path: str | None) -> Mapping[str, str]:
    """What tells the workers where their wrapped functions are traced: beside the agent, whatever their own directory is."""
    if path is None:
        return {}
    is_directory = path.endswith("/") or os.path.isdir(path)
    return {TRACE: os.path.abspath(path if is_directory else f"{path}.ranks")}
