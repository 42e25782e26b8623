"""A liveness probe of the agent by HTTP (TORCHELASTIC_HEALTH_CHECK_PORT).

torch's agent leaves this to a plugin. Here each request is put to the agent's own thread, which sleeps in its inbox. The
answer is 200 if that thread has answered within the last _ALIVE_S, else 503. Anybody may connect (`bounded_server.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http import HTTPStatus

from ..bounded_server import Answers, BoundedServer

PATHS = ("/", "/health", "/healthz", "/livez")
_ALIVE_S = 60.0
"""The agent's thread may be silent for this time, as with torch's health check."""
_ANSWER_S = 0.5
"""A request waits this long for the agent; Kubernetes waits for 1 s."""
_CLIENTS_MAX = 16


class HealthServer(BoundedServer):
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
        super().__init__(host, port, _HealthAnswers, _CLIENTS_MAX, "elastic-health")

    def silent_s(self) -> float:
        """Ask the agent, and return for how long its thread has been silent: 0 if it answers. In a client's thread."""
        asked_at = self._clock()
        self._ask(self._answered)
        with self.changed:
            if self.changed.wait_for(lambda: self._answered_at >= asked_at or self.is_closing, _ANSWER_S):
                return 0.0
            return self._clock() - self._answered_at

    def is_alive(self, silent_s: float) -> bool:
        """Return True if an agent may be silent for this time."""
        return silent_s <= self._alive_s

    def _answered(self) -> None:
        with self.changed:
            self._answered_at = self._clock()
            self.changed.notify_all()


class _HealthAnswers(Answers):
    server: HealthServer
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        if self.resource not in PATHS:
            self.reply(HTTPStatus.NOT_FOUND)
            return
        silent_s = self.server.silent_s()
        alive = self.server.is_alive(silent_s)
        body = json.dumps({"alive": alive, "silent_s": round(silent_s, 1)}).encode()
        self.reply(HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE, "application/json", body)
