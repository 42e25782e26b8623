"""The drivers of the simulated nodes' clients: an ask goes over the network, and the answer is fed to `step`. The
counterpart of `adapters/rendezvous/loop.py`.

No decision is made here. The agent hears what came of an operation, and the witness hears everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, assert_never

from attrs import Factory, define, field

from ..properties.facts import Decided, GaveUp, Holds, Left, Noted, Operated, Slept, WaitsForever
from ..properties.law import Law, Strength
from ..rendezvous import (
    Advance,
    Answer,
    Arrive,
    Counted,
    Did,
    Draw,
    Drawn,
    Errand,
    Evict,
    Gather,
    Heartbeats,
    Idle,
    Input,
    Linked,
    Look,
    Missed,
    NoState,
    Observe,
    Outcome,
    Passed,
    Pause,
    Prepared,
    Proposals,
    Propose,
    Pushed,
    Question,
    Raise,
    Request,
    Restored,
    Settled,
    Shown,
    Standstill,
    Submitted,
    Told,
    Unknown,
    Wait,
    Woke,
    Write,
    drain,
    leave,
    step,
    watch,
)
from ..rendezvous import turn as this_turn
from ..rendezvous.client import Turn
from ..rendezvous.context import Handler
from ..rendezvous.exchange import UNANSWERED
from ..violation import Violation
from ..world import Why, World
from . import sometimes
from .chance import Choose, one
from .future import Future
from .kinds import Kind
from .link_laws import LinkLaws
from .listening import listens
from .losses import looked, slept
from .memory_laws import Remembering
from .network import Network
from .process import Hears, Process, Thread
from .proposals import Proposing
from .recording import Recording
from .story import Setting
from .wait_laws import Waits
from .witness import Witness

O10 = Law(
    "O10",
    "A node whose standbys are not ready asks for no seat in a world that runs without it.",
    "a world runs without a node until its standbys are ready",
)


class Links(Protocol):
    """The links of the processes, as the loops call them."""

    laws: LinkLaws

    def follow(self, process: Process) -> None: ...

    def breaks(self, process: Process, goodbye: bool = False) -> None: ...


ASKS_MAX = 60
"""A process that asks more often than this within a second, and four times for each node, waits for nothing. Where
heartbeats come more often than once a second, it may ask as much more often."""
PASSED, WOKE = Passed(), Woke()


def _judged_by(laws: Callable[[Strength], Any]) -> Any:
    """Return the default of a field: what judges these laws, and counts for the judge of the run."""
    return Factory(lambda loops: laws(loops.witness.judge.strength), takes_self=True)


@define
class RendezvousLoops:
    setting: Setting
    choose: Choose
    future: Future
    network: Network
    witness: Witness
    hear: Hears
    turns_max: int
    """A process that turns more often than this at one point in time spins."""
    steps: int = 0
    turn: Turn = this_turn
    recording: Recording | None = None
    lags: Sequence[float] = ()
    """How much later than at its time a timer passes; nothing: at its time."""
    links: Links = field(init=False)
    proposing: Proposing = field(init=False, default=_judged_by(Proposing))
    remembering: Remembering = field(init=False, default=_judged_by(Remembering))
    waits: Waits = field(init=False, default=_judged_by(Waits))

    def submit(self, process: Process, *items: Request | Errand | Prepared) -> None:
        """Submit what the agent of this process wants done."""
        if process.loop.inbox:
            process.loop.inbox.append((self.hears, (process, Submitted(items))))
        else:
            self.hears(process, Submitted(items))

    def hears(self, process: Process, fed: Input) -> None:
        """Take a step of its client and do what that asks for, until it asks a question, waits, or has nothing to do."""
        if process.loop.stands_still and self._stands(process, self.hears, process, fed):
            return
        if type(fed) in UNANSWERED:
            process.loop.tried_at = process.clock.true(process.client.asked_at)
        self._steps(process, fed)
        begun = 0
        while (ask := process.loop.ask) is not None and process.alive:
            process.loop.ask = None
            if not isinstance(ask, Draw):
                self._carries_out(process, ask)
                return
            begun += 1
            if begun >= self.turns_max:
                raise Violation("L6", f"{process.name} spins")
            jitter = 0.0 if self.setting.seed == 0 else self.choose(1_000) / 1_000
            self._steps(process, Drawn(jitter))

    def end(self, process: Process) -> None:
        """End the agent: nothing is left to do for it."""
        process.alive = False
        self.network.ends(process)
        self.links.breaks(process, goodbye=True)

    # --- a step

    def _steps(self, process: Process, fed: Input) -> None:
        now = process.clock.shows(self.future.now)
        if process.memory.slept_at is not None:
            _looks(process, fed)
        was, witness = process.client, self.witness
        process.client, ask, notices = step(was, fed, now, self.turn)
        client = process.client
        if self.recording is not None:
            self.recording.asked(process, fed, now, ask)
        before, held = was.held, client.held
        changes = held.view.state is not before.view.state
        self.remembering.takes(was, fed, client, notices, now)
        if notices or changes or was.unanswered != client.unanswered:
            witness.owners.hear(was, client, notices)
        if client.agenda is not was.agenda and not process.launch.operator:
            witness.owners.ask(was, fed, client, notices)
        had, has = before.view.suspects, held.view.suspects
        if has is not had or type(fed) in LINK_NEWS or (changes and had):
            self.links.laws.suspects(was, fed, client, now)
        if type(fed) in PROMPTS:
            witness.traffic.prompted(process, self.future.now)
        if changes:
            witness.traffic.shows(process, self.future.now)
            witness.judge.saw(Holds(held, now))
            witness.losses.changed(process, before)
            sometimes.changed(witness.counts, process, before)
        if ask is None:
            return
        process.loop.timer += 1
        process.loop.ask = ask
        self.steps += type(ask) in TURNED
        for notice in notices:
            if isinstance(notice, Told):
                self.steps += 1
                self._told(process, notice, now)
            elif not isinstance(notice, Restored) and not process.launch.operator:
                self.hear(process, notice)
        if isinstance(ask, Wait) and ask.arm and process.loop.ask is not ask and process.alive:
            self._arms(process, ask)  # what the owner said since comes second, but the waiter waits all the same

    def _told(self, process: Process, told: Told, now: float) -> None:
        handler, answer = told.handler, told.answer
        if isinstance(answer, Raise):
            self._judges_refusal(process, handler, answer)
        sometimes.told(self.witness.counts, process, handler, answer)
        if process.launch.operator:
            process.alive = False
            if isinstance(answer, Raise):
                state = process.held.view.state
                self.witness.judge.saw(Operated(answer.failure.why, state, False, process.launch.names))
            return
        if isinstance(answer, Raise):
            if handler is watch:
                self.witness.lost_worlds.befalls(process, Kind.CRASH)
                self.witness.counts["stranded"] += answer.text != ""
            clock, loop = process.clock, process.loop
            answered_at, tried_at = clock.shows(loop.answered_at), clock.shows(loop.tried_at)
            self.witness.judge.saw(GaveUp(told.held, handler, answer.failure.why, now, answered_at, tried_at))
        elif handler is drain:
            self.witness.judge.saw(Noted(process.node))
        if isinstance(answer, World):
            process.main.worlds += 1
        self.hear(process, told)
        if _has_left(handler, answer):
            self.witness.judge.saw(Left(process.node))

    def _judges_refusal(self, process: Process, handler: Handler, refusal: Raise) -> None:
        if refusal.failure.why is Why.ILLEGAL:
            if refusal.broken is None:
                self.witness.seen("refused for its format")
                return
            number, fact = refusal.broken
            raise Violation(number, f"{process.name} {handler.__name__}: {fact}")
        self.witness.judges_excuse(process, refusal.failure.why)

    # --- what its client asks for

    def _carries_out(self, process: Process, ask: Question | Wait | Pause | Idle) -> None:
        match ask:
            case Wait():
                self._waits(process, ask)
            case Observe():
                listens(self.witness.judge.strength, process.held, ask, process.client.asked_at)
                if len(ask.nodes) > 1:
                    sometimes.looked_at_all(self.witness.counts, process.held, process.client.asked_at)
                self._asks(process, ask)
            case Look():
                self._asks(process, ask)
            case Write():
                edit = ask.edit
                if process.launch.operator:
                    under_way = process.client.agenda.operation
                    insists = under_way is not None and under_way.forced
                    self.witness.judge.saw(Operated(edit, process.held.view.state, insists, process.launch.names))
                else:
                    if isinstance(edit, Arrive):
                        self._judges_newcomer(process)
                    self.witness.judge.saw(Decided(process.held, edit, process.client.asked_at))
                if isinstance(edit, Evict):
                    self.witness.notes_slander(process, edit)
                self.witness.losses.decides(process, ask)
                sometimes.wanted(self.witness.counts, process, edit, process.client.asked_at)
                self._asks(process, ask)
            case Errand():
                self.network.ask(process, ask)
            case Propose() | Gather():
                self._judges_newcomer(process)
                self._asks(process, ask)
            case Pause(until):
                self.future.at(process.clock.true(until), self._wakes, process, process.loop.timer)
            case Idle():
                pass
            case other:
                assert_never(other)

    def _judges_newcomer(self, process: Process) -> None:
        """Judge O10 for a node that arrives, or proposes to."""
        if process.agent.holds_back and sometimes.holds_back(process.held):
            raise Violation("O10", f"{process.name} asks for a seat before its standbys are ready")

    def _asks(self, process: Process, question: Question) -> None:
        second, loop = int(self.future.now), process.loop
        if loop.second != second:
            loop.second, loop.asked_before = second, loop.requests
        elif loop.requests - loop.asked_before > (ASKS_MAX + 4 * self.setting.nodes) / min(self.setting.interval, 1.0):
            raise Violation("L6", f"{process.name} asks without end")
        self.witness.traffic.asks(process, question, self.future.now)
        if isinstance(question, Propose | Gather | Write):
            self.proposing.asks(process.held, question, process.client.asked_at)
        self.network.ask(process, question)

    def _waits(self, process: Process, wait: Wait) -> None:
        if not process.launch.operator and self.turn is this_turn:
            self.waits.waits(process.client, wait, process.clock.shows(self.future.now))
        if math.isinf(wait.until):
            operation = process.client.agenda.operation
            assert operation
            self.witness.judge.saw(WaitsForever(process.held, operation.handler))
        else:
            if process.node in self.proposing.of:
                self.proposing.waits(process.held, wait, process.clock.shows(self.future.now))
            late = one(self.choose, self.lags) if self.lags else 0.0
            self.future.at(process.clock.true(wait.until) + late, self._wakes, process, process.loop.timer)
        if wait.arm:
            self._arms(process, wait)
        elif not (process.waiter.waits or process.loop.inbox):
            raise Violation("L11", f"{process.name} waits, and nothing waits for the next change")

    def _arms(self, process: Process, wait: Wait) -> None:
        if process.waiter.waits:
            raise Violation("L11", f"{process.name} waits for the next change twice at once")
        process.waiter.waits = True
        self.network.watch(process, wait.token, process.clock.shows(self.future.now))

    def _wakes(self, process: Process, timer: int) -> None:
        if process.loop.timer != timer or self.network.waits(process, self._wakes, process, timer):
            return
        if not (process.loop.stands_still and self._stands(process, self._wakes, process, timer)):
            self.hears(process, PASSED)

    # --- what it hears of the network

    def answered(self, process: Process, question: Question, answer: Answer) -> None:
        if process.loop.stands_still and self._stands(process, self.answered, process, question, answer):
            return
        counts = self.witness.counts
        if not isinstance(answer, Did):
            process.loop.answered_at = self.future.now
        if isinstance(question, Observe):
            sometimes.afresh(counts, process.held, process.client.asked_at)
        elif isinstance(answer, Shown):
            loop = process.loop
            if not loop.read_after and answer.state is not None and not answer.here:
                self.witness.seen("a newcomer is shown a copy")
            loop.read_after = loop.requests
            if isinstance(question, Write) and answer.state is not question.state:
                sometimes.refused(counts, question, answer.state)
        elif isinstance(answer, Counted | Proposals):
            self.proposing.answers(process.held, answer, process.clock.shows(self.future.now))
        self.hears(process, answer)

    def stands_still(self, process: Process) -> None:
        """Let the loop of this process go on when its pause is over; until then it hears nothing."""
        process.loop.stands_still = True
        self.future.at(process.stalls.ends[Thread.LOOP], self._goes_on, process)

    def _stands(self, process: Process, what: Callable[..., None], *of: object) -> bool:
        """Keep this for later and return True if the loop of this process stands still."""
        process.loop.inbox.append((what, of))
        return True

    def _goes_on(self, process: Process) -> None:
        if process.stalls.ends[Thread.LOOP] > self.future.now or self.network.waits(process, self._goes_on, process):
            return
        process.loop.stands_still, inbox = False, process.loop.inbox
        inbox.sort(key=_turn_of)
        if len(inbox) > 1:
            self.witness.seen("a loop goes on, and hears what it has missed")
        while inbox and process.alive:
            what, of = inbox[0]
            what(*of)
            del inbox[0]  # now, because what the agent submits meanwhile stands behind the others

    def woke(self, process: Process) -> None:
        """Let the process go on after it stood still; if that was long, it knows."""
        span = self.future.now - (process.stalls.unnoticed_since or 0.0)
        process.stalls.unnoticed_since = None
        if span * process.clock.rate > process.held.who.settings.ttl:
            self._steps(process, WOKE)
            now = process.clock.shows(self.future.now)
            self.witness.judge.saw(Slept(process.node, now))
            self.proposing.slept(process.node)
            slept(process, now)


LINK_NEWS = frozenset({Linked, Heartbeats, Woke})
"""By these a node learns whom to suspect, and whom no longer."""
TURNED = frozenset({Write, Look, Wait, Observe, Propose, Gather})
"""The asks that a turn makes."""
PROMPTS = frozenset({*UNANSWERED, Missed, NoState, Woke, Linked, Standstill, Advance})
"""After these a node may ask again, though the register has not changed."""
ANSWERED = (Shown, Heartbeats, Counted, Proposals, Did, Unknown)
"""The answers after which a client hears what was held back."""


def _turn_of(kept: tuple[Callable[..., None], tuple[object, ...]]) -> int:
    """Return the turn of what was kept for a loop: first what its agent says, then what else was posted, then an answer or a
    timer."""
    fed = kept[1][-1]
    return (
        0
        if isinstance(fed, Submitted)
        else 1
        if isinstance(fed, Pushed | Missed | Linked | Standstill | Advance)
        else 2
    )


def _looks(process: Process, fed: Input) -> None:
    """Note that the client is shown the register, or hears now what was shown while a question was out."""
    client = process.client
    if isinstance(fed, Shown):
        looked(process, fed.state, client.asked_at)
    pushed = client.pushed or fed
    if isinstance(pushed, Pushed) and (client.out is None or isinstance(fed, ANSWERED)):
        looked(process, pushed.state, pushed.sent_at)


def _has_left(handler: Handler, answer: Outcome | Raise) -> bool:
    return handler is leave and isinstance(answer, Settled)
