"""What one client of a run in an etcd asks with, and what all clients of a process know of that run together."""

from __future__ import annotations

import threading
from typing import Any

from attrs import define, field, frozen

from .cluster_client import ClusterClient
from .members import Members, Method, ranged
from .run_keys import Keys, Seen


@define
class RunShared:
    """What all clients of this process know."""

    lease_s: float
    latest: Seen | None = None
    failures: int = 0
    """How many connections had failed when it was last asked for."""
    lease: int = 0
    """Granted here for the run's keys, before there was a register."""
    kept_at: float = 0.0
    """When it was last kept alive."""
    _lock: threading.Lock = field(init=False, factory=threading.Lock)

    def learn(self, seen: Seen) -> Seen:
        """What an older answer shows replaces nothing, in whichever thread it comes."""
        with self._lock:
            latest = self.latest
            if latest is None or latest.cluster != seen.cluster or latest.at <= seen.at:
                self.latest = seen
        return seen


@frozen(eq=False)
class RunClient:
    """Of one register of a run."""

    members: Members
    keys: Keys
    shared: RunShared
    cluster: ClusterClient = field(init=False)

    @cluster.default
    def _cluster(self) -> ClusterClient:
        return ClusterClient(self.members)

    def ask(self, method: Method, request: Any, writes: bool = False) -> Any:
        """As `ClusterClient.ask`."""
        return self.cluster.ask(method, request, writes)

    def read(self) -> Seen:
        """What stands now."""
        failures = self.members.failures
        answer = self.ask(ranged, self.keys.both())
        self.shared.failures = failures
        return self.shared.learn(self.keys.seen(answer.header, answer.kvs))
