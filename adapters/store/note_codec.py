"""The bytes of a job's small records: a table with a row for each folder of `notes.py`.

A store's bytes are not trusted: what is not exactly of its schema is no record. A later version may add fields to notes of
standbys, times, queries and replies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from ...core.rendezvous import codec
from ...core.values import frozen
from ...core.world import COUNT_MAX, LOCAL_WORLD_SIZE_MAX, NAME_MAX, SEEN_MAX, SHARES_MAX, Node
from ..terminal import printable
from .notes import (
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
    Entrant,
    StandbyNote,
)
from .port import Folder, Log, Record, Shelf
from .queries import Query, Reply

if TYPE_CHECKING:
    from ...core.goodput.record import NodeRecord

BYTES_MAX = 1024
"""A note of standbys, or a query, is not longer."""
_WHEN_MAX = 40
ENDED_BYTES_MAX = SEEN_MAX * (_WHEN_MAX + 16) + BYTES_MAX
TEXT_MAX = 2**16
"""This many characters of what is known of one worker are told."""
REPLY_BYTES_MAX = codec.STACKS_BYTES_MAX + 2 * TEXT_MAX
IMPORTS_S_MAX = 1e6
TIME_BYTES_MAX = 2**18
_MARKS_MAX = 64
_BUCKET_MAX = 100
"""A program's page has no longer name of a busy span."""

_Id = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
_Rank = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
_Count = _Rank
_Named = tuple[Annotated[str, Meta(min_length=1, max_length=NAME_MAX)], _Count]
_Micros = Annotated[int, Meta(ge=-COUNT_MAX, le=COUNT_MAX)]
_Bucket = Annotated[str, Meta(min_length=1, max_length=_BUCKET_MAX)]
_Shares = Annotated[list[tuple[_Bucket, str, _Micros]], Meta(max_length=SHARES_MAX)]
"""Bucket, cause and microseconds."""


class _Note(Struct):
    ready: Annotated[int, Meta(ge=0, le=LOCAL_WORLD_SIZE_MAX)]
    imports_s: Annotated[float, Meta(ge=0, le=IMPORTS_S_MAX)] | None


class _Ends(Struct):
    round: _Rank
    ends: list[tuple[_Rank, Annotated[str, Meta(pattern="^[0-9T:.+-]*$", max_length=_WHEN_MAX)]]]


class _Query(Struct):
    id: _Id
    round: _Rank
    rank: _Rank | None


class _Reply(Struct):
    id: _Id
    stacks: msgspec.Raw
    text: Annotated[str, Meta(max_length=TEXT_MAX)]


class _Time(Struct):
    node: _Named
    shares: _Shares
    run: _Count
    trains: bool
    taken: _Shares
    gone: _Count
    last: Annotated[list[tuple[_Named, _Count]], Meta(max_length=_MARKS_MAX)]
    part: _Count
    ended: bool
    at: _Count


_encoder = msgspec.json.Encoder()
_notes = msgspec.json.Decoder(_Note)
_ends = msgspec.json.Decoder(_Ends)
_queries = msgspec.json.Decoder(_Query)
_replies = msgspec.json.Decoder(_Reply)
_times = msgspec.json.Decoder(_Time)


def _note(data: bytes) -> StandbyNote:
    wire = _notes.decode(data)
    return StandbyNote(wire.ready, wire.imports_s)


def _early_ends(data: bytes) -> EarlyEnds:
    wire = _ends.decode(data)
    return EarlyEnds(wire.round, tuple(wire.ends))


def _query(data: bytes) -> Query:
    wire = _queries.decode(data)
    return Query(wire.id, wire.round, wire.rank)


def _reply_bytes(reply: Reply) -> bytes:
    return _encoder.encode(_Reply(reply.id, msgspec.Raw(codec.encode_stacks(reply.stacks)), reply.text[:TEXT_MAX]))


def _reply(data: bytes) -> Reply:
    wire = _replies.decode(data)
    text = "\n".join(map(printable, wire.text.split("\n")))
    return Reply(wire.id, codec.decode_stacks(bytes(wire.stacks)), text)


