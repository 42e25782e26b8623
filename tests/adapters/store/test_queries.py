"""Queries and replies as bytes: what is read of them, and what is not."""

from __future__ import annotations

import pytest
from worlds import node

from elastic.adapters.store.note_codec import BYTES_MAX, REPLY_BYTES_MAX, TEXT_MAX, decoded, encoded
from elastic.adapters.store.notes import QUERY, REPLIES
from elastic.adapters.store.queries import Query, Reply
from elastic.core.world import NAME_MAX, SEEN_MAX, Stacks

ID = "0123456789abcdef"
STACKS = Stacks(node("a"), 3, ((0, "at x.py:1 in step"), (1, "asleep")))


@pytest.mark.parametrize("query", [Query(ID, 0), Query(ID, 7, 0), Query(ID, 2**53, 2**53)])
def test_a_query_is_read_as_it_was_written(query: Query) -> None:
    assert decoded(QUERY, encoded(QUERY, query)) == query


@pytest.mark.parametrize("reply", [Reply(ID, STACKS), Reply(ID, Stacks(node("a"), 0), "one\n\ntwo")])
def test_a_reply_is_read_as_it_was_written(reply: Reply) -> None:
    assert decoded(REPLIES, encoded(REPLIES, reply)) == reply


def test_the_largest_reply_is_read() -> None:
    most = Reply(ID, Stacks(node("a"), 1, tuple((rank, "☃" * NAME_MAX) for rank in range(SEEN_MAX))), "\\" * TEXT_MAX)
    assert decoded(REPLIES, encoded(REPLIES, most)) == most


def test_a_longer_text_is_cut_and_what_is_not_printable_is_spelled_out() -> None:
    cut = decoded(REPLIES, encoded(REPLIES, Reply(ID, STACKS, "x" * 2 * TEXT_MAX)))
    spelled = decoded(REPLIES, encoded(REPLIES, Reply(ID, STACKS, "one\n\x1b]0;title\x07")))
    assert cut and len(cut.text) == TEXT_MAX
    assert spelled and spelled.text == "one\n\\x1b]0;title\\x07"


def test_what_a_later_version_adds_is_no_obstacle() -> None:
    assert decoded(QUERY, b'{"id":"%s","round":1,"rank":null,"of":3}' % ID.encode()) == Query(ID, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[" * BYTES_MAX,
        b'{"id":"0123456789abcdef","round":1}',
        b'{"id":"0123456789ABCDEF","round":1,"rank":null}',
        b'{"id":"0123456789abcdef0","round":1,"rank":null}',
        b'{"id":"0123456789abcdef","round":-1,"rank":null}',
        b'{"id":"0123456789abcdef","round":1,"rank":-1}',
        b'{"id":"0123456789abcdef","round":1,"rank":9007199254740993}',
        b'{"id":"0123456789abcdef","round":1,"rank":null}' + b" " * BYTES_MAX,
    ],
    ids=lambda data: data[:46].decode("latin1"),
)
def test_what_is_no_query_is_none(data: bytes) -> None:
    assert decoded(QUERY, data) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"id":"0123456789abcdef","stacks":{},"text":""}',
        b'{"id":"0123456789abcdef","stacks":' + b"[" * 5_000 + b',"text":""}',
        encoded(REPLIES, Reply(ID, STACKS)).replace(b'"text":""', b'"text":1'),
        encoded(REPLIES, Reply(ID, STACKS)).replace(b'"text":""', b'"text":"%s"' % (b"x" * (TEXT_MAX + 1))),
        encoded(REPLIES, Reply(ID, STACKS)).replace(ID.encode(), b"1"),
        encoded(REPLIES, Reply(ID, STACKS)) + b" " * REPLY_BYTES_MAX,
    ],
    ids=lambda data: data[:46].decode("latin1"),
)
def test_what_is_no_reply_is_none(data: bytes) -> None:
    assert decoded(REPLIES, data) is None
