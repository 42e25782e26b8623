"""The network of hosts that other tests break: what is cut does not pass, the rest does, and nothing is left of it."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import netlab
import pytest

PORT = 7_000
ANSWER = f"""import socket
with socket.create_server(("", {PORT})) as server:
    print("up", flush=True)
    while True:
        server.accept()[0].close()
"""
ASK = f"import socket, sys; socket.create_connection((sys.argv[1], {PORT}), float(sys.argv[2]))"
LISTEN = """import socket
with socket.socket(type=socket.SOCK_DGRAM) as listening:
    listening.bind(("", 7001))
    print("up", flush=True)
    print(listening.recv(10).decode(), flush=True)
"""
SEND = "import socket, sys; socket.socket(type=socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), (sys.argv[1], 7001))"


@pytest.fixture
def network(nothing_left: str) -> Iterator[netlab.Network]:
    with netlab.network() as made:
        yield made


def on(host: netlab.Host, program: str, *arguments: str) -> bool:
    """Whether it succeeds there."""
    command = [*host.under, sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def reaches(host: netlab.Host, other: netlab.Host, within_s: float = 60.0) -> bool:
    return on(host, ASK, other.address, str(within_s))


@pytest.fixture
def answering(network: netlab.Network) -> Iterator[netlab.Host]:
    host = network.host("a")
    command = [*host.under, sys.executable, "-c", ANSWER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout and server.stdout.readline() == b"up\n"
        try:
            yield host
        finally:
            server.kill()


def test_hosts_reach_each_other_and_this_process_reaches_them(network: netlab.Network, answering: netlab.Host) -> None:
    assert reaches(network.host("b"), answering)
    socket.create_connection((answering.address, PORT), 60.0).close()


def test_what_is_cut_does_not_pass_until_it_is_healed_and_the_others_hear_on(
    network: netlab.Network, answering: netlab.Host
) -> None:
    other, third = network.host("b"), network.host("c")
    network.cut(other, answering)
    assert not reaches(other, answering, 0.5)
    assert reaches(third, answering)
    network.heal()
    assert reaches(other, answering)


def test_who_is_deaf_is_still_heard(network: netlab.Network) -> None:
    deaf, other = network.host("a"), network.host("b")
    network.deafen(deaf, other)
    assert _first_word(other, deaf, ["before"]) == "before"
    assert _first_word(deaf, other, ["before", "after"], network.heal) == "after"


def _first_word(
    host: netlab.Host, by: netlab.Host, words: Sequence[str], between: Callable[[], object] = lambda: None
) -> str:
    """Which of them it hears first. The last is sent until one is heard: a link that has just come up may drop it."""
    with subprocess.Popen([*host.under, sys.executable, "-c", LISTEN], stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout and listener.stdout.readline() == "up\n"
        try:
            for word in words[:-1]:
                assert on(by, SEND, host.address, word)
                between()
            while not select.select([listener.stdout], [], [], 0.1)[0]:
                assert on(by, SEND, host.address, words[-1])
            return listener.stdout.readline().strip()
        finally:
            listener.kill()


def test_nothing_is_left_of_a_network_also_when_its_test_fails() -> None:
    names = []

    def fails() -> None:
        with netlab.network() as made:
            made.cut(made.host("a"), made.host("b"))
            names.append(made.name)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    left = "".join(subprocess.check_output(["ip", what], text=True) for what in ("netns", "link"))
    assert names and not [name for name in names if name in left]
