"""A participant's connection to the store that keeps its register: opened before it takes part, closed after.

Both participants use it: an agent, and a rank of a wrapped function. A register in memory serves this process alone. A
TCPStore is served by a participant or by a store server. An etcd is served by others, and outlives the job. The relay is a
worker's way to its agent's store.

The participant that serves the store leaves last, so that all the others read the verdict: `_wait_for_the_others` is the one
place that says for whom it waits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ...core.rendezvous import Settings
from ...core.rendezvous.sightings import Sightings, observe
from ...core.world import Node
from ..clock import Clock
from .memory_store import EncodedBackend, MemoryBackend, MemoryStore
from .port import Backend, Denied, NotServed, OutOfReach, StoreError
from .runs import Runs
from .tcpstore.wire import RUNS_THERE, Address, starts

if TYPE_CHECKING:
    from socket import socket

    from .etcd.access import Access
    from .secret import Secret
    from .tcpstore.helper_watch import HelperWatch
    from .tcpstore.serving import StoreHost
    from .tcpstore.table import Table
    from .tcpstore.tcpstore import TCPStoreBackend

IN_MEMORY = "in memory"
"""The name of the store of a node that meets no other."""
_ANSWER_S = 2.0
"""How long a member of an etcd may take to answer. The TTL of a heartbeat can make this shorter."""
_ANSWERS_PER_TTL = 4
_STARTS_S = 2.0
"""How long a TCPStore may take to answer before it is held to be starting."""
_PAUSE_S = 0.2
"""The pause between two looks for a register that is not there."""
_WARNINGS_MAX = 16
"""A foreigner who writes much is not repeated for ever."""
_BESIDE_MAX = 256
"""The most registers beside the nodes' own that a connection in memory keeps: one per world of wrapped ranks."""


def _once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Return what warns once of each text, and of no more than _WARNINGS_MAX."""
    told: set[str] = set()

    def warn_once(text: str) -> None:
        if text not in told and len(told) < _WARNINGS_MAX:
            told.add(text)
            warn(text)

    return warn_once


class StoreConnection(Protocol):
    """One participant's connection to the store."""

    @property
    def backend(self) -> Backend:
        """The participant's own client of the register."""

    @property
    def place(self) -> str:
        """The name of the store, for people."""

    @property
    def serves(self) -> bool:
        """True if the store lives only as long as this participant."""

    def close(self, timeout_s: float) -> None:
        """Close the client. A participant that serves the store waits at most `timeout_s` for the others to leave.
        Idempotent."""


class RoundHost(Protocol):
    """Serves the store of each round, where workers meet, beside the job's."""

    @property
    def has_given_up(self) -> bool:
        """True if it serves nothing any more."""

    def serve_round(self, listening: socket) -> None:
        """Serve the store of a round on this socket, which the caller gives away, and the last round's no longer."""


class AgentConnection(StoreConnection, Protocol):
    """An agent's connection, which opens registers for the agent's workers too."""

    @property
    def rounds(self) -> RoundHost | None:
        """Serves the stores of the rounds; None where worker rank 0 does."""

    def beside(self, name: str) -> Backend:
        """Return a client of the workers' register `name` in the same store."""

    def for_others(self) -> Backend:
        """Return a client of the agents' register for somebody who is no node. Any thread may call this."""

    def runs(self) -> Runs:
        """Return the jobs in the store, as far as it tells them; of many those called like this one. Raises StoreError."""

    def children(self) -> AbstractContextManager[Collection[int]]:
        """Return a context with the children of this process that serve the store. None is started in it."""

    def outlast(self, until: float, waits: Callable[[int], None]) -> int:
        """Serve on until no node that lives is in the job any more, or until this time. Returns how many are. `waits` is
        called once with their number, if there are any. `let_go` ends it."""

    def let_go(self) -> None:
        """End `outlast`. A signal's handler may call this."""


class RankConnection(StoreConnection, Protocol):
    """A wrapped rank's connection, which the rank's monitor process opens again."""

    @property
    def phrase(self) -> str:
        """The store as a noun phrase of a sentence."""

    @property
    def route(self) -> Mapping[str, object]:
        """JSON values from which another process of this host makes a client of the same register."""

    def starts(self) -> bool:
        """Return True if the store is starting. Asks it, and waits for its answer."""


class _Elsewhere:
    """A connection to a store that no process of this agent's serves to others."""

    serves = False
    rounds = None

    def children(self) -> AbstractContextManager[Collection[int]]:
        return nullcontext(())

    def outlast(self, until: float, waits: Callable[[int], None]) -> int:
        return 0

    def let_go(self) -> None:
        pass


