"""The loop under the protocol, of every simulated node: `turn` -> network -> `turn`. The counterpart of
`adapters/rendezvous/loop.py`.

No decision is made here. What is submitted to a process' agenda is carried out one after the other, each until the register
answers; what comes of it is told to the agent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import assert_never

from attrs import define

from ..node import heard
from ..properties.facts import Left, WaitsForever
from ..rendezvous import (
    Evict,
    Gather,
    Observe,
    Outcome,
    Propose,
    Raise,
    Return,
    Settled,
    Violation,
    Wait,
    Write,
    gathered,
    leave,
    linger,
    proposed,
    saw,
    silent,
    turn,
    unanswered,
    woke,
)
from ..rendezvous import heard as heard_beats
from ..rendezvous.agenda import answered, begun, pause_s
from ..rendezvous.context import Operation
from ..world import Why, World
from . import sometimes
from .chance import Choose
from .future import Future
from .losses import decides, looked, slept
from .messages import ERRAND, LOOK, Answer, Counted, News, Question
from .network import Network
from .process import Hears, Process
from .simulated_store import Shown
from .story import Setting
from .witness import Witness

ASKS_MAX = 60
"""More questions of a process than this within a second, and four for each node: it waits for nothing."""


@define
class RendezvousLoops:
    setting: Setting
    choose: Choose
    future: Future
    network: Network
    witness: Witness
    hear: Hears
    turns_max: int
    """More turns of a process than this at one point in time: it spins."""
    steps: int = 0

    def run(self, process: Process) -> None:
        """Until it asks something, or waits, or has nothing to do."""
        process.timer += 1
        now = process.clock(self.future.now)
        for _ in range(self.turns_max):
            if process.request or not process.alive:
                return
            if process.inbox:
                if self._takes(process, now):
                    return
            elif under_way := process.agenda.operation:
                if self._turns(process, under_way, now):
                    return
            elif process.agenda.due:
                self._begins(process, now)
            else:
                return
        raise Violation("L6", f"{process.name} spins")

    def end(self, process: Process) -> None:
        """Nothing is left to do for it: its agent exits."""
        process.alive = False
        self.network.ends(process)

    def _begins(self, process: Process, now: float) -> None:
        jitter = 0.0 if self.setting.seed == 0 else self.choose(1_000) / 1_000
        process.agenda, process.held, errand = begun(process.agenda, process.held, now, jitter)
        if errand:
            self.network.ask(process, ERRAND, now)

    def _turns(self, process: Process, under_way: Operation, now: float) -> bool:
        """One turn; whether the thread sleeps now."""
        self.steps += 1
        ask = turn(under_way, process.held, now)
        match ask:
            case Wait(until=until):
                if until > now:
                    return self._waits(process, under_way, ask)
                self._asks(process, LOOK, now)
            case Observe(nodes):
                if len(nodes) > 1:
                    sometimes.looked_at_all(self.witness.counts, process.held, now)
                self._asks(process, ask, now)
            case Propose() | Gather():
                self._asks(process, ask, now)
            case Write(_, _, edit):
                if isinstance(edit, Evict):
                    self.witness.notes_slander(process, edit)
                decides(process, ask)
                sometimes.wanted(self.witness.counts, process, edit, now)
                self._asks(process, ask, now)
            case Return() | Raise():
                self._told(process, under_way, ask, now)
            case other:
                assert_never(other)
        return False

    def _asks(self, process: Process, question: Question, now: float) -> None:
        second = int(self.future.now)
        if process.second != second:
            process.second, process.asked_before = second, process.requests
        elif process.requests - process.asked_before > ASKS_MAX + 4 * self.setting.nodes:
            raise Violation("L6", f"{process.name} asks without end")
        self.network.ask(process, question, now)

    def _waits(self, process: Process, under_way: Operation, ask: Wait) -> bool:
        if math.isinf(ask.until):
            self.witness.judge.saw(WaitsForever(process.held, under_way.handler))
        else:
            self.future.at(process.true(ask.until), self._wakes, process, process.timer)
        if not process.armed:
            self.network.watch(process, ask.token, process.clock(self.future.now))
        return True

    def _wakes(self, process: Process, timer: int) -> None:
        if process.timer == timer and not self.network.waits(process, self._wakes, process, timer):
            self.run(process)

    def _told(self, process: Process, under_way: Operation, ask: Return | Raise, now: float) -> None:
        answer = ask.outcome if isinstance(ask, Return) else ask
        if isinstance(answer, Raise) and answer.failure.why is Why.ILLEGAL:
            number, _, fact = answer.text.rpartition(" breaks ")[2].partition(": ")
            raise Violation(number, f"{process.name} {under_way.handler.__name__}: {fact}")
        if isinstance(answer, Raise):
            self.witness.judges_excuse(process, answer.failure.why)
        process.agenda, process.held = answered(process.agenda, process.held, answer)
        sometimes.told(self.witness.counts, process, under_way, answer)
        if process.operator:
            process.alive = False
            return
        if under_way.handler is linger:
            self.end(process)
            return
        if isinstance(answer, World):
            process.worlds += 1
        event = heard(under_way.handler, answer, now)
        if event is not None:
            self.hear(process, event)
        if _has_left(under_way, answer):
            self.witness.judge.saw(Left(process.node))

    def _takes(self, process: Process, now: float) -> bool:
        """What the waiter has seen; whether the thread pauses because it could not see."""
        news = process.inbox.popleft()
        if news is None:
            self.silent(process)
            return True
        self._sees(process, *news, now)
        return False

    # --- what it hears of the network

    def answered(self, process: Process, question: Question, answer: Answer, sent_at: float) -> None:
        now = process.clock(self.future.now)
        process.unanswered = 0
        if isinstance(question, Observe):
            sometimes.afresh(self.witness.counts, process.held, sent_at)
            assert isinstance(answer, Counted)
            process.held = heard_beats(process.held, answer.counters, sent_at, now, answer.named)
        elif isinstance(question, Propose):
            assert isinstance(answer, int)
            process.held = proposed(process.held, question.proposal, answer, now)
        elif isinstance(question, Gather):
            assert isinstance(answer, Mapping)
            process.held = gathered(process.held, answer, now)
        elif question is not ERRAND:
            process.read_after = process.requests
            assert isinstance(answer, Shown)
            if isinstance(question, Write) and answer.state is not question.state:
                sometimes.refused(self.witness.counts, question, answer.state)
            self._sees(process, answer, sent_at, now)
        self.run(process)

    def _sees(self, process: Process, shown: Shown, sent_at: float, now: float) -> None:
        process.unanswered = 0
        looked(process, shown.state, sent_at)
        before = process.held
        process.held = saw(before, shown.state, sent_at, now, shown.here)
        if process.held.state is not before.state:
            self.witness.losses.changed(process, before)
            sometimes.changed(self.witness.counts, process, before)

    def woke(self, process: Process) -> None:
        """It stood still; if for long, it knows."""
        span = self.future.now - (process.stopped_since or 0.0)
        process.stopped_since = None
        if span * process.rate > process.held.settings.ttl:
            process.held = woke(process.held, process.clock(self.future.now))
            slept(process, process.clock(self.future.now))

    def unknown(self, process: Process, write: Write) -> None:
        process.held = unanswered(process.held, write.token, process.clock(self.future.now))
        self.run(process)

    def silent(self, process: Process) -> None:
        """It pauses, and goes on."""
        now = process.clock(self.future.now)
        process.held = silent(process.held, now)
        process.unanswered += 1
        process.timer += 1
        until = process.true(now + pause_s(process.unanswered, self.setting.interval))
        self.future.at(until, self._wakes, process, process.timer)

    def changed(self, process: Process, news: News | None) -> None:
        process.inbox.append(news)
        self.run(process)


def _has_left(operation: Operation, answer: Outcome | Raise) -> bool:
    return operation.handler is leave and isinstance(answer, Settled)
