"""The agent of one node: one inbox of events -> `core.group.transition` -> commands carried out.

Many threads post, one decides: the rendezvous, the heart, the workers' watcher and the signal handlers only put into the
inbox. The agent's thread alone holds the group. It also starts the workers, because the kernel ties their lives to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from signal import Signals
from typing import TYPE_CHECKING, TypeAlias, assert_never

from attrs import evolve

from ...core import agent as core
from ...core.agent import (
    Agent as Deciding,
)
from ...core.agent import (
    Effect,
    FollowLinks,
    FollowWorkers,
    Hear,
    PutStacks,
    Queried,
    Reply,
    Rest,
    See,
    Settled,
    Stepped,
    Submit,
    Suspect,
    ThrowOut,
    absent,
    awaited,
    is_hurried,
    step,
)
from ...core.agent import Report as ReportHang
from ...core.group import Group, Outcome, transition
from ...core.group.state import (
    Beat,
    Beaten,
    Check,
    Checked,
    Elapsed,
    Exited,
    Move,
    Noticed,
    ReadyToLeave,
    Reaped,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Signal,
    Signalled,
    Start,
    StartAgain,
    Tell,
    Unstartable,
)
from ...core.node import lost_parties, ranks_of
from ...core.rendezvous import Held, Prepared, Request, handlers
from ...core.rendezvous.operations import LINGER_S
from ...core.world import NAME_MAX, Ending, Life, Node, Unfit, Verdict, World
from ...core.world import Notice as NoticeToLeave
from ..clean_up import failures_of
from ..clock import Clock
from ..disk import Disk, Patience
from ..launch_settings import LaunchSettings
from ..rendezvous.heart import Heart
from ..rendezvous.loop import RendezvousLoop
from ..rendezvous.reserved_ports import Reservation
from ..report.launch_report import Result
from ..report.news import (
    NoTrace,
    Observer,
    Recorded,
    Remark,
    Restored,
    StartedAgain,
    Step,
    StoodStill,
    StoreBack,
    StoreSilent,
    SuspectedHang,
    Trace,
    TraceLost,
    WatchdogTold,
)
from ..report.news import Seen as Shown
from ..report.stack_records import Seen, StackRecords
from ..report.worker_ends import WorkerEnds
from ..signals import signals_as_events
from ..store.notes import ENDED, STANDBYS, UNFIT
from ..store.port import Backend, StoreError
from ..terminal import printable
from ..threads import NoThread
from ..workers.attempts import worker_logs
from ..workers.child_processes import SubprocessWorkers, reason
from ..workers.environment import lasting_environment
from ..workers.guard import Guard
from ..workers.notices import Notice as ToWorkers
from ..workers.notices import NoticeBoard, notice_path
from ..workers.oom_score import Protection
from ..workers.orphans import Orphans
from ..workers.process_groups import named
from ..workers.spawner import Executing, Executor, Here, Spawner
from ..workers.start_up import StackHandler, StartUp, start_up
from ..workers.watcher import Watcher
from ..workers.worker_port import CannotStart, Exit, Shortage, passes
from .drain_file import DrainFile
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
from .note_teller import NoteTeller
from .watchdogs import Watchdogs
from .worker_group import WorkerGroup

if TYPE_CHECKING:
    from ..rendezvous.evictions import Awaited, Parties
    from ..rendezvous.links import Links
    from ..workers.node_check import NodeChecks
    from ..workers.standbys import Standbys
    from .hang_watch import HangWatch
    from .standstill_watch import StandstillWatch

_RECORD_TIMEOUT_S = 5.0
"""The end of the job waits this long for failures that are on their way to the record."""


_STACKS_TIMEOUT_S = 5.0
"""The end of the job waits this long for the stacks of the other nodes."""
_STACKS_PAUSE_S = 0.02
_LEFT_END_S = 1.0
"""Processes that workers have left may take this long to end by SIGTERM."""
_HANGS_MAX = 16
"""How many of the suspected hangs, the last ones, are in the report."""

Evict: TypeAlias = "Callable[[Parties, Node, Awaited], None]"
"""Take the ranks of these parties out of the workers' registers, in the name of this node."""


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
    ) -> None:
        """`patience` is for disks and consoles at the end of the job. Without a `spawner` the `executor` executes the
        workers. Raises CannotLog, and OSError if the host has
        no port or descriptor left."""
        self._settings = settings
        self._clock = clock
        self._observer = observer
        self._trace = trace or NoTrace()
        self._inbox = Inbox(clock)
        self._orphans = orphans
        self._evict = evict
        self._patience = patience or Patience()
        self._disk = Disk()
        """The disk of the logs and the error files."""
        self._logs = worker_logs(settings, observer.saw, self._disk)
        self._reserved = Reservation(settings.address, settings.listening.ports)
        self._host = os.uname().nodename
        self.node = Node(settings.slot or f"{settings.address}/{os.urandom(4).hex()}", int(clock.wall() * 1000))
        introduced = settings.profile(self._reserved.endpoint, self._host)  # reads the program's file, once
        self._links = self._made_links()
        self._introduced = evolve(introduced, link_port=self._links.server.port) if self._links else introduced
        held = Held(self.node, self._introduced, settings.rendezvous, Life(os.urandom(8).hex()))
        self._begin_trace = partial(self._trace.begin, held, settings.group, clock, self._inbox.post)
        self._rendezvous = RendezvousLoop(backend, held, clock, self._inbox.post, self._inbox.failed, self._trace.took)
        self._beats = backend.clone()
        self._teller = NoteTeller(self._beats.notes, self.node)
        interval_s = settings.rendezvous.keep_alive_interval
        self._heart = Heart(self._beats, self.node, interval_s, clock, self._has_beaten, self._inbox.failed)
        self._agent = Deciding(Group(self.node, settings.group), puts_stacks=settings.stacks_signal is not None)
        self._seen: tuple[Seen, ...] = ()
        """The last look at the workers that are being stopped."""
        self.failures: list[Exception] = []
        """The failures of the clean-up at the end. The result does not depend on them."""
        forks = spawner is not None
        started = None if forks else start_up(settings)  # a forked worker runs no start-up code: it reports by itself
        handler = started.stacks if started else None
        inbox = self._inbox
        self._watchdogs = Watchdogs(
            settings.watchdogs, inbox.stuck, inbox.asked, inbox.watchdog_told, inbox.failed, handler
        )
        listener = self._links.server.listener.fileno() if self._links else None
        guard = Guard(listener=listener, protection=protection)
        watcher = Watcher(clock.now, inbox.failed)
        self._executor = executor or Here()
        spawner = spawner or Executing(started, settings.drain.ignored, self._executor)
        self._standbys = self._made_standbys(spawner, guard, watcher, started)
        workers = SubprocessWorkers(
            inbox.died,
            clock.now,
            guard=guard,
            spawner=self._standbys or spawner,
            watcher=watcher,
            failed=inbox.failed,
            on_report=inbox.reported if started or forks else None,
            remark=lambda text: inbox.asked(partial(observer.saw, Remark(text))),
            linger_s=settings.linger_s,
            disk=self._disk,
            patience=self._patience,
            on_stuck=inbox.stuck,
        )
        self._watcher = watcher
        self._board = NoticeBoard(notice_path(settings.relay)) if settings.relay else None
        path = settings.drain.file
        drained = partial(self._is_drained_by, f"the file {path}")
        self._drain_file = DrainFile(path, drained, inbox.failed) if path else None
        self._prepare = workers.prepare
        self._checks = self._made_checks(guard)
        self._backend = backend
        submit = self._rendezvous.submit
        self._ends = WorkerEnds(
            self.node, self._host, backend, submit, clock.wall_text, workers.drain, inbox.failed, self._disk
        )
        self._stacks = StackRecords(self.node, backend, clock.wall_text, self._disk)
        self._suspected: list[SuspectedHang] = []
        self._hangs = self._made_hang_watch(backend, handler)
        self._standstill: StandstillWatch | None = None
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
            handler,
            self._hangs,
            self._disk,
        )

    @property
    def report_path(self) -> str | None:
        """The path of the report among the logs; None if the user keeps none."""
        return self._logs.report_path

    @property
    def gone_by(self) -> float | None:
        """When this node must be gone, if it is drained."""
        return self._agent.group.gone_by

    def run(self) -> Result:
        """Take part in the job until it has a verdict, or this node leaves or is refused. No process, thread or descriptor
        of it is left afterwards. Raises CannotTrace or CannotWatch before anything is done, RuntimeError for an error in a
        thread without which there is no agent."""
        child_died = self._inbox.child_died if self._orphans else None
        drain = self._settings.drain
        further = {drain.signal: self._is_drained_by_signal} if drain.signal else {}
        with signals_as_events(self._settings.signals, self._inbox.signalled, child_died, further) as blocked:
            try:
                self._begin_trace()
                if blocked:
                    self._observer.saw(Remark(blocked))
                self._watchdogs.start()
                self._tell_of_watchdog("watchdog started")
                self._rendezvous.start()
                self._heart.start()
                if self._links:
                    self._links.start()
                if self._drain_file:
                    self._drain_file.start()
                if self._hangs:
                    self._hangs.start()
                return self._run()
            finally:
                self.failures = self._close()

    def _run(self) -> Result:
        settled = self._standbys is None or self._standbys.are_settled
        self._agent, effects = core.begin(evolve(self._agent, are_settled=settled), self._clock.now())
        self._carry_out(effects)
        self._begin_standbys()
        while (outcome := self._agent.outcome) is None:
            self._next(self._agent.group.until)
        self._last_words(outcome)
        self._linger(outcome)
        self._patience.spend(self._workers.drain)
        return self._result(outcome, self._agent.group.stopped_at)

    def _result(self, outcome: Outcome, stopped_at: float | None) -> Result:
        """Gather what came of it. A node that was told to stop does not ask a store that has not heard of that."""
        hurries = is_hurried(self._agent)
        ends, alone = self._ends, self._workers.restarts
        faults = ends.own_faults if hurries else ends.all_faults()
        last = ends.round, ends.ranks, ends.of_round(stopped_at)
        standbys = self._standbys.count if self._standbys else None
        world = self._workers.world
        stacks = self._stacks.of(world) if faults and world and not hurries else ()
        unfit, suspected = self._unfit(hurries), tuple(self._suspected)
        return Result(self.node, outcome, faults, self._agent.state, *last, alone, standbys, stacks, unfit, suspected)

    def _unfit(self, hurries: bool) -> tuple[Unfit, ...]:
        """Return the nodes that stay out of the job. A job without a check has none."""
        if self._checks is None or hurries:
            return ()
        try:
            return self._backend.notes.all(UNFIT)
        except StoreError:
            return ()

    # --- events in

    def _next(self, until: float | None) -> bool:
        """Take the next message, and a step if it says something. Return True if it was a signal."""
        timers = (until, self._observer.until, self._standbys.until if self._standbys else None)
        wake_at = min((at for at in timers if at is not None), default=None)
        event = self._heard(self._inbox.take(wake_at))
        if event is not None:
            self._take(event)
        return isinstance(event, Signalled)

    def _take(self, event: core.Event) -> None:
        """Take a step. The standbys tell nobody when they are settled, so they are asked before."""
        if self._standbys:
            self._step(Settled(self._standbys.are_settled))
        self._step(event)

    def _step(self, event: core.Event) -> None:
        self._agent, effects = step(self._agent, event, self._clock.now())
        self._carry_out(effects)

    def _heard(self, message: Message | None) -> core.Event | None:
        """Return the event of a message; None if it concerns no machine."""
        match message:
            case None:
                self._observer.passed(self._clock.now())
                if self._standbys:
                    self._standbys.passed(self._clock.now())
                return Elapsed(self._clock.now())
            case Died(local_rank, pid) if self._hear_ready():
                self._inbox.died(local_rank, pid)  # what it said comes before its end
                return None
            case Died(local_rank, pid):
                ended = self._workers.collect(local_rank, pid)
                return self._exited(ended) if ended else None
            case WorkerReport(local_rank, pid, report):
                return self._workers.reported(local_rank, pid, report)
            case Stuck(local_rank, pid, text):
                ended = self._workers.give_up(local_rank, pid, text)
                if ended:
                    self._observer.saw(Remark(f"local rank {local_rank} is given up: {text}"))
                return self._exited(ended) if ended else None
            case EndRead(ended):
                return self._known_end(ended)
            case ChildDied():
                if self._orphans:
                    standbys = self._standbys.pids if self._standbys else ()
                    self._orphans.reap({*self._workers.pids, *standbys})
                return None
            case StandbyTold(pid):
                self._hear_standby(pid)
                return None
            case WorkersReady():
                self._hear_ready()
                self._watch_board()
                return None
            case Asked(answer):
                answer()
                return None
            case ThreadFailed(name, error):
                raise RuntimeError(f"the agent cannot go on without its thread {name}: {error!r}") from error
            case Shown() | StoreSilent() | StoreBack():
                self._observer.saw(message)
                return message
            case Recorded():
                self._ends.recorded(message.fault)
                self._observer.saw(message)
                return None
            case Restored() | StoodStill() | TraceLost() | Remark() | WatchdogTold():
                self._observer.saw(message)
                return None
            case event:
                return event

    def _has_beaten(self, sent_at: float, life: Life | None) -> None:
        """Take an acknowledged heartbeat, in the heart's thread."""
        self._inbox.beaten(sent_at, life)
        self._teller.beaten(life)
        if query := self._beats.notes.query:
            self._inbox.post(Queried(query.id, query.round, query))

    def _follow_links(self) -> None:
        if self._links:
            self._links.follow(self._agent.state, is_silent=self._agent.silent_since is not None)

    def _lost_parties(self) -> Mapping[str, int]:
        return lost_parties(self._agent.lost)

    def _ranks(self) -> Mapping[str, int]:
        return ranks_of(self._agent.state) if self._agent.state else {}

    def _is_drained_by_signal(self, signum: int, frame: object) -> None:
        self._is_drained_by(f"the signal {Signals(signum).name}")

    def _is_drained_by(self, source: str) -> None:
        """Take the word of this host that the node must be gone. Any thread, or a signal's handler, may call this."""
        notice = NoticeToLeave(self._settings.drain.deadline_s, printable(source)[:NAME_MAX])
        self._inbox.post(Noticed(notice, self._clock.now()))

    def _tell(self, tell: Tell) -> None:
        """Tell the workers of the notice. Workers that cannot be told have until the node goes."""
        if self._board is None:
            return
        from_now = self._clock.wall() - self._clock.now()
        try:
            self._board.tell(ToWorkers(tell.gone_by + from_now, tell.goes_at + from_now, tell.notice.source))
        except OSError:
            return
        self._watch_board()

    def _watch_board(self) -> None:
        if self._board and self._board.pipe is not None:
            self._watcher.forget(self._board.pipe)
            self._watcher.watch(self._board.pipe, self._inbox.workers_ready)

    def _close_board(self, board: NoticeBoard) -> None:
        if board.pipe is not None:
            self._watcher.forget(board.pipe)
        board.close()

    def _hear_ready(self) -> bool:
        """Take what workers have said of being ready. Return True if there was something."""
        ready = self._board.ready() if self._board else ()
        for rank in self._workers.local_ranks(ready):
            self._inbox.post(ReadyToLeave(rank, self._clock.now()))
        return bool(ready)

    def _last_words(self, outcome: Outcome) -> None:
        """Wait until this node's failures are on record, all nodes' stacks too, and the store is seen to know the verdict. A
        signal ends the wait."""
        until = self._clock.now() + _RECORD_TIMEOUT_S
        if self._agent.lingers:
            until += LINGER_S
        while (self._ends.are_being_recorded or self._agent.lingers) and self._clock.now() < until:
            if self._next(until):
                return
        if isinstance(outcome, Verdict) and outcome.ending is Ending.FAILED:
            self._wait_for_stacks(until)

    def _linger(self, outcome: Outcome) -> None:
        """Let processes that the workers of a job which succeeded have left run on for a while. A signal ends the wait."""
        if not (isinstance(outcome, Verdict) and outcome.ending is Ending.SUCCEEDED) or self._workers.await_left(
            self._next, self._clock.now() + self._settings.linger_s
        ):
            return
        self._observer.saw(Remark(f"what workers had left is told to end: {named(self._workers.left())}"))
        self._workers.end_left()
        if not self._workers.await_left(self._next, self._clock.now() + _LEFT_END_S):
            self._observer.saw(Remark(f"killed what workers had left: {named(self._workers.left())}"))

    def _wait_for_stacks(self, until: float) -> None:
        """Wait until all nodes that can have told what their workers were doing. A signal ends the wait."""
        until, pause_s = min(until, self._clock.now() + _STACKS_TIMEOUT_S), _STACKS_PAUSE_S
        those = awaited(self._agent)
        while (world := self._workers.world) and self._stacks.is_missing(world, those) and self._clock.now() < until:
            if self._next(min(until, self._clock.now() + pause_s)):
                return
            pause_s *= 2

    def _exited(self, ended: Exit) -> Exited | None:
        """Return the event of this worker's end; None if what it left behind is read first."""
        is_read_first = self._ends.read(ended.local_rank, lambda: self._inbox.post(EndRead(ended)))
        return None if is_read_first else self._known_end(ended)

    def _known_end(self, ended: Exit) -> Exited:
        rank, now = ended.local_rank, self._clock.now()
        if not ended.code:
            self._teller.tell(ENDED, self._workers.early_ends)
        entered, is_echo = self._workers.has_entered(rank), self._ends.is_echo(rank) or None
        return Exited(rank, ended.code, ended.died_at, now, is_echo, ended.ending_at, entered)

    # --- effects out

    def _carry_out(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            self._does(effect)
        if effects and isinstance(stepped := effects[0], Stepped):
            event, before, after, commands = stepped.event, stepped.before, stepped.after, stepped.commands
            self._observer.saw(Step(event, before, after, commands, self._clock.now()))

    def _does(self, effect: Effect) -> None:
        match effect:
            case Stepped(event, commands=commands):
                self._trace.took(transition, event, commands, self._clock.now())
                if self._links and isinstance(event, Beaten):
                    self._links.beaten(event.sent_at)
            case Submit(item):
                self._submit(item)
            case Beat():
                self._heart.beat()
            case Start(world):
                self._start(world)
            case Move(world):
                self._workers.move(world)
                self._teller.tell(ENDED, self._workers.early_ends)
            case StartAgain(local_rank):
                self._start_again(local_rank)
            case Signal(signum, children=True):
                self._workers.signal_children(signum)
            case Signal(signum, spared):
                self._workers.signal(signum, spared)
            case Check():
                self._check()
            case RecordUnfit(text):
                with suppress(StoreError):
                    self._backend.notes.add(UNFIT, Unfit(self.node, self._host, self._clock.wall_text(), text))
            case Tell():
                self._tell(effect)
            case Record() as record:
                self._ends.record_failure(record)
            case RecordUnstartable(text):
                self._ends.record_unstartable(text)
            case See():
                self._seen = self._workers.see()
            case PutStacks(round):
                self._stacks.put(round, self._seen)
            case Suspect(round, seen):
                self._stacks.suspect(round, tuple(seen))
            case ReportHang(report):
                self._suspected = [*self._suspected, report][-_HANGS_MAX:]
                self._observer.saw(report)
            case Reply(query):
                self._stacks.reply(query, self._workers.sight(query.round))
            case FollowLinks():
                self._follow_links()
            case FollowWorkers():
                self._look_for_standstill()
            case ThrowOut():
                self._evict(self._lost_parties, self.node, self._ranks)
            case Rest(is_busy):
                if self._standbys:
                    self._standbys.rest(self._clock.now(), is_busy)
                    self._tell_of_standbys()
            case Hear(event):
                self._inbox.post(event)
            case other:
                assert_never(other)

    def _check(self) -> None:
        """Have this node checked. What the check leaves behind dies with the workers' orphans."""
        self._prepare_ahead()
        if self._orphans:
            self._orphans.adopt()
        if self._checks:
            self._checks.start()

    def _prepare_ahead(self) -> None:
        """Start what watches and guards processes, while there is time. What is missing for it the first worker says."""
        with suppress(OSError):
            self._prepare()

    def _submit(self, item: Request | Prepared) -> None:
        """Submit this to the rendezvous. A node joins each round with a port that no worker has used."""
        if not (isinstance(item, Request) and item.handler is handlers.join):
            self._rendezvous.submit(item)
            return
        self._reserved.renew()
        profile = evolve(self._introduced, endpoint=self._reserved.endpoint)
        self._rendezvous.submit(evolve(item, profile=profile))
        self._prepare_ahead()

    def _start(self, world: World) -> None:
        try:
            started = self._workers.start(world)
            self._trace.took(Start, started.world.round, started.pids, started.at)
            self._observer.saw(started)
            if self._orphans:
                self._orphans.adopt()
            if self._settings.stacks_signal is not None:
                self._workers.get_ready_to_see()
        except (CannotStart, Shortage, OSError) as error:
            now = self._clock.now()
            text = f"cannot start the workers: {reason(error)}" if isinstance(error, OSError) else str(error)
            self._inbox.post(Unstartable(text, now, passes(error)))
            self._inbox.post(Reaped(now))

    def _look_for_standstill(self) -> None:
        """Have the workers looked at while the store is silent. Without links no other node is known to be dead."""
        is_silent = self._agent.silent_since is not None
        if self._standstill is None and is_silent and self._links:
            self._standstill = self._made_standstill_watch()
        if self._standstill:
            with suppress(NoThread):  # then nobody looks, and the node waits
                self._standstill.follow(self._workers.followers() if is_silent else None)

    def _made_standstill_watch(self) -> StandstillWatch:
        from .standstill_watch import StandstillWatch  # no launch needs it whose store answers

        limit_s = self._settings.rendezvous.join_timeout
        return StandstillWatch(limit_s, self._clock, self._rendezvous.hear_of_workers, self._inbox.failed)

    def _start_again(self, local_rank: int) -> None:
        match self._workers.start_again(local_rank):
            case StartedAgain() as started:
                self._observer.saw(started)
            case Exit() as ended:
                if event := self._exited(ended):
                    self._inbox.post(event)

    def _made_links(self) -> Links | None:
        """Return this node's links; None if it wants none, or if its host has no port for them."""
        if not self._settings.listening.links:
            return None
        from ..rendezvous.link_server import LinkAddress  # a node alone needs none
        from ..rendezvous.links import Links

        settings, spans = self._settings, self._settings.rendezvous
        try:
            return Links(
                self.node,
                settings.run_id,
                LinkAddress(settings.address, settings.listening.ports),
                spans.keep_alive_interval,
                spans.ttl,
                self._clock,
                lambda linked: self._rendezvous.hear_of_link(linked),  # noqa: PLW0108  which is made later
                settings.token,
            )
        except OSError:
            return None

    def _made_checks(self, guard: Guard) -> NodeChecks | None:
        if self._settings.node_check is None:
            return None
        from ..workers.node_check import NodeChecks  # no other launch needs it

        def checked(is_fit: bool, text: str) -> None:
            self._inbox.post(Checked(is_fit, text, self._clock.now()))

        environment = guard.environment(lasting_environment(self._settings, self.node.slot))
        return NodeChecks(self._settings.node_check, environment, checked, guard.protection)

    def _made_hang_watch(self, backend: Backend, handler: StackHandler | None) -> HangWatch | None:
        if self._settings.hang is None:
            return None
        from .hang_watch import HangWatch  # no other launch needs it

        tell, failed = self._inbox.post, self._inbox.failed
        return HangWatch(self._settings.hang, self.node, backend, handler, self._clock, tell, failed, self._absent)

    def _absent(self, world: World) -> tuple[Node, ...]:
        """Return the members of this world that are dead or out of reach, or have no work. Any thread may ask."""
        links, ttl = self._links.stand if self._links else {}, self._settings.rendezvous.ttl
        return absent(self._agent, world, links, self._clock.now(), ttl)

    def _made_standbys(
        self, spawner: Spawner, guard: Guard, watcher: Watcher, started: StartUp | None
    ) -> Standbys | None:
        wanted = self._settings.standby
        if wanted is None:
            return None
        from ..workers.standbys import Standbys  # no other launch needs it

        now, tell, slot = self._clock.now, self._inbox.standby_told, self.node.slot
        executor = self._executor
        return Standbys(
            self._settings, wanted, slot, spawner, guard, watcher, now, tell, start_up=started, executor=executor
        )

    def _begin_standbys(self) -> None:
        if self._standbys:
            try:
                self._prepare()
                for said in self._standbys.begin():
                    self._observer.saw(said)
            except OSError:  # the first worker says what is missing
                self._step(Settled(are_settled=True))
            self._say_if_prepared()

    def _hear_standby(self, pid: int) -> None:
        for said in self._standbys.heard(pid) if self._standbys else ():
            self._observer.saw(said)
        self._tell_of_standbys()
        self._say_if_prepared()

    def _tell_of_standbys(self) -> None:
        if self._standbys:
            self._teller.tell(STANDBYS, self._standbys.note)

    def _say_if_prepared(self) -> None:
        """Let this node ask for a seat in a running job, if its standbys are what it waits for."""
        if self._standbys and self._standbys.are_settled:
            self._step(Settled(are_settled=True))

    def _tell_of_watchdog(self, name: str) -> None:
        if self._settings.watchdogs.timer_file is not None:
            self._observer.saw(WatchdogTold(name, {}, self._clock.now()))

    def _close(self) -> list[Exception]:
        return failures_of(
            self._watchdogs.close,
            partial(self._tell_of_watchdog, "watchdog stopped"),
            *([self._hangs.close] if self._hangs else []),
            *([self._standstill.close] if self._standstill else []),
            *([self._checks.close] if self._checks else []),
            self._workers.close,
            self._ends.close,
            partial(self._stacks.close, self._patience),
            *([self._drain_file.close] if self._drain_file else []),
            *([partial(self._close_board, self._board)] if self._board else []),
            *([self._orphans.kill] if self._orphans else []),
            *([self._links.stop] if self._links else []),
            self._rendezvous.stop,
            self._heart.stop,
            partial(self._patience.spend, self._trace.end),
            self._reserved.release,
            self._logs.close,
        )
