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

from ....core.rendezvous import Proposal, RendezvousState, Token, codec
from ....core.rendezvous.actions import entering_in
from ....core.rendezvous.state import NODES_MAX
from ....core.world import Fault, Life, Node, Stacks, Unfit
from ...clock import Clock
from ..failure_records import read_faults
from ..note_codec import decode_notes, encode_note
from ..notes import StandbyNote
from ..numerals import number
from ..port import UNFIT_MAX, Heartbeats, OutOfReach, Shown
from ..queries import Query, Replies, Reply
from ..query_codec import decode_query, decode_replies, encode_query, encode_reply
from .keys import Keys
from .link import Link
from .seal import UNSEALED, Seal, put, trusted
from .versions import Sights, Versions
from .wire import Address, WireClient

TIMEOUT_S = 5.0
ENTRANTS_MAX = 2 * NODES_MAX
"""If there are more proposals to enter, only the last ones are read. A try that was repeated has several numbers."""


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
    ) -> None:
        """The first question connects. `fallback_s` is how often a wait reads the register without being told of a change;
        `timeout_s` is how long an answer may take. `warn` is told of each forged heartbeat, by the thread that reads. Clones
        share `sights`."""
        sights = sights or Sights()
        self._clone = partial(TCPStoreBackend, address, run_id, clock, fallback_s, timeout_s, seal, warn, sights)
        self._warn = warn
        self._clock = clock
        self._fallback_s = fallback_s
        self._seal = seal
        self._keys = Keys(run_id, str(address))
        self._link = Link(address, timeout_s, self._keys.not_ours)
        self._versions = Versions(self._keys, seal, sights)
        self._counters: dict[Node, int] = {}
        """The last counter of each node that was heard of."""
        self._began: dict[Node, str] = {}
        """The kind of which each node was the first to propose."""
        self._entered: dict[Node, str] = {}
        """The key of each node's last proposal to enter."""
        self.query: Query | None = None

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
            self.query = self._decoded_query(asked)
            return Shown(self._versions.seen).life  # this answer is what acknowledges the heartbeat before it

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        keys = {node: self._heartbeat_keys(node) for node in nodes}
        with self._link.asking() as client:
            every = [key for each in keys.values() for key in each]
            values = dict(zip(every, self._versions.look(client, *every), strict=True))
            life = Shown(self._versions.seen).life
            silent = [node for node, each in keys.items() if not any(values[key] for key in each)]
            left = self._left(client, silent)
        if len(self._counters) > 4 * NODES_MAX:
            self._counters.clear()
        return Heartbeats({node: self._counter(node, keys[node], values, node in left) for node in keys}, life)

    def put_proposal(self, node: Node, proposal: Proposal) -> int:
        like = proposal.like
        with self._link.asking() as client:
            if proposal.enters:
                self._enter(client, node, proposal)
            else:
                put(self._seal, client, self._keys.of_node("wish", node), codec.encode_proposal(proposal))
            count = client.add(self._keys.key(f"wished/{like}"), 1)
            begun = self._began.get(node, like)
            if begun != like:  # nobody counts on there
                client.delete(*(self._keys.key(f"{name}/{begun}") for name in ("wished", "numbers")))
            if count == 1:
                self._began[node] = like
            elif begun != like:
                del self._began[node]
            return count

    def proposals(self, nodes: Iterable[Node], entering: Token | None = None) -> Mapping[Node, Proposal]:
        keys = {node: self._keys.of_node("wish", node) for node in nodes}
        with self._link.asking() as client:
            answers = client.get(*keys.values()) if keys else ()
            entrants = self._entrants(client, entering) if entering else {}
        opened = {node: trusted(self._seal, key, data) for (node, key), data in zip(keys.items(), answers, strict=True)}
        return {**dict(codec.decode_proposals(opened)), **entrants}

    def _entrants(self, client: WireClient, era: Token) -> Mapping[Node, Proposal]:
        kind = entering_in(era)
        given = number(client.get(self._keys.key(f"numbers/{kind}"))[0]) or 0
        first = max(given - ENTRANTS_MAX, 0) + 1
        keys = [self._keys.key(f"enter/{kind}/{each}") for each in range(first, given + 1)]
        answers = client.get(*keys) if keys else ()
        opened = [trusted(self._seal, key, data) for key, data in zip(keys, answers, strict=True)]
        return codec.decode_entrants(opened, era)

    def _enter(self, client: WireClient, node: Node, proposal: Proposal) -> None:
        """Put the proposal under a number of its own: whoever reads it does not know the node. The count comes after it."""
        given = client.add(self._keys.key(f"numbers/{proposal.like}"), 1)
        key = self._keys.key(f"enter/{proposal.like}/{given}")
        put(self._seal, client, key, codec.encode_entrant(node, proposal))
        if last := self._entered.pop(node, None):
            client.delete(last)
        self._entered[node] = key

    def remove_heartbeat(self, node: Node) -> None:
        with self._link.asking() as client:
            put(self._seal, client, self._keys.of_node("bye", node), b"1")
            beside = (self._keys.of_node(kind, node) for kind in ("wish", "standbys"))
            client.delete(*self._heartbeat_keys(node), *beside)
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

    def put_note(self, node: Node, note: StandbyNote) -> None:
        with self._link.asking() as client:
            put(self._seal, client, self._keys.of_node("standbys", node), encode_note(note))
            client.get(self._keys.root)

    def notes(self, nodes: Iterable[Node]) -> Mapping[Node, StandbyNote]:
        keys = {node: self._keys.of_node("standbys", node) for node in nodes}
        with self._link.asking() as client:
            answers = client.get(*keys.values()) if keys else ()
        opened = zip(keys.items(), answers, strict=True)
        return decode_notes({node: trusted(self._seal, key, data) for (node, key), data in opened})

    def put_stacks(self, stacks: Stacks) -> None:
        with self._link.asking() as client:
            put(self._seal, client, self._keys.of_node("stacks", stacks.node), codec.encode_stacks(stacks))
            client.get(self._keys.root)

    def stacks(self, nodes: Iterable[Node]) -> tuple[Stacks, ...]:
        keys = {node: self._keys.of_node("stacks", node) for node in nodes}
        with self._link.asking() as client:
            answers = client.get(*keys.values()) if keys else ()
        opened = {node: trusted(self._seal, key, data) for (node, key), data in zip(keys.items(), answers, strict=True)}
        return codec.stacks_of(opened)

    def put_query(self, query: Query) -> None:
        with self._link.asking() as client:
            put(self._seal, client, self._query_key, encode_query(query))
            client.get(self._keys.root)

    def withdraw_query(self, nodes: Iterable[Node]) -> None:
        with self._link.asking() as client:
            client.delete(self._query_key, *(self._keys.of_node("reply", node) for node in nodes))

    def put_reply(self, reply: Reply) -> None:
        key = self._keys.of_node("reply", reply.stacks.node)
        with self._link.asking() as client:
            put(self._seal, client, key, encode_reply(reply))
            if not client.get(self._query_key)[0]:  # withdrawn, and the replies that were there then with it
                client.delete(key)

    def replies(self, nodes: Iterable[Node]) -> Replies:
        keys = {node: self._keys.of_node("reply", node) for node in nodes}
        with self._link.asking() as client:
            asked, *answers = client.get(self._query_key, *keys.values())
        opened = {node: trusted(self._seal, key, data) for (node, key), data in zip(keys.items(), answers, strict=True)}
        return Replies(self._decoded_query(asked), decode_replies(opened))

    @property
    def _query_key(self) -> str:
        return self._keys.key("query")

    def _decoded_query(self, data: bytes) -> Query | None:
        return decode_query(trusted(self._seal, self._query_key, data)) if data else None

    def put_unfit(self, unfit: Unfit) -> None:
        with self._link.asking() as client:
            count = client.add(self._keys.key("unfit/count"), 1)
            put(self._seal, client, self._keys.key(f"unfit/{count % UNFIT_MAX}"), codec.encode_unfit(unfit))
            client.get(self._keys.root)

    def unfit(self) -> tuple[Unfit, ...]:
        with self._link.asking() as client:
            count = number(client.get(self._keys.key("unfit/count"))[0]) or 0
            last = range(max(count - UNFIT_MAX, 0) + 1, count + 1)
            keys = [self._keys.key(f"unfit/{each % UNFIT_MAX}") for each in last]
            answers = client.get(*keys) if keys else ()
        return codec.unfit_of(trusted(self._seal, key, data) for key, data in zip(keys, answers, strict=True))

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
