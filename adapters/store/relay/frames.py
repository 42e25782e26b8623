"""What is said over the relay's socket: requests and answers as values, and as frames.

A frame is its length (4 bytes, big-endian) and a MessagePack value, schema-checked and bounded by whoever reads it. States
and faults travel as the bytes of `core.rendezvous.codec`. One request is under way per connection, and each has one answer,
but for `Faults` and `ReadWishes`, whose answers say how many records follow them, a frame each.
"""

from __future__ import annotations

import socket
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from ....core.rendezvous import Token, codec
from ....core.rendezvous.state import NODES_MAX
from ....core.world import COUNT_MAX, NAME_MAX, Life, Node
from ..port import FAULTS_MAX

LENGTH_BYTES = 4
FRAME_MAX = codec.BYTES_MAX + 2**16
"""Longest frame in bytes: a register, and what is said around it."""

Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
LifePair: TypeAlias = tuple[Name, Annotated[int, Meta(ge=1, le=COUNT_MAX)]]
NodePair: TypeAlias = tuple[Name, Count]
StateBytes: TypeAlias = Annotated[bytes, Meta(max_length=codec.BYTES_MAX)]
FaultBytes: TypeAlias = Annotated[bytes, Meta(max_length=codec.FAULT_BYTES_MAX)]
WishBytes: TypeAlias = Annotated[bytes, Meta(max_length=codec.WISH_BYTES_MAX)]


class Broken(OSError):
    """The connection ended, or what came over it is no frame of ours."""


class _Said(Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    pass


class Named(_Said, frozen=True):
    """The name of one state."""

    life: LifePair
    version: Count


# --- requests


class Hello(_Said, frozen=True):
    """The first of a connection: of which register all that follows is."""

    space: Name


class Get(_Said, frozen=True):
    pass


class Set(_Said, frozen=True):
    state: StateBytes
    token: Named | None


class WaitForChange(_Said, frozen=True):
    token: Named | None
    left_s: Annotated[float, Meta(ge=0)]
    """May be inf."""


class Heartbeat(_Said, frozen=True):
    node: NodePair
    counter: Count


class ReadHeartbeats(_Said, frozen=True):
    nodes: Annotated[tuple[NodePair, ...], Meta(max_length=NODES_MAX)]


class RemoveHeartbeat(_Said, frozen=True):
    node: NodePair


class PutWish(_Said, frozen=True):
    node: NodePair
    wish: WishBytes


class ReadWishes(_Said, frozen=True):
    nodes: Annotated[tuple[NodePair, ...], Meta(max_length=NODES_MAX)]


class PutFault(_Said, frozen=True):
    fault: FaultBytes


class Faults(_Said, frozen=True):
    pass


Question: TypeAlias = (
    Get | Set | WaitForChange | Heartbeat | ReadHeartbeats | RemoveHeartbeat | PutWish | ReadWishes | PutFault | Faults
)


# --- answers


class Welcome(_Said, frozen=True):
    lease_s: float | None


class Stands(_Said, frozen=True):
    state: StateBytes | None
    here: bool


class Heard(_Said, frozen=True):
    life: LifePair | None
    lease_s: float | None


class Counters(_Said, frozen=True):
    counters: Annotated[tuple[Count | None, ...], Meta(max_length=NODES_MAX)]
    life: LifePair | None


class Noted(_Said, frozen=True):
    pass


class Records(_Said, frozen=True):
    """So many fault records follow."""

    faults: Annotated[int, Meta(ge=0, le=FAULTS_MAX)]


class Wished(_Said, frozen=True):
    """So many wish the like."""

    count: Count


class Wishes(_Said, frozen=True):
    """The wishes of these nodes follow."""

    nodes: Annotated[tuple[NodePair, ...], Meta(max_length=NODES_MAX)]


class Failed(_Said, frozen=True):
    """The agent's own store could not do it; `kind` names the error of the port."""

    kind: Name
    text: str


Answer: TypeAlias = Welcome | Stands | Heard | Counters | Noted | Records | Wished | Wishes | Failed

Value = TypeVar("Value")

_encoder = msgspec.msgpack.Encoder()
_hello = msgspec.msgpack.Decoder(Hello)
_question: msgspec.msgpack.Decoder[Question] = msgspec.msgpack.Decoder(Question)
_answer: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_record = msgspec.msgpack.Decoder(FaultBytes)
_wish = msgspec.msgpack.Decoder(WishBytes)


def send(to: socket.socket, *said: Hello | Question | Answer | bytes) -> None:
    """Raises Broken."""
    frames = [_encoder.encode(each) for each in said]
    try:
        to.sendall(b"".join(len(frame).to_bytes(LENGTH_BYTES, "big") + frame for frame in frames))
    except OSError as error:
        raise Broken(error.strerror or str(error)) from error


def hello(of: socket.socket) -> Hello:
    """Raises Broken, as the others here do."""
    return _read(of, _hello)


def question(of: socket.socket) -> Question:
    return _read(of, _question)


def answer(of: socket.socket) -> Answer:
    return _read(of, _answer)


def record(of: socket.socket) -> bytes:
    return _read(of, _record)


def wish(of: socket.socket) -> bytes:
    return _read(of, _wish)


def named(token: Token | None) -> Named | None:
    return Named(pair(token.life), token.version) if token else None


def token(named: Named | None) -> Token | None:
    return Token(Life(*named.life), named.version) if named else None


def pair(life: Life) -> LifePair:
    return (life.nonce, life.epoch)


def node_pair(node: Node) -> NodePair:
    return (node.slot, node.incarnation)


def node(pair: NodePair) -> Node:
    return Node(*pair)


def _read(of: socket.socket, decoder: msgspec.msgpack.Decoder[Value]) -> Value:
    size = int.from_bytes(_bytes(of, LENGTH_BYTES), "big")
    if size > FRAME_MAX:
        raise Broken(f"a frame of {size} bytes, more than {FRAME_MAX}")
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
