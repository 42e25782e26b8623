"""The base of the web server and of the health port: Python's `http.server`, bounded on every side.

Anybody may connect. So each client has a time at which the server hangs up on it, whatever it does. The number of clients is
bounded: one more takes the place of the first one, of those that follow no stream if there are any.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any, TypeAlias

from attrs import define, field

from . import threads

Header: TypeAlias = tuple[str, str]

REQUEST_MAX = 8_192
"""Bytes of a request, its headers included."""
REQUEST_S = 5.0
"""A client has this time for its request, headers included."""
_PAUSE_S = 0.1
"""The pause after a client could not be accepted because no descriptor was free."""
_LOOK_EVERY_S = 0.5
"""The server looks this often for clients whose time is over."""


@define(eq=False)
class Client:
    """A connection. At `ends_at` (monotonic, seconds) the server hangs up on it."""

    connection: socket.socket
    ends_at: float
    gives_way_last: bool = False
    """The client follows a stream: a newcomer takes the place of another one where there is another one."""
    has_ended: bool = field(default=False, init=False)

    def hang_up(self) -> None:
        """End the connection, and with it whatever its thread waits for. From any thread; idempotent."""
        self.has_ended = True
        with suppress(OSError):  # it is closed already
            self.connection.shutdown(socket.SHUT_RDWR)

    def is_over(self, now: float) -> bool:
        """Return True if its time is over, or if it follows a stream and has gone."""
        return now >= self.ends_at or (self.gives_way_last and self._has_gone())

    def _has_gone(self) -> bool:
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True


class BoundedServer(ThreadingHTTPServer):
    """Serves until it is closed, each client in its own thread. Raises OSError if the port or a thread cannot be had.

    Its thread runs as soon as this is made, so a subclass makes its own fields first.
    """

    daemon_threads = True

    def __init__(self, host: str, port: int, answers: type[Answers], clients_max: int, thread: str) -> None:
        """Listen at this host; port 0 is any. `thread` names the thread."""
        super().__init__((host, port), answers, bind_and_activate=False)
        self.socket.close()
        self.socket = listening(host, port)
        self.port: int = self.socket.getsockname()[1]
        self.changed = threading.Condition()
        """Guards what the threads of the clients share, and is notified when that changes."""
        self.clients: dict[socket.socket, Client] = {}
        self.is_closing = False
        self._clients_max = clients_max
        self._thread = threading.Thread(target=self.serve_forever, args=(_LOOK_EVERY_S,), name=thread, daemon=True)
        try:
            threads.start(self._thread)
        except threads.NoThread:
            self.server_close()
            raise

    def close(self) -> None:
        """Serve no longer. Idempotent."""
        if self.is_closing:
            return
        with self.changed:
            self.is_closing = True
            self._hang_up_on([*self.clients.values()])
            self.changed.notify_all()
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the server's thread
        self.shutdown()
        self._thread.join()
        with self.changed:
            self._hang_up_on([*self.clients.values()])  # one that came meanwhile
            self.changed.wait_for(lambda: not self.clients, REQUEST_S)
        self.socket.close()

    # --- called by `socketserver`, in the server's thread

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            if not self.is_closing:  # no descriptor is free, or the client has gone
                time.sleep(_PAUSE_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.changed:
            while len(self.clients) >= self._clients_max and not self.is_closing:
                staying = [client for client in self.clients.values() if not client.has_ended]
                self._hang_up_on(sorted(staying, key=lambda client: client.gives_way_last)[:1])
                self.changed.wait(_PAUSE_S)
            self.clients[request] = Client(request, time.monotonic() + REQUEST_S)
        serving = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        serving.name = f"{self._thread.name}-client"
        try:
            threads.start(serving, given_up=lambda: self.is_closing)
        except threads.NoThread:
            self.shutdown_request(request)

    def service_actions(self) -> None:
        now = time.monotonic()
        with self.changed:
            self._hang_up_on([client for client in self.clients.values() if client.is_over(now)])

    def _hang_up_on(self, clients: list[Client]) -> None:
        for client in clients:
            client.hang_up()
        if clients:
            self.changed.notify_all()

    # --- called by `socketserver`, in a client's thread

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self.changed:
            self.clients.pop(request, None)
            self.changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that has gone, or was hung up on, is no error of the server's."""


class Answers(BaseHTTPRequestHandler):
    """Answers the one request of a client. A subclass has `do_GET`, which `do_HEAD` calls, too."""

    server: BoundedServer
    protocol_version = "HTTP/1.1"
    always: Sequence[Header] = ()
    """Headers of every answer."""

    @property
    def client(self) -> Client:
        """The client that this thread serves."""
        return self.server.clients[self.request]

    @property
    def resource(self) -> str:
        """The path of the request, without the query."""
        return self.path.partition("?")[0]

    def do_GET(self) -> None:
        """Answer the request."""
        raise NotImplementedError

    def setup(self) -> None:
        """Read the request, so much of it as it may have."""
        super().setup()
        self.rfile.close()
        said = b""
        while b"\r\n\r\n" not in said and len(said) <= REQUEST_MAX and (piece := self.request.recv(REQUEST_MAX)):
            said += piece
        self._is_too_long = len(said) > REQUEST_MAX
        self.rfile = BytesIO(said)

    def handle(self) -> None:
        """Answer the request, if it is not too long."""
        if self._is_too_long:
            self.command, self.request_version = "", self.protocol_version
            self.reply(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        else:
            super().handle()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.reply(HTTPStatus.METHOD_NOT_ALLOWED, extra=(("Allow", "GET, HEAD"),))

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_POST

    def reply(
        self, status: HTTPStatus, kind: str = "text/plain", body: bytes | None = b"", extra: Sequence[Header] = ()
    ) -> None:
        """Answer with these headers and this body; None has no length, and the caller sends it."""
        self.send_response_only(status)
        for name, value in (("Content-Type", kind), *extra, *self.always):
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")  # one request is all that a client has
        self.end_headers()
        if body and self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request. Nothing of the request is shown."""
        if self.request_version == "HTTP/0.9":  # it has not said its version, and that one knows no refusal
            self.request_version = "HTTP/1.0"
        self.reply(HTTPStatus(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the first address of this host that can be had. Raises OSError."""
    *others, last = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, _, _, _, address in others:
        with suppress(OSError):
            return socket.create_server(address, family=family)
    return socket.create_server(last[4], family=last[0])
