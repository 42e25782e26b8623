"""What one agent was told and what it decided, step by step: the values of a trace. Their lines are those of `trace_lines`.

Written down is what went *into* the node's client and its group, and what the core decided; what the node remembers is not,
since the same functions derive it again from the same inputs (`replay`). A step is therefore one function of the core and
what it was given beside the node itself. A rank that calls a wrapped function is traced in the same way,
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
from ..rendezvous import Ask, Input, Pushed, RendezvousState, Settings, Shown
from ..rendezvous import step as client_step
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
class Asked:
    """What the client was fed, and what it asked for: nothing while its question was out."""

    fed: Input
    now: float
    ask: Ask | None


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


Step: TypeAlias = Asked | Stepped | CallStepped | Started


def step_at(step: Step) -> float:
    """The agent's clock when it took the step."""
    return step.now if isinstance(step, Asked) else step.at


def shown(step: Step) -> RendezvousState | None:
    """The register that the client was shown in this step."""
    match step:
        case Asked(Shown(state) | Pushed(state)):
            return state
        case _:
            return None


STEPS: Mapping[Callable[..., Any], Callable[..., Step]] = {
    client_step: Asked,
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
