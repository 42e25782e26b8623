"""The encoding of states, proposals and failure records: JSON with a format number, checked against a schema, bounded.

A state of many seats is compressed by zlib. Its seats then stand in columns, one for each field, and a name that repeats the
seat's address is left out: compression finds what is alike in a column, and 4,096 seats take 100 kB.

A store's bytes are not trusted. Anything that is not exactly a value of this format is refused, with a sentence that names
the place. Nothing is executed, and no field is guessed. A state that decodes may still break an invariant, which `verify`
finds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import astuple

from ..world import (
    CALLSTACK_MAX,
    COUNT_MAX,
    LABELS_MAX,
    LOCAL_WORLD_SIZE_MAX,
    MESSAGE_MAX,
    NAME_MAX,
    NOTICE_MAX_S,
    PORT_MAX,
    SEEN_MAX,
    TAIL_MAX,
    Ending,
    Endpoint,
    Fault,
    Life,
    Node,
    Notice,
    Origin,
    Party,
    Profile,
    Stacks,
    Unfit,
    Verdict,
    Why,
)
from .actions import Arrive, Done, Proposal
from .state import (
    BASE_MAX,
    COOLDOWN_MAX_S,
    FRUITLESS_MAX,
    LOST_MAX,
    NODES_MAX,
    STARTS_MAX,
    Ended,
    Failing,
    Limits,
    RendezvousState,
    Seat,
    Status,
    Token,
    note_columns,
)

FORMAT = 10
BYTES_MAX = 8 * 2**20
"""The most bytes of a register, compressed or not. A larger value is refused unread."""
PLAIN_MAX = 4_096
"""Larger registers are compressed."""
_COMPRESSED = b"\x78"
"""zlib's first byte, with which no JSON begins."""
FAULT_BYTES_MAX = 2**20
PROPOSAL_BYTES_MAX = 2**17
STACKS_BYTES_MAX = 2**19

Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
Text = Annotated[str, Meta(max_length=NAME_MAX)]
Deadline = Annotated[float, Meta(ge=0, le=NOTICE_MAX_S)]
Message = Annotated[str, Meta(max_length=MESSAGE_MAX)]
Port = Annotated[int, Meta(ge=1, le=PORT_MAX)]
LinkPort = Annotated[int, Meta(ge=0, le=PORT_MAX)]
LocalWorldSize = Annotated[int, Meta(ge=1, le=LOCAL_WORLD_SIZE_MAX)]
Labels = Annotated[tuple[tuple[Name, Text], ...], Meta(max_length=LABELS_MAX)]
PartyWire = tuple[Name, LocalWorldSize]
NoticeWire = tuple[Deadline, Name]
FailingWire = tuple[Annotated[int, Meta(ge=1, le=COUNT_MAX)], Annotated[float, Meta(ge=0, le=COOLDOWN_MAX_S)]]
Marked = Annotated[str, Meta(min_length=1, max_length=NAME_MAX + 1)]
SEATS = Meta(max_length=NODES_MAX)
Made = TypeVar("Made")


class Refused(ValueError):
    """Bytes that are no value that this version can read."""


Epoch = Annotated[int, Meta(ge=1, le=COUNT_MAX)]


class _Wire(Struct, forbid_unknown_fields=True):
    pass


def _read(data: bytes, most: int, what: str, decoder: msgspec.json.Decoder[Any], made: Callable[[Any], Made]) -> Made:
    """Return what is made of the wire value in these bytes. Raise Refused, with the reason, if there is none."""
    if len(data) > most:
        raise Refused(f"{len(data)} bytes, more than the {most} of a {what}")
    try:
        wire = decoder.decode(data)
        if wire.format != FORMAT:
            raise ValueError(f"format {wire.format}, this version reads format {FORMAT}")
        return made(wire)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Refused(f"no {what}: {error}") from error


class _Verdict(_Wire):
    ending: Ending
    round: Count
    by: tuple[Name, Count]
    why: Why


