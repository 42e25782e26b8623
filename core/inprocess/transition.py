"""The next step of a call: `transition(call, event) -> (call, commands)`.

The function is pure and total: every event is legal in every phase, and one without a meaning there changes nothing. The
order of the commands is part of the rule. The round ends before abort starts, or the peers' broken connections overtake the
cause. A reserve tells the register so before it initializes. `Want` stands at the gate before abort starts, and abort has
begun before the signal.

User code starts only while the main thread waits and no abort runs. Only a fact of the register drops a result, never a
timer. A result counts only by a verdict on its own round, in which this rank's seat is DONE.
"""

from __future__ import annotations

from typing import assert_never

from ..values import evolve
from ..world import Ending, Why
from .exits import REPLACED
from .settings import NO_MEMORY_MAX, OnInterrupt
from .state import HANG, JOB_ENDED, Aborting, Call, Phase, deadlines
from .words import (
    Abort,
    AbortEnded,
    AtomicLeft,
    Cause,
    Close,
    Closed,
    Command,
    Elapsed,
    End,
    Event,
    Finish,
    GateRead,
    How,
    Inject,
    Interrupted,
    Join,
    Kill,
    Leave,
    Left,
    MarkDone,
    MarkReserve,
    Outcome,
    Over,
    Raised,
    Ready,
    Reason,
    Record,
    Refused,
    Returned,
    Run,
    Span,
    SpanEnded,
    StoreBack,
    StoreLost,
    Terminated,
    Timer,
    Want,
)

Step = tuple[Call, tuple[Command, ...]]


def begin(call: Call) -> Step:
    """Return the first step of a call."""
    return call, (Join(),)


def transition(call: Call, event: Event) -> Step:
    """Return the call after this event, and the commands in their order."""
    if _is_stale(call, event):
        return call, ()
    call = _noted(call, event)
    match call.phase:
        case Phase.JOINING:
            return _sent_away(call, event) or _joining(call, event)
        case Phase.STARTING:
            return _sent_away(call, event) or _starting(call, event)
        case Phase.RUNNING:
            return _sent_away(call, event) or _running(call, event)
        case Phase.RESERVE:
            return _sent_away(call, event) or _reserve(call, event)
        case Phase.SHORT:
            return _sent_away(call, event) or _short(call, event)
        case Phase.RETURNED:
            return _sent_away(call, event) or _returned(call, event)
        case Phase.PENDING:
            return _sent_away(call, event) or _pending(call, event)
        case Phase.UNWINDING:
            return _sent_away(call, event) or _unwinding(call, event)
        case Phase.FINALIZING | Phase.CHECKING:
            return _sent_away(call, event) or _recovering(call, event)
        case Phase.COMPLETING:
            return _completing(call, event)
        case Phase.LEAVING:
            return _leaving(call, event)
        case Phase.ENDED:
            return call, ()
        case other:
            assert_never(other)


def _sent_away(call: Call, event: Event) -> Step | None:
    """Return the step by which this rank leaves, in every phase in which its result does not count yet; else None."""
    match event:
        case Interrupted():
            return _leave(call, Reason.INTERRUPTED, _interrupted(call))
        case Terminated(hung):
            return _leave(call, Reason.HUNG if hung else Reason.DRAINED, Leave())
        case Refused(why):
            return _stop(_goes(evolve(call, left=True), _REFUSALS.get(why, Reason.REFUSED)))
        case _:
            return None


_REFUSALS = {
    Why.TIMEOUT: Reason.TIMED_OUT,
    Why.SUPERSEDED: Reason.SUPERSEDED,
    Why.BEHIND: Reason.SUPERSEDED,
    Why.UNCONFIRMED: Reason.STORE_LOST,
}


def _is_stale(call: Call, event: Event) -> bool:
    match event:
        case Over(round):
            return round != call.round
        case SpanEnded(token) | GateRead(token) | AtomicLeft(token):
            return token != call.token or call.span is None
        case Elapsed(deadline):
            return deadline not in deadlines(call)
        case _:
            return False


