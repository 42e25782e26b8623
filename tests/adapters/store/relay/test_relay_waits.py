"""The waits of the relay's clients: by whom they are answered, and when."""

from __future__ import annotations

import math
import socket
import threading
from collections.abc import Iterator

import pytest
from attrs import evolve
from conformance import ANSWER_S, Waiting, born, grown
from processes import comes_true

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.port import OutOfReach, Shown
from elastic.adapters.store.relay import relay_protocol as protocol
from elastic.adapters.store.relay.relay_backend import RelayBackend
from elastic.adapters.store.relay.relay_server import Relay
from elastic.adapters.store.relay.relay_session import Connection, Spaces
from elastic.adapters.store.relay.relay_waits import Encoded, Wait, Waits
from elastic.core.rendezvous import RendezvousState, Token, codec

SECOND, THIRD = evolve(born(), version=born().version + 1), evolve(born(), version=born().version + 2)
BUFFER_BYTES = 4_608
"""The smallest buffer for answers that Linux gives a socket."""


def client_of(store: MemoryStore) -> MemoryBackend:
    return MemoryBackend(store, SystemClock())


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    client_of(made).set(born(), None)
    return made


def told_of(data: bytes) -> RendezvousState | None:
    answer = protocol._answer.decode(data[4:])
    assert isinstance(answer, protocol.Stands)
    return codec.decode(answer.state) if answer.state else None


def waits_for(store: MemoryStore, *rests_s: float) -> tuple[Waits, list[list[bytes]]]:
    """Return waits for the end of born(), one with each rest, and what each was told."""
    waits, told = Waits(client_of(store), Encoded(lambda _: None)), list[list[bytes]]()
    for rest_s in rests_s:
        told.append([])
        waits.add(Wait(born().token, math.inf, rest_s, told[-1].append), client_of(store).get)
    return waits, told


def test_a_change_is_told_at_once_to_those_who_need_no_rest_and_later_to_the_others(store: MemoryStore) -> None:
    waits, (at_once, later) = waits_for(store, 0.0, 60.0)
    try:
        client_of(store).set(SECOND, born().token)
        assert comes_true(lambda: bool(at_once))
        assert told_of(at_once[0]) == SECOND
        assert not later, "both would be told in the same look"
    finally:
        waits.close()


def test_who_rests_is_told_of_the_last_change(store: MemoryStore) -> None:
    waits, (at_once, later) = waits_for(store, 0.0, 0.05)
    try:
        with store.changed:  # the thread that hears of the first change looks when the second one is there
            client_of(store)._store.state = SECOND
            store.changed.notify_all()
            store.state = THIRD
        assert comes_true(lambda: bool(at_once and later))
        assert [told_of(each) for each in (*at_once, *later)] == [THIRD, THIRD]
    finally:
        waits.close()


def test_a_second_change_puts_no_rest_off(store: MemoryStore) -> None:
    waits, _ = waits_for(store, 1e6)
    (resting,) = waits._waits
    try:
        client_of(store).set(SECOND, born().token)
        assert comes_true(lambda: resting.rests_until < math.inf)
        ends_at = resting.rests_until
        client_of(store).set(THIRD, SECOND.token)
        assert comes_true(lambda: waits._watched == (THIRD.token,))
        assert resting.rests_until == ends_at
    finally:
        waits.close()


def test_who_waits_for_the_end_of_a_version_that_is_over_is_answered_at_once(store: MemoryStore) -> None:
    waits, (first,) = waits_for(store, 0.0)
    late = list[bytes]()
    try:
        client_of(store).set(SECOND, born().token)
        assert comes_true(lambda: bool(first))
        waits.add(Wait(born().token, math.inf, 0.0, late.append), client_of(store).get)
        assert [told_of(each) for each in late] == [SECOND]
    finally:
        waits.close()


class Copying(MemoryBackend):
    """A store that is a copy of another one, from the moment that `copies` is set."""

    copies = threading.Event()

    def get(self) -> Shown:
        return Shown(super().get().state, here=not self.copies.is_set())

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        with self._store.changed:
            while not self._closed and self._token() == token and not self.copies.is_set():
                self._store.changed.wait(0.01)
        return self.get()

    def clone(self) -> Copying:
        return type(self)(self._store, SystemClock())


@pytest.mark.parametrize("comes_later", [False, True], ids=["before the wait", "during the wait"])
def test_a_copy_is_shown_to_those_who_wait(store: MemoryStore, comes_later: bool) -> None:
    class Here(Copying):
        copies = threading.Event()

    served = Relay(lambda name: Here(store, SystemClock()))
    client = RelayBackend(served.path, "one", SystemClock())
    try:
        client.get()
        if not comes_later:
            Here.copies.set()
        shown: list[Shown] = []
        waiting = Waiting(lambda: shown.append(client.wait_for_change(born().token, math.inf)))
        if comes_later:
            assert not shown
            Here.copies.set()
        waiting.answer(0.0)
        assert [(each.state, each.here) for each in shown] == [(born(), False)]
    finally:
        client.close()
        served.close()


@pytest.mark.parametrize("rounds", [(1, 3, 2), (3, 0), (3,)], ids=["an older register comes back", "a new one", "one"])
def test_the_rounds_of_a_register_are_counted_though_its_store_forgets_some(rounds: tuple[int, ...]) -> None:
    spaces = Spaces(lambda name: client_of(MemoryStore()), lambda backend: lambda: None)
    for round in rounds:
        spaces._saw("one", evolve(born(), round=round))
    spaces._saw("other", evolve(born(), round=4))
    assert spaces.restarts == 3 + 4


