"""The register on an etcd v3 cluster: one key, written by transaction, pushed by a watch.

    elastic/<run id>/register              the state, after a line with the stamp of its write
    elastic/<run id>/life                  the same stamp: the cluster in which it was written, a nonce, the life
    elastic/<run id>/heartbeat/<node>      a constant counter, under a lease that the node keeps alive
    elastic/<run id>/wish/<node>           what it would have written for it
    elastic/<run id>/wished/<kind>         put once by each who proposes so in this era: its version is their number
    elastic/<run id>/faults/<round>/<node>/<random>

A write names the revision of the register that it follows, and its stamp. A cluster that was restored from a snapshot
counts its revisions from there again, but no two writes have the same stamp. All reads are linearizable. All clients of a
process share what the last answer showed, so a write is one round trip, and one that comes too late returns the present
register.

Each put leaves a revision in etcd until the cluster is compacted, so a heartbeat is no put: it keeps a lease alive and reads
the life. The other keys of a run are under one lease of `kept_s`, which each node keeps alive: a day after the last node,
nothing of the run is left. Only keys and leases of this run are ever deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....core.rendezvous import Proposal, RendezvousState, Token, codec
from ....core.rendezvous.state import NODES_MAX
from ....core.world import Fault, Life, Node
from ...clock import Clock
from ..failure_records import FAULTS_HALF, read_faults
from ..port import FAULTS_MAX, Heartbeats, OutcomeUnknown, Shown
from .change_waiter import ChangeWaiter
from .cluster_client import LeaseGone
from .heartbeats import Beats
from .leases import RunLease
from .members import Members, ranged, transacted
from .rpc import rpc
from .run_client import RunClient, RunShared
from .run_keys import Keys, Seen, Stamp, asked, deleted, put, spelled

KEPT_S = 86_400
"""How long a run's register and faults outlive its last agent, so that a late agent reads the verdict."""
_FORGOTTEN_AT_ONCE = 64
"""Keys that are deleted with one question: etcd takes 128 operations."""

_FAULTS_PER_PAGE = 8
"""Failure records that are read with one question, since each may be large."""