class _Ended(_Wire):
    round: Count
    why: Why
    by: tuple[Name, Count]
    lost: Annotated[tuple[Name, ...], Meta(max_length=LOST_MAX)] = ()


class _Limits(_Wire, omit_defaults=True):
    min_nodes: Annotated[int, Meta(ge=1, le=NODES_MAX)]
    max_nodes: Annotated[int, Meta(ge=1, le=NODES_MAX)]
    max_restarts: Count
    agreed: Text
    give_up_after: Annotated[int, Meta(ge=0, le=FRUITLESS_MAX)]
    counts_failures: bool
    node_unit: Annotated[int, Meta(ge=1, le=NODES_MAX)]
    segment: Text = ""


class _Profile(_Wire, omit_defaults=True):
    address: Name
    port: Port
    local_world_size: LocalWorldSize
    role: Name
    host: Name
    labels: Labels
    program: Text
    content: Text
    arguments: Text
    link_port: LinkPort
    party: PartyWire | None = None
    serves_store: bool = False


class _Seat(_Profile, kw_only=True):
    slot: Name
    incarnation: Count
    status: Status
    order: Count
    notice: NoticeWire | None = None
    failing: FailingWire | None = None


class _Columns(_Wire, omit_defaults=True):
    """The seats of a compressed register: each field of them all, in the order of seats."""

    address: Annotated[tuple[Name, ...], SEATS]
    port: Annotated[tuple[Port, ...], SEATS]
    local_world_size: Annotated[tuple[LocalWorldSize, ...], SEATS]
    role: Annotated[tuple[Name, ...], SEATS]
    host: Annotated[tuple[Text, ...], SEATS]
    """Empty: the address."""
    labels: Annotated[tuple[Labels, ...], SEATS]
    program: Annotated[tuple[Text, ...], SEATS]
    content: Annotated[tuple[Text, ...], SEATS]
    arguments: Annotated[tuple[Text, ...], SEATS]
    link_port: Annotated[tuple[LinkPort, ...], SEATS]
    party: Annotated[tuple[PartyWire | None, ...], SEATS]
    slot: Annotated[tuple[Marked, ...], SEATS]
    """`=` and the slot, or `+` and what follows the address in it."""
    incarnation: Annotated[tuple[Count, ...], SEATS]
    status: Annotated[tuple[Status, ...], SEATS]
    order: Annotated[tuple[Count, ...], SEATS]
    notice: Annotated[tuple[NoticeWire | None, ...], SEATS]
    failing: Annotated[tuple[FailingWire | None, ...], SEATS]
    serving: Annotated[tuple[Count, ...], SEATS] = ()
    """The places of the seats that serve the store: nearly always one."""


class _State(_Wire):
    format: int
    job: Name
    life: tuple[Name, Epoch]
    base: Annotated[tuple[tuple[Count, Count], ...], Meta(max_length=BASE_MAX)]
    version: Count
    limits: _Limits
    round: Count
    generation: Count
    complete: bool
    completed_in: tuple[Name, Epoch] | None
    policy: Text
    closed: _Verdict | None
    seats: Annotated[tuple[_Seat, ...], SEATS] | _Columns
    next_order: Count
    target: Count
    quorum_at: Count | None
    failures: Count
    ended: _Ended | None
    progressed: bool
    fruitless: Annotated[tuple[_Ended, ...], Meta(max_length=FRUITLESS_MAX)]
    lost_starts: Annotated[tuple[tuple[Name, Count], ...], Meta(max_length=STARTS_MAX)]
    stale_before: Count


class _Format(Struct):
    format: int


_encoder = msgspec.json.Encoder()
_state = msgspec.json.Decoder(_State)
_format = msgspec.json.Decoder(_Format)


def encode(state: RendezvousState) -> bytes:
    """Return the state as a store keeps it: compressed if it is large."""
    wire = _to_wire(state)
    plain = _encoder.encode(wire)
    if len(plain) <= PLAIN_MAX:
        return plain
    assert isinstance(wire.seats, tuple)
    wire.seats = _to_columns(wire.seats)
    return zlib.compress(_encoder.encode(wire), level=1)


