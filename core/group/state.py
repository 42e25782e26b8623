"""The values of a node's worker group: its phases, events, commands and settings, and the group itself.

The group knows nothing of stores and processes. It takes facts (events) and returns what the agent must do (commands). Both
are frozen values, so a log of them can be replayed.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from ..spans import span_or_never, span_or_zero
from ..values import field, frozen
from ..world import Ending, Generation, Node, Notice, Origin, Verdict, Why, World

if TYPE_CHECKING:
    from attrs import Attribute

SIGKILL = 9
SIGTERM = 15
HEARD_S = 30.0
"""How long a node whose worker has heard that another one ended the job waits for the word of that one's node."""
KILL_S = 1.0
"""How long workers may take to die of SIGKILL."""
SPARED_S = 2.0
"""How long a worker that raised, or began to end by itself, has before it is asked to end: it prints, flushes, uploads."""
ECHO_S = 0.5
"""How long the end of a round waits for its cause, where only echoes of a peer's failure are known."""

LATE_S = 1.0
"""How long after a peer's echo the kernel may report the death that the peer has heard."""


class Phase(Enum):
    """The phase of the group. Torch's WorkerState is in brackets."""

    CHECKING = "checking"
    """No worker lives, and the node's check decides whether the node joins [INIT]."""
    JOINING = "joining"
    """No worker lives, and the node is on its way into a world [INIT]."""
    HELD = "held"
    """The node is in a world. The workers start at the next fresh heartbeat [INIT]."""
    RUNNING = "running"
    """The workers run [HEALTHY]."""
    MOVING = "moving"
    """The round is over, and the workers run on. The node is on its way into the next world [HEALTHY]."""
    STOPPING = "stopping"
    """The agent stops the workers: a signal, the grace, SIGKILL, reaped [UNHEALTHY, STOPPED]."""
    BARRIER = "barrier"
    """This node's workers have succeeded, or heard of the job's end; those of others have not yet [SUCCEEDED, pending]."""
    LEAVING = "leaving"
    """The node was told to go, or is drained [STOPPED]."""
    ENDED = "ended"
    """No worker lives, and nothing is left to do."""

    __hash__ = object.__hash__  # as for the register's Status


# --- events: facts, each with the time `at` which it happened on this node's clock ------------------------------------


@frozen
class Ready:
    """A world is complete, and this node is a member."""

    world: World
    at: float


@frozen
class Over:
    """The round is over. The register may tell why, and by whose write."""

    round: int
    why: Why | None
    by: Node | None
    at: float
    generation: Generation | None = None
    """The generation of the register now; None: it shows none, or this node has no seat any
    longer, or waits beside the world that stands."""


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
    """The register shows that this node has left."""

    at: float


@frozen
class Beaten:
    """A heartbeat sent at `sent_at` was acknowledged."""

    sent_at: float
    at: float


@frozen
class Exited:
    """A worker died at `died_at` and is reaped. `code` is that of subprocess: negative for a signal."""

    local_rank: int
    code: int
    died_at: float
    at: float
    is_echo: bool | None = None
    """True: its record reads like an echo of a peer's failure. A trace leaves out None."""
    began_at: float | None = None
    """When the worker reported that its interpreter began to end; None: it did not."""
    entered: bool | None = None
    """False: no process of this rank has entered a wrapped call since all workers started, so no other rank knows that it is
    missing. A trace leaves out None: nobody asks."""


@frozen
class Raised:
    """A worker reported at `raised_at` that an exception is not caught. It has not ended yet."""

    local_rank: int
    raised_at: float
    at: float
    is_echo: bool | None = None
    """True: the exception reads like an echo of a peer's failure. A trace leaves out None."""


@frozen
class Exiting:
    """A worker reported at `began_at` that its interpreter began to end. How it ends is not known yet."""

    local_rank: int
    began_at: float
    at: float


@frozen
class Reaped:
    """The last worker of this node is reaped."""

    at: float


@frozen
class Unstartable:
    """The workers cannot be started, or could not be, if the node has not joined. `passes`: the host lacks something that it
    may have again; a restart can help."""

    text: str
    at: float
    passes: bool = False


