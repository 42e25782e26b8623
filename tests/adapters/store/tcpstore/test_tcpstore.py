"""The register on a real TCPStore: the shared suite, a store that holds what nobody of us wrote, one that goes away."""

from __future__ import annotations

import json
import math
import os
import pickle
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

import pytest
from attrs import evolve
from conformance import (
    ANSWER_S,
    SOON_S,
    AgentConformance,
    Clients,
    Conformance,
    Peer,
    Waiting,
    born,
    escapes,
    fault,
    grown,
    persistent,
)
from ports import reserved
from processes import comes_true, is_stopped
from tcpstores import TIMEOUT_S, Store, clients, own_store, plant, talking
from worlds import node, profile

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.heart import Heart
from elastic.adapters.store import runs
from elastic.adapters.store.notes import FAULTS
from elastic.adapters.store.port import BEATS_MAX, Backend, OutcomeUnknown, OutOfReach, Unreadable
from elastic.adapters.store.queries import Query
from elastic.adapters.store.runs import Runs
from elastic.adapters.store.secret import Secret
from elastic.adapters.store.tcpstore import tcpstore, wire
from elastic.adapters.store.tcpstore.keys import WORKERS, Keys
from elastic.adapters.store.tcpstore.seal import UNSEALED, Seal, seal
from elastic.adapters.store.tcpstore.serving import StoreHost
from elastic.adapters.store.tcpstore.table import Table
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.versions import Sight, Sights, Versions
from elastic.adapters.store.tcpstore.wire import Address, Broken, Oversized, Unsent, WireClient
from elastic.core.rendezvous import (
    Arrive,
    Done,
    Limits,
    Over,
    Proposal,
    RendezvousState,
    Settings,
    Token,
    codec,
    handlers,
)
from elastic.core.world import NAME_MAX, Why, World


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """One store for all tests of this file that leave it whole; each has a run id of its own."""
    with own_store() as store:
        yield store