def _noted(call: Call, event: Event) -> Call:
    """Return the call with what it remembers of this event in every phase but the last."""
    if call.phase is Phase.ENDED:
        return call
    match event:
        case SpanEnded(hung=hung):
            return evolve(_hung(call) if hung and call.phase in _HANGS and not call.leaving else call, span=None)
        case AbortEnded(failed) if call.abort is Aborting.RUNNING:
            return evolve(call, abort=Aborting.FAILED if failed else Aborting.ENDED)
        case Over():
            return evolve(call, over=True)
        case Closed(verdict) if call.verdict is None:
            return evolve(call, verdict=verdict, left=call.leaving is not None)
        case Left() if call.leaving and not call.closing:
            return evolve(call, left=True)
        case StoreLost() | StoreBack():
            return evolve(call, store_lost=isinstance(event, StoreLost))
        case _:
            return call


_HANGS = (Phase.STARTING, Phase.RUNNING, Phase.PENDING, Phase.UNWINDING)
"""The phases in which user code can hang that a soft timeout is for."""


def _joining(call: Call, event: Event) -> Step:
    match event:
        case Ready():
            return _entered(call, event)
        case Closed():
            return _stop(call)
        case _:
            return call, ()


def _entered(call: Call, ready: Ready) -> Step:
    round, limit = ready.round, call.settings.max_iterations
    call = evolve(call, round=round, active=ready.active, over=False, began=False, abort=Aborting.NOT_BEGUN)
    if not ready.agreed:
        return _leave(call, Reason.OTHER_POLICY, Close(Ending.LIMIT))
    if limit is not None and round >= limit:
        return evolve(call, phase=Phase.SHORT, asked=True), (Close(Ending.LIMIT),)
    if not ready.enough:
        return evolve(call, phase=Phase.SHORT, asked=False), ()
    first = () if ready.active else (MarkReserve(round),)
    return _first(*first, then=_run(evolve(call, began=True), Phase.STARTING, Span.INITIALIZE))


def _starting(call: Call, event: Event) -> Step:
    match event:
        case SpanEnded(how=How.RETURNED) if call.active:
            return _run(call, Phase.RUNNING, Span.FUNCTION)
        case SpanEnded(how=How.RETURNED):
            return evolve(call, phase=Phase.RESERVE), ()
        case SpanEnded(how=How.FAILED):
            return _fault(_repeated(call, event), Cause.INITIALIZE, _fresh_after(call, event))
        case _:
            return _in_span(call, event)


def _running(call: Call, event: Event) -> Step:
    match event:
        case SpanEnded(how=How.RETURNED):
            held = evolve(_steadied(call), phase=Phase.RETURNED, result=call.round, asked=False)
            return held, (MarkDone(_round(call)),)
        case SpanEnded(how=How.FAILED):
            return _fault(_repeated(call, event), Cause.EXCEPTION, _fresh_after(call, event))
        case _:
            return _in_span(call, event)


def _in_span(call: Call, event: Event) -> Step:
    """Return the step that initialize and the function have in common."""
    match event:
        case SpanEnded(how=how):
            return _gone(call, how) or _stop(call)
        case Over() | Closed():
            return _stop(call)
        case Elapsed(deadline) if deadline.timer is Timer.SOFT:
            return _fault(_hung(call), Cause.SOFT_TIMEOUT, call.settings.fresh_after)
        case Elapsed(deadline) if deadline.timer in (Timer.STEADY, Timer.MOVING):
            return _steadied(call), ()
        case Elapsed():
            return call, (Kill(),)
        case _:
            return call, ()


def _reserve(call: Call, event: Event) -> Step:
    match event:
        case Closed(verdict) if (verdict.ending, verdict.round) == (Ending.SUCCEEDED, call.round):
            return _run(call, Phase.COMPLETING, Span.COMPLETE)
        case Over() | Closed():
            return _stop(call)
        case Elapsed():
            return _leave(call, Reason.STORE_LOST, Leave())
        case _:
            return call, ()