def encode_plain(state: RendezvousState) -> bytes:
    """Return the state as JSON, whatever its size: a trace and people read it."""
    return _encoder.encode(_to_wire(state))


def decode(data: bytes) -> RendezvousState:
    """Return the state in these bytes. Raise Refused, with the reason, if there is none."""
    if len(data) > BYTES_MAX:
        raise Refused(f"{len(data)} bytes, more than the {BYTES_MAX} that a register may hold")
    if data.startswith(_COMPRESSED):
        data = _inflated(data)
    try:
        return _from_wire(_state.decode(data))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Refused(_another_format(data) or f"no register state: {error}") from error


def _another_format(data: bytes) -> str | None:
    """Return the reason why this version cannot read these bytes, if they say that they have another format."""
    try:
        number = _format.decode(data).format
    except (msgspec.MsgspecError, RecursionError):
        return None
    return None if number == FORMAT else f"format {number}, this version reads format {FORMAT}"


def _inflated(data: bytes) -> bytes:
    """Return what zlib compressed, read no further than a register may be long. Raises Refused."""
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(data, BYTES_MAX + 1)
    except zlib.error as error:
        raise Refused(f"no register state: {error}") from error
    if len(plain) > BYTES_MAX:
        raise Refused(f"{len(data)} compressed bytes, which are more than the {BYTES_MAX} that a register may hold")
    if not inflater.eof or inflater.unused_data:
        raise Refused("no register state: the compressed bytes are cut, or others follow them")
    return plain


def _to_wire(state: RendezvousState) -> _State:
    closed, ended = state.closed, state.ended
    return _State(
        format=FORMAT,
        job=state.job,
        life=_life(state.life),
        base=state.base,
        version=state.version,
        limits=_Limits(*astuple(state.limits)),  # type: ignore[arg-type]  # a struct (core/values.py)
        round=state.round,
        generation=state.generation,
        complete=state.complete,
        completed_in=_life(state.completed_in) if state.completed_in else None,
        policy=state.policy,
        closed=_Verdict(closed.ending, closed.round, _pair(closed.by), closed.why) if closed else None,
        seats=tuple(_seat_to_wire(node, seat) for node, seat in state.seats.items()),
        next_order=state.next_order,
        target=state.target,
        quorum_at=state.quorum_at,
        failures=state.failures,
        ended=_ended_to_wire(ended) if ended else None,
        progressed=state.progressed,
        fruitless=tuple(map(_ended_to_wire, state.fruitless)),
        lost_starts=tuple(map(_pair, state.lost_starts)),
        stale_before=state.stale_before,
    )


def _ended_to_wire(ended: Ended) -> _Ended:
    return _Ended(ended.round, ended.why, _pair(ended.by), ended.lost)


def _ended(wire: _Ended) -> Ended:
    return Ended(wire.round, wire.why, Node(*wire.by), wire.lost)


def _to_columns(seats: tuple[_Seat, ...]) -> _Columns:
    columns = list(zip(*map(_row, seats), strict=True))
    serves = columns.pop(_SERVES)
    wire = _Columns(*columns)
    wire.serving = tuple([place for place, each in enumerate(serves) if each])
    return wire


_Row: TypeAlias = tuple[Any, ...]
"""The fields of a seat. The first fourteen say which node it is, and what that says of itself."""
_Column: TypeAlias = tuple[Any, ...]
"""One field of all seats."""
_OWN = 14
_SERVES = 11
"""The place of `serves_store` in a row."""


def _row(seat: _Seat) -> _Row:
    """Return the fields of a seat, its names spelled by its address where they repeat that."""
    address, port, size, role, host, *told, slot, incarnation, status, order, notice, failing = astuple(seat)
    host, slot = (
        "" if host == address else host,
        f"+{slot.removeprefix(address)}" if slot.startswith(address) else f"={slot}",
    )
    return (address, port, size, role, host, *told, slot, incarnation, status, order, notice, failing)


