"""The register on torch's TCPStore: every version a key of its own, so that write, push and token are one.

    root                    the first state of the register, set if absent: its life names this instance of the store
    <root>/<version>        each later state, set if absent; the next version's key is what a reader waits for
    <root>/head             a hint: some late version, where a reader begins to look for the head
    heartbeat/<node>        a counter, as text
    wish/<node>             what it would have written for it
    wished/<kind>           how many wish so in this era
    bye/<node>              the node has learned the verdict, or has left
    faults/count, faults/<n>
                            the second half of the places is used over and over

All under `elastic/<run id>/`. A write names the version that it follows; whoever comes second finds the key taken. An old
version is not deleted but emptied to a mark: a node that slept would otherwise find its key free and believe that it wrote.
A store that was restarted has no root, and a late write of the old one lands where nobody reads. A register that was
restored over another is the next version, whatever its life.

What is read is bounded, schema-checked, and must be what its key says. The TCPStore has no password: whoever reaches the
port can end the job, but not execute anything, nor have anything believed that breaks an invariant. With a token every
value but counts of faults and wishes, to which the store itself adds, is sealed (`seal.py`), and one that no agent of the
job wrote is not believed at all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import takewhile
from urllib.parse import quote

from ...core.rendezvous import RendezvousState, Token, Wish, codec
from ...core.rendezvous.state import NODES_MAX
from ...core.world import Fault, Life, Node
from ..clock import Clock
from .faults import FAULTS_HALF, read_faults
from .numerals import number
from .port import Heartbeats, OutcomeUnknown, OutOfReach, Shown, Unreadable
from .seal import UNSEALED, Forged, Seal, trusted
from .wire import Address, Broken, Doubtful, Oversized, Unsent, WireClient

EMPTIED = b"-"
"""What is left of an old version."""
KEPT = 16
"""How many versions behind the head a late reader still finds whole."""
STRIDE = 4
"""How many versions a reader that catches up looks ahead at once."""
TIMEOUT_S = 5.0


class TCPStoreBackend:
    """One client of the register of one run. Each method may be called from the thread that owns it, `close` from any."""

    lease_s = None

    def __init__(
        self,
        address: Address,
        run_id: str,
        clock: Clock,
        fallback_s: float = 1.0,
        timeout_s: float = TIMEOUT_S,
        seal: Seal = UNSEALED,
    ) -> None:
        """Connects when first asked something. `fallback_s` is how often a wait looks by itself, `timeout_s` how long an
        answer may take."""
        self._address = address
        self._run_id = run_id
        self._prefix = f"elastic/{quote(run_id, safe='')}"
        self._clock = clock
        self._fallback_s = fallback_s
        self._timeout_s = timeout_s
        self._seal = seal
        self._client: WireClient | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._root = b""
        self._first: RendezvousState | None = None
        self._seen: RendezvousState | None = None
        self._counters: Mapping[Node, int] = {}
        self._wished: list[str] = []
        """The counts of wishes that this client has added to, but for those that are over."""

    def get(self) -> Shown:
        with self._asking() as client:
            return Shown(self._head(client))

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        with self._asking() as client:
            # Over a new connection this may be a store that knows nothing of the token's life, where any key is free.
            stands = self._head(client)
            if (stands.token if stands else None) != token:
                return Shown(stands)
            if token:
                self._tidy(client, token.version)
            key = self._version_key(token.version + 1) if token else self._key("root")
            data = self._seal.sealed(key, codec.encode(state))
            if client.compare_set(key, b"", data) != data:
                return Shown(self._head(client))
            if not token:
                self._root, self._first = data, state
            self._seen = state
            return Shown(state)

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        while True:
            try:
                with self._asking() as client:
                    state = self._head(client)
                    stands = state.token if state else None
                    left = until - self._clock.now()
                    if stands != token or left <= 0 or self._closed:
                        return Shown(state)
                    key = self._version_key(stands.version + 1) if stands else self._key("root")
                    client.wait([key], min(left, self._fallback_s))
            except OutOfReach:
                if not self._closed:
                    raise
                return Shown(self._seen)

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        with self._asking() as client:
            self._put(client, self._node_key("heartbeat", node), b"%d" % counter)
            return Shown(self._head(client)).life  # this answer is what acknowledges the heartbeat before it

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        keys = {node: self._node_key("heartbeat", node) for node in nodes}
        with self._asking() as client:
            answers = client.get(*keys.values()) if keys else ()
            life = Shown(self._head(client)).life
        found = {node: self._counter(node, keys[node], answer) for node, answer in zip(keys, answers, strict=True)}
        self._counters = {node: counter for node, counter in found.items() if counter is not None}
        return Heartbeats(found, life)

    def put_wish(self, node: Node, wish: Wish) -> int:
        counted = self._key(f"wished/{wish.like}")
        with self._asking() as client:
            self._put(client, self._node_key("wish", node), codec.encode_wish(wish))
            if counted not in self._wished:
                self._wished.append(counted)
            return client.add(counted, 1)

    def wishes(self, nodes: Iterable[Node]) -> Mapping[Node, Wish]:
        keys = {node: self._node_key("wish", node) for node in nodes}
        with self._asking() as client:
            answers = client.get(*keys.values()) if keys else ()
            while len(self._wished) > 1:
                client.delete(self._wished.pop(0))  # nobody counts on there
        opened = {node: trusted(self._seal, key, data) for (node, key), data in zip(keys.items(), answers, strict=True)}
        return dict(codec.decode_wishes(opened))

    def remove_heartbeat(self, node: Node) -> None:
        with self._asking() as client:
            client.delete(self._node_key("heartbeat", node))
            self._put(client, self._node_key("bye", node), b"1")
            client.get(self._key("root"))

    def wait_until_gone(self, nodes: Sequence[Node], timeout_s: float) -> bool:
        """Wait until each of these nodes has removed its heartbeat, or for so long."""
        keys = [self._node_key("bye", node) for node in nodes]
        ends_at = self._clock.now() + timeout_s
        with self._asking() as client:
            while keys and (left := ends_at - self._clock.now()) > 0 and client.wait(keys, left):
                answers = zip(keys, client.get(*keys), strict=True)
                if keys := [key for key, answer in answers if not trusted(self._seal, key, answer)]:
                    # Forged: that the node's own replaces it is pushed to nobody, so this waits for what never comes.
                    client.wait([self._key("bye")], min(left, self._fallback_s))
        return not keys

    def put_fault(self, fault: Fault) -> None:
        with self._asking() as client:
            count = client.add(self._key("faults/count"), 1)
            self._put(client, self._fault_key(count), codec.encode_fault(fault))
            client.get(self._key("root"))

    def faults(self) -> tuple[Fault, ...]:
        with self._asking() as client:
            count = number(client.get(self._key("faults/count"))[0]) or 0
            first, last = (
                range(1, min(count, FAULTS_HALF) + 1),
                range(max(count - FAULTS_HALF, FAULTS_HALF) + 1, count + 1),
            )
            keys = [self._fault_key(each) for each in (*first, *last)]
            answers = [trusted(self._seal, key, client.get(key)[0]) for key in keys]
        return read_faults(answers)

    def clone(self) -> TCPStoreBackend:
        return TCPStoreBackend(self._address, self._run_id, self._clock, self._fallback_s, self._timeout_s, self._seal)

    def close(self) -> None:
        self._closed = True
        client = self._client
        if client:
            client.abort()
        self._forget()

    # --- the connection

    @contextmanager
    def _asking(self) -> Iterator[WireClient]:
        """The one place where the store's errors become ours."""
        try:
            with self._lock:
                try:
                    yield self._connected()
                except (Oversized, Broken, Unsent):
                    self._drop()
                    raise
        except Oversized as error:
            raise Unreadable(self._not_ours(str(error))) from error
        except Doubtful as error:
            raise OutcomeUnknown(f"the store at {self._address} did not say whether it wrote ({error})") from error
        except (Unsent, Broken) as error:
            remedy = "it must run there, and this host must be able to reach that port"
            raise OutOfReach(f"no answer from the store at {self._address} ({error}): {remedy}") from error
        finally:
            if self._closed:
                self._forget()

    def _connected(self) -> WireClient:
        self._refuse_if_closed()
        if not self._client:
            self._client = WireClient(self._address, self._timeout_s, codec.BYTES_MAX)
            self._refuse_if_closed()  # `close` may have come before there was a connection that it could break
            self._client.greet()
        return self._client

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Unsent("this client is closed")

    def _forget(self) -> None:
        """Give up the connection, unless somebody asks something over it, who does it then."""
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _drop(self) -> None:
        if self._client:
            self._client.close()
            self._client = None

    def _not_ours(self, reason: str) -> str:
        remedy = "if somebody else uses that store, give the job another --rdzv-id"
        return f"the store at {self._address} holds no register under {self._prefix} ({reason}): {remedy}"

    # --- values

    def _put(self, client: WireClient, key: str, value: bytes) -> None:
        client.set(key, self._seal.sealed(key, value))

    def _fault_key(self, count: int) -> str:
        """Of the failure that was put as this one."""
        again = FAULTS_HALF + 1 + (count - FAULTS_HALF - 1) % FAULTS_HALF
        return self._key(f"faults/{count if count <= FAULTS_HALF else again}")

    def _opened(self, key: str, data: bytes) -> bytes:
        try:
            return self._seal.opened(key, data)
        except Forged as error:
            raise Unreadable(f"the store at {self._address} holds no register of this job: {key} {error}") from error

    def _counter(self, node: Node, key: str, data: bytes) -> int | None:
        """A heartbeat's. One that is forged, no number, or lower than the last stands still: it shows nobody alive. Only one
        that is gone says that its node is."""
        if not data:
            return None
        return max(number(trusted(self._seal, key, data)) or 0, self._counters.get(node, 0))

    # --- the versions

    def _head(self, client: WireClient) -> RendezvousState | None:
        """The last version of the instance that the root names."""
        seen = self._seen
        root, *ahead = client.get(self._key("root"), *(self._ahead(seen.version) if seen else ()))
        if not root:
            self._seen = None
        elif seen is None or root != self._root:
            self._first = self._decoded(self._opened(self._key("root"), root), self._key("root"))
            self._root, self._seen = root, self._last(client, self._first, ())
        else:
            self._seen = self._last(client, seen, ahead)
        return self._seen

    def _last(self, client: WireClient, known: RendezvousState, ahead: Sequence[bytes]) -> RendezvousState:
        """From a version that I know to the last one. `ahead` are the values that follow it, if they are read already."""
        version, data = known.version, b""
        found = _present(ahead or client.get(*self._ahead(version)))
        while found:
            version = version + len(found)
            data = self._opened(self._version_key(version), found[-1])
            jumps = data == EMPTIED
            if jumps:
                version, data = self._jump(client, version)
            found = _present(client.get(*self._ahead(version))) if jumps or len(found) == STRIDE else []
        if not data:
            return known
        state = self._decoded(data, key := self._version_key(version))
        if state.version != version or not (state.life == known.life or state.life.epoch > known.life.epoch):
            raise Unreadable(self._not_ours(f"{key} holds {state.token}"))
        return state

    def _jump(self, client: WireClient, version: int) -> tuple[int, bytes]:
        """A reader that is far behind goes on from the hint, if that leads further; else it walks over the marks."""
        key = self._instance_key("head")
        hint = number(trusted(self._seal, key, client.get(key)[0]))
        if hint is None or hint <= version:
            return version, EMPTIED
        data = client.get(key := self._version_key(hint))[0]
        return (hint, self._opened(key, data)) if data else (version, EMPTIED)

    def _ahead(self, version: int) -> tuple[str, ...]:
        return tuple(self._version_key(version + step) for step in range(1, STRIDE + 1))

    def _tidy(self, client: WireClient, head: int) -> None:
        """Lead late readers to the head, and empty the version that is about to fall too far behind it."""
        self._put(client, self._instance_key("head"), b"%d" % head)
        if self._first and head - KEPT > self._first.version:
            self._put(client, self._version_key(head - KEPT), EMPTIED)

    def _decoded(self, data: bytes, key: str) -> RendezvousState:
        try:
            return codec.decode(data)
        except codec.Refused as error:
            raise Unreadable(self._not_ours(f"{key}: {error}")) from error

    def _version_key(self, version: int) -> str:
        return self._instance_key(str(version))

    def _instance_key(self, name: str) -> str:
        """A key of this instance of the store, which its root names."""
        assert self._first
        return self._key(f"{_quoted(self._first.life.nonce)}/{name}")

    def _node_key(self, kind: str, node: Node) -> str:
        return self._key(f"{kind}/{_quoted(str(node))}")

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"


@lru_cache(maxsize=2 * NODES_MAX)
def _quoted(name: str) -> str:
    return quote(name, safe="")


def _present(values: Sequence[bytes]) -> list[bytes]:
    return list(takewhile(bool, values))
