"""An etcd whose members die, stand still, lose answers, forget tokens: what a client of it makes of that."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any
from uuid import uuid4

import pytest
from attrs import define
from conformance import ANSWER_S, SOON_S, Waiting, born, fault, grown, persistent
from etcd_clients import PLAIN, TIMEOUT_S, addresses, clients
from etcds import Cluster, Member, cluster, single
from ports import reserved
from processes import comes_true
from worlds import node

from elastic.adapters.store.etcd.access import Access
from elastic.adapters.store.etcd.cluster_client import ClusterClient, Full
from elastic.adapters.store.etcd.etcd_register import EtcdBackend
from elastic.adapters.store.etcd.members import Begin, Members, Method, Stubs, ranged
from elastic.adapters.store.etcd.rpc import rpc
from elastic.adapters.store.etcd.watch_stream import Change, Ended
from elastic.adapters.store.notes import FAULTS
from elastic.adapters.store.port import Denied, OutcomeUnknown, OutOfReach
from elastic.adapters.store.tcpstore.wire import Address
from elastic.core.rendezvous import RendezvousState

TOKEN_S = 1


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("etcd")) as made:
        yield made


@pytest.fixture
def whole(three: Cluster) -> Iterator[Cluster]:
    """Three members; what a test did to them is undone."""
    try:
        yield three
    finally:
        three.mend()


@contextmanager
def out_of_reach(text: str = "no answer from etcd at") -> Iterator[None]:
    with pytest.raises(OutOfReach, match=text):
        yield


def used(client: EtcdBackend, etcd: Cluster) -> Member:
    """The member that this client asks first."""
    return etcd.members[addresses(etcd).index(client._client.members.in_turn()[0])]


def test_the_member_that_answered_last_is_asked_first_and_after_it_failed_the_next() -> None:
    def member(port: int) -> Address:
        return Address("host", port)

    members = Members(list(map(member, (1, 2, 3))), PLAIN, 2.0, "elastic/x/")
    members.answered(member(2))
    turns = [members.in_turn()]
    for failed in (3, 2, 3):
        members.failed(member(failed))
        turns.append(members.in_turn())
    assert [[each.port for each in turn] for turn in turns] == [[2, 3, 1], [2, 3, 1], [3, 1, 2], [1, 2, 3]]
    assert members.failures == 3


def test_a_connection_may_take_three_quarters_of_the_time_for_an_answer() -> None:
    assert dict(Members([Address("host", 1)], PLAIN, 2.0, "")._options)["grpc.min_reconnect_backoff_ms"] == 1_500


# --- members that die or stand still


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_member_that_does_not_answer_is_passed_over(whole: Cluster, how: str) -> None:
    with clients(whole, timeout_s=TIMEOUT_S) as client:
        one = client()
        persistent(lambda: one.set(born(), None))
        persistent(lambda: one.heartbeat(node("a"), 1))
        lost = used(one, whole)
        getattr(lost, how)()
        persistent(one.get)
        two = grown(born(), "b")
        assert persistent(lambda: one.set(two, born().token)).state == two
        persistent(lambda: one.heartbeat(node("a"), 1))
        assert persistent(one.get).state == two
        assert used(one, whole) is not lost


def answered(ask: Callable[[], object]) -> bool:
    """At once: nobody leads for a moment when the leader is lost, and of a write nobody may know what became."""
    try:
        ask()
    except (OutOfReach, OutcomeUnknown):
        return False
    return True


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_whoever_waits_on_a_member_that_falls_silent_hears_of_the_next_write_all_the_same(
    whole: Cluster, how: str
) -> None:
    one = born()
    two = grown(one, "b")
    with clients(whole, timeout_s=TIMEOUT_S) as client:
        writer, waiter = client(), client()
        persistent(lambda: writer.set(one, None))
        persistent(lambda: looks(waiter, one))
        getattr(used(waiter, whole), how)()
        persistent(writer.get)
        waiting = Waiting(lambda: persistent(lambda: next_of(waiter, one)))
        persistent(lambda: writer.set(two, one.token))
        state, took_s = waiting.answer(time.monotonic())
        assert state == two and took_s < SOON_S


def looks(waiter: EtcdBackend, known: RendezvousState) -> None:
    """Waits for a moment: afterwards changes are pushed to it."""
    waiter.wait_for_change(known.token, time.monotonic() + 0.01)


def next_of(waiter: EtcdBackend, known: RendezvousState) -> RendezvousState | None:
    return waiter.wait_for_change(known.token, math.inf).state


def test_after_a_member_fell_silent_changes_are_pushed_again_by_another(whole: Cluster) -> None:
    state = born()
    with clients(whole, timeout_s=TIMEOUT_S) as client:
        writer, waiter = client(), client()
        persistent(lambda: writer.set(state, None))
        persistent(lambda: looks(waiter, state))
        lost = used(waiter, whole)
        lost.kill()
        persistent(writer.get)
        persistent(waiter.get)
        persistent(lambda: looks(waiter, state))
        waiter._waiting._fallback_s = ANSWER_S
        waiting = Waiting(lambda: persistent(lambda: next_of(waiter, state)))
        after = grown(state, "b")
        persistent(lambda: writer.set(after, state.token))
        heard, took_s = waiting.answer(time.monotonic())
        assert heard == after and took_s < SOON_S


def test_without_a_majority_nothing_is_answered_and_afterwards_all_is_as_it_was(whole: Cluster) -> None:
    with clients(whole, timeout_s=TIMEOUT_S) as client:
        one, waiter = client(), client()
        persistent(lambda: one.set(born(), None))
        first, second, _ = whole.members
        first.kill()
        second.kill()
        for ask in (
            one.get,
            lambda: one.heartbeats([node("a")]).counters,
            lambda: one.heartbeat(node("a"), 1),
            lambda: waiter.wait_for_change(born().token, math.inf).state,
            one.notes.faults,
        ):
            assert comes_true(lambda ask=ask: not answered(ask))  # type: ignore[misc]
            with out_of_reach(whole.endpoints):
                ask()
        for member in (first, second):
            member.start()
        whole.wait_until_healthy()
        assert persistent(one.get).state == born()
        two = grown(born(), "b")
        assert persistent(lambda: one.set(two, born().token)).state == two
        assert persistent(lambda: next_of(waiter, born())) == two


def test_a_cluster_of_which_nobody_is_there_is_out_of_reach_at_once_and_named() -> None:
    with reserved() as port, clients([Address("127.0.0.1", port)]) as client:
        began = time.monotonic()
        for ask in (client().get, lambda: client().set(born(), None).state, client().probe):
            with out_of_reach(rf"no answer from etcd at 127.0.0.1:{port} .*Connection refused.*majority"):
                ask()
        assert time.monotonic() - began < SOON_S


def test_closing_ends_a_call_to_a_member_that_stands_still(tmp_path: Path) -> None:
    with single(tmp_path) as etcd, clients(etcd) as client:
        one = client()
        one.get()
        etcd.members[0].pause()

        def ask() -> None:
            with out_of_reach("this client is closed"):
                one.get()

        waiting = Waiting(ask)
        began = time.monotonic()
        one.close()
        _, took_s = waiting.answer(began)
        assert took_s < SOON_S


def test_a_call_that_begins_while_its_client_is_closed_is_refused(whole: Cluster) -> None:
    client = ClusterClient(Members(addresses(whole), PLAIN, ANSWER_S, "elastic/x/"))

    def closing(stubs: Stubs) -> Begin:
        def begin(*request: object, **how: object) -> Any:
            client.close()
            return ranged(stubs)(*request, **how)

        return begin

    with out_of_reach("this client is closed"):
        client.ask(closing, rpc.RangeRequest(key=b"x"))


def test_a_client_leaves_no_thread_behind(whole: Cluster) -> None:
    before = set(threading.enumerate())
    with clients(whole) as client:
        waiter = client()
        waiter.set(born(), None)
        waiter.wait_for_change(born().token, time.monotonic() + 0.01)
        waiter.heartbeat(node("a"), 1)
        assert set(threading.enumerate()) - before
    assert comes_true(lambda: set(threading.enumerate()) <= before)


# --- answers that are late or lost


@define
class Way:
    """Between a client and a member: what passes in either direction, or is swallowed; and how long a new connection waits
    for the member's first word."""

    address: Address
    asked: bool = True
    answered: bool = True
    greets_after_s: float = 0.0


