"""The loop under the protocol: `turn` -> backend -> `turn`, in a thread of its own.

No decision is made here. The agent submits operations; they are carried out one after the other, each until the register
answers; when none is left, the node watches the world that its workers run in. What comes of each is told to the agent.

A second thread, with a client of its own, waits for the register's next change, and only posts it.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Concatenate, ParamSpec, assert_never

from attrs import frozen

from ...core.rendezvous import (
    Gather,
    Held,
    Observe,
    Operation,
    Outcome,
    Proposal,
    Propose,
    Raise,
    Return,
    Token,
    Wait,
    Write,
    gathered,
    heard,
    proposed,
    saw,
    silent,
    turn,
    unanswered,
    unreadable,
    woke,
)
from ...core.rendezvous.agenda import Agenda, Errand, Request, answered, begun, pause_s, submitted
from ...core.world import Fault, Node
from .. import threads
from ..clock import Clock
from ..report.news import Notice, NoTrace, Recorded, Restored, Seen, StoreBack, StoreSilent, Told, Trace
from ..store.port import Backend, OutcomeUnknown, Shown, StoreError, Unreadable
from .stall_detector import StallDetector

Given = ParamSpec("Given")


@frozen
class ToRecord:
    """A failure to put on record before whatever is submitted next; read in the loop's thread, since logs take time."""

    read: Callable[[], Fault]


@frozen
class _Changed:
    """What the waiter saw, by a request sent at this time."""

    shown: Shown
    sent_at: float


@frozen
class _Unseen:
    """The waiter could not see the register."""

    error: StoreError


@frozen
class _Stop:
    """The agent is done."""


Post = Callable[[Notice], None]
Guard = Callable[[Callable[[], None]], None]


