"""`elastic stacks`: a question to all agents of a running job -> where their workers are -> an exit code."""

from __future__ import annotations

import signal
from typing import Any

from ..adapters.clock import SystemClock
from ..adapters.report.stack_query import new_query, replies_to
from ..adapters.store.port import StoreError
from ..adapters.store.queries import Reply
from ..core.rendezvous import RendezvousState, explain
from ..core.values import frozen
from ..core.world import Node
from . import values
from .exit_codes import RENDEZVOUS, SIGNALLED, SUCCEEDED
from .looking import until_signalled
from .option import Command, Section, given_to, parameters
from .render.stacks import Answered, data, lines
from .render.text import at, say, say_data
from .running_job import JobOptions, RunningJob, Several, opened, register_of, say_no_answer
from .status import job_code

EPILOG = """\b
  elastic stacks                                                (the only job of yours on this host)
  elastic stacks --rdzv-endpoint=gpu-01 --rdzv-id=train42
  elastic stacks --rdzv-endpoint=gpu-01 --rdzv-id=train42 --full=17
\b
Each agent reads the query beside its next heartbeat, and answers once. Training goes on. A job whose agents share a
token answers who has it: set ELASTIC_STORE_TOKEN, or write --rdzv-conf=token_file=FILE. In an etcd, its user must be
allowed to write.
\b
Exit codes:  0 it runs, or it succeeded · 1 it failed or was cancelled · 2 a mistake · 3 there is no such job, or no store
· 128+n stopped by signal n
"""
ASKED = Section("What is asked")
TIMEOUT_S = 10.0


@frozen
class StacksOptions:
    """The options of `elastic stacks`, beside those that name the job."""

    timeout: float = ASKED.option("SECONDS", values.some_seconds, default=TIMEOUT_S, own=True)(
        "How long the agents may take to answer. One that does not is named."
    )
    full: int | None = ASKED.option("RANK", values.whole, own=True)(
        "Print the whole stack of the worker of this rank too, and what the kernel says of it."
    )
    json: bool = ASKED.flag(own=True)("Print the same as data, for programs.")


def _made(**given: Any) -> int:
    return _stacks(given_to(JobOptions, given), given_to(StacksOptions, given))


stacks = Command(
    "stacks",
    callback=_made,
    params=parameters(JobOptions, StacksOptions),
    help="""Show what the workers of a running job are doing now: equal stacks in one line, the odd ones last.

    On a host of the job its agent is asked; any other host must reach the job's store. No value of a variable is shown.""",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _stacks(job: JobOptions, options: StacksOptions) -> int:
    try:
        return _of(job, options)
    except Several as several:
        if options.json:
            raise
        several.say()
        return SUCCEEDED


def _of(named: JobOptions, options: StacksOptions) -> int:
    with opened(named) as job:
        state = register_of(job, "stacks")
        if state is None:
            return RENDEZVOUS
        if state.closed:
            say(f"job {job.run_id} {at(job.store)} · {explain(state, None)}", err=options.json)
            return job_code(state)
        try:
            answered = _answered(job, state, options)
            after = job.backend.get().state
        except StoreError as error:
            say_no_answer("stacks", error)
            return RENDEZVOUS
    if answered is None:
        return SIGNALLED + signal.SIGINT
    if options.json:
        say_data(data(answered))
    else:
        say(*lines(answered))
    if after and after.round != state.round:
        say(f"elastic stacks: round {state.round} has ended meanwhile; ask again", err=True)
    return job_code(after) if after else SUCCEEDED


def _answered(job: RunningJob, state: RendezvousState, options: StacksOptions) -> Answered | None:
    """Ask; None if a signal ended that. Raises StoreError."""
    query, replies = new_query(state.round, options.full), dict[Node, Reply]()
    is_over = False
    with until_signalled():
        replies.update(replies_to(query, state.present, job.backend.notes, SystemClock(), options.timeout))
        is_over = True
    return Answered(job.run_id, job.store, state, query, replies) if is_over else None