class MemoryConnection(_Elsewhere):
    """A connection to a register in this process's memory, for one node."""

    place = IN_MEMORY

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beside: dict[str, MemoryStore] = {}
        self._store = MemoryStore()
        self.backend = MemoryBackend(self._store, clock)

    def beside(self, name: str) -> Backend:
        """Return a client of the register `name`, which also stands while it has no client. The oldest of many go."""
        store = self._beside.setdefault(name, MemoryStore())
        if len(self._beside) > _BESIDE_MAX:
            del self._beside[next(iter(self._beside))]
        return MemoryBackend(store, self._clock)

    def for_others(self) -> Backend:
        return EncodedBackend(self._store, self._clock)

    def runs(self) -> Runs:
        return Runs()

    def close(self, timeout_s: float) -> None:
        self.backend.close()


class TCPStoreConnection:
    """A connection to a TCPStore. It serves the store if this host should."""

    def __init__(
        self,
        address: Address,
        run_id: str,
        clock: Clock,
        is_host: bool | None,
        fallback_s: float = 1.0,
        token: Secret | None = None,
        warn: Callable[[str], None] = lambda text: None,
        outlives: bool = False,
        ttl_s: float = 5.0,
        end: Callable[[int], str] = lambda code: f"ended with {code}",
        is_alone: bool = False,
    ) -> None:
        """Serve the store if `is_host` says so (`serve` has the rule, also for `outlives`), and again when its helper dies
        or stands still for two of these TTLs; a store that outlives its process is not watched. `warn` is called by any
        thread, once for each text about what the store holds. `end` puts the helper's exit code into words. With
        `is_alone` this is the job's one node, which goes on in its own memory when no helper can be started here. Raises
        CannotServe."""
        from .tcpstore.helper_watch import Watching, serve_watched
        from .tcpstore.seal import seal
        from .tcpstore.serving import serve
        from .tcpstore.table import Table
        from .tcpstore.tcpstore import TIMEOUT_S, TCPStoreBackend  # none of this is needed by a register in memory

        self._host: StoreHost | HelperWatch | None
        self._watch: HelperWatch | None = None
        if outlives:
            self._host, self.address = serve(address, is_host, outlives)
        else:
            watching = Watching(clock, max(2 * ttl_s, TIMEOUT_S), warn, end, is_alone)
            self._watch, self.address = serve_watched(address, is_host, watching)
            self._host = self._watch
        self._clock, self._fallback_s, self._ttl_s, self._told = clock, fallback_s, ttl_s, is_host
        self._table = Table() if is_alone else None
        self._is_let_go = False
        self._of_run = partial(
            TCPStoreBackend,
            self.address,
            clock=clock,
            fallback_s=fallback_s,
            seal=seal(token),
            warn=_once(warn),
            table=self._own_table,
            remedy=self._remedy,
        )
        self._run_id = run_id
        self.backend = self._of_run(run_id)

    def beside(self, name: str) -> Backend:
        return self._of_run(_workers_run(self._run_id, name))

    def for_others(self) -> Backend:
        return self.backend.clone()

    def runs(self) -> Runs:
        with closing(self.backend.clone()) as client:
            return client.runs()

    @property
    def place(self) -> str:
        return str(self.address)

    @property
    def phrase(self) -> str:
        return f"the TCPStore at {self.address}"

    @property
    def serves(self) -> bool:
        return self._host is not None

    @property
    def rounds(self) -> RoundHost | None:
        return self._watch

    @property
    def route(self) -> Mapping[str, object]:
        return {"host": self.address.host, "port": self.address.port, "space": self._run_id}

    def starts(self) -> bool:
        return starts(self.address, _STARTS_S)

    def children(self) -> AbstractContextManager[Collection[int]]:
        return self._watch.children() if self._watch else nullcontext(())

    def _remedy(self) -> str:
        """Return what helps if the store does not answer. Raises NotServed if nothing does."""
        if self._watch and self._watch.is_hopeless and self._table is None:
            raise NotServed(f"this node cannot serve store {self.address}")
        if self._watch:
            return self._watch.remedy
        from .tcpstore.serving import is_own

        if self._told is not None or is_own(self.address):
            return RUNS_THERE
        where = f"if no node here has the address {self.address.host}"
        return f"{RUNS_THERE}; {where}: on the node behind it write --rdzv-conf=is_host=true"

    def _own_table(self) -> Table | None:
        """Return the table in which a node alone goes on, when its store is served no longer."""
        return self._table if self._watch and self._watch.has_given_up else None

    def outlast(self, until: float, waits: Callable[[int], None]) -> int:
        others, seen = 0, Sightings()
        while self._host and not self._is_let_go and (now := self._clock.now()) < until:
            try:
                before, state = others, self.backend.get().state
                if state:
                    seen = self._heard(seen, state.present)
                    others = sum(seen.silence(node) < self._ttl_s for node in state.present)
                if others and not before:
                    waits(others)
                if state and (state.closed or not others):
                    break  # `close` waits for those who have yet to read the verdict
                if state:
                    self.backend.wait_for_change(state.token, min(until, now + self._fallback_s))
            except StoreError:
                state = None
            if state is None:
                time.sleep(min(_PAUSE_S, max(until - now, 0.0)))  # served again, and not restored yet
        return others

    def _heard(self, seen: Sightings, nodes: Sequence[Node]) -> Sightings:
        """Read the heartbeats of these nodes: the last one may have died, and then nobody evicts it. Raises StoreError."""
        sent_at = self._clock.now()
        counters = self.backend.heartbeats(nodes).counters
        return observe(seen, counters, sent_at, self._clock.now(), 2 * self._fallback_s, self._ttl_s)

    def let_go(self) -> None:
        self._is_let_go = True
        self.backend.close()

    def close(self, timeout_s: float) -> None:
        all_know = False
        try:
            all_know = self._host is not None and _wait_for_the_others(self.backend, timeout_s)
        except StoreError:
            pass  # the store is gone, or stands still: nobody can read anything from it now
        finally:
            self.backend.close()
            if self._host:
                self._host.release(is_needed=not all_know)