def _columns(seats: tuple[_Seat, ...] | _Columns) -> tuple[_Column, ...]:
    """Return the fields of all seats, in the order of `_row`; nothing for no seats."""
    if not isinstance(seats, _Columns):
        return tuple(zip(*map(_row, seats), strict=True))
    *columns, serving = astuple(seats)
    places = frozenset(serving)
    columns.insert(_SERVES, tuple([place in places for place in range(len(seats.address))]))
    return tuple(columns)


def _unmarked(slot: str, address: str) -> str:
    match slot[0]:
        case "=":
            return slot[1:]
        case "+":
            return f"{address}{slot[1:]}"
        case mark:
            raise ValueError(f"a slot begins with `=` or `+`, not {mark!r}")


def _seat_to_wire(node: Node, seat: Seat) -> _Seat:
    told = _profile_to_wire(seat.profile)
    notice = (seat.notice.deadline_s, seat.notice.source) if seat.notice else None
    failing = (seat.failing.failures, seat.failing.cooldown_s) if seat.failing else None
    return _Seat(
        *told,
        slot=node.slot,
        incarnation=node.incarnation,
        status=seat.status,
        order=seat.order,
        notice=notice,
        failing=failing,
    )


_Told: TypeAlias = tuple[
    str, int, int, str, str, tuple[tuple[str, str], ...], str, str, str, int, tuple[str, int] | None, bool
]


def _profile_to_wire(profile: Profile) -> _Told:
    endpoint, party = profile.endpoint, profile.party
    told = profile.local_world_size, profile.role, profile.host, profile.labels, profile.program, profile.content
    further = (
        profile.arguments,
        profile.link_port,
        (party.name, party.size) if party else None,
        bool(profile.serves_store),
    )
    return endpoint.address, endpoint.port, *told, *further


def _profile(wire: _Profile) -> Profile:
    endpoint = Endpoint(wire.address, wire.port)
    told = wire.local_world_size, wire.role, wire.host, wire.labels, wire.program, wire.content
    return Profile(
        endpoint,
        *told,
        wire.arguments,
        wire.link_port,
        Party(*wire.party) if wire.party else None,
        wire.serves_store or None,
    )


def _from_wire(wire: _State) -> RendezvousState:
    if wire.format != FORMAT:
        raise ValueError(f"format {wire.format}")
    columns = _columns(wire.seats)
    people = _KNOWN.seated(columns[:_OWN], columns[_OWN:])
    seats = dict(zip(people.nodes, people.seats, strict=True))
    if len(seats) < len(people.nodes):
        raise ValueError("a node is seated twice")
    if not wire.job.isprintable():
        raise ValueError(f"job: printable characters, not {wire.job!r}")
    closed, ended, limits = wire.closed, wire.ended, wire.limits
    state = RendezvousState(
        job=wire.job,
        life=Life(*wire.life),
        base=wire.base,
        limits=Limits(*astuple(limits)),
        version=wire.version,
        round=wire.round,
        generation=wire.generation,
        complete=wire.complete,
        completed_in=Life(*wire.completed_in) if wire.completed_in else None,
        policy=wire.policy,
        closed=Verdict(closed.ending, closed.round, Node(*closed.by), closed.why) if closed else None,
        seats=seats,
        next_order=wire.next_order,
        target=wire.target,
        quorum_at=wire.quorum_at,
        failures=wire.failures,
        ended=_ended(ended) if ended else None,
        progressed=wire.progressed,
        fruitless=tuple(map(_ended, wire.fruitless)),
        lost_starts=tuple([Node(*each) for each in wire.lost_starts]),
        stale_before=wire.stale_before,
    )
    if columns:
        note_columns(state, people.nodes, people.profiles, *columns[_OWN : _OWN + 3])
    return state


