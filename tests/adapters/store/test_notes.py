"""A job's small records as bytes on a board: what is read of them, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from processes import unloadable
from worlds import node, profile

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.note_codec import BYTES_MAX, ENDED_BYTES_MAX, TIME_BYTES_MAX, decoded, encoded
from elastic.adapters.store.notes import (
    ENDED,
    FAULTS,
    PROPOSALS,
    QUERY,
    REPLIES,
    STACKS,
    STANDBYS,
    TIMES,
    UNFIT,
    EarlyEnds,
    Notes,
    StandbyNote,
    entering,
)
from elastic.adapters.store.port import OutOfReach, Place, Shelf, spelled
from elastic.adapters.store.queries import Query, Replies, Reply
from elastic.adapters.workers.messages.progress import NAME_BYTES
from elastic.core.goodput import NodeRecord, Spent
from elastic.core.goodput.record import GONE_MAX, Keeper, took
from elastic.core.goodput.record import record as record_of
from elastic.core.rendezvous import Arrive, Done, Proposal, Token
from elastic.core.rendezvous.actions import entering_in
from elastic.core.rendezvous.codec import encode_entrant
from elastic.core.world import SEEN_MAX, SHARES_MAX, Fault, Life, Node, Stacks, Unfit

A, B, C = node("a"), node("b"), node("c")
ERA = Token(Life("life", 3), 17)
ENTERS = Proposal(ERA, Arrive(profile("a")), enters=True)
MARK = Proposal(ERA, Done(4))
GARBAGE = b"garbage"


@pytest.fixture
def board() -> MemoryBackend:
    """A board that keeps bytes."""
    return MemoryBackend(MemoryStore(), SystemClock())


@pytest.fixture
def notes(board: MemoryBackend) -> Notes:
    return Notes(board)


def test_where_the_codec_cannot_be_loaded_now_the_store_is_out_of_reach(notes: Notes) -> None:
    note = StandbyNote(2, 1.25)
    notes.put(STANDBYS, A, note)
    with unloadable("elastic.adapters.store.note_codec"):
        for ask in (lambda: notes.put(STANDBYS, A, note), lambda: notes.read(STANDBYS, [A]), notes.faults):
            with pytest.raises(OutOfReach, match="Too many open files"):
                ask()
    assert notes.read(STANDBYS, [A]) == {A: note}


@pytest.mark.parametrize("note", [StandbyNote(0, None), StandbyNote(65_536, 0.0), StandbyNote(2, 1.25)])
def test_a_note_is_read_as_it_was_written(note: StandbyNote) -> None:
    assert decoded(STANDBYS, encoded(STANDBYS, note)) == note


def test_the_ends_of_a_node_s_workers_are_read_as_they_were_written_and_are_bounded() -> None:
    many = EarlyEnds(65_536, tuple((65_000 + each, "2026-01-01T13:05:40.123+01:00") for each in range(2 * SEEN_MAX)))
    assert len(many.ends) == SEEN_MAX and len(encoded(ENDED, many)) < ENDED_BYTES_MAX
    for note in (EarlyEnds(0), many):
        assert decoded(ENDED, encoded(ENDED, note)) == note
    for data in (b'{"round":0}', b'{"round":0,"ends":[[-1,""]]}', b'{"round":0,"ends":[[0,"<b>"]]}', b"[" * 99_999):
        assert decoded(ENDED, data) is None


def test_where_the_time_of_a_node_went_is_read_as_it_was_written_and_is_bounded() -> None:
    shares = {(f"a busy span of this name, {number:5}", "first start"): -(2**53) for number in range(SHARES_MAX)}
    last = tuple((Node("x" * 100, number), 2**53) for number in range(GONE_MAX))
    much = NodeRecord(A, Spent(shares, 2**53, trains=True), shares, 2**53, last, 7, ended=True)
    assert len(encoded(TIMES, much)) < TIME_BYTES_MAX
    for record in (NodeRecord(A), much):
        assert decoded(TIMES, encoded(TIMES, record)) == record
    named = NodeRecord(A, Spent({("<b>\x1b[31m", "none"): 1}))
    read = decoded(TIMES, encoded(TIMES, named))
    assert read and all(bucket.isprintable() for bucket, _ in read.own.shares)


TIME = (
    b'{"node":["a",1],"shares":[],"run":0,"trains":false,"taken":[],"gone":0,"last":[],"part":0,"ended":false,"at":0}'
)


@pytest.mark.parametrize(
    ("of", "becomes"),
    [
        (b'"shares":[]', b'"shares":[["training","none",9007199254740993]]'),
        (b'"shares":[]', b'"shares":[["","none",1]]'),
        (b'"shares":[]', b'"shares":[%s["x","none",1]]' % (b'["x","none",1],' * SHARES_MAX)),
        (b'"taken":[]', b'"taken":[["training","none"]]'),
        (b'"last":[]', b'"last":[%s[["a",1],0]]' % (b'[["a",1],0],' * GONE_MAX)),
        (b'"last":[]', b'"last":[[["a\\u0007",1],0]]'),
        (b'"node":["a",1]', b'"node":["",1]'),
        (b'"node":["a",1]', b'"node":["a\\n",1]'),
        (b'"run":0', b'"run":-1'),
        (b'"ended":false', b'"ended":0'),
        (b'"at":0}', b'"at":0}' + b" " * TIME_BYTES_MAX),
    ],
)
def test_what_is_no_time_of_a_node_is_none(of: bytes, becomes: bytes) -> None:
    assert decoded(TIMES, TIME) == NodeRecord(A)
    assert of in TIME and decoded(TIMES, TIME.replace(of, becomes)) is None


def test_what_a_program_named_at_any_length_is_read_by_all() -> None:
    """The page of a program has names of up to 100 bytes. Control characters are spelled out."""
    names = ("n" * NAME_BYTES, "\x07" * NAME_BYTES, "é" * (NAME_BYTES // 2))
    named = NodeRecord(A, Spent({(f"{number}{name}"[:NAME_BYTES], "program"): 1 for number, name in enumerate(names)}))
    for name in names:
        read = decoded(TIMES, encoded(TIMES, NodeRecord(A, Spent({(name, "program"): 1}))))
        assert read and list(read.own.shares.values()) == [1]
    assert decoded(TIMES, encoded(TIMES, named)) is not None


def test_what_is_written_alike_counts_together() -> None:
    told = NodeRecord(A, Spent({("\x07", "none"): 1, ("\\x07", "none"): 2}))
    read = decoded(TIMES, encoded(TIMES, told))
    assert read and read.own.shares == {("\\x07", "none"): 3}


def test_a_cause_of_a_later_version_is_unknown() -> None:
    later = TIME.replace(b'"shares":[]', b'"shares":[["waiting","bad luck",1],["waiting","unknown",2]]')
    assert decoded(TIMES, later) == NodeRecord(A, Spent({("waiting", "unknown"): 3}))


def test_forged_records_that_are_taken_over_leave_a_record_that_all_can_read() -> None:
    gone = [Node(f"gone {number}", 1) for number in range(3)]
    worst = "\U000e0001" * 25  # spelled out, each is ten characters
    forged = [
        TIME.replace(b'["a",1]', f'["{each.slot}",1]'.encode())
        .replace(b'"shares":[]', f'"shares":[["{worst}","none",{2**53}],["x","none",{2**53}]]'.encode())
        .replace(b'"gone":0', b'"gone":9007199254740992')
        for each in gone
    ]
    read = {each: record for each, data in zip(gone, forged, strict=True) if (record := decoded(TIMES, data))}
    assert read.keys() == {*gone}
    mine = record_of(took(Keeper(A, due=tuple(gone)), read), Spent({("training", "none"): 5}))
    assert decoded(TIMES, encoded(TIMES, mine)) == mine


def test_a_note_of_a_later_version_is_read() -> None:
    assert decoded(STANDBYS, b'{"ready":1,"imports_s":2,"of":3}') == StandbyNote(1, 2.0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[" * BYTES_MAX,
        b'{"ready":1}',
        b'{"ready":-1,"imports_s":1}',
        b'{"ready":65537,"imports_s":1}',
        b'{"ready":"1","imports_s":1}',
        b'{"ready":1,"imports_s":-1}',
        b'{"ready":1,"imports_s":1e7}',
        b'{"ready":1,"imports_s":NaN}',
        b'{"ready":1,"imports_s":1}' + b" " * BYTES_MAX,
    ],
    ids=lambda data: data[:30].decode("latin1"),
)
def test_what_is_no_note_is_none(data: bytes) -> None:
    assert decoded(STANDBYS, data) is None


@pytest.mark.parametrize(
    ("shelf", "of"),
    [
        (STANDBYS, lambda node: StandbyNote(1, 1.0)),
        (ENDED, lambda node: EarlyEnds(1)),
        (STACKS, lambda node: Stacks(node, 3)),
        (TIMES, NodeRecord),
        (PROPOSALS, lambda node: MARK),
    ],
    ids=["standbys", "ended", "stacks", "times", "proposals"],
)
def test_what_nobody_can_read_hides_no_other(
    notes: Notes, board: MemoryBackend, shelf: Shelf[Any], of: Callable[[Any], Any]
) -> None:
    board.put(Place(shelf, spelled(A)), GARBAGE)
    notes.put(shelf, B, of(B))
    assert notes.read(shelf, [A, B, C]) == {B: of(B)}


def test_what_stands_under_another_node_s_name_is_left_out(notes: Notes) -> None:
    notes.put(STACKS, A, Stacks(B, 3))
    notes.put_query(query := Query("0" * 16, 3))
    notes.put(REPLIES, A, Reply(query.id, Stacks(B, 3)))
    assert notes.read(STACKS, [A, B]) == {} and notes.replies([A, B]) == Replies(query, {})


def test_a_query_that_nobody_can_read_is_none(notes: Notes, board: MemoryBackend) -> None:
    board.put(Place(QUERY), GARBAGE)
    board.heartbeat(A, 1)
    assert notes.query is None and notes.replies([A]) == Replies(None, {})


def test_a_record_of_a_log_that_nobody_can_read_hides_no_other(notes: Notes, board: MemoryBackend) -> None:
    unfit, fault = Unfit(A, "host", "12:00", "no GPU"), Fault(A, 0, 0, 0, 7, 1, 1.0)
    for log in (UNFIT, FAULTS):
        board.put(Place(log, "0"), GARBAGE)
    notes.add(UNFIT, unfit)
    notes.add(FAULTS, fault)
    assert (notes.all(UNFIT), notes.faults()) == ((unfit,), (fault,))


@pytest.mark.parametrize("other", [Proposal(ERA, ENTERS.edit), MARK, Proposal(Token(ERA.life, 3), ENTERS.edit, True)])
def test_what_is_not_to_enter_in_this_era_is_no_such_proposal(
    notes: Notes, board: MemoryBackend, other: Proposal
) -> None:
    log = entering(entering_in(ERA))
    for number, each in enumerate((GARBAGE, encode_entrant(A, other), encode_entrant(A, ENTERS))):
        board.put(Place(log, str(number)), each)
    assert notes.proposals([], ERA) == {A: ENTERS} and notes.proposals([]) == {}


def test_of_several_proposals_of_a_node_to_enter_the_last_one_counts(notes: Notes, board: MemoryBackend) -> None:
    later = Proposal(ERA, Arrive(profile("a", 4711)), enters=True)
    for number, each in enumerate((ENTERS, later)):
        board.put(Place(entering(entering_in(ERA)), str(number)), encode_entrant(A, each))
    assert notes.proposals([], ERA) == {A: later}
