"""The driver, the thread that decides for one wrapped call: one inbox of events -> `core.inprocess.transition` -> commands.

Many threads post, one decides. The main thread posts how a span of user code ended, the rendezvous loop what the register
says; the abort's thread and signal handlers post too. Only the driver holds the call. It runs no user code itself: it orders
the main thread to, or starts a thread for abort.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import assert_never

from ....core.caller import WHY_OVER, culprits, entered, heard, is_open, requested
from ....core.inprocess import Call, begin, transition
from ....core.inprocess import words as core
from ....core.inprocess.exits import INTERNAL
from ....core.inprocess.monitoring import bye
from ....core.inprocess.progress_limits import Marks, of_span
from ....core.inprocess.state import JOB_ENDED
from ....core.inprocess.timers import IDLE, Timers, passed, resumed, running, until, unwind_at
from ....core.policies import place
from ....core.rendezvous import Ended, Held, Raise
from ....core.values import define, evolve
from ....core.world import Fault, Node, Origin, Profile, Why, World
from ... import threads
from ...addresses import ANY, PORTS, ports_read
from ...clean_up import failures_of
from ...clock import Clock
from ...rendezvous.loop import Recorded, RendezvousLoop, ToRecord
from ...rendezvous.reserved_ports import Reservation
from ...report.news import LoopNotice, StoreBack, StoreSilent, Told, Trace
from ...store.port import StoreError
from ...terminal import why
from .. import user_stack
from ..gate.bytecode_progress import Progress, marks
from ..gate.gate import Gate
from ..shared_page import (
    BYE,
    ENTERED,
    GOES_REPLACED,
    HUNG,
    LEAVING,
    NS,
    RANK,
    UNWIND_AT,
    WORLD_SIZE,
    Page,
)
from ..thread_events import (
    AbortEnded,
    Finished,
    LeftAtomic,
    Message,
    Order,
    PutOff,
    Release,
    Signalled,
    SpanEnd,
    StoreStarted,
    ToMain,
)
from .deadlines import Late
from .outcomes import NestedCall, RestartAbort, raised, said
from .task import Task, echo_in, first_raised, lacks_memory, mark, traced

log = logging.getLogger("elastic.inprocess")


AGAIN_S = 0.01
"""The pause between two sendings of a signal that the gate puts off."""
TELLING_S = 2.0
"""A process that an error ends waits so long until its stderr has taken the traceback."""
NO_MORE = "no further iteration may begin"
"""The record of a rank that ends the job for the failures of others."""
RECORD_S = 0.5
"""How long the abort of a rank that has failed waits until that is on record, at most."""
NAMED_MAX = 32
"""For iterations from this number on the log names the rank that ended the last one. To find out which one failed first
means to read the records of all iterations, and the agent, which reads them for its ranks, grows by what that takes."""
ENDED_BY_OTHERS = frozenset((*JOB_ENDED.values(), core.Reason.ITERATIONS_SPENT, core.Reason.TOO_FEW))
"""The reasons for which the text of the call's end names the failure of another rank."""


def end_process(error: BaseException) -> None:
    """End the process for an error in a thread without which the training would be unsupervised. The monitor tells it."""
    try:
        teller = threading.Thread(target=traceback.print_exception, args=(error,), name="elastic-error", daemon=True)
        threads.start(teller, patience_s=0.0)
        teller.join(TELLING_S)
    finally:  # also where stderr is closed, or full because nobody reads it
        os._exit(INTERNAL)


def _nothing() -> None:
    pass


@define
class _Iteration:
    """The memory of this process for the present round."""

    value: object = None
    errors: tuple[BaseException, ...] = ()
    span: core.Span | None = None


