"""A client's connection to the relay, and the registers behind it.

A thread of the connection reads its questions and answers them. All clients of a register share a few clients of the store:
the store's server has a descriptor for each of its connections, and a node of 8 wrapped ranks has some fifty clients here.
"""

from __future__ import annotations

import math
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeAlias, assert_never

from ....core.backoff import pause_s
from ....core.node import eviction, is_forming
from ....core.rendezvous import (
    FIRST_PAUSE_S,
    RendezvousState,
    Violation,
    apply,
    codec,
    verify,
    verify_step,
)
from ....core.world import Node
from ... import threads
from ...clock import poll_ms
from ..port import Backend, Denied, OutOfReach, Shown, StoreError
from . import relay_protocol as protocol
from .relay_waits import COPY_PAUSE_S, LONGEST_PAUSE_S, Encoded, Wait, Waits, failed

Parties: TypeAlias = Callable[[], Mapping[str, int]]
"""The parties of lost nodes now, each with the last round in which its node may have come. Any thread may ask."""
Awaited: TypeAlias = Callable[[], Mapping[str, int]]
"""How many ranks a first world waits for, of each party. Any thread may ask."""
_SPACES_MAX = 4_096
"""The most registers that one agent keeps open for its workers."""
_CLIENTS_MAX = 2
"""The most clients of the store that the connections to one register share, beside the one that waits."""
_EVICTION_TRIES = 30
"""So often the store may leave a question unanswered."""
_LOOK_S = 1.0
"""How soon the number of ranks that a first round waits for is asked for again."""
_JOIN_S = 5.0
"""How long the end of a thread is waited for, whose client is closed."""
_READ_S = 0.1
"""How long the thread is waited for that has sent the rest of an answer, once the client asks on."""
_TURN_S = 4.0
"""How long a question waits for those before it. It is shorter than a client waits for its answer."""


class _SharedClient:
    """A client of the store that several connections ask through, one at a time."""

    def __init__(self, backend: Backend, encoded: Encoded) -> None:
        self.backend = backend
        self.users = 0
        self._encoded = encoded
        self._lock = threading.Lock()

    def answer(self, question: protocol.Question) -> tuple[protocol.Answer | bytes, ...]:
        """Return the store's answer. Raises codec.Refused for a value that is none."""
        try:
            with self._turn():
                return self._answer(question)
        except StoreError as error:
            return (failed(error),)

    def get(self) -> Shown:
        """Return the register. Raises StoreError."""
        with self._turn():
            return self.backend.get()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for this question's turn. While the store is silent most questions have none, and are answered so."""
        if not self._lock.acquire(timeout=_TURN_S):
            raise OutOfReach("the agent's store has not answered the questions before this one")
        try:
            yield
        finally:
            self._lock.release()

    def _answer(self, question: protocol.Question) -> tuple[protocol.Answer | bytes, ...]:
        backend = self.backend
        match question:
            case protocol.Get():
                return (self._encoded.stands(backend.get()),)
            case protocol.Set(state, token):
                return (self._encoded.stands(backend.set(codec.decode(state), protocol.token(token))),)
            case protocol.WaitForChange():
                raise AssertionError("a wait asks through no shared client")
            case protocol.Heartbeat(node, counter):
                life = backend.heartbeat(protocol.node(node), counter)
                return (protocol.Heard(protocol.pair(life) if life else None, backend.lease_s),)
            case protocol.ReadHeartbeats(nodes):
                return (_counters([protocol.node(pair) for pair in nodes], backend),)
            case protocol.RemoveHeartbeat(node):
                backend.remove_heartbeat(protocol.node(node))
                return (protocol.Noted(),)
            case protocol.PutProposal(pair, proposal):
                return (protocol.Proposed(backend.put_proposal(protocol.node(pair), codec.decode_proposal(proposal))),)
            case protocol.ReadProposals(nodes, entering):
                those = [protocol.node(pair) for pair in nodes]
                proposals = backend.proposals(those, protocol.token(entering))
                return (
                    protocol.Proposals(tuple(map(protocol.node_pair, proposals))),
                    *map(codec.encode_proposal, proposals.values()),
                )
            case protocol.PutFault(fault):
                backend.put_fault(codec.decode_fault(fault))
                return (protocol.Noted(),)
            case protocol.Faults():
                faults = backend.faults()
                return (protocol.Records(len(faults)), *map(codec.encode_fault, faults))
            case other:
                assert_never(other)


