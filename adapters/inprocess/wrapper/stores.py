"""The store in which the ranks of a wrapped call meet: the launcher's, through the agent's relay, or a TCPStore by name.

Each call of a wrapped function in a process has a register of its own, so all ranks must make these calls in one order.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Protocol

from ...clock import Clock
from ...store.connection import RankConnection, RelayConnection, TCPStoreConnection
from ...store.relay.relay_server import VARIABLE as RELAY
from ...store.tcpstore.wire import Address
from ...workers.start.environment import WORLD
from .parameters import number


class NoStore(RuntimeError):
    """Nobody has said where the ranks meet. The text says how to."""


class Store(Protocol):
    """A store in which the ranks can meet."""

    def connect(self, space: str, clock: Clock) -> RankConnection:
        """Open a connection to the register `space`."""


class RelayStore:
    """The launcher's store."""

    def __init__(self, path: str, world: str) -> None:
        self._path = path
        self._world = world

    def connect(self, space: str, clock: Clock) -> RankConnection:
        return RelayConnection(self._path, f"{self._world}/{space}", clock)


class TCPStore:
    """A TCPStore. Under torchrun it is the agent's, which outlives all ranks. Elsewhere the first process on its host that
    gets the port serves it in a process of its own, for all calls. That lives on if the rank is killed or leaves."""

    def __init__(self, host_name: str | None = None, port: int | None = None, **unused: object) -> None:
        """The default is MASTER_ADDR and MASTER_PORT. `unused` holds the other parameters of torch's class."""
        master, is_agents = master_at_first()
        self._address = Address(host_name or master.host, int(port) if port else master.port)
        self._is_host = False if is_agents and self._address == master else None

    def connect(self, space: str, clock: Clock) -> RankConnection:
        return TCPStoreConnection(self._address, _run(space), clock, self._is_host, outlives=True)


def store_of_the_launcher(**given: Any) -> Store:
    """Return the launcher's store, or without a launcher of ours the TCPStore that is `given`. Raises NoStore."""
    path, world = os.environ.get(RELAY), os.environ.get(WORLD)
    if path and world:
        return RelayStore(path, world)
    if "MASTER_ADDR" in os.environ or "host_name" in given:
        return TCPStore(**given)
    raise NoStore(
        "no launcher's store (ELASTIC_RELAY) and no MASTER_ADDR: start the program by `elastic launch`, or give "
        "store_factory and store_kwargs"
    )


@cache
def master_at_first() -> tuple[Address, bool]:
    """Return MASTER_ADDR and MASTER_PORT as they were at this process's first call, and True if an agent of torchrun serves
    a store there. Each iteration sets these variables anew."""
    address = Address(os.environ.get("MASTER_ADDR", "localhost"), number("MASTER_PORT", 29500, least=1))
    return address, os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


os.register_at_fork(after_in_child=master_at_first.cache_clear)


def _run(space: str) -> str:
    run_id, count = (os.environ.get(name, "0") for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"))
    return f"inprocess/{run_id}/{count}/{space}"
