"""A job that runs: the options that name it, and the store in which its nodes meet, opened by somebody who is no node."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from difflib import get_close_matches

from ..adapters.clock import SystemClock
from ..adapters.store.port import Backend, StoreError
from ..core.rendezvous import Limits, RendezvousState, Settings
from ..core.values import frozen
from ..core.world import NAME_MAX
from . import values
from .launch_options import LaunchOptions
from .mistakes import Mistake
from .option import Section
from .places import place
from .render.text import say
from .tokens import store_token

JOB = Section("The job", "PET_")
NO_NODE = Settings(Limits())
"""The settings with which a store is opened; nobody joins here, so their limits bind nobody."""


SHOWN_MAX = 8
"""Of many jobs in a store these many are named."""
RESTORED_S = 5.0
"""A TCPStore that was started again is empty until the nodes of its job have put the register back: this long at most."""


@frozen
class JobOptions:
    """The options that name a running job. They have the names and the meaning that `elastic launch` gives them."""

    rdzv_backend: str | None = JOB.option("NAME", values.name)("The same value as in the job's launch command.")
    rdzv_endpoint: values.Endpoints | None = JOB.option("HOST[:PORT],...", values.endpoints)(
        "The store's address: the same value as in the job's launch command."
    )
    rdzv_id: str | None = JOB.option("ID", values.name)("The job's id.")
    rdzv_conf: Mapping[str, str] = JOB.option("K=V,...", values.configuration, default="")(
        "What the store asks of its users: token_file, or an etcd's cacert, cert, key, user and password_file."
    )

    @property
    def run_id(self) -> str:
        return self.rdzv_id or "none"


@frozen
class RunningJob:
    """A job's store, open."""

    run_id: str
    store: str
    backend: Backend
    run_ids: Callable[[], Collection[str]]
    """Returns the ids of the jobs in that store. Raises StoreError."""


@contextmanager
def opened(options: JobOptions) -> Iterator[RunningJob]:
    """Open the job's store. Raises Mistake."""
    where = place(_as_a_node(options), os.environ, store_token(options.rdzv_conf, os.environ))
    connection = where.open(options.run_id, SystemClock(), NO_NODE)
    with closing(connection.backend) as backend:
        yield RunningJob(options.run_id, where.name, backend, connection.run_ids)


def register_of(job: RunningJob, command: str) -> RendezvousState | None:
    """Return what the job's register says; None after it was said that the store does not answer, or has no such job."""
    try:
        state = job.backend.get().state
        if state is None and job.backend.lease_s is None:
            state = job.backend.wait_for_change(None, SystemClock().now() + RESTORED_S).state
    except StoreError as error:
        say_no_answer(command, error)
        return None
    if state is None:
        say_no_job(command, job)
    return state


def say_no_answer(command: str, error: StoreError) -> None:
    say(f"elastic {command}: {error}", err=True)


def say_no_job(command: str, job: RunningJob) -> None:
    say(f"elastic {command}: store {job.store} has no job {job.run_id}; {_jobs_there(job)}", err=True)


def _jobs_there(job: RunningJob) -> str:
    """Return which jobs are in the store, those first that are called like this one."""
    try:
        there = sorted(each for each in job.run_ids() if each != job.run_id)
    except StoreError:
        there = []
    if not there:
        return "its nodes' --rdzv-id says its name"
    near = get_close_matches(job.run_id, there, SHOWN_MAX, 0.5)
    first = [*near, *(each for each in there if each not in near)][:SHOWN_MAX]
    more = f" and {len(there) - len(first)} more" if len(there) > len(first) else ""
    return f"it has {', '.join(each[:NAME_MAX] for each in first)}{more}"


def say_not_taken(command: str, job: RunningJob, why: str) -> None:
    say(f"elastic {command}: store {job.store} did not take it{why and f': {why}'}; ask again", err=True)


def _as_a_node(options: JobOptions) -> LaunchOptions:
    """Return the options of a node of this job that would never serve its store. Raises Mistake without an endpoint."""
    if options.rdzv_endpoint is None:
        raise Mistake(
            "--rdzv-endpoint is missing: where do the job's nodes meet? write --rdzv-endpoint=HOST[:PORT] "
            "(a job of --standalone cannot be asked: launch it with an endpoint of its host)"
        )
    return LaunchOptions(
        nnodes=(1, 2),
        rdzv_backend=options.rdzv_backend,
        rdzv_endpoint=options.rdzv_endpoint,
        rdzv_id=options.rdzv_id,
        rdzv_conf={**options.rdzv_conf, "is_host": "false"},
    )