@contextmanager
def way(to: Address) -> Iterator[Way]:
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        made = Way(Address("127.0.0.1", server.getsockname()[1]))

        def pump(source: socket.socket, target: socket.socket, passes: Callable[[], bool]) -> None:
            try:
                while data := source.recv(1 << 16):
                    if passes():
                        target.sendall(data)
            except OSError:
                pass
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

        def answer(far: socket.socket, near: socket.socket) -> None:
            time.sleep(made.greets_after_s)
            pump(far, near, lambda: made.answered)

        def serve(near: socket.socket) -> None:
            with near, socket.create_connection((to.host, to.port)) as far:
                back = threading.Thread(target=answer, args=(far, near))
                back.start()
                pump(near, far, lambda: made.asked)
                back.join()

        def accept() -> None:
            try:
                while True:
                    near, _ = server.accept()
                    threads.append(threading.Thread(target=serve, args=(near,)))
                    threads[-1].start()
            except OSError:
                pass

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield made
        finally:
            server.shutdown(socket.SHUT_RDWR)
            accepting.join()
    for thread in threads:
        thread.join()


def test_a_member_that_takes_its_time_to_greet_is_waited_for(whole: Cluster) -> None:
    with way(addresses(whole)[0]) as between, clients([between.address]) as client:
        between.greets_after_s = TIMEOUT_S
        one = client()
        one.set(born(), None)
        assert one.get().state == born()


