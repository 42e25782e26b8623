"""`elastic drain NODE`: an operator takes a node out of a running job -> the register's edit -> an exit code."""

from __future__ import annotations

from typing import Any

import click

from ..adapters.clock import SystemClock
from ..adapters.rendezvous.operator import asked, operator_name
from ..core.rendezvous import Drain, Raise, RendezvousState, Request, Settled, Status, handlers
from ..core.rendezvous.state import AWAY, known_as
from ..core.values import frozen
from ..core.world import NAME_MAX, Ending, Node, Notice, Verdict, Why
from . import values
from .exit_codes import FAILED, RENDEZVOUS, SUCCEEDED
from .mistakes import Mistake
from .option import Command, Section, given_to, parameters
from .render.text import at, count, say
from .running_job import NO_NODE, JobOptions, RunningJob, opened, register_of, say_no_job, say_not_taken

EPILOG = """\b
  elastic drain gpu-03 --rdzv-id=train42                        (a job of yours on this host)
  elastic drain gpu-03 --rdzv-endpoint=gpu-01 --rdzv-id=train42
  elastic drain gpu-03 --deadline=600 --rdzv-endpoint=gpu-01 --rdzv-id=train42
\b
NODE is a host, a node id, or a node as elastic status --json names it. Its workers are told at once
(ELASTIC_NOTICE); the node leaves when they are ready, or in time before the deadline. No restart is spent.
\b
Exit codes:  0 the node was told · 1 the job is over · 2 a mistake, or the job needs the node or its store (--force)
· 3 no such job, no store, or refused
"""

DRAINED = Section("The drain")
UNDER_TORCHRUN = "/torchrun-"
"""The slot of a node of torchrun's has this in it (adapters/torch/torchrun_plugin.py, which imports torch, names them)."""


@frozen
class DrainOptions:
    """The options of `elastic drain`, beside those that name the job."""

    deadline: float = DRAINED.option("S", values.notice_seconds, default=120, own=True)(
        "How long after it is told the node must be gone."
    )
    force: bool = DRAINED.flag(own=True)(
        "Also if the other nodes are fewer than --nnodes asks for: they wait then. Also if the node's agent serves the "
        "store: it does so until they are gone, or until the deadline."
    )


def _made(node: str, **given: Any) -> int:
    return _drain(node, given_to(JobOptions, given), given_to(DrainOptions, given))


drain = Command(
    "drain",
    callback=_made,
    params=[click.Argument(["node"]), *parameters(JobOptions, DrainOptions)],
    help="""Take a node out of a running job, without a restart.

    The other nodes go on without it as soon as its workers have saved what they have to save.""",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _drain(name: str, named: JobOptions, options: DrainOptions) -> int:
    with opened(named, acts=True) as job:
        state = register_of(job, "drain")
        if state is None:
            return RENDEZVOUS
        if state.closed:
            say(f"elastic drain: job {job.run_id} is over: {state.closed.ending.value}", err=True)
            return FAILED
        node = _node(state, name)
        if UNDER_TORCHRUN in node.slot:
            raise Mistake(f"{name}: runs under torchrun, which hears of no notice; end it by SIGTERM, the others go on")
        if not options.force and (reasons := _reasons_against(state, node)):
            raise Mistake(f"{name}: {' · '.join(reasons)}: --force")
        notice = Notice(options.deadline, f"an operator ({operator_name()})"[:NAME_MAX])
        request = Request(handlers.drain, drain=Drain(node, notice), forced=options.force or None)
        return _told(job, state, node, notice, asked(job.backend, request, NO_NODE, SystemClock()))


def _node(state: RendezvousState, name: str) -> Node:
    """Return the node of this name. Raises Mistake."""
    nodes = [node for node, seat in state.seats.items() if seat.status not in AWAY]
    known = dict(zip(nodes, known_as(state, nodes), strict=True))
    found = [node for node in nodes if name in (str(node), node.slot, known[node], state.seats[node].profile.host)]
    exact = [node for node in found if name in (str(node), node.slot)]
    if len(found) > 1 and len(exact) != 1:
        raise Mistake(
            f"{name}: several nodes are called so: {', '.join(node.slot for node in found)}; name one of these"
        )
    if not found:
        raise Mistake(f"{name}: no such node in this job; it has {', '.join(known.values()) or 'none'}")
    return (exact or found)[0]


def _others(state: RendezvousState, node: Node) -> list[Node]:
    """Return the nodes that stay."""
    return [each for each in state.present if each != node and state.seats[each].status is not Status.LEAVING]


def _reasons_against(state: RendezvousState, node: Node) -> list[str]:
    """Return why the other nodes need this one, if they do."""
    needed = f"{Why.NEEDED.value} ({state.limits.option}); the others would wait for another node"
    serves = "its agent serves the store, without which the others run on but cannot re-form"
    return [
        *([needed] if state.needs(node) else []),
        *([serves] if state.seats[node].profile.serves_store and _others(state, node) else []),
    ]


def _told(job: RunningJob, state: RendezvousState, node: Node, notice: Notice, answer: object) -> int:
    """Say what came of it; return the exit code."""
    (name,) = known_as(state, [node])
    match answer:
        case Settled():
            others = _others(state, node)
            stay = f"{count(len(others), 'node')} {'goes' if len(others) == 1 else 'go'} on"
            overridden = (
                f" · --force overrides: {reason}" if (reason := " · ".join(_reasons_against(state, node))) else ""
            )
            say(f"job {job.run_id} {at(job.store)}: {name} leaves within {notice.deadline_s:g} s, {stay}{overridden}")
            return SUCCEEDED
        case Verdict(Ending() as ending):
            say(f"elastic drain: job {job.run_id} is over: {ending.value}", err=True)
            return FAILED
        case Raise(failure) if failure.why is Why.NEEDED:
            raise Mistake(
                f"{name}: {failure.why.value} ({state.limits.option}); the others would wait for another node: --force"
            )
        case Raise(failure) if failure.why is Why.NO_NODE:
            raise Mistake(f"{name}: has left the job meanwhile")
        case Raise(_, text):
            say_not_taken("drain", job, text)
            return RENDEZVOUS
        case _:
            say_no_job("drain", job)
            return RENDEZVOUS
