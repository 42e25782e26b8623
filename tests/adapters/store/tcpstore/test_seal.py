"""A job with a token on a store that a foreigner writes to: what it wrote is refused with a clear sentence, never obeyed.

The foreigner knows the protocol, the keys, the run id and every value that was ever written; it lacks the token alone.
"""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import uuid4

import pytest
from attrs import evolve, frozen
from conformance import ANSWER_S, SOON_S, Clients, Waiting, born, fault, grown
from tcpstores import clients, own_store, plant, talking
from worlds import node, profile

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.note_codec import encoded
from elastic.adapters.store.notes import FAULTS, QUERY, REPLIES
from elastic.adapters.store.port import Unreadable
from elastic.adapters.store.queries import Query, Replies, Reply
from elastic.adapters.store.secret import Secret
from elastic.adapters.store.tcpstore.seal import MAGIC, UNSEALED, Forged, Seal, TokenSeal, seal, trusted
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address, WireClient
from elastic.core.rendezvous import Arrive, Done, Proposal, RendezvousState, codec
from elastic.core.world import Stacks

TOKEN, OTHERS = Secret(b"the token of this job"), Secret(b"the token of another job")
MARK = Proposal(born().era, Done(0))
OURS, THEIRS = TokenSeal(TOKEN), TokenSeal(OTHERS)


@frozen
class Job:
    """Clients with the token, and a foreigner who has none."""

    run_id: str
    client: Clients
    foreigner: WireClient

    def key(self, name: str) -> str:
        return f"elastic/{self.run_id}/{name}"

    def plant(self, name: str, value: bytes) -> None:
        plant(self.foreigner, self.key(name), value)

    def stands(self, name: str) -> bytes:
        return self.foreigner.get(self.key(name))[0]


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with own_store() as (_, address):
        yield address


@pytest.fixture
def job(address: Address) -> Iterator[Job]:
    run_id = uuid4().hex
    with clients(address, run_id, seal=OURS) as client, talking(address) as foreigner:
        yield Job(run_id, client, foreigner)


def long_history(writer: TCPStoreBackend, versions: int = 60) -> RendezvousState:
    state = born()
    writer.set(state, None)
    while state.version < versions:
        before, state = state, evolve(state, version=state.version + 1)
        writer.set(state, before.token)
    return state


# --- the seal itself


@pytest.mark.parametrize("value", [b"", b"7", b"x" * 100_000, MAGIC, OURS.sealed("k", b"v")])
def test_what_was_sealed_under_a_key_is_opened_under_it(value: bytes) -> None:
    assert OURS.opened("key", OURS.sealed("key", value)) == value
    assert TokenSeal(Secret(TOKEN.value)).opened("key", OURS.sealed("key", value)) == value


def test_a_seal_is_spelled_as_agents_of_other_versions_spell_it() -> None:
    def mac(value: bytes) -> bytes:
        return hmac.digest(TOKEN.value, b"elastic-sealed-1:" + b"\x03" + bytes(7) + b"key" + value, "sha256")

    assert OURS.sealed("key", b"value") == b"elastic-sealed-1:" + mac(b"value") + b"value"
    assert OURS.secret_name("key") == mac(b"elastic-secret-name-1")[:16].hex()


@pytest.mark.parametrize(("key", "value"), [("b", b"c-value"), ("bc", b"-value"), ("", b"bc-value"), ("b/c", b"value")])
def test_a_seal_holds_for_one_key_and_one_value(key: str, value: bytes) -> None:
    """Where one ends and the other begins is part of it."""
    sealed = OURS.sealed("bc-", b"value")
    with pytest.raises(Forged, match="copied or changed"):
        OURS.opened(key, sealed[: -len(b"value")] + value)


def test_a_byte_more_less_or_changed_breaks_the_seal() -> None:
    sealed = OURS.sealed("key", b"value")
    changed = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]
    for forged in (*changed, sealed + b"x", *(sealed[:size] for size in range(len(sealed)))):
        with pytest.raises(Forged):
            OURS.opened("key", forged)


def test_without_a_token_values_are_as_they_are_and_a_sealed_one_is_named_as_such() -> None:
    assert seal(None) is UNSEALED
    assert UNSEALED.sealed("key", b"value") == UNSEALED.opened("key", b"value") == b"value"
    with pytest.raises(Forged, match=r"none was given.*token_file=FILE.*ELASTIC_STORE_TOKEN"):
        UNSEALED.opened("key", OURS.sealed("key", b"value"))