def test_a_write_over_a_connection_that_does_not_come_up_was_not_sent(whole: Cluster) -> None:
    with way(addresses(whole)[0]) as between, clients([between.address], timeout_s=TIMEOUT_S) as client:
        between.answered = False
        with out_of_reach():
            for _ in range(5):
                with suppress(OutcomeUnknown):  # this machine stood still for longer than a try may take
                    client().heartbeat(node("a"), 1)


def test_a_read_without_an_answer_leaves_no_doubt(whole: Cluster) -> None:
    with way(addresses(whole)[0]) as between, clients([between.address], timeout_s=TIMEOUT_S) as client:
        one = client()
        persistent(one.get)
        between.answered = False
        with out_of_reach():
            one.get()


@pytest.mark.parametrize("reaches", [True, False])
def test_of_a_state_that_was_sent_and_not_acknowledged_the_next_answer_tells(whole: Cluster, reaches: bool) -> None:
    run_id = uuid4().hex
    one = born()
    two = grown(one, "b")
    with clients(whole, run_id) as client:
        client().set(one, None)
        there = addresses(whole)[0]
        with way(there) as between, clients([between.address], run_id, timeout_s=TIMEOUT_S) as cut_off:
            writer = cut_off()
            assert persistent(writer.get).state == one
            between.asked, between.answered = reaches, False
            with pytest.raises(OutcomeUnknown, match=str(between.address)):
                writer.set(two, one.token)
        reader = client()
        assert comes_true(lambda: reader.get().state == two) if reaches else reader.get().state == one


# --- compaction


def test_a_watch_from_a_revision_that_is_compacted_ends_and_says_so(whole: Cluster) -> None:
    with clients(whole) as client:
        one = client()
        one.set(born(), None)
        whole.etcdctl("compact", str(one._client.read().at))
        stream = one._client.cluster.watch(one._client.keys.register, 1)
        try:
            assert isinstance(stream.next(ANSWER_S), Ended)
        finally:
            stream.close()


def test_a_watch_takes_up_what_was_written_before_it_began(whole: Cluster) -> None:
    with clients(whole) as client:
        one = client()
        one.set(born(), None)
        stream = one._client.cluster.watch(one._client.keys.register, one._client.read().revision)
        try:
            change = stream.next(ANSWER_S)
            assert isinstance(change, Change) and one._client.keys.decoded(change.kv, 1, 1).state == born()
        finally:
            stream.close()


def test_a_compaction_while_a_member_stood_still_loses_nothing(whole: Cluster) -> None:
    state = born()
    with clients(whole, timeout_s=TIMEOUT_S) as client:
        writer, waiter = client(), client()
        persistent(lambda: writer.set(state, None))
        persistent(lambda: looks(waiter, state))
        member = used(waiter, whole)
        member.pause()
        waiting = Waiting(lambda: persistent(lambda: next_of(waiter, state)))
        persistent(writer.get)
        after = grown(state, "b")
        persistent(lambda: writer.set(after, state.token))
        whole.etcdctl("compact", str(persistent(writer._client.read).at))
        member.resume()
        assert waiting.answer(time.monotonic())[0] == after


