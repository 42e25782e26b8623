"""The register on torch's TCPStore: every version a key of its own, so that write, push and token are one.

    root                    the first state of the register, set if absent: it names the life
    <life>/<version>        each later state, set if absent; the next version's key is what a reader waits for
    <life>/head             a hint: some late version, where a reader begins to look for the head
    heartbeat/<node>        a counter, as text
    bye/<node>              the node has learned the verdict, or has left
    faults/count, faults/<n>

All under `elastic/<run id>/`. A write names the version that it follows; whoever comes second finds the key taken. An old
version is not deleted but emptied to a mark: a node that slept would otherwise find its key free and believe that it wrote.
A store that was restarted has no root, and a late write of the old life lands where nobody reads.

What is read is bounded, schema-checked, and must be what its key says. The TCPStore has no password: whoever reaches the
port can end the job, but not execute anything, nor have anything believed that breaks an invariant.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from urllib.parse import quote

from ...core.rendezvous import RendezvousState, Token, codec
from ...core.world import Fault, Life, Node
from ..clock import Clock
from .numerals import counter, number
from .port import FAULTS_MAX, OutcomeUnknown, OutOfReach, Unreadable
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
        self, address: Address, run_id: str, clock: Clock, fallback_s: float = 1.0, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Connects when first asked something. `fallback_s` is how often a wait looks by itself, `timeout_s` how long an
        answer may take."""
        self._address = address
        self._run_id = run_id
        self._prefix = f"elastic/{quote(run_id, safe='')}"
        self._clock = clock
        self._fallback_s = fallback_s
        self._timeout_s = timeout_s
        self._client: WireClient | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._root = b""
        self._seen: RendezvousState | None = None

    def get(self) -> RendezvousState | None:
        with self._asking() as client:
            return self._head(client)

    def set(self, state: RendezvousState, token: Token | None) -> RendezvousState | None:
        data = codec.encode(state)
        with self._asking() as client:
            # Over a new connection this may be a store that knows nothing of the token's life, where any key is free.
            stands = self._head(client)
            if (stands.token if stands else None) != token:
                return stands
            if token:
                self._tidy(client, token)
            key = self._version_key(token.life, token.version + 1) if token else self._key("root")
            if client.compare_set(key, b"", data) != data:
                return self._head(client)
            self._root, self._seen = self._root if token else data, state
            return state

    def wait_for_change(self, token: Token | None, until: float) -> RendezvousState | None:
        while True:
            try:
                with self._asking() as client:
                    state = self._head(client)
                    stands = state.token if state else None
                    left = until - self._clock.now()
                    if stands != token or left <= 0 or self._closed:
                        return state
                    key = self._version_key(stands.life, stands.version + 1) if stands else self._key("root")
                    client.wait([key], min(left, self._fallback_s))
            except OutOfReach:
                if not self._closed:
                    raise
                return self._seen

    def heartbeat(self, node: Node, counter: int) -> None:
        with self._asking() as client:
            client.set(self._node_key("heartbeat", node), b"%d" % counter)
            client.get(self._key("root"))  # its answer is what acknowledges the heartbeat before it

    def heartbeats(self, nodes: Iterable[Node]) -> Mapping[Node, int | None]:
        asked = tuple(nodes)
        with self._asking() as client:
            answers = client.get(*(self._node_key("heartbeat", node) for node in asked)) if asked else ()
        return {node: counter(answer) for node, answer in zip(asked, answers, strict=True)}

    def remove_heartbeat(self, node: Node) -> None:
        with self._asking() as client:
            client.delete(self._node_key("heartbeat", node))
            client.set(self._node_key("bye", node), b"1")
            client.get(self._key("root"))

    def wait_until_gone(self, nodes: Sequence[Node], timeout_s: float) -> bool:
        """Wait until each of these nodes has removed its heartbeat, or for so long."""
        if not nodes:
            return True
        with self._asking() as client:
            return client.wait([self._node_key("bye", node) for node in nodes], timeout_s)

    def put_fault(self, fault: Fault) -> None:
        with self._asking() as client:
            count = client.add(self._key("faults/count"), 1)
            client.set(self._key(f"faults/{count}"), codec.encode_fault(fault))
            client.get(self._key("root"))

    def faults(self) -> tuple[Fault, ...]:
        with self._asking() as client:
            count = min(number(client.get(self._key("faults/count"))[0]) or 0, FAULTS_MAX)
            answers = [client.get(self._key(f"faults/{index}"))[0] for index in range(1, count + 1)]
        return tuple(sorted(self._readable(answers), key=lambda fault: fault.round))

    def clone(self) -> TCPStoreBackend:
        return TCPStoreBackend(self._address, self._run_id, self._clock, self._fallback_s, self._timeout_s)

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

    # --- the versions

    def _head(self, client: WireClient) -> RendezvousState | None:
        """The last version of the life that the root names."""
        seen = self._seen
        root, *ahead = client.get(self._key("root"), *(self._ahead(seen.life, seen.version) if seen else ()))
        if not root:
            self._seen = None
        elif seen is None or root != self._root:
            first = self._decoded(root, self._key("root"))
            self._root, self._seen = root, self._last(client, first, ())
        else:
            self._seen = self._last(client, seen, ahead)
        return self._seen

    def _last(self, client: WireClient, known: RendezvousState, ahead: Sequence[bytes]) -> RendezvousState:
        """From a version that I know to the last one. `ahead` are the values that follow it, if they are read already."""
        version, data = known.version, b""
        found = _present(ahead or client.get(*self._ahead(known.life, version)))
        while found:
            version, data = version + len(found), found[-1]
            if data == EMPTIED:
                version, data = self._jump(client, known.life, version)
            found = _present(client.get(*self._ahead(known.life, version)))
        if not data:
            return known
        state = self._decoded(data, key := self._version_key(known.life, version))
        if state.token != Token(known.life, version):
            raise Unreadable(self._not_ours(f"{key} holds {state.token}"))
        return state

    def _jump(self, client: WireClient, life: Life, version: int) -> tuple[int, bytes]:
        """A reader that is far behind goes on from the hint, if that leads further; else it walks over the marks."""
        hint = number(client.get(self._key(f"{quote(life.nonce, safe='')}/head"))[0])
        if hint is None or hint <= version:
            return version, EMPTIED
        data = client.get(self._version_key(life, hint))[0]
        return (hint, data) if data else (version, EMPTIED)

    def _ahead(self, life: Life, version: int) -> tuple[str, ...]:
        return tuple(self._version_key(life, version + step) for step in range(1, STRIDE + 1))

    def _tidy(self, client: WireClient, head: Token) -> None:
        """Lead late readers to the head, and empty the version that is about to fall too far behind it."""
        client.set(self._key(f"{quote(head.life.nonce, safe='')}/head"), b"%d" % head.version)
        if head.version - KEPT > 1:
            client.set(self._version_key(head.life, head.version - KEPT), EMPTIED)

    def _decoded(self, data: bytes, key: str) -> RendezvousState:
        try:
            return codec.decode(data)
        except codec.Refused as error:
            raise Unreadable(self._not_ours(f"{key}: {error}")) from error

    def _readable(self, answers: Iterable[bytes]) -> Iterator[Fault]:
        for data in answers:
            try:
                yield codec.decode_fault(data)
            except codec.Refused:
                continue  # a report does without what nobody can read

    def _version_key(self, life: Life, version: int) -> str:
        return self._key(f"{quote(life.nonce, safe='')}/{version}")

    def _node_key(self, kind: str, node: Node) -> str:
        return self._key(f"{kind}/{quote(str(node), safe='')}")

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"


def _present(values: Sequence[bytes]) -> list[bytes]:
    return list(takewhile(bool, values))
