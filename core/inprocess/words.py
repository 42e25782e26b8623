"""What one rank's call is told, and what it tells others to do: events and commands, frozen values of two closed unions.

A `token` names one span of user code on the main thread and is never used again in a process; a `round` is the rendezvous'.
An event with an old token or round says nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from attrs import frozen

from ..world import Ending, Verdict, Why


class Span(Enum):
    """One stretch of user code on the main thread."""

    INITIALIZE = "initialize"
    """`initialize` and the first health check."""
    FUNCTION = "function"
    FINALIZE = "finalize"
    CHECK = "health check"
    """The health check after a fault."""
    COMPLETE = "completion"
    TERMINATE = "terminate"


class How(Enum):
    """How a span ended."""

    RETURNED = "returned"
    FAILED = "failed"
    """By an exception, or by asking for a restart."""
    EXITED = "exited"
    """By SystemExit or another BaseException: this rank wants to go."""
    INTERRUPTED = "interrupted"
    """By KeyboardInterrupt."""
    GAVE_UP = "gave up"
    """By asking for the end of all restarts."""
    INJECTED = "injected"
    """By our own exception."""


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
    UNFIT = "a reserve failed to initialize"
    UNHEALTHY = "finalize or the health check failed"
    ABORT_HUNG = "abort did not end"
    TOO_MANY_FAULTS = "too many faults of this rank"
    CRASH_LOOP = "the same failure of this rank again and again"
    OTHER_POLICY = "the ranks follow different policies"
    OUTCOME_UNKNOWN = "the outcome is unknown"
    STORE_LOST = "the store is out of reach"
    TIMED_OUT = "no round was complete in time"
    SUPERSEDED = "a later incarnation took this rank's place"
    REFUSED = "the register refused this rank"
    JOB_FAILED = "the job failed"
    JOB_LIMIT = "the job spent its restarts"
    JOB_CANCELLED = "the job was cancelled"


# --- events -----------------------------------------------------------------------------------------------------------


@frozen
class Ready:
    """A world is complete and this rank is in it: `active` or a reserve, in a world that is big `enough` or not.

    `agreed`: the digest of the rank policy's result is the one that the register holds.
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
    """The job has its verdict. `counted`: this rank's seat is DONE or GONE in the closed round."""

    verdict: Verdict
    counted: bool = False


@frozen
class Left:
    """The register knows that this rank leaves."""


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
    """User code is over: the main thread has disarmed the gate and waits. `mark` tells one failure from another: the type of
    the exception and its place."""

    token: int
    how: How
    mark: str = ""


@frozen
class GateRead:
    """What the gate said when the wish for `token` was written: so deep in atomic sections the main thread is."""

    token: int
    depth: int


@frozen
class AtomicLeft:
    """The main thread has left its outermost atomic section."""

    token: int


@frozen
class AbortEnded:
    """`abort` has ended, well or not."""


@frozen
class Interrupted:
    """Ctrl-C, when no user code runs on the main thread."""


@frozen
class Terminated:
    """SIGTERM: this rank is drained."""


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
    """User code has run for so long that its next failure is no repetition."""


@frozen
class Deadline:
    """A timer that runs since this value first stood in `deadlines(call)`. `of`: the token or round it belongs to; `tries`:
    how often that was tried before."""

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


# --- commands: to be begun in this order ------------------------------------------------------------------------------


@frozen
class Join:
    """Rendezvous: into the next world."""


@frozen
class End:
    """Rendezvous: the round is over, by a fault of this rank."""

    round: int
    cause: Cause


@frozen
class MarkDone:
    """Rendezvous: this rank's function has returned."""

    round: int


@frozen
class MarkReserve:
    """Rendezvous: this rank is a reserve of the round."""

    round: int


@frozen
class Leave:
    """Rendezvous: this rank goes. Voids what was asked before, but for a close."""


@frozen
class Close:
    """Rendezvous: the job ends."""

    ending: Ending


@frozen
class Run:
    """Main thread, which waits: this span of user code."""

    span: Span
    token: int


@frozen
class Want:
    """Gate: the span is to end. Answered at once by `GateRead`."""

    token: int


@frozen
class Inject:
    """Send the main thread the signal whose handler asks the gate."""

    token: int


@frozen
class Abort:
    """A thread of its own: run the user's abort."""


@frozen
class Kill:
    """Monitor process: this process is past help."""


@frozen
class Returned:
    """The call returns: with the function's value of that round, or with None."""

    round: int | None


@frozen
class Raised:
    """The call raises. `round`: whose value is attached, since nobody knows whether it counts."""

    reason: Reason
    round: int | None = None


Outcome: TypeAlias = Returned | Raised


@frozen
class Finish:
    """Main thread, which waits: the call is over."""

    outcome: Outcome


Command: TypeAlias = Join | End | MarkDone | MarkReserve | Leave | Close | Run | Want | Inject | Abort | Kill | Finish