@contextmanager
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Note all requests that are sent to a store meanwhile."""
    sent: list[bytes] = []
    send = WireClient._send

    def note(self: WireClient, request: bytes) -> None:
        sent.append(request)
        send(self, request)

    with monkeypatch.context() as patched:
        patched.setattr(WireClient, "_send", note)
        yield sent


def kinds(sent: list[bytes]) -> list[int]:
    return [request[0] for request in sent]


def test_a_heartbeat_that_hears_a_query_is_no_further_request(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clients(address) as client:
        asker, agent = client(), client()
        assert isinstance(asker, TCPStoreBackend) and isinstance(agent, TCPStoreBackend)
        asker.set(born(), None)
        agent.heartbeat(node("a"), 1)
        with noted(monkeypatch) as sent:
            agent.heartbeat(node("a"), 2)
            assert kinds(sent) == [wire.SET, wire.MULTI_GET]
            asker.notes.put_query(Query("0" * 16, 0))
            sent.clear()
            agent.heartbeat(node("a"), 3)
            assert agent.notes.query and kinds(sent) == [wire.SET, wire.MULTI_GET]


def test_heartbeats_are_read_with_the_register_in_one_request(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clients(address) as client:
        asker = client()
        asker.set(born(), None)
        asker.heartbeat(node("a"), 7)
        with noted(monkeypatch) as sent:
            assert asker.heartbeats([node("a"), node("b")]).counters == {node("a"): 7, node("b"): None}
            assert kinds(sent) == [wire.MULTI_GET]


SEALS = pytest.mark.parametrize("sealed", [UNSEALED, seal(Secret(b"sixteen bytes at least"))], ids=["plain", "token"])


@SEALS
def test_a_push_costs_two_requests_and_the_new_version(
    address: Address, sealed: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clients(address, seal=sealed) as client, closing(client().clone()) as waiter:
        writer, state = client(), born()
        writer.set(state, None)
        waiter.wait_for_change(None, math.inf)  # it has connected
        for _ in range(3):
            before, state = state, evolve(state, version=state.version + 1)
            writer.set(state, before.token)
            with noted(monkeypatch) as sent:
                assert waiter.wait_for_change(before.token, math.inf).state == state
                assert kinds(sent) == [wire.WAIT, wire.MULTI_GET]
                assert sum(map(len, sent)) < 300


@SEALS
def test_clones_read_and_decode_each_version_once(address: Address, sealed: Seal) -> None:
    with clients(address, seal=sealed) as client, ExitStack() as stack:
        writer, asker, state = client(), client(), born()
        waiter, heart = (stack.enter_context(closing(asker.clone())) for _ in range(2))
        writer.set(state, None)
        for _ in range(3):
            before, state = state, evolve(state, version=state.version + 1)
            writer.set(state, before.token)
            seen = waiter.wait_for_change(before.token, math.inf).state
            heart.heartbeat(node("a"), 1)
            assert asker.get().state is seen is waiter.wait_for_change(before.token, math.inf).state
            assert seen == state


@SEALS
def test_a_waiter_hears_of_what_its_clone_wrote_or_read_meanwhile(address: Address, sealed: Seal) -> None:
    asker, state = TCPStoreBackend(address, uuid4().hex, SystemClock(), seal=sealed), born()
    with closing(asker), closing(asker.clone()) as waiter:
        asker.set(state, None)
        for read in (False, True):
            before, state = state, evolve(state, version=state.version + 1)
            waiting = Waiting(lambda token=before.token: waiter.wait_for_change(token, math.inf).state)  # type: ignore[misc]
            if read:
                with closing(asker.clone()) as other:
                    other.set(state, before.token)
            else:
                asker.set(state, before.token)
            assert waiting.answer(0.0)[0] == state


@SEALS
def test_a_version_that_was_removed_since_its_push_is_looked_for(address: Address, sealed: Seal) -> None:
    with clients(address, seal=sealed) as client, talking(address) as other:
        writer, asker = client(), client()
        writer.set(born(), None)
        assert asker.get().state == born()
        last = history(writer, born(), 20)
        assert isinstance(asker, TCPStoreBackend)
        assert asker._versions.pushed(other, born().token) == last  # there is a mark in its place


def test_what_was_seen_first_is_not_taken_for_what_was_seen_last() -> None:
    first, second = born(), evolve(born(), version=9)
    sights = Sights()
    sights.tell(Sight(b"root", first, second))
    sights.tell(Sight(b"root", first, first))
    assert sights.latest == Sight(b"root", first, second)
    sights.tell(Sight(b"another", first, first))
    assert sights.latest == Sight(b"another", first, first)


def test_of_clients_that_read_a_version_at_once_one_decodes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    decode, decoded = codec.decode, list[bytes]()

    def slowly(data: bytes) -> RendezvousState:
        decoded.append(data)
        time.sleep(0.01)  # so that the others come meanwhile
        return decode(data)

    monkeypatch.setattr(codec, "decode", slowly)
    sights, data, other = Sights(), codec.encode(born()), codec.encode(evolve(born(), version=9))
    with ThreadPoolExecutor(8) as threads:
        states = list(threads.map(sights.decoded, [data] * 8))
    assert states == [born()] * 8 and decoded == [data]
    assert sights.decoded(other).version == 9 and decoded == [data, other]
    with pytest.raises(codec.Refused):
        sights.decoded(b"rubbish")
    assert sights.decoded(other).version == 9 and len(decoded) == 3


@pytest.fixture
def address(store: Store) -> Address:
    return store[1]


@pytest.fixture
def client(address: Address) -> Iterator[Clients]:
    run_id = uuid4().hex
    with clients(address, run_id) as make:
        yield make


class TestTCPStore(Conformance, AgentConformance):
    @pytest.fixture
    def client(self, client: Clients) -> Clients:
        return client


class TestTCPStoreWithAToken(Conformance, AgentConformance):
    @pytest.fixture
    def client(self, address: Address) -> Iterator[Clients]:
        with clients(address, seal=seal(Secret(b"sixteen bytes at least"))) as make:
            yield make


class TestATableInItsPlace(Conformance, AgentConformance):
    """Nobody serves the store."""

    @pytest.fixture
    def client(self) -> Iterator[Clients]:
        table, nowhere = Table(), Address("localhost", 1)
        with ExitStack() as stack:

            def make() -> TCPStoreBackend:
                made = TCPStoreBackend(nowhere, "job", SystemClock(), table=lambda: table)
                stack.callback(made.close)
                return made

            yield make


# --- one store for many


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("a", "a/heartbeat"), ("a/b", "a%2Fb"), ("é", "e"), ("a", "A")])
def test_runs_do_not_see_each_other(address: Address, one: str, other: str) -> None:
    salt = uuid4().hex
    with clients(address, one + salt) as first, clients(address, other + salt) as second:
        first().set(born(), None)
        first().heartbeat(node("a"), 1)
        first().notes.add(FAULTS, fault("a"))
        assert second().get().state is None
        assert second().heartbeats([node("a")]).counters == {node("a"): None}
        assert second().notes.faults() == ()


def test_a_store_greets_hundreds_of_clients_without_asking_for_their_names(address: Address) -> None:
    """torch's server asks the name server about each peer; where that one is slow or refuses, everybody waits 5 s."""
    with ExitStack() as stack:
        for _ in range(300):
            client = stack.enter_context(WireClient(address, ANSWER_S, codec.BYTES_MAX))
            client.greet()


