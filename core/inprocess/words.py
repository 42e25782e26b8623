"""The events that one rank's call takes, and the commands that it returns: frozen values of two closed unions.

A `token` names one span of user code on the main thread, and is never used again in a process. A `round` is a round of the
rendezvous. An event with an old token or round changes nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from ..values import frozen
from ..world import Ending, Verdict, Why


class Span(Enum):
    """One stretch of user code on the main thread."""

    INITIALIZE = "initialize"
    """`initialize` and the first health check."""
    FUNCTION = "function"
    FINALIZE = "finalize"
    CHECK = "health check"
    """The health check after a failure."""
    COMPLETE = "completion"
    TERMINATE = "terminate"


GUARDED = (Span.INITIALIZE, Span.FUNCTION)
"""The spans whose progress counts."""


class How(Enum):
    """How a span ended."""

    RETURNED = "returned"
    FAILED = "failed"
    """By an exception, or by a request for a restart."""
    EXITED = "exited"
    """By SystemExit or another BaseException: this rank wants to leave."""
    INTERRUPTED = "interrupted"
    """By KeyboardInterrupt."""
    GAVE_UP = "gave up"
    """By a request for the end of all restarts."""
    INJECTED = "injected"
    """By the restart exception that the gate raised."""
    HUNG = "hung"
    """By the SIGTERM that its own monitor sent because a limit was passed, whatever that raised."""


def ended_as(how: How, is_terminated: bool) -> How:
    """Return how a span ended whose code ended like this. `is_terminated`: its own monitor had sent SIGTERM, which may raise
    anything in user code."""
    return How.HUNG if is_terminated and how not in (How.RETURNED, How.GAVE_UP) else how


class Cause(Enum):
    """Why this rank ends a round."""

    INITIALIZE = "initialize failed"
    EXCEPTION = "exception"
    SOFT_TIMEOUT = "soft timeout"
    COMPLETION_TIMEOUT = "completion timeout"


class Reason(Enum):
    """Why this rank leaves for good."""

    EXITED = "user code exited"
    INTERRUPTED = "interrupted"
    GAVE_UP = "user code gave up"
    DRAINED = "told to stop"
    HUNG = "ended by its monitor at a limit"
    UNFIT = "a reserve failed to initialize"
    UNHEALTHY = "finalize or the health check failed"
    ABORT_HUNG = "abort did not end"
    ABORT_FAILED = "abort failed"
    TOO_MANY_FAULTS = "too many faults of this rank"
    CRASH_LOOP = "the same failure of this rank again and again"
    STUCK = "the same failure or a hang of this rank again and again, before any progress"
    OTHER_POLICY = "the ranks follow different policies"
    OUTCOME_UNKNOWN = "the outcome is unknown"
    STORE_LOST = "the store is out of reach"
    TIMED_OUT = "no round was complete in time"
    SUPERSEDED = "a later incarnation took this rank's place"
    REFUSED = "the register refused this rank"
    ITERATIONS_SPENT = "max_iterations is reached"
    TOO_FEW = "too few ranks for too long"
    JOB_FAILED = "the job failed"
    JOB_LIMIT = "the job spent its restarts"
    JOB_CANCELLED = "the job was cancelled"


# --- events -----------------------------------------------------------------------------------------------------------


@frozen
class Ready:
    """A world is complete, and this rank is in it: `active`, or a reserve.

    `enough` is True if the world is big enough to start in. `agreed` is True if this rank's digest of the rank policy equals
    the one in the register.
    """

    round: int
    active: bool = True
    enough: bool = True
    agreed: bool = True


@frozen
class Over:
    """The round is over."""

    round: int


@frozen
class Closed:
    """The job has its verdict. `counted` is True if this rank's seat is DONE or GONE in the closed round."""

    verdict: Verdict
    counted: bool = False


@frozen
class Left:
    """The register shows that this rank has left."""


@frozen
class Refused:
    """An operation of the rendezvous cannot be done."""

    why: Why


@frozen
class StoreLost:
    """The store is out of reach."""


@frozen
class StoreBack:
    """The store answers again."""