@frozen
class Signalled:
    """The agent received a signal that it handles."""

    signum: int
    at: float


@frozen
class Noticed:
    """This node was given notice. `known`: its client has told so; else the node heard of it on its host first."""

    notice: Notice
    at: float
    known: bool = False
    unfit: bool | None = None
    """True: the node is found unfit, as the notice's source says, so its agent ends as one that is to be replaced. A trace
    leaves out None."""


@frozen
class ReadyToLeave:
    """A worker said that its node need not wait for it any longer."""

    local_rank: int
    at: float


@frozen
class Elapsed:
    """The point in time that the group named (`until`) has passed."""

    at: float


@frozen
class Checked:
    """The check of this node is over. `text` is the reason of a node that is not fit, else a warning or empty."""

    is_fit: bool
    text: str
    at: float


Event: TypeAlias = (
    Ready
    | Over
    | Closed
    | Refused
    | Gone
    | Beaten
    | Exited
    | Raised
    | Exiting
    | Reaped
    | Unstartable
    | Signalled
    | Noticed
    | ReadyToLeave
    | Elapsed
    | Checked
)


# --- commands: what the agent must do, in their order -----------------------------------------------------------------


@frozen
class Join:
    """Rendezvous: join the next world. `alive` is the generation of the workers that run on: they belong to no other."""

    alive: Generation | None = None


@frozen
class End:
    """Rendezvous: end the round."""

    why: Why
    is_open: bool | None = None
    """True: which failure came first is open, so none counts against this node. A trace leaves out None."""


@frozen
class MarkDone:
    """Rendezvous: mark this node done, because its workers have succeeded."""


@frozen
class Leave:
    """Rendezvous: leave."""


@frozen
class Drain:
    """Rendezvous: let the others know that this node, its own, has notice."""

    node: Node
    notice: Notice


@frozen
class Close:
    """Rendezvous: close the job."""

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
class Move:
    """The workers that run, if any do, are those of this world from now on."""

    world: World


@frozen
class StartAgain:
    """Start this worker again, in the same world. The other workers of this node run on."""

    local_rank: int


@frozen
class Signal:
    """Send a signal to every worker that lives, but for those with these local ranks."""

    signum: int
    spared: frozenset[int] | None = None
    """None: no worker is spared, which a trace leaves out."""
    children: bool | None = None
    """True: the signal is for the processes that the workers started, not for the workers. A trace leaves out None."""


@frozen
class Tell:
    """Tell the workers that this node leaves: it stops them at `goes_at`, if they are not ready before, and is gone by
    `gone_by`."""

    notice: Notice
    goes_at: float
    gone_by: float


@frozen
class Record:
    """Write the failure record of this worker, before the other nodes hear that the round is over.

    `code` is None where the worker has raised and has not ended: a second record completes this one. `died_at` is when it
    raised, began to end or died, as `origin` tells."""

    local_rank: int
    code: int | None
    died_at: float
    origin: Origin | None = None
    """None: its end alone is known, which a trace leaves out."""


@frozen
class RecordUnstartable:
    """Write the failure record of workers that cannot be started for now."""

    text: str


@frozen
class Check:
    """Run the check of this node."""


@frozen
class RecordUnfit:
    """Write down that this node stays out of the job, and why."""

    text: str


Command: TypeAlias = (
    Join
    | End
    | MarkDone
    | Leave
    | Drain
    | Close
    | Beat
    | Start
    | Move
    | StartAgain
    | Signal
    | Tell
    | Record
    | RecordUnstartable
    | Check
    | RecordUnfit
)


# --- the state --------------------------------------------------------------------------------------------------------


