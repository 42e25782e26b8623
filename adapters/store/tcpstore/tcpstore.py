"""The register on torch's TCPStore: every version a key of its own, so that write, push and token are one.

    root                    the first state of the register, set if absent: its life names this instance of the store
    <root>/<version>        each later state, set if absent; the next version's key is what a reader waits for
    <root>/head             a hint: some late version, where a reader begins to look for the head
    <root>/floor            the last version that may be missing: old ones are removed
    heartbeat/<node>        a counter, as text
    heartbeat/<secret>      with a token: the same again, under a name that a foreigner cannot guess
    wish/<node>             what it would have written for it
    wished/<kind>           how many propose so in this era
    numbers/<kind>          the last number that was given to one who proposes to enter in this era
    enter/<kind>/<number>   who proposes to enter, and what it would have written
    bye/<node>              the node has learned the verdict, or has left
    standbys/<node>         how many of its standbys are ready
    stacks/<node>           where its workers were when they were stopped last
    query                   what somebody asks all agents, as long as they are asked
    reply/<node>            what the node answered
    unfit/count, unfit/<n>  a node that stays out, and why; the places are used over and over
    faults/count, faults/<n>
                            the second half of the places is used over and over

All under `elastic/<run id>/`. A write names the version that it follows; whoever comes second finds the key taken. An old
version is not deleted but emptied to a mark: a node that slept would otherwise find its key free and believe that it wrote.
A store that was restarted has no root, and a late write of the old one lands where nobody reads. A register that was
restored over another is the next version, whatever its life.

What is read is bounded, schema-checked, and must be what its key says. The TCPStore has no password: whoever reaches the
port can end the job, but not execute anything, nor have anything believed that breaks an invariant. With a token every
value but counts of faults and proposals, to which the store itself adds, is sealed (`seal.py`), and one that no agent of the
job wrote is not believed at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ....core.rendezvous import RendezvousState, Token
from ....core.rendezvous.state import NODES_MAX
from ....core.world import Life, Node
from ...clock import Clock
from ..notes import GOING, QUERY, Notes
from ..numerals import number
from ..port import BEATS_MAX, Found, Heartbeats, Log, OutOfReach, Place, Shelf, Shown, spelled
from ..runs import Runs, nearest
from .keys import ROOT_MAX, Keys, runs_in
from .link import Link
from .seal import UNSEALED, Seal, put, trusted
from .table import Table
from .versions import Sights, Versions
from .wire import RUNS_THERE, Address, WireClient

TIMEOUT_S = 5.0
_LISTED_S = 2.0
"""How long the keys of a store are looked through for runs."""
LATE_BEATS = 1_000
"""A counter that falls by more was forged before. By a few it may fall: a write on a connection that was given up comes
late."""


class TCPStoreBackend:
    """A client of one run's register. The thread that owns it calls its methods; `close` may come from any thread."""

    lease_s = None

    def __init__(
        self,
        address: Address,
        run_id: str,
        clock: Clock,
        fallback_s: float = 1.0,
        timeout_s: float = TIMEOUT_S,
        seal: Seal = UNSEALED,
        warn: Callable[[str], None] = lambda text: None,
        sights: Sights | None = None,
        table: Callable[[], Table | None] = lambda: None,
        remedy: Callable[[], str] = lambda: RUNS_THERE,
    ) -> None:
        """The first question connects. `fallback_s` is how often a wait reads the register without being told of a change;
        `timeout_s` is how long an answer may take. `warn` is called for each forged heartbeat, by the thread that reads.
        Clones share `sights`. `table` and `remedy` are the link's."""
        sights = sights or Sights()
        like_this = address, run_id, clock, fallback_s, timeout_s, seal, warn, sights, table, remedy
        self._clone = partial(TCPStoreBackend, *like_this)
        self._warn = warn
        self._clock = clock
        self._fallback_s = fallback_s
        self._seal = seal
        self._keys = Keys(run_id, str(address))
        self._link = Link(address, timeout_s, self._keys.not_ours, table, remedy)
        self._versions = Versions(self._keys, seal, sights)
        self._query_key = self._key(Place(QUERY))
        self._counters: dict[Node, int] = {}
        """The last counter of each node that was heard of."""
        self._counted: dict[str, str] = {}
        """The key of the last record of each name that was counted in a log."""
        self.notes = Notes(self)
        self.heard = b""

    def get(self) -> Shown:
        with self._link.asking() as client:
            return Shown(self._versions.head(client))

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        with self._link.asking() as client:
            return Shown(self._versions.write(client, state, token))

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        versions = self._versions
        while True:
            try:
                with self._link.asking() as client:
                    left = until - self._clock.now()
                    state = versions.seen if left > 0 and versions.stood(token) else versions.head(client)
                    stands = state.token if state else None
                    if stands != token or left <= 0 or self._link.closed:
                        return Shown(state)
                    came = client.wait([versions.next_key(stands)], min(left, self._fallback_s))
                    state = versions.pushed(client, stands) if came and stands else versions.head(client)
                    if (state.token if state else None) != token:
                        return Shown(state)
            except OutOfReach:
                if not self._link.closed:
                    raise
                return Shown(self._versions.seen)

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        with self._link.asking() as client:
            for key in self._heartbeat_keys(node):
                put(self._seal, client, key, b"%d" % counter)
            (asked,) = self._versions.look(client, self._query_key)
            self.heard = trusted(self._seal, self._query_key, asked)
            return Shown(self._versions.seen).life  # this answer is what acknowledges the heartbeat before it

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        keys = {node: self._heartbeat_keys(node) for node in nodes}
        with self._link.asking() as client:
            every = [key for each in keys.values() for key in each]
            values = dict(zip(every, self._versions.look(client, *every), strict=True))
            life = Shown(self._versions.seen).life
            heard = [node for node in keys if node in self._counters]
            silent = [node for node in heard if not any(values[key] for key in keys[node])]
            left = self._left(client, silent)
        if len(self._counters) > 4 * NODES_MAX:
            self._counters.clear()
        return Heartbeats({node: self._counter(node, keys[node], values, node in left) for node in keys}, life)

    def remove_heartbeat(self, node: Node) -> None:
        with self._link.asking() as client:
            put(self._seal, client, self._keys.of_node("bye", node), b"1")
            beside = (Place(shelf, spelled(node)) for shelf in GOING)
            client.delete(*self._heartbeat_keys(node), *map(self._key, beside))
            client.get(self._keys.root)

    def wait_until_gone(self, nodes: Sequence[Node], timeout_s: float) -> bool:
        """Wait until each of these nodes has said goodbye. Returns False if that took longer than `timeout_s`."""
        keys = [self._keys.of_node("bye", node) for node in nodes]
        ends_at = self._clock.now() + timeout_s
        with self._link.asking() as client:
            while keys and (left := ends_at - self._clock.now()) > 0 and client.wait(keys, left):
                answers = zip(keys, client.get(*keys), strict=True)
                if keys := [key for key, answer in answers if not trusted(self._seal, key, answer)]:
                    # Forged: that the node's own replaces it is pushed to nobody, so this waits for what never comes.
                    client.wait([self._keys.key("bye")], min(left, self._fallback_s))
        return not keys

    def put(self, place: Place, data: bytes) -> None:
        folder = place.folder
        above = Place(folder.under) if isinstance(folder, Shelf) and folder.under else None
        with self._link.asking() as client:
            key = self._put(client, place, data)
            stands = client.get(self._key(above) if above else self._keys.root)  # what is set has no answer of its own
            if above and not stands[0]:  # removed, and what stood under it then with it
                client.delete(key)

    def count(self, tally: str, place: Place, data: bytes, over: str = "") -> int:
        with self._link.asking() as client:
            key = self._put(client, place, data)
            if isinstance(place.folder, Log):
                if last := self._counted.pop(place.name, None):
                    client.delete(last)
                self._counted[place.name] = key
            count = client.add(self._keys.key(f"wished/{tally}"), 1)
            if over:
                client.delete(*(self._keys.key(f"{name}/{over}") for name in ("wished", "numbers")))
            return count

    def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
        keys = {place: self._key(place) for place in places}
        with self._link.asking() as client:
            found = self._opened(client, tuple(keys.values()))
            tail = self._tail(client, log) if log else []
        return {place: data for place, data in zip(keys, found, strict=True) if data}, tail

    def drop(self, places: Iterable[Place]) -> None:
        with self._link.asking() as client:
            client.delete(*map(self._key, places))

    def runs(self) -> Runs:
        """Return the runs in this store; of many those called like this one. This client is closed then. Raises OutOfReach
        where the server's torch is too old to list its keys."""
        with self._link.asking() as client:
            found = nearest(runs_in(client.all_keys(ROOT_MAX, _LISTED_S)), self._keys.run_id)
        self.close()
        return found

    def _put(self, client: WireClient, place: Place, data: bytes) -> str:
        """Put the data, in a log under a number of its own. Returns the key."""
        key = self._key(place)
        if isinstance(place.folder, Log):
            key = self._keys.numbered(place.folder, client.add(self._keys.key(place.folder.counter), 1))
        put(self._seal, client, key, data)
        return key

    def _tail(self, client: WireClient, log: Log[Any]) -> list[bytes]:
        count = number(client.get(self._keys.key(log.counter))[0]) or 0
        keys = self._keys.shown(log, count)
        if not log.is_large:
            return self._opened(client, keys)
        return [data for key in keys for data in self._opened(client, (key,))]

    def _opened(self, client: WireClient, keys: Sequence[str]) -> list[bytes]:
        """Return the values of these keys, read with one request: b"" for what is not there, or forged."""
        answers = client.get(*keys) if keys else ()
        return [trusted(self._seal, key, data) for key, data in zip(keys, answers, strict=True)]

    def _key(self, place: Place) -> str:
        return self._keys.key(place.key)

    def clone(self) -> TCPStoreBackend:
        return self._clone()

    def close(self) -> None:
        self._link.close()

    def _heartbeat_keys(self, node: Node) -> tuple[str, ...]:
        key = self._keys.of_node("heartbeat", node)
        secret = self._seal.secret_name(key)
        return (key, self._keys.key(f"heartbeat/{secret}")) if secret else (key,)

    def _left(self, client: WireClient, silent: Sequence[Node]) -> frozenset[Node]:
        """Return those of these nodes, whose heartbeats are gone, that took them away themselves: each has said goodbye
        before, with a token under its seal. Anybody can delete a key."""
        if not silent:
            return frozenset()
        keys = {node: self._keys.of_node("bye", node) for node in silent}
        answers = zip(keys.items(), client.get(*keys.values()), strict=True)
        return frozenset(node for (node, key), data in answers if trusted(self._seal, key, data))

    def _counter(self, node: Node, keys: Iterable[str], values: Mapping[str, bytes], has_left: bool) -> int | None:
        """Return a heartbeat's counter. One that is forged counts as standing still: it shows nobody alive. So does a sealed
        one that is lower than the last, since anybody may put an old one back. Without a token anybody can write any number.
        Then a lower one counts as a beat, or one high number would silence the node for good. None means that the node took
        its heartbeat away, or that none was ever seen."""
        if has_left:
            self._counters.pop(node, None)
            return None
        counter = self._counters.get(node)
        is_sealed = self._seal.secret_name("") is not None
        for key in keys:
            if data := values[key]:
                beats, last = _beats(trusted(self._seal, key, data)), counter or 0
                counter = beats if beats is not None and not is_sealed else max(beats or 0, last)
                if beats is None or counter < last - LATE_BEATS:
                    stands = "stands" if beats is None else "stood"
                    self._warn(
                        f"a forged heartbeat of {node} {stands} in the store: {key}; no agent of this job wrote it"
                    )
        if counter is not None:
            self._counters[node] = counter
        return counter


def _beats(text: bytes) -> int | None:
    """Return the counter that an agent may have written, or None."""
    beats = number(text)
    return beats if beats is not None and beats <= BEATS_MAX else None
