"""`elastic status`: a job's store, read and never written -> the sentence, the nodes, the failures -> an exit code."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from ..adapters.store.port import StoreError
from ..core.rendezvous import RendezvousState
from ..core.rendezvous.explain import clock
from ..core.values import frozen
from ..core.world import Ending
from . import values
from .exit_codes import FAILED, RENDEZVOUS, SUCCEEDED
from .looking import Looking, until_signalled
from .mistakes import Mistake
from .option import Command, Section, given_to, parameters
from .render.history import History, watched
from .render.job import Job, Watched, data, lines
from .render.last_line import DUMB, LiveLastLine, Wait
from .render.text import say, say_data
from .running_job import RESTORED_S, JobOptions, Several, opened, say_no_answer, say_no_job

EPILOG = """\b
  elastic status                                                (the only job of yours on this host)
  elastic status --rdzv-endpoint=gpu-01 --rdzv-id=train42
  elastic status --rdzv-endpoint=gpu-01 --rdzv-id=train42 --http=8080
  elastic status --rdzv-backend=etcd --rdzv-endpoint=etcd-1:2379 --rdzv-id=train42 --json
\b
Nothing is written to the store. If a job's agents share a token, this command needs it too: set
ELASTIC_STORE_TOKEN, or write --rdzv-conf=token_file=FILE. The id of a job of several nodes without --rdzv-id is none.
\b
Exit codes:  0 it runs, or it succeeded · 1 it failed or was cancelled · 2 a mistake · 3 there is no such job, or no store
"""

SHOWN = Section("What is shown")


@frozen
class StatusOptions:
    """The options of `elastic status`, beside those that name the job."""

    watch: bool = SHOWN.flag(own=True)("Go on: show the job as it changes, until it is over.")
    http: tuple[str, int] | None = SHOWN.option("[HOST:]PORT", values.listener, own=True)(
        "Show the job on a web page that follows it, until Ctrl-C; without a HOST to this host alone."
    )
    json: bool = SHOWN.flag(own=True)("Print the same as data, for programs; with --watch one line for each change.")


def _made(**given: Any) -> int:
    return _status(given_to(JobOptions, given), given_to(StatusOptions, given))


status = Command(
    "status",
    callback=_made,
    params=parameters(JobOptions, StatusOptions),
    help="""Show how a running job is: its round, its nodes and their ranks, what it waits for, and its failures.

    On a host of the job its agent is asked; any other host must reach the job's store.""",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


SILENT_MAX_S = 120.0
"""A watch asks a store for so long that does not answer: one that starts again is back sooner."""


def _status(job: JobOptions, options: StatusOptions) -> int:
    if options.http and (options.watch or options.json):
        raise Mistake("--http: the page follows the job, and nothing is printed; leave out --watch and --json")
    try:
        return _of(job, options)
    except Several as several:
        if options.http or options.watch or options.json:
            raise
        several.say()
        return SUCCEEDED


def _of(named: JobOptions, options: StatusOptions) -> int:
    with opened(named) as running:
        try:
            job = _shown(Looking(running.backend, History(Job(running.run_id, running.store, None))), options)
        except StoreError as error:
            say_no_answer("status", error)
            return RENDEZVOUS
    if job.state is None:
        say_no_job("status", running)
        return RENDEZVOUS
    return job_code(job.state)


def _shown(looking: Looking, options: StatusOptions) -> Job:
    """Show the job as the options say; return it as it was seen last. Raises StoreError and Mistake."""
    looking.look()
    looking.await_register(RESTORED_S)
    if looking.job.state is None:
        return looking.job
    if options.http:
        from .status_page import serve_page  # brings the web server

        serve_page(looking, *options.http)
    elif options.watch:
        _watch(looking, options)
    else:
        looking.listen()
        _show(looking, looking.job.state, options)
    return looking.job


def _watch(looking: Looking, options: StatusOptions) -> None:
    """Show each change until the job is over, or until a signal ends this: on a terminal in place, else below each other.
    Go on for SILENT_MAX_S without an answer, or without a register: its nodes put a lost one back. Raises StoreError."""
    rewrites = sys.stdout.isatty() and not options.json and os.environ.get("TERM") not in DUMB
    live = LiveLastLine(sys.stdout) if rewrites else None
    with until_signalled():
        new, known_at = True, looking.at()
        while looking.at() - known_at < SILENT_MAX_S:
            state, missing = looking.job.state, _missing(looking)
            if live and state:
                first, *others = lines(looking.job, state, _watched(looking))
                shown = (*others, *([missing] if missing else []))
                live.show(Wait(None, None, f"{time.strftime('%H:%M:%S')}  {first}", shown), looking.at())
            elif new and missing:
                say(f"elastic status: {missing}", err=True)
            elif new and state and not _show(looking, state, options):
                break  # nobody reads it
            if state and state.closed:
                break
            known_at = looking.at() if state else known_at
            new = looking.next(SILENT_MAX_S)
    if live:
        live.clear()
        if looking.job.state:
            _show(looking, looking.job.state, options)


def _missing(looking: Looking) -> str:
    """Return what a watch waits for; nothing if the store answers and knows the job."""
    if silence := looking.history.silence:
        lasted = clock(looking.at() - silence.since)
        return f"the store has not answered for {lasted}: {silence.why}; asking again"
    return "" if looking.job.state else "the store knows nothing of this job any more; asking again"


def _watched(looking: Looking) -> Watched:
    return watched(looking.history, time.time() - looking.at(), looking.ages_s(), looking.unmoved())


def _show(looking: Looking, state: RendezvousState, options: StatusOptions) -> bool:
    """Print the job. Return False if nobody reads it."""
    known = _watched(looking)
    if options.json:
        return say_data(data(looking.job, state, known), indent=None if options.watch else 2)
    when = f"{time.strftime('%H:%M:%S')}  " if options.watch else ""
    first, *others = lines(looking.job, state, known)
    return say(f"{when}{first}", *others, *([""] if options.watch else []))


def job_code(state: RendezvousState) -> int:
    """Return 1 for a job that is over and has not succeeded, else 0."""
    return FAILED if state.closed and state.closed.ending is not Ending.SUCCEEDED else SUCCEEDED
