"""What a node's workers are about: phases, and the values that move the group from one to the next.

The group knows nothing of stores and processes. It is told facts (events) and answers with what to do (commands); both are
frozen values, so that a log of them can be run again.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TypeAlias

from attrs import Attribute, field, frozen

from ..world import Ending, Node, Verdict, Why, World

SIGKILL = 9
SIGTERM = 15
KILL_S = 1.0
"""How long workers may take to die of SIGKILL."""


class Phase(Enum):
    """Where the group stands. In brackets torch's WorkerState."""

    JOINING = "joining"
    """No worker lives; the node is on its way into a world [INIT]."""
    HELD = "held"
    """In a world; workers start at the next fresh heartbeat [INIT]."""
    RUNNING = "running"
    """The workers run [HEALTHY]."""
    STOPPING = "stopping"
    """The workers are being stopped: signal, grace, SIGKILL, reaped [UNHEALTHY, STOPPED]."""
    BARRIER = "barrier"
    """All own workers succeeded; the others' have not yet [SUCCEEDED, pending]."""
    LEAVING = "leaving"
    """The node was told to go [STOPPED]."""
    ENDED = "ended"
    """Nothing lives and nothing is to be done."""


# --- events: what has happened, `at` which point of this node's clock -------------------------------------------------


@frozen
class Ready:
    """A world is complete and this node is a member."""

    world: World
    at: float


@frozen
class Over:
    """The round is over; by whom and why, as far as the register tells."""

    round: int
    why: Why | None
    by: Node | None
    at: float


@frozen
class Closed:
    """The job has its verdict."""

    verdict: Verdict
    at: float


@frozen
class Refused:
    """An operation of the rendezvous cannot be done."""

    why: Why
    text: str
    at: float


@frozen
class Gone:
    """The register knows that this node leaves."""

    at: float


@frozen
class Beaten:
    """A heartbeat sent at `sent_at` was acknowledged."""

    sent_at: float
    at: float


@frozen
class Exited:
    """A worker died at `died_at` and is reaped. `code` is subprocess's: negative for a signal."""

    local_rank: int
    code: int
    died_at: float
    at: float


@frozen
class Reaped:
    """No worker of this node lives any longer."""

    at: float


@frozen
class Unstartable:
    """The workers cannot be started. `passes`: for want of something that the host may have again; a restart can help."""

    text: str
    at: float
    passes: bool = False


@frozen
class Signalled:
    """The agent was sent a signal that it handles."""

    signum: int
    at: float


@frozen
class Elapsed:
    """The point in time that the group named (`until`) has passed."""

    at: float


Event: TypeAlias = Ready | Over | Closed | Refused | Gone | Beaten | Exited | Reaped | Unstartable | Signalled | Elapsed


# --- commands: what is to be done, in this order ----------------------------------------------------------------------


@frozen
class Join:
    """Rendezvous: into the next world."""


@frozen
class End:
    """Rendezvous: the round is over."""

    why: Why


@frozen
class MarkDone:
    """Rendezvous: this node's workers have succeeded."""


@frozen
class Leave:
    """Rendezvous: this node goes."""


@frozen
class Close:
    """Rendezvous: the job ends."""

    ending: Ending
    why: Why


@frozen
class Beat:
    """Send a heartbeat now: the start of the workers waits for its acknowledgement."""


@frozen
class Start:
    """Start the workers of this world."""

    world: World


@frozen
class StartAgain:
    """Start this worker once more, in the world in which the others of this node still run."""

    local_rank: int


@frozen
class Signal:
    """Send a signal to every worker that lives."""

    signum: int


@frozen
class Record:
    """Write down how this worker failed, before the others are told that the round is over."""

    local_rank: int
    code: int
    died_at: float


@frozen
class RecordUnstartable:
    """Write down why the workers' program cannot be executed."""

    text: str


Command: TypeAlias = (
    Join | End | MarkDone | Leave | Close | Beat | Start | StartAgain | Signal | Record | RecordUnstartable
)


# --- the state --------------------------------------------------------------------------------------------------------


def _span(instance: object, attribute: Attribute[float], value: float) -> None:
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{attribute.name}: a span of 0 or more seconds, not {value}")


@frozen
class Alone:
    """A worker that fails is started again by itself, and the round goes on: what it runs looks after its peers' loss."""

    restarts_max: int = field(default=0)
    """So often in a round, all workers of this node counted; after that a worker that fails is missing."""
    final: frozenset[int] = frozenset()
    """Exit codes after which a worker is not started again."""
    job_over: frozenset[int] = frozenset()
    """Exit codes by which a worker says that its peers have given up too: the round has failed."""

    @restarts_max.validator
    def _not_negative(self, attribute: Attribute[int], value: int) -> None:
        if value < 0:
            raise ValueError(f"restarts_max: 0 or more, not {value}")


