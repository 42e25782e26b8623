"""What one agent was told and what it decided, step by step: the values of a trace, and the lines that hold them.

A trace is NDJSON: a header, then a line per step, in the order in which they were taken. Written down is what went *into*
the node's memory, its agenda and its group, and what the core decided; what the node remembers is not, since the same
functions derive it again from the same inputs (`replay`). A step is therefore one function of the core and what it was given
beside the node itself. A rank that calls a wrapped function is traced in the same way, with its call for a group.

Lines are bounded and checked. A state that is the last one written is referred to by its version. A line that was cut off
by the end of its agent is no error: it has no end, or the next agent that writes to the file has marked it (`CUT`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from attrs import frozen

from .. import group, inprocess
from ..group.state import Command, Event, Start
from ..group.transition import transition
from ..inprocess.transition import transition as call_transition
from ..rendezvous import (
    Ask,
    RendezvousState,
    Settings,
    Token,
    Wish,
    gathered,
    heard,
    proposed,
    saw,
    silent,
    turn,
    unanswered,
    unreadable,
    woke,
)
from ..rendezvous.agenda import Errand, Request, begun, submitted
from ..rendezvous.codec import BYTES_MAX, encode
from ..rendezvous.context import Handler
from ..world import Life, Node, Profile
from .plain import made, plain

NAME = "elastic trace"
FORMAT = 4
LINE_MAX = 2 * BYTES_MAX
"""A longer line is refused unread."""
CUT = b" ... cut off\n"
"""What ends a line that its writer did not end."""
SAME = "same"
"""The key of a reference: the version of the last state written."""


@frozen
class Working:
    """A node with a group of workers."""

    settings: group.Settings


@frozen
class Calling:
    """A rank that calls a wrapped function. `token` is that of the last span of its process."""

    settings: inprocess.Settings
    token: int


@frozen
class Header:
    """Who writes, what it was given, and both clocks at the start: what is decided by, and what people call the time. Points
    in time of one boot can be compared."""

    name: str
    format: int
    node: Node
    host: str
    boot: str
    wall: float
    now: float
    profile: Profile
    nonce: Life
    rendezvous: Settings
    machine: Working | Calling


@frozen
class Submitted:
    """The agent wished for something."""

    wish: Request | Errand


@frozen
class Begun:
    """What was due began; an operation if it is one."""

    now: float
    jitter: float
    handler: Handler | None


@frozen
class Saw:
    """The register's answer (nothing: there is none), and whether it was written in the store that answered."""

    state: RendezvousState | None
    sent_at: float
    now: float
    here: bool


@frozen
class Heard:
    """Heartbeats as they were read, and the life that stood beside them."""

    counters: Mapping[Node, int | None]
    sent_at: float
    now: float
    life: Life | None


@frozen
class Proposed:
    """A wish of its own was put down, as one of so many of its kind."""

    wish: Wish
    count: int
    now: float


@frozen
class Gathered:
    """What others wish, as it was read to write for them."""

    wishes: Mapping[Node, Wish]
    now: float


@frozen
class Woke:
    """The agent had stood still."""

    now: float


@frozen
class Unanswered:
    """A write whose outcome is not known."""

    based_on: Token | None
    now: float


@frozen
class Silent:
    """A question without an answer."""

    now: float


@frozen
class Unreadable:
    """An answer that is no state."""

    text: str


@frozen
class Turned:
    """What the rendezvous decided to ask for."""

    now: float
    ask: Ask


@frozen
class Stepped:
    """What the group decided to do; without an event, at the start."""

    event: Event | None
    commands: tuple[Command, ...]
    at: float


@frozen
class CallStepped:
    """What the call decided to do; without an event, at the start."""

    event: inprocess.Event | None
    commands: tuple[inprocess.Command, ...]
    at: float


@frozen
class Started:
    """Workers of this round were started, by these process ids."""

    round: int
    pids: tuple[int, ...]
    at: float


Step: TypeAlias = (
    Submitted
    | Begun
    | Saw
    | Heard
    | Proposed
    | Gathered
    | Woke
    | Unanswered
    | Silent
    | Unreadable
    | Turned
    | Stepped
    | CallStepped
    | Started
)


