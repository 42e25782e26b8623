"""What one agent was told and what it decided, step by step: the values of a trace. Their lines are those of `trace_lines`.

Written down is what went *into* the node's memory, its agenda and its group, and what the core decided; what the node
remembers is not, since the same functions derive it again from the same inputs (`replay`). A step is therefore one function
of the core and what it was given beside the node itself. A rank that calls a wrapped function is traced in the same way,
with its call for a group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from .. import group, inprocess
from ..group.state import Command, Event, Start
from ..group.transition import transition
from ..inprocess.transition import transition as call_transition
from ..rendezvous import (
    Ask,
    Proposal,
    RendezvousState,
    Settings,
    Token,
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
from ..rendezvous.context import Handler
from ..world import Life, Node, Profile


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
    """The agent submitted something."""

    item: Request | Errand


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
    """A proposal of its own was put down, as one of so many of its kind."""

    proposal: Proposal
    count: int
    now: float


@frozen
class Gathered:
    """What others propose, as it was read to write for them."""

    proposals: Mapping[Node, Proposal]
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
