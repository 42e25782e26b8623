"""A simulated world of torch's agents, which runs the stories of core/sim.

It has the same operations (`core/sim/story.py`), the same virtual time and the same delays of messages. `torchjudge` judges
what torch does, and the world keeps the findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from attrs import define, field, frozen
from fibres import Fibre, this
from torch.distributed.elastic.agent.server.api import WorkerGroup
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _NodeDesc, _RendezvousState
from torchjudge import decoded, judges_start, judges_write, sentence
from torchnode import RUN_ID, TorchProcess, launches, spelled
from torchstore import TorchStore

from elastic.core.sim.chance import Choose, seeded
from elastic.core.sim.future import Future
from elastic.core.sim.kinds import Kind
from elastic.core.sim.network import ANSWER_TIMEOUT_S, DELAYS_S
from elastic.core.sim.story import Operation, Setting
from elastic.core.sim.workers import DEATHS_S, STOPS_S

Narrator = Callable[[float, str, str], None]
FAULT_LINGERS_S = 10.0
"""How much later a fault may strike that waits for the node's next message."""
WAKE_S = 0.0005
"""How much later than asked a sleeping thread wakes. Without it, a sleep of one second would end exactly when a state that
is kept for a second still counts, and torch would wait for another second. No real clock does that."""
KEY = f"torch.rendezvous.{RUN_ID}"


@frozen
class Peers:
    """Settings of torch that ours do not have, with torch's defaults, and of torch's hosts. Spans are in seconds."""

    join: float = 600.0
    monitor_interval: float = 0.1
    exit_barrier: float = 300.0
    clocks: Mapping[str, float] = field(factory=dict)
    """How far the wall clock of each of these slots is off."""
    spreads: float | None = None
    """How long after the failure of a worker or node its peers fail too, as workers that communicate do; None: never."""


@frozen
class Finding:
    """A property that torch has broken."""

    number: str
    """The property's number in docs/protocol.md, or a word of `torchstories.WORDS`."""
    at: float
    text: str


