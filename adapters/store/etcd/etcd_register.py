"""The register on an etcd v3 cluster: one key, written by transaction, pushed by a watch.

    elastic/<run id>/register              the state, after a line with the stamp of its write
    elastic/<run id>/life                  the same stamp: the cluster in which it was written, a nonce, the life
    elastic/<run id>/heartbeat/<node>      a constant counter, under a lease that the node keeps alive
    elastic/<run id>/wish/<node>           what it would have written for it
    elastic/<run id>/enter/<kind>/<node>   what it would have written to enter
    elastic/<run id>/wished/<kind>         put once by each who proposes so in this era: its version is their number
    elastic/<run id>/stacks/<node>         where its workers were when they were stopped last
    elastic/<run id>/faults/<round>/<node>/<random>
    elastic/<run id>/standbys/<node>       how many of its standbys are ready
    elastic/<run id>/query                 what somebody asks all agents, under a lease of that somebody
    elastic/<run id>/reply/<node>          what the node answered, under the lease of the query
    elastic/<run id>/unfit/<node>          why it stays out of the job

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
from ....core.rendezvous.actions import entering_in
from ....core.rendezvous.state import NODES_MAX
from ....core.world import Fault, Life, Node, Stacks, Unfit
from ...clock import Clock
from ..failure_records import FAULTS_HALF, read_faults
from ..note_codec import decode_notes, encode_note
from ..notes import StandbyNote
from ..port import UNFIT_MAX, Heartbeats, OutcomeUnknown, Shown, StoreError
from ..queries import LASTS_S, Query, Replies, Reply
from ..query_codec import decode_query, decode_replies, encode_query, encode_reply
from .change_waiter import ChangeWaiter
from .cluster_client import Full, LeaseGone
from .heartbeats import Beats
from .leases import RunLease
from .members import Members, granted, ranged, revoked, transacted
from .rpc import rpc
from .run_client import RunClient, RunShared
from .run_keys import Keys, Seen, Stamp, asked, compared, deleted, put, spelled

KEPT_S = 86_400
"""How long a run's register and faults outlive its last agent, so that a late agent reads the verdict."""
_FORGOTTEN_AT_ONCE = 64
"""Keys that are deleted with one question: etcd takes 128 operations."""

