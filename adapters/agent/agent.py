"""The agent of one node: one inbox of events -> `core.group.transition` -> commands carried out.

Many threads post, one decides: the rendezvous, the heart, the workers' watcher and the signal handlers only put into the
inbox. The agent's thread alone holds the group. It also starts the workers, because the kernel ties their lives to it.
"""

from __future__ import annotations

import os
from functools import partial
from typing import assert_never

from attrs import evolve

from ...core.group import Group, Outcome, Stopped, begin, transition
from ...core.group.state import (
    Beat,
    Beaten,
    Close,
    Closed,
    Command,
    Elapsed,
    End,
    Event,
    Exited,
    Gone,
    Join,
    Leave,
    MarkDone,
    Reaped,
    Record,
    RecordUnstartable,
    Signal,
    Signalled,
    Start,
    StartAgain,
    Unstartable,
)
from ...core.node import acknowledged, farewell, follows, heard, requested
from ...core.rendezvous import Held, RendezvousState, handlers
from ...core.rendezvous.operations import LINGER_S
from ...core.world import Life, Node, Profile, World
from ..clean_up import failures_of
from ..clock import Clock
from ..launch_settings import LaunchSettings
from ..rendezvous.heart import Heart
from ..rendezvous.loop import RendezvousLoop
from ..rendezvous.reserved_ports import Reservation
from ..report.launch_report import Result
from ..report.news import (
    NoTrace,
    Observer,
    Recorded,
    Restored,
    Seen,
    StartedAgain,
    Step,
    StoreBack,
    StoreSilent,
    Told,
    Trace,
    TraceLost,
    WatchdogTold,
)
from ..report.worker_ends import WorkerEnds
from ..store.port import Backend
from ..workers.attempts import worker_logs
from ..workers.child_processes import SubprocessWorkers
from ..workers.orphans import Orphans
from ..workers.spawner import Spawner
from ..workers.worker_port import CannotStart, Exit, Shortage, passes
from .inbox import Asked, ChildDied, Died, Heartbeat, Inbox, Stuck
from .signals import signals_as_events
from .watchdogs import Watchdogs
from .worker_group import WorkerGroup

