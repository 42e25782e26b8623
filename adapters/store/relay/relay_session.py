"""A client's connection to the relay, and the registers behind it.

A thread of the connection reads its questions and answers them. All clients of a register share a few clients of the store:
the store's server has a descriptor for each of its connections, and a node of 8 wrapped ranks has some fifty clients here.
"""

from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar, assert_never

from ....core.rendezvous import RendezvousState, codec
from ....core.world import Node
from ... import threads
from ...clock import poll_ms
from .. import notes
from ..note_codec import fits
from ..port import Backend, Denied, OutOfReach, Place, Shown, StoreError
from . import relay_protocol as protocol
from .peers import peer_user
from .relay_waits import Encoded, Wait, Waits, failed

if TYPE_CHECKING:
    from .relay_server import OwnJob

Follow: TypeAlias = Callable[[Backend], Callable[[], None]]
"""Follow the register of this client, until what is returned is called."""
_Found = TypeVar("_Found")
_OWN = ""
"""The agents' own register, among the spaces. A client's space has a name."""
_SPACES_MAX = 4_096
"""The most registers that one agent keeps open for its workers."""
_CLIENTS_MAX = 2
"""The most clients of the store that the connections to one register share, beside the one that waits."""
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
        """Return the store's answer. Raises codec.Refused for a state that is none, and Broken for a bad record."""
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
            case protocol.Put(place, data):
                backend.put(_fitting(place, data), data)
                return (protocol.Noted(),)
            case protocol.Count(tally, place, data, over):
                return (protocol.Counted(backend.count(tally, _fitting(place, data), data, over)),)
            case protocol.Read(places, log):
                return _records([_known(notes.place, *each) for each in places], log, backend)
            case protocol.Drop(places):
                backend.drop([_known(notes.place, *each) for each in places])
                return (protocol.Noted(),)
            case other:
                assert_never(other)


class _Space:
    """A register, the clients of the store that its connections share, and those who wait for its next change."""

    def __init__(self, backend: Backend, saw: Callable[[RendezvousState], None], follow: Follow) -> None:
        self._backend = backend
        self._encoded = Encoded(saw)
        self._clients: list[_SharedClient] = []
        self.waits = Waits(backend, self._encoded)
        self._unfollow = follow(backend)

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

    def close(self) -> None:
        self.waits.close()
        for backend in (self._backend, *(each.backend for each in self._clients)):
            backend.close()
        self._unfollow()


class Spaces:
    """The registers to which some client is connected."""

    def __init__(self, open_space: Callable[[str], Backend], follow: Follow, own: OwnJob | None = None) -> None:
        self._open_space = open_space
        self._follow = follow
        self._own = own
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._of: dict[str, _Space] = {}
        self._restarts: dict[str, int] = {}

    def join(self, name: str) -> tuple[_Space, _SharedClient]:
        """Return the register `name`, and the client of the store for one more connection to it. Raises StoreError."""
        with self._lock:
            if name not in self._of:
                if len(self._of) >= _SPACES_MAX:
                    raise Denied(f"the agent keeps {_SPACES_MAX} registers for its workers and no more")
                self._of[name] = self._opened(name)
            return self._of[name], self._of[name].join()

    def own(self, asker: socket.socket) -> OwnJob:
        """Return the agents' job, for this user's processes and root's. Raises Denied for others."""
        if self._own is None or peer_user(asker) not in (os.geteuid(), 0):
            raise Denied("this agent answers nothing about its job")
        return self._own

    def _opened(self, name: str) -> _Space:
        if name == _OWN:
            assert self._own
            return _Space(self._own.open(), lambda state: None, lambda backend: lambda: None)
        return _Space(self._open_space(name), partial(self._saw, name), self._follow)

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
            name, job = self._greeted()
            space, client = self._spaces.join(name)
            try:
                protocol.send(self._socket, protocol.Welcome(space.lease_s, job))
                self._serve(space, client)
            finally:
                self._stop_waiting(space)
                self._spaces.part(name, client)
        except StoreError as error:
            self._say(failed(error))
        except (protocol.Broken, codec.Refused, ImportError, OSError):
            pass  # the client has gone, or speaks another language, or this host lacks a descriptor: this is its end
        finally:
            self._socket.close()
            self._forget(self)

    def _greeted(self) -> tuple[str, tuple[str, str] | None]:
        """Return the name of the register that is asked for, and the agents' job if it is theirs. Raises Denied."""
        first = protocol.hello(self._socket)
        if isinstance(first, protocol.Hello):
            return first.space, None
        own = self._spaces.own(self._socket)
        return _OWN, (own.run_id, own.store)

    def _serve(self, space: _Space, client: _SharedClient) -> None:
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


def _records(places: list[Place], name: str | None, backend: Backend) -> tuple[protocol.Answer | bytes, ...]:
    """Return the records there. A value that is too long for its folder is left out: no client would take the answer."""
    log = _known(notes.log, name) if name else None
    found, tail = backend.read(places, log)
    at = tuple(number for number, place in enumerate(places) if place in found and fits(place.folder, found[place]))
    fitting = [data for data in tail if log and fits(log, data)]
    return (protocol.Records(at, len(fitting)), *(found[places[number]] for number in at), *fitting)


def _fitting(names: tuple[str, str], data: bytes) -> Place:
    """Return the place of these names. Raises Broken if there is none, or if the data is too long for it."""
    place = _known(notes.place, *names)
    if not fits(place.folder, data):
        raise protocol.Broken(f"{len(data)} bytes, too long for a record of {place.folder.name}")
    return place


def _known(find: Callable[..., _Found], *names: str) -> _Found:
    """Return what these names name. Raises Broken if there is no such folder."""
    try:
        return find(*names)
    except KeyError as error:
        raise protocol.Broken(f"there is no folder {error}") from error
