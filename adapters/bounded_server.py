"""The web server and the health port share this: one thread listens, and serves a bounded number of clients.

Anybody may connect. So each client has a time at which it is hung up on, whatever it does, and there are at most so many of
them: one more takes the place of the one that came first, of those that give way first if there is one.
"""

from __future__ import annotations

import math
import selectors
import socket
import threading
import time
from contextlib import suppress
from typing import Generic, TypeVar

from attrs import define

from . import threads

REQUEST_MAX = 8_192
"""Bytes of a request, its headers included."""
_PAUSE_S = 0.1
"""The pause after a client could not be taken because no descriptor was free."""


@define(eq=False)
class Client:
    """A connection, and what its client has asked so far. At `ends_at` it is hung up on."""

    connection: socket.socket
    ends_at: float
    request: bytes = b""

    @property
    def gives_way_first(self) -> bool:
        """True if another client takes the place of this one rather than of one that does not."""
        return True

    @property
    def asked(self) -> tuple[str, str]:
        """The method and the path of its request, without the query."""
        method, _, rest = self.request.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        return method, rest.partition(" ")[0].partition("?")[0]


C = TypeVar("C", bound=Client)


class ClientServer(Generic[C]):
    """Serves until it is closed. Raises OSError if the port or a thread cannot be had.

    The thread runs as soon as this is made, so a subclass makes its own fields first.
    """

    def __init__(self, host: str, port: int, clients_max: int, thread: str) -> None:
        """Listen at this host; port 0 is any. `thread` names the thread."""
        self._clients: dict[int, C] = {}
        self._clients_max = clients_max
        self._listening = listening(host, port)
        self.port: int = self._listening.getsockname()[1]
        self._woken, self._wake = socket.socketpair()
        self._over = False
        self._selector = selectors.DefaultSelector()
        for each in (self._listening, self._woken, self._wake):
            each.setblocking(False)
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name=thread, daemon=True)
        try:
            threads.start(self._thread)
        except threads.NoThread:
            self._release()
            raise

    def close(self) -> None:
        """Serve no longer. Idempotent."""
        if not self._over:
            self._over = True
            self._poke()
            self._thread.join()
            self._release()

    def _poke(self) -> None:
        """Let the server's thread make a turn. From any thread."""
        with suppress(OSError):  # full, so the server wakes up anyway; or closed
            self._wake.send(b"\0")

    def _release(self) -> None:
        for client in list(self._clients.values()):
            client.connection.close()
        for each in (self._listening, self._woken, self._wake, self._selector):
            each.close()

    # --- what a server says of its clients, in the server's thread

    def _client(self, connection: socket.socket) -> C:
        """Return the client of a new connection."""
        raise NotImplementedError

    def _serve(self, client: C, ready: int) -> None:
        """Read from a client, or write to it."""
        raise NotImplementedError

    def _end_turn(self, now: float) -> None:
        """Answer the clients for whom there is an answer; hang up on those whose time is over."""
        raise NotImplementedError

    # --- the server's thread

    def _run(self) -> None:
        while not self._over:
            for key, ready in self._selector.select(self._timeout_s()):
                if key.fileobj is self._listening:
                    self._accept()
                elif key.fileobj is self._woken:
                    self._woken.recv(4_096)
                elif client := self._clients.get(key.fd):
                    self._serve(client, ready)
            self._end_turn(time.monotonic())

    def _timeout_s(self) -> float | None:
        end = min((client.ends_at for client in self._clients.values()), default=math.inf)
        return max(end - time.monotonic(), 0.0) if end < math.inf else None

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor for it now
            time.sleep(_PAUSE_S)
            return
        connection.setblocking(False)
        if len(self._clients) >= self._clients_max:
            clients = self._clients.values()
            self._hang_up(next((client for client in clients if client.gives_way_first), next(iter(clients))))
        self._clients[connection.fileno()] = self._client(connection)
        self._selector.register(connection, selectors.EVENT_READ)

    def _hang_up(self, client: C) -> None:
        del self._clients[client.connection.fileno()]
        with suppress(KeyError):  # a client that has said all is watched no more
            self._selector.unregister(client.connection)
        with suppress(OSError):
            client.connection.shutdown(socket.SHUT_WR)
        client.connection.close()


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the first address of this host that can be had. Raises OSError."""
    *others, last = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, _, _, _, address in others:
        with suppress(OSError):
            return socket.create_server(address, family=family)
    return socket.create_server(last[4], family=last[0])
