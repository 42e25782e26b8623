"""Heartbeats in an etcd: each is a lease that its node keeps alive. A put per beat would leave a revision per beat.

A heartbeat is acknowledged by a linearizable read of the life, so that a deposed leader acknowledges none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define

from ....core.rendezvous.state import NODES_MAX
from ....core.world import Life, Node
from ..notes import GOING, QUERY
from ..numerals import counter
from ..port import Heartbeats, Place, spelled
from .leases import is_renewed
from .members import granted, revoked, transacted
from .rpc import rpc
from .run_client import RunClient
from .run_keys import asked, deleted, put


@define
class _Beat:
    """A heartbeat that this client keeps alive."""

    lease: int
    counter: int


class Beats:
    """The heartbeats that one client keeps alive, and those that it reads."""

    def __init__(self, client: RunClient, lease_s: int) -> None:
        """`lease_s` is the TTL that we ask for; the cluster may grant more."""
        self._client = client
        self._lease_s = lease_s
        self._beats: dict[Node, _Beat] = {}
        self.heard = b""
        """The data of the query that stood there at the last heartbeat."""

    def beat(self, node: Node, counter: int) -> Life | None:
        """Send a heartbeat, as the port's `heartbeat`."""
        beat = self._beats.get(node)
        if beat and not is_renewed(self._client, beat.lease):
            beat = None
        if beat and beat.counter == counter:
            stands, life = self._stands(node, beat)
            if stands:
                return life
        return self._put(node, beat.lease if beat else self._grant(), counter)

    def of(self, nodes: Iterable[Node]) -> Heartbeats:
        keys = self._client.keys
        those = {node: keys.heartbeat(node) for node in nodes}
        one = [rpc.RangeRequest(key=key) for key in those.values()] if len(those) < 2 else []
        asks = one or ([keys.below("heartbeat", limit=2 * NODES_MAX)] if those else [])
        beside = asked(rpc.RangeRequest(key=keys.register, keys_only=True))
        answer = self._client.ask(transacted, rpc.TxnRequest(success=[*map(asked, asks), beside, self._life]))
        *read, register, _ = answer.responses
        self._check(register.response_range.kvs)
        found = {kv.key: kv.value for each in read for kv in each.response_range.kvs}
        return Heartbeats(
            {node: counter(found.get(key, b"")) for node, key in those.items()},
            self._named(answer),
        )

    def _check(self, register: Iterable[Any]) -> None:
        """Read the register if it is another than the one that this process knows. Raises Unreadable: a node that is
        content with heartbeats would otherwise never say that it has lost the register beside them."""
        latest = self._client.shared.latest
        revisions = {kv.mod_revision for kv in register}
        if revisions and latest and revisions != {latest.revision}:
            self._client.read()

    def remove(self, node: Node) -> None:
        """Remove the node's records that go with it, and its heartbeat with its lease, which holds nothing else."""
        keys = self._client.keys
        beats = asked(rpc.RangeRequest(key=keys.heartbeat(node)))
        success = [beats, *(deleted(keys.of(Place(shelf, spelled(node)))) for shelf in GOING)]
        answer = self._client.ask(transacted, rpc.TxnRequest(success=success))
        leases = {kv.lease for kv in answer.responses[0].response_range.kvs}
        if beat := self._beats.pop(node, None):
            leases.add(beat.lease)
        for lease in leases:
            if is_renewed(self._client, lease):
                self._client.ask(revoked, rpc.LeaseRevokeRequest(ID=lease))

    def _stands(self, node: Node, beat: _Beat) -> tuple[bool, Life | None]:
        """Return True if the heartbeat is there, and the life of the register."""
        own = asked(rpc.RangeRequest(key=self._client.keys.heartbeat(node), keys_only=True))
        answer = self._client.ask(transacted, rpc.TxnRequest(success=[own, *self._beside]))
        self._hear(answer)
        stands = any(kv.lease == beat.lease for kv in answer.responses[0].response_range.kvs)
        return stands, self._named(answer)

    def _put(self, node: Node, lease: int, counter: int) -> Life | None:
        written = put(self._client.keys.heartbeat(node), b"%d" % counter, lease)
        answer = self._client.ask(transacted, rpc.TxnRequest(success=[written, *self._beside]))
        self._hear(answer)
        self._beats[node] = _Beat(lease, counter)
        return self._named(answer)

    def _grant(self) -> int:
        answer = self._client.ask(granted, rpc.LeaseGrantRequest(TTL=self._lease_s), writes=True)
        self._client.shared.lease_s = float(answer.TTL)
        return int(answer.ID)

    @property
    def _beside(self) -> tuple[Any, Any]:
        """The requests for the query and the life, which go beside a heartbeat of our own."""
        return asked(rpc.RangeRequest(key=self._client.keys.of(Place(QUERY)))), self._life

    def _hear(self, answer: Any) -> None:
        """Keep the query that the last response but one shows."""
        values = [kv.value for kv in answer.responses[-2].response_range.kvs]
        self.heard = values[0] if values else b""

    @property
    def _life(self) -> Any:
        """The request for the life, which goes beside a heartbeat."""
        return asked(rpc.RangeRequest(key=self._client.keys.life))

    def _named(self, answer: Any) -> Life | None:
        """Return the life that the last response shows, which answers `_life`."""
        values = [kv.value for kv in answer.responses[-1].response_range.kvs]
        return self._client.keys.named(answer.header, values[0] if values else None)
