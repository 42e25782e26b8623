"""The lease of a run's keys in an etcd. All keys but heartbeats are under it, so nothing stays and nobody cleans up."""

from __future__ import annotations

from ....core.values import frozen
from ...clock import Clock
from .members import granted, renewed, revoked
from .rpc import rpc
from .run_client import RunClient
from .run_keys import Seen

_KEEPS_PER_SPAN = 24
"""How often in its span a node renews the lease."""


@frozen(eq=False)
class RunLease:
    """The lease of one run. `span_s` after its last renewal, nothing of the run is left."""

    client: RunClient
    clock: Clock
    span_s: int

    def beside(self) -> int:
        """Return the lease for a key beside the register; a new one if there is no register yet."""
        seen = self.client.shared.latest or self.client.read()
        return seen.lease or self._granted()

    def first(self) -> int:
        """Return the lease for the first keys of a run."""
        shared = self.client.shared
        if not shared.lease:
            shared.lease = self._granted()
        return shared.lease

    def forget(self) -> None:
        """Drop a lease that ended before it was used."""
        self.client.shared.lease = 0

    def give_back(self, seen: Seen) -> None:
        """Revoke our lease if another node's first write came before ours."""
        shared = self.client.shared
        lease, shared.lease = shared.lease, 0
        if lease and lease != seen.lease:
            self.client.ask(revoked, rpc.LeaseRevokeRequest(ID=lease))

    def keep(self) -> None:
        """Renew the lease if that is due."""
        shared, now = self.client.shared, self.clock.now()
        if shared.latest and shared.latest.lease and now - shared.kept_at >= self.span_s / _KEEPS_PER_SPAN:
            is_renewed(self.client, shared.latest.lease)
            shared.kept_at = now

    def _granted(self) -> int:
        return int(self.client.ask(granted, rpc.LeaseGrantRequest(TTL=self.span_s), writes=True).ID)


def is_renewed(client: RunClient, lease: int) -> bool:
    """Renew the lease. Returns False if it is over."""
    return bool(client.ask(renewed, rpc.LeaseKeepAliveRequest(ID=lease)).TTL > 0)
