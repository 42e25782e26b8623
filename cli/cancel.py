"""`elastic cancel`: an operator ends a running job -> its verdict -> an exit code."""

from __future__ import annotations

from typing import Any

from ..adapters.clock import SystemClock
from ..adapters.rendezvous.operator import asked
from ..core.rendezvous import Raise, RendezvousState, Request, close
from ..core.world import Ending, Verdict, Why
from .exit_codes import FAILED, RENDEZVOUS, SUCCEEDED
from .option import Command, parameters
from .render.text import at, count, say
from .running_job import NO_NODE, JobOptions, RunningJob, opened, register_of, say_no_job, say_not_taken

EPILOG = """\b
  elastic cancel --rdzv-id=train42                              (a job of yours on this host)
  elastic cancel --rdzv-endpoint=gpu-01 --rdzv-id=train42
  elastic cancel --rdzv-backend=etcd --rdzv-endpoint=etcd-1:2379 --rdzv-id=train42
\b
If a job's agents share a token, this command needs it too: set ELASTIC_STORE_TOKEN, or write --rdzv-conf=token_file=FILE.
In an etcd, its user must be allowed to write. The id of a job of several nodes without --rdzv-id is none: --rdzv-id=none.
\b
Exit codes:  0 the job is cancelled · 1 it had ended otherwise · 2 a mistake · 3 no such job, no store, or refused
"""


def _made(**given: Any) -> int:
    return _cancel(JobOptions(**given))


cancel = Command(
    "cancel",
    callback=_made,
    params=parameters(JobOptions),
    help="""End a running job on all its nodes.

    Workers get SIGTERM, and SIGKILL after --grace. Every agent ends with exit code 1, and its report says who cancelled
    the job.""",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _cancel(options: JobOptions) -> int:
    with opened(options, acts=True) as job:
        before = register_of(job, "cancel")
        if before is None:
            return RENDEZVOUS
        answer = asked(job.backend, Request(close, Why.OPERATOR, Ending.CANCELLED), NO_NODE, SystemClock())
    return _told(job, before, answer)


def _told(job: RunningJob, before: RendezvousState, answer: object) -> int:
    """Say what came of it; return the exit code."""
    if isinstance(answer, Raise) and answer.failure.why is Why.NO_JOB:
        say_no_job("cancel", job)
        return RENDEZVOUS
    if not isinstance(answer, Verdict):
        say_not_taken("cancel", job, answer.text if isinstance(answer, Raise) else "")
        return RENDEZVOUS
    is_new = before.closed is None and answer.why is Why.OPERATOR
    nodes = f": {count(len(before.present), 'node')} told to stop" if is_new else " already"
    say(
        f"job {job.run_id} {at(job.store)} {'is' if is_new else 'was'} {answer.ending.value} in round {answer.round}{nodes}"
    )
    return SUCCEEDED if answer.ending is Ending.CANCELLED else FAILED
