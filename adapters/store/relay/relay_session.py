"""A client's connection to the relay, and the registers behind it.

A thread of the connection reads its questions and answers them. A second thread answers waits, so that the first one sees
the client go, which ends the wait.

All clients of a register share a few clients of the store: the store's server has a descriptor for each of its connections,
and a node of 8 wrapped ranks has some fifty clients here. One thread per register waits for its next change and wakes all
clients that wait; each then reads the register by itself, so that no answer is older than its question.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias, assert_never

from ....core.backoff import pause_s
from ....core.node import eviction, is_forming
from ....core.rendezvous import (
    FIRST_PAUSE_S,
    RendezvousState,
    Token,
    Violation,
    apply,
    codec,
    verify,
    verify_step,
)
from ....core.world import Node
from ... import threads
from ..port import Backend, Denied, OutOfReach, Shown, StoreError
from . import relay_protocol as protocol

Parties: TypeAlias = Callable[[], Mapping[str, int]]
"""The parties of lost nodes now, each with the last round in which its node may have come. Any thread may ask."""
Awaited: TypeAlias = Callable[[], Mapping[str, int]]
"""How many ranks a first world waits for, of each party. Any thread may ask."""
_SPACES_MAX = 4_096
"""The most registers that one agent keeps open for its workers."""
_CLIENTS_MAX = 2
"""The most clients of the store that the connections to one register share, beside the one that waits."""
_COPY_PAUSE_S = 0.1
"""The pause before a copy is shown again: it will be restored soon."""
_LONGEST_PAUSE_S = 1.0
_EVICTION_TRIES = 30
"""So often the store may leave a question unanswered."""
_LOOK_S = 1.0
"""How soon the number of ranks that a first round waits for is asked for again."""
_JOIN_S = 5.0
"""How long the end of a thread is waited for, whose client is closed."""
_TURN_S = 4.0
"""How long a question waits for those before it. It is shorter than a client waits for its answer."""


class _SharedClient:
    """A client of the store that several connections ask through, one at a time."""

    def __init__(self, backend: Backend, saw: Callable[[RendezvousState], None]) -> None:
        self.backend = backend
        self.users = 0
        self._saw = saw
        self._lock = threading.Lock()
        self._last: tuple[RendezvousState, bytes] | None = None

    def answer(self, question: protocol.Question) -> tuple[protocol.Answer | bytes, ...]:
        """Return the store's answer. Raises codec.Refused for a value that is none."""
        try:
            with self._turn():
                return self._answer(question)
        except StoreError as error:
            return (_failed(error),)

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

    def stands(self, shown: Shown) -> protocol.Stands:
        """Return the answer that shows this register. Its last encoding is kept, because many ask for the same."""
        if shown.state is None:
            return protocol.Stands(None, shown.here)
        last = self._last
        if last is None or last[0] is not shown.state:
            self._saw(shown.state)
            last = self._last = shown.state, codec.encode(shown.state)
        return protocol.Stands(last[1], shown.here)

    def _answer(self, question: protocol.Question) -> tuple[protocol.Answer | bytes, ...]:
        backend = self.backend
        match question:
            case protocol.Get():
                return (self.stands(backend.get()),)
            case protocol.Set(state, token):
                return (self.stands(backend.set(codec.decode(state), protocol.token(token))),)
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
    """A register, and the clients of the store that its connections share."""

    def __init__(self, backend: Backend, saw: Callable[[RendezvousState], None]) -> None:
        self._backend = backend
        self._saw = saw
        self._clients: list[_SharedClient] = []
        self._changed = threading.Condition()
        self._changes = 0
        """Counts what the watching thread has heard."""
        self._watching: Backend | None = None
        self._closed = threading.Event()
        self._evictions: dict[threading.Thread, Backend] = {}
        """The threads that throw ranks out, each with its client of the store."""

    @property
    def lease_s(self) -> float | None:
        return self._backend.lease_s

    def join(self) -> _SharedClient:
        """Return the client of the store for one more connection."""
        if len(self._clients) < _CLIENTS_MAX:
            self._clients.append(_SharedClient(self._backend.clone(), self._saw))
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

    def wait_for_change(self, client: _SharedClient, token: Token | None, until: float, gone: threading.Event) -> Shown:
        """Wait as the port does; also until `gone` is set, which is followed by `wake`."""
        self._watch()
        while True:
            changes = self._changes
            shown = client.get()
            left = until - time.monotonic()
            if not shown.here:
                gone.wait(_COPY_PAUSE_S)
                return shown
            if (shown.state.token if shown.state else None) != token or left <= 0 or gone.is_set():
                return shown
            with self._changed:
                if self._changes == changes and not gone.is_set():
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def evict(self, parties: Parties, me: Node, awaited: Awaited) -> None:
        """Have the ranks of these parties thrown out, by a thread. Returns at once. If the host has no thread for it, the
        silence of their heartbeats does it."""
        with self._changed:
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
                        self._closed.wait(0.0 if shown.here else _COPY_PAUSE_S)
                    else:
                        return
                except StoreError:
                    tries += 1
                    self._closed.wait(pause_s(tries, FIRST_PAUSE_S, _LONGEST_PAUSE_S))
        except Violation:
            return  # a state that is none is nobody's to edit
        finally:
            client.close()
            with self._changed:
                self._evictions.pop(threading.current_thread(), None)

    def close(self) -> None:
        self._closed.set()
        with self._changed:
            watching, evictions = self._watching, dict(self._evictions)
        clients = (*([watching] if watching else ()), *evictions.values(), *(each.backend for each in self._clients))
        for backend in (self._backend, *clients):
            backend.close()
        for thread in evictions:
            thread.join(_JOIN_S)

    def _watch(self) -> None:
        """Start the thread that waits for the register's changes, unless it runs. Raises OutOfReach."""
        with self._changed:
            if self._watching or self._closed.is_set():
                return
            watching = self._backend.clone()
            thread = threading.Thread(target=self._follow, args=(watching,), name="elastic-relay-watch", daemon=True)
            try:
                threads.start(thread)
            except threads.NoThread as error:
                watching.close()
                raise OutOfReach(f"the agent's relay cannot wait now ({error.strerror})") from error
            self._watching = watching

    def _follow(self, watching: Backend) -> None:
        """Tell of each change, and of each failure: then each client asks for itself, and hears of it."""
        token: Token | None = None
        unanswered = 0
        while not self._closed.is_set():
            try:
                shown = watching.wait_for_change(token, math.inf) if token else watching.get()
                if not (token or shown.state):
                    shown = watching.wait_for_change(None, math.inf)
                token, unanswered = shown.state.token if shown.state else None, 0
            except StoreError:
                unanswered += 1
                self._closed.wait(pause_s(unanswered, FIRST_PAUSE_S, _LONGEST_PAUSE_S))
            with self._changed:
                self._changes += 1
                self._changed.notify_all()
        watching.close()


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
        self._gone = threading.Event()
        self._waits: SimpleQueue[protocol.WaitForChange | None] = SimpleQueue()
        self._waiter: threading.Thread | None = None
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
            self._say(_failed(error))
        except (protocol.Broken, codec.Refused):
            pass  # the client has gone, or speaks another language; either way this is its end
        finally:
            self._socket.close()
            self._forget(self)

    def _serve(self, space: _Space, client: _SharedClient) -> None:
        protocol.send(self._socket, protocol.Welcome(space.lease_s))
        while True:
            question = protocol.question(self._socket)
            if not isinstance(question, protocol.WaitForChange):
                protocol.send(self._socket, *client.answer(question))
                continue
            if self._waiter is None and not self._start_waiter(space, client):
                continue
            self._waits.put(question)

    def _start_waiter(self, space: _Space, client: _SharedClient) -> bool:
        """Start the thread that answers waits. If there is none to be had, this wait is answered so."""
        waiter = threading.Thread(target=self._wait, args=(space, client), name="elastic-relayed-wait", daemon=True)
        try:
            threads.start(waiter)
        except threads.NoThread as error:
            self._say(_failed(OutOfReach(f"the agent's relay cannot wait now ({error.strerror})")))
            return False
        self._waiter = waiter
        return True

    def _wait(self, space: _Space, client: _SharedClient) -> None:
        while (question := self._waits.get()) is not None:
            until = time.monotonic() + question.left_s
            try:
                shown = space.wait_for_change(client, protocol.token(question.token), until, self._gone)
                self._say(client.stands(shown))
            except StoreError as error:
                self._say(_failed(error))

    def _stop_waiting(self, space: _Space) -> None:
        self._gone.set()
        space.wake()
        if self._waiter:
            self._waits.put(None)
            self._waiter.join()

    def _say(self, *said: protocol.Answer | bytes) -> None:
        try:
            protocol.send(self._socket, *said)
        except protocol.Broken:
            pass  # the reading thread sees it too


def _failed(error: StoreError) -> protocol.Failed:
    return protocol.Failed(type(error).__name__, str(error))


def _counters(nodes: list[Node], backend: Backend) -> protocol.Counters:
    read = backend.heartbeats(nodes)
    life = protocol.pair(read.life) if read.life else None
    return protocol.Counters(tuple(read.counters[node] for node in nodes), life)
