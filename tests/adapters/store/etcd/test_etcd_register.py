"""The register on a real etcd: the shared suites, what nobody of us wrote, what stays behind, a restored cluster."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conformance import SOON_S, AgentConformance, Clients, Waiting, born, fault, grown, short
from etcd_clients import LEASE_S, PATIENT_S, PLAIN, Etcds, addresses, clients
from etcds import Cluster, single
from leased import LeasedConformance
from processes import comes_true
from worlds import node

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.connection import EtcdConnection
from elastic.adapters.store.etcd.change_waiter import ChangeWaiter
from elastic.adapters.store.etcd.etcd_register import EtcdBackend
from elastic.adapters.store.etcd.heartbeats import Beats
from elastic.adapters.store.etcd.members import Members, ranged, transacted
from elastic.adapters.store.etcd.rpc import rpc
from elastic.adapters.store.etcd.run_client import RunShared
from elastic.adapters.store.etcd.run_keys import Keys, Seen, Stamp, prefix_of, put
from elastic.adapters.store.etcd.watch_stream import Change
from elastic.adapters.store.notes import FAULTS, STACKS, STANDBYS, UNFIT, UNFIT_MAX, StandbyNote
from elastic.adapters.store.port import Backend, OutOfReach, Shown, Unreadable
from elastic.adapters.store.queries import Query, Reply
from elastic.adapters.store.runs import Runs
from elastic.core.rendezvous import Done, Limits, Proposal, Restore, Settings, Token, codec, restored
from elastic.core.rendezvous.state import NODES_MAX
from elastic.core.world import Stacks, Unfit

NEVER_S = 60.0
SHORT_S = 5
"""How long a run's keys stand whose end is waited for."""
PUTS_MAX = 128
"""An etcd takes no more in one transaction."""
ENVELOPE = b"elastic 1 cluster 1 write 0123456789abcdef epoch 1 life life\n"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests of this file that leave it whole; each has a run id of its own."""
    with single(tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster


@pytest.fixture
def run_id() -> str:
    return uuid4().hex


@pytest.fixture
def client(etcd: Cluster, run_id: str) -> Iterator[Etcds]:
    with clients(etcd, run_id) as make:
        yield make


class TestEtcd(LeasedConformance, AgentConformance):
    @pytest.fixture
    def client(self, client: Clients) -> Clients:
        return client

    @pytest.fixture
    def hasty(self, etcd: Cluster) -> Iterator[Clients]:
        with clients(etcd, lease_s=LEASE_S) as make:
            yield make


def keys(etcd: Cluster, prefix: str) -> list[str]:
    return etcd.etcdctl("get", prefix, "--prefix", "--keys-only").split()


def leases(etcd: Cluster) -> set[str]:
    return set(etcd.etcdctl("lease", "list").splitlines()[1:])


def revision(etcd: Cluster) -> int:
    """Of the whole store: moves with every write, and with every lease that ends."""
    return int(json.loads(etcd.etcdctl("get", "x", "-w", "json"))["header"]["revision"])


def written(etcd: Cluster, prefix: str) -> dict[str, int]:
    """Each key below, and when it was last written."""
    kvs = json.loads(etcd.etcdctl("get", prefix, "--prefix", "-w", "json"))["kvs"]
    return {kv["key"]: kv["mod_revision"] for kv in kvs}


# --- one cluster for many


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("a", "a/heartbeat"), ("a/b", "a%2Fb"), ("é", "e"), ("a", "A")])
def test_runs_do_not_see_each_other(etcd: Cluster, run_id: str, one: str, other: str) -> None:
    with clients(etcd, one + run_id) as first, clients(etcd, other + run_id) as second:
        first().set(born(), None)
        first().heartbeat(node("a"), 1)
        first().notes.add(FAULTS, fault("a"))
        assert second().get().state is None
        assert second().heartbeats([node("a"), node("b")]).counters == {node("a"): None, node("b"): None}
        assert second().notes.faults() == ()


def test_a_write_is_one_round_trip_and_so_is_one_that_comes_too_late(
    client: Etcds, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner, loser = client(), client()
    winner.set(born(), None)
    assert winner.get().state == loser.get().state == born()
    asked = counted(monkeypatch, winner, loser)
    two = grown(born(), "b")
    assert winner.set(two, born().token).state == two
    assert loser.set(grown(born(), "c"), born().token).state == two
    assert asked == [1, 1]


def test_of_two_answers_of_a_cluster_the_newer_one_is_kept_and_of_two_clusters_the_last() -> None:
    """Clients in several threads share it."""
    this, again, above, below = (int(cluster) for cluster in ("4711", "4711", "4712", "4710"))
    shared = RunShared(NEVER_S)
    answers = Seen(this, at=999), Seen(again, at=998), Seen(above, at=3), Seen(below, at=2)
    kept = [(shared.learn(answer), shared.latest)[1] for answer in answers]
    assert kept == [answers[0], answers[0], answers[2], answers[3]]


class Asking:
    """A client that keeps what it is asked, and gets no answer."""

    def __init__(self) -> None:
        self.keys = Keys("run", "here")
        self.requests: list[Any] = []

    def ask(self, method: object, request: object) -> None:
        self.requests.append(request)
        raise OutOfReach("nobody answers")


class Telling:
    """A watch stream that tells one change."""

    def __init__(self, change: Change) -> None:
        self.change = change

    def next(self, timeout_s: float) -> Change:
        return self.change


@pytest.mark.parametrize(("cluster", "revision", "is_news"), [(4711, 998, False), (4711, 1_000, True), (4712, 3, True)])
def test_the_revisions_of_two_clusters_are_not_compared(cluster: int, revision: int, is_news: bool) -> None:
    """A cluster that was made anew counts from 1, and its first change may come by the watch."""
    asking: Any = Asking()
    asking.shared = RunShared(NEVER_S)
    asking.shared.learn(Seen(4711, at=999))
    stream: Any = Telling(Change(rpc.KeyValue(mod_revision=revision), True, cluster))
    heard = ChangeWaiter(asking, SystemClock(), 1.0)._hear(stream, 0.0)
    assert (heard == Seen(cluster, at=revision)) is is_news and (heard is None) is not is_news


def test_one_heartbeat_is_read_by_its_key_and_more_in_one_request_with_a_limit() -> None:
    asking = Asking()
    for nodes in ([node("a")], [node("a"), node("b")]):
        with pytest.raises(OutOfReach):
            Beats(asking, 10).of(nodes)  # type: ignore[arg-type]
    one, more = (each.success[0].request_range for each in asking.requests)
    assert (one.key, one.range_end) == (asking.keys.heartbeat(node("a")), b"")
    assert (more.key, more.range_end) == (asking.keys.key("heartbeat/"), asking.keys.key("heartbeat0"))
    assert more.limit == 2 * NODES_MAX


@pytest.mark.parametrize(("written_in", "here"), [("4710", False), ("4711", True), ("4712", False)])
def test_a_register_is_here_where_the_cluster_that_shows_it_is_the_one_that_wrote_it(
    written_in: str, here: bool
) -> None:
    stamp = Stamp(int(written_in), "0123456789abcdef", born().life)
    assert Seen(4711, born(), stamp).shown == Shown(born(), here)
    named = Keys("run", "etcd").named(rpc.ResponseHeader(cluster_id=4711), str(stamp).encode())
    assert named == (born().life if here else None)


def counted(monkeypatch: pytest.MonkeyPatch, *backends: EtcdBackend) -> list[int]:
    """How often each of them asks from now on."""
    counts = [0] * len(backends)
    for index, backend in enumerate(backends):

        def ask(
            *given: object, index: int = index, ask: Callable[..., object] = backend._client.cluster.ask, **how: object
        ) -> object:
            counts[index] += 1
            return ask(*given, **how)

        monkeypatch.setattr(backend._client.cluster, "ask", ask)
    return counts


def test_a_heartbeat_that_hears_a_query_is_no_further_request(client: Etcds, monkeypatch: pytest.MonkeyPatch) -> None:
    asker, agent = client(), client()
    asker.set(born(), None)
    agent.heartbeat(node("a"), 1)
    asked = counted(monkeypatch, agent)
    agent.heartbeat(node("a"), 1)
    without, asked[0] = asked[0], 0
    asker.notes.put_query(Query("0" * 16, 0))
    agent.heartbeat(node("a"), 1)
    assert agent.notes.query and asked == [without]


def test_nodes_of_which_few_have_stacks_are_read_with_two_questions(
    client: Etcds, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, looks = client(), client()
    agent.set(born(), None)
    nodes, told = [node(f"n{number}") for number in range(256)], Stacks(node("n77"), 0)
    counts = counted(monkeypatch, looks)
    assert looks.notes.read(STACKS, nodes) == {} and counts == [1]
    agent.notes.put(STACKS, told.node, told)
    assert looks.notes.read(STACKS, nodes) == {told.node: told} and counts == [3]


def test_what_thousands_of_lost_nodes_left_behind_hides_nothing_of_a_node_that_lives(client: Etcds) -> None:
    one, lives = client(), node("z")
    one.set(state := born(), None)
    back = Proposal(state.era, Done(0))
    for folder in ("wish", "standbys", "stacks"):
        for first in range(0, 2 * NODES_MAX, PUTS_MAX):
            left = (one._client.keys.key(f"{folder}/lost{number}") for number in range(first, first + PUTS_MAX))
            one._client.ask(transacted, rpc.TxnRequest(success=[put(key, b"", 0) for key in left]))
    one.notes.put_proposal(lives, back)
    one.notes.put(STANDBYS, lives, StandbyNote(1, 0.25))
    one.notes.put(STACKS, lives, Stacks(lives, 0))
    assert one.notes.proposals([lives]) == {lives: back}
    assert one.notes.read(STANDBYS, [lives]) == {lives: StandbyNote(1, 0.25)}
    assert one.notes.read(STACKS, [lives]) == {lives: Stacks(lives, 0)}


def test_a_query_goes_with_its_lease_and_the_replies_too(client: Etcds, etcd: Cluster, run_id: str) -> None:
    asker, agent, query = client(), client(), Query("0" * 16, 0)
    asker.set(born(), None)
    before = leases(etcd)
    asker.notes.put_query(query)
    (lease,) = leases(etcd) - before
    agent.notes.put_reply(Reply(query.id, Stacks(node("a"), 0)))
    names = [f"elastic/{run_id}/{name}" for name in ("life", "query", "register", "reply/a%231")]
    assert keys(etcd, f"elastic/{run_id}/") == names
    etcd.etcdctl("lease", "revoke", lease)
    assert keys(etcd, f"elastic/{run_id}/") == [names[0], names[2]]
    agent.notes.put_reply(Reply(query.id, Stacks(node("a"), 0)))
    etcd.etcdctl("put", names[1], "a stranger's, for ever")
    agent.notes.put_reply(Reply(query.id, Stacks(node("a"), 0)))
    assert agent.heartbeat(node("a"), 1) and agent.notes.query is None
    assert f"elastic/{run_id}/reply/a%231" not in keys(etcd, f"elastic/{run_id}/")


def test_a_wait_that_is_woken_asks_nothing(client: Etcds, monkeypatch: pytest.MonkeyPatch) -> None:
    """The push carries the state."""
    writer, waiter = client(), client()
    one = born()
    writer.set(one, None)
    assert waiter.wait_for_change(one.token, time.monotonic() + 0.01).state == one
    waiter._waiting._fallback_s = NEVER_S
    asked = counted(monkeypatch, waiter)
    two = grown(one, "b")
    waiting = Waiting(lambda: waiter.wait_for_change(one.token, math.inf).state)
    writer.set(two, one.token)
    assert waiting.answer(time.monotonic())[0] == two
    assert asked == [0]


# --- what nobody of us wrote

GARBAGE = {
    "no envelope": codec.encode(born()),
    "another format": ENVELOPE.replace(b"elastic 1", b"elastic 2") + codec.encode(born()),
    "no cluster": ENVELOPE.replace(b"cluster 1", b"cluster x") + codec.encode(born()),
    "no epoch": ENVELOPE.replace(b"epoch 1", b"epoch 0") + codec.encode(born()),
    "another's stamp": ENVELOPE.replace(b"life life", b"life other") + codec.encode(born()),
    "a life that cannot be": ENVELOPE.replace(b"life life", b"life a\tb") + codec.encode(born()),
    "no JSON": ENVELOPE + b"\xff\xfe\x00",
    "not ours": ENVELOPE + b'{"hello": 1}',
    "empty": b"",
    "nested": ENVELOPE + b"[" * 100_000,
    "large": b"x" * 1_500_000,
}


def plant(client: EtcdBackend, key: str, value: bytes) -> None:
    """As somebody else may, who can write there."""
    client._client.cluster.ask(transacted, rpc.TxnRequest(success=[put(client._client.keys.key(key), value, 0)]))


@pytest.mark.parametrize("garbage", list(GARBAGE.values()), ids=list(GARBAGE))
def test_garbage_for_a_register_is_unreadable_and_stays_untouched(
    client: Etcds, etcd: Cluster, run_id: str, garbage: bytes
) -> None:
    plant(client(), "life", b"life")
    plant(client(), "register", garbage)
    before = written(etcd, f"elastic/{run_id}/")
    for ask in (
        client().get,
        lambda: client().set(born(), None).state,
        lambda: client().set(grown(born(), "b"), born().token).state,
        lambda: client().wait_for_change(None, math.inf).state,
    ):
        with pytest.raises(Unreadable, match=f"elastic/{run_id}/") as refusal:
            ask()
        assert etcd.endpoints in str(refusal.value) and "--rdzv-id" in str(refusal.value)
    assert written(etcd, f"elastic/{run_id}/") == before


def test_a_life_that_was_deleted_is_written_again_by_who_reads_and_by_who_writes(
    client: Etcds, etcd: Cluster, run_id: str
) -> None:
    writer, key = client(), f"elastic/{run_id}/life"
    writer.set(born(), None)
    before = etcd.etcdctl("get", key)
    etcd.etcdctl("del", key)
    assert client().get() == Shown(born())
    assert etcd.etcdctl("get", key) == before
    etcd.etcdctl("del", key)
    assert writer.set(grown(born(), "b"), born().token) == Shown(born())
    assert writer.set(grown(born(), "b"), born().token) == Shown(grown(born(), "b"))


@pytest.mark.parametrize("life", [b"another", b"other"])
def test_a_register_whose_life_is_not_the_one_beside_it_is_unreadable(client: Etcds, life: bytes) -> None:
    writer = client()
    writer.set(born(), None)
    plant(client(), "life", life)
    with pytest.raises(Unreadable, match="life"):
        client().get()
    with pytest.raises(Unreadable, match="life"):
        writer.set(grown(born(), "b"), born().token)


@pytest.mark.parametrize("life", [b"before", b"other"])
def test_a_register_that_is_of_another_life_than_its_stamp_is_unreadable(client: Etcds, life: bytes) -> None:
    envelope = ENVELOPE.replace(b"life life", b"life " + life)
    plant(client(), "life", envelope.removeprefix(b"elastic 1 ").strip())
    plant(client(), "register", envelope + codec.encode(born()))
    with pytest.raises(Unreadable, match="its stamp names"):
        client().get()


def test_whoever_reads_heartbeats_reads_a_register_that_is_not_the_last_one_known(
    client: Etcds, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = client(), client()
    one.set(born(), None)
    asked = counted(monkeypatch, one)
    one.heartbeats([node("a")])
    assert asked == [1]
    plant(other, "register", b"garbage")
    with pytest.raises(Unreadable):
        one.heartbeats([node("a")])


def test_garbage_that_comes_later_wakes_whoever_waits(client: Etcds) -> None:
    reader, other = client(), client()
    reader.set(born(), None)

    def wait() -> None:
        with pytest.raises(Unreadable):
            reader.wait_for_change(born().token, math.inf)

    waiting = Waiting(wait)
    plant(other, "register", b"garbage")
    waiting.answer(time.monotonic())


@pytest.mark.parametrize("counter", [b"-1", b"1.5", b" 7", b"garbage", b"9" * 5_000, "٣".encode()])
def test_a_heartbeat_that_is_no_counter_is_no_sign_of_death(client: Etcds, counter: bytes) -> None:
    plant(client(), "heartbeat/a%231", counter)
    assert client().heartbeats([node("a")]).counters == {node("a"): 0}
    assert client().heartbeats([node("a"), node("b")]).counters == {node("a"): 0, node("b"): None}


@pytest.mark.parametrize("garbage", [b"", b"garbage", codec.encode(born()), b"[" * 100_000])
def test_a_fault_that_nobody_can_read_hides_no_other(client: Etcds, garbage: bytes) -> None:
    plant(client(), "faults/0/x/1", garbage)
    client().notes.add(FAULTS, fault("b"))
    assert client().notes.faults() == (fault("b"),)


def number_below(client: EtcdBackend, folder: str) -> int:
    """How many keys the folder has."""
    return int(client._client.ask(ranged, client._client.keys.below(folder, count_only=True)).count)


def test_an_etcd_does_not_grow_with_the_failures_of_a_run(client: Etcds) -> None:
    one = client()
    with short(FAULTS, 40):
        for number in range(280):
            one.notes.add(FAULTS, fault("a", round=number))
        assert number_below(one, "faults") < 2 * 40 + 64
        assert [each.round for each in one.notes.faults()] == [*range(40), *range(240, 280)]


def test_who_began_a_count_takes_it_away_when_it_proposes_in_another_era(client: Etcds) -> None:
    one, two = client(), client()
    one.set(state := born(), None)
    proposals = [Proposal(Token(state.life, version), Done(0)) for version in (3, 5, 9)]
    assert [one.notes.put_proposal(node("a"), proposal) for proposal in proposals] == [1, 1, 1]
    assert [two.notes.put_proposal(node("b"), proposal) for proposal in proposals] == [1, 1, 2]
    assert number_below(one, "wished") == 1


def test_an_etcd_does_not_grow_with_the_starts_of_a_node_that_stays_out(client: Etcds) -> None:
    one = client()
    put_down = [Unfit(node(f"a#{start}"), "host", "12:00", "no GPU") for start in range(UNFIT_MAX + 100)]
    for each in put_down:
        one.notes.add(UNFIT, each)
    assert number_below(one, "unfit") < UNFIT_MAX + 64
    assert list(one.notes.all(UNFIT)) == put_down[-UNFIT_MAX:]


def test_faults_are_read_a_few_at_a_time_and_none_is_lost(client: Etcds) -> None:
    put = [fault("a", message=str(number)) for number in range(20)]
    for each in put:
        client().notes.add(FAULTS, each)
    assert client().notes.faults() == tuple(put)


# --- what stays behind


def test_a_heartbeat_leaves_no_revision(tmp_path: Path) -> None:
    with single(tmp_path) as etcd, clients(etcd) as client:
        heart = client()
        heart.heartbeat(node("a"), 1)
        before = revision(etcd)
        for _ in range(20):
            heart.heartbeat(node("a"), 1)
        assert revision(etcd) == before
        heart.heartbeat(node("a"), 2)
        assert revision(etcd) == before + 1


def test_a_heartbeat_that_has_come_under_a_foreign_lease_is_put_again_under_our_own(
    client: Etcds, etcd: Cluster
) -> None:
    """Another start of the same node may have put it there; it goes when that one's lease ends."""
    mine, other, before = client(), client(), leases(etcd)
    mine.heartbeat(node("a"), 1)
    own = leases(etcd)
    other.heartbeat(node("a"), 1)
    (foreign,) = leases(etcd) - own
    mine.heartbeat(node("a"), 1)
    etcd.etcdctl("lease", "revoke", foreign)
    assert mine.heartbeats([node("a")]).counters == {node("a"): 1}
    assert len(own - before) == 1


