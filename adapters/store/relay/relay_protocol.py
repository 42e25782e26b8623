"""The protocol of the relay's socket: requests and answers as values, and as frames.

A frame is its length (4 bytes, big-endian) and a MessagePack value. The reader bounds it and checks its schema. States and
records travel as the bytes that a store keeps. One request at a time is under way on a connection. Each has one answer; the
answer to `Read` says how many records follow, a frame each.
"""

from __future__ import annotations

import socket
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from ....core.rendezvous import Token, codec
from ....core.rendezvous.state import NODES_MAX
from ....core.world import COUNT_MAX, NAME_MAX, Life, Node
from ..notes import ENTRANTS_MAX, FAULTS_MAX

_LENGTH_BYTES = 4
_FRAME_MAX = codec.BYTES_MAX + 2**16
"""The longest frame in bytes: a register, and the fields around it."""

_REST_MAX_S = 60.0
_PART_MAX = 16 * NAME_MAX
"""A name that is spelled for a key is longer."""
_RECORDS_MAX = max(FAULTS_MAX, ENTRANTS_MAX)

_Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
_Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
_LifePair: TypeAlias = tuple[_Name, Annotated[int, Meta(ge=1, le=COUNT_MAX)]]
_NodePair: TypeAlias = tuple[_Name, _Count]
_StateBytes: TypeAlias = Annotated[bytes, Meta(max_length=codec.BYTES_MAX)]
_Record: TypeAlias = Annotated[bytes, Meta(max_length=codec.FAULT_BYTES_MAX)]
_Part: TypeAlias = Annotated[str, Meta(max_length=_PART_MAX)]
_Place: TypeAlias = tuple[_Part, _Part]
"""The names of a folder and of a record in it."""


class Broken(OSError):
    """The connection ended, or something came that is not one of our frames."""


class _Said(Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    pass


class Named(_Said, frozen=True):
    """The name of one state."""

    life: _LifePair
    version: _Count


# --- requests


class Hello(_Said, frozen=True):
    """The first message of a connection: it names the register of all later ones."""

    space: _Name


class Ask(_Said, frozen=True):
    """The first message of somebody who asks about the agents' job: its register is that of all later ones."""


class Get(_Said, frozen=True):
    pass


class Set(_Said, frozen=True):
    state: _StateBytes
    token: Named | None


class WaitForChange(_Said, frozen=True):
    token: Named | None
    left_s: Annotated[float, Meta(ge=0)]
    """May be inf."""
    rest_s: Annotated[float, Meta(ge=0, le=_REST_MAX_S)] = 0.0
    """A change is shown this long after it, with those that followed."""


class Heartbeat(_Said, frozen=True):
    node: _NodePair
    counter: _Count


class ReadHeartbeats(_Said, frozen=True):
    nodes: Annotated[tuple[_NodePair, ...], Meta(max_length=NODES_MAX)]


class RemoveHeartbeat(_Said, frozen=True):
    node: _NodePair


class Put(_Said, frozen=True):
    place: _Place
    data: _Record


class Count(_Said, frozen=True):
    tally: _Part
    place: _Place
    data: _Record
    over: _Part


class Read(_Said, frozen=True):
    places: Annotated[tuple[_Place, ...], Meta(max_length=NODES_MAX + 1)]
    log: _Part | None


class Drop(_Said, frozen=True):
    places: Annotated[tuple[_Place, ...], Meta(max_length=NODES_MAX + 1)]


Question: TypeAlias = (
    Get | Set | WaitForChange | Heartbeat | ReadHeartbeats | RemoveHeartbeat | Put | Count | Read | Drop
)


# --- answers


class Welcome(_Said, frozen=True):
    lease_s: float | None
    job: tuple[_Part, _Part] | None = None
    """The agents' job, for somebody who asks about it: its run id, and the name of its store."""


class Stands(_Said, frozen=True):
    state: _StateBytes | None
    here: bool


class Heard(_Said, frozen=True):
    life: _LifePair | None
    lease_s: float | None


class Counters(_Said, frozen=True):
    counters: Annotated[tuple[_Count | None, ...], Meta(max_length=NODES_MAX)]
    life: _LifePair | None


class Noted(_Said, frozen=True):
    pass


class Counted(_Said, frozen=True):
    """This number was counted."""

    count: _Count


class Records(_Said, frozen=True):
    """Records follow: those at these of the places, and this number of the log."""

    at: Annotated[tuple[_Count, ...], Meta(max_length=NODES_MAX + 1)]
    tail: Annotated[int, Meta(ge=0, le=_RECORDS_MAX)]


class Failed(_Said, frozen=True):
    """The agent's store failed; `kind` names the error of the port."""

    kind: _Name
    text: str


Answer: TypeAlias = Welcome | Stands | Heard | Counters | Noted | Counted | Records | Failed

_Value = TypeVar("_Value")

_encoder = msgspec.msgpack.Encoder()
_hello: msgspec.msgpack.Decoder[Hello | Ask] = msgspec.msgpack.Decoder(Hello | Ask)
_question: msgspec.msgpack.Decoder[Question] = msgspec.msgpack.Decoder(Question)
_answer: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_record = msgspec.msgpack.Decoder(_Record)


def framed(*said: Hello | Ask | Question | Answer | bytes) -> bytes:
    """Return the frames of these messages."""
    frames = [_encoder.encode(each) for each in said]
    return b"".join(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame for frame in frames)


def send(to: socket.socket, *said: Hello | Ask | Question | Answer | bytes) -> None:
    """Send these messages. Raises Broken."""
    try:
        to.sendall(framed(*said))
    except OSError as error:
        raise Broken(error.strerror or str(error)) from error


def hello(of: socket.socket) -> Hello | Ask:
    """Read the first message. Raises Broken, as the other readers here do."""
    return _read(of, _hello)


def question(of: socket.socket) -> Question:
    return _read(of, _question)


def answer(of: socket.socket) -> Answer:
    return _read(of, _answer)


def record(of: socket.socket) -> bytes:
    return _read(of, _record)


def named(token: Token | None) -> Named | None:
    return Named(pair(token.life), token.version) if token else None


def token(named: Named | None) -> Token | None:
    return Token(Life(*named.life), named.version) if named else None


def pair(life: Life) -> _LifePair:
    return (life.nonce, life.epoch)


def node_pair(node: Node) -> _NodePair:
    return (node.slot, node.incarnation)


def node(pair: _NodePair) -> Node:
    return Node(*pair)


def _read(of: socket.socket, decoder: msgspec.msgpack.Decoder[_Value]) -> _Value:
    size = int.from_bytes(_bytes(of, _LENGTH_BYTES), "big")
    if size > _FRAME_MAX:
        raise Broken(f"a frame of {size} bytes, more than {_FRAME_MAX}")
    try:
        return decoder.decode(_bytes(of, size))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Broken(f"no frame of ours: {error}") from error


def _bytes(of: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            piece = of.recv(min(size - len(data), 1 << 20))
        except OSError as error:
            raise Broken(error.strerror or str(error)) from error
        if not piece:
            raise Broken("the connection was closed")
        data += piece
    return bytes(data)
