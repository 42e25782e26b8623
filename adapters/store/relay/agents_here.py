"""The agents of this user on this host, as their sockets say: which job each of them takes part in.

A socket is believed only from a folder that nobody else enters, and from a process of this user. What it answers is bounded
and schema-checked, as on any connection to a relay.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from ....core.values import frozen
from ...clock import Clock
from ..connection import IN_MEMORY
from ..port import StoreError
from .relay_backend import RelayBackend
from .relay_server import sockets_here

_AGENTS_MAX = 1_024
_AT_ONCE = 16
_ANSWER_S = 3.0
"""How long an agent may take to say which job it is in. One that is stopped never does."""


@frozen
class JobHere:
    """A job that has an agent on this host."""

    run_id: str
    store: str
    path: str
    """The socket of one of its agents here."""
    process: int
    """That agent's process; 0 if it cannot be seen from here."""

    def client(self, clock: Clock) -> RelayBackend:
        """Return a client of the job's register, through that agent."""
        return RelayBackend(self.path, None, clock)


def jobs_here(clock: Clock, parent: Path | None = None) -> tuple[Sequence[JobHere], int]:
    """Return the jobs of this user's agents on this host, or of those in this directory, and how many agents have not
    answered."""
    paths = sockets_here(parent)[:_AGENTS_MAX]
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            asked = list(pool.map(lambda path: _asked(path, clock), paths))
    except RuntimeError:  # no thread can be started
        asked = [_asked(path, clock) for path in paths]
    told = [job for each in asked if each is not None for job in each]
    found = {(job.run_id, job.store, job.path if job.store == IN_MEMORY else ""): job for job in told}
    return sorted(found.values(), key=lambda job: (job.run_id, job.store, job.process)), asked.count(None)


def _asked(path: str, clock: Clock) -> Sequence[JobHere] | None:
    """Return the job of the agent at this socket: no job if nobody listens there any more, None if it does not answer."""
    with closing(RelayBackend(path, None, clock, _ANSWER_S)) as client:
        try:
            return [JobHere(*client.job(), path, client.process())]
        except StoreError as error:
            return [] if isinstance(error.__cause__, (ConnectionRefusedError, FileNotFoundError)) else None