def step_at(step: Step) -> float | None:
    """The agent's clock when it took the step; what is only remembered does not tell."""
    match step:
        case Submitted() | Unreadable():
            return None
        case Stepped(at=at) | CallStepped(at=at) | Started(at=at):
            return at
        case timed:
            return timed.now


STEPS: Mapping[Callable[..., Any], Callable[..., Step]] = {
    submitted: Submitted,
    begun: Begun,
    saw: Saw,
    heard: Heard,
    proposed: Proposed,
    gathered: Gathered,
    woke: Woke,
    unanswered: Unanswered,
    silent: Silent,
    unreadable: Unreadable,
    turn: Turned,
    transition: Stepped,
    call_transition: CallStepped,
    Start: Started,
}
"""Which step it is to have given this to that function of the core (or to have carried out that command)."""


@frozen
class Trace:
    """One agent's part in a job. `lines` are the numbers of the steps' lines; `cut` if the last line is not whole."""

    header: Header
    steps: tuple[Step, ...]
    lines: tuple[int, ...]
    cut: bool = False


class Corrupt(ValueError):
    """A line that no agent of this version has written."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")


# --- out


def encoded(step: Header | Step, last: RendezvousState | None) -> tuple[bytes, RendezvousState | None]:
    """The line of a step, and the state that a later one may refer to; `last` is the one that an earlier line wrote."""
    data = plain(step, Header | Step)
    for place, key in registers(data):
        state = place[key]
        place[key] = {SAME: state.version} if state == last else msgspec.Raw(encode(state))
        last = state
    return msgspec.json.encode(data) + b"\n", last


def registers(data: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where in a line (or in an ask) a register stands, in the order in which they are referred to: in what is restored, and
    in what was shown or is written."""
    ask = data.get("ask")
    place = ask if isinstance(ask, dict) else data
    edit = place.get("edit")
    places = ((edit, "held"), (place, "state"))
    return ((each, key) for each, key in places if isinstance(each, dict) and each.get(key) is not None)


# --- in


def traces(lines: Iterable[bytes]) -> Iterator[Trace]:
    """The traces of one file, one after the other. Raises Corrupt."""
    header: Header | None = None
    steps: list[tuple[int, Step]] = []
    last: RendezvousState | None = None
    cut = False
    for number, line in enumerate(lines, 1):
        if len(line) <= LINE_MAX and (not line.endswith(b"\n") or line.endswith(CUT)):
            cut = True
            continue
        entry, last = _checked(number, line, last)
        if isinstance(entry, Header):
            if header:
                yield _trace(header, steps, cut)
            header, steps, last, cut = entry, [], None, False
        elif header:
            steps.append((number, entry))
        else:
            raise Corrupt(number, "a step before any header")
    if header is None:
        raise Corrupt(1, "no header: it is empty, or no trace")
    yield _trace(header, steps, cut)


def _trace(header: Header, steps: Sequence[tuple[int, Step]], cut: bool) -> Trace:
    return Trace(header, tuple(step for _, step in steps), tuple(number for number, _ in steps), cut)


def _checked(number: int, line: bytes, last: RendezvousState | None) -> tuple[Header | Step, RendezvousState | None]:
    try:
        return decoded(line, last)
    except (ValueError, RecursionError) as reason:
        raise Corrupt(number, str(reason)) from None


def decoded(line: bytes, last: RendezvousState | None) -> tuple[Header | Step, RendezvousState | None]:
    """What a line tells, and the state that a later one may refer to. Raises ValueError."""
    if len(line) > LINE_MAX:
        raise ValueError(f"more than the {LINE_MAX} bytes that a line may have")
    data = msgspec.json.decode(line, type=dict[str, Any])
    if (found := data.get("format", FORMAT)) != FORMAT or data.get("name", NAME) != NAME:
        raise ValueError(
            f"{data.get('name', NAME)!r} of format {found!r}; this version reads {NAME!r} of format {FORMAT}"
        )
    for place, key in registers(data):
        last = place[key] = _state(place[key], last)
    return made(data, Header | Step), last


def _state(data: Any, last: RendezvousState | None) -> RendezvousState:
    if not (isinstance(data, dict) and data.keys() == {SAME}):
        state: RendezvousState = made(data, RendezvousState)
        return state
    if last is None or data[SAME] != last.version:
        raise ValueError(f"refers to version {data[SAME]!r}, which is not the last one written")
    return last
