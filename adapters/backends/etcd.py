"""The register on an etcd v3 cluster: one key, written by transaction, pushed by a watch.

    elastic/<run id>/register              the state, behind a line with the stamp of its write
    elastic/<run id>/life                  the same stamp: the cluster in which it was written, a nonce, the life
    elastic/<run id>/heartbeat/<node>      a counter that stands still, under a lease that the node keeps alive
    elastic/<run id>/wish/<node>           what it would have written for it
    elastic/<run id>/wished/<kind>         put once by each who wishes so in this era: its version is their number
    elastic/<run id>/faults/<round>/<node>/<random>

A write names the revision of the register that it follows, and its stamp: a cluster that was restored from a snapshot counts
its revisions from there again, but no two writes have one stamp. All reads are linearizable. What one answer showed is
remembered for all clients of a process, so a write is one round trip, and one that comes too late brings back what stands.

A put leaves a revision that stays until the cluster is compacted, so a heartbeat is none: it keeps a lease alive, and reads
what stands. The other keys of a run are under a lease of their own, `kept_s`, which every node keeps alive: a day after the
last of them, nothing of the run is left. Only keys and leases of this run are ever deleted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import define, field

from ...core.rendezvous import RendezvousState, Token, Wish, codec
from ...core.rendezvous.state import NODES_MAX
from ...core.world import Fault, Life, Node
from ..clock import Clock
from .etcdrpc import rpc
from .feed import Change, Ended, Feed
from .line import LeaseGone, Line
from .members import Members, granted, ranged, renewed, revoked, transacted
from .numerals import counter
from .port import FAULTS_MAX, Heartbeats, OutcomeUnknown, OutOfReach, Shown
from .register import Keys, Seen, Stamp, asked, deleted, put, spelled

KEPT_S = 86_400
"""How long a run's register and faults outlive its last agent, so that a late one hears the verdict."""
KEEPS_PER_SPAN = 24
"""How often in that span a node keeps them alive."""
FAULTS_HALF = FAULTS_MAX // 2
FAULTS_PER_PAGE = 8
FORGOTTEN_AT_ONCE = 64
"""Counts of wishes that are deleted with one question: etcd takes 128 operations."""
PAUSE_S = 0.1
"""After a watch that ended as soon as it began, and before what is only a copy is shown again."""


@define
class Shared:
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


@define
class _Beat:
    """This client's heartbeat of a node."""

    lease: int
    counter: int