class _Space:
    """A register, the clients of the store that its connections share, and those who wait for its next change."""

    def __init__(self, backend: Backend, saw: Callable[[RendezvousState], None]) -> None:
        self._backend = backend
        self._encoded = Encoded(saw)
        self._clients: list[_SharedClient] = []
        self.waits = Waits(backend, self._encoded)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._evictions: dict[threading.Thread, Backend] = {}
        """The threads that throw ranks out, each with its client of the store."""

    @property
    def lease_s(self) -> float | None:
        return self._backend.lease_s

    def join(self) -> _SharedClient:
        """Return the client of the store for one more connection."""
        if len(self._clients) < _CLIENTS_MAX:
            self._clients.append(_SharedClient(self._backend.clone(), self._encoded))
        client = min(self._clients, key=lambda client: client.users)
        client.users += 1
        return client

    def part(self, client: _SharedClient) -> bool:
        """End one connection's use of its client. Returns True if it was the last connection."""
        client.users -= 1
        if not client.users:
            self._clients.remove(client)
            client.backend.close()
        return not self._clients

    def evict(self, parties: Parties, me: Node, awaited: Awaited) -> None:
        """Have the ranks of these parties thrown out, by a thread. Returns at once. If the host has no thread for it, the
        silence of their heartbeats does it."""
        with self._lock:
            if self._closed.is_set():
                return
            client = self._backend.clone()
            given = client, parties, me, awaited
            thread = threading.Thread(target=self._throw_out, args=given, name="elastic-relay-evicts", daemon=True)
            self._evictions[thread] = client
            try:
                threads.start(thread, patience_s=0.0)
            except threads.NoThread:
                self._evictions.pop(thread).close()

    def _throw_out(self, client: Backend, parties: Parties, me: Node, awaited: Awaited) -> None:
        """Evict these ranks, until the register shows none of them and its first round is complete. A store that does not
        answer is asked for a while."""
        tries = 0
        try:
            while tries < _EVICTION_TRIES and not self._closed.is_set():
                try:
                    state = client.get().state
                    if state and (edit := eviction(state, parties(), awaited())):
                        after = apply(state, edit, me)
                        verify(after)
                        verify_step(state, after)
                        client.set(after, state.token)
                    elif is_forming(state):
                        shown = client.wait_for_change(state.token if state else None, time.monotonic() + _LOOK_S)
                        self._closed.wait(0.0 if shown.here else COPY_PAUSE_S)
                    else:
                        return
                except StoreError:
                    tries += 1
                    self._closed.wait(pause_s(tries, FIRST_PAUSE_S, LONGEST_PAUSE_S))
        except Violation:
            return  # a state that is none is nobody's to edit
        finally:
            client.close()
            with self._lock:
                self._evictions.pop(threading.current_thread(), None)

    def close(self) -> None:
        self._closed.set()
        self.waits.close()
        with self._lock:
            evictions = dict(self._evictions)
        for backend in (self._backend, *evictions.values(), *(each.backend for each in self._clients)):
            backend.close()
        for thread in evictions:
            thread.join(_JOIN_S)


class Spaces:
    """The registers to which some client is connected."""

    def __init__(self, open_space: Callable[[str], Backend]) -> None:
        self._open_space = open_space
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._of: dict[str, _Space] = {}
        self._restarts: dict[str, int] = {}
        self._evicted: tuple[Parties, Node, Awaited] | None = None
        """This is to be evicted from each register that is opened later, too."""

    def join(self, name: str) -> tuple[_Space, _SharedClient]:
        """Return the register `name`, and the client of the store for one more connection to it. Raises StoreError."""
        with self._lock:
            if name not in self._of:
                if len(self._of) >= _SPACES_MAX:
                    raise Denied(f"the agent keeps {_SPACES_MAX} registers for its workers and no more")
                self._of[name] = _Space(self._open_space(name), partial(self._saw, name))
                if self._evicted:
                    self._of[name].evict(*self._evicted)
            return self._of[name], self._of[name].join()

    def part(self, name: str, client: _SharedClient) -> None:
        """End one connection. The last one closes the register's clients."""
        with self._lock:
            if self._of[name].part(client):
                self._of.pop(name).close()

    @property
    def restarts(self) -> int:
        """How many rounds of all registers were followed by another one."""
        with self._counting:
            return sum(self._restarts.values())

    def _saw(self, name: str, state: RendezvousState) -> None:
        if state.round:
            with self._counting:
                self._restarts[name] = max(state.round, self._restarts.get(name, 0))

    def evict(self, parties: Parties, me: Node, awaited: Awaited) -> None:
        """Throw the ranks of these parties out of all registers, each in a thread of its own."""
        with self._lock:
            self._evicted = parties, me, awaited
            for space in self._of.values():
                space.evict(*self._evicted)

    def close(self) -> None:
        """Close all clients of the store: what is asked of them ends at once."""
        with self._lock:
            for space in self._of.values():
                space.close()