@frozen
class SpanEnded:
    """User code is over: the main thread has disarmed the gate and waits. `mark` tells failures apart, by the type of the
    exception and its place. Code that was called back may have been failing: the mark is that of the exception before."""

    token: int
    how: How
    mark: str = ""
    is_echo: bool | None = None
    """The failure only tells of another rank's."""
    got_on: bool | None = None
    """The code had made progress before: it had called `ping`, or begun a section."""
    no_memory: bool | None = None
    """The failure is a MemoryError, or that of a GPU. (A trace leaves out None.)"""
    hung: bool | None = None
    """The code kept the interpreter without progress, so its monitor called it back: the driver saw no soft timeout."""


@frozen
class GateRead:
    """The gate's answer to `Want(token)`: how deep in atomic sections the main thread is."""

    token: int
    depth: int


@frozen
class AtomicLeft:
    """The main thread has left its outermost atomic section."""

    token: int


@frozen
class AbortEnded:
    """`abort` has ended; it failed if it raised."""

    failed: bool = False


@frozen
class Interrupted:
    """Ctrl-C came while no user code ran on the main thread."""


@frozen
class Terminated:
    """SIGTERM came: this rank is drained."""

    hung: bool | None = None
    """True: its own monitor sent it, because a limit was passed. A trace leaves out None."""


class Timer(Enum):
    SOFT = "soft"
    HARD = "hard"
    LIMIT = "limit"
    AGAIN = "again"
    UNWIND = "unwind"
    ABORT = "abort"
    SHORT = "short"
    COMPLETION = "completion"
    CONFIRM = "confirm"
    STORE = "store"
    LEAVE = "leave"
    STEADY = "steady"
    """User code has run so long that its next failure repeats no earlier one."""
    MOVING = "moving"
    """User code marks progress `repeat_window` after it began, so its next hang repeats no earlier one."""

    __hash__ = object.__hash__  # members are single objects; Enum's own hash is a call in Python


@frozen
class Deadline:
    """A timer that runs since `deadlines(call)` first listed this value. `of` is the token or round that it belongs to, and
    `tries` tells its repetitions apart."""

    timer: Timer
    of: int
    after_s: float
    tries: int = 0


@frozen
class Elapsed:
    """A deadline of this call has passed."""

    deadline: Deadline


Event: TypeAlias = (
    Ready
    | Over
    | Closed
    | Left
    | Refused
    | StoreLost
    | StoreBack
    | SpanEnded
    | GateRead
    | AtomicLeft
    | AbortEnded
    | Interrupted
    | Terminated
    | Elapsed
)


# --- commands: a driver begins them in their order --------------------------------------------------------------------


@frozen
class Join:
    """Rendezvous: join the next world."""


@frozen
class End:
    """Rendezvous: end the round, because of a failure of this rank."""

    round: int
    cause: Cause


@frozen
class Record:
    """Rendezvous: put the failure of this rank's user code on record. (An end is followed by one, a close follows one.)

    `if_open`: only where no failure of the round is on record but echoes. Its peers may have lost this rank, and ended the
    round, before its own failure was known.
    """

    round: int
    if_open: bool = False


@frozen
class MarkDone:
    """Rendezvous: mark this rank done, because its function has returned."""

    round: int


@frozen
class MarkReserve:
    """Rendezvous: mark this rank a reserve of the round."""

    round: int


@frozen
class Leave:
    """Rendezvous: leave. It voids every earlier request but a close."""


@frozen
class Close:
    """Rendezvous: close the job."""

    ending: Ending


@frozen
class Run:
    """Main thread, which waits: run this span of user code."""

    span: Span
    token: int


@frozen
class Want:
    """Gate: this span must end. `GateRead` answers at once."""

    token: int


@frozen
class Inject:
    """Send the signal to the main thread. Its handler asks the gate."""

    token: int


@frozen
class Abort:
    """Run the user's abort in its own thread."""


@frozen
class Kill:
    """Monitor process: kill this process, which is past help."""


@frozen
class Returned:
    """The call returns the function's value of this round, or None."""

    round: int | None


@frozen
class Raised:
    """The call raises. `round` names the value that is attached, if its outcome is unknown."""

    reason: Reason
    round: int | None = None


Outcome: TypeAlias = Returned | Raised


@frozen
class Finish:
    """Main thread, which waits: the call is over."""

    outcome: Outcome


Command: TypeAlias = (
    Join | End | Record | MarkDone | MarkReserve | Leave | Close | Run | Want | Inject | Abort | Kill | Finish
)
