"""One simulated agent: what its threads hold, its clock, its workers, and its faults."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import define, field

from ..group import Group, Outcome
from ..group.state import Event
from ..rendezvous import Ask, Client, Held, RendezvousState, Token
from ..world import Node, World

GRID = 1e7
"""A second has so many points of time."""


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
    format: int = 0
    """It reads and writes this format of the register."""
    program: str = ""
    """Its workers run the program of this name; empty where no node says it."""
    operator: bool = False
    """This process is no node: an operator uses it to close the job."""
    alive: bool = True
    stopped_until: float = 0.0
    stopped_since: float | None = None
    """It has stood still since then, and has not noticed."""
    stood_since: float = 0.0
    stood_until: float = 0.0
    """Between these times the agent, its loop or its waiter stands still, so that it may be told late."""
    heart_until: float = 0.0
    """Its heart stands still until then."""
    loop_until: float = 0.0
    """Its loop stands still until then; this is 0 once the loop has gone on."""
    inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(factory=list)
    """Its loop hears this when it goes on."""
    waiter_until: float = 0.0
    """Its waiter stands still until then."""

    ask: Ask | None = None
    """Its client asks for this, until that is carried out."""
    request: int = 0
    requests: int = 0
    timer: int = 0
    second: int = 0
    asked_before: int = 0
    """It had asked so many questions when this second began."""
    unsure: set[int] = field(factory=set)
    """It does not know the outcome of the writes with these numbers."""
    accused: tuple[int, float, frozenset[Node]] | None = None
    """A write of its own evicts living nodes on evidence: the number of the write, when it was decided, and the nodes."""
    slandered: tuple[int, Node] | None = None
    """A write of its own evicts a node that is well: the number of the write, and the node."""
    read_after: int = 0
    """The last question that was answered with a state had this number."""
    answered_at: float = -math.inf
    """The store last answered then, in true time."""
    tried_at: float = -math.inf
    """It asked the last question that the store left unanswered then, in true time."""
    waits_for_push: bool = False
    """Its waiter waits, or is about to tell what it has seen."""
    watch: Token | None = None
    """The waiter's question names this."""
    watch_sent_at: float = 0.0
    """The waiter asked it then, by its clock."""

    counter: int = 0
    beat_timer: int = 0
    beating: bool = False
    beat_again: bool = False
    beaten_at: float = -math.inf
    """It sent the last heartbeat that was acknowledged then, by its clock."""
    elapse_at: float = math.inf
    elapsed_at: float = -math.inf
    """Its group's timer last passed then, in true time, and had so often before at that time:"""
    elapses: int = 0
    prepared_at: float = 0.0
    """Its standbys are ready then."""
    holds_back: bool = False
    """Its join asks for no seat in a job that runs before that."""

    workers: dict[int, int] = field(factory=dict)
    """This maps the local rank of each living worker to the start that the worker belongs to."""
    starts: int = 0
    ran: World | None = None
    codes: list[int] = field(factory=list)
    """The workers of this start exited with these codes."""
    outcome: Outcome | None = None
    worlds: int = 0
    evicted: bool = False
    slept_at: float | None = None
    """It woke from a sleep then, by its clock; this is None once it has looked."""
    stale: RendezvousState | None = None
    """It held this when it woke, and did not find it standing."""

    faulty: bool = False
    """A fault was done to it that may not be over: a mark of it may stand below, or a time above."""
    delay: float = 0.0
    cut_out_until: float = 0.0
    cut_in_until: float = 0.0
    lose_reply: bool = False
    late_write: float = 0.0
    late_reply: float = 0.0
    late_until: float = 0.0
    """A question of its is out until then: the answer is late, or lost."""
    twice: float = 0.0
    gap: bool = False
    refuses_until: float = 0.0
    """The network refuses connections to it until then."""
    refused_at: float = -math.inf
    """It last did so then."""
    mute_until: float = 0.0
    """No link of it carries anything until then."""
    port_taken: bool = False
    """It is dead, and its port is another program's."""
    unstartable: bool = False
    hung: bool = False
    idle: bool = False
    """Its node is a reserve of the world in which its workers run, so these have nothing to do."""
    unfit: bool = False
    check_hangs: bool = False
    check_breaks: bool = False

    @property
    def held(self) -> Held:
        """Return what it remembers of the register."""
        return self.client.held

    def clock(self, now: float) -> float:
        """Return what this process's clock shows at this true time."""
        return self.offset + self.rate * now

    def true(self, local: float) -> float:
        """Return the true time just after its clock shows this. Times lie on a grid, so that two processes whose events are
        due at one time have them at one time, whatever their clocks show."""
        return math.ceil((local - self.offset) / self.rate * GRID - 0.01) / GRID + 3e-9

    @property
    def stands_until(self) -> float:
        """Return until when it, or a thread of its, stands still or last stood still."""
        return max(self.stood_until, self.heart_until)

    def is_well(self, since: float) -> bool:
        """Return True if it lives, and no lasting fault was done to it since this time."""
        stopped = max(self.stands_until, self.cut_out_until, self.cut_in_until)
        return self.alive and stopped <= since and not (self.delay or self.delays or self.twice)

    @property
    def delays(self) -> int:
        """Return how many faults wait for its next question, each of which costs it that question."""
        return sum(map(bool, (self.late_write, self.late_reply, self.lose_reply, self.gap)))

    def heals(self) -> None:
        """End all its faults. A process that stands still wakes up when it would have."""
        self.cut_out_until = self.cut_in_until = self.refuses_until = self.mute_until = 0.0
        self.delay = self.late_write = self.late_reply = self.twice = 0.0
        self.lose_reply = self.gap = self.unstartable = self.hung = False
        self.unfit = self.check_hangs = self.check_breaks = False


Hears: TypeAlias = Callable[[Process, Event], None]
"""The agent of this process hears of an event."""