@frozen
class Alone:
    """Restart of single workers: a failed worker starts again by itself, while the round goes on."""

    restarts_max: int = field(default=0)
    """Restarts in one round, over all workers of this node. A worker that fails after that stays missing, or ends the round
    if it has never entered a wrapped call."""
    final: frozenset[int] = frozenset()
    """Exit codes after which a worker stays missing."""
    job_over: frozenset[int] = frozenset()
    """Exit codes by which a worker says that it has ended the job for all. The round has failed then."""
    heard: frozenset[int] = frozenset()
    """Exit codes by which a worker says that another one, perhaps elsewhere, has ended the job. Its node waits for that."""
    cancelled: frozenset[int] = frozenset()
    """Exit codes by which a worker says that the job was cancelled, by itself or another one. No round follows."""

    @restarts_max.validator
    def _not_negative(self, attribute: Attribute[int], value: int) -> None:
        if value < 0:
            raise ValueError(f"restarts_max: 0 or more, not {value}")


@frozen
class Settings:
    """The spans of the group, in seconds on this node's own clock."""

    grace: float = field(default=30.0, validator=span_or_zero)
    """From SIGTERM to SIGKILL, for a restart or at the end of the job."""
    shutdown_timeout: float = field(default=30.0, validator=span_or_zero)
    """From the signal to SIGKILL, when the agent itself received a signal."""
    leave_timeout: float = field(default=5.0, validator=span_or_zero)
    """How long a leaving node waits until the register shows it."""
    ttl: float = field(default=5.0, validator=span_or_zero)
    """The silence after which the other nodes hold this node for dead."""
    keep_alive_interval: float = field(default=1.0, validator=span_or_zero)
    """From one heartbeat to the next."""
    start_timeout: float = field(default=600.0, validator=span_or_zero)
    """How long the start of the workers waits for a fresh heartbeat."""
    barrier_timeout: float = field(default=math.inf, validator=span_or_never)
    """How long this node, whose workers have succeeded, waits for the others' to end."""
    fence: float | None = field(default=None)
    """The age of the last acknowledged heartbeat at which the workers are killed; None: never."""
    alone: Alone | None = None
    """None: after a failure, all workers of the world start again."""
    checks: bool | None = None
    """True: a check of this node decides whether it joins. It runs before the node joins first, and again after each round
    that the failure of a worker of this node has ended. Else None, which a trace leaves out."""

    @fence.validator
    def _before_the_others_start(self, attribute: Attribute[float | None], value: float | None) -> None:
        """Refuse a fence that could fall right after a start, or too late.

        The heartbeat that allowed the start may be a quarter of a TTL old. And the workers must be dead before the other
        nodes start theirs.
        """
        least, most = 2 * self.fresh, self.ttl - self.keep_alive_interval - KILL_S
        if value is not None and not least <= value <= most:
            spans = f"a TTL of {self.ttl:g} s and a heartbeat each {self.keep_alive_interval:g} s"
            raise ValueError(f"fence: {least:g} to {most:g} s with {spans}, not {value:g}")

    @property
    def fresh(self) -> float:
        """The largest age of an acknowledged heartbeat that allows a start."""
        return self.ttl / 4


@frozen
class Stopped:
    """This signal told the agent to stop."""

    signum: int


@frozen
class Unawaited:
    """The agent's workers have succeeded, and it did not wait for the others' end: its exit barrier timed out."""


@frozen
class Drained:
    """The agent left because its node was drained."""

    source: str


Outcome: TypeAlias = Verdict | Refused | Stopped | Unawaited | Drained
"""How the agent's part in the job ended."""


class Cause(Enum):
    """The place where the first failure of a round was."""

    ELSEWHERE = "elsewhere"
    """Not on this node, or nothing has failed."""
    UNKNOWN = "unknown"
    """A worker of this node failed, and the register has not told yet whose write ended the round."""
    OPEN = "open"
    """This node has ended the round, and knows only failures that say a peer is gone."""
    HERE = "here"


@frozen
class Failures:
    """The failures of this world's workers."""

    raised: frozenset[int] = frozenset()
    """Local ranks of the workers that reported an exception."""
    ending: frozenset[int] = frozenset()
    """Local ranks of the workers whose interpreters began to end."""
    echo_at: float | None = None
    """When the first failure was that ended this world: an echo, and the end of the round waits for its cause."""
    cause: Cause = Cause.ELSEWHERE
    """The place of the failure that ended this world. Kept only if `checks` is set, but for OPEN."""
    on_the_way: bool = False
    """A worker has failed on the way into the next world, and that world has to end for it."""


