"""One simulated agent: its clock, its threads and workers, what it remembers, and what faults have done to it.

Each part is a small value of its own. Which thread moves what is said there; that a process is dead, and which machines run
in it, is said here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

from attrs import define, field

from ..agent import Agent, Event
from ..group import Group
from ..group.state import Exiting, Raised
from ..rendezvous import Ask, Client, Held, RendezvousState, Token
from ..values import frozen
from ..world import Life, Node, World
from .kinds import Costs, Kind
from .story import name

GRID = 1e7
"""The points of time in a second."""


@frozen
class Clock:
    """It shows `offset + rate × true time`; each process has its own rate and offset."""

    offset: float
    rate: float

    def shows(self, now: float) -> float:
        """Return what this clock shows at this true time."""
        return self.offset + self.rate * now

    def true(self, local: float) -> float:
        """Return the true time just after this clock shows this. Times lie on a grid, so that two processes whose events are
        due at one time have them at one time, whatever their clocks show."""
        return math.ceil((local - self.offset) / self.rate * GRID - 0.01) / GRID + 3e-9


@frozen
class Launch:
    """How the process was started."""

    at: float
    format: int = 0
    """It reads and writes this format of the register."""
    program: str = ""
    """Its workers run the program of this name; empty where no node says it."""
    arguments: str = ""
    """Their arguments; empty where nobody compares them."""
    is_local: bool = False
    """Its address leads each host to itself."""
    able: bool = True
    """It can start workers, as far as it finds before it joins."""
    operator: bool = False
    """This process is no node: an operator uses it to close the job, or to drain a node."""
    names: Node | None = None
    """The node that the operator wants to drain."""


class Thread(Enum):
    """What can stand still by itself; the process stands still with all its threads."""

    PROCESS = "process"
    HEART = "heart"
    LOOP = "loop"
    WAITER = "waiter"

    __hash__ = object.__hash__


TELLERS = (Thread.PROCESS, Thread.LOOP, Thread.WAITER)
"""While one of these stands still, the agent may be told late."""


@define(eq=False)
class Stalls:
    """When the process, or one of its threads, stood still last. Nothing of this is ever taken back."""

    unnoticed_since: float | None = None
    """The process has stood still since then, and has not noticed."""
    late_since: float = 0.0
    """The last standstill of TELLERS began then."""
    over_at: float = 0.0
    """The last standstill of any thread ends then, or ended."""
    ends: dict[Thread, float] = field(factory=lambda: dict.fromkeys(Thread, 0.0))
    """The last standstill of each thread ends then, or ended."""

    def until(self, *threads: Thread) -> float:
        """Return when the last standstill of these threads ends, or ended."""
        return max(map(self.ends.__getitem__, threads))

    def stands(self, thread: Thread, now: float, until: float) -> None:
        """Let a thread stand still from now until then."""
        if thread in TELLERS and self.until(*TELLERS) < now:
            self.late_since = now
        if thread is Thread.PROCESS and self.unnoticed_since is None:
            self.unnoticed_since = now
        self.ends[thread] = max(self.ends[thread], until)
        self.over_at = max(self.over_at, until)


@define(eq=False)
class Loop:
    """The thread of the rendezvous. It has one question under way (`request` is its number, 0 for none) or waits."""

    ask: Ask | None = None
    """Its client asks for this, until that is carried out."""
    timer: int = 0
    stands_still: bool = False
    inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(factory=list)
    """It hears this when it stands still no longer."""
    request: int = 0
    requests: int = 0
    second: int = 0
    asked_before: int = 0
    """How many questions it had asked when this second began."""
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


@define(eq=False)
class Waiter:
    """The thread that waits for the register's next change."""

    waits: bool = False
    """It waits, or is about to tell what it has seen."""
    token: Token | None = None
    """Its question names this."""
    sent_at: float = 0.0
    """It asked then, by the process's clock."""
    deaf_until: float = 0.0
    """It has missed a change, and looks by itself then."""


@define(eq=False)
class Heart:
    """The thread of the heartbeats. It has one beat under way or sleeps."""

    counter: int = 0
    timer: int = 0
    beating: bool = False
    again: bool = False
    beaten_at: float = -math.inf
    """It sent the last heartbeat that was acknowledged then, by the process's clock."""


@define(eq=False)
class Main:
    """The agent's own thread, and what the agent has come to."""

    elapse_at: float = math.inf
    elapsed_at: float = -math.inf
    """Its group's timer last passed then, in true time, and how many times before at that time:"""
    elapses: int = 0
    prepared_at: float = 0.0
    """Its standbys are ready then."""
    worlds: int = 0
    evicted: bool = False