def test_a_node_that_goes_takes_its_heartbeat_and_its_lease_along(client: Etcds, etcd: Cluster, run_id: str) -> None:
    before = leases(etcd)
    heart = client()
    heart.heartbeat(node("a"), 1)
    heart.heartbeat(node("b"), 1)
    heart.remove_heartbeat(node("a"))
    client().remove_heartbeat(node("b"))
    assert keys(etcd, f"elastic/{run_id}/") == []
    assert leases(etcd) <= before


def test_a_lost_race_for_the_first_write_leaves_no_lease(client: Etcds, etcd: Cluster, run_id: str) -> None:
    late = client()
    late.get()  # nothing there yet
    before = leases(etcd)
    client().set(born(), None)
    assert late.set(born("other", "z"), None).state == born()
    assert len(leases(etcd) - before) == 1
    etcd.etcdctl("del", f"elastic/{run_id}/", "--prefix")
    assert late.get().state is None
    again = born("again")
    assert late.set(again, None).state == again


def test_a_lease_that_ended_before_the_first_write_is_drawn_anew(client: Etcds) -> None:
    one = client()
    one._client.shared.lease = 4711
    with pytest.raises(OutOfReach, match="lease"):
        one.set(born(), None)
    assert one.set(born(), None).state == born()


class Hand(SystemClock):
    """A clock that a test sets."""

    at = 1_000_000.0

    def now(self) -> float:
        return self.at


