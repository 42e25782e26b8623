"""A reserved port: the kernel gives it to nobody else, and the worker that is meant to can listen there."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import repeat

import pytest
from ports import a_row_of, is_taken

from elastic.adapters.addresses import ANY, PORTS, in_turn, none_left, ports_read, ports_spelled
from elastic.adapters.inprocess.rank.driver import _reservation
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


def test_who_serves_the_round_s_store_listens_on_the_port_that_is_held_also_when_the_next_is() -> None:
    """A client that comes before the server waits, and is not refused."""
    with Reservation("localhost") as held:
        port = held.endpoint.port
        with held.listening(port) as listening, socket.create_connection(("localhost", port)) as client:
            held.renew()
            assert held.endpoint.port != port
            with listening.accept()[0] as served:
                assert served.getpeername()[1] == client.getsockname()[1]
            with pytest.raises(OSError, match="in use"):
                held.listening(port)


def test_a_port_that_was_held_before_the_last_one_is_taken_again() -> None:
    with Reservation("localhost") as held:
        port = held.endpoint.port
        held.renew()
        with held.listening(port), socket.create_connection(("localhost", port)):
            assert held.endpoint.port != port


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


def test_ports_that_are_named_are_taken_in_turn_with_those_after_them() -> None:
    ports = a_row_of(7)
    with Reservation("localhost", ports) as held:
        found = [held.endpoint.port]
        for _ in range(3):
            held.renew()
            found.append(held.endpoint.port)
            assert all(map(is_taken, row(held)))
    assert found == [ports[0], ports[3], ports[0], ports[3]]


def test_ports_from_the_last_one_down_leave_the_first_ones_free() -> None:
    """The row of three is at the end, and a single port before it: the next --master-port is another job's."""
    ports = a_row_of(9)
    with Reservation("localhost", (*ports[::-1], 0)) as held, Reservation("localhost", (*ports[::-1], 0), 0) as single:
        found = [held.endpoint.port, single.endpoint.port]
        assert not any(map(is_taken, ports[:5]))
        held.renew()
        assert not any(map(is_taken, ports[:2]))
    assert [*found, held.endpoint.port] == [ports[6], ports[5], ports[2]]


@pytest.mark.parametrize(("count", "beside", "taken"), [(3, 1, 1), (4, 1, 3), (4, 2, 1), (5, 2, 3)])
def test_a_row_is_held_only_if_ports_remain_for_the_next_round_and_the_links(
    count: int, beside: int, taken: int
) -> None:
    ports = a_row_of(count)
    with Reservation("localhost", ports, beside=beside) as held:
        assert [*map(is_taken, ports)] == [True] * taken + [False] * (count - taken)
        held.renew()
        assert held.endpoint.port == ports[taken]


def test_where_no_row_is_open_one_port_alone_is_held_and_then_none() -> None:
    ports = a_row_of(3)
    named = ports[0], ports[2]
    with Reservation("localhost", named) as first, Reservation("localhost", named) as second:
        assert (first.endpoint.port, second.endpoint.port) == named
        assert not is_taken(ports[1])
        with pytest.raises(OSError, match=f"of the ports {ports[0]},{ports[2]}, none is free on this host; open more"):
            Reservation("localhost", named)
        first.renew()
        assert first.endpoint.port == ports[0]
    with (
        Reservation("localhost", (*named, 0)) as third,
        Reservation("localhost", (*named, 0)),
        Reservation("localhost", (*named, 0)) as other,
    ):
        assert third.endpoint.port == ports[0] and other.endpoint.port not in ports
        assert all(map(is_taken, row(other)))


def test_a_port_is_had_though_the_kernel_remembers_connections_of_another_host() -> None:
    """This host's second address stands for that one."""
    ports = a_row_of(1)
    with (
        socket.create_server(("127.0.0.2", ports[0])) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        made, _ = server.accept()
        made.close()
        assert client.recv(1) == b""
    assert is_taken(ports[0])
    with Reservation("localhost", ports) as held:
        assert held.endpoint.port == ports[0]


@pytest.mark.parametrize(("family", "address"), LOOPBACK)
def test_a_port_that_somebody_shares_is_not_taken_from_him(family: socket.AddressFamily, address: str) -> None:
    ports = a_row_of(1)
    with bound(family, address, ports[0], reuse=True), pytest.raises(OSError, match="none is free"):
        Reservation("localhost", ports)


def test_any_port_comes_last_and_those_of_the_last_round_before_it() -> None:
    assert [*in_turn((5, 6, 7, 0), 6)] == [7, 5, 6, 0]
    assert [*in_turn((5, 6, 7), 0)] == [5, 6, 7] and [*in_turn(ANY, 9)] == [0]
    assert [*in_turn((7, 6, 5, 0), 6)] == [5, 7, 6, 0]


@pytest.mark.parametrize(
    ("ports", "text"), [((5,), "5"), ((5, 6, 7, 9, 11, 12), "5-7,9,11-12"), ((5, 6, 0), "5-6,0"), (ANY, "0")]
)
def test_ports_are_read_as_they_are_spelled(ports: tuple[int, ...], text: str) -> None:
    assert ports_spelled(ports) == text and ports_read(text) == ports


def test_a_wrapped_rank_takes_one_of_its_node_s_ports_and_any_other_if_it_must(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ports = a_row_of(2)
    monkeypatch.setenv(PORTS, ports_spelled(ports))
    with _reservation("localhost") as first, _reservation("localhost") as second, _reservation("localhost") as third:
        assert (first.endpoint.port, second.endpoint.port) == ports and third.endpoint.port not in ports
    assert caplog.messages == [f"{none_left(ports).strerror}; this rank takes any free port"]