def _short(call: Call, event: Event) -> Step:
    match event:
        case Closed(verdict) if call.asked and verdict.ending is Ending.LIMIT:
            return _stop(_goes(call, _why_short(call)))
        case Over() | Closed():
            return _stop(call)
        case Elapsed(deadline) if deadline.timer is Timer.SHORT:
            return evolve(call, asked=True), (Close(Ending.LIMIT),)
        case Elapsed():
            return _leave(call, Reason.OUTCOME_UNKNOWN, Leave())
        case _:
            return call, ()


def _why_short(call: Call) -> Reason:
    """Return for which limit this rank has closed the job, in a world in which no rank can start."""
    limit = call.settings.max_iterations
    return Reason.ITERATIONS_SPENT if limit is not None and _round(call) >= limit else Reason.TOO_FEW


def _returned(call: Call, event: Event) -> Step:
    match event:
        case Closed(verdict, counted) if counted and (verdict.ending, verdict.round) == (Ending.SUCCEEDED, call.result):
            return _run(call, Phase.COMPLETING, Span.COMPLETE)
        case Over() | Closed():
            return _stop(evolve(call, result=None))
        case Elapsed(deadline) if deadline.timer is Timer.COMPLETION:
            return evolve(call, asked=True), (End(_round(call), Cause.COMPLETION_TIMEOUT),)
        case Elapsed():
            return _leave(call, Reason.OUTCOME_UNKNOWN, Leave())
        case _:
            return call, ()


def _pending(call: Call, event: Event) -> Step:
    match event:
        case SpanEnded(how=how):
            return _gone(call, how) or _first(*_was_failing(call, event), then=_unwound(call))
        case GateRead(token, depth) if depth == 0:
            aborting = evolve(call, phase=Phase.UNWINDING, abort=Aborting.RUNNING)
            return aborting, (Abort(), Inject(token))
        case AtomicLeft(token):
            return call, (Want(token),)
        case Elapsed():
            return call, (Kill(),)
        case _:
            return call, ()


def _unwinding(call: Call, event: Event) -> Step:
    match event:
        case SpanEnded(how=how):
            return _gone(call, how) or _first(*_was_failing(call, event), then=_after(call))
        case AbortEnded():
            return _after(call)
        case Elapsed(deadline) if deadline.timer is Timer.ABORT:
            return _after(evolve(call, abort=Aborting.STUCK))
        case Elapsed(deadline):
            return _overrun(call, deadline.timer)
        case _:
            return call, ()


def _recovering(call: Call, event: Event) -> Step:
    """Return the step in finalize, and in the health check that follows it."""
    match event:
        case SpanEnded(how=How.RETURNED):
            rejoins = not call.leaving and not call.verdict
            if rejoins and call.phase is Phase.FINALIZING:
                return _run(call, Phase.CHECKING, Span.CHECK)
            return _after(evolve(call, began=False))
        case SpanEnded(how=how):
            return _gone(call, how) or _leave(call, Reason.UNHEALTHY, Leave())
        case Elapsed(deadline):
            return _overrun(call, deadline.timer)
        case _:
            return call, ()


def _completing(call: Call, event: Event) -> Step:
    match event:
        case SpanEnded(how=how):
            reason = _GOES_BY.get(how)
            return _finish(call, Raised(reason) if reason else Returned(call.result))
        case Elapsed(deadline):
            return _overrun(call, deadline.timer)
        case _:
            return call, ()


def _leaving(call: Call, event: Event) -> Step:
    match event:
        case SpanEnded():
            return _gone_if(evolve(call, terminated=True))
        case Refused():
            return _gone_if(evolve(call, left=True))
        case Elapsed(deadline) if deadline.timer is Timer.LEAVE:
            return _gone_if(evolve(call, left=True))
        case Elapsed(deadline):
            return _overrun(call, deadline.timer)
        case _:
            return _gone_if(call)


# --- the routines that the phases share -------------------------------------------------------------------------------


def _first(*commands: Command, then: Step) -> Step:
    call, more = then
    return call, (*commands, *more)


def _run(call: Call, phase: Phase, span: Span) -> Step:
    started = evolve(call, phase=phase, span=span, token=call.token + 1, asked=False, tries=0)
    return started, (Run(span, started.token),)


def _round(call: Call) -> int:
    return call.round or 0