class Connection:
    """A connection of one client to one register. `forget` is called when it is over."""

    def __init__(self, accepted: socket.socket, spaces: Spaces, forget: Callable[[Connection], None]) -> None:
        self._socket = accepted
        self._spaces = spaces
        self._forget = forget
        self._wait: Wait | None = None
        """The last wait of this client."""
        self._sending = threading.Lock()
        self._tells = True
        """False once the socket is about to be closed."""
        self._rest: threading.Thread | None = None
        """It sends the rest of an answer that the client was slow to read."""
        self._thread = threading.Thread(target=self._run, name="elastic-relayed", daemon=True)

    def start(self, given_up: Callable[[], bool]) -> None:
        """Serve the client. Raises NoThread when that cannot be, and the client is hung up on."""
        try:
            threads.start(self._thread, given_up=given_up)
        except threads.NoThread:
            self._socket.close()
            raise

    def hang_up(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it had ended already

    def join(self, timeout_s: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            name = protocol.hello(self._socket).space
            space, client = self._spaces.join(name)
            try:
                self._serve(space, client)
            finally:
                self._stop_waiting(space)
                self._spaces.part(name, client)
        except StoreError as error:
            self._say(failed(error))
        except (protocol.Broken, codec.Refused):
            pass  # the client has gone, or speaks another language; either way this is its end
        finally:
            self._socket.close()
            self._forget(self)

    def _serve(self, space: _Space, client: _SharedClient) -> None:
        protocol.send(self._socket, protocol.Welcome(space.lease_s))
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while True:
            wait = self._wait if self._wait in space.waits else None
            if wait and not poll.poll(math.ceil(poll_ms(wait.due_at - time.monotonic()))):
                space.waits.look([wait], client.get)
                continue
            question = protocol.question(self._socket)
            if self._wait in space.waits:
                raise protocol.Broken("a question during a wait")
            if isinstance(question, protocol.WaitForChange):
                self._begin(question, space, client)
            else:
                protocol.send(self._socket, *client.answer(question))

    def _begin(self, question: protocol.WaitForChange, space: _Space, client: _SharedClient) -> None:
        """Begin a wait. If the host has no thread for the register's changes, it is answered so."""
        due_at = time.monotonic() + question.left_s
        self._wait = Wait(protocol.token(question.token), due_at, question.rest_s, self._tell)
        try:
            space.waits.add(self._wait, client.get)
        except StoreError as error:
            self._say(failed(error))

    def _stop_waiting(self, space: _Space) -> None:
        """End the wait, and what is sent for it: the socket's number may be another one's when it is closed."""
        if self._wait:
            space.waits.drop(self._wait)
        self.hang_up()
        with self._sending:
            self._tells = False
        if self._rest:
            self._rest.join()

    def _tell(self, data: bytes) -> None:
        """Answer a wait, from the thread that answers all: it waits `_READ_S` for this client, and no longer."""
        with self._sending:
            if not self._tells:
                return
            if self._rest:
                self._rest.join(_READ_S)
                if self._rest.is_alive():  # it asks on, and has not read what it was told before
                    self.hang_up()
                    return
            try:
                sent = self._socket.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # the reading thread sees it too
            if sent < len(data):
                self._tell_slowly(data[sent:])

    def _tell_slowly(self, rest: bytes) -> None:
        """Send the rest of an answer by a thread. Without one the client is hung up on, and asks again."""

        def send() -> None:
            with suppress(OSError):
                self._socket.sendall(rest)

        self._rest = threading.Thread(target=send, name="elastic-relayed-rest", daemon=True)
        try:
            threads.start(self._rest, patience_s=0.0)
        except threads.NoThread:
            self._rest = None
            self.hang_up()

    def _say(self, *said: protocol.Answer | bytes) -> None:
        try:
            protocol.send(self._socket, *said)
        except protocol.Broken:
            pass  # the reading thread sees it too


def _counters(nodes: list[Node], backend: Backend) -> protocol.Counters:
    read = backend.heartbeats(nodes)
    life = protocol.pair(read.life) if read.life else None
    return protocol.Counters(tuple(read.counters[node] for node in nodes), life)