def _seat_of(
    profile: Profile, status: Status, order: int, notice: NoticeWire | None, failing: FailingWire | None
) -> Seat:
    return Seat(status, order, profile, Notice(*notice) if notice else None, Failing(*failing) if failing else None)


class _People(NamedTuple):
    """The seats of one state, in columns: what they were made from, and what was made."""

    own: tuple[_Column, ...] = ()
    """The fields that say which nodes they are, and what those say of themselves."""
    nodes: tuple[Node, ...] = ()
    profiles: tuple[Profile, ...] = ()
    rests: tuple[_Row, ...] = ()
    """The further fields of each seat."""
    seats: tuple[Seat, ...] = ()


class _Known:
    """The seats of the state that was decoded last. The next version takes over those that are alike. Where only the status
    of a seat is another one, it takes over the node and its profile: a new one takes ten times as long.

    No more is kept, because a process may see versions without end.
    """

    def __init__(self) -> None:
        self._last = _People()

    def seated(self, own: tuple[_Column, ...], rest: tuple[_Column, ...]) -> _People:
        """Return the seats of these columns. Raises ValueError."""
        last = self._last if own == self._last.own else _found(own, self._last)
        rests = tuple(zip(*rest, strict=True))
        each = zip(last.profiles, last.rests, last.seats, rests, strict=True)
        seats = tuple([seat if was == now else _seat_of(profile, *now) for profile, was, seat, now in each])
        self._last = people = _People(own, last.nodes, last.profiles, rests, seats)
        return people


def _found(own: tuple[_Column, ...], last: _People) -> _People:
    """Return the people of these columns, each with its last seat if it had one. Raises ValueError."""
    known = dict(zip(zip(*last.own, strict=True), zip(*last[1:], strict=True), strict=True))
    found = [known.get(row) or (*_node_and_profile(*row), None, None) for row in zip(*own, strict=True)]
    return _People(own, *zip(*found, strict=True)) if found else _People()


def _node_and_profile(
    address: str, port: int, size: int, role: str, host: str, labels: tuple[tuple[str, str], ...], program: str,
    content: str, arguments: str, link_port: int, party: tuple[str, int] | None, serves: bool, slot: str, incarnation: int,
) -> tuple[Node, Profile]:  # fmt: skip
    known, party_of = (role, host or address, labels, program, content, arguments), Party(*party) if party else None
    profile = Profile(Endpoint(address, port), size, *known, link_port, party_of, serves or None)
    return Node(_unmarked(slot, address), incarnation), profile


_KNOWN = _Known()


def _node(wire: _Fault | _Unfit | _Stacks) -> Node:
    return Node(wire.slot, wire.incarnation)


def _pair(node: Node) -> tuple[str, int]:
    return (node.slot, node.incarnation)


def _life(life: Life) -> tuple[str, int]:
    return (life.nonce, life.epoch)


class _Arrival(_Profile, array_like=True):
    pass


class _Proposal(_Wire, array_like=True):
    """`arrive` or `done`, one of them. A fleet sends thousands at once, so the names of the fields are left out."""

    format: int
    life: tuple[Name, Epoch]
    stale_before: Count
    arrive: _Arrival | None
    done: Count | None
    enters: bool


class _Entrant(_Wire, array_like=True):
    format: ClassVar[int] = FORMAT  # the proposal tells its own
    node: tuple[Name, Count]
    proposal: msgspec.Raw


_entrant = msgspec.json.Decoder(_Entrant)
_proposal = msgspec.json.Decoder(_Proposal)


def encode_proposal(proposal: Proposal) -> bytes:
    era, edit = proposal.era, proposal.edit
    arrive = _Arrival(*_profile_to_wire(edit.profile)) if isinstance(edit, Arrive) else None
    done = edit.round if isinstance(edit, Done) else None
    return _encoder.encode(_Proposal(FORMAT, _life(era.life), era.version, arrive, done, proposal.enters))


