"""The agent of one node: one inbox of events -> `core.group.transition` -> commands carried out.

Many post, one decides: the rendezvous, the heart, the workers' watcher and the signal handlers only put into the inbox; this
thread alone holds the group. It also is the thread that starts workers, because the kernel ties their lives to it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import assert_never

from attrs import frozen

from ..core.agent import acknowledged, farewell, follows, heard, wished
from ..core.group import Group, Outcome, Stopped, begin, transition
from ..core.group.state import (
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
from ..core.ranks import Ranks, WorkerRanks, assign, by_node_rank, node_rank_label
from ..core.rendezvous import Held, RendezvousState, handlers
from ..core.rendezvous.operations import LINGER_S
from ..core.world import Fault, Life, Node, Profile, World
from .backends.port import Backend, StoreError, noted
from .clock import Clock
from .endpoint import Reservation
from .ends import WorkerEnd, worker_ends
from .faults import UNSTARTABLE, Attempt, again, read_fault, unstartable_fault
from .heart import Heart
from .news import (
    Heartbeat,
    Notice,
    NoTrace,
    Observer,
    Recorded,
    Restored,
    Seen,
    Started,
    Step,
    StoreBack,
    StoreSilent,
    Told,
    Trace,
    TraceLost,
)
from .oversight import Followed, Overseers
from .rendezvous_loop import RendezvousLoop, ToRecord
from .settings import Kind, LaunchSettings, Program
from .workers.environment import command, environment
from .workers.errors import leave_error_file
from .workers.logs import OwnLogs, Place, WorkerLogs, line_prefix, make_run_directory
from .workers.nvml import DRIVER, VARIABLE
from .workers.port import CannotStart, Exit, WorkerSpec
from .workers.processes import Spawner
from .workers.programs import check_script
from .workers.subprocess import SubprocessWorkers

DRAIN_TIMEOUT_S = 5.0
"""How long the end of the job waits for a console that does not read."""
RECORD_TIMEOUT_S = 5.0
"""How long it waits for failures that are still being put on record."""


@frozen
class Died:
    """A worker died and is not reaped yet."""

    local_rank: int
    at: float


@frozen
class Stuck:
    """A worker hangs in the kernel; what that means is in its error file if it has one."""

    local_rank: int
    pid: int
    text: str


@frozen
class Asked:
    """Somebody asks whether this thread lives."""

    answer: Callable[[], None]


@frozen
class Result:
    """How this agent's part ended, and what the job put on record: the same on every node that heard the verdict.

    `state` is the register as this node saw it last; `round`, `ranks` and `ends` are those of the last workers that it
    had.
    """

    node: Node
    outcome: Outcome
    faults: tuple[Fault, ...]
    state: RendezvousState | None
    round: int = 0
    ranks: Ranks = Ranks(0, 0, 0, "", 0, ())
    ends: tuple[WorkerEnd, ...] = ()


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
    ) -> None:
        """Raises ValueError if no log directory can be made, OSError if the host has no port left."""
        self._settings = settings
        self._backend = backend
        self._clock = clock
        self._observer = observer
        self._trace = trace or NoTrace()
        self._inbox: SimpleQueue[Event | Died | Stuck | Asked | Heartbeat | Notice | TraceLost] = SimpleQueue()
        self._logs = _logs(settings)
        self._reserved = Reservation(settings.address)
        self._host = os.uname().nodename
        self.node = Node(settings.slot or f"{settings.address}/{os.urandom(4).hex()}", int(clock.wall() * 1000))
        held = Held(self.node, self._profile(), settings.rendezvous, Life(os.urandom(8).hex()))
        self._begin_trace = partial(self._trace.begin, held, settings.group, clock, self._inbox.put)
        self._rendezvous = RendezvousLoop(backend, held, clock, self._inbox.put, self._trace)
        self._heart = Heart(backend, self.node, settings.rendezvous.keep_alive_interval, clock, self._beaten)
        self._workers = SubprocessWorkers(lambda rank, at: self._inbox.put(Died(rank, at)), clock.now, spawner=spawner)
        self._round, self._ranks = 0, Ranks(0, 0, 0, settings.role, 0, ())
        self._recording = 0
        self._restarts = 0
        self._lingers = self._is_known_to_leave = False
        self._own_faults: list[Fault] = []
        self._state: RendezvousState | None = None
        self._attempts: Mapping[int, Attempt] = {}
        self._pids: dict[int, int] = {}
        """Of the workers that were started last, by local rank."""
        self._exits: dict[int, Exit] = {}
        self._failed: set[int] = set()
        self._signal_seen = False
        self._overseers = Overseers(settings.oversight, self._hangs, lambda answer: self._inbox.put(Asked(answer)))

    @property
    def report_path(self) -> str | None:
        """Where the report belongs if the user keeps logs."""
        return self._logs.report_path

    def run(self) -> Result:
        """Take part in the job until it has a verdict, or this node leaves or is refused. Nothing of it lives afterwards.
        Raises CannotTrace or CannotOversee before anything is done."""
        with self._signals():
            try:
                self._begin_trace()
                self._overseers.start()
                self._rendezvous.start()
                self._heart.start()
                return self._run()
            finally:
                self._close()

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
                self._inbox.put(consequence)
        self._last_words(outcome)
        self._workers.drain(DRAIN_TIMEOUT_S)
        ends = worker_ends(self._round, self._ranks, self._exits, self._failed, group.stopped_at)
        return Result(self.node, outcome, self._faults(outcome), self._state, self._round, self._ranks, ends)

    def _faults(self, outcome: Outcome) -> tuple[Fault, ...]:
        """What is on record for all, or, when the store does not say, what this node put there. A node that was told to stop
        does not wait for one that has not even heard of that."""
        if isinstance(outcome, Stopped) and not self._is_known_to_leave:
            return tuple(self._own_faults)
        try:
            return self._backend.faults()
        except StoreError:
            return tuple(self._own_faults)

    def _took(self, event: Event | None, before: Group, after: Group, commands: tuple[Command, ...], at: float) -> None:
        self._trace.took(transition, event, commands, at)
        self._is_known_to_leave |= isinstance(event, Gone | Closed)
        for command_ in commands:
            self._carry_out(command_)
        self._observer.saw(Step(event, before, after, commands, self._clock.now()))

    # --- events in

    def _next(self, until: float | None) -> Event | None:
        """The next event; None for what is news to the observer alone."""
        wake_at = min((at for at in (until, self._observer.until) if at is not None), default=None)
        timeout = None if wake_at is None else min(max(wake_at - self._clock.now(), 0.0), threading.TIMEOUT_MAX)
        try:
            message = self._inbox.get(timeout=timeout)
        except Empty:
            self._observer.passed(self._clock.now())
            return Elapsed(self._clock.now())
        match message:
            case Died(local_rank) if local_rank in self._exits:
                return None  # it was given up
            case Died(local_rank):
                return self._collected(local_rank, self._workers.collect(local_rank))
            case Stuck(local_rank, pid, text):
                return self._given_up(local_rank, pid, text)
            case Asked(answer):
                answer()
                return None
            case Told(handlers.linger):
                self._lingers = False
                return None
            case Told() as told:
                return heard(told.handler, told.answer, self._clock.now())
            case Heartbeat(sent_at, life):
                return Beaten(sent_at, self._clock.now()) if acknowledged(life, self._state) else None
            case Recorded() as recorded:
                self._recorded(recorded)
                return None
            case Restored() | Seen() | StoreSilent() | StoreBack() | TraceLost() as news:
                self._state = news.state if isinstance(news, Seen) else self._state
                self._observer.saw(news)
                return None
            case event:
                return event

    def _recorded(self, recorded: Recorded) -> None:
        self._recording -= 1
        noted(self._own_faults, recorded.fault)
        self._observer.saw(recorded)

    def _last_words(self, outcome: Outcome) -> None:
        """The job may be over before all failures that led there are on record, and before its store is seen to know the
        verdict. A signal ends the wait."""
        until = self._clock.now() + RECORD_TIMEOUT_S
        if last := farewell(outcome):
            self._lingers, until = True, until + LINGER_S
            self._rendezvous.submit(last)
        while (self._recording or self._lingers) and self._clock.now() < until:
            if isinstance(self._next(until), Signalled):
                return

    def _given_up(self, local_rank: int, pid: int, text: str) -> Exited | None:
        if ended := self._workers.give_up(local_rank, pid):
            leave_error_file(self._attempts[local_rank].error_file, text)
            return self._collected(local_rank, ended)
        return None

    def _collected(self, local_rank: int, ended: Exit) -> Exited:
        self._exits[local_rank] = ended
        return Exited(local_rank, ended.code, ended.died_at, self._clock.now())

    def _hangs(self, local_rank: int, pid: int, text: str) -> None:
        self._inbox.put(Stuck(local_rank, pid, text))

    def _beaten(self, sent_at: float, life: Life | None) -> None:
        self._inbox.put(Heartbeat(sent_at, life))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """While the agent runs, its signals are events; afterwards they mean again what they meant before.

        SIGCHLD must not be ignored, as some supervisors leave it: the kernel would throw the exit codes away.
        """
        before = {}
        try:
            if threading.current_thread() is threading.main_thread():
                before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for signum in self._settings.signals:
                    if not (signum == signal.SIGHUP and signal.getsignal(signum) is signal.SIG_IGN):  # nohup
                        before[signum] = signal.signal(signum, self._signalled)
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    def _signalled(self, signum: int, frame: FrameType | None) -> None:
        self._signal_seen = True
        self._inbox.put(Signalled(signum, self._clock.now()))

    # --- commands out

    def _carry_out(self, command_: Command) -> None:
        match command_:
            case Join() | End() | MarkDone() | Leave() | Close():
                self._wish(command_)
            case Beat():
                self._heart.beat()
            case Start(world):
                self._start(world)
            case StartAgain(local_rank):
                self._start_again(local_rank)
            case Signal(signum):
                self._workers.signal(signum)
            case Record(local_rank):
                self._failed.add(local_rank)
                attempt, ended = self._attempts[local_rank], self._exits[local_rank]
                self._record(partial(read_fault, attempt, ended, self._clock.wall_text(), self._workers.drain))
            case RecordUnstartable(text):
                place = self.node, self._host, self._round, self._ranks
                self._record(partial(unstartable_fault, *place, self._clock.wall_text(), text))
            case other:
                assert_never(other)

    def _record(self, read: Callable[[], Fault]) -> None:
        self._recording += 1
        self._rendezvous.submit(ToRecord(read))

    def _wish(self, command_: Command) -> None:
        """A node joins each round with a port that no worker has used."""
        if isinstance(command_, Join):
            self._reserved.release()
            self._reserved = Reservation(self._settings.address)
        if request := wished(command_, self._profile()):
            self._rendezvous.submit(request)

    def _profile(self) -> Profile:
        settings = self._settings
        labels = () if settings.node_rank is None else (node_rank_label(settings.node_rank),)
        return Profile(self._reserved.endpoint, settings.local_world_size, settings.role, self._host, labels)

    def _start(self, world: World) -> None:
        world = by_node_rank(world)
        self._round, self._ranks = world.round, assign(world)[self.node]
        dead, self._exits, self._failed = {ended.pid for ended in self._exits.values()}, {}, set()
        try:
            self._wait_for_gpus(dead)
            self._attempts = self._places(world)
            program = self._settings.program
            if isinstance(program, Program) and program.kind in (Kind.SCRIPT, Kind.PATH):
                check_script(program.name)
            pids = self._workers.start([attempt.spec for attempt in self._attempts.values()])
            self._pids = dict(zip(self._attempts, pids, strict=True))
            self._follow()
            started = Started(world, tuple(pids), self._clock.now())
            self._trace.took(Start, world.round, started.pids, started.at)
            self._observer.saw(started)
        except (CannotStart, OSError) as error:
            now = self._clock.now()
            self._inbox.put(Unstartable(str(error), now))
            self._inbox.put(Reaped(now))

    def _start_again(self, local_rank: int) -> None:
        """One that cannot be started has failed once more."""
        self._restarts += 1
        attempt = again(self._attempts[local_rank], self._restarts)
        self._attempts = {**self._attempts, local_rank: attempt}
        self._exits.pop(local_rank)
        try:
            (self._pids[local_rank],) = self._workers.start([attempt.spec])
            self._follow()
        except (CannotStart, OSError):
            now = self._clock.now()
            self._exits[local_rank] = Exit(local_rank, 0, UNSTARTABLE, now, now)
            self._inbox.put(Exited(local_rank, UNSTARTABLE, now, now))

    def _follow(self) -> None:
        followed = {pid: Followed(rank, self._attempts[rank].error_file) for rank, pid in self._pids.items()}
        self._overseers.follow(followed)

    def _wait_for_gpus(self, dead: set[int]) -> None:
        if dead and DRIVER.exists():
            from .workers.gpu_memory import wait_until_given_back

            visible = self._settings.environment.get(VARIABLE)
            wait_until_given_back(dead, visible, lambda: self._signal_seen)

    def _places(self, world: World) -> Mapping[int, Attempt]:
        settings, slot = self._settings, self.node.slot
        workers = {worker.local_rank: worker for worker in self._ranks.workers}
        found = {rank: environment(settings, slot, world, self._ranks, each) for rank, each in workers.items()}
        for each in found.values():
            each.update(self._overseers.environment)
        places = self._logs.places(world.round, found)
        return {rank: self._attempt(world.round, each, found[rank], places[rank]) for rank, each in workers.items()}

    def _attempt(self, round: int, worker: WorkerRanks, found: Mapping[str, str], place: Place) -> Attempt:
        settings = self._settings
        spec = WorkerSpec(
            worker.local_rank,
            command(settings.program, worker),
            found,
            place.stdout,
            place.stderr,
            line_prefix(settings.logs.prefix, settings.role, worker.rank, worker.local_rank),
            settings.cpus[worker.local_rank] if settings.cpus else None,
        )
        return Attempt(self.node, self._host, round, self._ranks, spec, place.error_file)

    def _close(self) -> None:
        self._overseers.close()
        self._workers.close()
        self._rendezvous.stop()
        self._heart.stop()
        self._trace.end()
        self._reserved.release()
        self._logs.close()


def _logs(settings: LaunchSettings) -> WorkerLogs:
    if settings.logs_plugin is None:
        return OwnLogs(settings.logs, make_run_directory(settings.logs.directory, settings.run_id))
    from .workers.plugged_logs import PluggedLogs

    return PluggedLogs(settings.logs_plugin, settings.logs)