@contextmanager
def open_descriptors(count: int) -> Iterator[None]:
    """So many of this process, in addition to those that it has."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2 * count), before[1]))
    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]
    try:
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_process_with_thousands_of_open_files_can_wait(address: Address) -> None:
    """A rank that trains has many: the samples of its data, the pipes of its loaders."""
    with open_descriptors(1_100), talking(address) as client:
        assert not client.wait([uuid4().hex], 0.0)
        plant(client, key := uuid4().hex, b"here")
        assert client.wait([key], None)


def test_who_waits_for_the_others_to_go_is_told_when_the_last_has_gone(client: Clients) -> None:
    host = client()
    assert isinstance(host, TCPStoreBackend)
    assert host.wait_until_gone([], 0.0)
    for name in "ab":
        client().heartbeat(node(name), 1)
    client().remove_heartbeat(node("a"))
    assert not host.wait_until_gone([node("a"), node("b")], 0.05)
    client().remove_heartbeat(node("b"))
    assert host.wait_until_gone([node("a"), node("b")], ANSWER_S)


def test_a_late_reader_finds_the_head_of_a_long_history(client: Clients) -> None:
    writer, late, waiting = client(), client(), client()
    state = born()
    writer.set(state, None)
    late.get()
    for _ in range(200):
        before, state = state, evolve(state, version=state.version + 1)
        assert writer.set(state, before.token).state == state
    assert late.get().state == state
    assert client().get().state == state
    assert waiting.wait_for_change(born().token, math.inf).state == state


def test_a_late_reader_finds_the_head_without_the_hint(address: Address) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        writer, state = client(), born()
        writer.set(state, None)
        for _ in range(60):
            before, state = state, evolve(state, version=state.version + 1)
            writer.set(state, before.token)
        for hint in (b"1", b"9" * 15, b"garbage", b""):
            plant(other, f"elastic/{run_id}/life/head", hint)
            assert client().get().state == state


def test_old_versions_take_no_space(address: Address) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        writer, state = client(), born()
        writer.set(state, None)
        for _ in range(60):
            before, state = state, evolve(state, version=state.version + 1)
            writer.set(state, before.token)
        sizes = [len(value) for value in other.get(*(f"elastic/{run_id}/life/{version}" for version in range(2, 61)))]
        below = other.get(*(f"elastic/{run_id}/life/{version}" for version in range(-20, 2)))
    assert sum(size > 1 for size in sizes) <= 20
    assert all(sizes) and not any(below)


# --- versions that are removed

MANY = 1_500
"""Versions: some five times as many as are removed at once."""


def history(writer: Backend, state: RendezvousState, count: int) -> RendezvousState:
    """Write so many versions after this one; return the last."""
    for _ in range(count):
        before, state = state, evolve(state, version=state.version + 1)
        assert writer.set(state, before.token).state == state
    return state


def test_a_store_does_not_grow_with_the_versions_of_a_register(address: Address) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        writer = client()
        writer.set(born(), None)
        last = history(writer, born(), MANY)
        left = other.get(*(f"elastic/{run_id}/life/{version}" for version in range(last.version + 1)))
        assert sum(map(bool, left)) <= 2 * 256 + 20
        assert left[last.version]


def test_a_block_of_256_marks_is_removed_when_two_stand_16_behind_the_head(address: Address) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:

        def marks() -> list[int]:
            values = other.get(*(f"elastic/{run_id}/life/{version}" for version in range(600)))
            return [version for version, value in enumerate(values) if value == b"-"]

        writer = client()
        writer.set(born(), None)
        last = history(writer, born(), 528)
        assert marks() == list(range(2, 513))
        history(writer, last, 1)
        assert marks() == list(range(258, 514))


@pytest.mark.parametrize("hint", [None, b"1", b"9" * 15, b"garbage"])
def test_a_reader_that_has_slept_past_removed_versions_finds_the_head(address: Address, hint: bytes | None) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        writer, slept = client(), client()
        writer.set(born(), None)
        slept.get()
        last = history(writer, born(), MANY)
        if hint:
            plant(other, f"elastic/{run_id}/life/head", hint)
        assert slept.get().state == last
        assert client().get().state == last
        assert slept.set(evolve(born(), version=born().version + 1), born().token).state == last


class Sleeping(WireClient):
    """Sleeps between the look at the register and the write that follows it."""

    def __init__(self, address: Address, sleep: Callable[[], object]) -> None:
        super().__init__(address, ANSWER_S, codec.BYTES_MAX)
        self._sleep = sleep

    def compare_set_and_get(self, *given: Any) -> tuple[bytes, bytes]:
        self._sleep()
        return super().compare_set_and_get(*given)


def test_a_write_over_a_version_that_was_removed_meanwhile_counts_for_nothing(address: Address) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        writer = client()
        writer.set(born(), None)
        second = history(writer, born(), 1)
        versions = Versions(Keys(run_id, str(address)), UNSEALED)
        ours = evolve(second, version=second.version + 1, next_order=second.next_order + 1)
        with Sleeping(address, lambda: history(writer, second, MANY)) as slept:
            slept.greet()
            assert versions.write(slept, ours, second.token) == writer.get().state
        assert other.get(f"elastic/{run_id}/life/{ours.version}") == (b"",)


@pytest.mark.parametrize("floor", [b"garbage", b"-1", b"9" * 15, b"9" * 99])
def test_a_forged_floor_is_refused(address: Address, floor: bytes) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        writer = client()
        writer.set(born(), None)
        plant(other, f"elastic/{run_id}/life/floor", floor)
        for each in (writer, client()):
            with pytest.raises(Unreadable, match=run_id):
                each.get()


# --- what nobody of us wrote


def _state(**changes: object) -> bytes:
    return json.dumps({**json.loads(codec.encode(born())), **changes}).encode()


GARBAGE = {
    "no JSON": b"\xff\xfe\x00",
    "not ours": b'{"hello": 1}',
    "a format to come": _state(format=99),
    "a field too much": _state(surprise=1),
    "a negative version": _state(version=-1),
    "a mark": b"-",
    "nested": b"[" * 100_000,
    "large": b"x" * (codec.BYTES_MAX - 4_096),
}


@pytest.mark.parametrize("garbage", list(GARBAGE.values()), ids=list(GARBAGE))
def test_garbage_for_a_register_is_unreadable_and_stays_untouched(address: Address, garbage: bytes) -> None:
    run_id = uuid4().hex
    root = f"elastic/{run_id}/root"
    with clients(address, run_id) as client, talking(address) as other:
        plant(other, root, garbage)
        with pytest.raises(Unreadable, match=root) as refusal:
            client().get()
        assert str(address) in str(refusal.value) and "--rdzv-id" in str(refusal.value)
        with pytest.raises(Unreadable):
            client().set(born(), None)
        with pytest.raises(Unreadable):
            client().wait_for_change(None, math.inf)
        assert other.get(root) == (garbage,)


WRONG = {
    "garbage": b"\xff",
    "another life's": codec.encode(evolve(grown(born("other"), "b"), version=2)),
    "another version": codec.encode(evolve(grown(born(), "b"), version=3)),
}


@pytest.mark.parametrize("wrong", list(WRONG.values()), ids=list(WRONG))
def test_a_version_that_is_not_what_its_key_says_is_unreadable(address: Address, wrong: bytes) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        reader = client()
        reader.set(born(), None)
        waiting = Waiting(lambda: _refused(lambda: reader.wait_for_change(born().token, math.inf).state))
        plant(other, f"elastic/{run_id}/life/2", wrong)
        waiting.answer(time.monotonic())
        with pytest.raises(Unreadable, match="life/2"):
            client().set(grown(born(), "b"), born().token)
        assert other.get(f"elastic/{run_id}/life/2") == (wrong,)


def _refused(ask: Callable[[], object]) -> None:
    with pytest.raises(Unreadable):
        ask()


def test_nothing_that_is_read_is_executed(address: Address, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (open, (str(tmp_path / "sprung"), "w"))

    run_id, trap = uuid4().hex, pickle.dumps(Trap())
    with clients(address, run_id) as client, talking(address) as other:
        for key in ("root", "heartbeat/a%231", "faults/1"):
            plant(other, f"elastic/{run_id}/{key}", trap)
        plant(other, f"elastic/{run_id}/faults/count", b"1")
        _refused(client().get)
        _refused(lambda: client().heartbeats([node("a")]))
        assert client().notes.faults() == ()
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("counter", [b"-1", b"1.5", b" 7", b"garbage", b"9" * 5_000, "٣".encode()])
def test_a_heartbeat_that_is_no_counter_is_no_sign_of_life_and_none_of_death(address: Address, counter: bytes) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        plant(other, f"elastic/{run_id}/heartbeat/a%231", counter)
        client().heartbeat(node("b"), 3)
        assert client().heartbeats([node("a"), node("b")]).counters == {node("a"): 0, node("b"): 3}
        client().heartbeat(node("a"), 4)
        assert client().heartbeats([node("a")]).counters == {node("a"): 4}


def test_without_a_token_a_lower_heartbeat_is_a_beat_and_a_much_higher_one_before_was_forged(address: Address) -> None:
    run_id, told, seen = uuid4().hex, list[str](), []
    key = f"elastic/{run_id}/heartbeat/a%231"
    backend = TCPStoreBackend(address, run_id, SystemClock(), warn=told.append)
    with closing(backend) as observer, talking(address) as other:
        for counter in (b"5", b"3", b"1003", b"3", b"9999", b"4", b"garbage", b"1" * 16, b"5"):
            plant(other, key, counter)
            seen.append((observer.heartbeats([node("a")]).counters[node("a")], len(told)))
    assert seen == [(5, 0), (3, 0), (1003, 0), (3, 0), (9999, 0), (4, 1), (4, 2), (4, 3), (5, 3)]
    stood, *stands = (
        f"a forged heartbeat of a#1 {how} in the store: {key}; no agent of this job wrote it"
        for how in ("stood", "stands")
    )
    assert told == [stood, *stands, *stands]


@pytest.mark.parametrize("planted", [b"%d" % BEATS_MAX, b"%d" % (BEATS_MAX - 2), b"%d" % (BEATS_MAX + 1), b"garbage"])
def test_no_forged_heartbeat_that_stands_before_a_node_starts_silences_it(address: Address, planted: bytes) -> None:
    """The node counts on from what it finds, and its readers take no counter above BEATS_MAX for one of an agent."""
    run_id, beaten = uuid4().hex, SimpleQueue[float]()
    with clients(address, run_id) as client, talking(address) as other:
        plant(other, f"elastic/{run_id}/heartbeat/a%231", planted)
        observer = client()
        last = observer.heartbeats([node("a")]).counters[node("a")]
        own = client().clone()
        heart = Heart(own, node("a"), TIMEOUT_S, SystemClock(), lambda sent_at, life: beaten.put(sent_at), escapes)
        heart.start()
        try:
            for _ in range(4):
                heart.beat()
                beaten.get(timeout=ANSWER_S)
                seen = observer.heartbeats([node("a")]).counters[node("a")]
                assert seen != last, "it stands still, so its node is silent"
                last = seen
        finally:
            heart.stop()


@pytest.mark.parametrize("garbage", [b"", b"garbage", codec.encode(born()), b"[" * 100_000])
def test_a_proposal_that_nobody_can_read_hides_no_other(address: Address, garbage: bytes) -> None:
    run_id, proposal = uuid4().hex, Proposal(born().era, Done(0))
    with clients(address, run_id) as client, talking(address) as other:
        assert [client().notes.put_proposal(node(name), proposal) for name in "ab"] == [1, 2]
        plant(other, f"elastic/{run_id}/wish/a%231", garbage)
        assert client().notes.proposals([node("a"), node("b")]) == {node("b"): proposal}


ENTERS = Proposal(born().era, Arrive(profile("a")), enters=True)


@pytest.mark.parametrize("garbage", [b"", b"garbage", codec.encode_proposal(ENTERS), b"[" * 100_000])
def test_a_proposal_to_enter_that_nobody_can_read_hides_no_other(address: Address, garbage: bytes) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        assert [client().notes.put_proposal(node(name), ENTERS) for name in "ab"] == [1, 2]
        plant(other, f"elastic/{run_id}/enter/{ENTERS.like}/1", garbage)
        assert client().notes.proposals([], ENTERS.era) == {node("b"): ENTERS}


@pytest.mark.parametrize(("count", "found"), [(b"garbage", 0), (b"-5", 0), (b"8192", 1), (b"999999999", 0)])
def test_a_number_of_proposals_to_enter_that_cannot_be_is_survived(address: Address, count: bytes, found: int) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        assert client().notes.put_proposal(node("a"), ENTERS) == 1
        plant(other, f"elastic/{run_id}/numbers/{ENTERS.like}", count)
        assert len(client().notes.proposals([], ENTERS.era)) == found


def test_who_proposes_to_enter_in_another_era_takes_the_last_one_away(address: Address) -> None:
    run_id, later = uuid4().hex, evolve(ENTERS, era=Token(born().life, 7))
    with clients(address, run_id) as client, talking(address) as other:
        one = client()
        for proposal in (ENTERS, later):
            one.notes.put_proposal(node("a"), proposal)
            one.notes.put_proposal(node("b"), proposal)
        old, new = (f"elastic/{run_id}/enter/{each.like}/1" for each in (ENTERS, later))
        assert [bool(value) for value in other.get(old, new)] == [False, True]


def test_who_began_a_count_takes_it_away_when_it_proposes_in_another_era(address: Address) -> None:
    run_id, eras = uuid4().hex, [Token(born().life, version) for version in (3, 5, 9)]
    with clients(address, run_id) as client, talking(address) as other:
        one, two = client(), client()
        marks, enters = ([Proposal(era, Done(0)) for era in eras], [evolve(ENTERS, era=era) for era in eras])
        for proposals, name, late in ((marks, "a", "b"), (enters, "c", "d")):
            assert [one.notes.put_proposal(node(name), proposal) for proposal in proposals] == [1, 1, 1]
            assert [two.notes.put_proposal(node(late), proposal) for proposal in proposals] == [1, 1, 2]
            keys = [f"elastic/{run_id}/wished/{proposal.like}" for proposal in proposals]
            assert other.get(*keys) == (b"", b"", b"2")
        keys = [f"elastic/{run_id}/numbers/{proposal.like}" for proposal in enters]
        assert other.get(*keys) == (b"", b"", b"2")


@pytest.mark.parametrize("garbage", [b"", b"garbage", codec.encode(born()), b"[" * 100_000])
def test_a_fault_that_nobody_can_read_hides_no_other(address: Address, garbage: bytes) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        client().notes.add(FAULTS, fault("a"))
        client().notes.add(FAULTS, fault("b"))
        plant(other, f"elastic/{run_id}/faults/1", garbage)
        assert client().notes.faults() == (fault("b"),)


@pytest.mark.parametrize("count", [b"garbage", b"-5", b"999999999"])
def test_a_count_of_faults_that_cannot_be_is_survived(address: Address, count: bytes) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        client().notes.add(FAULTS, fault("a"))
        plant(other, f"elastic/{run_id}/faults/count", count)
        assert set(client().notes.faults()) <= {fault("a")}


# --- the wire


def test_a_value_that_is_too_large_is_not_read(address: Address) -> None:
    key = uuid4().hex
    with talking(address) as other, WireClient(address, ANSWER_S, bytes_max=1_000) as client:
        plant(other, key, b"x" * 1_001)
        client.greet()
        with pytest.raises(Oversized, match="1001 bytes"):
            client.get(key)


@contextmanager
def listener(answer: Callable[[socket.socket], None]) -> Iterator[Address]:
    """Something that is no TCPStore."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    with connection:
                        answer(connection)
            except OSError:
                pass

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield Address("127.0.0.1", server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _silent(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.recv(1 << 16)


def _web(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def _rude(connection: socket.socket) -> None:
    pass


@pytest.mark.parametrize("answer", [_silent, _web, _rude])
def test_what_is_no_store_is_out_of_reach_and_named(answer: Callable[[socket.socket], None]) -> None:
    with listener(answer) as address, clients(address, timeout_s=TIMEOUT_S) as client:
        for ask in (client().get, lambda: client().set(born(), None).state, lambda: client().heartbeat(node("a"), 1)):
            with pytest.raises(OutOfReach, match=rf"{address.host}:{address.port} .*(another program|TCPStore)"):
                ask()


def test_a_name_that_this_host_does_not_know_is_to_be_mended() -> None:
    named = r"^no answer from the store at no-such-host\.invalid:29400 .*correct it, or write"
    with clients(Address("no-such-host.invalid", 29_400)) as client, pytest.raises(OutOfReach, match=named):
        client().get()


def test_a_host_without_a_store_is_out_of_reach_at_once() -> None:
    with reserved() as port, clients(Address("127.0.0.1", port)) as client:
        began = time.monotonic()
        with pytest.raises(OutOfReach, match=rf"127.0.0.1:{port} \(Connection refused\)"):
            client().get()
        with pytest.raises(OutOfReach):
            client().set(born(), None)
        assert time.monotonic() - began < SOON_S


def test_what_never_says_that_a_wait_is_over_is_no_store() -> None:
    def endless(connection: socket.socket) -> None:
        while not connection.recv(1 << 16).endswith(bytes([wire.CANCEL])):
            pass
        while True:
            connection.sendall(bytes(1 << 16))

    ends = pytest.raises(Broken, match="no TCPStore")
    with listener(endless) as address, WireClient(address, ANSWER_S, bytes_max=1_000) as client, ends:
        client.wait(["key"], 0.0)


@contextmanager
def losing(behind: Address, reaches: bool) -> Iterator[Address]:
    """A way to the store on which the first conditional write is lost, or its answer."""
    threads: list[threading.Thread] = []

    def forward(source: socket.socket, to: socket.socket, stop: Callable[[bytes], bool]) -> None:
        try:
            while data := source.recv(1 << 20):
                if stop(data):
                    break
                to.sendall(data)
        except OSError:
            pass
        for end in (source, to):
            with pytest.MonkeyPatch.context():
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def serve_one(near: socket.socket) -> None:
        asked = threading.Event()

        def is_write(data: bytes) -> bool:
            if data[0] == wire.COMPARE_SET:
                asked.set()
            return asked.is_set() and not reaches

        with near, socket.create_connection((behind.host, behind.port)) as far:
            back = threading.Thread(target=forward, args=(far, near, lambda data: asked.is_set()))
            back.start()
            forward(near, far, is_write)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            try:
                while True:
                    near, _ = server.accept()
                    threads.append(threading.Thread(target=serve_one, args=(near,)))
                    threads[-1].start()
            except OSError:
                pass

        accepting = threading.Thread(target=run)
        accepting.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        accepting.join()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("reaches", [True, False])
def test_a_write_whose_answer_is_lost_is_named_as_such(address: Address, reaches: bool) -> None:
    run_id = uuid4().hex
    with losing(address, reaches) as way, clients(way, run_id) as cut_off:
        writer = cut_off()
        with pytest.raises(OutcomeUnknown, match=f"{way.host}:{way.port}"):
            writer.set(born(), None)
    with clients(address, run_id) as client:
        assert client().get().state == (born() if reaches else None)


# --- the store goes away


def test_a_store_that_dies_is_out_of_reach_for_everybody_at_once() -> None:
    with own_store() as (host, address), clients(address) as client:
        waiter, writer = client(), client()
        writer.set(born(), None)
        waiting = Waiting(lambda: _out_of_reach(lambda: waiter.wait_for_change(born().token, math.inf).state))
        began = time.monotonic()
        host.close()
        _, took_s = waiting.answer(began)
        assert took_s < SOON_S
        for ask in (
            writer.get,
            lambda: writer.set(grown(born(), "b"), born().token).state,
            lambda: writer.heartbeat(node("a"), 1),
            lambda: writer.heartbeats([node("a")]).counters,
            lambda: writer.remove_heartbeat(node("a")),
            lambda: writer.notes.add(FAULTS, fault("a")),
            writer.notes.faults,
        ):
            _out_of_reach(ask)
        assert time.monotonic() - began < SOON_S


def _out_of_reach(ask: Callable[[], object]) -> None:
    with pytest.raises(OutOfReach):
        ask()


def test_a_store_that_came_back_empty_is_seen_as_such_and_takes_no_write_of_the_old_life() -> None:
    two = grown(born(), "b")
    with own_store() as (host, address), clients(address) as client:
        holder, late = client(), client()
        holder.set(born(), None)
        late.get()
        holder.set(two, born().token)
        host.close()
        with own_store(address.port):
            _out_of_reach(holder.get)
            _out_of_reach(lambda: late.set(grown(born(), "z"), born().token).state)
            assert holder.get().state is None
            assert late.set(grown(born(), "z"), born().token).state is None
            assert holder.set(grown(two, "c"), two.token).state is None
            assert client().get().state is None
            fresh = born("another")
            assert client().set(fresh, None).state == fresh
            assert holder.get().state == fresh
            assert holder.set(grown(two, "c"), two.token).state == fresh
            assert holder.wait_for_change(two.token, math.inf).state == fresh


@contextmanager
def paused(host: StoreHost) -> Iterator[None]:
    os.kill(host.pid, signal.SIGSTOP)
    try:
        assert comes_true(lambda: is_stopped(host.pid))
        yield
    finally:
        os.kill(host.pid, signal.SIGCONT)


def test_a_store_that_stands_still_is_out_of_reach_until_it_goes_on(store: Store) -> None:
    host, address = store
    with clients(address, timeout_s=TIMEOUT_S) as client:
        known, fresh = client(), client()
        persistent(lambda: known.set(born(), None))
        with paused(host):
            for ask in (known.get, fresh.get, lambda: known.heartbeat(node("a"), 1)):
                began = time.monotonic()
                _out_of_reach(ask)
                assert time.monotonic() - began < TIMEOUT_S + SOON_S
        assert persistent(known.get).state == persistent(fresh.get).state == born()
        persistent(lambda: known.heartbeat(node("a"), 2))
        assert persistent(lambda: fresh.heartbeats([node("a")])).counters == {node("a"): 2}


def test_a_heartbeat_is_acknowledged_by_the_store_not_by_the_kernel(store: Store) -> None:
    host, address = store
    with clients(address, timeout_s=TIMEOUT_S) as client:
        heart = client()
        persistent(lambda: heart.heartbeat(node("a"), 1))
        with paused(host):
            _out_of_reach(lambda: heart.heartbeat(node("a"), 2))


@pytest.mark.parametrize("connected", [True, False])
def test_closing_ends_a_call_to_a_store_that_stands_still(store: Store, connected: bool) -> None:
    host, address = store
    with clients(address) as client:
        one = client()
        if connected:
            one.get()
        with paused(host):
            waiting = Waiting(lambda: _out_of_reach(one.get))
            began = time.monotonic()
            one.close()
            _, took_s = waiting.answer(began)
            assert took_s < SOON_S


def test_closing_waits_for_no_connection_that_is_still_being_made() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = Address(*full.getsockname())
        with socket.create_connection((address.host, address.port)), clients(address) as client:
            one = client()
            waiting = Waiting(lambda: _out_of_reach(one.get))
            began = time.monotonic()
            one.close()
            assert time.monotonic() - began < SOON_S
            full.accept()[0].close()
            waiting.answer(began)


def test_a_wait_ends_in_time_while_the_store_stands_still(store: Store) -> None:
    host, address = store
    with clients(address, timeout_s=TIMEOUT_S) as client:
        waiter = client()
        persistent(lambda: waiter.set(born(), None))
        with paused(host):
            began = time.monotonic()
            _out_of_reach(lambda: waiter.wait_for_change(born().token, began + 0.1).state)
            assert time.monotonic() - began < TIMEOUT_S + SOON_S


# --- nodes at a store that goes away

SETTINGS = Settings(Limits(2, 2), keep_alive_interval=0.2, keep_alive_max_attempt=10)
AWAKE = evolve(SETTINGS, keep_alive_max_attempt=1_000)
"""For nodes that remember: a machine that stands still for their TTL of 200 s has no node that is awake."""


@contextmanager
def two_nodes(address: Address, run_id: str = "", settings: Settings = SETTINGS) -> Iterator[tuple[Peer, Peer]]:
    with clients(address, run_id, TIMEOUT_S) as client, ExitStack() as stack:
        a, b = (stack.enter_context(Peer(client(), name, settings, f"life{name}")) for name in "ab")
        a.submit(handlers.join)
        b.submit(handlers.join)
        assert isinstance(a.hears(handlers.join), World) and isinstance(b.hears(handlers.join), World)
        yield a, b


def _told_nothing(peer: Peer, for_s: float) -> bool:
    try:
        peer.told.get(timeout=for_s)
    except Empty:
        return True
    return False


def test_workers_run_on_while_the_store_is_away_and_stopping_stays_prompt() -> None:
    with own_store() as (host, address), two_nodes(address) as (a, b):
        host.close()
        assert _told_nothing(a, 1.0)
        assert b.told.empty()
        began = time.monotonic()
        a.loop.stop()
        assert time.monotonic() - began < SOON_S


def test_a_pause_of_the_store_evicts_nobody(store: Store) -> None:
    host, address = store
    with two_nodes(address) as (a, b):
        with paused(host):
            assert _told_nothing(a, 3.0)
        assert _told_nothing(a, 1.0)
        assert b.told.empty()
        b.submit(handlers.leave)
        over = a.hears(handlers.watch)
        assert isinstance(over, Over) and over.ended and over.ended.why is Why.LEFT


def test_a_store_that_came_back_empty_is_given_back_what_its_nodes_hold() -> None:
    with own_store() as (host, address), two_nodes(address, "run", AWAKE) as (a, b), clients(address, "run") as client:
        before = client().get().state
        host.close()
        assert _told_nothing(a, 1.0)
        with own_store(address.port):
            later = client()
            after = later.wait_for_change(None, time.monotonic() + ANSWER_S).state
            assert before and after and (after.world_id, after.life.epoch) == (before.world_id, 2)
            assert _told_nothing(a, 1.0) and b.told.empty()
            b.submit(handlers.leave)
            over = a.hears(handlers.watch)
            assert isinstance(over, Over) and over.ended and over.ended.why is Why.LEFT


def test_a_connection_sends_at_once_and_notices_a_host_that_is_gone(address: Address) -> None:
    with talking(address) as client:
        assert client._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert client._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_the_wire_refuses_a_store_that_is_not_there() -> None:
    with reserved() as port, pytest.raises(Unsent):
        WireClient(Address("127.0.0.1", port), ANSWER_S, 1_000)


def test_a_store_tells_which_runs_have_a_register_there_and_not_those_of_their_workers() -> None:
    with own_store() as (_, address), talking(address) as other:
        for run_id in ("train 42/a", "eval", f"eval{WORKERS}0"):
            with clients(address, run_id) as make:
                make().set(born(), None)
        plant(other, "elastic/half", b"1")
        plant(other, "else/x/root", b"1")
        plant(other, "elastic/%1b[31m%FF/root", b"1")
        with closing(TCPStoreBackend(address, "nobody", SystemClock())) as looks:
            assert looks.runs() == Runs(frozenset({"train 42/a", "eval", "\x1b[31m\N{REPLACEMENT CHARACTER}"}))


def test_of_many_runs_in_a_store_those_are_told_that_are_called_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RUNS_MAX", 2)
    with own_store() as (_, address), talking(address) as other:
        for run_id in ("apex", "eval", "train42", "train7", "zoo"):
            plant(other, f"elastic/{run_id}/root", b"1")
        plant(other, f"elastic/{'trian42'.ljust(12 * NAME_MAX + 8, 'x')}/root", b"1")
        with closing(TCPStoreBackend(address, "trian42", SystemClock())) as looks:
            assert looks.runs() == Runs(frozenset({"train42", "train7"}), is_part=True)


@pytest.mark.parametrize("key", [b"/elastic/eval/root", b"x" * 2**20])
def test_a_store_that_tells_keys_without_end_is_heard_for_a_time(key: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcpstore, "_LISTED_S", 0.3)

    def tells(connection: socket.socket) -> None:
        greeting = connection.recv(10, socket.MSG_WAITALL)
        connection.sendall(greeting[-4:] + struct.pack("<Q", 2**60) + struct.pack("<Q", 18) + b"/elastic/eval/root")
        while True:
            connection.sendall(struct.pack("<Q", len(key)) + key)

    with listener(tells) as address, closing(TCPStoreBackend(address, "nobody", SystemClock())) as looks:
        assert looks.runs() == Runs(frozenset({"eval"}), is_part=True)


@pytest.mark.parametrize("told", [b"", struct.pack("<QQ", 2, 18) + b"/elastic/eval/root", struct.pack("<QQ", 1, 2**40)])
def test_a_store_that_stalls_while_it_tells_its_keys_is_not_waited_for(
    told: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcpstore, "_LISTED_S", 0.3)

    def stalls(connection: socket.socket) -> None:
        greeting = connection.recv(10, socket.MSG_WAITALL)
        connection.sendall(greeting[-4:] + told)
        while connection.recv(1):
            pass

    named = frozenset({"eval"} if b"eval" in told else ())
    with listener(stalls) as address, closing(TCPStoreBackend(address, "nobody", SystemClock())) as looks:
        assert looks.runs() == Runs(named, is_part=True)
