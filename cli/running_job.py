"""A job that runs: the options that name it, and the store in which its nodes meet, opened by somebody who is no node."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from ..adapters.clock import SystemClock
from ..adapters.store.port import Backend, StoreError
from ..adapters.store.relay.agents_here import JobHere, jobs_here
from ..adapters.store.relay.relay_server import PLAIN, parent_here
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

if TYPE_CHECKING:
    from ..adapters.store.secret import Secret

Read = TypeVar("Read")
JOB = Section("The job", "PET_")
NO_NODE = Settings(Limits())
"""The settings with which a store is opened; nobody joins here, so their limits bind nobody."""
SHOWN_MAX = 8
"""The most jobs of a store, or of this host, that a line names."""
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
        stores = {(job.run_id, job.store) for job in jobs}
        names = [f"{job.run_id} ({job.store}{'' if len(stores) == len(jobs) else _process(job)})" for job in jobs]
        shown = ", ".join(names[:SHOWN_MAX])
        more = f" and {len(jobs) - SHOWN_MAX} more" if len(jobs) > SHOWN_MAX else ""
        which = f"{count(len(jobs), 'job')} of yours {'runs' if len(jobs) == 1 else 'run'} on this host"
        if len({job.run_id for job in jobs}) == len(jobs):
            remedy = "write --rdzv-id=ID"
        elif len(stores) == len(jobs):
            remedy = "write --rdzv-endpoint=HOST:PORT"
        elif len({job.run_id for job in jobs}) > 1:
            remedy = "write --rdzv-id=ID; of those of one name end one by `kill -TERM PROCESS`"
        else:
            remedy = "they have one name: end one by `kill -TERM PROCESS`"
        super().__init__(f"which job? {which}: {shown}{more}; {remedy}")

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


def _process(job: JobHere) -> str:
    return f", process {job.process}" if job.process else ", in another container"


@contextmanager
def opened(options: JobOptions, acts: bool = False) -> Iterator[RunningJob]:
    """Open the job's store; without an endpoint through an agent of the job on this host, or as `elastic launch` finds it.
    `acts`: the job must be named, since the command changes it. Raises Mistake, Several if it is one of several jobs."""
    job = _found(options, acts)
    with closing(job.backend):
        yield job


def _found(options: JobOptions, acts: bool) -> RunningJob:
    """Return the job that is meant: by an agent here if one has its name, else in its store. Of a job that only Slurm names
    the store is asked before another job of this host is taken. Raises Mistake, Several."""
    is_local = options.rdzv_endpoint is None and options.rdzv_backend != "etcd"
    jobs = _jobs_here() if is_local else ()
    if options.rdzv_id and is_local and (called := _called(options.rdzv_id, jobs)):
        return _only(called)
    environments = _environments() if is_local else (os.environ,)
    of_slurm = [slurm.run_id(each) for each in environments if is_local and slurm.endpoint(each)]
    if of_slurm and not options.rdzv_id and (of_step := _of_slurm(jobs, of_slurm, acts)):
        return _only(of_step)
    guessed = () if options.rdzv_id else jobs
    if guessed and not of_slurm:
        return _only(guessed, acts)
    token = store_token(options.rdzv_conf, os.environ)
    in_first_step = acts and not options.rdzv_id and len(environments) > 1  # the job there is a guess
    for environment in environments if guessed or in_first_step else environments[:-1]:
        job = _in_store(options, environment, token, acts)
        with ExitStack() as unless_there:
            unless_there.callback(job.backend.close)
            with suppress(StoreError):
                if job.backend.get().state:
                    if in_first_step and environment is environments[-1]:
                        raise Mistake(
                            f"which job? store {job.store} has {job.run_id}, of another step; write --rdzv-id={job.run_id}"
                        )
                    unless_there.pop_all()
                    return job
    return (
        _only(guessed, acts) if guessed else _in_store(options, environments[0 if in_first_step else -1], token, acts)
    )


def _of_slurm(jobs: Sequence[JobHere], names: Sequence[str], acts: bool) -> Sequence[JobHere]:
    """Return those of the jobs here that have the first of these names which any has: that of this step of Slurm's, then
    that of the first. Raises Several if the job is to be changed, and may be that of another step."""
    found = [[job for job in jobs if job.run_id == name] for name in names]
    if not acts:
        return next(filter(None, found), ())
    first = names[-1]
    steps = [job for job in jobs if job.run_id == first or job.run_id.startswith(f"{first}.")]
    is_sure = len(names) > 1 or {job.run_id for job in steps} == {first}
    if steps and not (found[0] and is_sure):
        raise Several(steps)
    return found[0]


def _environments() -> Sequence[Mapping[str, str]]:
    """Return the environments that may name the job: this one, and in a later step of a job of Slurm also that of its
    first, in which the launchers may be."""
    first = {name: text for name, text in os.environ.items() if name != "SLURM_STEP_NODELIST"}
    is_later = slurm.endpoint(os.environ) and slurm.run_id(first) != slurm.run_id(os.environ)
    return (os.environ, first) if is_later else (os.environ,)


def _jobs_here() -> Sequence[JobHere]:
    jobs, silent = jobs_here(SystemClock())
    if silent:
        say(f"elastic: {count(silent, 'agent')} of this host did not answer", err=True)
    return jobs


def _called(run_id: str, jobs: Sequence[JobHere]) -> Sequence[JobHere]:
    """Return those of these jobs that have this name, else those in /tmp: their agents may have been started without the
    TMPDIR that this shell has."""
    called = [job for job in jobs if job.run_id == run_id]
    if called or parent_here() == PLAIN:
        return called
    return [job for job in jobs_here(SystemClock(), PLAIN)[0] if job.run_id == run_id]


def _only(jobs: Sequence[JobHere], acts: bool = False) -> RunningJob:
    """Return the only one of these jobs. Raises Several if there are more, or if one that nobody named is to be changed."""
    if len(jobs) > 1 or acts:
        raise Several(jobs)
    return RunningJob(jobs[0].run_id, jobs[0].store, jobs[0].client(SystemClock()))


def _in_store(options: JobOptions, environment: Mapping[str, str], token: Secret | None, acts: bool) -> RunningJob:
    """Return the job as its store has it. Raises Mistake if nothing says where that is, or which job is to be changed."""
    where = place(_as_a_node(options, environment), environment, token)
    run_id = options.rdzv_id or (isinstance(where, Place) and where.run_id)
    if acts and not run_id:
        raise Mistake("which job? write --rdzv-id=ID; of a job that was started without one ID is none")
    run_id = run_id or "none"
    connection = where.open(run_id, SystemClock(), NO_NODE)
    return RunningJob(run_id, where.name, connection.backend, connection.runs)


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
        job = f"job {options.rdzv_id}" if options.rdzv_id else "job"
        places = dict.fromkeys((parent_here(), *([PLAIN] if options.rdzv_id else [])))
        missing = f"no {job} of yours was found on this host (in {' and '.join(map(str, places))})"
        raise Mistake(
            f"--rdzv-endpoint is missing: {missing}; write --rdzv-endpoint=HOST[:PORT] for one that meets elsewhere"
        )
    static = options.rdzv_endpoint is None and master is not None
    return LaunchOptions(
        nnodes=Limits(1, 2),
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
