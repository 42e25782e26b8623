"""The lease of a run's keys in an etcd: who asks for it, who keeps it alive, who gives it back.

All keys but heartbeats are under one, so nothing has to be cleaned up and nothing stays.
"""

from __future__ import annotations

from attrs import frozen

from ...clock import Clock
from .members import granted, renewed, revoked
from .rpc import rpc
from .run_client import RunClient
from .run_keys import Seen

_KEEPS_PER_SPAN = 24
"""How often in its span a node keeps it alive."""


@frozen(eq=False)
class RunLease:
    """Of one run. `span_s` after the last that kept it alive, nothing of the run is left."""

    client: RunClient
    clock: Clock
    span_s: int

    def beside(self) -> int:
        """For what is put beside the register, or before there is one."""
        seen = self.client.shared.latest or self.client.read()
        return seen.lease or self._granted()

    def first(self) -> int:
        """For the first keys of a run."""
        shared = self.client.shared
        if not shared.lease:
            shared.lease = self._granted()
        return shared.lease

    def forget(self) -> None:
        """It is over before it was of use."""
        self.client.shared.lease = 0

    def give_back(self, seen: Seen) -> None:
        """Somebody else's first write came before ours."""
        shared = self.client.shared
        lease, shared.lease = shared.lease, 0
        if lease and lease != seen.lease:
            self.client.ask(revoked, rpc.LeaseRevokeRequest(ID=lease))

    def keep(self) -> None:
        """Now and then."""
        shared, now = self.client.shared, self.clock.now()
        if shared.latest and shared.latest.lease and now - shared.kept_at >= self.span_s / _KEEPS_PER_SPAN:
            is_renewed(self.client, shared.latest.lease)
            shared.kept_at = now

    def _granted(self) -> int:
        return int(self.client.ask(granted, rpc.LeaseGrantRequest(TTL=self.span_s), writes=True).ID)


def is_renewed(client: RunClient, lease: int) -> bool:
    """False if it is over."""
    return bool(client.ask(renewed, rpc.LeaseKeepAliveRequest(ID=lease)).TTL > 0)
