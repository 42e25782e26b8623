"""The network of hosts that other tests break: what is cut does not pass, the rest does, and nothing is left of it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import netlab
import pytest

PORT = 7_000
ANSWER = f"""import socket
with socket.create_server(("", {PORT})) as server:
    print("up", flush=True)
    while True:
        server.accept()[0].close()
"""
ASK = f"import socket, sys; socket.create_connection((sys.argv[1], {PORT}), 0.5)"
SEND = "import socket, sys; socket.socket(type=socket.SOCK_DGRAM).sendto(b'word', (sys.argv[1], int(sys.argv[2])))"


@pytest.fixture
def network(nothing_left: str) -> Iterator[netlab.Network]:
    with netlab.network() as made:
        yield made


def on(host: netlab.Host, program: str, *arguments: str) -> bool:
    """Whether it succeeds there."""
    command = [*host.under, sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


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
    assert on(network.host("b"), ASK, answering.address)
    socket.create_connection((answering.address, PORT), 5.0).close()


def test_what_is_cut_does_not_pass_until_it_is_healed_and_the_others_hear_on(
    network: netlab.Network, answering: netlab.Host
) -> None:
    other, third = network.host("b"), network.host("c")
    network.cut(other, answering)
    assert not on(other, ASK, answering.address)
    assert on(third, ASK, answering.address)
    network.heal()
    assert on(other, ASK, answering.address)


def test_who_is_deaf_is_still_heard(network: netlab.Network) -> None:
    deaf, other = network.host("a"), network.host("b")
    network.deafen(deaf, other)
    heard = {host.name: _hears(network, host, by) for host, by in ((deaf, other), (other, deaf))}
    assert heard == {"a": False, "b": True}


def _hears(network: netlab.Network, host: netlab.Host, by: netlab.Host) -> bool:
    listen = (
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 7001)); s.settimeout(0.7);"
        "print('up', flush=True); s.recv(10)"
    )
    command = [*host.under, sys.executable, "-c", listen]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as listener:
        assert listener.stdout and listener.stdout.readline() == b"up\n"
        assert on(by, SEND, host.address, "7001")
        return listener.wait(10.0) == 0


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
