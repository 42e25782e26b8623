"""A small web server for people and for monitoring: GET and HEAD only, one thread, bounded on every side.

Anybody may connect, so a client has little time for its request and for taking the answer, and there are _CLIENTS_MAX of
them at most. One path may be a stream of server-sent events. A client of the stream gets the newest event of each name;
one that reads slowly misses those between, and costs no memory.

A page of another site must not read what is served here, also if its name was made to lead to this host (DNS rebinding). So
the Host of a request must be an address or a name of this server; no other site has one of these for its own name.
"""

from __future__ import annotations

import math
import re
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from ipaddress import ip_address

from attrs import define, frozen

from .client_server import REQUEST_MAX, Client, ClientServer

_CLIENTS_MAX = 64
_REQUEST_S = 5.0
"""A client has so long for its request, headers included."""
_ANSWER_S = 30.0
"""A client has so long to take an answer, or an event."""
_SENT_AT_ONCE = 1 << 16
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)
_HEADERS = (
    "Cache-Control: no-store",
    "X-Content-Type-Options: nosniff",
    "X-Frame-Options: DENY",
    "Referrer-Policy: no-referrer",
    "Cross-Origin-Resource-Policy: same-origin",
)


@frozen
class Content:
    """This stands at a path. `policy` is its Content-Security-Policy."""

    kind: str
    body: bytes
    policy: str = "default-src 'none'"


@define(eq=False)
class _Client(Client):
    answered: bool = False
    streams: bool = False
    seen: int = 0
    """The number of the last event that it was given."""
    out: memoryview = memoryview(b"")
    """This is still to be sent."""

    @property
    def gives_way_first(self) -> bool:
        return not self.streams


class WebServer(ClientServer[_Client]):
    """Serves until it is closed. Raises OSError if the port or a thread cannot be had."""

    def __init__(
        self, host: str, port: int, contents: Mapping[str, Callable[[], Content]], stream: str | None = None
    ) -> None:
        """`contents` makes what stands at each path, in the thread of the server. `stream` is the path of the events."""
        self._contents = contents
        self._stream = stream
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}
        self._events: Mapping[str, tuple[int, Callable[[], str]]] = {}
        self._published = 0
        super().__init__(host, port, _CLIENTS_MAX, "elastic-web")

    def publish(self, name: str, data: Callable[[], str]) -> None:
        """Give the stream's clients an event of one line, in the place of the last one of this name. For one thread. `data`
        makes the line when a client is given it, in the thread of the server: a client that comes later too."""
        self._published += 1
        self._events = {**self._events, name: (self._published, data)}
        self._poke()

    # --- the server's thread

    def _client(self, connection: socket.socket) -> _Client:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_ANSWER_S * 1_000))
        return _Client(connection, time.monotonic() + _REQUEST_S)

    def _serve(self, client: _Client, ready: int) -> None:
        try:
            if ready & selectors.EVENT_READ:
                self._read(client)
            if client.out:
                client.out = client.out[client.connection.send(client.out[:_SENT_AT_ONCE]) :]
        except BlockingIOError:
            return
        except OSError:
            self._hang_up(client)

    def _read(self, client: _Client) -> None:
        """Take what the client says. Raises OSError if it has gone."""
        data = client.connection.recv(REQUEST_MAX)
        if not data and not client.out:
            raise ConnectionResetError
        if not data:  # and it still takes its answer
            self._selector.modify(client.connection, selectors.EVENT_WRITE)
        if client.answered:
            return  # one request is all that a client has
        client.request += data
        if len(client.request) > REQUEST_MAX:
            self._answer(client, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif b"\r\n\r\n" in client.request:
            self._take(client)

    def _take(self, client: _Client) -> None:
        _, *headers = client.request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        method, path = client.asked
        if not is_for(headers, self._names):
            self._answer(client, HTTPStatus.MISDIRECTED_REQUEST)
        elif method not in ("GET", "HEAD"):
            self._answer(client, HTTPStatus.METHOD_NOT_ALLOWED)
        elif path == self._stream:
            client.streams = method == "GET"
            self._answer(client, HTTPStatus.OK, Content("text/event-stream", b""))
        elif make := self._contents.get(path):
            try:
                self._answer(client, HTTPStatus.OK, make())
            except Exception as error:  # noqa: BLE001 the client is told; the others are served
                self._answer(client, HTTPStatus.INTERNAL_SERVER_ERROR, _plain(f"{type(error).__name__}: {error}"))
        else:
            self._answer(client, HTTPStatus.NOT_FOUND)

    def _answer(self, client: _Client, status: HTTPStatus, content: Content | None = None) -> None:
        content = content or _plain(status.phrase)
        lines = [
            f"HTTP/1.1 {status.value} {status.phrase}",
            f"Content-Type: {content.kind}; charset=utf-8",
            *([] if client.streams else [f"Content-Length: {len(content.body)}"]),
            *([] if status is not HTTPStatus.METHOD_NOT_ALLOWED else ["Allow: GET, HEAD"]),
            f"Content-Security-Policy: {content.policy}",
            *_HEADERS,
            "Connection: close",
        ]
        head = "\r\n".join((*lines, "", "")).encode()
        client.answered = True
        self._send(client, head if client.request.startswith(b"HEAD ") else head + content.body)

    def _send(self, client: _Client, data: bytes) -> None:
        client.out, client.ends_at = memoryview(data), time.monotonic() + _ANSWER_S
        self._selector.modify(client.connection, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def _end_turn(self, now: float) -> None:
        events = self._events
        for client in list(self._clients.values()):
            if client.ends_at <= now:
                self._hang_up(client)
            elif client.answered and not client.out and client.streams:
                self._feed(client, events)
            elif client.answered and not client.out:
                self._hang_up(client)

    def _feed(self, client: _Client, events: Mapping[str, tuple[int, Callable[[], str]]]) -> None:
        """Give a client of the stream, which has taken all so far, the events that are new to it."""
        new = sorted((number, name, make) for name, (number, make) in events.items() if number > client.seen)
        if new:
            client.seen = new[-1][0]
            self._send(client, "".join(f"event: {name}\ndata: {make()}\n\n" for _, name, make in new).encode())
        elif client.ends_at < math.inf:
            client.ends_at = math.inf
            self._selector.modify(client.connection, selectors.EVENT_READ)


def _plain(text: str) -> Content:
    return Content("text/plain", f"{text}\n".encode())


def is_for(headers: list[str], names: set[str]) -> bool:
    """Return True if the one Host among these headers is an address, or one of these names; its port may be any."""
    hosts = [value.strip() for name, _, value in (line.partition(":") for line in headers) if name.lower() == "host"]
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if match is None:
        return False
    name = match["name"].lower().rstrip(".")
    return name in names or _is_address(name.strip("[]"))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