@define(eq=False)
class Attempt:
    """One start of the workers."""

    number: int = 0
    world: World | None = None
    idle: bool = False
    """Its node is a reserve of this world, so the workers have nothing to do."""
    workers: dict[int, int] = field(factory=dict)
    """This maps the local rank of each living worker to the start that the worker belongs to."""
    codes: list[int] = field(factory=list)
    """The workers exited with these codes."""
    reported: dict[int, float] = field(factory=dict)
    """These workers raised, or began to end, then by the process's clock."""
    unheard: dict[int, Raised | Exiting] = field(factory=dict)
    """What they reported, as far as the agent has not heard it."""
    began: dict[int, float] = field(factory=dict)
    """Those of them that began to end."""
    echoed: set[int] = field(factory=set)
    """These workers failed by an echo."""
    missed: set[int] = field(factory=set)
    """These workers, by local rank, have failed before they entered a wrapped call, and live no more."""


@define(eq=False)
class Memory:
    """What the node must not forget, beside the register."""

    records: list[tuple[str, object]] = field(factory=list)
    """The failures that it has told its client to put on record, each with the job; none from before a sleep."""
    refused: dict[object, Life | None] = field(factory=dict)
    """Those that the store did not take, with the life that stood when that was tried last."""
    slept_at: float | None = None
    """It woke from a sleep then, by its clock; this is None once it has looked."""
    stale: RendezvousState | None = None
    """It held this when it woke, and did not find it standing."""


@define(eq=False)
class Trouble:
    """What faults have done to the node and its network."""

    lasts: bool = False
    """A fault may not be over: a mark of it may stand, or a time of its end lie ahead."""
    marks: dict[Kind, float] = field(factory=dict)
    """The faults that stand until they come or are taken away, with their spans; 1 for those that take none."""
    cut_out_until: float = 0.0
    cut_in_until: float = 0.0
    late_until: float = 0.0
    """A question of its is out until then: the answer is late, or lost."""
    refuses_until: float = 0.0
    """The network refuses connections to it until then."""
    refused_at: float = -math.inf
    """It last did so then."""
    mute_until: float = 0.0
    """No link of it carries anything until then."""
    port_taken: bool = False
    """It is dead, and its port is another program's."""

    @property
    def cut_until(self) -> float:
        """Until when it cannot reach the store, or not be reached."""
        return max(self.cut_out_until, self.cut_in_until)

    @property
    def delay(self) -> float:
        """How much longer each of its messages takes."""
        return self.marks.get(Kind.SLOW, 0.0)

    @property
    def delays(self) -> int:
        """Return how many faults wait for its next question. Each of them costs it that question."""
        return sum(kind.row.costs is Costs.A_QUESTION for kind in self.marks)

    def stands(self, kind: Kind, span: float) -> None:
        """Let a mark stand, in the place of an earlier one of its kind; a span of 0 takes that away."""
        self.marks[kind] = span
        if not span:
            del self.marks[kind]

    def takes(self, kind: Kind) -> float:
        """Take a mark away, because it comes now; return its span, or 0 if it does not stand."""
        return self.marks.pop(kind, 0.0) if self.marks else 0.0

    def heals(self) -> None:
        """End all faults. A process that stands still wakes up when it would have."""
        self.cut_out_until = self.cut_in_until = self.refuses_until = self.mute_until = 0.0
        self.marks.clear()


@define(eq=False)
class Process:
    """An agent's process: the machines that run in it, and its parts."""

    node: Node
    client: Client
    agent: Agent
    clock: Clock
    launch: Launch
    alive: bool = True
    main: Main = field(factory=Main)
    loop: Loop = field(factory=Loop)
    waiter: Waiter = field(factory=Waiter)
    heart: Heart = field(factory=Heart)
    attempt: Attempt = field(factory=Attempt)
    memory: Memory = field(factory=Memory)
    trouble: Trouble = field(factory=Trouble)
    stalls: Stalls = field(factory=Stalls)

    @property
    def name(self) -> str:
        return name(self.node)

    @property
    def group(self) -> Group:
        """Return its worker group."""
        return self.agent.group

    @property
    def held(self) -> Held:
        """Return what it remembers of the register."""
        return self.client.held

    @property
    def workers(self) -> dict[int, int]:
        """Return its living workers."""
        return self.attempt.workers

    @property
    def hung(self) -> bool:
        """Return True if its workers neither succeed nor heed SIGTERM."""
        return Kind.HANG in self.trouble.marks

    def is_well(self, since: float) -> bool:
        """Return True if it lives, and no lasting fault was done to it since this time."""
        trouble = self.trouble
        stopped = max(self.stalls.over_at, trouble.cut_until)
        return (
            self.alive and stopped <= since and not (trouble.delays or trouble.marks.keys() & {Kind.SLOW, Kind.TWICE})
        )


Hears: TypeAlias = Callable[[Process, Event], None]
"""The agent of this process hears of an event."""
