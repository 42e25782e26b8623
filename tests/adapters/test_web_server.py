"""The web server: whom it answers, and that nobody holds it up."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from elastic.adapters import bounded_server
from elastic.adapters.web_server import Content, WebServer, is_for

pytestmark = pytest.mark.usefixtures("patience")

LARGE = b"x" * 8_000_000


def fails() -> Content:
    raise ValueError("no page")


CONTENTS = {
    "/": lambda: Content("text/html", b"<p>ready", "default-src 'self'"),
    "/large": lambda: Content("text/plain", LARGE),
    "/fails": fails,
}


@contextmanager
def served() -> Iterator[WebServer]:
    server = WebServer("127.0.0.1", 0, CONTENTS, "/events")
    try:
        yield server
    finally:
        server.close()


def connected(server: WebServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def asked(server: WebServer, first: str, *headers: str) -> bytes:
    """The whole answer to a request."""
    with connected(server) as client:
        client.sendall("\r\n".join((first, *(headers or ("Host: localhost",)), "", "")).encode())
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def until(client: socket.socket, wanted: bytes, at_once: int = 1 << 16) -> bytes:
    """All that comes until this has come."""
    found = b""
    while wanted not in found:
        data = client.recv(at_once)
        assert data, found
        found += data
    return found


def follows(server: WebServer, stack: ExitStack) -> socket.socket:
    client = stack.enter_context(connected(server))
    client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(client, b"\r\n\r\n", 1)
    return client


def test_a_page_comes_whole_with_its_policy_and_no_browser_keeps_it() -> None:
    with served() as server:
        head, _, body = asked(server, "GET /?x=1 HTTP/1.1").partition(b"\r\n\r\n")
        assert body == b"<p>ready" and head.startswith(b"HTTP/1.1 200 OK\r\n")
        for line in (b"Content-Security-Policy: default-src 'self'", b"Cache-Control: no-store", b"Content-Length: 8"):
            assert line in head.split(b"\r\n")
        assert asked(server, "GET /large HTTP/1.1").endswith(b"\r\n\r\n" + LARGE)
        assert asked(server, "HEAD / HTTP/1.1") == head + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("POST / HTTP/1.1", 405),
        ("DELETE /events HTTP/1.1", 405),
        ("GET /elsewhere HTTP/1.1", 404),
        ("GET /../../etc/passwd HTTP/1.1", 404),
        ("GET", 400),
        ("GET /fails HTTP/1.1", 500),
    ],
)
def test_any_other_request_is_refused(first: str, code: int) -> None:
    with served() as server:
        assert status(asked(server, first)) == code
        assert status(asked(server, "GET / HTTP/1.1")) == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "10.1.2.3", "gpu-01."])
def test_an_address_and_a_name_of_the_server_are_its_hosts(host: str) -> None:
    assert is_for([f"host:{host}"], {"localhost", "gpu-01"})


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", "", "[::1", "a:b:c", "1.2.3"]
)
def test_a_name_that_leads_here_by_another_site_s_doing_is_refused(host: str) -> None:
    assert not is_for([f"Host: {host}"], {"localhost", "gpu-01"})
    with served() as server:
        assert status(asked(server, "GET / HTTP/1.1", f"Host: {host}")) == 421


def test_a_request_has_one_host() -> None:
    with served() as server:
        assert status(asked(server, "GET / HTTP/1.1", "Accept: */*")) == 421
        assert status(asked(server, "GET / HTTP/1.1", "Host: localhost", "Host: localhost")) == 421


def test_a_stream_brings_the_newest_event_of_each_name_to_who_comes_late() -> None:
    with served() as server, ExitStack() as stack:
        early = follows(server, stack)
        for number in range(3):
            server.publish("state", str(number).__str__)
        server.publish("tick", lambda: "a")
        assert b"event: tick\ndata: a\n\n" in until(early, b"data: a\n\n")
        late = until(follows(server, stack), b"data: a\n\n")
        assert late == b"event: state\ndata: 2\n\nevent: tick\ndata: a\n\n"
        server.publish("state", lambda: "3")
        assert until(early, b"\n\n") == b"event: state\ndata: 3\n\n"


def test_a_client_that_does_not_read_holds_up_nobody_and_misses_what_is_between() -> None:
    with served() as server, ExitStack() as stack:
        slow, quick = follows(server, stack), follows(server, stack)
        for number in range(40):
            server.publish("state", f"{number}:{'x' * 1_000_000}:{number}".__str__)
            until(quick, f":{number}\n\n".encode())
        found = until(slow, b":39\n\n")
        assert len(found) < 40_000_000 and found.count(b"event: state") < 40


def test_a_client_that_has_said_all_is_given_the_whole_answer() -> None:
    with served() as server, connected(server) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        assert until(client, LARGE).endswith(LARGE)


def test_a_client_that_says_a_byte_now_and_then_is_hung_up_on_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_server, "REQUEST_S", 1.0)
    with served() as server, connected(server) as slow:
        slow.settimeout(0.2)
        heard = None
        while heard is None:
            with suppress(TimeoutError):
                try:
                    slow.send(b"G")
                    heard = slow.recv(1)
                except ConnectionError:  # the byte came after the end
                    heard = b""
        assert heard == b""


def test_a_client_that_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_server, "REQUEST_S", 0.2)
    with served() as server, connected(server) as idle:
        idle.sendall(b"GET / HTTP/1.1\r\n")
        assert idle.recv(1) == b""


def test_a_request_is_bounded() -> None:
    with served() as server:
        assert status(asked(server, "GET / HTTP/1.1", "Host: localhost", f"X: {'x' * 8_192}")) == 431
        assert status(asked(server, "GET / HTTP/1.1", *(f"X: {number}" for number in range(101)))) == 431


def test_idle_clients_hold_up_nobody_and_take_few_descriptors() -> None:
    with served() as server, ExitStack() as idle:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(200):
            idle.enter_context(connected(server))
        assert status(asked(server, "GET / HTTP/1.1")) == 200
        assert len(os.listdir("/proc/self/fd")) - before - 200 <= 64


def test_streams_are_given_up_for_newcomers_only_where_all_clients_are_streams_and_then_the_oldest() -> None:
    with served() as server, ExitStack() as stack:
        oldest, *streams = [follows(server, stack) for _ in range(63)]
        idle = stack.enter_context(connected(server))
        assert status(asked(server, "GET / HTTP/1.1")) == 200
        assert idle.recv(1) == b""
        streams.append(follows(server, stack))
        server.publish("state", lambda: "on")
        assert all(b"on" in until(stream, b"\n\n") for stream in (oldest, *streams))
        assert status(asked(server, "GET / HTTP/1.1")) == 200
        assert oldest.recv(1) == b""
        server.publish("state", lambda: "still")
        assert all(b"still" in until(stream, b"\n\n") for stream in streams)


def test_a_client_that_goes_makes_room() -> None:
    with served() as server, ExitStack() as stack:
        for _ in range(100):
            with ExitStack() as brief:
                follows(server, brief)
        client = follows(server, stack)
        server.publish("state", lambda: "on")
        assert b"on" in until(client, b"\n\n")


def test_a_closed_server_ends_its_streams() -> None:
    with ExitStack() as stack:
        with served() as server:
            client = follows(server, stack)
        server.close()
        assert client.recv(1) == b""


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="Address already in use"):
        WebServer("127.0.0.1", taken.getsockname()[1], {})
