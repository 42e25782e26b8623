"""The driver of the rendezvous' client: carries out what `step` asks for and feeds it what came of that, in its own thread.

No decision is made here. The agent submits requests and failures to record; what comes of each is told to it. A second
thread, with a connection of its own, waits for the register's next change, and only posts it.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeAlias, assert_never

from ...core import rendezvous
from ...core.causes import is_told
from ...core.rendezvous import (
    Advance,
    Answer,
    Ask,
    Client,
    Counted,
    Did,
    Draw,
    Drawn,
    Errand,
    Gather,
    Held,
    Idle,
    Input,
    Linked,
    Look,
    Missed,
    NoState,
    Observe,
    Passed,
    Pause,
    Prepared,
    Proposals,
    Propose,
    Pushed,
    Question,
    Request,
    Silent,
    Standstill,
    Submitted,
    Token,
    Unknown,
    Wait,
    Woke,
    Write,
    step,
)
from ...core.values import define, frozen
from ...core.world import Fault, Unfit
from .. import threads
from ..clock import Clock
from ..store.notes import FAULTS, UNFIT
from ..store.port import Backend, NotServed, OutcomeUnknown, StoreError, Unreadable
from .stall_detector import StallDetector


@frozen
class Recorded:
    """A failure is on record."""

    fault: Fault


@frozen
class StoodStill:
    """This process stood still, until a moment ago, for so long that others may have gone on without it."""

    span_s: float
    at: float


LoopNotice: TypeAlias = rendezvous.Notice | Recorded | StoodStill
"""The news of the loop."""


@define(eq=False)
class ToRecord:
    """A failure to put on record before whatever is submitted next; read in the loop's thread, since logs take time. It is
    read once: the loop keeps what was read, for a store that forgets it. None: there is no failure after all."""

    read: Callable[[], Fault | None]
    fault: Fault | None = None


@frozen
class _Stop:
    """The agent is done."""


Post = Callable[[LoopNotice], None]
Took = Callable[..., None]
"""Writes down a step: a function of the core, what it was given and what it answered."""


class RendezvousLoop:
    """One node's operations on the register."""

    def __init__(
        self,
        backend: Backend,
        held: Held,
        clock: Clock,
        post: Post,
        failed: Callable[[BaseException], object],
        took: Took = lambda *given: None,
    ) -> None:
        """`failed` is called with an error that has ended one of the loop's threads: no operation ends any more."""
        self._backend = backend.clone()
        self._waiting = backend.clone()
        self._client = Client(held)
        self._clock = clock
        self._post = post
        self._took = took
        self._chance = random.Random()
        self._inbox: SimpleQueue[Submitted | Pushed | Missed | Linked | Standstill | Advance | _Stop] = SimpleQueue()
        self._posted: list[Submitted | Pushed | Missed | Linked | Standstill | Advance | _Stop] = []
        """These came out of the inbox and were not fed yet."""
        self._tokens: SimpleQueue[Token | _Stop | None] = SimpleQueue()
        self._stall_detector = StallDetector(held.who.settings.ttl, failed=failed)
        self._threads = [
            threading.Thread(target=threads.guarded(run, failed), name=name, daemon=True)
            for name, run in (("elastic-rendezvous", self._run), ("elastic-waiter", self._wait_for_changes))
        ]

    def start(self) -> None:
        self._stall_detector.start()
        for thread in self._threads:
            threads.start(thread)

    def submit(self, item: Request | Prepared | ToRecord | Unfit) -> None:
        self._inbox.put(Submitted((Errand(item) if isinstance(item, ToRecord | Unfit) else item,)))

    def hear_of_link(self, linked: Linked) -> None:
        """Take what a link tells of its node. Any thread may call this."""
        self._inbox.put(linked)

    def hear_of_workers(self, seen: Standstill | Advance) -> None:
        """Take what a look at the workers of this node shows. Any thread may call this."""
        self._inbox.put(seen)

    def stop(self) -> None:
        """Give up what is under way. Idempotent, also before `start`; returns when the threads are done."""
        self._inbox.put(_Stop())
        self._tokens.put(_Stop())
        self._waiting.close()
        self._backend.close()
        self._stall_detector.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    # --- the loop's thread

    def _run(self) -> None:
        ask: Ask = Idle()
        while input := self._comes_of(ask):
            ask = self._feed(input) or ask

    def _feed(self, input: Input) -> Ask | None:
        """Take one step of the client, and tell the owner of it."""
        if span_s := self._stall_detector.stalled():
            self._post(StoodStill(span_s, self._clock.now()))
            self._step(Woke())
        return self._step(input)

    def _step(self, input: Input) -> Ask | None:
        now = self._clock.now()
        self._client, ask, notices = step(self._client, input, now)
        self._took(step, input, now, ask)
        for notice in notices:
            self._post(notice)
        return ask

    def _comes_of(self, ask: Ask) -> Input | None:
        """Carry out an ask. Return the input that comes of it; None at the end."""
        match ask:
            case Wait(token, until, arm):
                if arm:
                    self._tokens.put(token)
                return self._next(until)
            case Pause(until):
                return self._next(until)
            case Idle():
                return self._next(None)
            case Draw():
                return self._next(None) if self._is_posted() else Drawn(self._chance.random())
            case question:
                return self._answered(question)

    def _next(self, until: float | None) -> Input | None:
        """Return the next thing posted, waited for until this point in time (None: as long as it takes).

        What the agent says comes before what a store or a link tells. Else a round could be ended for a newcomer while the
        failure of a worker waits to be told, and that failure would not be charged.
        """
        if not self._posted:
            left = None if until is None else min(max(until - self._clock.now(), 0.0), threading.TIMEOUT_MAX)
            try:
                self._posted.append(self._inbox.get(timeout=left))
            except Empty:
                return Passed()
        while not self._inbox.empty():
            self._posted.append(self._inbox.get())
        self._posted.sort(key=lambda each: not isinstance(each, Submitted))
        message = self._posted.pop(0)
        return None if isinstance(message, _Stop) else message

    def _is_posted(self) -> bool:
        return bool(self._posted) or not self._inbox.empty()

    def _answered(self, question: Question) -> Input | None:
        """Return the answer, after what was posted before it. Where none comes, what was posted cuts the pause short."""
        answer = self._answer(question)
        while self._is_posted() and not isinstance(answer, Silent | NoState):
            if (message := self._next(None)) is None:
                return None
            self._feed(message)
        return answer

    def _answer(self, question: Question) -> Answer:
        try:
            return self._asked(question)
        except OutcomeUnknown as error:
            return Unknown() if isinstance(question, Write) else Silent(str(error))
        except StoreError as error:
            return _no_answer(error)

    def _asked(self, question: Question) -> Answer:
        """Raises StoreError."""
        backend = self._backend
        match question:
            case Look():
                return backend.get()
            case Write(state, token):
                return backend.set(state, token)
            case Observe(nodes):
                return backend.heartbeats(nodes)
            case Propose(proposal):
                return Counted(backend.notes.put_proposal(self._client.held.who.node, proposal))
            case Gather(nodes, entering):
                return Proposals(backend.notes.proposals(nodes, entering))
            case Errand(ToRecord(_, Fault() as fault)):
                return self._given_back(fault)
            case Errand(ToRecord() as wanted):
                wanted.fault = wanted.read()
                return self._recorded(wanted.fault) if wanted.fault else Did()
            case Errand(Unfit() as unfit):
                return self._puts(unfit)
            case Errand():
                return Did()
            case other:
                assert_never(other)

    def _recorded(self, fault: Fault) -> Did | Silent:
        try:
            self._backend.notes.add(FAULTS, fault)
        except StoreError as error:
            return Silent(str(error))  # the report of this node shows it all the same
        finally:
            self._post(Recorded(fault))
        return Did()

    def _given_back(self, fault: Fault) -> Did | Silent:
        """Put a failure on record again, if the store does not have it."""
        try:
            if not is_told(fault, self._backend.notes.faults()):
                self._backend.notes.add(FAULTS, fault)
        except StoreError as error:
            return Silent(str(error))
        return Did()

    def _puts(self, unfit: Unfit) -> Did | Silent:
        """Put down why this node stays out, if the store does not have it."""
        try:
            if unfit not in self._backend.notes.all(UNFIT):
                self._backend.notes.add(UNFIT, unfit)
        except StoreError as error:
            return Silent(str(error))
        return Did()

    # --- the waiter's thread

    def _wait_for_changes(self) -> None:
        while not isinstance(token := self._tokens.get(), _Stop):
            sent_at = self._clock.now()
            try:
                shown = self._waiting.wait_for_change(token, math.inf)
                self._inbox.put(Pushed(shown.state, sent_at, shown.here))
            except StoreError as error:
                self._inbox.put(Missed(_no_answer(error)))


def _no_answer(error: StoreError) -> Silent | NoState:
    if isinstance(error, NotServed):
        return NoState(str(error), is_unserved=True)
    return NoState(str(error)) if isinstance(error, Unreadable) else Silent(str(error))