def _workers_run(run_id: str, name: str) -> str:
    """Return the run id under which a TCPStore keeps the register `name` of a run's workers."""
    from .tcpstore.keys import WORKERS

    return f"{run_id}{WORKERS}{name}"


def _wait_for_the_others(backend: TCPStoreBackend, timeout_s: float) -> bool:
    """Wait until each member that is still present has said goodbye, if the job is over. Return True if all have.

    A member that has left (`AWAY`) reads no verdict any more, and one that was lost says no goodbye: nobody waits for them.
    An agent that leaves a job that goes on takes its store along, and was told so; it waits for nobody.
    """
    state = backend.get().state
    if state is None or not state.closed:
        return False
    return backend.wait_until_gone(state.present, timeout_s)


class EtcdConnection(_Elsewhere):
    """A connection to an etcd cluster that runs already."""

    def __init__(
        self, addresses: Sequence[Address], access: Access, run_id: str, clock: Clock, settings: Settings
    ) -> None:
        """Raises Denied if the cluster refuses us, and ImportError if etcd3 cannot be used. A cluster that is out of reach
        raises nothing: it may still come up."""
        from .etcd.etcd_register import EtcdBackend
        from .etcd.members import Members
        from .etcd.run_keys import prefix_of

        members = Members(addresses, access, min(_ANSWER_S, settings.ttl / _ANSWERS_PER_TTL), prefix_of(run_id))
        self.place = str(members)
        lease_s, fallback_s = math.ceil(settings.ttl), settings.keep_alive_interval
        self._of_run = partial(EtcdBackend, members, clock=clock, lease_s=lease_s, fallback_s=fallback_s)
        self._run_id = run_id
        self.backend = self._of_run(run_id)
        try:
            self.backend.probe()
        except Denied:
            self.backend.close()
            raise
        except OutOfReach:
            pass  # the loop that waits for the store says so

    def beside(self, name: str) -> Backend:
        return self._of_run(self._run_id, space=name)

    def for_others(self) -> Backend:
        return self.backend.clone()

    def runs(self) -> Runs:
        with closing(self.backend.clone()) as client:
            return client.runs()

    def close(self, timeout_s: float) -> None:
        self.backend.close()


class RelayConnection:
    """A worker's connection to its agent's store, through the agent's relay."""

    place = phrase = "the launcher's store"
    serves = False

    def __init__(self, path: str, space: str, clock: Clock) -> None:
        """`path` is the relay's socket, `space` the name of the register."""
        from .relay.relay_backend import RelayBackend

        self.route: Mapping[str, object] = {"relay": path, "space": space}
        self.backend = RelayBackend(path, space, clock)

    def starts(self) -> bool:
        return False

    def close(self, timeout_s: float) -> None:
        self.backend.close()
