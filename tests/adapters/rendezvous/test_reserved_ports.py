"""A reserved port: the kernel gives it to nobody else, and the worker that is meant to can listen there."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import repeat

import pytest

from elastic.adapters.rendezvous import reserved_ports
from elastic.adapters.rendezvous.reserved_ports import Reservation

LOOPBACK = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]


def bound(family: socket.AddressFamily, address: str, port: int, reuse: bool) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
    try:
        made.bind((address, port))
    except OSError:
        made.close()
        raise
    return made


def row(held: Reservation) -> range:
    """What programs count on: MASTER_PORT and the two after it."""
    return range(held.endpoint.port, held.endpoint.port + 3)


def begins_at(ports: Iterator[int]) -> Callable[[socket.AddressFamily, str, int], socket.socket]:
    """The kernel, where it is asked for any port, gives these before all others."""
    real = reserved_ports._bind
    return lambda family, address, port: real(family, address, port or next(ports, 0))


@pytest.mark.parametrize(("family", "address"), LOOPBACK)
@pytest.mark.parametrize("further", [0, 1, 2])
def test_a_worker_can_listen_on_a_port_that_is_held(family: socket.AddressFamily, address: str, further: int) -> None:
    with Reservation("localhost") as held:
        port = held.endpoint.port + further
        with bound(family, address, port, reuse=True) as store:
            store.listen()
            with socket.create_connection(("localhost", port)) as client:
                assert client.getpeername()[1] == port


@pytest.mark.parametrize(("family", "address"), LOOPBACK)
def test_a_program_that_does_not_mean_to_share_cannot_have_it(family: socket.AddressFamily, address: str) -> None:
    with Reservation("localhost") as held:
        for port in row(held):
            with pytest.raises(OSError, match="in use"):
                bound(family, address, port, reuse=False)


def test_the_kernel_gives_it_to_nobody_who_asks_for_any_port() -> None:
    with ExitStack() as stack, Reservation("localhost") as held:
        others = [stack.enter_context(bound(socket.AF_INET, "", 0, reuse=True)).getsockname()[1] for _ in range(300)]
        assert not set(row(held)) & set(others)


def test_no_two_hold_the_same() -> None:
    with ExitStack() as stack:
        held = [port for _ in range(100) for port in row(stack.enter_context(Reservation("localhost")))]
    assert len(set(held)) == len(held) == 300


@pytest.mark.parametrize("taken_from", [1, 2])
def test_a_port_whose_neighbour_somebody_has_is_passed_over(taken_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with Reservation("localhost") as old:
        first = old.endpoint.port
    ports = iter([first])
    with bound(socket.AF_INET, "127.0.0.1", first + taken_from, reuse=False) as taken:
        monkeypatch.setattr(reserved_ports, "_bind", begins_at(ports))
        with Reservation("localhost") as held:
            assert next(ports, None) is None
            assert taken.getsockname()[1] not in row(held)
            with pytest.raises(OSError, match="in use"):
                bound(socket.AF_INET, "", held.endpoint.port + taken_from, reuse=False)


def test_on_a_host_without_a_row_the_port_alone_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """65535 has no port after it."""
    monkeypatch.setattr(reserved_ports, "_bind", begins_at(repeat(65535)))
    with Reservation("localhost") as held:
        assert held.endpoint.port == 65535
        with pytest.raises(OSError, match="in use"):
            bound(socket.AF_INET, "", 65535, reuse=False)


def test_on_a_host_without_ipv6_the_ports_are_held_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reserved_ports._bind

    def without_ipv6(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        return real(family, address, port)

    monkeypatch.setattr(reserved_ports, "_bind", without_ipv6)
    with Reservation("localhost") as held:
        for port in row(held):
            with pytest.raises(OSError, match="in use"):
                bound(socket.AF_INET, "127.0.0.1", port, reuse=False)


def test_a_port_that_is_released_is_free_again_and_releasing_twice_does_no_harm() -> None:
    held = Reservation("localhost")
    held.release()
    held.release()
    for port in row(held):
        bound(socket.AF_INET, "127.0.0.1", port, reuse=False).close()


def test_a_port_that_is_renewed_is_another_one_and_the_last_one_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would give the last one first."""
    with Reservation("node-7.example") as held:
        old = row(held)
        monkeypatch.setattr(reserved_ports, "_bind", begins_at(iter(old)))
        held.renew()
        assert held.endpoint.address == "node-7.example" and not {*row(held)} & {*old}
        for port in old:
            bound(socket.AF_INET, "127.0.0.1", port, reuse=False).close()


def test_a_host_without_another_port_leaves_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def has_none(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with Reservation("localhost") as held:
        before = held.endpoint
        monkeypatch.setattr(reserved_ports, "_bind", has_none)
        held.renew()
        assert held.endpoint == before
        for port in row(held):
            with pytest.raises(OSError, match="in use"):
                bound(socket.AF_INET, "", port, reuse=False)


def test_it_says_how_others_reach_it() -> None:
    with Reservation("node-7.example") as held:
        assert held.endpoint.address == "node-7.example"