def test_the_lease_of_a_run_is_renewed_24_times_in_its_span(
    etcd: Cluster, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Hand()
    members = Members(addresses(etcd), PLAIN, NEVER_S, prefix_of(run_id))
    with closing(EtcdBackend(members, run_id, clock, PATIENT_S, kept_s=2_400)) as heart:
        heart.set(born(), None)
        heart.heartbeat(node("a"), 1)
        asked = counted(monkeypatch, heart)
        asked_by = [asked[0]]
        for later_s in (99.0, 1.0, 99.5, 0.5, 0.0):
            clock.at += later_s
            heart.heartbeat(node("a"), 1)
            asked_by.append(asked[0])
    assert [after - before for before, after in pairwise(asked_by)] == [2, 3, 2, 3, 2]


def test_the_keys_of_a_run_outlive_its_last_node_for_a_day_and_no_longer(etcd: Cluster, run_id: str) -> None:
    before = leases(etcd)
    with clients(etcd, run_id) as client:
        state, writer = born(), client()
        writer.set(state, None)
        writer.set(grown(state, "b"), state.token)
        writer.notes.add(FAULTS, fault("a"))
        client().notes.add(FAULTS, fault("b"))
    (lease,) = (name for name in leases(etcd) - before if "heartbeat" not in name)
    told = etcd.etcdctl("lease", "timetolive", lease, "--keys")
    assert "granted with TTL(86400s)" in told
    assert all(name in told for name in keys(etcd, f"elastic/{run_id}/"))
    assert len(keys(etcd, f"elastic/{run_id}/")) == 4


def test_nothing_is_left_of_a_run_when_its_time_is_over(etcd: Cluster, run_id: str) -> None:
    before, began = leases(etcd), time.monotonic()
    with clients(etcd, run_id, kept_s=SHORT_S, lease_s=SHORT_S) as client:
        client().set(born(), None)
        client().notes.add(FAULTS, fault("a"))
        client().heartbeat(node("a"), 1)
        assert len(keys(etcd, f"elastic/{run_id}/")) == 4 or time.monotonic() - began >= SHORT_S
    assert comes_true(lambda: keys(etcd, f"elastic/{run_id}/") == [])
    assert comes_true(lambda: leases(etcd) <= before)


def test_a_run_lasts_as_long_as_one_of_its_nodes_lives(etcd: Cluster, run_id: str) -> None:
    """On a machine that stands still no node lives: then its run may go."""
    with clients(etcd, run_id, kept_s=SHORT_S) as client:
        heart, beats = client(), [time.monotonic()]
        client().set(born(), None)
        heart.get()
        while beats[-1] < beats[0] + 1.5 * SHORT_S:
            heart.heartbeat(node("a"), 1)
            time.sleep(SHORT_S / 100)
            beats.append(time.monotonic())
        stands = client().get().state == born()
        gaps_s = [after - before for before, after in pairwise([*beats, time.monotonic()])]
        assert stands or max(gaps_s) > SHORT_S / 2


def test_a_register_that_went_is_absent_and_another_may_begin(client: Etcds, etcd: Cluster, run_id: str) -> None:
    one, waiter = client(), client()
    one.set(born(), None)
    waiting = Waiting(lambda: waiter.wait_for_change(born().token, math.inf).state)
    etcd.etcdctl("del", f"elastic/{run_id}/", "--prefix")
    state, took_s = waiting.answer(time.monotonic())
    assert state is None and took_s < SOON_S
    assert one.get().state is None
    fresh = born("fresh")
    assert one.set(fresh, None).state == fresh
    assert waiter.wait_for_change(None, math.inf).state == fresh


def test_the_registers_of_a_run_s_workers_are_below_the_run_s_own_prefix(etcd: Cluster, run_id: str) -> None:
    """So that whoever may use the run may use them."""
    connection = EtcdConnection(addresses(etcd), PLAIN, run_id, SystemClock(), Settings(Limits(1, 1)))
    one, other = connection.beside("one"), connection.beside("a/b")
    with closing(one), closing(other), closing(clone := one.clone()):
        one.set(born(), None)
        assert clone.get().state == born()
        assert other.get().state is None
        other.set(born("other"), None)
    connection.close(0.0)
    below = f"elastic/{run_id}/workers"
    places = [f"{below}/{space}/{name}" for space in ("a%2Fb", "one") for name in ("life", "register")]
    assert keys(etcd, f"elastic/{run_id}") == places


# --- a cluster that was restored from a snapshot


def test_a_restored_cluster_takes_no_write_that_was_made_for_the_old_one(tmp_path: Path) -> None:
    """Nor one of the life that it copies. Also when its revisions have come to the same number again."""
    one, run_id = born(), "run"
    two = grown(one, "b")
    with single(tmp_path) as etcd, clients(etcd, run_id) as client:
        stale, writer = client(), client()
        writer.set(one, None)
        etcd.snapshot(tmp_path / "snapshot")
        writer.set(two, one.token)
        assert stale.get().state == two
        at = revision(etcd)
        copy = etcd.restored(tmp_path / "snapshot")
        fresh = client()
        assert fresh.get().state == one
        assert not fresh.get().here
        refused = fresh.set(grown(one, "z"), one.token)
        assert (refused.state, refused.here) == (one, False)
        again = restored(Restore(one, "again"), one)
        assert fresh.set(again, one.token) == Shown(again)
        assert revision(copy) == at
        assert stale.set(grown(two, "c"), two.token).state == again
        assert client().get() == Shown(again)


def test_a_write_by_who_has_not_looked_since_is_refused_by_a_copy(tmp_path: Path) -> None:
    """Nothing but the end of a watch in its process tells it that another cluster is there."""
    one = born()
    with single(tmp_path) as etcd, clients(etcd, "run") as client:
        writer = client()
        writer.set(one, None)
        waiter = writer.clone()
        waiter.wait_for_change(one.token, time.monotonic() + 0.01)
        etcd.snapshot(tmp_path / "snapshot")
        etcd.restored(tmp_path / "snapshot")
        assert comes_true(lambda: answered(lambda: writer.set(grown(one, "b"), one.token)) == Shown(one, here=False))
        assert client().get() == Shown(one, here=False)
        waiter.close()


def answered(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except OutOfReach:
        return None


def test_a_copy_of_just_what_is_waited_on_wakes_whoever_waits(tmp_path: Path) -> None:
    one = born()
    with single(tmp_path) as etcd, clients(etcd, "run") as client:
        client().set(one, None)
        etcd.snapshot(tmp_path / "snapshot")
        etcd.restored(tmp_path / "snapshot")
        assert client().wait_for_change(one.token, math.inf) == Shown(one, here=False)


def test_a_restored_cluster_is_seen_as_what_it_is_by_who_waited_in_the_old_one(tmp_path: Path) -> None:
    one, run_id = born(), "run"
    two = grown(one, "b")
    with single(tmp_path) as etcd, clients(etcd, run_id) as client:
        waiter: Backend = client()
        client().set(one, None)
        etcd.snapshot(tmp_path / "snapshot")
        client().set(two, one.token)
        assert waiter.wait_for_change(one.token, math.inf).state == two
        etcd.restored(tmp_path / "snapshot")
        assert comes_true(lambda: seen(waiter) == one)
        assert waiter.wait_for_change(two.token, math.inf).state == one


def seen(backend: Backend) -> object:
    try:
        return backend.get().state
    except OutOfReach:
        return None


def test_an_etcd_tells_which_runs_have_a_register_there(tmp_path: Path) -> None:
    with single(tmp_path) as alone:
        names = ("a", "a-b", "a/b", "a0", "b \N{SNOWMAN}")
        for run_id in names:
            with clients(alone, run_id) as make:
                make().set(born(), None)
                make().notes.put(STANDBYS, node("gpu-01"), StandbyNote(1, None))
        alone.etcdctl("put", "elastic2/x/register", "else")
        alone.etcdctl("put", "elastic/eval/workers/0/register", "else")
        with clients(alone, "notes") as make:
            make().notes.put(STANDBYS, node("gpu-01"), StandbyNote(1, None))
        with clients(alone, "nobody") as make:
            assert make().runs() == Runs(frozenset(names))


def test_of_many_runs_in_an_etcd_those_are_told_that_are_called_alike(tmp_path: Path) -> None:
    with single(tmp_path) as alone:
        with clients(alone, "nobody") as make:
            for hundred in range(3):
                keys = [f"elastic/train{hundred}{number:02}/register".encode() for number in range(100)]
                make()._client.ask(transacted, rpc.TxnRequest(success=[put(key, b"else", 0) for key in keys]))
        for wanted, there in (("trian242", "train242"), ("train2422", "train242"), ("train29", "train299")):
            with clients(alone, wanted) as make:
                found = make().runs()
            assert there in found.ids and found.is_part
