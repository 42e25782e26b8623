"""Where the nodes of one job meet: opened before the agent, closed after it.

The embedded meeting is this process's memory. A TCPStore at an endpoint is served by one of the agents; that one leaves
last, so that everybody hears the verdict. An etcd is served by others, and outlives them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ...core.rendezvous import Settings, Status
from ..clock import Clock
from .memory_store import MemoryBackend, MemoryStore
from .port import Backend, Denied, OutOfReach, StoreError
from .tcpstore.serving import serve
from .tcpstore.wire import Address

if TYPE_CHECKING:
    from .etcd.access import Access
    from .secret import Secret

ANSWER_S = 2.0
"""How long a member of an etcd may take to answer; less where a heartbeat must not wait so long."""
ANSWERS_PER_TTL = 4


class Meeting(Protocol):
    """One job's store, as this node sees it."""

    @property
    def backend(self) -> Backend:
        """A client for the agent."""

    @property
    def place(self) -> str:
        """The store's name, for people."""

    @property
    def serves(self) -> bool:
        """The store lives as long as this node takes part."""

    def beside(self, name: str) -> Backend:
        """A client of another register in the same store: one that belongs to the job's workers."""

    def close(self, timeout_s: float) -> None:
        """This node has left; if it serves the store, it waits so long for the others to leave."""


def beside(run_id: str, name: str) -> str:
    """The run of a register that belongs to a run's workers."""
    return f"{run_id}/workers/{name}"


class EmbeddedMeeting:
    """One node, nobody to wait for."""

    place = "in memory"
    serves = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.backend = MemoryBackend(MemoryStore(), clock)

    def beside(self, name: str) -> Backend:
        return MemoryBackend(MemoryStore(), self._clock)

    def close(self, timeout_s: float) -> None:
        self.backend.close()


class TCPStoreMeeting:
    """A TCPStore, served here if this host should."""

    def __init__(
        self,
        address: Address,
        run_id: str,
        clock: Clock,
        is_host: bool | None,
        fallback_s: float,
        token: Secret | None = None,
    ) -> None:
        """Raises CannotServe if this host was told to serve it and cannot."""
        from .tcpstore.seal import seal
        from .tcpstore.tcpstore import TCPStoreBackend  # with the codec behind it, which the embedded meeting needs not

        self._host, self.address = serve(address, is_host)
        self._of_run = partial(TCPStoreBackend, self.address, clock=clock, fallback_s=fallback_s, seal=seal(token))
        self._run_id = run_id
        self.backend = self._of_run(run_id)

    def beside(self, name: str) -> Backend:
        return self._of_run(beside(self._run_id, name))

    @property
    def place(self) -> str:
        return str(self.address)

    @property
    def serves(self) -> bool:
        return self._host is not None

    def close(self, timeout_s: float) -> None:
        try:
            if self._host:
                self._wait_for_the_others(timeout_s)
        except StoreError:
            pass  # then nobody hears anything from it any more
        finally:
            self.backend.close()
            if self._host:
                self._host.close()

    def _wait_for_the_others(self, timeout_s: float) -> None:
        """Only after the end: who leaves a job that goes on takes its store along, and has been told so."""
        state = self.backend.get().state
        if state and state.closed:
            self.backend.wait_until_gone(
                [node for node, seat in state.seats.items() if seat.status is not Status.GONE], timeout_s
            )


class EtcdMeeting:
    """An etcd cluster that is there."""

    serves = False

    def __init__(
        self, addresses: Sequence[Address], access: Access, run_id: str, clock: Clock, settings: Settings
    ) -> None:
        """Raises Denied if it will not have us, ImportError if etcd3 cannot be used. One that is out of reach may come."""
        from .etcd.etcd_register import EtcdBackend
        from .etcd.members import Members
        from .etcd.run_keys import prefix_of

        members = Members(addresses, access, min(ANSWER_S, settings.ttl / ANSWERS_PER_TTL), prefix_of(run_id))
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
            pass  # what waits for it says so

    def beside(self, name: str) -> Backend:
        return self._of_run(self._run_id, space=name)

    def close(self, timeout_s: float) -> None:
        self.backend.close()
