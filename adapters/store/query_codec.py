"""Makes the bytes of a query and of its replies for a store, and reads them.

A store's bytes are not trusted: what is not exactly of these schemas is no query and no reply. A later version may add
fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ...core.rendezvous import codec
from ...core.world import COUNT_MAX, Node
from ..terminal import printable
from .queries import Query, Reply

QUERY_BYTES_MAX = 1024
TEXT_MAX = 2**16
"""So many characters of what is known of one worker are told."""
REPLY_BYTES_MAX = codec.STACKS_BYTES_MAX + 2 * TEXT_MAX

_Id = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
_Rank = Annotated[int, Meta(ge=0, le=COUNT_MAX)]


class _Query(Struct):
    id: _Id
    round: _Rank
    rank: _Rank | None


class _Reply(Struct):
    id: _Id
    stacks: msgspec.Raw
    text: Annotated[str, Meta(max_length=TEXT_MAX)]


_encoder = msgspec.json.Encoder()
_queries = msgspec.json.Decoder(_Query)
_replies = msgspec.json.Decoder(_Reply)


def encode_query(query: Query) -> bytes:
    return _encoder.encode(_Query(query.id, query.round, query.rank))


def decode_query(data: bytes) -> Query | None:
    """Return the query in these bytes; None if there is none."""
    if len(data) > QUERY_BYTES_MAX:
        return None
    try:
        wire = _queries.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return Query(wire.id, wire.round, wire.rank)


def encode_reply(reply: Reply) -> bytes:
    return _encoder.encode(_Reply(reply.id, msgspec.Raw(codec.encode_stacks(reply.stacks)), reply.text[:TEXT_MAX]))


def decode_replies(data: Mapping[Node, bytes]) -> Mapping[Node, Reply]:
    """Return the replies that can be read, and are of the node under whose name they stand."""
    replies = {node: _reply(each) for node, each in data.items()}
    return {node: reply for node, reply in replies.items() if reply and reply.stacks.node == node}


def _reply(data: bytes) -> Reply | None:
    if len(data) > REPLY_BYTES_MAX:
        return None
    try:
        wire = _replies.decode(data)
        stacks = codec.decode_stacks(bytes(wire.stacks))
    except (codec.Refused, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return Reply(wire.id, stacks, "\n".join(map(printable, wire.text.split("\n"))))
