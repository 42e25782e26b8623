"""A job that runs: the options that name it, and the store in which its nodes meet, opened by somebody who is no node."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from typing import TypeVar

from ..adapters.clock import SystemClock
from ..adapters.store.port import Backend, StoreError
from ..adapters.store.relay.agents_here import JobHere, jobs_here
from ..adapters.store.runs import Runs
from ..core.rendezvous import Limits, RendezvousState, Settings, explain
from ..core.values import frozen
from ..core.world import NAME_MAX
from . import slurm, values
from .launch_options import LaunchOptions
from .mistakes import Mistake
from .option import Section
from .places import Place, place
from .render.text import at, count, say
from .tokens import store_token

Read = TypeVar("Read")
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
        "The store's address: the same value as in the job's launch command. [default: an agent of the job on this host is "
        "asked, else under Slurm the job's first node]"
    )
    rdzv_id: str | None = JOB.option("ID", values.name)(
        "The job's id. [default: that of the only job of yours on this host]"
    )
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
    runs: Callable[[], Runs] = Runs
    """Returns the jobs in that store. Raises StoreError."""


class Several(Mistake):
    """No job was named, and this host has these of this user's."""

    def __init__(self, jobs: Sequence[JobHere]) -> None:
        self.jobs = jobs
        shown = ", ".join(f"{job.run_id} ({job.store})" for job in jobs[:SHOWN_MAX])
        more = f" and {len(jobs) - SHOWN_MAX} more" if len(jobs) > SHOWN_MAX else ""
        which = f"{count(len(jobs), 'job')} of yours {'runs' if len(jobs) == 1 else 'run'} on this host"
        option = "--rdzv-id=ID" if len({job.run_id for job in jobs}) == len(jobs) else "--rdzv-endpoint=HOST:PORT"
        super().__init__(f"which job? {which}: {shown}{more}; write {option}")

    def say(self) -> None:
        """Print a line for each of the jobs."""
        for job in self.jobs:
            with closing(job.client(SystemClock())) as client:
                try:
                    state = client.get().state
                except StoreError as error:
                    say(f"elastic: {error}", err=True)
                else:
                    told = explain(state, None) if state else "its agents have not met yet"
                    say(f"job {job.run_id} {at(job.store)} · {told}")


@contextmanager
def opened(options: JobOptions, acts: bool = False) -> Iterator[RunningJob]:
    """Open the job's store; without an endpoint through an agent of the job on this host, or as `elastic launch` finds it.
    `acts`: the job must be named, since the command changes it. Raises Mistake, Several if it is one of several jobs."""
    if options.rdzv_endpoint is None and options.rdzv_backend != "etcd" and (here := _here(options, acts)):
        with closing(here.client(SystemClock())) as backend:
            yield RunningJob(here.run_id, here.store, backend)
        return
    where = place(_as_a_node(options, os.environ), os.environ, store_token(options.rdzv_conf, os.environ))
    run_id = options.rdzv_id or (isinstance(where, Place) and where.run_id) or options.run_id
    connection = where.open(run_id, SystemClock(), NO_NODE)
    with closing(connection.backend) as backend:
        yield RunningJob(run_id, where.name, backend, connection.runs)


def _here(options: JobOptions, acts: bool) -> JobHere | None:
    """Return the job on this host that is meant; None if there is none. Raises Several."""
    jobs, silent = jobs_here(SystemClock())
    if silent:
        say(f"elastic: {count(silent, 'agent')} of this host did not answer", err=True)
    named = options.rdzv_id or (slurm.run_id(os.environ) if slurm.endpoint(os.environ) else None)
    called = [job for job in jobs if job.run_id == named]
    if called or options.rdzv_id:
        jobs, acts = called, False
    if len(jobs) > 1 or (jobs and acts):
        raise Several(jobs)
    return jobs[0] if jobs else None


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
        runs = job.runs()
    except StoreError:
        runs = Runs()
    there = sorted(each for each in runs.ids if each != job.run_id)
    if not there:
        return "its nodes' --rdzv-id says its name"
    near = get_close_matches(job.run_id, there, SHOWN_MAX, 0.5)
    first = [*near, *(each for each in there if each not in near)][:SHOWN_MAX]
    others = len(there) - len(first)
    more = " and more" if runs.is_part else f" and {others} more" if others else ""
    return f"it has {', '.join(each[:NAME_MAX] for each in first)}{more}"


def say_not_taken(command: str, job: RunningJob, why: str) -> None:
    say(f"elastic {command}: store {job.store} did not take it{why and f': {why}'}; ask again", err=True)


def _as_a_node(options: JobOptions, environment: Mapping[str, str]) -> LaunchOptions:
    """Return the options of a node of this job that would never serve its store. Raises Mistake if nothing says where."""
    master = _variable(environment, "PET_MASTER_ADDR", values.host_or_none)
    if options.rdzv_endpoint is None and master is None and not slurm.endpoint(environment):
        missing = f"there is no job {options.rdzv_id} of yours here" if options.rdzv_id else "no job of yours runs here"
        raise Mistake(
            f"--rdzv-endpoint is missing: {missing}, so where do the job's nodes meet? write --rdzv-endpoint=HOST[:PORT]"
        )
    static = options.rdzv_endpoint is None and master is not None
    return LaunchOptions(
        nnodes=(1, 2),
        rdzv_backend=options.rdzv_backend,
        rdzv_endpoint=options.rdzv_endpoint,
        rdzv_id=options.rdzv_id,
        rdzv_conf={**options.rdzv_conf, "is_host": "false"},
        master_addr=master if static else None,
        master_port=_variable(environment, "PET_MASTER_PORT", values.master_port) if static else None,
    )


def _variable(environment: Mapping[str, str], name: str, read: Callable[[str], Read]) -> Read | None:
    text = environment.get(name)
    try:
        return read(text) if text else None
    except ValueError as reason:
        raise Mistake(f"{name}={text}: {reason}") from None