# --- clients that are slow, or say what they must not


class Served:
    """A connection with little room for answers, and the client's end of it."""

    def __init__(self, store: MemoryStore) -> None:
        self.spaces = Spaces(lambda name: client_of(store), lambda backend: lambda: None)
        self.client, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        served.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        self.client.settimeout(ANSWER_S)
        self.connection = Connection(served, self.spaces, lambda _: None)
        self.connection.start(lambda: False)
        protocol.send(self.client, protocol.Hello("one"))
        assert isinstance(protocol.answer(self.client), protocol.Welcome)

    def waits(self, token: Token) -> None:
        protocol.send(self.client, protocol.WaitForChange(protocol.named(token), math.inf))
        assert comes_true(lambda: bool(self.spaces._of["one"].waits._waits))

    def close(self) -> None:
        self.client.close()
        self.connection.hang_up()
        self.connection.join(ANSWER_S)


@pytest.fixture
def slow(store: MemoryStore) -> Iterator[Served]:
    served = Served(store)
    yield served
    served.close()


def large() -> RendezvousState:
    """A register that takes more bytes than the buffer has, also when it is compressed."""
    state = born()
    for number in range(400):
        state = grown(state, f"{(number * 2_654_435_761) % 2**32:08x}{(number * 40_503) % 2**16:04x}")
    assert len(codec.encode(state)) > BUFFER_BYTES
    return state


def test_a_client_that_does_not_read_delays_nobody_and_is_told_all_when_it_reads(
    store: MemoryStore, slow: Served
) -> None:
    other, state = Served(store), large()
    other.connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
    try:
        slow.waits(born().token)
        client_of(store).set(state, born().token)
        assert comes_true(lambda: slow.connection._rest is not None)
        later = evolve(state, version=state.version + 1)
        other.waits(state.token)
        client_of(store).set(later, state.token)
        for client, stands in ((other.client, later), (slow.client, state)):
            answer = protocol.answer(client)
            assert isinstance(answer, protocol.Stands) and answer.state
            assert codec.decode(answer.state) == stands
    finally:
        other.close()


def test_a_client_that_goes_while_it_is_told_takes_its_threads_along(store: MemoryStore, slow: Served) -> None:
    slow.waits(born().token)
    client_of(store).set(large(), born().token)
    assert comes_true(lambda: slow.connection._rest is not None)
    slow.close()
    rest = slow.connection._rest
    assert rest and not rest.is_alive()
    assert not slow.connection._thread.is_alive()


def test_a_client_that_asks_during_its_wait_is_hung_up_on(slow: Served) -> None:
    slow.waits(born().token)
    protocol.send(slow.client, protocol.Get())
    assert slow.client.recv(1) == b""


# --- errors


class Breaking(MemoryBackend):
    """Its first wait fails in a way that nobody foresaw, when the register changes."""

    breaks = True

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        shown = super().wait_for_change(token, until)
        if type(self).breaks:
            type(self).breaks = False
            raise ZeroDivisionError("by nobody")
        return shown

    def clone(self) -> Breaking:
        return type(self)(self._store, SystemClock())


def _is_watched(waits: Waits) -> bool:
    return bool(waits._waits) and waits._watched == (born().token,)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_that_nobody_foresaw_is_told_to_those_who_wait_and_the_next_wait_is_answered(
    store: MemoryStore,
) -> None:
    served = Relay(lambda name: Breaking(store, SystemClock()))
    client = RelayBackend(served.path, "one", SystemClock())
    try:
        client.get()
        failed: list[str] = []

        def wait() -> None:
            with pytest.raises(OutOfReach) as raised:
                client.wait_for_change(born().token, math.inf)
            failed.append(str(raised.value))

        thread = threading.Thread(target=wait)
        thread.start()
        assert comes_true(lambda: bool(served._spaces and _is_watched(served._spaces._of["one"].waits)))
        (watching,) = [each for each in threading.enumerate() if each.name == "elastic-relay-watch"]
        client_of(store).set(SECOND, born().token)
        thread.join(ANSWER_S)
        watching.join(ANSWER_S)  # it shows its error last, which belongs to this test
        assert "an error in the agent's relay: ZeroDivisionError('by nobody')" in failed[0]
        assert client.get().state == SECOND
        waiting = Waiting(lambda: client.wait_for_change(SECOND.token, math.inf).state)
        client_of(store).set(THIRD, SECOND.token)
        assert waiting.answer(0.0)[0] == THIRD
    finally:
        client.close()
        served.close()


def test_a_copy_that_is_looked_at_again_and_again_puts_no_answer_off(store: MemoryStore) -> None:
    class There(Copying):
        copies = threading.Event()

    There.copies.set()
    copy, told = There(store, SystemClock()), list[bytes]()
    waits, wait = Waits(copy, Encoded(lambda _: None)), Wait(born().token, math.inf, 0.0, told.append)
    waits._waits.add(wait)
    waits.look([wait], copy.get)
    due_at = wait.due_at
    waits.look([wait], copy.get)
    assert wait.due_at == due_at < math.inf or told
