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

from ....core.rendezvous import RendezvousState, Token
from ....core.rendezvous.state import NODES_MAX
from ....core.world import Life, Node
from ...clock import Clock
from ..notes import Notes
from ..port import Folder, Found, Heartbeats, Log, OutcomeUnknown, Place, Shelf, Shown, StoreError
from ..runs import Runs, nearest, slips
from .change_waiter import ChangeWaiter
from .cluster_client import Full, LeaseGone
from .heartbeats import Beats
from .leases import RunLease
from .members import Members, granted, ranged, revoked, transacted
from .rpc import rpc
from .run_client import RunClient, RunShared
from .run_keys import (
    Keys,
    Seen,
    Stamp,
    asked,
    beginning,
    compared,
    deleted,
    name_of,
    next_name,
    put,
    register_of,
    unquoted,
)

KEPT_S = 86_400
"""How long a run's register and faults outlive its last agent, so that a late agent reads the verdict."""
_FORGOTTEN_AT_ONCE = 64
"""Keys that are deleted with one question: etcd takes 128 operations."""

_NAMES_MAX = 64
"""The most runs that are looked for in one place, with a question each."""

_LATEST = {"sort_target": rpc.RangeRequest.MOD, "sort_order": rpc.RangeRequest.DESCEND}
"""The order in which a limit leaves out what was put first: nodes that were lost leave keys behind."""
_LARGE_PER_PAGE = 16
"""The large records of a shelf that are read with one question."""
_LOGGED_PER_PAGE = 8
"""Those of a log."""


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
        self.notes = Notes(self)
        self._counted: dict[str, bytes] = {}
        """The key of the last record of each name that was counted in a log."""
        self._lent: dict[bytes, int] = {}
        """The leases of the records that last for a time and that this client has put, by their keys."""

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

    # --- records

    @property
    def heard(self) -> bytes:
        return self._beats.heard

    def put(self, place: Place, data: bytes) -> None:
        folder, key, compare = place.folder, self._client.keys.of(place), []
        if isinstance(folder, Log):
            self._append(folder, key, data)
            return
        if folder.under:
            above = self._client.keys.of(Place(folder.under))
            stands = self._client.ask(ranged, rpc.RangeRequest(key=above)).kvs
            lease = stands[0].lease if stands else 0
            if not lease:  # nothing stands there, or a stranger has put it, and this would stay
                return
            compare.append(compared(above, rpc.Compare.MOD, mod_revision=stands[0].mod_revision))
        elif folder.lasts_s:
            grant = rpc.LeaseGrantRequest(TTL=folder.lasts_s)
            lease = self._lent[key] = int(self._client.ask(granted, grant, writes=True).ID)
        else:
            lease = self._lease.beside()
        self._client.ask(transacted, rpc.TxnRequest(compare=compare, success=[put(key, data, lease)]))

    def _append(self, log: Log[Any], key: bytes, data: bytes) -> None:
        """Put a record into a folder; readers are shown its first and last ones. Of many more delete some in the
        middle."""
        keys = self._client.keys
        written, counted = put(key, data, self._lease.beside()), asked(keys.below(log.name, count_only=True))
        answer = self._client.ask(transacted, rpc.TxnRequest(success=[written, counted]))
        if answer.responses[-1].response_range.count >= log.first + log.last + _FORGOTTEN_AT_ONCE:
            order = {"sort_target": rpc.RangeRequest.MOD, "sort_order": rpc.RangeRequest.ASCEND}
            oldest = keys.below(log.name, keys_only=True, limit=log.first + _FORGOTTEN_AT_ONCE, **order)
            middle = self._client.ask(ranged, oldest).kvs[log.first :]
            self._client.ask(transacted, rpc.TxnRequest(success=[deleted(kv.key) for kv in middle]))

    def count(self, tally: str, place: Place, data: bytes, over: str = "") -> int:
        keys, lease = self._client.keys, self._lease.beside()
        key, counted = keys.of(place), keys.key(f"wished/{tally}")
        gone = [keys.key(f"wished/{over}")] if over else []
        if isinstance(place.folder, Log):
            gone += [last] if (last := self._counted.pop(place.name, key)) != key else []
            self._counted[place.name] = key
        asks = [*map(deleted, gone), put(key, data, lease), put(counted, b"", lease, prev_kv=True)]
        answer = self._client.ask(transacted, rpc.TxnRequest(success=asks))
        return 1 + int(answer.responses[-1].response_put.prev_kv.version)

    def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
        those = {self._client.keys.of(place): place for place in places}
        shelves = dict.fromkeys(place.folder for place in those.values())
        small = [each for each in (*shelves, *([log] if log else ())) if not each.is_large]
        request = rpc.TxnRequest(success=[asked(self._all(folder)) for folder in small])
        answers = self._client.ask(transacted, request).responses if small else ()
        kvs = {folder: answer.response_range.kvs for folder, answer in zip(small, answers, strict=True)}
        found = {those[kv.key]: kv.value for each in shelves for kv in kvs.get(each, ()) if kv.key in those}
        for each in shelves:
            found |= self._of_each(each, those) if each.is_large else {}
        if log and log.is_large:
            return found, [*_records(self._client, log)]
        return found, [kv.value for kv in reversed(kvs[log])] if log else []

    def _all(self, folder: Folder) -> Any:
        """Return the request for the records of this folder."""
        if isinstance(folder, Log):
            return self._client.keys.below(folder.name, limit=folder.last, **_LATEST)
        if folder.lasts_s:
            return rpc.RangeRequest(key=self._client.keys.of(Place(folder)))
        return self._client.keys.below(folder.name, limit=2 * NODES_MAX, **_LATEST)

    def _of_each(self, shelf: Folder, those: Mapping[bytes, Place]) -> Mapping[Place, bytes]:
        """Return the data at these places of a shelf. Each may be large. Most are not there."""
        there = self._client.keys.below(shelf.name, keys_only=True, limit=2 * NODES_MAX, **_LATEST)
        keys = [kv.key for kv in self._client.ask(ranged, there).kvs if kv.key in those]
        found = dict[Place, bytes]()
        for start in range(0, len(keys), _LARGE_PER_PAGE):
            asks = [asked(rpc.RangeRequest(key=key)) for key in keys[start : start + _LARGE_PER_PAGE]]
            answer = self._client.ask(transacted, rpc.TxnRequest(success=asks))
            found |= {those[kv.key]: kv.value for each in answer.responses for kv in each.response_range.kvs}
        return found

    def drop(self, places: Iterable[Place]) -> None:
        lasting = list[bytes]()
        for place in places:
            folder, key = place.folder, self._client.keys.of(place)
            if lease := self._lent.pop(key, 0):  # what stands under it goes with it
                self._client.ask(revoked, rpc.LeaseRevokeRequest(ID=lease))
            elif isinstance(folder, Shelf) and not folder.lasts_s and not folder.under:
                lasting.append(key)
        for start in range(0, len(lasting), _FORGOTTEN_AT_ONCE):
            gone = [deleted(key) for key in lasting[start : start + _FORGOTTEN_AT_ONCE]]
            self._client.ask(transacted, rpc.TxnRequest(success=gone))

    def runs(self) -> Runs:
        """Return the runs in this etcd that have a register. Of many look at the first ones, at those that begin like this
        run's id, and at those whose id is written as this one by a slip. Raises StoreError."""
        wanted = self._client.keys.run_id
        found, is_part = self._some_names("")
        if is_part:
            begins = {wanted[:characters] for characters in (1, len(wanted) // 2, -1, None)}
            found = found.union(map(name_of, slips(wanted)), *(self._some_names(each)[0] for each in begins if each))
        names = sorted(found)
        ids = list[str | None]([None] if is_part else [])
        for start in range(0, len(names), _FORGOTTEN_AT_ONCE):
            page = names[start : start + _FORGOTTEN_AT_ONCE]
            asks = [asked(rpc.RangeRequest(key=register_of(name), count_only=True)) for name in page]
            answers = self._client.ask(transacted, rpc.TxnRequest(success=asks)).responses
            there = zip(page, answers, strict=True)
            ids += [unquoted(name) for name, answer in there if answer.response_range.count]
        return nearest(ids, wanted)

    def _some_names(self, begin: str) -> tuple[frozenset[bytes], bool]:
        """Return the first names that have keys, of the runs whose ids begin so, and whether there are more."""
        found = list[bytes]()
        after, end = beginning(begin)
        while len(found) < _NAMES_MAX:
            kvs = self._client.ask(ranged, rpc.RangeRequest(key=after, range_end=end, limit=1, keys_only=True)).kvs
            if not kvs:
                return frozenset(found), False
            name, after = next_name(kvs[0].key)
            found.append(name)
            if after >= end:
                return frozenset(found), False
        return frozenset(found), True

    # --- clients

    def clone(self) -> EtcdBackend:
        client = self._client
        run_id, space = client.keys.run_id, client.keys.space
        return EtcdBackend(client.members, run_id, self._clock, *self._spans, shared=client.shared, space=space)

    def close(self) -> None:
        self._waiting.close()
        self._client.cluster.close()


def _records(client: RunClient, log: Log[Any]) -> Iterator[bytes]:
    """Yield the records of a log that may be large, in the order in which they were put; of many, the first and the last."""
    first = _some(client, log.name, log.first, rpc.RangeRequest.ASCEND, 0)
    is_full = len(first) == log.first
    last = _some(client, log.name, log.last, rpc.RangeRequest.DESCEND, first[-1].create_revision) if is_full else []
    for kv in (*first, *reversed(last)):
        yield kv.value


def _some(client: RunClient, name: str, most: int, order: int, after: int) -> list[Any]:
    """Return up to this many of the records that were put after this revision, in this order."""
    found: list[Any] = []
    until = 0
    while len(found) < most:
        page = client.keys.below(
            name,
            sort_target=rpc.RangeRequest.CREATE,
            sort_order=order,
            min_create_revision=after + 1,
            max_create_revision=until,
            limit=_LOGGED_PER_PAGE,
        )
        kvs = client.ask(ranged, page).kvs
        found += kvs
        if len(kvs) < _LOGGED_PER_PAGE:
            break
        if order == rpc.RangeRequest.ASCEND:
            after = kvs[-1].create_revision
        else:
            until = kvs[-1].create_revision - 1
    return found
