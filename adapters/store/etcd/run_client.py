"""A client of one run in an etcd, and the values that all clients of the run in a process share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from attrs import define, field

from ....core.values import frozen
from .cluster_client import ClusterClient
from .members import Members, Method, ranged, transacted
from .run_keys import Keys, Seen


@define
class RunShared:
    """The values that all clients of this process share."""

    lease_s: float
    latest: Seen | None = None
    failures: int = 0
    """How many connections had failed when the register was last read."""
    lease: int = 0
    """The lease that was granted for the run's keys before there was a register; 0 for none."""
    kept_at: float = 0.0
    """When the run's lease was last renewed."""
    _lock: threading.Lock = field(init=False, factory=threading.Lock)

    def learn(self, seen: Seen) -> Seen:
        """Keep this answer unless a newer one is known: answers come in several threads."""
        with self._lock:
            latest = self.latest
            if latest is None or latest.cluster != seen.cluster or latest.at <= seen.at:
                self.latest = seen
        return seen


@frozen(eq=False)
class RunClient:
    """A client of one register of a run."""

    members: Members
    keys: Keys
    shared: RunShared
    cluster: ClusterClient = field(init=False)

    @cluster.default
    def _cluster(self) -> ClusterClient:
        return ClusterClient(self.members)

    def ask(self, method: Method, request: Any, writes: bool = False) -> Any:
        """Ask the cluster, as `ClusterClient.ask`."""
        return self.cluster.ask(method, request, writes)

    def read(self) -> Seen:
        """Read the register."""
        failures = self.members.failures
        answer = self.ask(ranged, self.keys.both())
        self.shared.failures = failures
        return self.learn(answer.header, answer.kvs)

    def learn(self, header: Any, kvs: Sequence[Any]) -> Seen:
        """Keep the register that an answer to `both` shows. If somebody has deleted `life`, or has put an older one of the
        two back, no write would land any more: `life` is written again, from the register."""
        if restoring := self.keys.restoring(kvs):
            self.ask(transacted, restoring)
            return self.read()
        return self.shared.learn(self.keys.seen(header, kvs))
