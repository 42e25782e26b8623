"""The register on torch's TCPStore: every version a key of its own, so that write, push and token are one.

    root                    the first state of the register, set if absent: its life names this instance of the store
    <root>/<version>        each later state, set if absent; the next version's key is what a reader waits for
    <root>/head             a hint: some late version, where a reader begins to look for the head
    <root>/floor            the last version that may be missing: old ones are removed
    heartbeat/<node>        a counter, as text
    heartbeat/<secret>      with a token: the same again, under a name that a foreigner cannot guess
    wish/<node>             what it would have written for it
    wished/<kind>           how many propose so in this era
    bye/<node>              the node has learned the verdict, or has left
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

from ....core.rendezvous import Proposal, RendezvousState, Token, codec
from ....core.rendezvous.state import NODES_MAX
from ....core.world import Fault, Life, Node
from ...clock import Clock
from ..failure_records import read_faults
from ..numerals import number
from ..port import Heartbeats, OutOfReach, Shown
from .keys import Keys
from .link import Link
from .seal import UNSEALED, Seal, put, trusted
from .versions import Versions
from .wire import Address, WireClient

TIMEOUT_S = 5.0


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
    ) -> None:
        """The first question connects. `fallback_s` is how often a wait reads the register without being told of a change;
        `timeout_s` is how long an answer may take. `warn` is told of each forged heartbeat, by the thread that reads."""
        self._clone = partial(TCPStoreBackend, address, run_id, clock, fallback_s, timeout_s, seal, warn)
        self._warn = warn
        self._clock = clock
        self._fallback_s = fallback_s
        self._seal = seal
        self._keys = Keys(run_id, str(address))
        self._link = Link(address, timeout_s, self._keys.not_ours)
        self._versions = Versions(self._keys, seal)
        self._counters: dict[Node, int] = {}
        """The last counter of each node that was heard of."""
        self._proposed: list[str] = []
        """The keys of counts to which this client has added, without those that were deleted."""

    def get(self) -> Shown:
        with self._link.asking() as client:
            return Shown(self._versions.head(client))

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        with self._link.asking() as client:
            return Shown(self._versions.write(client, state, token))

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        while True:
            try:
                with self._link.asking() as client:
                    state = self._versions.head(client)
                    stands = state.token if state else None
                    left = until - self._clock.now()
                    if stands != token or left <= 0 or self._link.closed:
                        return Shown(state)
                    client.wait([self._versions.next_key(stands)], min(left, self._fallback_s))
            except OutOfReach:
                if not self._link.closed:
                    raise
                return Shown(self._versions.seen)

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        with self._link.asking() as client:
            for key in self._heartbeat_keys(node):
                put(self._seal, client, key, b"%d" % counter)
            return Shown(self._versions.head(client)).life  # this answer is what acknowledges the heartbeat before it

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        keys = {node: self._heartbeat_keys(node) for node in nodes}
        with self._link.asking() as client:
            every = [key for each in keys.values() for key in each]
            values = dict(zip(every, client.get(*every) if every else (), strict=True))
            silent = [node for node, each in keys.items() if not any(values[key] for key in each)]
            left = self._left(client, silent)
            life = Shown(self._versions.head(client)).life
        if len(self._counters) > 4 * NODES_MAX:
            self._counters.clear()
        return Heartbeats({node: self._counter(node, keys[node], values, node in left) for node in keys}, life)

    def put_proposal(self, node: Node, proposal: Proposal) -> int:
        counted = self._keys.key(f"wished/{proposal.like}")
        with self._link.asking() as client:
            put(self._seal, client, self._keys.of_node("wish", node), codec.encode_proposal(proposal))
            if counted not in self._proposed:
                self._proposed.append(counted)
            return client.add(counted, 1)

    def proposals(self, nodes: Iterable[Node]) -> Mapping[Node, Proposal]:
        keys = {node: self._keys.of_node("wish", node) for node in nodes}
        with self._link.asking() as client:
            answers = client.get(*keys.values()) if keys else ()
            while len(self._proposed) > 1:
                client.delete(self._proposed.pop(0))  # nobody counts on there
        opened = {node: trusted(self._seal, key, data) for (node, key), data in zip(keys.items(), answers, strict=True)}
        return dict(codec.decode_proposals(opened))

    def remove_heartbeat(self, node: Node) -> None:
        with self._link.asking() as client:
            put(self._seal, client, self._keys.of_node("bye", node), b"1")
            client.delete(*self._heartbeat_keys(node))
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

    def put_fault(self, fault: Fault) -> None:
        with self._link.asking() as client:
            count = client.add(self._keys.key("faults/count"), 1)
            put(self._seal, client, self._keys.fault(count), codec.encode_fault(fault))
            client.get(self._keys.root)

    def faults(self) -> tuple[Fault, ...]:
        with self._link.asking() as client:
            count = number(client.get(self._keys.key("faults/count"))[0]) or 0
            answers = [trusted(self._seal, key, client.get(key)[0]) for key in self._keys.faults(count)]
        return read_faults(answers)

    def clone(self) -> TCPStoreBackend:
        return self._clone()

    def close(self) -> None:
        self._link.close()

    def _heartbeat_keys(self, node: Node) -> tuple[str, ...]:
        key = self._keys.of_node("heartbeat", node)
        secret = self._seal.secret_name(key)
        return (key, self._keys.key(f"heartbeat/{secret}")) if secret else (key,)

    def _left(self, client: WireClient, silent: Sequence[Node]) -> frozenset[Node]:
        """Return those of these nodes without a heartbeat that took it away themselves. With a token each has sealed a
        goodbye before: anybody can delete a key."""
        if not (silent and self._seal.secret_name("")):
            return frozenset(silent)
        keys = {node: self._keys.of_node("bye", node) for node in silent}
        answers = zip(keys.items(), client.get(*keys.values()), strict=True)
        return frozenset(node for (node, key), data in answers if trusted(self._seal, key, data))

    def _counter(self, node: Node, keys: Iterable[str], values: Mapping[str, bytes], has_left: bool) -> int | None:
        """Return a heartbeat's counter. One that is forged, no number, or lower than the last counts as standing still: it
        shows nobody alive. None means that the node took its heartbeat away, or that none was ever seen."""
        if has_left:
            self._counters.pop(node, None)
            return None
        counter = self._counters.get(node)
        for key in keys:
            if data := values[key]:
                value = trusted(self._seal, key, data)
                counter = max(number(value) or 0, counter or 0)
                if not value:
                    self._warn(
                        f"a forged heartbeat of {node} stands in the store: {key}; no agent of this job wrote it"
                    )
        if counter is not None:
            self._counters[node] = counter
        return counter