@frozen
class Course:
    """The course of this world's workers, apart from their failures."""

    restarted: int = 0
    """How many single workers were restarted."""
    succeeded: bool = False
    """One has succeeded. Kept only if `alone` is set."""
    ready: frozenset[int] = frozenset()
    """Local ranks of those that said they are ready to leave. One that starts again is not ready."""
    heard_at: float | None = None
    """When one ended because another one, perhaps elsewhere, had ended the job; or when this world began, if later."""
    done_at: float | None = None
    """When all had succeeded, while the other nodes' workers have not."""


@frozen
class Heart:
    """The heartbeats of this node that were acknowledged."""

    acked_at: float | None = None
    """When the last of them was sent. Before the first one: when the agent began."""
    heard_again_at: float | None = None
    """When a silence of this node ended that was longer than the fence; None once the node has joined again."""


@frozen
class Wait:
    """The wait of a node that is HELD for a fresh heartbeat, at which its workers start."""

    since: float
    """When this node heard of its world."""
    until: float
    """When a last try is due; in the last try, when the node gives up."""
    is_last_try: bool = False


@frozen
class Stop:
    """The signals that end the workers. In RUNNING and MOVING they are for those that raised."""

    at: float | None = None
    """When the stop of this world's workers began: those that are not spared were sent a signal then. None: it has not."""
    kill_at: float | None = None
    """When SIGKILL follows for those that still run; None: none is due, or it was sent."""
    ask_at: float | None = None
    """When the workers that were spared the first signal get one, if all others are gone by then; None: none was spared."""
    spares_children: bool = False
    """The workers alone were sent that signal. The processes that they started get one KILL_S before SIGKILL."""


@frozen
class Deadline:
    """The point in time at which a node with notice must be gone, by the notice that leaves it the least time."""

    notice: Notice
    gone_by: float
    unfit: str = ""
    """Why the node is unfit, if it leaves for that."""


class LeaveReason(Enum):
    """The reason why a node leaves."""

    SIGNAL = "signal"
    """A signal told the agent to stop."""
    DRAINED = "drained"
    """It has notice."""
    UNAWAITED = "unawaited"
    """Its exit barrier timed out."""
    UNFIT = "unfit"
    """Its check says so, or its workers cannot be started."""


@frozen
class Departure:
    """The way of a node out of the job: it ends when the register shows it, and no worker lives."""

    reason: LeaveReason
    until: float | None
    """When the node no longer waits for the register; None: the register is to say if it leaves."""
    is_shown: bool = False
    """The register shows it, or is no longer waited for."""
    signum: int | None = None
    """The first signal that told the agent to stop."""