class Driver:
    """The driver of one call."""

    def __init__(
        self,
        task: Task,
        call: Call,
        gate: Gate,
        page: Page,
        progress: Progress,
        inbox: SimpleQueue[Message],
        orders: SimpleQueue[ToMain],
        loop: Callable[[Callable[[LoopNotice], None]], RendezvousLoop],
        faults: Callable[[], Sequence[Fault]],
        me: Node,
        clock: Clock,
        store_starts: Callable[[], bool],
        farewell: Callable[[], None],
        trace: Trace,
    ) -> None:
        """`faults` reads all ranks' failure records. `store_starts` asks the store whether it is starting.

        `farewell` is called last, when the main thread has gone on: no thread waits for it."""
        self._task = task
        self._call = call
        self._gate = gate
        self._page = page
        self._progress = progress
        self._late = Late(me.slot, gate, page)
        self._inbox = inbox
        self._orders = orders
        self._loop = loop(inbox.put)
        self._faults = faults
        self._me = me
        self._clock = clock
        self._store_starts = store_starts
        self._farewell = farewell
        self._trace = trace
        self._timers: Timers = IDLE
        self._soon: deque[core.Event] = deque()
        self._kept = _Iteration()
        self._last_error: BaseException | None = None
        self._own: dict[core.Reason, BaseException] = {}
        """By the reason why the call ends: the exceptions of `finalize` and of the rank policy, which the call raises."""
        self._untold: Callable[[], None] | None = None
        """This tells the log of the error with which a span has just ended: the others hear of it first."""
        self._reserved: Reservation | None = None
        self._recorded = threading.Event()
        """Set while no failure of this rank is on its way to the record."""
        self._recorded.set()
        self._shown: object = None
        """The places of the last traceback that was told."""
        self._asking: threading.Thread | None = None
        """The last thread that has asked which rank failed first."""
        self._probe_at: float | None = None
        self._again_at: float | None = None
        """When a signal that the gate puts off is sent again."""
        run = threads.guarded(self._run, end_process)
        self._thread = threading.Thread(target=run, name="elastic-inprocess", daemon=True)

    @property
    def token(self) -> int:
        """The token of the last span."""
        return self._call.token

    def start(self) -> None:
        """Start the rendezvous and this thread. Raises NoThread; then nothing of them runs."""
        try:
            self._loop.start()
            threads.start(self._thread)
        except threads.NoThread:
            self._loop.stop()
            raise

    def join(self) -> None:
        """Wait until everything is let go of."""
        self._thread.join()

    def _run(self) -> None:
        self._await_store()
        self._took(None, begin(self._call))
        while self._call.outcome is None:
            for event in self._next():
                if self._call.outcome is None:
                    self._took(event, transition(self._call, event))
        self._end(self._call.outcome)

    def _await_store(self) -> None:
        """Wait for a store that is starting: its start is no part of `barrier_timeout`. A signal ends the wait."""
        try:
            threads.start(threading.Thread(target=self._greet, name="elastic-greeting", daemon=True))
        except threads.NoThread:
            return
        first = self._inbox.get()
        if not isinstance(first, StoreStarted):
            self._inbox.put(first)

    def _greet(self) -> None:
        span_s = self._call.settings.store_timeout
        ends_at, is_told = self._clock.now() + span_s, False
        while self._call.outcome is None and self._clock.now() < ends_at and self._store_starts():
            if not is_told:
                text = "rank %s: %s listens and does not answer yet; it may take %g s to start (store_timeout)"
                log.warning(text, self._me.slot, self._task.meets_at, span_s)
                is_told = True
        self._inbox.put(StoreStarted())

    def _took(self, event: core.Event | None, step: tuple[Call, tuple[core.Command, ...]]) -> None:
        before, (self._call, commands) = self._call, step
        now = self._clock.now()
        self._trace.took(transition, event, commands, now)
        self._timers = running(self._timers, self._call, now)
        self._tell_monitor()
        tell, self._untold = self._untold, None
        if isinstance(event, core.Elapsed):
            tell = self._late.passed(event.deadline, self._kept.span, self._call.round)
        if tell and core.Kill() in commands:
            tell()
        for command in commands:
            self._carry_out(command)
        if tell and core.Kill() not in commands:
            tell()
        if self._call.phase is not before.phase:
            log.debug("rank %s: %s -> %s", self._me.slot, before.phase.value, self._call.phase.value)

    def _end(self, outcome: core.Outcome) -> None:
        self._page.words[BYE] = bye(self._call)
        self._page.ring()
        value = self._kept.value
        if self._asking:
            self._asking.join(TELLING_S)
        match outcome:
            case core.Returned(round):
                self._orders.put(Finished(value if round is not None else None, None))
            case core.Raised() as failed:
                task = self._task
                rank, last, others = task.state.initial_rank, self._last_error, self._others_fault(failed.reason)
                error = self._own.get(failed.reason)
                error = error or raised(failed, self._call.closing, rank, value, last, task.meets_at, others)
                self._orders.put(Finished(None, error))
        self._kept = _Iteration()
        release = self._reserved.release if self._reserved else _nothing
        for error in failures_of(self._loop.stop, release, self._farewell):
            log.error("rank %s: the clean-up after a call failed in part", self._me.slot, exc_info=error)

    def _others_fault(self, reason: core.Reason) -> str:
        """Return the failure of another rank that ended the job: of the one that closed it, else the last on record."""
        verdict = self._call.verdict
        if verdict is None or reason not in ENDED_BY_OTHERS:
            return ""
        try:
            found = [fault for fault in self._faults() if fault.node != self._me and fault.message != NO_MORE]
        except StoreError:
            found = []
        of_closer = [fault for fault in found if fault.node == verdict.by]
        told = [f"rank {fault.node.slot}: {fault.message}".partition("\n")[0] for fault in of_closer or found]
        return told[-1] if told else ""

    # --- events in

    def _next(self) -> tuple[core.Event, ...]:
        """Return the events that the call hears next; there may be none."""
        if self._soon:
            return (self._soon.popleft(),)
        passes_at = until(self._timers, self._marks())
        wake_at = min(passes_at, self._probe_at or float("inf"), self._again_at or float("inf"))
        left = min(max(wake_at - self._clock.now(), 0.0), threading.TIMEOUT_MAX)
        try:
            message = self._inbox.get(timeout=left)
        except Empty:
            return self._elapsed(passes_at)
        event = self._heard(message)
        return (event,) if event else ()

    def _elapsed(self, meant_at: float) -> tuple[core.Event, ...]:
        now = self._clock.now()
        self._timers = resumed(self._timers, meant_at, now)
        if self._probe_at is not None and now >= self._probe_at:
            is_probed = self._call.span in core.GUARDED and self._progress.probe(self._call.token)
            self._probe_at = now + self._task.probe_s if is_probed else None
        if self._again_at is not None and now >= self._again_at:
            self._inject_again()
        self._timers, events = passed(self._timers, now, self._marks())
        return events

    def _inject_again(self) -> None:
        self._again_at = self._clock.now() + AGAIN_S if self._gate.puts_off() else None
        if self._again_at is not None:
            self._gate.inject()

    def _marks(self) -> Marks | None:
        return marks(self._page.words, self._call.token)

    def _heard(self, message: Message) -> core.Event | None:
        match message:
            case SpanEnd():
                return self._ended(message)
            case LeftAtomic(token):
                return core.AtomicLeft(token)
            case Signalled(signum):
                return core.Interrupted() if signum == signal.SIGINT else core.Terminated(self._is_hung() or None)
            case PutOff():
                self._inject_again()
                return None
            case AbortEnded(error):
                self._last_error = error or self._last_error
                return core.AbortEnded(failed=error is not None)
            case Told():
                return self._told(message)
            case StoreSilent():
                log.warning("rank %s: %s", self._me.slot, message.text)
                return core.StoreLost()
            case StoreBack():
                return core.StoreBack()
            case Recorded():
                self._recorded.set()
                return None
            case _:
                return None

    def _ended(self, ended: SpanEnd) -> core.Event:
        if ended.token == self._call.token:
            self._keep(ended)
        how = core.How.GAVE_UP if isinstance(ended.error, RestartAbort | NestedCall) else ended.how
        how = core.ended_as(how, self._is_hung())
        error = first_raised(ended.error) if ended.error and how is core.How.INJECTED else ended.error
        hung = self._late.has_missed(ended.token) or None
        if how not in (core.How.FAILED, core.How.INJECTED) or not isinstance(error, Exception | BaseExceptionGroup):
            return core.SpanEnded(ended.token, how, hung=hung)
        got_on = self._gate.got_on == ended.token or None
        return core.SpanEnded(
            ended.token, how, mark(error), bool(echo_in(error)) or None, got_on, lacks_memory(error) or None, hung
        )

    def _is_hung(self) -> bool:
        """Return True if the monitor has sent SIGTERM: a limit was passed, and SIGKILL follows."""
        return bool(self._page.words[HUNG])

    def _keep(self, ended: SpanEnd) -> None:
        kept = self._kept
        if ended.how is core.How.RETURNED and kept.span is core.Span.FUNCTION:
            kept.value = ended.value
        if ended.error is None:
            return
        kept.errors = (*kept.errors, ended.error)
        if ended.how is core.How.INJECTED:
            self._late.called_back(ended, kept.span, self._call.round)
        else:
            self._last_error = ended.error
            if kept.span is core.Span.FINALIZE:
                self._own[core.Reason.UNHEALTHY] = ended.error
            if kept.span in core.GUARDED:
                self._task.faulted(ended.error)
            self._untold = self._telling(ended.error, ended.how is core.How.FAILED, kept.span)

    def _is_open(self, round: int) -> bool:
        try:
            return round < NAMED_MAX and is_open(self._faults(), round)
        except StoreError:
            return False

    def _telling(self, error: BaseException, is_failure: bool, span: core.Span | None) -> Callable[[], None]:
        """Return what tells the log of this error. A traceback that repeats the last one is not written again."""
        is_new = is_failure and (places := traced(error)) != self._shown
        if is_new:
            self._shown = places
        echo = f" (an echo of another rank's failure: {echo_in(error)})" if echo_in(error) else ""
        again = " (the traceback is the same as before)" if is_failure and not is_new else ""
        text, where = (
            "rank %s, iteration %s: %s ended by %s%s%s",
            (self._me.slot, self._call.round, span and span.value),
        )
        return partial(log.error, text, *where, said(error), echo, again, exc_info=error if is_new else None)

    def _told(self, told: Told) -> core.Event | None:
        match told.answer:
            case World() as world:
                return self._enter(world, told.held)
            case Raise(failure, text) if failure.why is not Why.CLOSED:
                log.error("rank %s: %s %s", self._me.slot, failure.why.value, text)
            case _:
                pass
        return heard(told.handler, told.answer, self._task.terms, told.held)

    def _enter(self, world: World, held: Held) -> core.Event:
        """Take this rank's place in a new world. What its policy raises ends the job, and is raised to the caller."""
        terms = self._task.terms
        try:
            placing = place(terms.policy, world)
        except BaseException as error:
            self._last_error = self._own[core.Reason.OTHER_POLICY] = error
            log.error("rank %s: the rank policy raised %s", self._me.slot, said(error), exc_info=error)
            return core.Ready(world.round, active=False, enough=False, agreed=False)
        placed = self._task.enters(world, self._me, placing)
        log.info("rank %s: iteration %s, %s of %s", self._me.slot, world.round, placed.rank, placed.world_size)
        if placed.rank == 0 and held.view.state and (ended := held.view.state.ended):
            self._tell_why(ended, world.round, placed.world_size)
        words = self._page.words
        words[RANK], words[WORLD_SIZE] = placed.rank, placed.world_size
        words[ENTERED] = int(self._clock.now() * NS)
        return entered(terms, world, self._me, placing)

    def _tell_why(self, ended: Ended, round: int, size: int) -> None:
        """Tell the log why this iteration begins. The records of failures tell who failed first, and nobody waits for them:
        a thread asks the store."""
        tell = partial(log.warning, "iteration %s begins, world size %s: %s", round, size)
        why = WHY_OVER.get(ended.why, ended.why.value)
        if ended.why is not Why.FAILED:
            tell(why)
            return
        asks = threading.Thread(
            target=lambda: tell(f"{why} ({self._culprits(ended)})"), name="elastic-asking", daemon=True
        )
        try:
            threads.start(asks)
        except threads.NoThread:
            tell(why)
        else:
            self._asking = asks

    def _culprits(self, ended: Ended) -> str:
        found: tuple[Node, ...] = (ended.by,)
        if ended.round < NAMED_MAX:
            with suppress(StoreError):
                found = culprits(self._faults(), ended)
        return " or ".join(f"rank {node.slot}" for node in found)

    # --- commands out

    def _carry_out(self, command: core.Command) -> None:
        match command:
            case core.Join():
                self._join(command)
            case core.End() | core.MarkDone() | core.MarkReserve() | core.Leave() | core.Close():
                log.info("rank %s: %s", self._me.slot, command)
                self._submit(command, self._task.profile)
            case core.Record(if_open=if_open):
                self._record_if_open() if if_open else self._record(self._left_for())
            case core.Run(span, token):
                if code := self._task.code(span):
                    self._order(span, token, code)
                else:
                    self._soon.append(core.SpanEnded(token, core.How.RETURNED))
            case core.Want(token):
                self._soon.append(core.GateRead(token, self._gate.want(token)))
            case core.Inject():
                self._gate.inject()
            case core.Abort():
                self._start_abort()
            case core.Kill():
                self._page.words[UNWIND_AT] = int(self._clock.now() * NS)
                self._page.ring()
            case core.Finish():
                pass  # `_run` sees the outcome
            case other:
                assert_never(other)

    def _submit(self, command: core.Command, profile: Profile) -> None:
        """Ask the register for what this command means. A fault goes on record after the end of its round is written, and
        before the end of the job: the other ranks read it when they hear of that."""
        if isinstance(command, core.Close):
            self._record(self._left_for())
        if request := requested(command, profile):
            self._loop.submit(request)
        if isinstance(command, core.End):
            where = user_stack.innermost(self._late.stack) if command.cause is core.Cause.SOFT_TIMEOUT else ""
            error = self._task.state.fault
            self._record(self._task.fault(self._me, command.round, error, command.cause.value, where))

    def _left_for(self) -> Fault:
        cause = self._call.leaving.value if self._call.leaving else NO_MORE
        return self._task.fault(self._me, self._call.round or 0, self._last_error, cause)

    def _record_if_open(self) -> None:
        """Put on record what was under way as user code was called back. The code may as well have dealt with it."""
        error = self._kept.errors[-1] if self._kept.errors else None
        if error is not None:
            fault = evolve(
                self._task.fault(self._me, self._call.round or 0, first_raised(error), ""), origin=Origin.END
            )
            self._loop.submit(ToRecord(lambda: fault if self._is_open(fault.round) else None))

    def _record(self, fault: Fault) -> None:
        self._recorded.clear()
        self._loop.submit(ToRecord(lambda: fault))

    def _join(self, command: core.Join) -> None:
        """Join with a port that no iteration has used. Meanwhile the main thread lets go of the last iteration."""
        if self._reserved:
            self._reserved.renew()
        else:
            self._reserved = _reservation(self._task.address)
        self._submit(command, self._task.introduction(self._reserved.endpoint))
        errors, self._kept = self._kept.errors, _Iteration()
        self._task.joins()
        self._orders.put(Release(errors))

    def _order(self, span: core.Span, token: int, code: Callable[[], object]) -> None:
        settings, limits = self._call.settings, of_span(self._call.settings, span)
        self._kept.span = span
        self._probe_at = self._clock.now() + self._task.probe_s if span in core.GUARDED else None
        self._orders.put(
            Order(
                token,
                self._call.round or 0,
                span,
                code,
                self._call.active,
                _page_ns(limits.soft_s),
                _page_ns(limits.hard_s),
                int(settings.unwind_timeout / 2 * NS),
            )
        )

    def _start_abort(self) -> None:
        try:
            threads.start(threading.Thread(target=self._abort, name="elastic-abort", daemon=True))
        except threads.NoThread as error:
            log.error("rank %s: abort cannot run: %s", self._me.slot, error)
            self._inbox.put(AbortEnded(error))

    def _abort(self) -> None:
        """Run the user's abort. After one that fails this process runs no further round: what it left open would pile up.

        It closes connections, and the others fail then: the failure of this rank is on record before."""
        self._recorded.wait(RECORD_S)
        try:
            self._task.abort()
        except BaseException as error:
            log.exception("rank %s: abort failed", self._me.slot)
            self._inbox.put(AbortEnded(error))
        else:
            self._inbox.put(AbortEnded())

    def _tell_monitor(self) -> None:
        words = self._page.words
        leaving = GOES_REPLACED if self._call.replaced else int(self._call.leaving is not None)
        told = leaving, _page_ns(unwind_at(self._timers))
        changed = (words[LEAVING], words[UNWIND_AT]) != told
        words[LEAVING], words[UNWIND_AT] = told
        if changed:
            self._page.ring()


def _page_ns(at_s: float) -> int:
    """Return a time as the page has it: 0 for none."""
    return 0 if math.isinf(at_s) else int(at_s * NS)


def _reservation(address: str) -> Reservation:
    """Reserve this rank's port. Of the node's ports each rank has one, without those after it, or any other if it must."""
    text = os.environ.get(PORTS)
    if not text:
        return Reservation(address)
    try:
        return Reservation(address, ports_read(text), neighbours=0)
    except OSError as error:
        log.warning("%s; this rank takes any free port", why(error))
        return Reservation(address, ANY)
