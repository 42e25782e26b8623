"""What Slurm tells a task of a job in its environment, read as the launcher needs it. Nothing of it is trusted.

Where nobody says where the nodes meet, they meet at the first node of the step (or of the job, for a step of one node), at a
port that follows from the job's number. The job's name is that number and the count of its restarts: a job that is queued
again begins anew. Each further step of several nodes has a port and a name of its own, because several may run at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..adapters.store.tcpstore.wire import Address
from .mistakes import Mistake
from .values import HOST_MAX

NUMBER = r"[0-9]{1,15}"
_TASKS = r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?"
"""This matches an entry of SLURM_STEP_TASKS_PER_NODE, which is like `8(x2),1`: tasks, and how many nodes have them."""
PORTS = range(20_000, 30_000)
"""Below those that the kernel gives away. Jobs that share a node seldom have one port."""


def place(environment: Mapping[str, str]) -> tuple[int, ...]:
    """Return the place of this task among the agents: the number of its node, then its own; nothing outside of Slurm."""
    node, task = _number(environment, "SLURM_NODEID"), _number(environment, "SLURM_PROCID")
    return () if node is None or task is None else (node, task)


def endpoint(environment: Mapping[str, str]) -> Address | None:
    """Return where the nodes of this job meet; None outside of Slurm. Raises Mistake for a list that nobody can read."""
    job = _number(environment, "SLURM_JOB_ID")
    nodes = _nodes(environment) if job is not None else ()
    return Address(nodes[0], PORTS[(job + _step(environment)) % len(PORTS)]) if job is not None and nodes else None


def crowd(environment: Mapping[str, str], max_nodes: int, workers: int) -> str:
    """Return what to tell the user of a node on which srun starts several launchers: they are several nodes of the job, and
    usually one is meant. Empty: there is one, or nothing to tell. Raises Mistake, for all but the first of them, if the job
    cannot take them all, or if they take more GPUs than the node has."""
    here, local = _tasks_here(environment), _number(environment, "SLURM_LOCALID") or 0
    there, gpus = _number(environment, "SLURM_NTASKS") or 0, _number(environment, "SLURM_GPUS_ON_NODE") or 0
    launchers = (
        f"srun starts {here} launchers on this node" if here > 1 else "srun starts several launchers on this node"
    )
    if local > 0 and max_nodes < there:
        raise Mistake(
            f"{launchers} and {there} in all, each a node of the job, which takes {max_nodes} at most (--nnodes); write "
            "srun --ntasks-per-node=1, or --standalone if each of them is a job"
        )
    if workers <= gpus < here * workers:
        text = (
            f"{launchers} with {workers} workers each, but it has {gpus} GPUs (SLURM_GPUS_ON_NODE); write srun "
            "--ntasks-per-node=1"
        )
        if local > 0:
            raise Mistake(text)
        return text  # a shell may have let this task alone start a launcher
    if here < 2 or local > 0:
        return ""
    return f"{launchers}, each a node of the job; one launcher starts all workers of a node: srun --ntasks-per-node=1"


def _tasks_here(environment: Mapping[str, str]) -> int:
    """Return how many tasks of this step are on this node; 0 outside of a step."""
    runs = [re.fullmatch(_TASKS, each) for each in environment.get("SLURM_STEP_TASKS_PER_NODE", "").split(",")]
    place = _number(environment, "SLURM_NODEID") or 0
    for run in runs:
        if run is None:
            return 0
        if place < (nodes := int(run[2] or 1)):
            return int(run[1])
        place -= nodes
    return 0


def run_id(environment: Mapping[str, str]) -> str:
    """Return the name of this job, another one after each restart by Slurm, and for each further step."""
    step = f".{number}" if (number := _step(environment)) else ""
    return f"{_number(environment, 'SLURM_JOB_ID')}.{_number(environment, 'SLURM_RESTART_COUNT') or 0}{step}"


def _nodes(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes of the step if it has several, else those of the job."""
    step, job = (_hosts(environment, name) for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"))
    return step if len(step) > 1 else job


def _step(environment: Mapping[str, str]) -> int:
    """Return the number of a step that has several nodes; 0 for the first step, and where the nodes are those of the job."""
    is_whole = len(_hosts(environment, "SLURM_STEP_NODELIST")) > 1
    return (_number(environment, "SLURM_STEP_ID") or 0) if is_whole else 0


def _hosts(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    text = environment.get(name, "")
    try:
        from .hostlist import hosts  # few launches run under Slurm

        found = hosts(text) if text else ()
        if any(len(host) > HOST_MAX for host in found[:1]):
            raise ValueError(f"a host has at most {HOST_MAX} characters")
    except ValueError as reason:
        raise Mistake(f"{name}={text}: {reason}; write --rdzv-endpoint=HOST") from None
    return found


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if re.fullmatch(NUMBER, text) else None