_DRAIN_TIMEOUT_S = 5.0
"""The end of the job waits so long for a console that does not read."""
_RECORD_TIMEOUT_S = 5.0
"""The end of the job waits so long for failures that are on their way to the record."""


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
    ) -> None:
        """Raises ValueError if no log directory can be made, OSError if the host has no port or descriptor left."""
        self._settings = settings
        self._clock = clock
        self._observer = observer
        self._trace = trace or NoTrace()
        self._inbox = Inbox(clock)
        self._orphans = orphans
        self._logs = worker_logs(settings)
        self._reserved = Reservation(settings.address)
        self._host = os.uname().nodename
        self.node = Node(settings.slot or f"{settings.address}/{os.urandom(4).hex()}", int(clock.wall() * 1000))
        self._introduced = settings.profile(self._reserved.endpoint, self._host)  # reads the program's file, once
        held = Held(self.node, self._introduced, settings.rendezvous, Life(os.urandom(8).hex()))
        self._begin_trace = partial(self._trace.begin, held, settings.group, clock, self._inbox.post)
        self._rendezvous = RendezvousLoop(backend, held, clock, self._inbox.post, self._trace.took)
        self._heart = Heart(backend, self.node, settings.rendezvous.keep_alive_interval, clock, self._inbox.beaten)
        self._lingers = self._is_known_to_leave = False
        self.failures: list[Exception] = []
        """The failures of the clean-up at the end. The result does not depend on them."""
        self._state: RendezvousState | None = None
        self._watchdogs = Watchdogs(settings.watchdogs, self._inbox.stuck, self._inbox.asked, self._inbox.watchdog_told)
        workers = SubprocessWorkers(self._inbox.died, clock.now, spawner=spawner)
        submit = self._rendezvous.submit
        self._ends = WorkerEnds(self.node, self._host, backend, submit, clock.wall_text, workers.drain)
        self._workers = WorkerGroup(
            settings,
            self.node,
            self._host,
            clock,
            workers,
            self._logs,
            self._watchdogs,
            self._ends,
            self._inbox.has_had_a_signal,
        )

    @property
    def report_path(self) -> str | None:
        """The path of the report among the logs; None if the user keeps none."""
        return self._logs.report_path

    @property
    def _profile(self) -> Profile:
        return evolve(self._introduced, endpoint=self._reserved.endpoint)

    def run(self) -> Result:
        """Take part in the job until it has a verdict, or this node leaves or is refused. No process, thread or descriptor
        of it is left afterwards. Raises CannotTrace or CannotWatch before anything is done."""
        child_died = self._inbox.child_died if self._orphans else None
        with signals_as_events(self._settings.signals, self._inbox.signalled, child_died):
            try:
                self._begin_trace()
                self._watchdogs.start()
                self._tell_of_watchdog("watchdog started")
                self._rendezvous.start()
                self._heart.start()
                return self._run()
            finally:
                self.failures = self._close()

    def _run(self) -> Result:
        at = self._clock.now()
        group, commands = begin(Group(self.node, self._settings.group), at)
        self._took(None, group, group, commands, at)
        while (outcome := group.outcome) is None:
            event = self._next(group.until)
            if event is None:
                continue
            before, (group, commands) = group, transition(group, event)
            self._took(event, before, group, commands, self._clock.now())
            if consequence := follows(event, group, self._clock.now()):
                self._inbox.post(consequence)
        self._last_words(outcome)
        self._workers.drain(_DRAIN_TIMEOUT_S)
        return self._result(outcome, group.stopped_at)

    def _result(self, outcome: Outcome, stopped_at: float | None) -> Result:
        """Gather what came of it. A node that was told to stop does not ask a store that has not heard of that."""
        is_hurried = isinstance(outcome, Stopped) and not self._is_known_to_leave
        ends = self._ends
        faults = ends.own_faults if is_hurried else ends.all_faults()
        return Result(self.node, outcome, faults, self._state, ends.round, ends.ranks, ends.of_round(stopped_at))

    def _took(self, event: Event | None, before: Group, after: Group, commands: tuple[Command, ...], at: float) -> None:
        self._trace.took(transition, event, commands, at)
        self._is_known_to_leave |= isinstance(event, Gone | Closed)
        for command_ in commands:
            self._carry_out(command_)
        self._observer.saw(Step(event, before, after, commands, self._clock.now()))

    # --- events in

    def _next(self, until: float | None) -> Event | None:
        """Take the next message; return its event, or None if it concerns no machine."""
        wake_at = min((at for at in (until, self._observer.until) if at is not None), default=None)
        match self._inbox.take(wake_at):
            case None:
                self._observer.passed(self._clock.now())
                return Elapsed(self._clock.now())
            case Died(local_rank, pid):
                ended = self._workers.collect(local_rank, pid)
                return self._exited(ended) if ended else None
            case Stuck(local_rank, pid, text):
                ended = self._workers.give_up(local_rank, pid, text)
                return self._exited(ended) if ended else None
            case ChildDied():
                if self._orphans:
                    self._orphans.reap(self._workers.pids)
                return None
            case Asked(answer):
                answer()
                return None
            case Told(handlers.linger):
                self._lingers = False
                return None
            case Told() as told:
                return heard(told, self._clock.now())
            case Heartbeat(sent_at, life):
                return Beaten(sent_at, self._clock.now()) if acknowledged(life, self._state) else None
            case Recorded() as recorded:
                self._ends.recorded(recorded.fault)
                self._observer.saw(recorded)
                return None
            case Restored() | Seen() | StoreSilent() | StoreBack() | TraceLost() | WatchdogTold() as news:
                self._state = news.state if isinstance(news, Seen) else self._state
                self._observer.saw(news)
                return None
            case event:
                return event

    def _last_words(self, outcome: Outcome) -> None:
        """Wait until this node's failures are on record and the store is seen to know the verdict. A signal ends the
        wait."""
        until = self._clock.now() + _RECORD_TIMEOUT_S
        if last := farewell(outcome):
            self._lingers, until = True, until + LINGER_S
            self._rendezvous.submit(last)
        while (self._ends.are_being_recorded or self._lingers) and self._clock.now() < until:
            if isinstance(self._next(until), Signalled):
                return

    def _exited(self, ended: Exit) -> Exited:
        return Exited(ended.local_rank, ended.code, ended.died_at, self._clock.now())

    # --- commands out

    def _carry_out(self, command_: Command) -> None:
        match command_:
            case Join() | End() | MarkDone() | Leave() | Close():
                self._ask_rendezvous(command_)
            case Beat():
                self._heart.beat()
            case Start(world):
                self._start(world)
            case StartAgain(local_rank):
                self._start_again(local_rank)
            case Signal(signum):
                self._workers.signal(signum)
            case Record(local_rank):
                self._ends.record_failure(local_rank)
            case RecordUnstartable(text):
                self._ends.record_unstartable(text)
            case other:
                assert_never(other)

    def _ask_rendezvous(self, command_: Command) -> None:
        """Submit a command to the rendezvous. A node joins each round with a port that no worker has used."""
        if isinstance(command_, Join):
            self._reserve_again()
        if request := requested(command_, self._profile):
            self._rendezvous.submit(request)

    def _reserve_again(self) -> None:
        """Reserve another port. A host that has none for now leaves this node its last one, which no worker uses now."""
        try:
            reserved = Reservation(self._settings.address)
        except OSError:
            return
        self._reserved.release()
        self._reserved = reserved

    def _start(self, world: World) -> None:
        try:
            started = self._workers.start(world)
            self._trace.took(Start, started.world.round, started.pids, started.at)
            self._observer.saw(started)
            if self._orphans:
                self._orphans.adopt()
        except (CannotStart, Shortage, OSError) as error:
            now = self._clock.now()
            self._inbox.post(Unstartable(str(error), now, passes(error)))
            self._inbox.post(Reaped(now))

    def _start_again(self, local_rank: int) -> None:
        match self._workers.start_again(local_rank):
            case StartedAgain() as started:
                self._observer.saw(started)
            case Exit() as ended:
                self._inbox.post(self._exited(ended))

    def _tell_of_watchdog(self, name: str) -> None:
        if self._settings.watchdogs.timer_file is not None:
            self._observer.saw(WatchdogTold(name, {}, self._clock.now()))

    def _close(self) -> list[Exception]:
        return failures_of(
            self._watchdogs.close,
            partial(self._tell_of_watchdog, "watchdog stopped"),
            self._workers.close,
            *([self._orphans.kill] if self._orphans else []),
            self._rendezvous.stop,
            self._heart.stop,
            self._trace.end,
            self._reserved.release,
            self._logs.close,
        )
