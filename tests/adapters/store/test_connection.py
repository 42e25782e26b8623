"""Where nodes meet: whoever serves the store leaves last, so that all hear the verdict, but not for ever."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from attrs import evolve
from conformance import ANSWER_S
from leftovers import alive_with
from processes import dies
from worlds import edited, node, running

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.connection import MemoryConnection, TCPStoreConnection
from elastic.adapters.store.port import OutOfReach, StoreError
from elastic.adapters.store.tcpstore.serving import CannotServe
from elastic.adapters.store.tcpstore.wire import Address
from elastic.core.rendezvous import Done, RendezvousState

CLOCK = SystemClock()
ELSEWHERE = "192.0.2.1"
"""An address for documentation: no host has it."""
LONG_S = 1_000.0
HERE = Address("localhost", 0)
RUNNING = running("a b")
OVER = edited(edited(RUNNING, "a", Done(0)), "b", Done(0))


def connected(address: Address, is_host: bool | None) -> TCPStoreConnection:
    return TCPStoreConnection(address, "job", CLOCK, is_host, 1.0)


@contextmanager
def served(state: RendezvousState) -> Iterator[tuple[TCPStoreConnection, TCPStoreConnection]]:
    """The connection of the node that serves the store, and another node's; the register holds `state`."""
    host = connected(HERE, True)
    guest = connected(host.address, False)
    first = evolve(state, version=1)
    try:
        wait_for(lambda: host.backend.set(first, None).state == first)
        assert guest.backend.get().state == first
        yield host, guest
    finally:
        guest.close(0.0)
        host.close(0.0)


def wait_for(claim: Callable[[], bool]) -> None:
    """The store's program may take longer to start than a question may to be answered."""
    ends_at = time.monotonic() + ANSWER_S
    while True:
        try:
            assert claim()
            return
        except StoreError:
            assert time.monotonic() < ends_at


def servers(token: str) -> list[int]:
    """The programs that serve a store for this test."""
    return [process.pid for process in alive_with(token) if "store_host.py" in process.command]


class Closing:
    """A connection that is closed in a thread of its own."""

    def __init__(self, connection: TCPStoreConnection, timeout_s: float) -> None:
        self._began_at = time.monotonic()
        self._thread = threading.Thread(target=connection.close, args=(timeout_s,), daemon=True)
        self._thread.start()

    def is_done_within(self, span_s: float) -> bool:
        self._thread.join(span_s)
        return not self._thread.is_alive()

    def takes(self) -> float:
        assert self.is_done_within(ANSWER_S)
        return time.monotonic() - self._began_at


def test_a_node_alone_meets_in_memory_and_waits_for_nobody() -> None:
    alone = MemoryConnection(CLOCK)
    assert alone.place == "in memory"
    assert alone.backend.set(RUNNING, None).state == RUNNING
    began_at = time.monotonic()
    alone.close(LONG_S)
    alone.close(LONG_S)
    assert time.monotonic() - began_at < ANSWER_S


def test_two_jobs_in_memory_do_not_meet() -> None:
    one, other = MemoryConnection(CLOCK), MemoryConnection(CLOCK)
    one.backend.set(RUNNING, None)
    assert other.backend.get().state is None


def test_the_host_leaves_when_the_last_of_the_others_has_said_goodbye(nothing_left: str) -> None:
    with served(OVER) as (host, guest):
        host.backend.remove_heartbeat(node("a"))
        closing = Closing(host, LONG_S)
        assert not closing.is_done_within(0.3)
        assert guest.backend.get().state == evolve(OVER, version=1)
        with suppress(OutOfReach):  # the store may be gone before it has confirmed the goodbye
            guest.backend.remove_heartbeat(node("b"))
        assert closing.is_done_within(ANSWER_S)
        with pytest.raises(StoreError):
            guest.backend.get()


def test_the_host_waits_no_longer_than_it_may_for_nodes_that_say_nothing(nothing_left: str) -> None:
    with served(OVER) as (host, _):
        assert Closing(host, 0.3).takes() >= 0.3


def test_a_host_that_leaves_a_job_that_goes_on_waits_for_nobody(nothing_left: str) -> None:
    with served(RUNNING) as (host, guest):
        assert Closing(host, LONG_S).is_done_within(ANSWER_S)
        with pytest.raises(StoreError):
            guest.backend.get()


def test_a_host_whose_store_has_died_leaves(nothing_left: str) -> None:
    with served(OVER) as (host, _):
        (pid,) = servers(nothing_left)
        os.kill(pid, signal.SIGKILL)
        assert dies(pid)
        assert Closing(host, LONG_S).is_done_within(ANSWER_S)


def test_of_two_nodes_on_the_endpoint_s_host_the_first_serves_and_the_other_leaves_without_it(
    nothing_left: str,
) -> None:
    host = connected(HERE, None)
    guest = connected(host.address, None)
    assert (host.place, guest.place) == (f"localhost:{host.address.port}",) * 2
    assert host.address.port > 0
    wait_for(lambda: guest.backend.set(RUNNING, None).state == RUNNING)
    assert len(servers(nothing_left)) == 1
    guest.close(LONG_S)
    guest.close(LONG_S)
    assert host.backend.get().state == RUNNING
    host.close(0.0)
    host.close(0.0)


def test_a_node_that_is_not_to_serve_the_store_waits_for_one_that_does() -> None:
    guest = connected(Address("localhost", 1), False)
    with pytest.raises(StoreError, match="localhost:1"):
        guest.backend.get()
    guest.close(LONG_S)


def test_whoever_must_serve_a_store_and_cannot_says_why() -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotServe, match=rf"^localhost:{port}: .*somebody listens there already; "):
            connected(Address("localhost", port), True)


def test_a_register_in_memory_stands_while_nobody_is_connected_to_it() -> None:
    """A rank that is started again when all others have gone finds the verdict, and begins no new job."""
    connection = MemoryConnection(CLOCK)
    first = connection.beside("ranks")
    first.set(OVER, None)
    first.close()
    assert connection.beside("ranks").get().state == OVER
    assert connection.beside("others").get().state is None


def test_the_registers_in_memory_are_bounded_and_the_oldest_go_first() -> None:
    connection = MemoryConnection(CLOCK)
    for number in range(257):
        connection.beside(str(number)).set(OVER, None)
    assert connection.beside("1").get().state == OVER
    assert connection.beside("0").get().state is None