def test_whoever_does_without_a_value_takes_a_forged_one_for_none() -> None:
    assert trusted(OURS, "key", OURS.sealed("key", b"7")) == b"7"
    assert trusted(OURS, "key", b"7") == trusted(OURS, "key", THEIRS.sealed("key", b"7")) == b""


def test_nothing_shows_the_token() -> None:
    shown = [repr(TOKEN), str(TOKEN), repr(OURS), str(seal(TOKEN)), repr(OURS.sealed("key", b"value"))]
    for forged in (b"value", THEIRS.sealed("key", b"value")):
        with pytest.raises(Forged) as refusal:
            OURS.opened("key", forged)
        shown.append(repr(refusal.value))
    with pytest.raises(ValueError, match="has 15 bytes") as short:
        Secret(TOKEN.value[:15])
    assert not any(TOKEN.value[:15].decode() in text for text in (*shown, str(short.value)))


# --- what is in the store


def test_every_value_is_sealed_but_counts(job: Job) -> None:
    writer = job.client()
    assert isinstance(writer, TCPStoreBackend)
    long_history(writer)
    writer.heartbeat(node("a"), 1)
    writer.remove_heartbeat(node("b"))
    writer.notes.add(FAULTS, fault("a"))
    writer.notes.put_proposal(node("a"), MARK)
    versions = [f"life/{version}" for version in range(2, 61)]
    for name in ("root", *versions, "life/head", "heartbeat/a%231", "bye/b%231", "faults/1", "wish/a%231"):
        assert job.stands(name).startswith(MAGIC), name
    assert job.stands("faults/count") == job.stands(f"wished/{MARK.like}") == b"1"
    assert not any(TOKEN.value in job.stands(name) for name in ("root", "life/head", "heartbeat/a%231"))


def test_without_a_token_the_bytes_are_the_values(address: Address) -> None:
    run_id = uuid4().hex
    with clients(address, run_id) as client, talking(address) as other:
        writer = client()
        assert isinstance(writer, TCPStoreBackend)
        head = long_history(writer)
        writer.heartbeat(node("a"), 1)
        writer.remove_heartbeat(node("b"))
        writer.notes.add(FAULTS, fault("a"))
        names = ("root", "life/2", "life/60", "life/head", "heartbeat/a%231", "bye/b%231", "faults/1")
        found = other.get(*(f"elastic/{run_id}/{name}" for name in names))
    encoded = codec.encode(born()), b"-", codec.encode(head), b"59", b"1", b"1", codec.encode_fault(fault("a"))
    assert found == encoded


# --- the register

Forge = Callable[[str, bytes], bytes]
FORGED: dict[str, tuple[Forge, str]] = {
    "not sealed": (lambda key, value: value, "is not sealed"),
    "sealed with another token": (THEIRS.sealed, "is sealed with another token"),
    "copied from another key": (lambda key, value: OURS.sealed(f"{key}0", value), "was copied or changed"),
    "copied from another run": (
        lambda key, value: OURS.sealed("elastic/run/" + key.split("/", 2)[2], value),
        "was copied or changed",
    ),
    "changed": (
        lambda key, value: OURS.sealed(key, value).replace(b'"round":0', b'"round":1'),
        "was copied or changed",
    ),
    "a mark": (lambda key, value: b"-", "is not sealed"),
    "garbage": (lambda key, value: b"\xff\x00", "is not sealed"),
}
each_forgery = pytest.mark.parametrize(("forge", "reason"), FORGED.values(), ids=FORGED)


@each_forgery
def test_a_forged_root_is_refused_by_its_name_with_the_remedy(job: Job, forge: Forge, reason: str) -> None:
    root = job.key("root")
    forged = forge(root, codec.encode(born()))
    job.plant("root", forged)
    for ask in (
        job.client().get,
        lambda: job.client().set(born("mine"), None).state,
        lambda: job.client().wait_for_change(None, math.inf).state,
    ):
        with pytest.raises(Unreadable, match=f"{root} .*{reason}.*same token_file.*--rdzv-id"):
            ask()
    assert job.stands("root") == forged


