"""The health check: whoever asks gets the answer of the agent's own thread, or hears that it does not answer."""

from __future__ import annotations

import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
from processes import TIMEOUT_S

from elastic.adapters import bounded_server
from elastic.adapters.agent.health_port import HealthServer

pytestmark = pytest.mark.usefixtures("patience")

Answer = Callable[[], None]


@contextmanager
def served() -> Iterator[HealthServer]:
    server = HealthServer(0, lambda answer: answer())
    try:
        yield server
    finally:
        server.close()


def ask(port: int) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=TIMEOUT_S) as answer:
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


@pytest.mark.parametrize("path", ["/", "/healthz", "/livez?verbose"])
def test_a_path_of_a_probe_is_known(path: str) -> None:
    with (
        served() as server,
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=TIMEOUT_S) as answer,
    ):
        assert answer.status == 200


def test_any_other_path_is_not_found() -> None:
    with served() as server, pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=TIMEOUT_S)


def test_idle_clients_hold_up_nobody_and_take_few_descriptors() -> None:
    with served() as server, ExitStack() as idle:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        assert ask(server.port)[0] == 200
        served_here = len(os.listdir("/proc/self/fd")) - before - 100
        assert served_here <= 16


def test_a_client_that_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_server, "REQUEST_S", 0.2)
    with served() as server, socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as idle:
        idle.sendall(b"GET / HTTP/1.1\r\n")
        assert idle.recv(1) == b""


def test_a_client_that_has_said_all_still_gets_its_answer() -> None:
    asked: SimpleQueue[Answer] = SimpleQueue()
    now = 100.0
    server = HealthServer(0, asked.put, 60.0, lambda: now)
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as client:
            now += 1.0
            client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(4_096).startswith(b"HTTP/1.0 200 OK")
    finally:
        server.close()


def test_only_this_host_is_served_unless_told_otherwise() -> None:
    def listening(port: int) -> set[str]:
        tables = "".join(Path(f"/proc/net/{table}").read_text() for table in ("tcp", "tcp6"))
        return {line.split()[1] for line in tables.splitlines() if f":{port:04X} " in line and line.split()[3] == "0A"}

    with served() as server:
        assert listening(server.port) == {f"0100007F:{server.port:04X}"}


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("", 0)) as taken, pytest.raises(OSError, match="Address already in use"):
        HealthServer(taken.getsockname()[1], lambda answer: None)