def _summed(rows: Iterable[tuple[str, str, int]]) -> Mapping[tuple[str, str], int]:
    """Return the microseconds by bucket and cause. A bucket may have any name: those that are written alike are one."""
    found = dict[tuple[str, str], int]()
    for bucket, cause, micros in rows:
        key = printable(bucket)[:_BUCKET_MAX], cause
        found[key] = min(max(found.get(key, 0) + micros, -COUNT_MAX), COUNT_MAX)
    return found


def _time_bytes(record: NodeRecord) -> bytes:
    own = record.own
    rows = ([(*key, micros) for key, micros in each.items()] for each in (own.shares, record.taken))
    shares, taken = ([(*key, micros) for key, micros in _summed(each).items()] for each in rows)
    last: list[tuple[tuple[str, int], int]] = [(node, part) for node, part in record.last]
    gone, part, ended, at = record.gone, record.part, record.ended, record.at
    return _encoder.encode(_Time(record.node, shares, own.run, own.trains, taken, gone, last, part, ended, at))


def _time(data: bytes) -> NodeRecord:
    from ...core.goodput import Kind, NodeRecord, Spent  # few readers need it

    wire, causes = _times.decode(data), {kind.value for kind in Kind}
    known = (
        [(b, c if c in causes else Kind.UNKNOWN.value, m) for b, c, m in each] for each in (wire.shares, wire.taken)
    )
    own, taken = map(_summed, known)
    last = tuple((Node(*node), part) for node, part in wire.last)
    spent = Spent(own, wire.run, wire.trains)
    return NodeRecord(Node(*wire.node), spent, taken, wire.gone, last, wire.part, wire.ended, wire.at)


@frozen
class _Codec:
    """How a record becomes bytes and back. `decode` raises for what is no record."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    bytes_max: int


_CODECS: Mapping[str, _Codec] = {
    STANDBYS.name: _Codec(lambda note: _encoder.encode(asdict(note)), _note, BYTES_MAX),
    ENDED.name: _Codec(lambda note: _encoder.encode(asdict(note)), _early_ends, ENDED_BYTES_MAX),
    TIMES.name: _Codec(_time_bytes, _time, TIME_BYTES_MAX),
    STACKS.name: _Codec(codec.encode_stacks, codec.decode_stacks, codec.STACKS_BYTES_MAX),
    QUERY.name: _Codec(lambda query: _encoder.encode(asdict(query)), _query, BYTES_MAX),
    REPLIES.name: _Codec(_reply_bytes, _reply, REPLY_BYTES_MAX),
    PROPOSALS.name: _Codec(codec.encode_proposal, codec.decode_proposal, codec.PROPOSAL_BYTES_MAX),
    "enter": _Codec(
        lambda entrant: codec.encode_entrant(entrant.node, entrant.proposal),
        lambda data: Entrant(*codec.decode_entrant(data)),
        codec.PROPOSAL_BYTES_MAX,
    ),
    FAULTS.name: _Codec(codec.encode_fault, codec.decode_fault, codec.FAULT_BYTES_MAX),
    UNFIT.name: _Codec(codec.encode_unfit, codec.decode_unfit, codec.FAULT_BYTES_MAX),
}
"""By the first part of a folder's name."""


def encoded(folder: Shelf[Record] | Log[Record], record: Record) -> bytes:
    """Return the bytes of a record of this folder."""
    return _row(folder).encode(record)


def fits(folder: Folder, data: bytes) -> bool:
    """Return False if these are more bytes than a record of this folder may have."""
    return len(data) <= _row(folder).bytes_max


def decoded(folder: Shelf[Record] | Log[Record], data: bytes) -> Record | None:
    """Return the record in these bytes; None if there is none."""
    if not fits(folder, data):
        return None
    try:
        record: Record = _row(folder).decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return record


def _row(folder: Folder) -> _Codec:
    return _CODECS[folder.name.partition("/")[0]]
