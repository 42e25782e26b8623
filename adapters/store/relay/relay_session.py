"""A client's connection to the relay, and the registers behind it.

A thread of the connection reads its questions and answers them. A second thread answers waits, so that the first one sees
the client go: it then closes the wait's own client of the store, which ends the wait.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import assert_never

from ....core.rendezvous import RendezvousState, codec
from ....core.world import Node
from ..port import Backend, Denied, Shown, StoreError
from . import relay_protocol as protocol

_SPACES_MAX = 4_096
"""The most registers that one agent opens for its workers."""


class _Space:
    """A register and its last encoding, which is kept because all who wait for it are told the same."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._last: tuple[RendezvousState, bytes] | None = None

    def encoded(self, state: RendezvousState) -> bytes:
        last = self._last
        if last is None or last[0] is not state:
            last = self._last = state, codec.encode(state)
        return last[1]


class Spaces:
    """The registers that some client has asked for."""

    def __init__(self, open_space: Callable[[str], Backend]) -> None:
        self._open_space = open_space
        self._lock = threading.Lock()
        self._of: dict[str, _Space] = {}

    def space(self, name: str) -> _Space:
        """Raises StoreError."""
        with self._lock:
            if name not in self._of:
                if len(self._of) >= _SPACES_MAX:
                    raise Denied(f"the agent keeps {_SPACES_MAX} registers for its workers and no more")
                self._of[name] = _Space(self._open_space(name))
            return self._of[name]

    def close(self) -> None:
        with self._lock:
            for space in self._of.values():
                space.backend.close()


class Connection:
    """A connection of one client to one register. `forget` is called when it is over."""

    def __init__(self, accepted: socket.socket, spaces: Spaces, forget: Callable[[Connection], None]) -> None:
        self._socket = accepted
        self._spaces = spaces
        self._forget = forget
        self._waits: SimpleQueue[protocol.WaitForChange | None] = SimpleQueue()
        self._waiter: tuple[threading.Thread, Backend] | None = None
        self._thread = threading.Thread(target=self._run, name="elastic-relayed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        self._hang_up()
        self._thread.join(timeout_s)

    def _hang_up(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it had ended already

    def _run(self) -> None:
        backend: Backend | None = None
        try:
            space = self._spaces.space(protocol.hello(self._socket).space)
            backend = space.backend.clone()
            protocol.send(self._socket, protocol.Welcome(backend.lease_s))
            while True:
                self._take(protocol.question(self._socket), space, backend)
        except StoreError as error:
            self._say(_failed(error))
        except (protocol.Broken, codec.Refused):
            pass  # the client has gone, or speaks another language; either way this is its end
        finally:
            self._end(backend)

    def _take(self, question: protocol.Question, space: _Space, backend: Backend) -> None:
        if not isinstance(question, protocol.WaitForChange):
            protocol.send(self._socket, *answers(question, space, backend))
            return
        if self._waiter is None:
            waiting = backend.clone()
            thread = threading.Thread(
                target=self._wait, args=(space, waiting), name="elastic-relayed-wait", daemon=True
            )
            self._waiter = thread, waiting
            thread.start()
        self._waits.put(question)

    def _wait(self, space: _Space, waiting: Backend) -> None:
        while (question := self._waits.get()) is not None:
            self._say(*answers(question, space, waiting))

    def _say(self, *said: protocol.Answer | bytes) -> None:
        try:
            protocol.send(self._socket, *said)
        except protocol.Broken:
            pass  # the reading thread sees it too

    def _end(self, backend: Backend | None) -> None:
        if self._waiter:
            thread, waiting = self._waiter
            self._waits.put(None)
            waiting.close()
            thread.join()
        if backend:
            backend.close()
        self._socket.close()
        self._forget(self)


def answers(question: protocol.Question, space: _Space, backend: Backend) -> tuple[protocol.Answer | bytes, ...]:
    """Return the store's answer. Raises codec.Refused for a value that is none."""
    try:
        return _answers(question, space, backend)
    except StoreError as error:
        return (_failed(error),)


def _failed(error: StoreError) -> protocol.Failed:
    return protocol.Failed(type(error).__name__, str(error))


def _answers(question: protocol.Question, space: _Space, backend: Backend) -> tuple[protocol.Answer | bytes, ...]:
    match question:
        case protocol.Get():
            return (_stands(space, backend.get()),)
        case protocol.Set(state, token):
            return (_stands(space, backend.set(codec.decode(state), protocol.token(token))),)
        case protocol.WaitForChange(token, left_s):
            return (_stands(space, backend.wait_for_change(protocol.token(token), time.monotonic() + left_s)),)
        case protocol.Heartbeat(node, counter):
            life = backend.heartbeat(protocol.node(node), counter)
            return (protocol.Heard(protocol.pair(life) if life else None, backend.lease_s),)
        case protocol.ReadHeartbeats(nodes):
            return (_counters([protocol.node(pair) for pair in nodes], backend),)
        case protocol.RemoveHeartbeat(node):
            backend.remove_heartbeat(protocol.node(node))
            return (protocol.Noted(),)
        case protocol.PutWish(pair, wish):
            return (protocol.Wished(backend.put_wish(protocol.node(pair), codec.decode_wish(wish))),)
        case protocol.ReadWishes(nodes):
            wishes = backend.wishes([protocol.node(pair) for pair in nodes])
            return (protocol.Wishes(tuple(map(protocol.node_pair, wishes))), *map(codec.encode_wish, wishes.values()))
        case protocol.PutFault(fault):
            backend.put_fault(codec.decode_fault(fault))
            return (protocol.Noted(),)
        case protocol.Faults():
            faults = backend.faults()
            return (protocol.Records(len(faults)), *map(codec.encode_fault, faults))
        case other:
            assert_never(other)


def _stands(space: _Space, shown: Shown) -> protocol.Stands:
    return protocol.Stands(space.encoded(shown.state) if shown.state else None, shown.here)


def _counters(nodes: list[Node], backend: Backend) -> protocol.Counters:
    read = backend.heartbeats(nodes)
    life = protocol.pair(read.life) if read.life else None
    return protocol.Counters(tuple(read.counters[node] for node in nodes), life)