@frozen
class Settings:
    """Spans in seconds, on this node's own clock."""

    grace: float = field(default=30.0, validator=_span)
    """From SIGTERM to SIGKILL when workers are stopped for a restart or at the end of the job."""
    shutdown_timeout: float = field(default=30.0, validator=_span)
    """The same, when the agent itself was told to stop."""
    leave_timeout: float = field(default=5.0, validator=_span)
    """How long a leaving node waits for the register to know."""
    ttl: float = field(default=5.0, validator=_span)
    """The silence after which the others hold this node for dead."""
    keep_alive_interval: float = field(default=1.0, validator=_span)
    """From one heartbeat to the next."""
    start_timeout: float = field(default=600.0, validator=_span)
    """How long the start of the workers waits for a fresh heartbeat."""
    fence: float | None = field(default=None)
    """The workers are killed when the last acknowledged heartbeat was sent so long ago; None: never."""
    alone: Alone | None = None
    """None: when a worker fails, all of its world are started again."""

    @fence.validator
    def _before_the_others_start(self, attribute: Attribute[float | None], value: float | None) -> None:
        """Not within a quarter of the TTL after a start, whose heartbeat may be that old; and not too late to be dead when
        the others start."""
        least, most = 2 * self.fresh, self.ttl - self.keep_alive_interval - KILL_S
        if value is not None and not least <= value <= most:
            spans = f"a TTL of {self.ttl:g} s and a heartbeat each {self.keep_alive_interval:g} s"
            raise ValueError(f"fence: {least:g} to {most:g} s with {spans}, not {value:g}")

    @property
    def fresh(self) -> float:
        """The age up to which an acknowledged heartbeat allows a start."""
        return self.ttl / 4


@frozen
class Stopped:
    """The agent was told to stop, by this signal."""

    signum: int


Outcome: TypeAlias = Verdict | Refused | Stopped
"""How the agent's part in the job ended."""


@frozen
class Group:
    """One node's workers."""

    node: Node
    settings: Settings = Settings()
    phase: Phase = Phase.JOINING
    world: World | None = None
    running: frozenset[int] = frozenset()
    """Local ranks whose worker is not reaped."""
    acked_at: float | None = None
    """When the last acknowledged heartbeat was sent; before the first, when the agent began."""
    heard_again_at: float | None = None
    """When a silence of this node that was longer than the fence was over, if it has not joined again since."""
    restarted: int = 0
    """How often workers of this world were started again by themselves."""
    succeeded: bool = False
    """A worker of this world has; told only where others are started again alone."""
    stopped_at: float | None = None
    """When we sent the workers of this world their first signal."""
    kill_at: float | None = None
    """When SIGKILL follows it."""
    held_at: float | None = None
    """When this node was told of the world that it waits to start in."""
    leave_by: float | None = None
    left: bool = False
    verdict: Verdict | None = None
    refused: Refused | None = None
    signum: int | None = None
    """The first signal that told the agent to stop."""

    @property
    def until(self) -> float | None:
        """The point in time at which the group wants to hear `Elapsed`."""
        match self.phase:
            case Phase.HELD:
                return self.start_by
            case Phase.RUNNING:
                return self.fence_at
            case Phase.STOPPING:
                return self.kill_by
            case Phase.LEAVING:
                timers = (self.kill_by, None if self.left else self.leave_by)
                return min((at for at in timers if at is not None), default=None)
            case _:
                return None

    @property
    def fence_at(self) -> float | None:
        fence = self.settings.fence
        return None if fence is None or self.acked_at is None else self.acked_at + fence

    @property
    def start_by(self) -> float | None:
        """When the wait for a fresh heartbeat is given up."""
        return None if self.held_at is None else self.held_at + self.settings.start_timeout

    @property
    def kill_by(self) -> float | None:
        """When the workers that are being stopped are killed: their grace is over, or nobody has heard of this node for as
        long as the fence says; None when they were told."""
        if self.kill_at is None or self.fence_at is None:
            return self.kill_at
        return min(self.kill_at, self.fence_at)

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, once it has: a success that was reached stands above a signal, and a signal above all else."""
        if self.phase is not Phase.ENDED:
            return None
        if self.signum is not None and not (self.verdict and self.verdict.ending is Ending.SUCCEEDED):
            return Stopped(self.signum)
        return self.verdict or self.refused
