"""A reserved port: the kernel gives it to nobody else, and the worker that is meant to can listen there."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from elastic.adapters.endpoint import Reservation

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


@pytest.mark.parametrize(("family", "address"), LOOPBACK)
def test_a_worker_can_listen_on_a_port_that_is_held(family: socket.AddressFamily, address: str) -> None:
    with Reservation("localhost") as held, bound(family, address, held.endpoint.port, reuse=True) as store:
        store.listen()
        with socket.create_connection(("localhost", held.endpoint.port)) as client:
            assert client.getpeername()[1] == held.endpoint.port


@pytest.mark.parametrize(("family", "address"), LOOPBACK)
def test_a_program_that_does_not_mean_to_share_cannot_have_it(family: socket.AddressFamily, address: str) -> None:
    with Reservation("localhost") as held, pytest.raises(OSError, match="in use"):
        bound(family, address, held.endpoint.port, reuse=False)


def test_the_kernel_gives_it_to_nobody_who_asks_for_any_port() -> None:
    with ExitStack() as stack, Reservation("localhost") as held:
        others = [stack.enter_context(Reservation("localhost")).endpoint.port for _ in range(300)]
        others += [stack.enter_context(bound(socket.AF_INET, "", 0, reuse=True)).getsockname()[1] for _ in range(300)]
        assert held.endpoint.port not in others
        assert len(set(others)) == len(others)


def test_a_port_that_is_released_is_free_again_and_releasing_twice_does_no_harm() -> None:
    held = Reservation("localhost")
    held.release()
    held.release()
    bound(socket.AF_INET, "127.0.0.1", held.endpoint.port, reuse=False).close()


def test_it_says_how_others_reach_it() -> None:
    with Reservation("node-7.example") as held:
        assert held.endpoint.address == "node-7.example"