@each_forgery
def test_a_forged_next_version_is_refused_by_who_waits_and_by_who_writes(job: Job, forge: Forge, reason: str) -> None:
    """Without a seal it would be obeyed: it is a step that an agent might take."""
    reader, key = job.client(), job.key("life/2")
    reader.set(born(), None)
    waiting = Waiting(lambda: _refused(lambda: reader.wait_for_change(born().token, math.inf).state, key, reason))
    job.plant("life/2", forge(key, codec.encode(grown(born(), "foreigner"))))
    waiting.answer(time.monotonic())
    _refused(lambda: job.client().set(grown(born(), "b"), born().token).state, key, reason)
    _refused(lambda: reader.set(grown(born(), "b"), born().token).state, key, reason)


def _refused(ask: Callable[[], object], key: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=f"{key} .*{reason}"):
        ask()


@pytest.mark.parametrize("other", [UNSEALED, THEIRS], ids=["no token", "another token"])
def test_an_agent_whose_token_differs_reads_nothing_and_writes_nothing(address: Address, job: Job, other: Seal) -> None:
    job.client().set(born(), None)
    before = job.stands("root")
    with clients(address, job.run_id, seal=other) as client:
        for ask in (
            client().get,
            lambda: client().set(grown(born(), "b"), born().token),
            lambda: client().heartbeat(node("a"), 1),
            lambda: client().heartbeats([node("a")]),
        ):
            with pytest.raises(Unreadable, match=r"token.*ELASTIC_STORE_TOKEN"):
                ask()
        assert job.client().heartbeats([node("a")]).counters == {node("a"): 0}
    assert (job.stands("root"), job.stands("life/2")) == (before, b"")
    assert job.client().get().state == born()


def test_a_value_of_an_earlier_version_does_not_stand_for_a_later_one(job: Job) -> None:
    writer, late = job.client(), job.client()
    one, two = born(), grown(born(), "b")
    writer.set(one, None)
    late.get()
    writer.set(two, one.token)
    job.plant("life/3", job.stands("life/2"))
    _refused(late.get, job.key("life/3"), "copied")


@each_forgery
def test_a_forged_query_is_none_and_so_is_a_forged_reply(job: Job, forge: Forge, reason: str) -> None:
    agent, asker = job.client(), job.client()
    assert isinstance(agent, TCPStoreBackend) and isinstance(asker, TCPStoreBackend)
    agent.set(born(), None)
    query = Query("0" * 16, 0)
    reply = Reply(query.id, Stacks(node("a"), 0))
    job.plant("query", forge(job.key("query"), encoded(QUERY, query)))
    job.plant("reply/a%231", forge(job.key("reply/a%231"), encoded(REPLIES, reply)))
    agent.heartbeat(node("a"), 1)
    forged = agent.notes.query, asker.notes.replies([node("a")])
    assert forged == (None, Replies(None, {}))
    asker.notes.put_query(query)
    agent.notes.put_reply(reply)
    agent.heartbeat(node("a"), 2)
    assert agent.notes.query == query
    assert asker.notes.replies([node("a")]) == Replies(query, {node("a"): reply})


# --- marks and hints


@pytest.mark.parametrize("mark", ["a foreigner's", "another version's"])
def test_a_forged_mark_in_place_of_the_head_is_refused(job: Job, mark: str) -> None:
    """Who took it for a mark would look for the head elsewhere."""
    writer = job.client()
    assert isinstance(writer, TCPStoreBackend)
    long_history(writer)
    job.plant("life/60", b"-" if mark == "a foreigner's" else job.stands("life/2"))
    _refused(job.client().get, job.key("life/60"), "not sealed" if mark == "a foreigner's" else "copied")


@pytest.mark.parametrize("hint", [b"1", b"60", b"9" * 15, b"garbage", b"", THEIRS.sealed("x", b"60")])
def test_a_forged_hint_leads_nobody_astray(job: Job, hint: bytes) -> None:
    writer = job.client()
    assert isinstance(writer, TCPStoreBackend)
    head = long_history(writer)
    job.plant("life/head", hint)
    assert job.client().get().state == head


def test_an_old_hint_that_is_put_back_leads_nobody_astray(job: Job) -> None:
    writer = job.client()
    assert isinstance(writer, TCPStoreBackend)
    writer.set(born(), None)
    writer.set(two := grown(born(), "b"), born().token)
    old, state = job.stands("life/head"), two
    for _ in range(60):
        before, state = state, evolve(state, version=state.version + 1)
        writer.set(state, before.token)
    job.plant("life/head", old)
    assert job.client().get().state == state


# --- heartbeats


