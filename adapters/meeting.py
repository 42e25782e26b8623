"""Where the nodes of one job meet: opened before the agent, closed after it.

The embedded meeting is this process's memory. The other is a TCPStore at an endpoint, served by one of the agents; that one
leaves last, so that everybody hears the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..core.rendezvous import Status
from .backends.memory import MemoryBackend, MemoryStore
from .backends.port import Backend, StoreError
from .backends.serving import serve
from .backends.wire import Address
from .clock import Clock

if TYPE_CHECKING:
    from .secret import Secret


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

    def close(self, timeout_s: float) -> None:
        """This node has left; if it serves the store, it waits so long for the others to leave."""


class EmbeddedMeeting:
    """One node, nobody to wait for."""

    place = "in memory"
    serves = False

    def __init__(self, clock: Clock) -> None:
        self.backend = MemoryBackend(MemoryStore(), clock)

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
        from .backends.seal import seal
        from .backends.tcpstore import TCPStoreBackend  # with the codec behind it, which the embedded meeting needs not

        self._host, self.address = serve(address, is_host)
        self.backend = TCPStoreBackend(self.address, run_id, clock, fallback_s, seal=seal(token))

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
