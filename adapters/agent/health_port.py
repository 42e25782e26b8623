"""A liveness probe of the agent by HTTP (TORCHELASTIC_HEALTH_CHECK_PORT).

torch's agent leaves this to a plugin. Here each request is put to the agent's own thread, which sleeps in its inbox. The
answer is 200 if that thread has answered within the last _ALIVE_S, else 503.

Anybody may connect, so one thread serves all: of clients at most _CLIENTS_MAX, each for at most _CLIENT_S, after which it is
hung up on whatever it does. One more client takes the place of the one that came first.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from attrs import define

from ..client_server import REQUEST_MAX, Client, ClientServer

PATHS = ("/", "/health", "/healthz", "/livez")
_ALIVE_S = 60.0
"""The agent's thread may be silent for so long, as with torch's health check."""
_ANSWER_S = 0.5
"""A request waits so long for the agent; Kubernetes waits for 1 s."""
_CLIENT_S = 5.0
_CLIENTS_MAX = 16


@define(eq=False)
class _Client(Client):
    asked_at: float | None = None
    """When the agent was asked on its behalf."""


class HealthServer(ClientServer[_Client]):
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
        super().__init__(host, port, _CLIENTS_MAX, "elastic-health")

    # --- the agent's thread

    def _answered(self) -> None:
        self._answered_at = self._clock()
        self._poke()

    # --- the server's thread

    def _client(self, connection: socket.socket) -> _Client:
        return _Client(connection, time.monotonic() + _CLIENT_S)

    def _serve(self, client: _Client, ready: int) -> None:
        try:
            data = client.connection.recv(REQUEST_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.request += data
        if not data and client.asked_at is not None:  # it has said all, and may still wait for its answer
            self._selector.unregister(client.connection)
        elif not data or len(client.request) > REQUEST_MAX:
            self._hang_up(client)
        elif client.asked_at is None and b"\r\n\r\n" in client.request:
            self._take(client)

    def _take(self, client: _Client) -> None:
        method, path = client.asked
        if method not in ("GET", "HEAD"):
            self._reply(client, HTTPStatus.METHOD_NOT_ALLOWED, {})
        elif path not in PATHS:
            self._reply(client, HTTPStatus.NOT_FOUND, {})
        else:
            client.asked_at = self._clock()
            client.ends_at = time.monotonic() + _ANSWER_S
            self._ask(self._answered)

    def _end_turn(self, now: float) -> None:
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