# --- users, roles, tokens


@contextmanager
def guarded(folder: Path, *flags: str) -> Iterator[tuple[Cluster, Access]]:
    """A member that asks for a user, who may read and write below elastic/ and nothing else."""
    with single(folder) as etcd:
        member = etcd.members[0]
        member.kill()
        member.joins = (*member.joins, *flags)
        member.start()
        etcd.wait_until_healthy()
        for words in (
            "role add elastic",
            "role grant-permission elastic readwrite elastic/ --prefix=true",
            "user add ann:secret",
            "user grant-role ann elastic",
            "user add root:root",
            "user grant-role root root",
            "auth enable",
        ):
            etcd.etcdctl(*words.split())
        etcd.user = "root:root"
        yield etcd, Access(user="ann", password="secret")


def test_a_user_who_may_read_and_write_below_elastic_can_do_all_that_is_needed(tmp_path: Path) -> None:
    with guarded(tmp_path) as (etcd, ann), clients(etcd, access=ann) as client:
        one = client()
        persistent(one.probe)
        persistent(lambda: one.set(born(), None))
        two = grown(born(), "b")
        waiting = Waiting(lambda: persistent(lambda: next_of(one.clone(), born())))
        assert persistent(lambda: one.set(two, born().token)).state == two
        assert waiting.answer(time.monotonic())[0] == two
        persistent(lambda: one.heartbeat(node("a"), 1))
        persistent(lambda: one.heartbeat(node("a"), 2))
        persistent(lambda: one.notes.add(FAULTS, fault("a")))
        assert fault("a") in persistent(one.notes.faults)
        assert persistent(lambda: one.heartbeats([node("a"), node("b")])).counters == {node("a"): 2, node("b"): None}
        persistent(lambda: one.remove_heartbeat(node("a")))
        assert persistent(lambda: one.heartbeats([node("a")])).counters == {node("a"): None}


def test_a_token_that_expired_is_drawn_anew_for_questions_and_watches(tmp_path: Path) -> None:
    with guarded(tmp_path, f"--auth-token-ttl={TOKEN_S}") as (etcd, ann), clients(etcd, access=ann) as client:
        one, waiter = client(), client()
        persistent(lambda: one.set(born(), None))
        persistent(waiter.get)
        first = one._client.members.token
        ends_at = time.monotonic() + TIMEOUT_S
        while one._client.members.token == first:  # each question lets it last, until etcd has looked for what expired
            assert time.monotonic() < ends_at, "etcd looks for what expired, and the token is not drawn anew"
            time.sleep(3 * TOKEN_S)
            assert persistent(one.get).state == born()
        two = grown(born(), "b")
        waiting = Waiting(lambda: persistent(lambda: next_of(waiter, born())))
        assert persistent(lambda: one.set(two, born().token)).state == two
        assert waiting.answer(time.monotonic())[0] == two


def test_a_member_that_forgot_all_tokens_is_shown_the_password_again(tmp_path: Path) -> None:
    """Also by a watch, which etcd 3.4 refuses by ending it as soon as it begins."""
    with guarded(tmp_path) as (etcd, ann), clients(etcd, access=ann) as client:
        one, waiter = client(), client()
        persistent(lambda: one.set(born(), None))
        waiter.wait_for_change(born().token, time.monotonic() + 0.01)
        etcd.members[0].kill()
        etcd.members[0].start()
        etcd.wait_until_healthy()
        waiting = Waiting(lambda: persistent(lambda: next_of(waiter, born())))
        persistent(lambda: one.heartbeat(node("a"), 1))
        two = grown(born(), "b")
        assert persistent(lambda: one.set(two, born().token)).state == two
        assert waiting.answer(time.monotonic())[0] == two


def test_a_watch_with_an_old_token_ends_and_says_so(tmp_path: Path) -> None:
    with guarded(tmp_path) as (etcd, ann), clients(etcd, access=ann) as client:
        one = client()
        persistent(one.get)
        one._client.members.token = "nobody.1"
        stream = one._client.cluster.watch(one._client.keys.register, 1)
        try:
            ended = stream.next(ANSWER_S)
            assert isinstance(ended, Ended) and "invalid auth token" in ended.reason
        finally:
            stream.close()