@frozen
class Group:
    """The worker group of one node."""

    node: Node
    settings: Settings = Settings()
    phase: Phase = Phase.JOINING
    world: World | None = None
    running: frozenset[int] = frozenset()
    """Local ranks of the workers that are not reaped."""
    heart: Heart = Heart()
    course: Course = Course()
    failures: Failures = Failures()
    stop: Stop = Stop()
    wait: Wait | None = None
    """The last wait for a fresh heartbeat; None before the first one."""
    joins: bool = False
    """The workers ran on as this node asked for the next world, and no answer has come."""
    deadline: Deadline | None = None
    """When the node must be gone, by its notice; None: it has none. Once it leaves for that, it `is_drained`."""
    departure: Departure | None = None
    """The node leaves, or has left."""
    verdict: Verdict | None = None
    refused: Refused | None = None

    @property
    def until(self) -> float | None:
        """The time at which the group must get `Elapsed`; None: no timer runs."""
        match self.phase:
            case Phase.HELD:
                return self.wait.until if self.wait else None
            case Phase.RUNNING:
                return _soonest(_soonest(self.fence_at, self.goes_at), _soonest(self.heard_by, self.alone_by))
            case Phase.MOVING:
                return _soonest(self.fence_at, self.alone_by) if self.running else None
            case Phase.STOPPING:
                return _soonest(self._next_signal, self.decide_by)
            case Phase.BARRIER:
                return _soonest(_soonest(self.barrier_by, self.goes_at), self.heard_by)
            case Phase.LEAVING:
                return _soonest(self._next_signal, self.leave_by)
            case _:
                return None

    @property
    def goes_at(self) -> float | None:
        """When a node with notice stops its workers, if they are not ready before; None if it has no notice."""
        return None if self.deadline is None else self.deadline.gone_by - self.settings.grace - KILL_S

    @property
    def leave_by(self) -> float | None:
        """When a node that leaves no longer waits for the register; None if it does not wait, or for ever."""
        return None if self.departure is None or self.departure.is_shown else self.departure.until

    @property
    def is_drained(self) -> bool:
        """The node leaves because it has notice."""
        return self.departure is not None and self.departure.reason is LeaveReason.DRAINED

    @property
    def is_unawaited(self) -> bool:
        """The node leaves because its exit barrier timed out."""
        return self.departure is not None and self.departure.reason is LeaveReason.UNAWAITED

    @property
    def signum(self) -> int | None:
        """The first signal that told the agent to stop."""
        return None if self.departure is None else self.departure.signum

    @property
    def spared(self) -> frozenset[int]:
        """The local ranks of the workers that end by themselves."""
        return (self.failures.raised | self.failures.ending) & self.running

    @property
    def ask_by(self) -> float | None:
        """When the workers that were spared get SIGTERM: not before all others are gone."""
        return self.stop.ask_at if self.running <= self.spared else None

    @property
    def alone_by(self) -> float | None:
        """When the next signal is due for workers that raised, while the others run on: SIGTERM, then SIGKILL."""
        return _soonest(self.stop.ask_at, self.stop.kill_at)

    @property
    def decide_by(self) -> float | None:
        """When the round ends although only echoes are known; None: its end waits for nothing."""
        return None if self.failures.echo_at is None or self.stop.at is None else self.stop.at + ECHO_S

    @property
    def fence_at(self) -> float | None:
        fence = self.settings.fence
        return None if fence is None or self.heart.acked_at is None else self.heart.acked_at + fence

    @property
    def barrier_by(self) -> float | None:
        """When the others are no longer waited for; None for never."""
        timeout = self.settings.barrier_timeout
        return None if self.course.done_at is None or math.isinf(timeout) else self.course.done_at + timeout

    @property
    def heard_by(self) -> float | None:
        """When this node ends the round itself, because no other one has."""
        return None if self.course.heard_at is None else self.course.heard_at + HEARD_S

    @property
    def kill_by(self) -> float | None:
        """When SIGKILL is due for the workers that are being stopped: at the end of their grace, or when the fence falls.

        None after SIGKILL was sent.
        """
        if self.stop.kill_at is None or self.fence_at is None:
            return self.stop.kill_at
        return min(self.stop.kill_at, self.fence_at)

    @property
    def children_by(self) -> float | None:
        """When the children of workers that are being stopped get SIGTERM; None: they have, or nothing is killed."""
        if not (self.stop.spares_children and self.running) or self.kill_by is None:
            return None
        return self.kill_by - KILL_S

    @property
    def _next_signal(self) -> float | None:
        return _soonest(_soonest(self.kill_by, self.ask_by), self.children_by)

    @property
    def outcome(self) -> Outcome | None:
        """How the agent's part ended; None before ENDED. A success stands above a signal, a signal above the rest, and a
        verdict above a drain."""
        if self.phase is not Phase.ENDED:
            return None
        if self.signum is not None and not (self.verdict and self.verdict.ending is Ending.SUCCEEDED):
            return Stopped(self.signum)
        if self.verdict is None and self.is_drained and self.deadline:
            return self._drained(self.deadline)
        return self.verdict or (Unawaited() if self.is_unawaited else self.refused)

    def _drained(self, deadline: Deadline) -> Drained | Refused:
        """Return how a node that was drained has ended."""
        unfit = Refused(Why.UNFIT, deadline.unfit, deadline.gone_by)
        return unfit if deadline.unfit else Drained(deadline.notice.source)


def _soonest(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
