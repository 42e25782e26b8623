"""A world of simulated nodes: their loops, their workers, and what is done to them; judged at every step.

Each process runs the same `turn` and `transition` as an agent, its questions go over the network to the store, and what it
commands happens to simulated workers. The world decides nothing for them. Everything that happens is judged (`properties`)
and counted (`sometimes`); the first violation is raised where it happens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Never, assert_never, cast

from attrs import define, field

from ..agent import acknowledged, farewell, follows, heard, wished
from ..group import Group, Phase, begin, transition
from ..group import Settings as GroupSettings
from ..group.state import (
    SIGKILL,
    Beaten,
    Command,
    Elapsed,
    Event,
    Exited,
    Join,
    Reaped,
    Record,
    RecordUnstartable,
    Signal,
    Signalled,
    Start,
    Unstartable,
)
from ..rendezvous import (
    Evict,
    Gather,
    Held,
    Observe,
    Propose,
    Raise,
    RendezvousState,
    Return,
    Settings,
    Violation,
    Wait,
    Write,
    close,
    gathered,
    linger,
    proposed,
    saw,
    silent,
    turn,
    unanswered,
    woke,
)
from ..rendezvous import heard as heard_beats
from ..rendezvous.agenda import Errand, Request, answered, begun, pause_s, submitted
from ..rendezvous.context import Operation
from ..world import Ending, Endpoint, Life, Node, Profile, Why
from ..world import World as RunningWorld
from . import sometimes
from .chance import Choose, seeded
from .future import Future
from .losses import KEPT_S, Losses, decides, looked, slept
from .network import ANSWER_TIMEOUT_S, ERRAND, LOOK, Answer, Counted, Network, News, Question
from .process import Process
from .properties import Failed, Judge, Left, Property, Started, Stepped, Succeeded, WaitsForever, Wrote
from .properties import Reaped as NoneLives
from .store import Shown, Store
from .story import Kind, Setting, name
from .story import Operation as Done

ASKS_MAX = 60
"""More questions of a process than this within a second, and four for each node: it waits for nothing."""
DEATHS_S = (0.001, 0.005, 0.02)
"""How long a worker takes to die of SIGKILL."""
STOPS_S = (0.002, 0.03, 0.2)
"""How long it takes to stop after SIGTERM."""
BEATS_LATE = 2
"""A silence counts for so many heartbeats after it is over."""

Narrator = Callable[[float, str, str], None]
"""(true time, node, what it does)"""


@define
class World:
    setting: Setting
    tell: Narrator | None = None
    also: tuple[Property, ...] = ()
    turns_max: int = 1_000
    """More turns of a process than this at one point in time: it spins."""
    future: Future = field(factory=Future)
    rendezvous: Settings = field(init=False)
    group: GroupSettings = field(init=False)
    choose: Choose = field(init=False)
    store: Store = field(init=False)
    network: Network = field(init=False)
    judge: Judge = field(init=False)
    by_node: dict[Node, Process] = field(factory=dict)
    """All that were ever started, in their order."""
    by_slot: dict[str, list[Process]] = field(factory=dict)
    """The same, by the slot that they were started on."""
    steps: int = 0
    writes: int = 0
    rounds: int = 0
    counts: Counter[str] = field(factory=Counter)
    done: Counter[Kind] = field(factory=Counter)
    causes: Counter[str] = field(factory=Counter)
    """What may have ended a round, beside failures: evictions, leaves, arrivals, fencings."""
    losses: Losses = field(init=False)
    operators: int = 0
    well_at: float | None = None
    """From when on the healed world must be well."""

    def __attrs_post_init__(self) -> None:
        setting = self.setting
        self.rendezvous, self.group = setting.rendezvous, setting.group
        self.choose = seeded(setting.seed)
        self.store = Store(setting.backend, setting.interval * setting.attempts)
        self.network = Network(self.future, self.store, self.choose, setting.seed == 0, setting.interval, self)
        self.losses = Losses(2 * self.rendezvous.ttl)
        self.judge = Judge(fenced=setting.fence > 0, also=self.also)

    # --- what is done to it

    def does(self, operation: Done) -> None:
        """Raises Violation. An operation that means nothing here does nothing."""
        process = self.at(operation.slot)
        if operation.kind is not Kind.PASS:
            self.losses.kept = None
        kind, span, now = operation.kind, operation.span, self.future.now
        if kind is Kind.PASS:
            self.future.passes(now + span)
        elif kind is Kind.START:
            if operation.slot in self.setting.slots:
                self._said(kind, operation.slot, "starts")
                self._starts(operation.slot)
        elif kind is Kind.CANCEL:
            self._said(kind, "operator", "closes the job")
            self._cancels()
        elif kind in (Kind.OUTAGE, Kind.EMPTY, Kind.OLDER):
            self._said(kind, "store", str(operation))
            self._store(kind, span)
        elif process is not None and self._can(kind, process):
            self._said(kind, process.name, str(operation))
            self._to(process, kind, span)

    def _can(self, kind: Kind, process: Process) -> bool:
        if kind in (Kind.FAIL, Kind.SUCCEED):
            return bool(process.workers) and not process.hung
        return kind is not Kind.HANG or bool(process.workers)

    def _to(self, process: Process, kind: Kind, span: float) -> None:
        now = self.future.now
        until = max(now + span, 0.0)
        match kind:
            case Kind.CRASH:
                self._crashes(process)
            case Kind.PAUSE:
                process.stopped_until = max(process.stopped_until, until)
                process.stopped_since = now if process.stopped_since is None else process.stopped_since
                self.judge.excused.add(process.node)
            case Kind.SLOW:
                process.delay = span
            case Kind.CUT | Kind.CUT_OUT | Kind.CUT_IN:
                if kind is not Kind.CUT_IN:
                    process.cut_out_until = max(process.cut_out_until, until)
                if kind is not Kind.CUT_OUT:
                    process.cut_in_until = max(process.cut_in_until, until)
            case Kind.LOSE_REPLY:
                process.lose_reply = True
            case Kind.LATE_WRITE:
                process.late_write = span
            case Kind.LATE_REPLY:
                process.late_reply = span
            case Kind.GAP:
                process.gap = True
            case Kind.FAIL:
                self._dies(process, min(process.workers), 1, process.starts)
            case Kind.SUCCEED:
                self.succeeds(process)
            case Kind.HANG:
                process.hung = True
            case Kind.UNSTARTABLE:
                process.unstartable = True
            case Kind.DRAIN:
                self._tell_when_awake(process, 15)
            case other:
                assert_never(cast("Never", other))  # the others are not done to a node

    def succeeds(self, process: Process) -> None:
        """All its workers that live exit with 0."""
        for rank in list(process.workers):
            self._dies(process, rank, 0, process.starts)

    def _store(self, kind: Kind, span: float) -> None:
        now, store = self.future.now, self.store
        if kind is Kind.OUTAGE:
            store.goes_away(now, now + span)
            self.network.breaks()
            return
        calm = store.down_until <= now - self.losses.calm_s
        lost = store.register
        self.losses.lost(lost, self.living(), calm, now)
        self.future.at(now + KEPT_S, self._stands)
        if kind is Kind.EMPTY:
            store.empties()
        else:
            store.is_restored(now - span)
        if lost and store.register and store.register.job != lost.job:
            self.losses.kept = None  # a world of another job is not replaced
        self.judge.register = store.register
        self.judge.left.clear()  # the store has forgotten that too, and what they had under way may land
        self.counts["the store came back older" if store.register else "the store came back empty"] += 1
        self.network.forgets()

    def _stands(self) -> None:
        if self.store.down_until <= self.future.now:
            self.losses.stands(self.store.register, self.living())

    def _cancels(self) -> None:
        self.operators += 1
        node = Node("operator", self.operators)
        process = self._process(node, operator=True)
        process.agenda = submitted(process.agenda, Request(close, ending=Ending.CANCELLED))
        self._runs(process)

    def heals(self) -> None:
        """Nothing is done to anybody any longer."""
        self.store.down_until = min(self.store.down_until, self.future.now)
        for process in self.by_node.values():
            process.heals()

    # --- processes come and go

    def _process(self, node: Node, operator: bool = False) -> Process:
        setting, choose = self.setting, self.choose
        steady = setting.seed == 0
        offset = 0.0 if steady else setting.offset * choose(1_000) / 1_000
        rate = 1.0 + (0.0 if steady else setting.drift * (choose(2_001) - 1_000) / 1_000)
        profile = Profile(Endpoint(node.slot, 1), setting.workers, host=node.slot)
        held = Held(node, profile, self.rendezvous, Life(f"{name(node)}@{self.future.planned}"))
        return Process(
            name(node), node, held, Group(node, self.group), offset, rate, self.future.now, operator=operator
        )

    def _starts(self, slot: str) -> None:
        earlier = self.by_slot.setdefault(slot, [])
        process = self._process(Node(slot, len(earlier) + 1))
        self.by_node[process.node] = process
        earlier.append(process)
        self._sleeps_until_beat(process)
        process.group, commands = begin(process.group, process.clock(self.future.now))
        self._carries_out(process, commands)
        self._runs(process)

    def _crashes(self, process: Process) -> None:
        process.alive = False
        process.workers.clear()
        self.judge.saw(NoneLives(process.node))

    def _is_over(self, process: Process) -> None:
        """The group has ended; the agent sees to what is left."""
        outcome = process.outcome = process.group.outcome
        assert outcome is not None
        self._narrate(process.name, f"ends: {sometimes.outcome(outcome)}")
        if last := farewell(outcome):
            process.agenda = submitted(process.agenda, last)
            if not process.request:
                self._runs(process)
        else:
            self._ends(process)

    def _ends(self, process: Process) -> None:
        process.alive = False
        self.network.ends(process)

    # --- the rendezvous' thread

    def _runs(self, process: Process) -> None:
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
                    sometimes.looked_at_all(self.counts, process.held, now)
                self._asks(process, ask, now)
            case Propose() | Gather():
                self._asks(process, ask, now)
            case Write(_, _, edit):
                if isinstance(edit, Evict):
                    self._notes_slander(process, edit)
                decides(process, ask)
                sometimes.wanted(self.counts, process, edit, now)
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
            self.judge.saw(WaitsForever(process.held, under_way.handler))
        else:
            self.future.at(process.true(ask.until), self._wakes, process, process.timer)
        if not process.armed:
            self.network.watch(process, ask.token, process.clock(self.future.now))
        return True

    def _wakes(self, process: Process, timer: int) -> None:
        if process.timer == timer and not self.network.waits(process, self._wakes, process, timer):
            self._runs(process)

    def _told(self, process: Process, under_way: Operation, ask: Return | Raise, now: float) -> None:
        answer = ask.outcome if isinstance(ask, Return) else ask
        if isinstance(answer, Raise) and answer.failure.why is Why.ILLEGAL:
            number, _, fact = answer.text.rpartition(" breaks ")[2].partition(": ")
            raise Violation(number, f"{process.name} {under_way.handler.__name__}: {fact}")
        if isinstance(answer, Raise):
            self._judges_excuse(process, answer.failure.why)
        process.agenda, process.held = answered(process.agenda, process.held, answer)
        sometimes.told(self.counts, process, under_way, answer)
        if process.operator:
            process.alive = False
            return
        if under_way.handler is linger:
            self._ends(process)
            return
        if isinstance(answer, RunningWorld):
            process.worlds += 1
        event = heard(under_way.handler, answer, now)
        if event is not None:
            self._hears(process, event)
        if sometimes.has_left(under_way, answer):
            self.judge.saw(Left(process.node))

    def _takes(self, process: Process, now: float) -> bool:
        """What the waiter has seen; whether the thread pauses because it could not see."""
        news = process.inbox.popleft()
        if news is None:
            self._pauses(process)
            return True
        self._sees(process, *news, now)
        return False

    # --- what it hears of the network

    def answered(self, process: Process, question: Question, answer: Answer, sent_at: float) -> None:
        now = process.clock(self.future.now)
        process.unanswered = 0
        if isinstance(question, Observe):
            sometimes.afresh(self.counts, process.held, sent_at)
            assert isinstance(answer, Counted)
            process.held = heard_beats(process.held, answer.counters, sent_at, now, answer.named)
        elif isinstance(question, Propose):
            assert isinstance(answer, int)
            process.held = proposed(process.held, question.wish, answer, now)
        elif isinstance(question, Gather):
            assert isinstance(answer, Mapping)
            process.held = gathered(process.held, answer, now)
        elif question is not ERRAND:
            process.read_after = process.requests
            assert isinstance(answer, Shown)
            if isinstance(question, Write) and answer.state is not question.state:
                sometimes.refused(self.counts, question, answer.state)
            self._sees(process, answer, sent_at, now)
        self._runs(process)

    def _sees(self, process: Process, shown: Shown, sent_at: float, now: float) -> None:
        process.unanswered = 0
        looked(process, shown.state, sent_at)
        before = process.held
        process.held = saw(before, shown.state, sent_at, now, shown.here)
        if process.held.state is not before.state:
            self.losses.changed(process, before)
            sometimes.changed(self.counts, process, before)

    def woke(self, process: Process) -> None:
        """It stood still; if for long, it knows."""
        span = self.future.now - (process.stopped_since or 0.0)
        process.stopped_since = None
        if span * process.rate > self.rendezvous.ttl:
            process.held = woke(process.held, process.clock(self.future.now))
            slept(process, process.clock(self.future.now))

    def unknown(self, process: Process, write: Write) -> None:
        process.held = unanswered(process.held, write.token, process.clock(self.future.now))
        self._runs(process)

    def silent(self, process: Process) -> None:
        self._pauses(process)

    def _pauses(self, process: Process) -> None:
        now = process.clock(self.future.now)
        process.held = silent(process.held, now)
        process.unanswered += 1
        process.timer += 1
        until = process.true(now + pause_s(process.unanswered, self.setting.interval))
        self.future.at(until, self._wakes, process, process.timer)

    def changed(self, process: Process, news: News | None) -> None:
        process.inbox.append(news)
        self._runs(process)

    def landed(self, process: Process, number: int, before: RendezvousState | None, write: Write, here: bool) -> None:
        self.writes += 1
        after = write.state
        if number in process.unsure or number < process.request:
            self.counts["a late write lands"] += 1
            if process.read_after > number:
                self.counts["a write lands after its node re-read"] += 1
        if process.slandered is not None and process.slandered[0] == number:
            raise Violation(
                "L3", f"{process.name} throws out {name(process.slandered[1])}, whose heartbeats came in time"
            )
        fact = Wrote(process.node, before, write.edit, after, here)
        self.judge.saw(fact)
        self.losses.wrote(fact, self.living(), self.future.now)
        if before is not None and after.round > before.round:
            self.rounds += 1
        sometimes.wrote(self.counts, self.by_node, fact)
        for cause in sometimes.causes(fact):
            self.causes[cause] += 1
        if self.tell:
            self._narrate(process.name, sometimes.sentence(write.edit, after))

    def seen(self, what: str) -> None:
        self.counts[what] += 1

    # --- the heart

    def _sleeps_until_beat(self, process: Process) -> None:
        process.beat_timer += 1
        at = process.true(process.clock(self.future.now) + self.setting.interval)
        self.future.at(at, self._beats, process, process.beat_timer)

    def _beats(self, process: Process, timer: int) -> None:
        if process.beat_timer == timer and not self.network.waits(process, self._beats, process, timer):
            self.network.beat(process, process.clock(self.future.now))

    def _beats_now(self, process: Process) -> None:
        if process.beating:
            process.beat_again = True
        else:
            process.beat_timer += 1
            self.network.beat(process, process.clock(self.future.now))

    def beaten(self, process: Process, sent_at: float | None, life: Life | None) -> None:
        again, process.beat_again = process.beat_again, False
        if again:
            self._beats_now(process)
        else:
            self._sleeps_until_beat(process)
        if sent_at is None:
            return
        if not acknowledged(life, process.held.state):
            sometimes.unacknowledged(self.counts, process)
        else:
            self._hears(process, Beaten(sent_at, process.clock(self.future.now)))

    # --- the agent's thread

    def _tell_when_awake(self, process: Process, signum: int) -> None:
        if self.network.waits(process, self._tell_when_awake, process, signum):
            return
        if process.outcome is not None:
            self._ends(process)  # it lingers no longer
        else:
            self._hears(process, Signalled(signum, process.clock(self.future.now)))

    def _hears(self, process: Process, event: Event) -> None:
        self.steps += 1
        now = process.clock(self.future.now)
        before = process.group
        after, commands = transition(before, event)
        process.group = after
        if commands or after.phase is not before.phase or isinstance(event, Signalled):
            self.judge.saw(Stepped(before, event, after, commands, now))
            sometimes.stepped(self.counts, self.causes, before, event, after)
            if self.tell and after.phase is not before.phase:
                self._narrate(process.name, f"{before.phase.value} → {after.phase.value}")
            self._carries_out(process, commands)
        elif before.phase is Phase.HELD:
            sometimes.stepped(self.counts, self.causes, before, event, after)
        if after.phase is Phase.ENDED:
            if process.outcome is None:
                self._is_over(process)
        elif after.phase is not Phase.JOINING and after.phase is not Phase.BARRIER:
            self._sets_timer(process)
        if consequence := follows(event, after, now):
            self._hears(process, consequence)

    def _sets_timer(self, process: Process) -> None:
        until = process.group.until
        if until is None:
            return
        at = process.true(until)
        if at < process.elapse_at:
            process.elapse_at = at
            self.future.at(at, self._elapses, process, at)

    def _elapses(self, process: Process, at: float) -> None:
        if process.elapse_at != at or self.network.waits(process, self._elapses, process, at):
            return
        process.elapse_at = math.inf
        until, now = process.group.until, process.clock(self.future.now)
        if until is not None and now >= until:
            self._hears(process, Elapsed(now))
        else:
            self._sets_timer(process)

    def _carries_out(self, process: Process, commands: tuple[Command, ...]) -> None:
        asked = False
        for command in commands:
            profile = self._profile(process) if isinstance(command, Join) else process.held.profile
            if request := wished(command, profile):
                process.agenda, asked = submitted(process.agenda, request), True
            elif isinstance(command, Record | RecordUnstartable):
                process.agenda, asked = submitted(process.agenda, Errand(command)), True
            else:
                self._does_now(process, command)
        if asked and not process.request:
            self._runs(process)

    def _does_now(self, process: Process, command: Command) -> None:
        match command:
            case Start(world):
                self._starts_workers(process, world)
            case Signal(signum):
                self._signals(process, signum)
            case _:
                self._beats_now(process)

    def _profile(self, process: Process) -> Profile:
        """With an endpoint of its own for each start of its workers."""
        return Profile(Endpoint(process.node.slot, 2 + process.starts), self.setting.workers, host=process.node.slot)

    # --- workers

    def _starts_workers(self, process: Process, world: RunningWorld) -> None:
        process.starts += 1
        process.hung = False
        process.ran, process.codes = world, []
        if self.future.now - process.stopped_until > self.store.ttl:
            self.judge.excused.discard(process.node)  # what it was told since it stood still is what it starts by
        self.judge.saw(Started(process.node, world))
        if process.unstartable:
            process.unstartable = False
            now = process.clock(self.future.now)
            self.judge.saw(NoneLives(process.node))
            self.future.at(self.future.now, self._cannot_start, process, now)
            return
        process.workers = dict.fromkeys(range(self.setting.workers), process.starts)

    def _cannot_start(self, process: Process, now: float) -> None:
        self._hears(process, Unstartable("no such program", now))
        self._hears(process, Reaped(now))

    def _signals(self, process: Process, signum: int) -> None:
        if signum != SIGKILL and process.hung:
            return
        spans = DEATHS_S if signum == SIGKILL else STOPS_S
        for rank in process.workers:
            span = spans[0] if self.setting.seed == 0 else spans[self.choose(len(spans))]
            self.future.at(self.future.now + span, self._dies, process, rank, -signum, process.starts)

    def _dies(self, process: Process, rank: int, code: int, start: int) -> None:
        """The worker is dead; the agent hears of it when it is awake."""
        if process.workers.get(rank) != start:
            return
        del process.workers[rank]
        process.codes.append(code)
        if code > 0 and process.ran:
            self.judge.saw(Failed(process.node, process.ran.id))
        if not process.workers:
            self.judge.saw(NoneLives(process.node))
            if not any(process.codes) and process.ran:
                self.judge.saw(Succeeded(process.node, process.ran.id))
        self._exits(process, rank, code, process.clock(self.future.now))

    def _exits(self, process: Process, rank: int, code: int, died_at: float) -> None:
        if not self.network.waits(process, self._exits, process, rank, code, died_at):
            self._hears(process, Exited(rank, code, died_at, process.clock(self.future.now)))

    # --- what must hold

    def _notes_slander(self, process: Process, edit: Evict) -> None:
        """L3: nobody is thrown out whose heartbeats came in time. Judged when it is decided, counted when it lands."""
        setting, now = self.setting, self.future.now
        span = self.store.ttl * (1 - 2 * setting.drift) - 1e-6
        late = BEATS_LATE * setting.interval * (1 + 2 * setting.drift) + 1e-6
        for node in sorted(edit.dead):
            dead = self.by_node[node]
            if dead.outcome is None and not self.store.silent_for(
                node, span, dead.born_at, now, late, late + ANSWER_TIMEOUT_S
            ):
                process.slandered = (process.requests + 1, node)

    def _judges_excuse(self, process: Process, why: Why) -> None:
        """L2: what a node is told when it must give up."""
        if why is Why.TIMEOUT and self.well_at is not None and self.future.now > self.well_at:
            raise Violation("L2", f"{process.name} has found no world, but all has been well for long")

    def judge_rounds(self) -> None:
        """L4, at the end of a run."""
        failed = sum(len(rounds) for rounds in self.judge.failed.values())
        if self.rounds > failed + self.causes.total():
            raise Violation("L4", f"{self.rounds} rounds ended, {failed} of them failed, by {dict(self.causes)}")

    def living(self) -> Iterator[Process]:
        return (process for process in self.by_node.values() if process.alive)

    def at(self, slot: str) -> Process | None:
        """The process that an operation on this slot means: the latest that lives."""
        for process in reversed(self.by_slot.get(slot, ())):
            if process.alive:
                return process
        return None

    # --- what is told

    def _said(self, kind: Kind, who: str, what: str) -> None:
        self.done[kind] += 1
        self._narrate(who, what)

    def _narrate(self, who: str, what: str) -> None:
        if self.tell:
            self.tell(self.future.now, who, what)