class EtcdBackend:
    """A client of one run's register. The thread that owns it calls its methods; `close` may come from any thread."""

    def __init__(
        self,
        members: Members,
        run_id: str,
        clock: Clock,
        lease_s: int,
        fallback_s: float = 1.0,
        kept_s: int = KEPT_S,
        shared: RunShared | None = None,
        space: str = "",
    ) -> None:
        """The first question connects. `lease_s` is the TTL of a heartbeat that we ask for; the cluster may grant more.
        `fallback_s` is how often a wait reads the register without being told of a change. `shared` is what the clients of
        a process share. `space` names a register of the run's workers."""
        self._clock = clock
        self._spans = lease_s, fallback_s, kept_s
        self._client = RunClient(members, Keys(run_id, str(members), space), shared or RunShared(lease_s))
        self._lease = RunLease(self._client, clock, kept_s)
        self._beats = Beats(self._client, lease_s)
        self._waiting = ChangeWaiter(self._client, clock, fallback_s)
        self._proposed: list[bytes] = []
        """The keys of counts to which this client has added, without those that were deleted."""

    @property
    def lease_s(self) -> float | None:
        return self._client.shared.lease_s

    def probe(self) -> None:
        """Raises Denied, with the remedy, if the cluster refuses us, and OutOfReach if it does not answer."""
        self._client.cluster.probe()

    # --- the register

    def get(self) -> Shown:
        return self._client.read().shown

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        base = self._base(token)
        edits_copy = base.state is not None and not base.shown.here and base.state.life == state.life
        if base.token != token or edits_copy:
            return base.shown
        client, lease = self._client, base.lease or self._lease.first()
        stamp = Stamp(base.cluster, os.urandom(8).hex(), state.life)
        try:
            answer = client.ask(transacted, client.keys.write(state, base, stamp, lease), writes=True)
        except LeaseGone:
            self._lease.forget()
            raise
        cluster, revision = answer.header.cluster_id, answer.header.revision
        if not answer.succeeded:
            stands = client.shared.learn(client.keys.seen(answer.header, answer.responses[0].response_range.kvs))
            self._lease.give_back(stands)
            return stands.shown
        client.shared.learn(Seen(cluster, state, stamp, revision, lease, revision))
        if cluster != base.cluster:
            raise OutcomeUnknown(f"etcd at {client.members} was replaced by another cluster, which took a write for it")
        return Shown(state)

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        return self._waiting.wait_for_change(token, until)

    def _base(self, token: Token | None) -> Seen:
        """Return the register that a write follows: the last answer, or a new one if a connection has failed since. All
        connections fail when a copy takes a cluster's place, and a copy takes no edit."""
        client = self._client
        latest, failures = client.shared.latest, client.shared.failures
        is_known = latest is not None and latest.token == token and failures == client.members.failures
        return latest if latest and is_known else client.read()

    # --- heartbeats

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        self._lease.keep()
        return self._beats.beat(node, counter)

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        return self._beats.of(nodes)

    def remove_heartbeat(self, node: Node) -> None:
        self._beats.remove(node)

    # --- proposals

    def put_proposal(self, node: Node, proposal: Proposal) -> int:
        lease, counted = self._lease.beside(), self._client.keys.key(f"wished/{proposal.like}")
        written = put(self._client.keys.proposal(node), codec.encode_proposal(proposal), lease)
        answer = self._client.ask(transacted, rpc.TxnRequest(success=[written, put(counted, b"", lease, prev_kv=True)]))
        if counted not in self._proposed:
            self._proposed.append(counted)
        return 1 + int(answer.responses[-1].response_put.prev_kv.version)

    def proposals(self, nodes: Iterable[Node]) -> Mapping[Node, Proposal]:
        those = {self._client.keys.proposal(node): node for node in nodes}
        over = self._proposed[:-1][:_FORGOTTEN_AT_ONCE]  # nobody counts on
        asks = [asked(self._client.keys.below("wish", limit=2 * NODES_MAX)), *map(deleted, over)]
        self._proposed = self._proposed[len(over) :]
        answer = self._client.ask(transacted, rpc.TxnRequest(success=asks))
        kvs = answer.responses[0].response_range.kvs
        return dict(codec.decode_proposals({those[kv.key]: kv.value for kv in kvs if kv.key in those}))

    # --- faults

    def put_fault(self, fault: Fault) -> None:
        lease = self._lease.beside()
        name = f"faults/{fault.round}/{spelled(fault.node)}/{os.urandom(8).hex()}"
        written = put(self._client.keys.key(name), codec.encode_fault(fault), lease)
        counted = asked(self._client.keys.below("faults", count_only=True))
        answer = self._client.ask(transacted, rpc.TxnRequest(success=[written, counted]))
        if answer.responses[-1].response_range.count >= FAULTS_MAX + _FORGOTTEN_AT_ONCE:
            self._trim_faults()

    def faults(self) -> tuple[Fault, ...]:
        return read_faults(_fault_records(self._client))

    def _trim_faults(self) -> None:
        """Delete records from the middle, which no reader is shown: the first and the last are."""
        first = self._client.keys.below(
            "faults",
            sort_target=rpc.RangeRequest.CREATE,
            sort_order=rpc.RangeRequest.ASCEND,
            limit=FAULTS_HALF + _FORGOTTEN_AT_ONCE,
            keys_only=True,
        )
        middle = self._client.ask(ranged, first).kvs[FAULTS_HALF:]
        self._client.ask(transacted, rpc.TxnRequest(success=[deleted(kv.key) for kv in middle]))

    # --- clients

    def clone(self) -> EtcdBackend:
        client = self._client
        run_id, space = client.keys.run_id, client.keys.space
        return EtcdBackend(client.members, run_id, self._clock, *self._spans, shared=client.shared, space=space)

    def close(self) -> None:
        self._waiting.close()
        self._client.cluster.close()


def _fault_records(client: RunClient) -> Iterator[bytes]:
    """Yield the failure records in the order in which they were put; of many, the first and the last."""
    first = _some_faults(client, rpc.RangeRequest.ASCEND, 0)
    is_full = len(first) == FAULTS_HALF
    last = _some_faults(client, rpc.RangeRequest.DESCEND, first[-1].create_revision) if is_full else []
    for kv in (*first, *reversed(last)):
        yield kv.value


def _some_faults(client: RunClient, order: int, after: int) -> list[Any]:
    """Return up to FAULTS_HALF of the records that were put after this revision, in this order."""
    found: list[Any] = []
    until = 0
    while len(found) < FAULTS_HALF:
        page = client.keys.below(
            "faults",
            sort_target=rpc.RangeRequest.CREATE,
            sort_order=order,
            min_create_revision=after + 1,
            max_create_revision=until,
            limit=_FAULTS_PER_PAGE,
        )
        kvs = client.ask(ranged, page).kvs
        found += kvs
        if len(kvs) < _FAULTS_PER_PAGE:
            break
        if order == rpc.RangeRequest.ASCEND:
            after = kvs[-1].create_revision
        else:
            until = kvs[-1].create_revision - 1
    return found
