"""The health check: whoever asks gets the answer of the agent's own thread, or hears that it does not answer."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from elastic.adapters.agent.health_port import HealthServer

Answer = Callable[[], None]


def ask(port: int) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_an_agent_that_answers_is_alive() -> None:
    server = HealthServer(0, lambda answer: answer())
    try:
        assert ask(server.port) == (200, {"alive": True, "silent_s": 0.0})
        assert ask(server.port)[0] == 200
    finally:
        server.close()


def test_one_that_is_busy_is_alive_for_a_while_and_then_not_until_it_answers_again() -> None:
    asked: SimpleQueue[Answer] = SimpleQueue()
    now = 100.0
    server = HealthServer(0, asked.put, 60.0, lambda: now)
    try:
        now += 59.0
        assert ask(server.port) == (200, {"alive": True, "silent_s": 59.0})
        now += 2.0
        assert ask(server.port) == (503, {"alive": False, "silent_s": 61.0})
        asked.get()()
        now += 1.0
        assert ask(server.port) == (200, {"alive": True, "silent_s": 1.0})
    finally:
        server.close()


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("", 0)) as taken, pytest.raises(OSError, match="Address already in use"):
        HealthServer(taken.getsockname()[1], lambda answer: None)
