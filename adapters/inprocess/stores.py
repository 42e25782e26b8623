"""Where the ranks of a wrapped call meet: the launcher's store through the agent's relay, or a TCPStore that is named.

A store is a factory of clients of the register of one call. Each call of a wrapped function in a process has a register of
its own, so all ranks must make these calls in one order.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

from ...core.rendezvous.state import AWAY
from ..clock import Clock
from ..store.port import Backend, StoreError
from ..store.relay.relay_host import VARIABLE as RELAY
from ..store.tcpstore.tcpstore import TCPStoreBackend
from ..workers.environment import WORLD
from .variables import number


class NoStore(RuntimeError):
    """Nobody has said where the ranks meet. The text says how to."""


class Store(Protocol):
    """Where the ranks meet."""

    def backend(self, space: str, clock: Clock) -> Backend:
        """A client of the register of that name."""

    def place(self, space: str) -> Mapping[str, object]:
        """The same, for the monitor process."""

    @property
    def serves(self) -> bool:
        """It lives as long as this process: others may still need it when this rank is done."""

    def close(self, backend: Backend, timeout_s: float) -> None:
        """This rank is done with this register. Who serves it waits so long for the others to be."""


class RelayStore:
    """The launcher's."""

    def __init__(self, path: str, world: str) -> None:
        self._path = path
        self._world = world

    def backend(self, space: str, clock: Clock) -> Backend:
        from ..store.relay.relay import RelayBackend

        return RelayBackend(self._path, f"{self._world}/{space}", clock)

    def place(self, space: str) -> Mapping[str, object]:
        return {"relay": self._path, "space": f"{self._world}/{space}"}

    def __str__(self) -> str:
        return "the launcher's store"

    serves = False

    def close(self, backend: Backend, timeout_s: float) -> None:
        pass


class TCPStore:
    """A TCPStore. Under torchrun the agent's, which outlives all ranks; else the first process on its host that gets the
    port serves it in a process of its own, which lives as long as that rank."""

    def __init__(self, host_name: str | None = None, port: int | None = None, **unused: object) -> None:
        """By default MASTER_ADDR and MASTER_PORT. `unused` is what torch's class takes besides."""
        from ..store.tcpstore.serving import serve
        from ..store.tcpstore.wire import Address

        host = host_name or os.environ.get("MASTER_ADDR", "localhost")
        address = Address(host, int(port) if port else number("MASTER_PORT", 29500, least=1))
        agents = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and host_name is None and port is None
        self._host, self._address = serve(address, False if agents else None)

    def backend(self, space: str, clock: Clock) -> Backend:
        return TCPStoreBackend(self._address, self._run(space), clock)

    def place(self, space: str) -> Mapping[str, object]:
        return {"host": self._address.host, "port": self._address.port, "space": self._run(space)}

    def __str__(self) -> str:
        return f"the TCPStore at {self._address}"

    @property
    def serves(self) -> bool:
        return self._host is not None

    def close(self, backend: Backend, timeout_s: float) -> None:
        if self._host is None:
            return
        try:
            state = backend.get().state
            if state and state.closed and isinstance(backend, TCPStoreBackend):
                backend.wait_until_gone([node for node in state.seats if node not in state.those(*AWAY)], timeout_s)
        except StoreError:
            pass  # then nobody hears anything from it any more
        self._host.close()

    def _run(self, space: str) -> str:
        run_id, count = (os.environ.get(name, "0") for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"))
        return f"inprocess/{run_id}/{count}/{space}"


def store_of_the_launcher(**given: Any) -> Store:
    """What is `given` is for a TCPStore, where there is no launcher of ours. Raises NoStore."""
    path, world = os.environ.get(RELAY), os.environ.get(WORLD)
    if path and world:
        return RelayStore(path, world)
    if "MASTER_ADDR" in os.environ or "host_name" in given:
        return TCPStore(**given)
    raise NoStore(
        "no launcher's store (ELASTIC_RELAY) and no MASTER_ADDR: start the program by `elastic launch`, or give "
        "store_factory and store_kwargs"
    )
