"""The relay: the agent's store, for its workers, over a unix socket."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
import tcpstores
from attrs import evolve
from conformance import ANSWER_S, Clients, Conformance, Waiting, born
from processes import comes_true, no_thread_left
from relayed import clients
from worlds import node, profile

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.notes import FAULTS, PROPOSALS, entering
from elastic.adapters.store.port import Backend, Denied, OutcomeUnknown, OutOfReach, Place, StoreError, spelled
from elastic.adapters.store.relay import relay_protocol as protocol
from elastic.adapters.store.relay.relay_backend import RelayBackend
from elastic.adapters.store.relay.relay_server import Relay, _remove_left_over
from elastic.core.rendezvous import Arrive, Proposal, RendezvousState, Token, codec
from elastic.core.rendezvous.actions import entering_in
from elastic.core.world import Life

ERA = Token(Life("life", 1), 2)
PROPOSAL, ENTERING = Proposal(ERA, Arrive(profile("a"))), Proposal(ERA, Arrive(profile("b")), enters=True)
NODES = node("a"), node("b")


def in_memory(name: str) -> Backend:
    return MemoryBackend(MemoryStore(), SystemClock())


@pytest.fixture(scope="module")
def store() -> Iterator[tcpstores.Store]:
    with tcpstores.own_store() as store:
        yield store


@pytest.fixture
def relay() -> Iterator[Relay]:
    served = Relay(in_memory)
    yield served
    served.close()


class TestRelayOfMemory(Conformance):
    @pytest.fixture
    def client(self, relay: Relay) -> Iterator[Clients]:
        with clients(relay) as make:
            yield make


class TestRelayOfTCPStore(Conformance):
    @pytest.fixture
    def client(self, store: tcpstores.Store) -> Iterator[Clients]:
        with tcpstores.clients(store[1], timeout_s=ANSWER_S) as there:
            served = Relay(lambda name: there())
            with clients(served) as make:
                yield make
            served.close()


def test_the_registers_of_two_names_know_nothing_of_each_other(relay: Relay) -> None:
    with clients(relay, "one") as one, clients(relay, "other") as other:
        one().set(born(), None)
        assert other().get().state is None
        assert one().get().state == born()


def test_a_value_that_is_too_long_hides_no_other_one(store: tcpstores.Store) -> None:
    with tcpstores.clients(store[1], timeout_s=ANSWER_S) as there:
        served = Relay(lambda name: there())
        long, direct = bytes(codec.FAULT_BYTES_MAX + 1), there()
        for node in NODES[1:]:
            direct.put(Place(PROPOSALS, spelled(node)), long)
        log = entering(entering_in(ENTERING.era))
        direct.count(ENTERING.like, Place(log, "long"), long)
        direct.put(Place(FAULTS, "long"), long)
        with clients(served) as make:
            rank = make().notes
            rank.put_proposal(NODES[0], PROPOSAL)
            rank.put_proposal(NODES[1], ENTERING)
            assert rank.proposals(NODES, ENTERING.era) == {NODES[0]: PROPOSAL, NODES[1]: ENTERING}
            assert rank.faults() == ()
        served.close()


def test_a_record_that_is_too_long_for_its_folder_is_refused(relay: Relay) -> None:
    with clients(relay) as make:
        client, other, place = make(), make(), Place(PROPOSALS, spelled(NODES[0]))
        other.get()  # it keeps the register open
        for put in (partial(client.put, place), partial(client.count, "tally", place)):
            put(bytes(codec.PROPOSAL_BYTES_MAX))
            with pytest.raises(OutcomeUnknown):
                put(bytes(codec.PROPOSAL_BYTES_MAX + 1))
        assert len(other.read([place])[0][place]) == codec.PROPOSAL_BYTES_MAX


def test_only_this_user_reaches_the_socket_and_nothing_is_left_of_it(relay: Relay) -> None:
    path = Path(relay.path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    relay.close()
    assert not path.parent.exists()


def test_a_path_that_is_too_long_for_the_kernel_is_made_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    served = Relay(in_memory)
    with clients(served) as make:
        assert make().set(born(), None).state == born()
    served.close()


KILLED = """
import os, signal
from elastic.adapters.store.relay.relay_server import Relay
print(Relay(lambda name: None).path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_a_relay_whose_agent_was_killed_is_removed_by_the_next_agent(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = tmp_path_factory.mktemp("t")  # a socket's path is short
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, just_killed = (
        Path(
            subprocess.run(
                [sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False
            ).stdout.strip()
        ).parent
        for _ in range(2)
    )
    alive = Relay(in_memory)
    others = tmp_path / "elastic-relay-of-somebody"
    others.write_text("no folder")
    of_another_host = tmp_path / "elastic-relay-there"  # if TMPDIR is shared; here its socket refuses
    of_another_host.mkdir()
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(of_another_host / "0123456789ab"))
    for folder in (killed, Path(alive.path).parent, others, of_another_host):
        os.utime(folder, (0, 0))
    served = Relay(in_memory)
    assert comes_true(lambda: not killed.exists())
    assert Path(alive.path).exists() and others.exists() and of_another_host.exists()
    assert just_killed.exists(), "an agent that is about to listen has such a folder, too"
    with clients(alive) as make:
        assert make().set(born(), None).state == born()
    alive.close()
    served.close()


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_relay_that_cannot_look_for_what_others_left_serves_all_the_same(tmp_path: Path) -> None:
    """An error in this look would end the thread that accepts."""
    with no_descriptor_left():
        _remove_left_over(tmp_path, "socket")


def test_an_agent_that_can_open_nothing_leaves_no_folder_of_a_relay(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = tmp_path_factory.mktemp("t")  # a socket's path is short
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with no_descriptor_left(), pytest.raises(OSError, match="Too many open files"):
        Relay(in_memory)
    assert not [*tmp_path.iterdir()], "one that was never served"
    served = Relay(in_memory)
    with no_descriptor_left():
        served.close()
    assert not [*tmp_path.iterdir()], "one that ends"


def test_while_the_agent_can_open_nothing_a_client_waits_and_the_agent_does_not_spin(relay: Relay) -> None:
    """Measured in processor time, of which a loaded machine gives less and never more."""
    cpu = time.pthread_getcpuclockid(relay._thread.ident or 0)
    with clients(relay) as make:
        make().set(born(), None)
        with socket.socket(socket.AF_UNIX) as knocking, no_descriptor_left():
            knocking.connect(relay.path)
            before = time.clock_gettime(cpu)
            time.sleep(1.0)
            assert time.clock_gettime(cpu) - before < 0.1
        assert make().get().state == born()


def held() -> set[object]:
    """The threads and descriptors of this process, each with what it is of: earlier tests may still let go of theirs."""
    found: set[object] = set(threading.enumerate())
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that this reads them by
            found.add((each.name, os.readlink(each)))
    return found


def test_a_client_that_goes_takes_its_threads_and_descriptors_along(relay: Relay) -> None:
    earlier = set(threading.enumerate())
    with clients(relay) as make:
        first = make()

        def is_followed() -> bool:
            """A question that comes too late starts nothing. The thread that it starts stays with the first client."""
            first.wait_for_change(None, time.monotonic() + 0.01)
            return "elastic-relay-watch" in {thread.name for thread in set(threading.enumerate()) - earlier}

        assert comes_true(is_followed)
        before = held()
        client = RelayBackend(relay.path, "one", SystemClock())
        client.get()
        waiting = Waiting(lambda: client.wait_for_change(None, float("inf")).state)
        assert len(held() - before) >= 4, "a thread and a descriptor of the client's, and of the relay's"
        client.close()
        waiting.answer(0.0)
        assert comes_true(lambda: held() <= before)


def test_a_client_whose_agent_has_ended_says_so_and_a_waiting_one_hears_of_it(relay: Relay) -> None:
    with clients(relay) as make:
        one, waiter = make(), make()
        one.set(born(), None)
        waiter.get()
        said: list[StoreError] = []

        def wait() -> None:
            try:
                waiter.wait_for_change(born().token, float("inf"))
            except StoreError as error:
                said.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        relay.close()
        thread.join(ANSWER_S)
        assert isinstance(said[0], OutOfReach) and "elastic launch" in str(said[0])
        with pytest.raises(OutOfReach, match=relay.path):
            one.get()


def test_a_client_that_connects_while_there_is_no_free_thread_is_served_when_there_is_one(relay: Relay) -> None:
    with clients(relay) as make:
        make().set(born(), None)
        late, go = make(), threading.Event()
        answered = Waiting(lambda: late.get().state if go.wait() else None)
        with no_thread_left():
            go.set()
            assert comes_true(lambda: len(relay._connections) == 2)
        assert answered.answer(0.0)[0] == born()
        assert make().get().state == born(), "the relay serves those who come later, too"


def test_a_relay_that_closes_while_there_is_no_free_thread_leaves_nothing_behind(relay: Relay) -> None:
    with socket.socket(socket.AF_UNIX) as knocking, no_thread_left():
        knocking.connect(relay.path)
        relay.close()
    assert not Path(relay.path).parent.exists()


def test_whatever_a_worker_puts_into_the_folder_of_a_relay_goes_with_it(relay: Relay) -> None:
    folder = Path(relay.path).parent
    (folder / "progress.0.0" / "deep").mkdir(parents=True)
    (folder / "progress.0.1").symlink_to("/etc")
    os.mkfifo(folder / "progress.0.2")
    relay.close()
    assert not folder.exists() and Path("/etc").exists()


class Counting(MemoryBackend):
    """Counts the clients of a store in `made`."""

    def __init__(self, store: MemoryStore, made: list[Backend]) -> None:
        super().__init__(store, SystemClock())
        self._made = made
        made.append(self)

    def clone(self) -> Counting:
        return Counting(self._store, self._made)


def test_the_many_clients_of_a_register_share_three_connections_to_the_store() -> None:
    """The first client is the register's own, which asks nothing and so connects to nothing."""
    made: list[Backend] = []
    served = Relay(lambda name: Counting(MemoryStore(), made))
    with clients(served) as make:
        many = [make() for _ in range(20)]
        many[0].set(born(), None)
        waits = [Waiting(lambda each=each: each.wait_for_change(born().token, float("inf")).state) for each in many[1:]]  # type: ignore[misc]
        later = evolve(born(), version=born().version + 1)
        many[0].set(later, born().token)
        assert all(each.answer(0.0)[0] == later for each in waits)
        assert len(made) == 1 + 3
    served.close()


def test_a_register_that_nobody_is_connected_to_any_more_is_closed(relay: Relay) -> None:
    """A long job opens more registers, one after the other, than an agent keeps open at one time."""
    for number in range(3):
        with clients(relay, f"call {number}") as make:
            make().get()
    assert relay._spaces
    assert comes_true(lambda: not relay._spaces._of)  # type: ignore[union-attr]


def hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True  # with something of ours unread


class Mute(MemoryBackend):
    """It answers nobody before it is closed."""

    def __init__(self, asked: threading.Event, closed: threading.Event) -> None:
        super().__init__(MemoryStore(), SystemClock())
        self.asked, self.closed = asked, closed

    def get(self) -> NoReturn:
        self.asked.set()
        self.closed.wait()
        raise OutOfReach("it was closed")

    def close(self) -> None:
        self.closed.set()

    def clone(self) -> Mute:
        return Mute(self.asked, self.closed)


def test_what_a_silent_store_was_asked_ends_with_the_relay() -> None:
    asked, closed = threading.Event(), threading.Event()
    relay = Relay(lambda name: Mute(asked, closed))
    client = RelayBackend(relay.path, "one", SystemClock())

    def asks() -> None:
        with suppress(StoreError):
            client.get()

    thread = threading.Thread(target=asks)
    thread.start()
    assert asked.wait(ANSWER_S)
    relay.close()
    was_closed = closed.is_set()
    closed.set()
    thread.join()
    client.close()
    assert was_closed


class Refusing(MemoryBackend):
    """A store that will not have us."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), SystemClock())

    def get(self) -> NoReturn:
        raise Denied("no permission")

    def set(self, state: RendezvousState, token: Token | None) -> NoReturn:
        raise OutcomeUnknown("who knows")

    def clone(self) -> Refusing:
        return Refusing()


def test_what_the_agent_s_store_refuses_is_told_as_it_was_said() -> None:
    served = Relay(lambda name: Refusing())
    with clients(served) as make:
        with pytest.raises(Denied, match="no permission"):
            make().get()
        client = make()
        with pytest.raises(OutcomeUnknown, match="who knows"):
            client.set(born(), None)
        assert client.heartbeats([]).counters == {}, "the connection is as good as before"
    served.close()


@pytest.mark.parametrize(
    "said", [b"", b"\x00\x00\x00\x01x", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{}", b"GET / HTTP/1.1\r\n\r\n"]
)
def test_who_speaks_another_language_is_hung_up_on_and_the_others_are_served(relay: Relay, said: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(ANSWER_S)
        stranger.connect(relay.path)
        stranger.sendall(said)
        stranger.shutdown(socket.SHUT_WR)
        assert hung_up(stranger)
    with clients(relay) as make:
        assert make().set(born(), None).state == born()


@pytest.mark.parametrize("asked", [protocol.Put(("root", ""), b"x"), protocol.Read((), "wish")])
def test_who_asks_for_a_record_that_there_is_not_is_hung_up_on(relay: Relay, asked: protocol.Question) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(ANSWER_S)
        stranger.connect(relay.path)
        protocol.send(stranger, protocol.Hello("one"), asked)
        assert isinstance(protocol.answer(stranger), protocol.Welcome) and hung_up(stranger)
