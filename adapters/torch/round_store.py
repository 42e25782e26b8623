"""The store of one round, for torch's agents and for their workers: a TCPStore of its own, so that no round reads what
another wrote.

The agent of rank 0 serves it, at the port that it had reserved before it arrived; the others find it by that node's seat.
Nobody works before all have come, and who serves it stays until all have gone, or for a moment.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torch.distributed import DistError, DistStoreError, PrefixStore, TCPStore  # type: ignore[attr-defined]

from ...core.values import frozen
from ...core.world import Endpoint

_SLICE_S = 1.0
"""A wait is this long at a time; this process hears nothing else meanwhile, no signal either."""
_PAUSE_S = 0.1
"""Until a store that nobody serves, or whose address leads nowhere, is tried again."""
ANSWER_S = 60.0
"""torch's agent waits this long for a key by default, as with torch's own c10d."""
COME, GONE = "elastic/come", "elastic/gone"
_AGENTS = "elastic/agents"


class Unmet(Exception):
    """Not all members of a round have reached its store. The text names it, and says what to do."""


@frozen
class RoundStore:
    """`keys` is the store itself, `agents` the part of it in which torch's agents exchange ranks."""

    keys: Any
    agents: Any
    rank: int
    size: int

    def part(self, timeout_s: float) -> None:
        """Say that this node needs the store no longer. Its server waits this long for the others to say so too."""
        try:
            self.keys.set(f"{GONE}/{self.rank}", "")
            if self.rank == 0:
                self.keys.wait(_all(GONE, self.size), timedelta(seconds=timeout_s))
        except DistError:
            pass  # who has gone without a word needs it no longer either


def meet(
    endpoint: Endpoint, rank: int, size: int, stands: Callable[[], bool], now: Callable[[], float], until: float
) -> RoundStore | None:
    """Return when all members have come; None as soon as the world no longer `stands`. Raises Unmet at `until`."""
    store, is_reached = None, False
    while stands():
        try:
            if rank == 0:  # it serves first
                store = store or _opened("localhost", endpoint.port, rank)
            if not is_reached:
                socket.create_connection((endpoint.address, endpoint.port), _SLICE_S).close()
                is_reached = True
            store = store or _opened(endpoint.address, endpoint.port, rank)
            store.wait(_all(COME, size), timedelta(seconds=_SLICE_S))
        except (DistError, OSError, UnicodeError) as error:
            if now() >= until:
                raise Unmet(_unmet(endpoint, is_reached)) from error
            if not isinstance(error, DistStoreError):
                time.sleep(_PAUSE_S)
                if isinstance(error, DistError):
                    store, is_reached = None, False  # whoever served it took it away, and serves it anew
            continue
        return RoundStore(store, PrefixStore(_AGENTS, store), rank, size)
    return None


def _opened(address: str, port: int, rank: int) -> Any:
    """Serve the store, or reach it where somebody listens, and count this node there.

    torch asks a name server for the name of its peer before it connects, within the same time-out. Where that takes longer
    than a slice, no slice would ever do. So torch has more time. Who serves the store reaches it by the loopback.
    """
    span = timedelta(seconds=ANSWER_S)
    store = TCPStore(address, port, is_master=rank == 0, timeout=span, wait_for_workers=False)
    store.set(f"{COME}/{rank}", "")
    return store


def _unmet(endpoint: Endpoint, reached: bool) -> str:
    place = f"{endpoint.address}:{endpoint.port}"
    what = "was not reached by all members" if reached else "is out of reach from here"
    return f"the store of the round, {place}, {what}; --local-addr of rank 0 names another address"


def _all(what: str, size: int) -> list[str]:
    return [f"{what}/{rank}" for rank in range(size)]
