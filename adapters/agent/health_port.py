"""A liveness probe of the agent by HTTP (TORCHELASTIC_HEALTH_CHECK_PORT).

torch's agent leaves this to a plugin. Here each request is put to the agent's own thread, which sleeps in its inbox. The
answer is 200 if that thread has answered within the last _ALIVE_S, else 503.

Anybody may connect, so one thread serves all: of clients at most _CLIENTS_MAX, each for at most _CLIENT_S, after which it is
hung up on whatever it does. One more client takes the place of the one that came first.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from attrs import define

from .. import threads
from ..web_server import listening

PATHS = ("/", "/health", "/healthz", "/livez")
_ALIVE_S = 60.0
"""The agent's thread may be silent for so long, as with torch's health check."""
_ANSWER_S = 0.5
"""A request waits so long for the agent; Kubernetes waits for 1 s."""
_CLIENT_S = 5.0
_CLIENTS_MAX = 16
_REQUEST_MAX = 8_192
"""Bytes of a request, its headers included."""
_PAUSE_S = 0.1
"""The pause after a client could not be taken, for want of a descriptor."""


@define(eq=False)
class _Client:
    connection: socket.socket
    ends_at: float
    asked_at: float | None = None
    """When the agent was asked on its behalf."""
    request: bytes = b""


class HealthServer:
    """Serves until it is closed. `ask(answered)` puts the question to the agent, which calls `answered`. Raises OSError if
    the port or a thread cannot be had."""

    def __init__(
        self,
        port: int,
        ask: Callable[[Callable[[], None]], None],
        alive_s: float = _ALIVE_S,
        clock: Callable[[], float] = time.monotonic,
        host: str = "127.0.0.1",
    ) -> None:
        self._ask = ask
        self._alive_s = alive_s
        self._clock = clock
        self._answered_at = clock()
        self._clients: dict[int, _Client] = {}
        self._listening = listening(host, port)
        self.port: int = self._listening.getsockname()[1]
        self._woken, self._wake = socket.socketpair()
        self._over = False
        self._selector = selectors.DefaultSelector()
        for each in (self._listening, self._woken, self._wake):
            each.setblocking(False)
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="elastic-health", daemon=True)
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

    def _release(self) -> None:
        for client in list(self._clients.values()):
            client.connection.close()
        for each in (self._listening, self._woken, self._wake, self._selector):
            each.close()

    # --- the agent's thread

    def _answered(self) -> None:
        self._answered_at = self._clock()
        self._poke()

    def _poke(self) -> None:
        with suppress(OSError):  # full, so the server wakes up anyway; or closed
            self._wake.send(b"\0")

    # --- the server's thread

    def _run(self) -> None:
        while not self._over:
            for key, _ in self._selector.select(self._timeout_s()):
                if key.fileobj is self._listening:
                    self._accept()
                elif key.fileobj is self._woken:
                    self._woken.recv(4_096)
                elif client := self._clients.get(key.fd):
                    self._read(client)
            self._answer_and_end()

    def _timeout_s(self) -> float | None:
        now = time.monotonic()
        return min((max(client.ends_at - now, 0.0) for client in self._clients.values()), default=None)

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor for it now
            time.sleep(_PAUSE_S)
            return
        connection.setblocking(False)
        while len(self._clients) >= _CLIENTS_MAX:
            self._hang_up(next(iter(self._clients.values())))
        self._clients[connection.fileno()] = _Client(connection, time.monotonic() + _CLIENT_S)
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, client: _Client) -> None:
        try:
            data = client.connection.recv(_REQUEST_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.request += data
        if not data or len(client.request) > _REQUEST_MAX:
            self._hang_up(client)
        elif client.asked_at is None and b"\r\n\r\n" in client.request:
            self._take(client)

    def _take(self, client: _Client) -> None:
        method, _, rest = client.request.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method not in ("GET", "HEAD"):
            self._reply(client, HTTPStatus.METHOD_NOT_ALLOWED, {})
        elif path not in PATHS:
            self._reply(client, HTTPStatus.NOT_FOUND, {})
        else:
            client.asked_at = self._clock()
            client.ends_at = time.monotonic() + _ANSWER_S
            self._ask(self._answered)

    def _answer_and_end(self) -> None:
        now = time.monotonic()
        for client in list(self._clients.values()):
            if client.asked_at is not None and (self._answered_at >= client.asked_at or client.ends_at <= now):
                silent_s = 0.0 if self._answered_at >= client.asked_at else self._clock() - self._answered_at
                alive = silent_s <= self._alive_s
                status = HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE
                self._reply(client, status, {"alive": alive, "silent_s": round(silent_s, 1)})
            elif client.ends_at <= now:
                self._hang_up(client)

    def _reply(self, client: _Client, status: HTTPStatus, content: dict[str, object]) -> None:
        """Answer and hang up. The answer is short: what the kernel does not take at once is for nobody."""
        body = json.dumps(content).encode() if content else b""
        head = (
            f"HTTP/1.0 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        with suppress(OSError):
            client.connection.send(head.encode() + (b"" if client.request.startswith(b"HEAD ") else body))
        self._hang_up(client)

    def _hang_up(self, client: _Client) -> None:
        del self._clients[client.connection.fileno()]
        self._selector.unregister(client.connection)
        with suppress(OSError):
            client.connection.shutdown(socket.SHUT_WR)
        client.connection.close()
