"""The encoding of states, proposals and failure records: JSON with a format number, checked against a schema, bounded.

A store's bytes are not trusted. Anything that is not exactly a value of this format is refused, with a sentence that names
the place. Nothing is executed, and no field is guessed. A state that decodes may still break an invariant, which `verify`
finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ..world import (
    CALLSTACK_MAX,
    COUNT_MAX,
    LABELS_MAX,
    LOCAL_WORLD_SIZE_MAX,
    MESSAGE_MAX,
    NAME_MAX,
    PORT_MAX,
    TAIL_MAX,
    Ending,
    Endpoint,
    Fault,
    Life,
    Node,
    Profile,
    Verdict,
    Why,
)
from .actions import Arrive, Done, Proposal
from .state import BASE_MAX, NODES_MAX, Ended, Limits, RendezvousState, Seat, Status, Token

FORMAT = 4
BYTES_MAX = 8 * 2**20
"""The most bytes of a register. A larger value is refused unread."""
FAULT_BYTES_MAX = 2**20
PROPOSAL_BYTES_MAX = 2**17

Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
Text = Annotated[str, Meta(max_length=NAME_MAX)]
Message = Annotated[str, Meta(max_length=MESSAGE_MAX)]


class Refused(ValueError):
    """Bytes that are no value that this version can read."""


Epoch = Annotated[int, Meta(ge=1, le=COUNT_MAX)]


class _Wire(Struct, forbid_unknown_fields=True):
    pass


class _Verdict(_Wire):
    ending: Ending
    round: Count
    by: tuple[Name, Count]
    why: Why


class _Ended(_Wire):
    round: Count
    why: Why
    by: tuple[Name, Count]


class _Limits(_Wire):
    min_nodes: Annotated[int, Meta(ge=1, le=NODES_MAX)]
    max_nodes: Annotated[int, Meta(ge=1, le=NODES_MAX)]
    max_restarts: Count


class _Profile(Struct, frozen=True, forbid_unknown_fields=True):
    address: Name
    port: Annotated[int, Meta(ge=1, le=PORT_MAX)]
    local_world_size: Annotated[int, Meta(ge=1, le=LOCAL_WORLD_SIZE_MAX)]
    role: Name
    host: Name
    labels: Annotated[tuple[tuple[Name, Text], ...], Meta(max_length=LABELS_MAX)]
    program: Text
    content: Text


class _Seat(_Profile, frozen=True, forbid_unknown_fields=True, kw_only=True):
    slot: Name
    incarnation: Count
    status: Status
    order: Count


class _State(_Wire):
    format: int
    job: Name
    life: tuple[Name, Epoch]
    base: Annotated[tuple[tuple[Count, Count], ...], Meta(max_length=BASE_MAX)]
    version: Count
    limits: _Limits
    round: Count
    complete: bool
    completed_in: tuple[Name, Epoch] | None
    policy: Text
    closed: _Verdict | None
    seats: Annotated[tuple[_Seat, ...], Meta(max_length=NODES_MAX)]
    next_order: Count
    target: Count
    quorum_at: Count | None
    failures: Count
    ended: _Ended | None
    stale_before: Count


class _Format(Struct):
    format: int


_encoder = msgspec.json.Encoder()
_state = msgspec.json.Decoder(_State)
_format = msgspec.json.Decoder(_Format)


def encode(state: RendezvousState) -> bytes:
    return _encoder.encode(_to_wire(state))


def decode(data: bytes) -> RendezvousState:
    """Return the state in these bytes. Raise Refused, with the reason, if there is none."""
    if len(data) > BYTES_MAX:
        raise Refused(f"{len(data)} bytes, more than the {BYTES_MAX} that a register may hold")
    try:
        number = _format.decode(data).format
        state = _from_wire(_state.decode(data)) if number == FORMAT else None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Refused(f"no register state: {error}") from error
    if state is None:
        raise Refused(f"format {number}, this version reads format {FORMAT}")
    return state


def _to_wire(state: RendezvousState) -> _State:
    closed, ended, limits = state.closed, state.ended, state.limits
    return _State(
        format=FORMAT,
        job=state.job,
        life=_life(state.life),
        base=state.base,
        version=state.version,
        limits=_Limits(limits.min_nodes, limits.max_nodes, limits.max_restarts),
        round=state.round,
        complete=state.complete,
        completed_in=_life(state.completed_in) if state.completed_in else None,
        policy=state.policy,
        closed=_Verdict(closed.ending, closed.round, _pair(closed.by), closed.why) if closed else None,
        seats=tuple(_seat_to_wire(node, seat) for node, seat in state.seats.items()),
        next_order=state.next_order,
        target=state.target,
        quorum_at=state.quorum_at,
        failures=state.failures,
        ended=_Ended(ended.round, ended.why, _pair(ended.by)) if ended else None,
        stale_before=state.stale_before,
    )


def _seat_to_wire(node: Node, seat: Seat) -> _Seat:
    told = _profile_to_wire(seat.profile)
    return _Seat(*told, slot=node.slot, incarnation=node.incarnation, status=seat.status, order=seat.order)


def _profile_to_wire(profile: Profile) -> tuple[str, int, int, str, str, tuple[tuple[str, str], ...], str, str]:
    endpoint = profile.endpoint
    told = profile.local_world_size, profile.role, profile.host, profile.labels, profile.program, profile.content
    return endpoint.address, endpoint.port, *told


def _profile(wire: _Profile) -> Profile:
    endpoint = Endpoint(wire.address, wire.port)
    return Profile(endpoint, wire.local_world_size, wire.role, wire.host, wire.labels, wire.program, wire.content)


def _from_wire(wire: _State) -> RendezvousState:
    seats = dict(_KNOWN.seated(wire.seats))
    if len(seats) < len(wire.seats):
        raise ValueError("a node is seated twice")
    if not wire.job.isprintable():
        raise ValueError(f"job: printable characters, not {wire.job!r}")
    closed, ended, limits = wire.closed, wire.ended, wire.limits
    return RendezvousState(
        job=wire.job,
        life=Life(*wire.life),
        base=wire.base,
        limits=Limits(limits.min_nodes, limits.max_nodes, limits.max_restarts),
        version=wire.version,
        round=wire.round,
        complete=wire.complete,
        completed_in=Life(*wire.completed_in) if wire.completed_in else None,
        policy=wire.policy,
        closed=Verdict(closed.ending, closed.round, Node(*closed.by), closed.why) if closed else None,
        seats=seats,
        next_order=wire.next_order,
        target=wire.target,
        quorum_at=wire.quorum_at,
        failures=wire.failures,
        ended=Ended(ended.round, ended.why, Node(*ended.by)) if ended else None,
        stale_before=wire.stale_before,
    )


def _seated(wire: _Seat) -> tuple[Node, Seat]:
    return Node(wire.slot, wire.incarnation), Seat(wire.status, wire.order, _profile(wire))


class _Known:
    """The seats of the state that was decoded last. The next version mostly differs in one seat, and takes the others over.

    No more is kept, because a process may see versions without end.
    """

    def __init__(self) -> None:
        self._last: Mapping[_Seat, tuple[Node, Seat]] = {}

    def seated(self, wires: tuple[_Seat, ...]) -> Iterable[tuple[Node, Seat]]:
        last = self._last
        now = self._last = {wire: last.get(wire) or _seated(wire) for wire in wires}
        return now.values()


_KNOWN = _Known()


def _pair(node: Node) -> tuple[str, int]:
    return (node.slot, node.incarnation)


def _life(life: Life) -> tuple[str, int]:
    return (life.nonce, life.epoch)


class _Proposal(_Wire):
    """`arrive` or `done`, one of them."""

    format: int
    life: tuple[Name, Epoch]
    stale_before: Count
    arrive: _Profile | None = None
    done: Count | None = None


_proposal = msgspec.json.Decoder(_Proposal)


def encode_proposal(proposal: Proposal) -> bytes:
    era, edit = proposal.era, proposal.edit
    arrive = _Profile(*_profile_to_wire(edit.profile)) if isinstance(edit, Arrive) else None
    done = edit.round if isinstance(edit, Done) else None
    return _encoder.encode(_Proposal(FORMAT, _life(era.life), era.version, arrive, done))


def decode_proposal(data: bytes) -> Proposal:
    """Return the proposal in these bytes. Raise Refused, with the reason, if there is none."""
    if len(data) > PROPOSAL_BYTES_MAX:
        raise Refused(f"{len(data)} bytes, more than the {PROPOSAL_BYTES_MAX} of a proposal")
    try:
        wire = _proposal.decode(data)
        if wire.format != FORMAT:
            raise ValueError(f"format {wire.format}, this version reads format {FORMAT}")
        era = Token(Life(*wire.life), wire.stale_before)
        if wire.arrive is not None and wire.done is None:
            return Proposal(era, Arrive(_profile(wire.arrive)))
        if wire.done is not None and wire.arrive is None:
            return Proposal(era, Done(wire.done))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Refused(f"no proposal: {error}") from error
    raise Refused("no proposal: it is to arrive, or to be done")


def decode_proposals(data: Mapping[Node, bytes]) -> Iterator[tuple[Node, Proposal]]:
    """Yield what can be read."""
    for node, each in data.items():
        try:
            yield node, decode_proposal(each)
        except Refused:
            continue


class _Fault(_Wire):
    format: int
    slot: Name
    incarnation: Count
    round: Count
    rank: Count
    local_rank: Count
    pid: Count
    exit_code: int
    after_s: float
    world_size: Count
    host: Message
    when: Message
    message: Message
    where: Message
    log: Message
    tail: Annotated[tuple[Message, ...], Meta(max_length=TAIL_MAX)]
    remark: Message
    callstack: Annotated[str, Meta(max_length=CALLSTACK_MAX)]
    error_file: Message


_fault = msgspec.json.Decoder(_Fault)


def encode_fault(fault: Fault) -> bytes:
    node = fault.node
    return _encoder.encode(
        _Fault(
            FORMAT,
            node.slot,
            node.incarnation,
            fault.round,
            fault.rank,
            fault.local_rank,
            fault.pid,
            fault.exit_code,
            fault.after_s,
            fault.world_size,
            fault.host,
            fault.when,
            fault.message,
            fault.where,
            fault.log,
            fault.tail,
            fault.remark,
            fault.callstack,
            fault.error_file,
        )
    )


def decode_fault(data: bytes) -> Fault:
    """Return the failure record in these bytes. Raise Refused, with the reason, if there is none."""
    if len(data) > FAULT_BYTES_MAX:
        raise Refused(f"{len(data)} bytes, more than the {FAULT_BYTES_MAX} of a fault record")
    try:
        wire = _fault.decode(data)
        node = Node(wire.slot, wire.incarnation)
        place = wire.round, wire.rank, wire.local_rank, wire.pid, wire.exit_code, wire.after_s, wire.world_size
        said = wire.host, wire.when, wire.message, wire.where, wire.log, wire.tail
        return Fault(node, *place, *said, wire.remark, wire.callstack, wire.error_file)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Refused(f"no fault record: {error}") from error
