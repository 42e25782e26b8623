"""One rank's call of the wrapped function: its phases, and what it remembers from one event to the next.

The call knows nothing of stores, threads and signals, and no point in time. `deadlines` computes from it which timers run.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ..backoff import pause_s
from ..values import frozen
from ..world import Ending, Verdict
from .settings import Settings
from .words import Deadline, Outcome, Reason, Span, Timer

FIRST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 1.0
"""First and longest pause between two signals to a main thread that was asked to end and has not."""
HANG = "hang"
"""The mark of a soft timeout. A failure's mark has its type and place."""


class Phase(Enum):
    """The phase of the call. User code runs in the phases that name it; in the others the main thread waits."""

    JOINING = "joining"
    """The rank is on its way into a world."""
    STARTING = "starting"
    """User code: initialize."""
    RUNNING = "running"
    """User code: the function."""
    RESERVE = "reserve"
    """The rank is in a world and ready, but not active."""
    SHORT = "short"
    """The rank is in a world in which no rank can start: too few ranks, or too many iterations."""
    RETURNED = "returned"
    """The function returned here, but not yet on all other ranks."""
    PENDING = "pending"
    """User code must end, but is in an atomic section, or the gate has not answered."""
    UNWINDING = "unwinding"
    """User code is made to end, while abort runs."""
    FINALIZING = "finalizing"
    """User code: finalize."""
    CHECKING = "checking"
    """User code: the health check after a failure."""
    COMPLETING = "completing"
    """User code: completion. The function's value counts."""
    LEAVING = "leaving"
    """User code: terminate. The rank tells the register that it leaves."""
    ENDED = "ended"


class Aborting(Enum):
    """How far the abort of this round is."""

    NOT_BEGUN = "not begun"
    RUNNING = "running"
    ENDED = "ended"
    STUCK = "stuck"
    """It did not end in time. This process never runs another round."""
    FAILED = "failed"
    """It raised and may have left connections open. This process never runs another round."""


JOB_ENDED: Mapping[Ending, Reason] = {
    Ending.FAILED: Reason.JOB_FAILED,
    Ending.LIMIT: Reason.JOB_LIMIT,
    Ending.CANCELLED: Reason.JOB_CANCELLED,
}


@frozen
class Call:
    """One rank's call. Its `token` must be above the token of every earlier call of the process."""

    settings: Settings = Settings()
    token: int = 0
    """The token of the present span, or of the last one."""
    phase: Phase = Phase.JOINING
    span: Span | None = None
    """The user code that the main thread runs; None: it waits."""
    round: int | None = None
    """The round of the last world."""
    active: bool = False
    over: bool = False
    """This round is over for this rank."""
    began: bool = False
    """User code of this round has begun, so abort and finalize are due."""
    abort: Aborting = Aborting.NOT_BEGUN
    result: int | None = None
    """The round of the value that this rank holds."""
    asked: bool = False
    """The present span was asked to end. While the main thread waits: an end or a close was sent."""
    tries: int = 0
    """How many signals were repeated to the present span."""
    faults: int = 0
    """How many failures this rank has reported in all."""
    mark: str | None = None
    """The mark of the last failure, if that came soon after user code had begun; HANG for a soft timeout."""
    repeats: int = 0
    """How often that failure has repeated in a row."""
    barren: int = 0
    """How often in a row that failure has come before any progress of its span."""
    store_lost: bool = False
    verdict: Verdict | None = None
    leaving: Reason | None = None
    """Why this rank leaves. The first reason stands."""
    closing: bool = False
    """The rank closes the job as it leaves. Only the verdict shows then that the register knows."""
    left: bool = False
    """The register shows that the rank left, or had its time."""
    replaced: bool = False
    """The rank leaves, and a new process will take its seat. The register is not told: the seat is kept, and this rank's
    monitor speaks when the process is dead."""
    terminated: bool = False
    outcome: Outcome | None = None

    @property
    def is_gone(self) -> bool:
        """True if nothing more is to be heard from the register before this call ends."""
        return self.left or (self.replaced and not self.closing)


def deadlines(call: Call) -> tuple[Deadline, ...]:
    """Return the timers that run in this state of the call."""
    settings, round = call.settings, call.round or 0
    match call.phase:
        case Phase.STARTING | Phase.RUNNING:
            guarded = Deadline(Timer.SOFT, call.token, settings.soft_timeout), _hard(call)
            return guarded if call.mark is None else (*guarded, _steady(call))
        case Phase.RESERVE:
            return (Deadline(Timer.STORE, round, settings.store_timeout),) if call.store_lost else ()
        case Phase.SHORT | Phase.RETURNED if call.asked:
            return (Deadline(Timer.CONFIRM, round, settings.confirm_timeout),)
        case Phase.SHORT:
            return (Deadline(Timer.SHORT, round, settings.barrier_timeout),)
        case Phase.RETURNED:
            return (Deadline(Timer.COMPLETION, round, settings.completion_timeout),)
        case Phase.PENDING:
            return (_hard(call),)
        case Phase.UNWINDING:
            abort = Deadline(Timer.ABORT, round, settings.abort_timeout)
            return (*_of_span(call), abort) if call.abort is Aborting.RUNNING else _of_span(call)
        case Phase.LEAVING if not call.is_gone:
            return (*_of_span(call), Deadline(Timer.LEAVE, call.token, settings.leave_timeout))
        case Phase.FINALIZING | Phase.CHECKING | Phase.COMPLETING | Phase.LEAVING:
            return _of_span(call)
        case _:
            return ()


def _of_span(call: Call) -> tuple[Deadline, ...]:
    """Return the timers of a span that must first end by itself, and is then made to."""
    if call.span is None:
        return ()
    if not call.asked:
        return (Deadline(Timer.LIMIT, call.token, call.settings.callback_timeout),)
    pause = pause_s(call.tries + 1, FIRST_PAUSE_S, LONGEST_PAUSE_S)
    return Deadline(Timer.AGAIN, call.token, pause, call.tries), _unwind(call)


def _steady(call: Call) -> Deadline:
    timer = Timer.MOVING if call.mark == HANG else Timer.STEADY
    return Deadline(timer, call.token, call.settings.repeat_window)


def _hard(call: Call) -> Deadline:
    return Deadline(Timer.HARD, call.token, call.settings.hard_timeout)


def _unwind(call: Call) -> Deadline:
    return Deadline(Timer.UNWIND, call.token, call.settings.unwind_timeout)