def test_a_permission_that_is_taken_away_is_missed_by_name_and_all_goes_on_when_it_is_back(tmp_path: Path) -> None:
    with guarded(tmp_path) as (etcd, ann), clients(etcd, access=ann) as client:
        one, waiter = client(), client()
        persistent(lambda: one.set(born(), None))
        etcd.etcdctl("role", "revoke-permission", "elastic", "elastic/", "--prefix=true")
        for ask in (
            one.get,
            lambda: one.set(grown(born(), "b"), born().token).state,
            lambda: one.heartbeat(node("a"), 1),
        ):
            with pytest.raises(Denied, match=r"user ann may not read and write elastic/.*grant-permission"):
                ask()
        waiting = Waiting(lambda: persistent(lambda: next_of(waiter, born())))
        etcd.etcdctl("role", "grant-permission", "elastic", "readwrite", "elastic/", "--prefix=true")
        two = grown(born(), "b")
        assert persistent(lambda: one.set(two, born().token)).state == two
        assert waiting.answer(time.monotonic())[0] == two


def test_passwords_that_are_asked_for_in_mid_job_are_given(tmp_path: Path) -> None:
    with single(tmp_path) as etcd, clients(etcd, access=Access(user="root", password="root")) as client:
        one = client()
        persistent(lambda: one.set(born(), None))
        for words in ("user add root:root", "user grant-role root root", "auth enable"):
            etcd.etcdctl(*words.split())
        assert persistent(one.get).state == born()


# --- space


def test_a_cluster_that_is_full_says_what_to_do_and_takes_writes_again_afterwards(tmp_path: Path) -> None:
    with single(tmp_path) as etcd:
        member = etcd.members[0]
        member.kill()
        member.joins = (*member.joins, f"--quota-backend-bytes={16 * 2**20}")
        member.start()
        etcd.wait_until_healthy()
        with clients(etcd) as client:
            one = client()
            one.set(born(), None)
            full(etcd)
            with pytest.raises(Denied, match=r"space is used up.*compact.*defrag.*alarm disarm"):
                one.set(grown(born(), "b"), born().token)
            assert one.get().state == born()
            etcd.etcdctl("compact", str(one._client.read().at))
            etcd.etcdctl("defrag")
            etcd.etcdctl("alarm", "disarm")
            two = grown(born(), "b")
            assert comes_true(lambda: answered(lambda: one.set(two, born().token).state))


@contextmanager
def last_space(one: EtcdBackend, beside: Callable[[], object] = lambda: None) -> Iterator[None]:
    """The cluster answers as etcd does to a write that takes the last space: it makes the write, and says that it is full.
    `beside` happens before the client is told."""
    cluster = one._client.cluster
    ask = cluster.ask

    def asked(method: Method, request: Any, writes: bool = False) -> Any:
        answer = ask(method, request, writes)
        if writes:
            beside()
            raise Full("its space is used up")
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "ask", asked)
        yield


def test_a_write_that_takes_the_last_space_is_known_to_be_made(three: Cluster) -> None:
    with clients(three) as client:
        one = client()
        one.set(born(), None)
        two = grown(born(), "b")
        with last_space(one):
            assert one.set(two, born().token).state == two
        assert client().get().state == two
        assert one.set(grown(two, "c"), two.token).state == grown(two, "c")


def test_a_write_that_may_have_taken_the_last_space_is_doubtful(three: Cluster) -> None:
    """Another write follows it before its client looks. Or does it stand in its place?"""
    with clients(three) as client:
        one, other = client(), client()
        one.set(born(), None)
        two = grown(born(), "b")
        with (
            last_space(one, beside=lambda: other.set(grown(two, "c"), two.token)),
            pytest.raises(OutcomeUnknown, match="space is used up"),
        ):
            one.set(two, born().token)


def test_a_write_that_may_have_taken_the_last_space_is_doubtful_while_nobody_answers(three: Cluster) -> None:
    with clients(three) as client:
        one = client()
        one.set(born(), None)
        with last_space(one, beside=one.close), pytest.raises(OutcomeUnknown, match="space is used up"):
            one.set(grown(born(), "b"), born().token)


def full(etcd: Cluster) -> None:
    for _ in range(1_000):
        try:
            etcd.etcdctl("put", "filler", "x" * 120_000)
        except CalledProcessError:
            return
    raise AssertionError("it takes everything")