def test_a_forged_heartbeat_shows_nobody_alive_and_nobody_dead(job: Job) -> None:
    observer, a, key = job.client(), node("a"), job.key("heartbeat/a%231")
    job.client().heartbeat(a, 4)
    old = job.stands("heartbeat/a%231")
    job.client().heartbeat(a, 5)
    job.client().heartbeat(node("b"), 9)
    of_b = job.stands("heartbeat/b%231")
    assert observer.heartbeats([a]).counters == {a: 5}
    for forged in (b"6", b"garbage", THEIRS.sealed(key, b"6"), of_b, old):
        job.plant("heartbeat/a%231", forged)
        assert observer.heartbeats([a, node("b")]).counters[a] == 5
    job.client().heartbeat(a, 6)
    assert observer.heartbeats([a]).counters == {a: 6}


def test_a_forged_heartbeat_is_told_and_no_other_is(address: Address, job: Job) -> None:
    told: list[str] = []
    backend = TCPStoreBackend(address, job.run_id, SystemClock(), seal=OURS, warn=told.append)
    with closing(backend) as observer:
        job.client().heartbeat(node("a"), 4)
        observer.heartbeats([node("a")])
        assert not told
        job.plant("heartbeat/a%231", b"6")
        observer.heartbeats([node("a")])
    (text,) = told
    assert text.startswith(f"a forged heartbeat of a#1 stands in the store: {job.key('heartbeat/a%231')};")


def test_to_who_has_not_seen_a_node_a_forged_heartbeat_is_one_that_stands_still(job: Job) -> None:
    for forged in (b"6", b"7", THEIRS.sealed(job.key("heartbeat/a%231"), b"8")):
        job.plant("heartbeat/a%231", forged)
        assert job.client().heartbeats([node("a")]).counters == {node("a"): 0}


# --- proposals, faults and goodbyes


def test_a_forged_proposal_is_none(job: Job) -> None:
    for name in "abcd":
        job.client().notes.put_proposal(node(name), MARK)
    job.plant("wish/a%231", codec.encode_proposal(MARK))
    job.plant("wish/b%231", THEIRS.sealed(job.key("wish/b%231"), codec.encode_proposal(MARK)))
    job.plant("wish/c%231", job.stands("wish/d%231"))
    assert job.client().notes.proposals(map(node, "abcd")) == {node("d"): MARK}


def test_a_forged_proposal_to_enter_is_none(job: Job) -> None:
    proposal = Proposal(MARK.era, Arrive(profile("a")), enters=True)
    for name in "abcd":
        job.client().notes.put_proposal(node(name), proposal)
    place, foreign = f"enter/{proposal.like}", codec.encode_entrant(node("e"), proposal)
    job.plant(f"{place}/1", foreign)
    job.plant(f"{place}/2", THEIRS.sealed(job.key(f"{place}/2"), foreign))
    job.plant(f"{place}/3", job.stands(f"{place}/4"))
    assert job.client().notes.proposals([], MARK.era) == {node("d"): proposal}


def test_a_forged_fault_is_skipped(job: Job) -> None:
    for name in "abcd":
        job.client().notes.add(FAULTS, fault(name))
    job.plant("faults/1", codec.encode_fault(fault("foreigner")))
    job.plant("faults/2", THEIRS.sealed(job.key("faults/2"), codec.encode_fault(fault("foreigner"))))
    job.plant("faults/3", job.stands("faults/4"))
    assert job.client().notes.faults() == (fault("d"),)


def test_a_count_that_a_foreigner_raised_adds_no_fault(job: Job) -> None:
    job.client().notes.add(FAULTS, fault("a"))
    job.plant("faults/2", codec.encode_fault(fault("foreigner")))
    job.plant("faults/count", b"9")
    assert job.client().notes.faults() == (fault("a"),)


def test_a_forged_goodbye_sends_nobody_home_and_the_node_s_own_is_heard(job: Job) -> None:
    host = job.client()
    assert isinstance(host, TCPStoreBackend)
    job.client().remove_heartbeat(node("b"))
    for forged in (b"1", THEIRS.sealed(job.key("bye/a%231"), b"1"), job.stands("bye/b%231")):
        job.plant("bye/a%231", forged)
        assert not host.wait_until_gone([node("a"), node("b")], 0.05)
    waiting = Waiting(lambda: _gone(host))
    began = time.monotonic()
    job.client().remove_heartbeat(node("a"))
    _, took_s = waiting.answer(began)
    assert took_s < 1.0 + SOON_S


def _gone(host: TCPStoreBackend) -> None:
    assert host.wait_until_gone([node("a")], ANSWER_S)
