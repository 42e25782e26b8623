"""The agent of one node: one inbox of events -> `core.agent.step` -> effects (`effects.py`).

Many threads post, one decides: the rendezvous, the heart, the workers' watcher and the signal handlers only put into the
inbox. The agent's thread alone holds the group. It also starts the workers, because the kernel ties their lives to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from signal import Signals
from typing import TYPE_CHECKING

from ...core import agent as core
from ...core.group import Group, Outcome
from ...core.group.state import Elapsed, Signalled
from ...core.node import had_a_seat
from ...core.rendezvous.operations import LINGER_S
from ...core.values import evolve
from ...core.world import Ending, Node, Unfit, Verdict
from ..clean_up import CleanUp
from ..clock import Clock
from ..disk import Disk, Patience
from ..launch_settings import LaunchSettings
from ..report.launch_report import Result, unstarted
from ..report.news import (
    NoTrace,
    Observer,
    Recorded,
    Remark,
    Restored,
    Seen,
    StoodStill,
    StoreBack,
    StoreSilent,
    TimeTold,
    Trace,
    TraceLost,
    WatchdogTold,
)
from ..signals import signals_as_events
from ..store.notes import TIMES, UNFIT
from ..store.port import Backend, StoreError
from ..workers.start.attempts import worker_logs
from ..workers.start.spawner import Executor, Here, Spawner
from ..workers.start_up import start_up
from ..workers.watch.oom_score import Protection
from ..workers.watch.orphans import Orphans
from ..workers.watch.process_groups import named
from ..workers.watch.reaper_process import ReaperProcess
from ..workers.watch.watcher import Watcher
from .effects import Effects
from .inbox import (
    Asked,
    ChildDied,
    Died,
    EndRead,
    Inbox,
    Message,
    StandbyTold,
    Stuck,
    ThreadFailed,
    WorkerReport,
    WorkersReady,
)
from .node_time import NodeTime
from .parts import Part, Shared
from .peers import Evict, Peers

if TYPE_CHECKING:
    from ...core.goodput import JobTime
    from ..store.connection import RoundHost

_RECORD_TIMEOUT_S = 5.0
"""The end of the job waits this long for failures that are on their way to the record."""
_STACKS_TIMEOUT_S = 5.0
"""The end of the job waits this long for the stacks of the other nodes."""
_STACKS_PAUSE_S = 0.02
_TIMES_TIMEOUT_S = 0.5
"""The end of a job whose report tells where its time went waits this long for the last records of the other nodes."""
_LEFT_END_S = 1.0
"""Processes that workers have left may take this long to end by SIGTERM."""


class Agent:
    """One node's part in one job; `run` once."""

    def __init__(
        self,
        settings: LaunchSettings,
        backend: Backend,
        clock: Clock,
        observer: Observer,
        trace: Trace | None = None,
        spawner: Spawner | None = None,
        orphans: Orphans | None = None,
        evict: Evict = lambda parties, me, awaited: None,
        patience: Patience | None = None,
        protection: Protection | None = None,
        executor: Executor | None = None,
        rounds: RoundHost | None = None,
        node: Node | None = None,
    ) -> None:
        """`node`: who this agent is; None: a new start. `patience` is for disks and consoles at the end of the job. Without
        a `spawner` the `executor` executes the workers. `rounds` serves the rounds' stores; None: worker rank 0 does. Raises
        CannotLog, and OSError if the host has no port left."""
        self._settings, self._backend, self._clock, self._observer = settings, backend, clock, observer
        self._trace = self._time = NodeTime(trace or NoTrace(), lambda: self._agent.group)
        self._inbox = inbox = Inbox(clock)
        self._patience = patience = patience or Patience()
        self._disk = disk = Disk()
        self._logs = worker_logs(settings, observer.saw, disk)
        self._peers = peers = Peers(settings, backend, clock, inbox, self._trace, evict, rounds, node)
        self.node = peers.node
        self._agent = core.Agent(Group(self.node, settings.group), puts_stacks=settings.stacks_signal is not None)
        start = start_up(settings) if spawner is None else None  # a forked worker runs none: it reports by itself
        links, hand = peers.links, executor or Here()
        reaper = ReaperProcess(listener=links.server.listener.fileno() if links else None, protection=protection)
        watcher, host = Watcher(clock.now, inbox.failed), peers.host
        shared = Shared(
            settings, peers.node, host, backend, clock, inbox, observer, disk, patience, reaper, watcher, hand, start
        )
        self._effects = Effects(shared, peers, self._logs, self._trace, spawner, orphans, lambda: self._agent)
        self._adopts = orphans is not None
        self.failures: list[Exception] = []
        """The failures of the clean-up at the end. The result does not depend on them."""

    @property
    def report_path(self) -> str | None:
        """The path of the report among the logs; None if the user keeps none."""
        return self._logs.report_path

    @property
    def gone_by(self) -> float | None:
        """When this node must be gone, if it is drained."""
        deadline = self._agent.group.deadline
        return deadline.gone_by if deadline else None

    @property
    def _parts(self) -> Sequence[Part]:
        """Return all parts in the order in which they start. They are closed in reverse: the workers, then what ties this
        node to others, then what it writes to."""
        trace = Part(partial(self._patience.spend, self._trace.end))
        return (Part(self._disk.close), Part(self._logs.close), trace, *self._peers.parts, *self._effects.parts)

    def stop(self, signum: int) -> None:
        """Take it as this signal of the process: another thread's way to end the agent, any number of times."""
        self._inbox.signalled(signum, None)

    def run(self) -> Result:
        """Take part in the job until it has a verdict, or this node leaves or is refused. No process, thread or descriptor
        of it is left afterwards. Raises CannotTrace or CannotWatch before anything is done, RuntimeError for an error in a
        thread without which there is no agent."""
        child_died = self._inbox.child_died if self._adopts else None
        drain = self._settings.drain
        further = {drain.signal: self._is_drained_by_signal} if drain.signal else {}
        with (
            signals_as_events(self._settings.signals, self._inbox.signalled, child_died, further) as blocked,
            CleanUp(self.failures) as closing,
        ):
            parts = self._parts
            for part in parts:
                closing.closes(part.close)
            self._trace.begin(self._peers.held, self._settings.group, self._clock, self._inbox.post)
            if blocked:
                self._observer.saw(Remark(blocked))
            self._effects.watchdogs.start()
            self._effects.tell_of_watchdog("watchdog started")
            for part in parts:
                part.start()
            result = self._run()
        return evolve(result, goodput=self._time.totals(self._clock.now()))

    def _run(self) -> Result:
        if lack := self._effects.lack():
            self._step(lack)
        else:
            self._begin()
        while (outcome := self._agent.outcome) is None:
            self._next(self._agent.group.until)
        self._peers.tell_end()
        self._last_words(outcome)
        self._linger(outcome)
        self._patience.spend(self._effects.workers.drain)
        return self._result(outcome, self._agent.group.stop.at)

    def _begin(self) -> None:
        are_settled = self._effects.are_settled
        self._agent, effects = core.begin(evolve(self._agent, are_settled=are_settled), self._clock.now())
        self._effects.carry_out(effects)
        if self._effects.begin_standbys():
            self._step(core.Settled(are_settled=True))

    def _result(self, outcome: Outcome, stopped_at: float | None) -> Result:
        """Gather what came of it. A node that was told to stop does not ask a store that has not heard of that."""
        hurries, parts = core.is_hurried(self._agent), self._effects
        ends, alone, world = parts.ends, parts.workers.restarts, parts.workers.world
        faults = ends.own_faults if hurries else ends.all_faults()
        last = ends.round, ends.ranks, ends.of_round(stopped_at)
        standbys = parts.standbys.count if parts.standbys else None
        stacks = parts.stacks.of(world) if faults and world and not hurries else ()
        unfit, suspected = self._unfit(hurries), parts.suspected
        if isinstance(outcome, Verdict):
            faults, unfit = unstarted(faults, unfit, outcome)
        state = self._agent.state
        again = had_a_seat(self._peers.held, state)
        time = None if hurries else self._job_time(isinstance(outcome, Verdict))
        return Result(
            self.node, outcome, faults, state, *last, alone, standbys, stacks, unfit, suspected, again, job_time=time
        )

    def _job_time(self, is_over: bool) -> JobTime | None:
        """Return where the time of the job's nodes went, by their records; None for a short part. The first node alone reads
        them: of many nodes each would read as many. If the job is over, the last ones are on their way. A signal ends the
        wait."""
        time, state = self._peers.time, self._agent.state
        if state is None or state.first != self.node or (own := time.job(())) is None:
            return None
        others = [node for node in state.seats if node != self.node]
        until = self._clock.now() + (_TIMES_TIMEOUT_S if is_over and own.is_told else 0.0)
        pause_s = _STACKS_PAUSE_S
        while True:
            try:
                found = time.job(self._backend.notes.read(TIMES, others).values()) if others else own
            except StoreError:
                return None
            now = self._clock.now()
            if found is None or now >= until or found.ended.issuperset(state.present):
                return found
            if self._next(min(until, now + pause_s)):
                return found
            pause_s *= 2

    def _unfit(self, hurries: bool) -> tuple[Unfit, ...]:
        """Return the nodes that stay out of the job."""
        own = self._effects.unfit
        try:
            found = () if hurries else self._backend.notes.all(UNFIT)
        except StoreError:
            found = ()
        return found if own is None or own in found else (*found, own)

    def _is_drained_by_signal(self, signum: int, frame: object) -> None:
        self._inbox.drained(f"the signal {Signals(signum).name}", self._settings.drain.deadline_s)

    # --- events in

    def _next(self, until: float | None) -> bool:
        """Take the next message, and a step if it says something. Return True if it was a signal."""
        standbys = self._effects.standbys
        timers = (until, self._observer.until, standbys.until if standbys else None)
        wake_at = min((at for at in timers if at is not None), default=None)
        event = self._heard(self._inbox.take(wake_at))
        self._step(core.Settled(self._effects.are_settled))  # standbys tell nobody when they are settled
        if event is not None:
            self._step(event)
        return isinstance(event, Signalled)

    def _step(self, event: core.Event) -> None:
        self._agent, effects = core.step(self._agent, event, self._clock.now())
        self._effects.carry_out(effects)

    def _heard(self, message: Message | None) -> core.Event | None:
        """Return the event of a message; None if it concerns no machine."""
        effects, workers = self._effects, self._effects.workers
        match message:
            case None:
                self._observer.passed(self._clock.now())
                if effects.standbys:
                    effects.standbys.passed(self._clock.now())
                return Elapsed(self._clock.now())
            case Died(local_rank, pid) if effects.hear_ready():
                self._inbox.died(local_rank, pid)  # what it said comes before its end
                return None
            case Died(local_rank, pid):
                return workers.collect(local_rank, pid)
            case WorkerReport(local_rank, pid, report):
                return workers.reported(local_rank, pid, report)
            case Stuck(local_rank, pid, text):
                return workers.give_up(local_rank, pid, text)
            case EndRead(ended):
                return workers.known_end(ended)
            case ChildDied():
                effects.reap_orphans()
                return None
            case StandbyTold(pid):
                effects.hear_standby(pid)
                return None
            case WorkersReady():
                effects.hear_ready()
                return None
            case Asked(answer):
                answer()
                return None
            case ThreadFailed(name, error):
                raise RuntimeError(f"the agent cannot go on without its thread {name}: {error!r}") from error
            case Seen(state):
                self._peers.time.sees(state)
                self._observer.saw(message)
                return message
            case StoreSilent() | StoreBack():
                self._observer.saw(message)
                return message
            case Recorded():
                effects.ends.recorded(message.fault)
                self._observer.saw(message)
                return None
            case Restored() | StoodStill() | TraceLost() | Remark() | TimeTold() | WatchdogTold():
                self._observer.saw(message)
                return None
            case event:
                return event

    # --- the end

    def _last_words(self, outcome: Outcome) -> None:
        """Wait until this node's failures are on record, all nodes' stacks too, and the store is seen to know the verdict. A
        signal ends the wait."""
        until = self._clock.now() + _RECORD_TIMEOUT_S
        if self._agent.lingers:
            until += LINGER_S
        while (self._effects.ends.are_being_recorded or self._agent.lingers) and self._clock.now() < until:
            if self._next(until):
                return
        if isinstance(outcome, Verdict) and outcome.ending is Ending.FAILED:
            self._wait_for_stacks(until)

    def _linger(self, outcome: Outcome) -> None:
        """Let processes that the workers of a job which succeeded have left run on for a while. A signal ends the wait."""
        workers = self._effects.workers
        if not (isinstance(outcome, Verdict) and outcome.ending is Ending.SUCCEEDED) or workers.await_left(
            self._next, self._clock.now() + self._settings.linger_s
        ):
            return
        self._observer.saw(Remark(f"what workers had left is told to end: {named(workers.left())}"))
        workers.end_left()
        if not workers.await_left(self._next, self._clock.now() + _LEFT_END_S):
            self._observer.saw(Remark(f"killed what workers had left: {named(workers.left())}"))

    def _wait_for_stacks(self, until: float) -> None:
        """Wait until all nodes that can have told what their workers were doing. A signal ends the wait."""
        until, pause_s = min(until, self._clock.now() + _STACKS_TIMEOUT_S), _STACKS_PAUSE_S
        those, stacks = core.awaited(self._agent), self._effects.stacks
        while (world := self._effects.workers.world) and stacks.is_missing(world, those) and self._clock.now() < until:
            if self._next(min(until, self._clock.now() + pause_s)):
                return
            pause_s *= 2