@define(eq=False)
class TorchWorld:
    """The store, the processes and the clocks of one run, and what the judge has found."""

    setting: Setting
    peers: Peers = field(factory=Peers)
    tell: Narrator | None = None
    body: Callable[[TorchWorld, TorchProcess], None] = launches
    """Runs the main thread of an agent."""
    future: Future = field(factory=Future)
    choose: Choose = field(init=False)
    store: TorchStore = field(factory=TorchStore)
    processes: list[TorchProcess] = field(factory=list)
    owners: dict[Fibre, TorchProcess] = field(factory=dict)
    findings: list[Finding] = field(factory=list)
    counts: Counter[str] = field(factory=Counter)
    """How often each thing happened. A world in which nothing happens proves nothing."""
    causes: Counter[str] = field(factory=Counter)
    members: tuple[str, ...] = ()
    """The members of the last complete world."""
    spares: set[str] = field(factory=set)
    worlds: dict[int, tuple[tuple[str, ...], int]] = field(factory=dict)
    """The members and the world size of each round, as its first member was told."""
    failed: set[int] = field(factory=set)
    """The rounds in which a worker failed by itself."""
    own_failures: Counter[str] = field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        self.choose = seeded(self.setting.seed)

    # --- what is done to it

    def does(self, operation: Operation) -> None:
        """Carry out an operation. One that torch does not have, or that applies to nothing here, does nothing."""
        kind, span, now = operation.kind, operation.span, self.future.now
        process = self.at(operation.slot)
        if kind is Kind.PASS:
            self.future.passes(now + span)
        elif kind is Kind.START:
            if operation.slot in self.setting.slots and process is None:
                self.starts(operation.slot)
        elif kind is Kind.OUTAGE:
            self._narrate("store", str(operation))
            self.store.down_until = max(self.store.down_until, now + span)
        elif process is not None:
            self._narrate(process.name, str(operation))
            self._to(process, kind, span)

    def _to(self, process: TorchProcess, kind: Kind, span: float) -> None:
        now = self.future.now
        until = now + span
        match kind:
            case Kind.CRASH:
                self.crashes(process)
            case Kind.PAUSE:
                process.stopped_until = max(process.stopped_until, until)
                self._ails(process, until)
            case Kind.SLOW:
                process.delay = span
                self._ails(process, now + (1e9 if span else 0.0))
            case Kind.CUT | Kind.CUT_OUT | Kind.CUT_IN:
                if kind is not Kind.CUT_IN:
                    process.cut_out_until = max(process.cut_out_until, until)
                if kind is not Kind.CUT_OUT:
                    process.cut_in_until = max(process.cut_in_until, until)
                self._ails(process, until)
            case Kind.LOSE_REPLY:
                process.lose_reply = True
                self._ails(process, now + ANSWER_TIMEOUT_S + FAULT_LINGERS_S)
            case Kind.LATE_WRITE:
                process.late_write = span
                self._ails(process, until + FAULT_LINGERS_S)
            case Kind.LATE_REPLY:
                process.late_reply = span
                self._ails(process, until + FAULT_LINGERS_S)
            case Kind.FAIL:
                if process.workers and not process.hung:
                    self._dies(process, min(process.workers), 1, process.starts)
            case Kind.SUCCEED:
                if not process.hung:
                    self.succeeds(process)
            case Kind.HANG:
                process.hung = bool(process.workers)
            case Kind.UNSTARTABLE:
                process.unstartable = True
            case Kind.DRAIN:
                self.causes["leaves"] += 1
                self._signals(process)
            case _:
                pass

    def _ails(self, process: TorchProcess, until: float) -> None:
        if until - self.future.now < 1e8 and process.sound_from > 1e8:
            process.sound_from = 0.0
        process.sound_from = max(process.sound_from, until)

    def succeeds(self, process: TorchProcess) -> None:
        for rank in list(process.workers):
            self._dies(process, rank, 0, process.starts)

    def heals(self) -> None:
        now = self.future.now
        self.store.down_until = min(self.store.down_until, now)
        for process in self.processes:
            process.stopped_until = process.cut_out_until = process.cut_in_until = 0.0
            process.delay = process.late_write = process.late_reply = 0.0
            process.lose_reply = process.hung = process.unstartable = False
            process.sound_from = min(process.sound_from, now)

    def closes(self) -> None:
        """End all processes and their threads."""
        for process in self.processes:
            self._kills(process)

    # --- processes come and go

    def starts(self, slot: str) -> TorchProcess:
        setting, choose = self.setting, self.choose
        steady = setting.seed == 0
        before = sum(process.slot == slot for process in self.processes)
        desc = _NodeDesc(slot, before + 1, 0)
        offset = 0.0 if steady else setting.offset * choose(1_000) / 1_000
        rate = 1.0 + (0.0 if steady else setting.drift * (choose(2_001) - 1_000) / 1_000)
        process = TorchProcess(spelled(desc), desc, offset, rate, self.peers.clocks.get(slot, 0.0))
        self.processes.append(process)
        self.causes["arrivals"] += 1
        self._narrate(process.name, "starts")
        process.main = self.begins(process, partial(self.body, self, process))
        return process

    def begins(self, process: TorchProcess, what: Callable[[], None]) -> Fibre:
        """Start a thread of this process."""
        fibre = Fibre(what)
        process.fibres.append(fibre)
        self.owners[fibre] = process
        self.future.at(self.future.now, self.wakes, process, fibre, fibre.ticket)
        return fibre

    def wakes(self, process: TorchProcess, fibre: Fibre, ticket: int) -> None:
        """Resume the fibre if it is still at this wait."""
        if fibre.over or fibre.ticket != ticket:
            return
        if process.stopped_until > self.future.now:
            self.future.at(process.stopped_until, self.wakes, process, fibre, ticket)
            return
        fibre.resume()
        if process.outcome is not None and process.alive:
            self._kills(process)

    def _signals(self, process: TorchProcess) -> None:
        """Send SIGTERM. torch's handler, set with the first workers, raises in the main thread at any point."""
        if not process.alive or process.main is None or process.main.over:
            return
        if process.stopped_until > self.future.now:
            self.future.at(process.stopped_until, self._signals, process)
            return
        if process.starts == 0:
            self.ends(process, "stopped by signal 15")
        else:
            process.main.throw(SignalException("SIGTERM", sigval=15))  # type: ignore[arg-type]
        if process.outcome is not None:
            self._kills(process)

    def crashes(self, process: TorchProcess) -> None:
        self.causes["losses"] += 1
        self._kills(process)
        self._spreads(process)

    def _kills(self, process: TorchProcess) -> None:
        process.alive = False
        process.workers.clear()
        for fibre in process.fibres:
            fibre.end()
            self.owners.pop(fibre, None)
        process.fibres.clear()

    def ends(self, process: TorchProcess, outcome: str) -> None:
        """Keep the outcome of a process. Its main thread calls this last."""
        process.outcome = outcome
        self._narrate(process.name, f"ends: {outcome}")

    def becomes(self, process: TorchProcess, phase: str) -> None:
        process.phase = phase
        self._narrate(process.name, phase)

    # --- the clocks of the thread that runs

    @property
    def running(self) -> TorchProcess:
        return self.owners[this()]

    def monotonic(self) -> float:
        return self.running.clock(self.future.now)

    def wall(self) -> float:
        return self.future.now + self.running.skew

    def sleeps(self, span: float) -> None:
        process, fibre = self.running, this()
        self.future.at(self.future.now + span / process.rate + WAKE_S, self.wakes, process, fibre, fibre.ticket)
        fibre.wait()

    def delay(self, process: TorchProcess) -> float:
        return process.delay + (0.001 if self.setting.seed == 0 else DELAYS_S[self.choose(len(DELAYS_S))])

    # --- workers

    def starts_workers(self, process: TorchProcess, group: WorkerGroup) -> None:
        handler = process.handler
        assert handler is not None
        if process.unstartable:
            process.unstartable = False
            raise FileNotFoundError("no such program")
        process.starts += 1
        process.hung, process.codes = False, []
        process.ran = (handler.round, handler.members)
        process.workers = dict.fromkeys(range(self.setting.workers), process.starts)
        self.counts["worlds started"] += 1
        self.becomes(process, f"runs round {handler.round}: rank {group.group_rank} of {group.group_world_size}")
        judges_start(self, process, group)

    def stops_workers(self, process: TorchProcess) -> None:
        """Stop the workers by SIGTERM, a grace and SIGKILL, and wait until none lives."""
        if not process.workers:
            return
        spans = list[float]()
        for rank in process.workers:
            kills, stops = self._one_of(DEATHS_S), self._one_of(STOPS_S)
            spans.append(self.setting.grace + kills if process.hung else stops)
            self.future.at(self.future.now + spans[-1], self._dies, process, rank, -15, process.starts)
        self.sleeps(max(spans) * process.rate)

    def _one_of(self, spans: tuple[float, ...]) -> float:
        return spans[0] if self.setting.seed == 0 else spans[self.choose(len(spans))]

    def _dies(self, process: TorchProcess, rank: int, code: int, start: int) -> None:
        if process.workers.get(rank) != start or not process.alive:
            return
        del process.workers[rank]
        process.codes.append(code)
        if code == 1 and process.ran:
            self.causes["failures"] += 1
            self.failed.add(process.ran[0])
            self.own_failures[process.name] += 1
            self._spreads(process)

    def _spreads(self, process: TorchProcess) -> None:
        if self.peers.spreads is None or process.ran is None:
            return
        for other in self.living():
            if other is not process and other.ran is not None and other.ran[0] == process.ran[0] and other.workers:
                at = self.future.now + self.peers.spreads
                self.future.at(at, self._dies, other, min(other.workers), 2, other.starts)

    # --- what must hold

    def finds(self, number: str, text: str) -> None:
        self._narrate("", f"{number}: {text}")
        self.findings.append(Finding(number, self.future.now, text))

    def found(self, number: str) -> Finding | None:
        return next((finding for finding in self.findings if finding.number == number), None)

    def landed(self, process: TorchProcess, stood: bytes, stands: bytes) -> None:
        """Judge a write of the register that has succeeded."""
        before, after = decoded(stood), decoded(stands)
        if after is None:
            return
        self.counts["writes"] += 1
        before = before or _RendezvousState()
        judges_write(self, process, before, after)
        if self.tell and (text := sentence(after)) != sentence(before):
            self._narrate(process.name, f"→ {text}")

    # --- processes by name

    def living(self) -> Iterator[TorchProcess]:
        return (process for process in self.processes if process.alive)

    def at(self, slot: str) -> TorchProcess | None:
        return next((each for each in reversed(self.processes) if each.slot == slot and each.alive), None)

    def of(self, desc: _NodeDesc) -> TorchProcess:
        return next(process for process in self.processes if process.desc == desc)

    @property
    def ttl(self) -> float:
        return self.setting.interval * self.setting.attempts

    @property
    def register(self) -> _RendezvousState:
        return decoded(self.store.keys.get(KEY, b"")) or _RendezvousState()

    def _narrate(self, who: str, what: str) -> None:
        if self.tell:
            self.tell(self.future.now, who, what)