def decode_proposal(data: bytes) -> Proposal:
    """Return the proposal in these bytes. Raise Refused, with the reason, if there is none."""
    return _read(data, PROPOSAL_BYTES_MAX, "proposal", _proposal, _proposal_of)


def _proposal_of(wire: _Proposal) -> Proposal:
    era = Token(Life(*wire.life), wire.stale_before)
    if wire.arrive is not None and wire.done is None:
        return Proposal(era, Arrive(_profile(wire.arrive)), wire.enters)
    if wire.done is not None and wire.arrive is None and not wire.enters:
        return Proposal(era, Done(wire.done))
    raise ValueError("it is to arrive, or to be done")


def encode_entrant(node: Node, proposal: Proposal) -> bytes:
    """Return the proposal of a node to enter, with its name: who reads it does not know yet who the entrants are."""
    return _encoder.encode(_Entrant(_pair(node), msgspec.Raw(encode_proposal(proposal))))


def decode_entrant(data: bytes) -> tuple[Node, Proposal]:
    """Return the node that proposes to enter, and its proposal. Raise Refused, with the reason, if there is none."""
    return _read(data, PROPOSAL_BYTES_MAX, "proposal to enter", _entrant, _entrant_of)


def _entrant_of(wire: _Entrant) -> tuple[Node, Proposal]:
    return Node(*wire.node), decode_proposal(bytes(wire.proposal))


class _Fault(_Wire):
    format: int
    slot: Name
    incarnation: Count
    round: Count
    rank: Count
    local_rank: Count
    pid: Count
    exit_code: int | None
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
    origin: Origin = Origin.END  # older agents do not write these two
    at_s: Annotated[float, Meta(ge=0, le=COUNT_MAX)] = 0.0


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
            fault.origin,
            fault.at_s,
        )
    )


def decode_fault(data: bytes) -> Fault:
    """Return the failure record in these bytes. Raise Refused, with the reason, if there is none."""
    return _read(data, FAULT_BYTES_MAX, "fault record", _fault, _fault_of)


def _fault_of(wire: _Fault) -> Fault:
    place = wire.round, wire.rank, wire.local_rank, wire.pid, wire.exit_code, wire.after_s, wire.world_size
    said = wire.host, wire.when, wire.message, wire.where, wire.log, wire.tail
    rest = wire.remark, wire.callstack, wire.error_file, wire.origin, wire.at_s
    return Fault(_node(wire), *place, *said, *rest)


class _Unfit(_Wire):
    format: int
    slot: Name
    incarnation: Count
    host: Text
    when: Text
    reason: Message


_unfit = msgspec.json.Decoder(_Unfit)


def encode_unfit(unfit: Unfit) -> bytes:
    return _encoder.encode(_Unfit(FORMAT, *unfit.node, unfit.host, unfit.when, unfit.reason))


def decode_unfit(data: bytes) -> Unfit:
    """Return the node that stays out in these bytes. Raise Refused, with the reason, if there is none."""
    return _read(data, FAULT_BYTES_MAX, "record of an unfit node", _unfit, _unfit_of)


def _unfit_of(wire: _Unfit) -> Unfit:
    return Unfit(_node(wire), wire.host, wire.when, wire.reason)


class _Stacks(_Wire):
    format: int
    slot: Name
    incarnation: Count
    round: Count
    places: Annotated[tuple[tuple[Count, Name], ...], Meta(max_length=SEEN_MAX)]


_stacks = msgspec.json.Decoder(_Stacks)


def encode_stacks(stacks: Stacks) -> bytes:
    return _encoder.encode(_Stacks(FORMAT, *stacks.node, stacks.round, stacks.places))


def decode_stacks(data: bytes) -> Stacks:
    """Return the stacks in these bytes. Raise Refused, with the reason, if there are none."""
    return _read(
        data, STACKS_BYTES_MAX, "record of stacks", _stacks, lambda wire: Stacks(_node(wire), wire.round, wire.places)
    )