class EtcdBackend:
    """One client of the register of one run. Each method may be called from the thread that owns it, `close` from any."""

    def __init__(
        self,
        members: Members,
        run_id: str,
        clock: Clock,
        lease_s: int,
        fallback_s: float = 1.0,
        kept_s: int = KEPT_S,
        shared: Shared | None = None,
        space: str = "",
    ) -> None:
        """Connects when first asked something. `lease_s` is the TTL of a heartbeat that is asked for, of which the cluster
        may grant more; `fallback_s` is how often a wait looks by itself; `shared` is what a clone knows; `space` names a
        register of the run's workers."""
        self._members = members
        self._keys = Keys(run_id, str(members), space)
        self._clock = clock
        self._spans = lease_s, fallback_s, kept_s
        self._lease_s, self._fallback_s, self._kept_s = self._spans
        self._shared = shared or Shared(lease_s)
        self._line = Line(members)
        self._feed: Feed | None = None
        self._looked_at = 0.0
        self._due = 0
        """What the last look saw: the feed, which may come late, has told of that revision by the next one."""
        self._closing = threading.Event()
        self._beats: dict[Node, _Beat] = {}
        self._wished: list[bytes] = []
        """The counts of wishes that this client has added to, but for those that are over."""

    @property
    def lease_s(self) -> float | None:
        return self._shared.lease_s

    def probe(self) -> None:
        """Raises Denied, with the remedy, if the cluster will not have us, and OutOfReach if it is not there."""
        self._line.probe()

    # --- the register

    def get(self) -> Shown:
        return self._read().shown

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        base = self._base(token)
        edits_copy = base.state is not None and not base.shown.here and base.state.life == state.life
        if base.token != token or edits_copy:
            return base.shown
        lease = base.lease or self._run_lease()
        stamp = Stamp(base.cluster, os.urandom(8).hex(), state.life)
        try:
            answer = self._line.ask(transacted, self._keys.write(state, base, stamp, lease), writes=True)
        except LeaseGone:
            self._shared.lease = 0
            raise
        cluster, revision = answer.header.cluster_id, answer.header.revision
        if not answer.succeeded:
            stands = self._shared.learn(self._keys.seen(answer.header, answer.responses[0].response_range.kvs))
            self._give_back_lease(stands)
            return stands.shown
        self._shared.learn(Seen(cluster, state, stamp, revision, lease, revision))
        if cluster != base.cluster:
            raise OutcomeUnknown(f"etcd at {self._members} was replaced by another cluster, which took a write for it")
        return Shown(state)

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        while not self._closing.is_set():
            now = self._clock.now()
            due_at = min(self._looked_at + self._fallback_s, until)
            try:
                seen = self._look() if self._feed is None or now >= due_at else self._hear(self._feed, due_at - now)
            except OutOfReach:
                if self._closing.is_set():
                    break
                raise
            if seen and not seen.shown.here:
                self._closing.wait(PAUSE_S)  # a copy is never what the token names, and soon restored
                return seen.shown
            if seen and (seen.token != token or now >= until):
                return seen.shown
        self._drop_feed()
        return self._shared.latest.shown if self._shared.latest else Shown(None)

    def _base(self, token: Token | None) -> Seen:
        """What a write goes by: what was shown last, unless a connection has failed since it was asked for. All connections
        fail when a copy takes a cluster's place, and a copy takes no edit."""
        latest, failures = self._shared.latest, self._shared.failures
        is_known = latest is not None and latest.token == token and failures == self._members.failures
        return latest if latest and is_known else self._read()

    def _read(self) -> Seen:
        failures = self._members.failures
        answer = self._line.ask(ranged, self._keys.both())
        self._shared.failures = failures
        return self._shared.learn(self._keys.seen(answer.header, answer.kvs))

    def _look(self) -> Seen:
        """What stands, by a question of our own; and a feed of what comes after it."""
        latest, feed = self._shared.latest, self._feed
        if latest is None or latest.state is None or feed is None:
            seen = self._read()
        else:
            answer = self._line.ask(ranged, self._keys.both(min_mod_revision=latest.revision + 1))
            unchanged = answer.header.cluster_id == latest.cluster and answer.count == 2 and not answer.kvs
            seen = latest if unchanged else self._read()
            if feed.told < self._due or seen.cluster != latest.cluster or feed.address != self._members.in_turn()[0]:
                self._drop_feed()  # it has missed something, or its member is no longer the one that answers
        self._due = seen.revision
        self._looked_at = self._clock.now()
        if self._feed is None:
            self._feed = self._line.watch(self._keys.register, seen.at + 1)
        return seen

    def _hear(self, feed: Feed, timeout_s: float) -> Seen | None:
        """What the feed brings in this time, if it is news."""
        match feed.next(timeout_s):
            case Change(kv, deleted, cluster):
                latest = self._shared.latest
                if latest and latest.cluster == cluster and kv.mod_revision < (latest.revision or latest.at):
                    return None
                seen = (
                    Seen(cluster, at=kv.mod_revision) if deleted else self._keys.decoded(kv, cluster, kv.mod_revision)
                )
                return self._shared.learn(seen)
            case Ended():
                self._drop_feed()
                if self._clock.now() < self._looked_at + self._fallback_s:  # the next one may end as soon
                    self._closing.wait(PAUSE_S)
                return None
            case None:
                return None

    def _drop_feed(self) -> None:
        feed, self._feed = self._feed, None
        if feed:
            feed.close()

    # --- heartbeats

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        self._keep()
        beat = self._beats.get(node)
        if beat and not self._renew(beat.lease):
            beat = None
        if beat and beat.counter == counter:
            stands, life = self._stands(node, beat)
            if stands:
                return life
        return self._put_beat(node, beat.lease if beat else self._grant_beat(), counter)

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        those = {node: self._keys.heartbeat(node) for node in nodes}
        one = [rpc.RangeRequest(key=key) for key in those.values()] if len(those) < 2 else []
        asks = one or ([self._keys.below("heartbeat", limit=2 * NODES_MAX)] if those else [])
        answer = self._line.ask(transacted, rpc.TxnRequest(success=[*(asked(each) for each in asks), self._life]))
        *read, _ = answer.responses
        found = {kv.key: kv.value for each in read for kv in each.response_range.kvs}
        return Heartbeats(
            {node: counter(found.get(key, b"")) for node, key in those.items()},
            self._named(answer),
        )

    def remove_heartbeat(self, node: Node) -> None:
        """With its lease, which holds nothing else."""
        answer = self._line.ask(ranged, rpc.RangeRequest(key=self._keys.heartbeat(node)))
        leases = {kv.lease for kv in answer.kvs}
        if beat := self._beats.pop(node, None):
            leases.add(beat.lease)
        for lease in leases:
            if self._renew(lease):
                self._line.ask(revoked, rpc.LeaseRevokeRequest(ID=lease))

    def _stands(self, node: Node, beat: _Beat) -> tuple[bool, Life | None]:
        """Whether the heartbeat is there, in a store that a majority of its members keeps; and the life that stands."""
        own = asked(rpc.RangeRequest(key=self._keys.heartbeat(node), keys_only=True))
        answer = self._line.ask(transacted, rpc.TxnRequest(success=[own, self._life]))
        stands = any(kv.lease == beat.lease for kv in answer.responses[0].response_range.kvs)
        return stands, self._named(answer)

    def _put_beat(self, node: Node, lease: int, counter: int) -> Life | None:
        written = put(self._keys.heartbeat(node), b"%d" % counter, lease)
        answer = self._line.ask(transacted, rpc.TxnRequest(success=[written, self._life]))
        self._beats[node] = _Beat(lease, counter)
        return self._named(answer)

    def _named(self, answer: Any) -> Life | None:
        """The life by the last response, to `_life`."""
        values = [kv.value for kv in answer.responses[-1].response_range.kvs]
        return self._keys.named(answer.header, values[0] if values else None)

    def _grant_beat(self) -> int:
        answer = self._line.ask(granted, rpc.LeaseGrantRequest(TTL=self._lease_s), writes=True)
        self._shared.lease_s = float(answer.TTL)
        return int(answer.ID)

    @property
    def _life(self) -> Any:
        """Asks for it beside a heartbeat: what acknowledges one is a life that a majority of the members keeps."""
        return asked(rpc.RangeRequest(key=self._keys.life))

    # --- wishes

    def put_wish(self, node: Node, wish: Wish) -> int:
        lease, counted = self._lease(), self._keys.key(f"wished/{wish.like}")
        written = put(self._keys.wish(node), codec.encode_wish(wish), lease)
        answer = self._line.ask(transacted, rpc.TxnRequest(success=[written, put(counted, b"", lease, prev_kv=True)]))
        if counted not in self._wished:
            self._wished.append(counted)
        return 1 + int(answer.responses[-1].response_put.prev_kv.version)

    def wishes(self, nodes: Iterable[Node]) -> Mapping[Node, Wish]:
        those = {self._keys.wish(node): node for node in nodes}
        over = self._wished[:-1][:FORGOTTEN_AT_ONCE]  # nobody counts on
        asks = [asked(self._keys.below("wish", limit=2 * NODES_MAX)), *map(deleted, over)]
        self._wished = self._wished[len(over) :]
        answer = self._line.ask(transacted, rpc.TxnRequest(success=asks))
        kvs = answer.responses[0].response_range.kvs
        return dict(codec.decode_wishes({those[kv.key]: kv.value for kv in kvs if kv.key in those}))

    # --- faults

    def put_fault(self, fault: Fault) -> None:
        lease = self._lease()
        name = f"faults/{fault.round}/{spelled(fault.node)}/{os.urandom(8).hex()}"
        written = put(self._keys.key(name), codec.encode_fault(fault), lease)
        self._line.ask(transacted, rpc.TxnRequest(success=[written]))

    def faults(self) -> tuple[Fault, ...]:
        return tuple(sorted(self._readable(self._records()), key=lambda fault: fault.round))

    def _records(self) -> Iterator[bytes]:
        """In the order in which they were put; of many the first and the last."""
        first = self._some(rpc.RangeRequest.ASCEND, 0)
        last = self._some(rpc.RangeRequest.DESCEND, first[-1].create_revision) if len(first) == FAULTS_HALF else []
        for kv in (*first, *reversed(last)):
            yield kv.value

    def _some(self, order: int, after: int) -> list[Any]:
        """Of those that were put after this revision so many, in this order; a few at a time, since each may be large."""
        found: list[Any] = []
        until = 0
        while len(found) < FAULTS_HALF:
            page = self._keys.below(
                "faults",
                sort_target=rpc.RangeRequest.CREATE,
                sort_order=order,
                min_create_revision=after + 1,
                max_create_revision=until,
                limit=FAULTS_PER_PAGE,
            )
            kvs = self._line.ask(ranged, page).kvs
            found += kvs
            if len(kvs) < FAULTS_PER_PAGE:
                break
            if order == rpc.RangeRequest.ASCEND:
                after = kvs[-1].create_revision
            else:
                until = kvs[-1].create_revision - 1
        return found

    def _readable(self, records: Iterable[bytes]) -> Iterator[Fault]:
        for data in records:
            try:
                yield codec.decode_fault(data)
            except codec.Refused:
                continue  # a report does without what nobody can read

    # --- leases

    def _lease(self) -> int:
        """For what is put beside the register, or before there is one."""
        seen = self._shared.latest or self._read()
        return seen.lease or self._grant(self._kept_s)

    def _grant(self, span_s: int) -> int:
        return int(self._line.ask(granted, rpc.LeaseGrantRequest(TTL=span_s), writes=True).ID)

    def _run_lease(self) -> int:
        """For the first keys of a run."""
        if not self._shared.lease:
            self._shared.lease = self._grant(self._kept_s)
        return self._shared.lease

    def _give_back_lease(self, seen: Seen) -> None:
        """Somebody else's first write came before ours."""
        lease, self._shared.lease = self._shared.lease, 0
        if lease and lease != seen.lease:
            self._line.ask(revoked, rpc.LeaseRevokeRequest(ID=lease))

    def _renew(self, lease: int) -> bool:
        """False if it is over."""
        return bool(self._line.ask(renewed, rpc.LeaseKeepAliveRequest(ID=lease)).TTL > 0)

    def _keep(self) -> None:
        """The run's own keys, now and then."""
        latest, now = self._shared.latest, self._clock.now()
        if latest and latest.lease and now - self._shared.kept_at >= self._kept_s / KEEPS_PER_SPAN:
            self._renew(latest.lease)
            self._shared.kept_at = now

    # --- clients

    def clone(self) -> EtcdBackend:
        run_id, space = self._keys.run_id, self._keys.space
        return EtcdBackend(self._members, run_id, self._clock, *self._spans, shared=self._shared, space=space)

    def close(self) -> None:
        self._closing.set()
        if feed := self._feed:
            feed.wake()
            feed.close()
        self._line.close()
