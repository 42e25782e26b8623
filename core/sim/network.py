"""The network between processes and the store: questions, answers, heartbeats, pushed changes, and their faults.

A message takes its time each way. A question without an answer in time is given up. The outcome of a write is then unknown:
it may still land. A change is pushed; a process that missed the push finds the change at its next look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import define, field

from ..evolving import maker
from ..rendezvous import (
    Answer,
    Counted,
    Did,
    Errand,
    Gather,
    Heartbeats,
    Input,
    Look,
    Missed,
    NoState,
    Observe,
    Proposals,
    Propose,
    Pushed,
    Question,
    RendezvousState,
    Silent,
    Token,
    Unknown,
    Write,
)
from ..world import Life, Node
from .chance import Choose
from .future import Future
from .process import Process
from .simulated_store import Store
from .story import Backend

ANSWER_TIMEOUT_S = 2.0
"""How long a client of the store waits for an answer."""
DELAYS_S = (0.0002, 0.0003, 0.0005, 0.0008, 0.001, 0.001, 0.002, 0.004, 0.02)
"""How long a message may take."""


class Loops(Protocol):
    """The rendezvous loops of the processes, as the network calls them."""

    def answered(self, process: Process, question: Question, answer: Answer) -> None: ...

    def hears(self, process: Process, fed: Input) -> None: ...

    def woke(self, process: Process) -> None: ...


class Hearts(Protocol):
    """The hearts of the processes, as the network calls them."""

    def beaten(self, process: Process, sent_at: float | None, life: Life | None) -> None: ...


class Witness(Protocol):
    """The witness, as the network calls it."""

    def landed(
        self, process: Process, number: int, before: RendezvousState | None, write: Write, here: bool
    ) -> None: ...

    def seen(self, what: str) -> None: ...


FOREIGN = "format"
"""How the sentence begins that refuses a register of another version."""
WRITES, READS = (Write, Propose, Errand), (Write, Look, Observe)
DID, UNKNOWN, SILENT = Did(), Unknown(), Silent()
MISSED = Missed(SILENT)
_heartbeats, _news = maker(Heartbeats), maker(Pushed)


@define
class Network:
    future: Future
    store: Store
    choose: Choose
    steady: bool
    """If True, every message takes one millisecond."""
    interval: float
    tail: float
    """How much longer the slowest of a thousand messages takes."""
    loops: Loops = field(init=False)
    hearts: Hearts = field(init=False)
    witness: Witness = field(init=False)
    watching: dict[str, Process] = field(factory=dict)

    def tells(self, loops: Loops, hearts: Hearts, witness: Witness) -> None:
        """Set who hears what becomes of the messages; they need the network to be made first."""
        self.loops, self.hearts, self.witness = loops, hearts, witness

    def delay(self, process: Process) -> float:
        if self.steady:
            return process.delay + 0.001
        usual = process.delay + DELAYS_S[self.choose(len(DELAYS_S))]
        return usual + self.tail / (1 + self.choose(1_000)) if self.tail else usual

    # --- questions

    def ask(self, process: Process, question: Question) -> None:
        process.requests += 1
        process.request = number = process.requests
        now, leg = self.future.now, self.delay(process)
        if process.late_write and isinstance(question, Write | Propose):
            leg, process.late_write = leg + process.late_write, 0.0
            process.late_until = now + min(leg, ANSWER_TIMEOUT_S)
        lost = process.cut_out_until > now
        if lost or leg > ANSWER_TIMEOUT_S:
            self.future.at(now + ANSWER_TIMEOUT_S, self._times_out, process, number, question)
        if not lost:
            self.future.at(now + leg, self._arrives, process, number, question, now)

    def _arrives(self, process: Process, number: int, question: Question, sent: float) -> None:
        now, store = self.future.now, self.store
        if store.down_until > now:
            unsure = isinstance(question, Write) and self.choose(2) == 1
            self.future.at(now + self.delay(process), self._fails, process, number, question, unsure)
            return
        if store.full_until > now and isinstance(question, WRITES):
            self.witness.seen("a write that finds no space")
            self.future.at(now + self.delay(process), self._fails, process, number, question, False)
            return
        if store.format != process.format and store.register is not None and isinstance(question, READS):
            self.future.at(now + self.delay(process), self._answers, process, number, question, self._foreign(process))
            return
        answer: Answer = DID
        landed = False
        if isinstance(question, Write):
            before, here = store.register, store.here
            if landed := store.set(question, now):
                store.format = process.format
                self.witness.landed(process, number, before, question, here)
                self._push()
            answer = store.shown
        elif isinstance(question, Observe):
            answer = _heartbeats(store.counters(question.nodes, now), store.named)
        elif isinstance(question, Look):
            answer = store.shown
        elif isinstance(question, Propose):
            answer = Counted(store.propose(process.node, question.proposal))
        elif isinstance(question, Gather):
            answer = Proposals(store.proposals_of(question.nodes, question.entering))
        if process.twice and isinstance(question, Write | Propose):
            self.future.at(now + process.twice, self._comes_again, process.node, question, store.losses)
            process.twice = 0.0
        leg = self.delay(process)
        if process.late_reply:
            leg, process.late_reply = leg + process.late_reply, 0.0
            process.late_until = now + leg
        lost = process.cut_in_until > now
        if process.lose_reply and isinstance(question, Write | Propose):
            lost, process.lose_reply = True, False
            process.late_until = sent + ANSWER_TIMEOUT_S
        if lost and landed:
            self.witness.seen("a reply lost after commit")
        if lost or now + leg - sent > ANSWER_TIMEOUT_S:
            self.future.at(max(sent + ANSWER_TIMEOUT_S, now), self._times_out, process, number, question)
        if not lost:
            self.future.at(now + leg, self._answers, process, number, question, answer)

    def _foreign(self, process: Process) -> NoState:
        return NoState(f"{FOREIGN} {self.store.format}, this version reads format {process.format}")

    def _comes_again(self, node: Node, question: Write | Propose, losses: int) -> None:
        """Let a request that was carried out come once more, to the same store."""
        store = self.store
        if store.down_until > self.future.now or store.losses > losses:
            return
        if isinstance(question, Propose):
            store.propose(node, question.proposal)
        else:
            landed = store.set(question, self.future.now)
            assert not landed, f"a write of {node} lands twice"
        self.witness.seen("a request comes twice")

    def _answers(self, process: Process, number: int, question: Question, answer: Answer) -> None:
        if self.waits(process, self._answers, process, number, question, answer):
            return
        if process.request == number:
            process.request = 0
            self.loops.answered(process, question, answer)

    def _times_out(self, process: Process, number: int, question: Question) -> None:
        self._fails(process, number, question, isinstance(question, Write))

    def _fails(self, process: Process, number: int, question: Question, unsure: bool) -> None:
        if self.waits(process, self._fails, process, number, question, unsure):
            return
        if process.request == number:
            process.request = 0
            if isinstance(question, Errand):
                self.witness.seen("an errand fails")
            if unsure and isinstance(question, Write):
                process.unsure.add(number)
                self.loops.hears(process, UNKNOWN)
            else:
                self.loops.hears(process, SILENT)

    def waits(self, process: Process, what: Callable[..., None], *of: object) -> bool:
        """Return True if this must not happen to the process: never, because it is dead, or not now, because it stands
        still."""
        if process.alive and process.stopped_since is None:
            return False
        if not process.alive:
            return True
        if process.stopped_until > self.future.now:
            self.future.at(process.stopped_until, what, *of)
            return True
        self.loops.woke(process)
        return False

    # --- the push of a change

    def watch(self, process: Process, token: Token | None, sent_at: float) -> None:
        """Let the waiter's thread wait until the register is no longer what this token names. (The question itself takes no
        time: a change that is written meanwhile is pushed all the same.)"""
        process.watch, process.watch_sent_at = token, sent_at
        self._watches(process)

    def _watches(self, process: Process) -> None:
        now = self.future.now
        if process.waiter_until > now:
            self.future.at(process.waiter_until, self._watches, process)
        elif self.store.down_until > now or process.cut_out_until > now or process.cut_in_until > now:
            self.future.at(now + ANSWER_TIMEOUT_S, self._misses, process)
        elif self.store.token != process.watch or not self.store.here:  # a copy is never what the token names
            self.future.at(now + self.delay(process), self._changed, process, self._pushed(process), now)
        else:
            self.watching[process.name] = process

    def _push(self) -> None:
        """Push the change to all who wait; a process that is not reached looks again."""
        waiting, self.watching = self.watching, {}
        now = self.future.now
        for process in waiting.values():
            if process.gap or process.cut_in_until > now:
                process.gap = False
                self.future.at(now + self.interval, self._watches_again, process, self.store.losses)
            else:
                self.future.at(now + self.delay(process), self._changed, process, self._pushed(process), now)

    def _watches_again(self, process: Process, losses: int) -> None:
        """Let the waiter look again. One whose store has been lost meanwhile has lost its connection too, and says so."""
        if self.store.losses == losses:
            self._watches(process)
        else:
            self._misses(process)

    def _pushed(self, process: Process) -> Pushed | Missed:
        """Return what the waiter of this process is shown now, by the question that it asked when it began to wait."""
        shown = self.store.shown
        if self.store.format != process.format and shown.state is not None:
            return Missed(self._foreign(process))
        return _news(shown.state, process.watch_sent_at, shown.here)

    def _changed(self, process: Process, news: Pushed | Missed, shown_at: float) -> None:
        if not self._waiter_waits(process, self._changed, process, news, shown_at):
            process.waits_for_push = False
            if isinstance(news, Pushed):
                process.answered_at = max(process.answered_at, shown_at)
                if news.state is not self.store.register:
                    self.witness.seen("a stale push")
            self.loops.hears(process, news)

    def _misses(self, process: Process) -> None:
        if not self._waiter_waits(process, self._misses, process):
            process.waits_for_push = False
            self.loops.hears(process, MISSED)

    def _waiter_waits(self, process: Process, what: Callable[..., None], *of: object) -> bool:
        if self.waits(process, what, *of):
            return True
        if process.waiter_until <= self.future.now:
            return False
        self.future.at(process.waiter_until, what, *of)
        return True

    def breaks(self) -> None:
        """The store goes away: each waiting process hears that it is not there."""
        waiting, self.watching = self.watching, {}
        for process in waiting.values():
            self.future.at(self.future.now + self.delay(process), self._misses, process)

    def forgets(self) -> None:
        """The store has forgotten: each waiting process looks at what is there."""
        self._push()

    # --- heartbeats

    def beat(self, process: Process, sent_at: float) -> None:
        process.counter = 1 if self.store.backend is Backend.LEASE else process.counter + 1
        process.beating = True
        now, leg = self.future.now, self.delay(process)
        if process.cut_out_until > now or leg > ANSWER_TIMEOUT_S:
            self.future.at(now + ANSWER_TIMEOUT_S, self._beat_ends, process, None)
        if process.cut_out_until <= now:
            self.future.at(now + leg, self._beat_arrives, process, process.counter, sent_at, leg)

    def _beat_arrives(self, process: Process, counter: int, sent_at: float, leg: float) -> None:
        now = self.future.now
        if self.store.down_until > now:
            self.future.at(now + self.delay(process), self._beat_ends, process, None)
            return
        self.store.beat(process.node, counter, now)
        life = self.store.named
        if leg > ANSWER_TIMEOUT_S:
            return
        if self.store.format != process.format and self.store.register is not None:
            self.future.at(now + self.delay(process), self._beat_ends, process, None)
            return
        if process.cut_in_until > now:
            self.future.at(now + ANSWER_TIMEOUT_S, self._beat_ends, process, None)
        elif leg + (back := self.delay(process)) > ANSWER_TIMEOUT_S:
            self.future.at(now + ANSWER_TIMEOUT_S - leg, self._beat_ends, process, None)
        else:
            self.future.at(now + back, self._beat_ends, process, sent_at, life)

    def _beat_ends(self, process: Process, sent_at: float | None, life: Life | None = None) -> None:
        if self.waits(process, self._beat_ends, process, sent_at, life):
            return
        if process.heart_until > self.future.now:
            self.future.at(process.heart_until, self._beat_ends, process, sent_at, life)
            return
        process.beating = False
        self.hearts.beaten(process, sent_at, life)

    def ends(self, process: Process) -> None:
        """The agent has ended in order: take its heartbeat away."""
        if process.cut_out_until <= self.future.now:
            self.future.at(self.future.now + self.delay(process), self._removes, process.node)

    def _removes(self, node: Node) -> None:
        if self.store.down_until <= self.future.now:
            self.store.pulses.pop(node, None)