class RendezvousLoop:
    """One node's operations on the register."""

    def __init__(
        self,
        backend: Backend,
        held: Held,
        clock: Clock,
        post: Post,
        trace: Trace | None = None,
        guard: Guard = lambda thread: thread(),
    ) -> None:
        """`guard` runs each of the loop's threads, and says what becomes of an error in one."""
        self._backend = backend.clone()
        self._waiting = backend.clone()
        self._held = held
        self._clock = clock
        self._post = post
        self._trace = trace or NoTrace()
        self._chance = random.Random()
        self._inbox: SimpleQueue[Request | ToRecord | _Changed | _Unseen | _Stop] = SimpleQueue()
        self._agenda = Agenda()
        self._tokens: SimpleQueue[Token | _Stop | None] = SimpleQueue()
        self._armed = False
        self._unanswered_before = 0
        self._stopped = False
        self._stall_detector = StallDetector(held.settings.ttl)
        self._threads = [
            threading.Thread(target=guard, args=(self._run,), name="elastic-rendezvous", daemon=True),
            threading.Thread(target=guard, args=(self._wait_for_changes,), name="elastic-waiter", daemon=True),
        ]

    def start(self) -> None:
        self._stall_detector.start()
        for thread in self._threads:
            threads.start(thread)

    def submit(self, request: Request | ToRecord) -> None:
        self._inbox.put(request)

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
        while not self._stopped:
            if not self._inbox.empty():
                self._take(None)
            elif self._agenda.due:
                self._begin()
            elif under_way := self._agenda.operation:
                self._carry_on(under_way)
            else:
                self._take(None)

    def _begin(self) -> None:
        now, jitter = self._clock.now(), self._chance.random()
        self._agenda, self._held, errand = begun(self._agenda, self._held, now, jitter)
        self._trace.took(begun, now, jitter, self._agenda.operation.handler if self._agenda.operation else None)
        if errand and isinstance(errand.what, ToRecord):
            self._record(errand.what.read())

    def _carry_on(self, under_way: Operation) -> None:
        """One turn of what is under way."""
        self._wake()
        now = self._clock.now()
        ask = turn(under_way, self._held, now)
        self._trace.took(turn, now, ask)
        match ask:
            case Write() as write:
                self._write(write)
            case Wait(token, until):
                self._wait(token, until)
            case Observe(nodes):
                self._observe(nodes)
            case Propose(proposal):
                self._propose(proposal)
            case Gather(nodes):
                self._gather(nodes)
            case Return(outcome):
                self._tell(under_way, outcome)
            case Raise() as refusal:
                self._tell(under_way, refusal)
            case other:
                assert_never(other)

    def _tell(self, op: Operation, answer: Outcome | Raise) -> None:
        self._agenda, self._held = answered(self._agenda, self._held, answer)
        self._post(Told(op.handler, answer, self._held))

    def _record(self, fault: Fault) -> None:
        try:
            self._backend.put_fault(fault)
        except StoreError:
            pass  # the report of this node shows it all the same
        self._post(Recorded(fault))

    def _write(self, write: Write) -> None:
        token, sent_at = write.token, self._clock.now()
        try:
            stands = self._backend.set(write.state, token)
        except OutcomeUnknown:
            self._remember(unanswered, token, self._clock.now())
        except StoreError as error:
            self._unanswered(error)
        else:
            self._saw(stands, sent_at)

    def _observe(self, nodes: tuple[Node, ...]) -> None:
        sent_at = self._clock.now()
        try:
            read = self._backend.heartbeats(nodes)
        except StoreError as error:
            self._unanswered(error)
        else:
            self._answered()
            self._remember(heard, read.counters, sent_at, self._clock.now(), read.life)

    def _propose(self, proposal: Proposal) -> None:
        try:
            count = self._backend.put_proposal(self._held.node, proposal)
        except StoreError as error:
            self._unanswered(error)
        else:
            self._answered()
            self._remember(proposed, proposal, count, self._clock.now())

    def _gather(self, nodes: tuple[Node, ...]) -> None:
        try:
            proposals = self._backend.proposals(nodes)
        except StoreError as error:
            self._unanswered(error)
        else:
            self._answered()
            self._remember(gathered, proposals, self._clock.now())

    def _wait(self, token: Token | None, until: float) -> None:
        sent_at = self._clock.now()
        if until > sent_at:
            self._arm(token)
            self._take(until)
            return
        try:
            stands = self._backend.get()
        except StoreError as error:
            self._unanswered(error)
        else:
            self._saw(stands, sent_at)

    def _arm(self, token: Token | None) -> None:
        """Have the waiter wait. One that waits on an older token is about to return, since the register has moved on."""
        if not self._armed:
            self._armed = True
            self._tokens.put(token)

    def _wake(self) -> None:
        """Nothing is decided by what was known before a sleep."""
        if self._stall_detector.stalled():
            self._remember(woke, self._clock.now())

    def _saw(self, shown: Shown, sent_at: float) -> None:
        self._wake()
        self._answered()
        before = self._held
        self._remember(saw, shown.state, sent_at, self._clock.now(), shown.here)
        state, now = self._held.state, self._clock.now()
        if state is None or state is before.state:
            return
        if before.state is not None and state.life != before.state.life:
            found = before.found.state if before.found else None
            by_me = state.life.nonce == before.nonce.nonce
            self._post(Restored(before.state, found, state, by_me, now))
        self._post(Seen(state, now))

    def _answered(self) -> None:
        if self._unanswered_before > 1:
            self._post(StoreBack(self._clock.now()))
        self._unanswered_before = 0

    def _unanswered(self, error: StoreError) -> None:
        """Nothing can be decided by this. The next try comes after a pause, or when something is heard."""
        if isinstance(error, Unreadable):
            self._remember(unreadable, str(error))
        else:
            self._remember(silent, self._clock.now())
        self._unanswered_before += 1
        pause = pause_s(self._unanswered_before, self._held.settings.keep_alive_interval)
        if self._unanswered_before == 2:
            self._post(StoreSilent(str(error), self._held.silent_since or self._clock.now()))
        self._take(self._clock.now() + pause)

    def _take(self, until: float | None) -> None:
        """The next message, waited for until this point in time (None: as long as it takes)."""
        left = None if until is None else max(until - self._clock.now(), 0.0)
        try:
            message = self._inbox.get(timeout=None if left is None else min(left, threading.TIMEOUT_MAX))
        except Empty:
            return
        match message:
            case _Stop():
                self._stopped = True
            case _Changed(shown, sent_at):
                self._armed = False
                self._saw(shown, sent_at)
            case _Unseen(error):
                self._armed = False
                self._unanswered(error)
            case Request() as request:
                self._submit(request)
            case ToRecord() as record:
                self._submit(Errand(record))

    def _submit(self, item: Request | Errand) -> None:
        self._trace.took(submitted, item)
        self._agenda = submitted(self._agenda, item)

    def _remember(
        self, function: Callable[Concatenate[Held, Given], Held], *given: Given.args, **named: Given.kwargs
    ) -> None:
        """What an answer makes of what the node remembers."""
        self._trace.took(function, *given, **named)
        self._held = function(self._held, *given, **named)

    # --- the waiter's thread

    def _wait_for_changes(self) -> None:
        while not isinstance(token := self._tokens.get(), _Stop):
            sent_at = self._clock.now()
            try:
                self._inbox.put(_Changed(self._waiting.wait_for_change(token, math.inf), sent_at))
            except StoreError as error:
                self._inbox.put(_Unseen(error))
