"""The values of a trace: what one agent was told, and what the core decided, step by step. `lines` writes and reads them.

A trace holds what went *into* the node's client and its group, and what the core decided. It does not hold the node's
memory: the same functions derive that again from the same inputs. So a step is one function of the core with its arguments
beside the node itself. A rank that calls a wrapped function is traced in the same way, with its call in place of the group.
Three steps decide nothing: that workers were started (`Started`), what one of them came to (`Worked`), and that the hang
watch has ended it (`HangEnd`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .. import group, inprocess
from ..group.state import Command, Event, Start
from ..group.transition import transition
from ..inprocess.transition import transition as call_transition
from ..rendezvous import (
    Ask,
    Input,
    Pushed,
    RendezvousState,
    Settings,
    Shown,
)
from ..rendezvous import step as client_step
from ..values import frozen
from ..work import Worked as Worked
from ..work import told as worked
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
    """The writer of a trace, its settings, and both of its clocks at the start: the one that decides, and the one that
    people read. Times of one boot can be compared."""

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
    run_id: str = ""
    """The name that its job's user gave the job; empty where nobody told it, as of ranks."""


@frozen
class Asked:
    """An input of the client, and what it asked for; None while its question was out."""

    fed: Input
    now: float
    ask: Ask | None


@frozen
class Stepped:
    """A decision of the group; without an event at the start."""

    event: Event | None
    commands: tuple[Command, ...]
    at: float


@frozen
class CallStepped:
    """A decision of the call; without an event at the start."""

    event: inprocess.Event | None
    commands: tuple[inprocess.Command, ...]
    at: float


@frozen
class Started:
    """Workers of this round were started, by these process ids."""

    round: int
    pids: tuple[int, ...]
    at: float


@frozen
class HangEnd:
    """The worker of this rank was ended by the hang watch."""

    round: int
    rank: int
    at: float


Step: TypeAlias = Asked | Stepped | CallStepped | Started | Worked | HangEnd


def step_at(step: Step) -> float:
    """Return the agent's clock when it took the step."""
    return step.now if isinstance(step, Asked) else step.at


def shown(step: Step) -> RendezvousState | None:
    """Return the register that the client was shown in this step."""
    match step:
        case Asked(Shown(state) | Pushed(state)):
            return state
        case _:
            return None


def _itself(work: Worked) -> Worked:
    return work


STEPS: Mapping[Callable[..., Any], Callable[..., Step]] = {
    client_step: Asked,
    transition: Stepped,
    call_transition: CallStepped,
    Start: Started,
    worked: _itself,
    HangEnd: HangEnd,
}
"""The function of the core (or the command that was carried out) -> the step that records it."""


@frozen
class Trace:
    """One agent's part in a job. `lines` are the numbers of the steps' lines; `cut` if the last line is not whole."""

    header: Header
    steps: tuple[Step, ...]
    lines: tuple[int, ...]
    cut: bool = False