def _fault(call: Call, cause: Cause, fresh_after: int | None = None) -> Step:
    """Report a failure of this rank. An active rank ends the round for all. A reserve leaves, and disturbs nobody else.

    `fresh_after`: how often this failure may come before any progress; then this rank leaves, for a process that replaces
    it.
    """
    call = evolve(call, faults=call.faults + 1)
    if not call.active:
        return _leave(call, Reason.UNFIT, Leave())
    if call.settings.max_faults is not None and call.faults > call.settings.max_faults:
        return _leave(call, Reason.TOO_MANY_FAULTS, Close(Ending.LIMIT))
    if call.settings.max_repeats is not None and call.repeats > call.settings.max_repeats:
        return _leave(call, Reason.CRASH_LOOP, Close(Ending.LIMIT))
    if fresh_after is not None and call.barren >= fresh_after:
        goes = End(_round(call), cause) if _is_replaced(call, Reason.STUCK) else Leave()
        return _leave(call, Reason.STUCK, goes)
    return _first(End(_round(call), cause), then=_stop(call))


def _was_failing(call: Call, ended: SpanEnded) -> tuple[Command, ...]:
    """Return what puts the failure on record of user code that was called back in the middle of it, in a `finally` say."""
    counts = call.active and not call.leaving and ended.mark and not ended.is_echo
    return (Record(_round(call), if_open=True),) if counts else ()


def _repeated(call: Call, ended: SpanEnded) -> Call:
    """Count a failure of this rank's own. One that it only suffers from its peers is an echo, or comes when the round is
    over.

    Each rank counts for itself, so the register needs no field: all ranks report a failure that they share.
    """
    settings = call.settings
    is_counted = settings.max_repeats is not None or settings.fresh_after is not None
    if not is_counted or not call.active or ended.is_echo:
        return call
    is_same = ended.mark == call.mark
    barren = 0 if ended.got_on else 1 + (call.barren if is_same else 0)
    return evolve(call, mark=ended.mark, repeats=call.repeats + 1 if is_same else 0, barren=barren)


def _hung(call: Call) -> Call:
    """Count a hang of this rank. User code that got on for `repeat_window` before it hung begins the count anew (MOVING)."""
    if not call.active or call.settings.fresh_after is None:
        return _steadied(call)
    return evolve(call, mark=HANG, repeats=0, barren=1 + (call.barren if call.mark == HANG else 0))


def _fresh_after(call: Call, ended: SpanEnded) -> int | None:
    """Return how often this failure may come before any progress; None for an echo, and where there is no limit."""
    limit = call.settings.fresh_after
    if limit is None or ended.is_echo:
        return None
    return min(limit, NO_MEMORY_MAX) if ended.no_memory else limit


def _steadied(call: Call) -> Call:
    """Forget the last failure, because user code has got on since."""
    return call if call.mark is None else evolve(call, mark=None, repeats=0, barren=0)


_GOES_BY = {
    How.EXITED: Reason.EXITED,
    How.HUNG: Reason.HUNG,
    How.INTERRUPTED: Reason.INTERRUPTED,
    How.GAVE_UP: Reason.GAVE_UP,
}


def _gone(call: Call, how: How) -> Step | None:
    """Return the step by which this rank leaves because of how its span ended; None if it does not leave."""
    limit = call.settings.fresh_after
    if limit is not None and call.barren >= limit and not call.leaving:
        return _leave(call, Reason.STUCK, Leave())  # it hung once more, and its monitor has ended the round
    match how:
        case How.EXITED | How.HUNG:
            return _leave(call, _GOES_BY[how], Leave())
        case How.INTERRUPTED:
            return _leave(call, _GOES_BY[how], _interrupted(call))
        case How.GAVE_UP:
            return _leave(call, _GOES_BY[how], Close(Ending.LIMIT))
        case _:
            return None


def _interrupted(call: Call) -> Command:
    return Close(Ending.CANCELLED) if call.settings.on_interrupt is OnInterrupt.CLOSE else Leave()


FAILURES = frozenset((Reason.UNFIT, Reason.UNHEALTHY, Reason.STUCK, Reason.ABORT_HUNG, Reason.ABORT_FAILED))
"""The reasons of a rank that leaves for a failure of its own, and has ended no round for it."""


