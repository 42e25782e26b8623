"""A small web server for people and for monitoring: GET and HEAD only, bounded on every side (`bounded_server.py`).

One path may be a stream of server-sent events. A client of the stream gets the newest event of each name; one that reads
slowly misses those between, and costs no memory.

A page of another site must not read what is served here, also if its name was made to lead to this host (DNS rebinding). So
the Host of a request must be an address or a name of this server; no other site has one of these for its own name.
"""

from __future__ import annotations

import math
import re
import socket
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from ipaddress import ip_address

from ..core.values import frozen
from .bounded_server import Answers, BoundedServer

_CLIENTS_MAX = 64
_ANSWER_S = 30.0
"""A client has this time to take an answer, or an event."""
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)
_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


@frozen
class Content:
    """The content at a path. `policy` is its Content-Security-Policy."""

    kind: str
    body: bytes
    policy: str = "default-src 'none'"


class WebServer(BoundedServer):
    """Serves until it is closed. Raises OSError if the port or a thread cannot be had."""

    def __init__(
        self, host: str, port: int, contents: Mapping[str, Callable[[], Content]], stream: str | None = None
    ) -> None:
        """`contents` makes the content of each path, in the thread of a client. `stream` is the path of the events."""
        self.contents = contents
        self.stream = stream
        self.names = {"localhost", host.lower(), socket.gethostname().lower()}
        self.events: Mapping[str, tuple[int, Callable[[], str]]] = {}
        self._published = 0
        super().__init__(host, port, _WebAnswers, _CLIENTS_MAX, "elastic-web")

    def publish(self, name: str, data: Callable[[], str]) -> None:
        """Give the stream's clients an event of one line, in the place of the last one of this name. For one thread. `data`
        makes the line when a client is given it, in the thread of that client: a client that comes later too."""
        self._published += 1
        with self.changed:
            self.events = {**self.events, name: (self._published, data)}
            self.changed.notify_all()


class _WebAnswers(Answers):
    server: WebServer
    always = _HEADERS

    def setup(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_ANSWER_S * 1_000))
        super().setup()

    def do_GET(self) -> None:
        self.client.ends_at = time.monotonic() + _ANSWER_S
        if not is_for([f"Host: {host}" for host in self.headers.get_all("Host", [])], self.server.names):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST)
        elif self.resource == self.server.stream:
            self._follow()
        elif make := self.server.contents.get(self.resource):
            try:
                content = make()
            except Exception as error:  # noqa: BLE001 the client is told; the others are served
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, _plain(f"{type(error).__name__}: {error}"))
            else:
                self._answer(HTTPStatus.OK, content)
        else:
            self._answer(HTTPStatus.NOT_FOUND)

    def _answer(self, status: HTTPStatus, content: Content | None = None) -> None:
        content = content or _plain(status.phrase)
        self._reply(status, content, content.body)

    def _reply(self, status: HTTPStatus, content: Content, body: bytes | None) -> None:
        self.reply(status, f"{content.kind}; charset=utf-8", body, (("Content-Security-Policy", content.policy),))

    def _follow(self) -> None:
        """Give the client of the stream each time the events that are new to it, until it goes."""
        client, seen = self.client, 0
        client.gives_way_last = self.command != "HEAD"
        self._reply(HTTPStatus.OK, Content("text/event-stream", b""), None)
        while client.gives_way_last and not client.has_ended:
            new = sorted((number, name, make) for name, (number, make) in self.server.events.items() if number > seen)
            if new:
                client.ends_at, seen = time.monotonic() + _ANSWER_S, new[-1][0]
                self.wfile.write("".join(f"event: {name}\ndata: {make()}\n\n" for _, name, make in new).encode())
            else:
                client.ends_at = math.inf
                self._wait(seen)

    def _wait(self, seen: int) -> None:
        client, server = self.client, self.server
        with server.changed:
            server.changed.wait_for(
                lambda: client.has_ended or any(number > seen for number, _ in server.events.values())
            )


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
