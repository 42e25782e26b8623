"""The backend of a worker and of its monitor process: the agent's store, through the agent's relay.

Each client has one socket. The first question connects it, and so does the next question after it broke. It asks one
question at a time, and imports neither torch nor the client of a store.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ....core.rendezvous import RendezvousState, Token, codec
from ....core.world import Life, Node
from ...clock import Clock
from ..notes import Notes
from ..port import Denied, Found, Heartbeats, Log, OutcomeUnknown, OutOfReach, Place, Shown, StoreError, Unreadable
from . import relay_protocol as protocol
from .peers import peer_process, peer_user

TIMEOUT_S = 10.0
"""How long an answer may take; the agent's store may be slow."""

LONG_S = 1e6
"""A wait of this many seconds or more has no time limit on the socket."""

_Answered = TypeVar("_Answered")
_ERRORS = {error.__name__: error for error in (OutOfReach, Denied, OutcomeUnknown, Unreadable)}


class RelayBackend:
    """A client of one register (space) of the relay; without a space of the agents' own, for somebody who asks about it."""

    heard = None
    """Nobody asks a rank anything."""

    def __init__(
        self, path: str, space: str | None, clock: Clock, timeout_s: float = TIMEOUT_S, rest_s: float = 0.0
    ) -> None:
        """With `rest_s` a wait is answered this long after a change, by what stands then: a restart makes several."""
        self._path = path
        self._space = space
        self._clock = clock
        self._timeout_s = timeout_s
        self._rest_s = rest_s
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._closed = False
        self._lease_s: float | None = None
        self._job: tuple[str, str] | None = None
        self._shown = Shown(None)
        self.notes = Notes(self)

    @property
    def lease_s(self) -> float | None:
        return self._lease_s

    def job(self) -> tuple[str, str]:
        """Return the run id of the agents' job, and the name of its store. Raises StoreError."""
        with self._asking():
            if self._job is None:
                raise Unreadable(self._text("an answer to another question"))
            return self._job

    def process(self) -> int:
        """Return the agent's process; 0 if it cannot be seen from here. Raises StoreError."""
        with self._asking() as connection:
            return peer_process(connection)

    def get(self) -> Shown:
        return self._saw(self._ask(protocol.Get(), protocol.Stands))

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        return self._saw(self._ask(protocol.Set(codec.encode(state), protocol.named(token)), protocol.Stands))

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        try:
            if self._token() != token or token is None:
                self.get()
            left = until - self._clock.now()
            if self._token() != token or left <= 0:
                return self._shown
            question = protocol.WaitForChange(protocol.named(token), left, self._rest_s)
            return self._saw(self._ask(question, protocol.Stands, left))
        except OutOfReach:
            if not self._closed:
                raise
            return self._shown

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        heard = self._ask(protocol.Heartbeat(protocol.node_pair(node), counter), protocol.Heard)
        self._lease_s = heard.lease_s
        return Life(*heard.life) if heard.life else None

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        asked = tuple(nodes)
        read = self._ask(protocol.ReadHeartbeats(tuple(map(protocol.node_pair, asked))), protocol.Counters)
        if len(read.counters) != len(asked):
            raise Unreadable(self._text("an answer to another question"))
        return Heartbeats(dict(zip(asked, read.counters, strict=True)), Life(*read.life) if read.life else None)

    def remove_heartbeat(self, node: Node) -> None:
        self._ask(protocol.RemoveHeartbeat(protocol.node_pair(node)), protocol.Noted)

    def put(self, place: Place, data: bytes) -> None:
        self._ask(protocol.Put(place.named, data), protocol.Noted)

    def count(self, tally: str, place: Place, data: bytes, over: str = "") -> int:
        return self._ask(protocol.Count(tally, place.named, data, over), protocol.Counted).count

    def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
        those = tuple(places)
        question = protocol.Read(tuple(place.named for place in those), log.name if log else None)
        with self._asking() as connection:
            protocol.send(connection, question)
            records = self._answer(connection, protocol.Records)
            if any(each >= len(those) for each in records.at):
                raise protocol.Broken("an answer to another question")
            found = {those[each]: protocol.record(connection) for each in records.at}
            return found, [protocol.record(connection) for _ in range(records.tail)]

    def drop(self, places: Iterable[Place]) -> None:
        self._ask(protocol.Drop(tuple(place.named for place in places)), protocol.Noted)

    def clone(self) -> RelayBackend:
        return RelayBackend(self._path, self._space, self._clock, self._timeout_s, self._rest_s)

    def close(self) -> None:
        self._closed = True
        if connection := self._socket:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it had ended already
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    # --- the connection

    def _ask(self, question: protocol.Question, kind: type[_Answered], left_s: float = 0.0) -> _Answered:
        """Ask and return the answer, which may take `left_s` longer than others."""
        with self._asking(isinstance(question, protocol.Set | protocol.Put | protocol.Count)) as connection:
            connection.settimeout(left_s + self._timeout_s if left_s < LONG_S else None)
            protocol.send(connection, question)
            return self._answer(connection, kind)

    def _answer(self, connection: socket.socket, kind: type[_Answered]) -> _Answered:
        answer = protocol.answer(connection)
        if isinstance(answer, protocol.Failed):
            raise _ERRORS.get(answer.kind, OutOfReach)(answer.text)
        if not isinstance(answer, kind):
            raise protocol.Broken(f"an answer to another question: {type(answer).__name__}")
        return answer

    @contextmanager
    def _asking(self, writes: bool = False) -> Iterator[socket.socket]:
        """Yield an open connection, and raise the socket's errors as errors of the port."""
        with self._lock:
            connection = self._connected()
            try:
                yield connection
            except protocol.Broken as error:
                self._drop()
                if writes:
                    raise OutcomeUnknown(self._text(f"it did not say whether it wrote: {error}")) from error
                raise OutOfReach(self._text(str(error))) from error
            finally:
                if self._closed:
                    self._drop()

    def _connected(self) -> socket.socket:
        """Return the open connection. Raises StoreError."""
        if self._closed:
            raise OutOfReach(self._text("this client is closed"))
        if self._socket is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket = connection
            try:
                connection.settimeout(self._timeout_s)
                connection.connect(self._path)
                if self._closed:  # `close` may have come before there was a connection that it could break
                    raise protocol.Broken("this client is closed")
                self._greet(connection)
            except (OSError, StoreError) as error:
                self._drop()
                if isinstance(error, StoreError):
                    raise
                raise OutOfReach(self._text(error.strerror or str(error))) from error
        return self._socket

    def _greet(self, connection: socket.socket) -> None:
        """Say what is asked for. What somebody else's process answers is not believed."""
        if self._space is None and peer_user(connection) != os.geteuid():
            raise Denied(self._text("another user's process listens there"))
        protocol.send(connection, protocol.Ask() if self._space is None else protocol.Hello(self._space))
        welcome = self._answer(connection, protocol.Welcome)
        self._lease_s, self._job = welcome.lease_s, welcome.job

    def _drop(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None

    # --- values

    def _saw(self, stands: protocol.Stands) -> Shown:
        try:
            state = None if stands.state is None else codec.decode(stands.state)
        except codec.Refused as error:
            raise Unreadable(self._text(str(error))) from error
        if state is None or state != self._shown.state or stands.here != self._shown.here:
            self._shown = Shown(state, stands.here)
        return self._shown

    def _token(self) -> Token | None:
        return self._shown.state.token if self._shown.state else None

    def _text(self, reason: str) -> str:
        return f"no answer from the agent's relay at {self._path} ({reason}): the agent, `elastic launch`, must live"