def _leave(call: Call, reason: Reason, command: Command) -> Step:
    """Leave for good. The register is told at once, unless it has its verdict, already knows, or keeps the seat for a new
    process of this rank. An `End` puts the failure on record by itself."""
    replaced = _is_replaced(call, reason)
    told = call.verdict is not None or (call.leaving is not None and isinstance(command, Leave))
    records = reason in FAILURES and call.leaving is None and not isinstance(command, End)
    recorded = (Record(_round(call)),) if records else ()
    commands = () if told else recorded if replaced and isinstance(command, Leave) else (*recorded, command)
    call = evolve(call, closing=call.closing or isinstance(command, Close), left=told and call.left)
    call = evolve(call, replaced=True) if replaced else call
    return _first(*commands, then=_stop(_goes(call, reason)))


def _is_replaced(call: Call, reason: Reason) -> bool:
    """Return True if the others wait for the process that replaces this one."""
    waits = call.settings.replace_wait > 0 and call.leaving is None and call.verdict is None
    return waits and call.active and reason in REPLACED


def _goes(call: Call, reason: Reason) -> Call:
    """Note that the rank leaves. The first reason stands. A value is kept for the caller if its outcome is unknown."""
    reason = call.leaving or reason
    result = call.result if reason is Reason.OUTCOME_UNKNOWN else None
    return evolve(call, leaving=reason, result=result, left=call.left or call.verdict is not None)


def _stop(call: Call) -> Step:
    """End user code of this round, which no longer counts."""
    call = evolve(call, over=True)
    if call.span is None:
        return _unwound(call)
    if call.phase not in (Phase.STARTING, Phase.RUNNING):
        return call, ()
    return evolve(call, phase=Phase.PENDING, asked=True), (Want(call.token),)


def _unwound(call: Call) -> Step:
    """Begin abort, if it is due, now that no user code runs."""
    call = evolve(call, phase=Phase.UNWINDING)
    if call.abort is not Aborting.NOT_BEGUN:
        return _after(call)
    if not call.began:
        return _after(evolve(call, abort=Aborting.ENDED))
    return evolve(call, abort=Aborting.RUNNING), (Abort(),)


def _after(call: Call) -> Step:
    """Return what comes next, once user code and abort are both over."""
    if call.span is not None or call.abort is Aborting.RUNNING:
        return call, ()
    if call.leaving:
        return _run(call, Phase.LEAVING, Span.TERMINATE)
    if call.verdict:
        return _told(call, call.verdict.ending)
    if call.abort is Aborting.STUCK:
        return _leave(call, Reason.ABORT_HUNG, Leave())
    if call.abort is Aborting.FAILED:
        return _leave(call, Reason.ABORT_FAILED, Leave())
    if call.began:
        return _run(call, Phase.FINALIZING, Span.FINALIZE)
    return evolve(call, phase=Phase.JOINING, asked=False), (Join(),)


def _told(call: Call, ending: Ending) -> Step:
    """End the call by the job's verdict, on a rank without a result that counts."""
    if ending is Ending.SUCCEEDED:
        return _finish(call, Returned(None))
    return _run(_goes(call, JOB_ENDED[ending]), Phase.LEAVING, Span.TERMINATE)


def _overrun(call: Call, timer: Timer) -> Step:
    """Ask a span to end that has not ended in time; ask it again; kill the process in the end."""
    match timer:
        case Timer.LIMIT:
            return evolve(call, asked=True), (Want(call.token), Inject(call.token))
        case Timer.AGAIN:
            return evolve(call, tries=call.tries + 1), (Inject(call.token),)
        case _:
            return call, (Kill(),)


def _gone_if(call: Call) -> Step:
    """Finish once terminate is over and the register shows that the rank left, or had its time."""
    if not (call.terminated and call.is_gone and call.leaving):
        return call, ()
    return _finish(call, Raised(call.leaving, call.result))


def _finish(call: Call, outcome: Outcome) -> Step:
    return evolve(call, phase=Phase.ENDED, outcome=outcome), (Finish(outcome),)
