"""A worker's message to its agent that it has entered a wrapped call: an empty file in the folder of the agent's relay.

Where workers restart alone, ranks that have met in a call go on without one that is missing. Of a rank that never entered a
call they know nothing, so they would wait for it. The file is there before any other rank can have met this one, and stays
for all starts of that worker in its round. An agent believes it for its own workers alone.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress

from ...store.relay.relay_server import VARIABLE as RELAY


def _path(relay: str, local_rank: object) -> str:
    return os.path.join(os.path.dirname(relay), f"entered.{local_rank}")


def say_entered() -> None:
    """Say that this worker enters a wrapped call. Without an agent this does nothing."""
    relay, local_rank = os.environ.get(RELAY), os.environ.get("LOCAL_RANK", "")
    if relay and local_rank.isdecimal():
        with suppress(OSError):  # a full disk: the agent then takes this rank for one that nobody has met
            os.close(os.open(_path(relay, local_rank), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))


class Entered:
    """The agent's side: what its workers have said since all of them were started last."""

    def __init__(self, relay: str) -> None:
        """`relay` is the path of the agent's relay; empty for no relay, where no worker can say anything."""
        self._relay = relay
        self._local_ranks: Collection[int] = ()

    def begin(self, local_ranks: Collection[int]) -> None:
        """Forget what earlier workers have said: these are started now."""
        self.close()
        self._local_ranks = local_ranks

    def has(self, local_rank: int) -> bool:
        """Return True if a process of this worker has entered a call."""
        return bool(self._relay) and os.path.lexists(_path(self._relay, local_rank))

    def close(self) -> None:
        """Remove the files."""
        for local_rank in self._local_ranks if self._relay else ():
            with suppress(OSError):  # most often it is not there
                os.unlink(_path(self._relay, local_rank))
