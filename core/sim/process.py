"""One simulated agent: what its threads hold, its clock, its workers, and its faults."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from attrs import define, field

from ..group import Group, Outcome
from ..group.state import Event
from ..rendezvous import Ask, Client, Held, RendezvousState, Token
from ..world import Node, World

GRID = 1e7
"""Points per second."""


@define(eq=False)
class Process:
    """An agent's process. Its clock shows `offset + rate × true time`; each process has its own rate and offset.

    The rendezvous thread has one question under way (`request` is its number, 0 for none) or waits (`timer`). The heart has
    one beat under way or sleeps.
    """

    name: str
    node: Node
    client: Client
    group: Group
    offset: float
    rate: float
    born_at: float
    operator: bool = False
    """This process is no node: an operator uses it to close the job."""
    alive: bool = True
    stopped_until: float = 0.0
    stopped_since: float | None = None
    """Since when it stands still without having noticed."""

    ask: Ask | None = None
    """What its client asks for, until that is carried out."""
    request: int = 0
    requests: int = 0
    timer: int = 0
    second: int = 0
    asked_before: int = 0
    """How many questions it had asked when this second began."""
    unsure: set[int] = field(factory=set)
    """The numbers of the writes whose outcome it does not know."""
    slandered: tuple[int, Node] | None = None
    """The number of a write of its own that evicts a node that is well."""
    read_after: int = 0
    """The number of the last question that was answered with a state."""
    watch: Token | None = None
    """What the waiter's question names."""

    counter: int = 0
    beat_timer: int = 0
    beating: bool = False
    beat_again: bool = False
    elapse_at: float = math.inf

    workers: dict[int, int] = field(factory=dict)
    """The local rank of each living worker -> the start that the worker belongs to."""
    starts: int = 0
    ran: World | None = None
    codes: list[int] = field(factory=list)
    """The exit codes of the workers of this start."""
    outcome: Outcome | None = None
    worlds: int = 0
    evicted: bool = False
    slept_at: float | None = None
    """When, by its clock, it woke from a sleep; None once it has looked."""
    stale: RendezvousState | None = None
    """What it held when it woke and did not find standing."""

    delay: float = 0.0
    cut_out_until: float = 0.0
    cut_in_until: float = 0.0
    lose_reply: bool = False
    late_write: float = 0.0
    late_reply: float = 0.0
    gap: bool = False
    unstartable: bool = False
    hung: bool = False

    @property
    def held(self) -> Held:
        """What it remembers of the register."""
        return self.client.held

    def clock(self, now: float) -> float:
        """Return what this process's clock shows at this true time."""
        return self.offset + self.rate * now

    def true(self, local: float) -> float:
        """Return the true time just after its clock shows this. Times lie on a grid, so that two processes whose events are
        due at one time have them at one time, whatever their clocks show."""
        return math.ceil((local - self.offset) / self.rate * GRID - 0.01) / GRID + 3e-9

    def is_well(self, since: float) -> bool:
        """Return True if it lives, and no lasting fault was done to it since this time."""
        stopped = max(self.stopped_until, self.cut_out_until, self.cut_in_until)
        late = self.delay or self.late_write or self.late_reply or self.lose_reply or self.gap
        return self.alive and stopped <= since and not late

    def heals(self) -> None:
        """End all its faults. A process that stands still wakes up when it would have."""
        self.cut_out_until = self.cut_in_until = 0.0
        self.delay = self.late_write = self.late_reply = 0.0
        self.lose_reply = self.gap = self.unstartable = self.hung = False


Hears: TypeAlias = Callable[[Process, Event], None]
"""The agent of this process hears of an event."""
