"""The network between processes and the store: questions, answers, heartbeats, pushed changes, and their faults.

A message takes its time each way. A question without an answer in time is given up. The outcome of a write is then unknown:
it may still land. A change is pushed; a process that missed the push finds the change at its next look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from attrs import define, field

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
from .chance import Choose, one
from .future import Future
from .kinds import Kind
from .process import Process, Thread
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

    def takes(self, node: Node, what: object) -> None: ...

    def seen(self, what: str) -> None: ...


FOREIGN = "format"
"""How the sentence begins that refuses a register of another version."""
CHANGES = Write | Propose
WRITES, READS = (Write, Propose, Errand), (Write, Look, Observe)
DID, UNKNOWN, SILENT = Did(), Unknown(), Silent()
MISSED = Missed(SILENT)


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
    watching: dict[Node, Process] = field(factory=dict)
    delays: Sequence[float] = DELAYS_S
    own: Mapping[type[Question], Sequence[float]] = field(factory=dict)
    """How long a message may take that asks this, or answers it, where that is known."""

    def tells(self, loops: Loops, hearts: Hearts, witness: Witness) -> None:
        """Set who hears what becomes of the messages; they need the network to be made first."""
        self.loops, self.hearts, self.witness = loops, hearts, witness

    def delay(self, process: Process, question: Question | None = None) -> float:
        trouble = process.trouble
        slow = trouble.delay if trouble.marks else 0.0
        if self.steady:
            return slow + 0.001
        usual = slow + one(self.choose, (question is not None and self.own.get(type(question))) or self.delays)
        return usual + self.tail / (1 + self.choose(1_000)) if self.tail else usual

    # --- questions

    def ask(self, process: Process, question: Question) -> None:
        loop = process.loop
        loop.request = loop.requests = number = loop.requests + 1
        now, leg, trouble = self.future.now, self.delay(process, question), process.trouble
        if trouble.marks and isinstance(question, CHANGES) and (late := trouble.takes(Kind.LATE_WRITE)):
            leg += late
            trouble.late_until = now + min(leg, ANSWER_TIMEOUT_S)
        lost = trouble.cut_out_until > now
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
        if store.format != process.launch.format and store.register is not None and isinstance(question, READS):
            self.future.at(now + self.delay(process), self._answers, process, number, question, self._foreign(process))
            return
        answer: Answer = DID
        landed = False
        if isinstance(question, Observe):
            answer = Heartbeats(store.counters(question.nodes, now), store.named)
        elif isinstance(question, Write):
            before, here = store.register, store.here
            if landed := store.set(question, now):
                store.format = process.launch.format
                self.witness.landed(process, number, before, question, here)
                self._push()
            answer = store.shown
        elif isinstance(question, Look):
            answer = store.shown
        elif isinstance(question, Propose):
            answer = Counted(store.propose(process.node, question.proposal))
        elif isinstance(question, Gather):
            answer = Proposals(store.proposals_of(question.nodes, question.entering))
        else:
            store.records.add((process.node, question.what))
            self.witness.takes(process.node, question.what)
        trouble = process.trouble
        if trouble.marks and isinstance(question, CHANGES) and (later := trouble.takes(Kind.TWICE)):
            self.future.at(now + later, self._comes_again, process.node, question, store.losses)
        leg, lost = self.delay(process, question), trouble.cut_in_until > now
        if trouble.marks and (late := trouble.takes(Kind.LATE_REPLY)):
            leg += late
            trouble.late_until = now + leg
        if trouble.marks and isinstance(question, CHANGES) and trouble.takes(Kind.LOSE_REPLY):
            lost = True
            trouble.late_until = sent + ANSWER_TIMEOUT_S
        if lost and landed:
            self.witness.seen("a reply lost after commit")
        if lost or now + leg - sent > ANSWER_TIMEOUT_S:
            self.future.at(max(sent + ANSWER_TIMEOUT_S, now), self._times_out, process, number, question)
        if not lost:
            self.future.at(now + leg, self._answers, process, number, question, answer)

    def _foreign(self, process: Process) -> NoState:
        return NoState(f"{FOREIGN} {self.store.format}, this version reads format {process.launch.format}")

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
        if process.loop.request == number:
            process.loop.request = 0
            self.loops.answered(process, question, answer)

    def _times_out(self, process: Process, number: int, question: Question) -> None:
        self._fails(process, number, question, isinstance(question, Write))

    def _fails(self, process: Process, number: int, question: Question, unsure: bool) -> None:
        if self.waits(process, self._fails, process, number, question, unsure):
            return
        if process.loop.request == number:
            process.loop.request = 0
            if isinstance(question, Errand):
                process.memory.refused[question.what] = self.store.named
                self.witness.seen("an errand fails")
            if unsure and isinstance(question, Write):
                process.loop.unsure.add(number)
                self.loops.hears(process, UNKNOWN)
            else:
                self.loops.hears(process, SILENT)

    def waits(self, process: Process, what: Callable[..., None], *of: object) -> bool:
        """Return True if this must not happen to the process: never, because it is dead, or not now, because it stands
        still."""
        if process.alive and process.stalls.unnoticed_since is None:
            return False
        if not process.alive:
            return True
        if (until := process.stalls.ends[Thread.PROCESS]) > self.future.now:
            self.future.at(until, what, *of)
            return True
        self.loops.woke(process)
        return False

    # --- the push of a change

    def watch(self, process: Process, token: Token | None, sent_at: float) -> None:
        """Let the waiter's thread wait until the register is no longer what this token names. (The question itself takes no
        time: a change that is written meanwhile is pushed all the same.)"""
        process.waiter.token, process.waiter.sent_at = token, sent_at
        self._watches(process)

    def _watches(self, process: Process) -> None:
        now = self.future.now
        if (until := process.stalls.ends[Thread.WAITER]) > now:
            self.future.at(until, self._watches, process)
        elif self.store.down_until > now or process.trouble.cut_until > now:
            self.future.at(now + ANSWER_TIMEOUT_S, self._misses, process)
        elif self.store.token != process.waiter.token or not self.store.here:  # a copy is never what the token names
            self.future.at(now + self.delay(process), self._changed, process, self._pushed(process), now)
        else:
            self.watching[process.node] = process

    def _push(self) -> None:
        """Push the change to all who wait; a process that is not reached looks again."""
        waiting, self.watching = self.watching, {}
        now = self.future.now
        for process in waiting.values():
            if process.trouble.takes(Kind.GAP) or process.trouble.cut_in_until > now:
                process.waiter.deaf_until = now + self.interval
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
        if self.store.format != process.launch.format and shown.state is not None:
            return Missed(self._foreign(process))
        return Pushed(shown.state, process.waiter.sent_at, shown.here)

    def _changed(self, process: Process, news: Pushed | Missed, shown_at: float) -> None:
        if not self._waiter_waits(process, self._changed, process, news, shown_at):
            process.waiter.waits = False
            if isinstance(news, Pushed):
                process.loop.answered_at = max(process.loop.answered_at, shown_at)
                if news.state is not self.store.register:
                    self.witness.seen("a stale push")
            self.loops.hears(process, news)

    def _misses(self, process: Process) -> None:
        if not self._waiter_waits(process, self._misses, process):
            process.waiter.waits = False
            self.loops.hears(process, MISSED)

    def _waiter_waits(self, process: Process, what: Callable[..., None], *of: object) -> bool:
        if self.waits(process, what, *of):
            return True
        if (until := process.stalls.ends[Thread.WAITER]) <= self.future.now:
            return False
        self.future.at(until, what, *of)
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
        process.heart.counter = 1 if self.store.backend is Backend.LEASE else process.heart.counter + 1
        process.heart.beating = True
        now, leg = self.future.now, self.delay(process)
        if process.trouble.cut_out_until > now or leg > ANSWER_TIMEOUT_S:
            self.future.at(now + ANSWER_TIMEOUT_S, self._beat_ends, process, None)
        if process.trouble.cut_out_until <= now:
            self.future.at(now + leg, self._beat_arrives, process, process.heart.counter, sent_at, leg)

    def _beat_arrives(self, process: Process, counter: int, sent_at: float, leg: float) -> None:
        now = self.future.now
        if self.store.down_until > now:
            self.future.at(now + self.delay(process), self._beat_ends, process, None)
            return
        self.store.beat(process.node, counter, now)
        life = self.store.named
        if leg > ANSWER_TIMEOUT_S:
            return
        if self.store.format != process.launch.format and self.store.register is not None:
            self.future.at(now + self.delay(process), self._beat_ends, process, None)
            return
        if process.trouble.cut_in_until > now:
            self.future.at(now + ANSWER_TIMEOUT_S, self._beat_ends, process, None)
        elif leg + (back := self.delay(process)) > ANSWER_TIMEOUT_S:
            self.future.at(now + ANSWER_TIMEOUT_S - leg, self._beat_ends, process, None)
        else:
            self.future.at(now + back, self._beat_ends, process, sent_at, life)

    def _beat_ends(self, process: Process, sent_at: float | None, life: Life | None = None) -> None:
        if self.waits(process, self._beat_ends, process, sent_at, life):
            return
        if (until := process.stalls.ends[Thread.HEART]) > self.future.now:
            self.future.at(until, self._beat_ends, process, sent_at, life)
            return
        process.heart.beating = False
        self.hearts.beaten(process, sent_at, life)

    def ends(self, process: Process) -> None:
        """The agent has ended in order: take its heartbeat away."""
        if process.trouble.cut_out_until <= self.future.now:
            self.future.at(self.future.now + self.delay(process), self._removes, process.node)

    def _removes(self, node: Node) -> None:
        if self.store.down_until <= self.future.now:
            self.store.pulses.pop(node, None)
