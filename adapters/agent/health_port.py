"""A liveness probe of the agent by HTTP (TORCHELASTIC_HEALTH_CHECK_PORT).

torch's agent leaves this to a plugin. Here each request is put to the agent's own thread, which sleeps in its inbox. The
answer is 200 if that thread has answered within the last _ALIVE_S, else 503.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_ALIVE_S = 60.0
"""The agent's thread may be silent for so long, as with torch's health check."""
_ANSWER_S = 0.5
"""A request waits so long for the agent; Kubernetes waits for 1 s."""


class HealthServer:
    """Serves until it is closed. `ask(answered)` puts the question to the agent, which calls `answered`. Raises OSError if
    the port cannot be had."""

    def __init__(
        self,
        port: int,
        ask: Callable[[Callable[[], None]], None],
        alive_s: float = _ALIVE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._alive_s = alive_s
        self._clock = clock
        self._answered_at = clock()
        self._changed = threading.Condition()
        self._server = _Server(("", port), self._handler())
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="elastic-health", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def silent_s(self) -> float:
        """Ask the agent, and return for how long it has not answered: 0 if it does now."""
        asked_at = self._clock()
        self._ask(self._answered)
        with self._changed:
            self._changed.wait_for(lambda: self._answered_at >= asked_at, _ANSWER_S)
            return 0.0 if self._answered_at >= asked_at else self._clock() - self._answered_at

    def _answered(self) -> None:
        with self._changed:
            self._answered_at = self._clock()
            self._changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        health = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                silent = health.silent_s()
                alive = silent <= health._alive_s
                body = json.dumps({"alive": alive, "silent_s": round(silent, 1)}).encode()
                self.send_response(200 if alive else 503)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Write no line for a probe."""

        return Handler


class _Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    daemon_threads = True