_LATEST = {"sort_target": rpc.RangeRequest.MOD, "sort_order": rpc.RangeRequest.DESCEND}
"""The order in which a limit leaves out what was put first: nodes that were lost leave keys behind."""
_STACKS_PER_PAGE = 16
"""The nodes whose stacks, or replies, are read with one question."""
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
        self._began: dict[Node, bytes] = {}
        """The key of the count to which each node was the first to add."""
        self._entered: dict[Node, bytes] = {}
        """The key of each node's last proposal to enter."""
        self._query_lease = 0
        """The lease of the query that this client has put; 0 for none."""

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
        except Full as error:
            return self._made_though_full(base, stamp, error)
        cluster, revision = answer.header.cluster_id, answer.header.revision
        if not answer.succeeded:
            stands = client.learn(answer.header, answer.responses[0].response_range.kvs)
            self._lease.give_back(stands)
            return stands.shown
        client.shared.learn(Seen(cluster, state, stamp, revision, lease, revision))
        if cluster != base.cluster:
            raise OutcomeUnknown(f"etcd at {client.members} was replaced by another cluster, which took a write for it")
        return Shown(state)

    def _made_though_full(self, base: Seen, stamp: Stamp, error: Full) -> Shown:
        """Return the register if it shows that this write was made. Raises the error if the write was not made, and
        OutcomeUnknown if nobody can tell."""
        try:
            seen = self._client.read()
        except StoreError as unread:
            raise OutcomeUnknown(f"{error} ({unread})") from error
        if seen.stamp == stamp:
            return seen.shown
        if (seen.cluster, seen.revision) == (base.cluster, base.revision):
            raise error
        raise OutcomeUnknown(str(error)) from error

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
        keys, lease = self._client.keys, self._lease.beside()
        counted = keys.key(f"wished/{proposal.like}")
        begun = self._began.get(node, counted)
        over = [begun] if begun != counted else []  # nobody counts on there
        if proposal.enters:
            key, data = keys.key(f"enter/{proposal.like}/{spelled(node)}"), codec.encode_entrant(node, proposal)
            over += [last] if (last := self._entered.pop(node, key)) != key else []
            self._entered[node] = key
        else:
            key, data = keys.proposal(node), codec.encode_proposal(proposal)
        asks = [*map(deleted, over), put(key, data, lease), put(counted, b"", lease, prev_kv=True)]
        answer = self._client.ask(transacted, rpc.TxnRequest(success=asks))
        count = 1 + int(answer.responses[-1].response_put.prev_kv.version)
        if count == 1:
            self._began[node] = counted
        elif begun != counted:
            del self._began[node]
        return count

    def proposals(self, nodes: Iterable[Node], entering: Token | None = None) -> Mapping[Node, Proposal]:
        those = {self._client.keys.proposal(node): node for node in nodes}
        wanted = ["wish"] if those else []
        wanted += [f"enter/{entering_in(entering)}"] if entering else []
        asks = [asked(self._client.keys.below(name, limit=2 * NODES_MAX, **_LATEST)) for name in wanted]
        answer = self._client.ask(transacted, rpc.TxnRequest(success=asks))
        kvs = [kv for each in answer.responses for kv in each.response_range.kvs]
        asked_for = codec.decode_proposals({those[kv.key]: kv.value for kv in kvs if kv.key in those})
        return {**dict(asked_for), **codec.decode_entrants([kv.value for kv in kvs if kv.key not in those], entering)}

    # --- faults

    def put_fault(self, fault: Fault) -> None:
        name = f"{fault.round}/{spelled(fault.node)}/{os.urandom(8).hex()}"
        self._record("faults", name, codec.encode_fault(fault), first=FAULTS_HALF, last=FAULTS_HALF)

    def faults(self) -> tuple[Fault, ...]:
        return read_faults(_fault_records(self._client))

    def _record(self, folder: str, name: str, data: bytes, first: int, last: int) -> None:
        """Put a record into a folder of which readers are shown the first and the last. Of many more delete some in the
        middle."""
        keys = self._client.keys
        written = put(keys.key(f"{folder}/{name}"), data, self._lease.beside())
        counted = asked(keys.below(folder, count_only=True))
        answer = self._client.ask(transacted, rpc.TxnRequest(success=[written, counted]))
        if answer.responses[-1].response_range.count >= first + last + _FORGOTTEN_AT_ONCE:
            order = {"sort_target": rpc.RangeRequest.MOD, "sort_order": rpc.RangeRequest.ASCEND}
            oldest = keys.below(folder, keys_only=True, limit=first + _FORGOTTEN_AT_ONCE, **order)
            middle = self._client.ask(ranged, oldest).kvs[first:]
            self._client.ask(transacted, rpc.TxnRequest(success=[deleted(kv.key) for kv in middle]))

    # --- notes

    def put_note(self, node: Node, note: StandbyNote) -> None:
        written = put(self._client.keys.note(node), encode_note(note), self._lease.beside())
        self._client.ask(transacted, rpc.TxnRequest(success=[written]))

    def notes(self, nodes: Iterable[Node]) -> Mapping[Node, StandbyNote]:
        those = {self._client.keys.note(node): node for node in nodes}
        there = self._client.keys.below("standbys", limit=2 * NODES_MAX, **_LATEST)
        found = self._client.ask(ranged, there).kvs if those else ()
        return decode_notes({those[kv.key]: kv.value for kv in found if kv.key in those})

    # --- stacks

    def put_stacks(self, stacks: Stacks) -> None:
        written = put(self._client.keys.stacks(stacks.node), codec.encode_stacks(stacks), self._lease.beside())
        self._client.ask(transacted, rpc.TxnRequest(success=[written]))

    def stacks(self, nodes: Iterable[Node]) -> tuple[Stacks, ...]:
        return codec.stacks_of(self._of_each("stacks", {self._client.keys.stacks(node): node for node in nodes}))

    def _of_each(self, folder: str, those: Mapping[bytes, Node]) -> Mapping[Node, bytes]:
        """Return the values of these keys of a folder, of which each may be large. Most are not there."""
        there = self._client.keys.below(folder, keys_only=True, limit=2 * NODES_MAX, **_LATEST)
        keys = [kv.key for kv in self._client.ask(ranged, there).kvs if kv.key in those] if those else []
        found = dict[Node, bytes]()
        for start in range(0, len(keys), _STACKS_PER_PAGE):
            asks = [asked(rpc.RangeRequest(key=key)) for key in keys[start : start + _STACKS_PER_PAGE]]
            answer = self._client.ask(transacted, rpc.TxnRequest(success=asks))
            found |= {those[kv.key]: kv.value for each in answer.responses for kv in each.response_range.kvs}
        return found

    # --- queries

    @property
    def query(self) -> Query | None:
        return self._beats.query

    def put_query(self, query: Query) -> None:
        self._query_lease = int(self._client.ask(granted, rpc.LeaseGrantRequest(TTL=LASTS_S), writes=True).ID)
        written = put(self._client.keys.query, encode_query(query), self._query_lease)
        self._client.ask(transacted, rpc.TxnRequest(success=[written]))

    def withdraw_query(self, nodes: Iterable[Node]) -> None:
        lease, self._query_lease = self._query_lease, 0
        if lease:
            self._client.ask(revoked, rpc.LeaseRevokeRequest(ID=lease))

    def put_reply(self, reply: Reply) -> None:
        keys = self._client.keys
        for kv in self._client.ask(ranged, rpc.RangeRequest(key=keys.query)).kvs:
            stands = compared(keys.query, rpc.Compare.MOD, mod_revision=kv.mod_revision)
            written = put(keys.reply(reply.stacks.node), encode_reply(reply), kv.lease)
            if kv.lease:  # else a stranger has put it, and the reply would stay
                self._client.ask(transacted, rpc.TxnRequest(compare=[stands], success=[written]))

    def replies(self, nodes: Iterable[Node]) -> Replies:
        found = self._of_each("reply", {self._client.keys.reply(node): node for node in nodes})
        queries = [kv.value for kv in self._client.ask(ranged, rpc.RangeRequest(key=self._client.keys.query)).kvs]
        return Replies(decode_query(queries[0]) if queries else None, decode_replies(found))

    # --- nodes that stay out

    def put_unfit(self, unfit: Unfit) -> None:
        self._record("unfit", spelled(unfit.node), codec.encode_unfit(unfit), first=0, last=UNFIT_MAX)

    def unfit(self) -> tuple[Unfit, ...]:
        found = self._client.ask(ranged, self._client.keys.below("unfit", limit=UNFIT_MAX, **_LATEST)).kvs
        return codec.unfit_of(kv.value for kv in reversed(found))

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
