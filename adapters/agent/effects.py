"""The effects of an agent's steps, carried out: by its workers, and by the parts that it has.

Nothing is decided here. What comes of an effect goes into the inbox, like all that an agent hears.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, assert_never

from ...core import agent as core
from ...core.group import state as group
from ...core.group import transition
from ...core.rendezvous import Advance
from ...core.world import Unfit, World
from ..report.news import Step, SuspectedHang, Trace, WatchdogTold
from ..report.stack_records import Seen, StackRecords
from ..report.worker_ends import WorkerEnds
from ..store.notes import ENDED, STANDBYS
from ..workers.child_processes import reason
from ..workers.messages.notices import Notice
from ..workers.output.logs import WorkerLogs
from ..workers.start.spawner import Executing, Spawner
from ..workers.watch.orphans import Orphans
from ..workers.worker_port import CannotStart, Shortage, StandbyNews, passes
from .parts import (
    Part,
    Shared,
    made_board,
    made_checks,
    made_drain_file,
    made_hang_watch,
    made_processes,
    made_standbys,
    made_standstill_watch,
    made_watch_check,
    made_watchdogs,
)
from .peers import Peers
from .work_records import WorkRecords
from .worker_group import WorkerGroup

if TYPE_CHECKING:
    from .standstill_watch import StandstillWatch

_HANGS_MAX = 16
"""How many of the suspected hangs, the last ones, are in the report."""


class Effects:
    """Carries out the effects of one agent. Its own thread calls."""

    def __init__(
        self,
        shared: Shared,
        peers: Peers,
        logs: WorkerLogs,
        trace: Trace,
        spawner: Spawner | None,
        orphans: Orphans | None,
        agent: Callable[[], core.Agent],
    ) -> None:
        """`agent` returns the agent as it stands. Without a `spawner` the executor executes the workers."""
        self._shared = shared
        self._peers = peers
        self._trace = trace
        self._agent = agent
        self._orphans = orphans
        settings, clock, inbox = shared.settings, shared.clock, shared.inbox
        self.watchdogs = made_watchdogs(shared)
        reports = spawner is not None or shared.start_up is not None
        spawner = spawner or Executing(shared.start_up, settings.drain.ignored, shared.executor)
        self.standbys = made_standbys(shared, spawner)
        processes = made_processes(shared, self.standbys or spawner, reports)
        self.prepare = processes.prepare
        self.board = made_board(shared)
        self.drain_file = made_drain_file(shared)
        self.checks, self.watch_check = made_checks(shared), made_watch_check(shared)
        self.hangs = made_hang_watch(shared, lambda world: peers.absent(agent(), world))
        self._standstill: StandstillWatch | None = None
        self._spawner = spawner
        first = shared.node, shared.host, shared.backend, peers.rendezvous.submit, clock.wall_text, processes.drain
        self.ends = WorkerEnds(*first, shared.disk, inbox.failed)
        self.stacks = StackRecords(shared.node, shared.backend, clock.wall_text, shared.disk)
        tell, work = partial(peers.tell, ENDED), WorkRecords(clock, trace.took, self.hangs.blamed if self.hangs else ())
        self.workers = WorkerGroup(shared, processes, logs, self.watchdogs, self.ends, self.hangs, work, tell)
        self._seen: tuple[Seen, ...] = ()
        """The last look at the workers that are being stopped."""
        self.unfit: Unfit | None = None
        """Why this node stays out."""
        self.suspected: tuple[SuspectedHang, ...] = ()
        """The last hangs that were suspected."""

    @property
    def parts(self) -> Sequence[Part]:
        """Return the parts in the order in which they start. The watchdogs are started before all others."""
        hangs, drain_file, watch_check = self.hangs, self.drain_file, self.watch_check
        return (
            *([Part(self._orphans.kill)] if self._orphans else []),
            *([Part(self.board.close)] if self.board else []),
            *([Part(drain_file.close, drain_file.start)] if drain_file else []),
            Part(partial(self.stacks.close, self._shared.patience)),
            Part(self.ends.close),
            Part(self.workers.close),
            *([Part(self.checks.close)] if self.checks else []),
            *([Part(watch_check.close, watch_check.start)] if watch_check else []),
            Part(self._close_standstill),
            *([Part(hangs.close, hangs.start)] if hangs else []),
            Part(partial(self.tell_of_watchdog, "watchdog stopped")),
            Part(self.watchdogs.close),
        )

    def carry_out(self, effects: tuple[core.Effect, ...]) -> None:
        """Carry out the effects of one step, in their order; then the observer sees the step."""
        for effect in effects:
            self._does(effect)
        if effects and isinstance(stepped := effects[0], core.Stepped):
            event, before, after, commands = stepped.event, stepped.before, stepped.after, stepped.commands
            self._shared.observer.saw(Step(event, before, after, commands, self._shared.clock.now()))

    def _does(self, effect: core.Effect) -> None:
        match effect:
            case core.Stepped(event, commands=commands):
                self._trace.took(transition, event, commands, self._shared.clock.now())
                if isinstance(event, group.Beaten):
                    self._peers.beaten(event.sent_at)
                    self._look_for_progress()
            case core.Submit(item):
                if self._peers.submit(item):
                    self._prepare_ahead()
            case group.Beat():
                self._peers.beat()
            case group.Start(world):
                self._start(world)
            case group.Move(world):
                self.workers.move(world)
            case group.StartAgain(local_rank):
                self.workers.start_again(local_rank)
            case group.Signal(signum, children=True):
                self.workers.signal_children(signum)
            case group.Signal(signum, spared):
                self.workers.signal(signum, spared)
            case group.Check():
                self._check()
            case group.RecordUnfit(text):
                when = self._shared.clock.wall_text()
                self.unfit = Unfit(self._shared.node, self._shared.host, when, text)
                self._peers.submit(self.unfit)
            case group.Tell():
                self._tell(effect)
            case group.Record() as record:
                self.ends.record_failure(record)
            case group.RecordUnstartable(text):
                self.ends.record_unstartable(text)
            case core.See():
                self._seen = self.workers.see()
            case core.PutStacks(round):
                self.stacks.put(round, self._seen)
            case core.Suspect(round, seen):
                self.stacks.suspect(round, tuple(seen))
            case core.Report(report):
                self.suspected = (*self.suspected, report)[-_HANGS_MAX:]
                self._shared.observer.saw(report)
            case core.Reply(query):
                self.stacks.reply(query, self.workers.sight(query.round))
            case core.FollowLinks():
                self._peers.follow(self._agent())
            case core.FollowWorkers():
                self._look_for_standstill()
            case core.ThrowOut():
                self._peers.throw_out(self._agent)
            case core.Rest(is_busy):
                if self.standbys:
                    self.standbys.rest(self._shared.clock.now(), is_busy)
                    self._peers.tell(STANDBYS, self.standbys.note)
            case core.Hear(event):
                self._shared.inbox.post(event)
            case other:
                assert_never(other)

    # --- the workers

    def lack(self) -> group.Unstartable | None:
        """Look, before this node joins, if it can start workers; return what it lacks. A check of the node may bring the
        program first: then the start of the workers tells."""
        if self._shared.settings.node_check:
            return None
        try:
            self.workers.look(self._spawner)
        except (CannotStart, OSError) as error:
            return group.Unstartable(_said(error), self._shared.clock.now())
        return None

    def _start(self, world: World) -> None:
        try:
            self._peers.serve(world)
            started = self.workers.start(world)
        except (CannotStart, Shortage, OSError) as error:
            now = self._shared.clock.now()
            self._shared.inbox.post(group.Unstartable(_said(error), now, passes(error)))
            self._shared.inbox.post(group.Reaped(now))
            return
        self._trace.took(group.Start, started.world.round, started.pids, started.at)
        self._shared.observer.saw(started)
        self._peers.look_up(started.world)
        self._adopt()
        self.workers.get_ready(sees=self._shared.settings.stacks_signal is not None)

    def _check(self) -> None:
        """Have this node checked. What the check leaves behind dies with the workers' orphans."""
        self._prepare_ahead()
        self._adopt()
        if self.checks:
            self.checks.start()

    def _prepare_ahead(self) -> None:
        """Start what watches and guards processes, while there is time. What is missing for it the first worker says."""
        with suppress(OSError):
            self.prepare()

    def _adopt(self) -> None:
        """Adopt orphans from now on. A host that lacks what this takes is asked again at the next start."""
        if self._orphans:
            with suppress(ImportError, OSError):
                self._orphans.adopt()

    def reap_orphans(self) -> None:
        """Reap the dead orphans, which are neither workers nor standbys."""
        if self._orphans:
            self._orphans.reap({*self.workers.pids, *(self.standbys.pids if self.standbys else ())})

    def _look_for_standstill(self) -> None:
        """Have the workers looked at while the store is silent. Without links no other node is known to be dead."""
        is_silent = self._agent().silent_since is not None
        with suppress(ImportError, OSError):  # then nobody looks, and the node waits
            if self._standstill is None and is_silent and self._peers.links:
                self._standstill = made_standstill_watch(self._shared, self._peers.rendezvous.hear_of_workers)
            if self._standstill:
                self._standstill.follow(self.workers.followers() if is_silent else None)

    def _look_for_progress(self) -> None:
        """Tell the register, at a heartbeat, that a worker has done more than had been done before: once in a round."""
        state, world = self._agent().state, self.workers.world
        if state is None or world is None or state.world_id != world.id:
            return
        if state.limits.give_up_after and not state.progressed and self.workers.get_ahead():
            self._peers.rendezvous.hear_of_workers(Advance(world.round))

    def _close_standstill(self) -> None:
        if self._standstill:
            self._standstill.close()

    # --- what is told

    def _tell(self, tell: group.Tell) -> None:
        """Tell the workers of the notice. Workers that cannot be told have until the node goes."""
        from_now = self._shared.clock.wall() - self._shared.clock.now()
        if self.board:
            with suppress(OSError):
                self.board.tell(Notice(tell.gone_by + from_now, tell.goes_at + from_now, tell.notice.source))

    def hear_ready(self) -> bool:
        """Take what workers have said of being ready to leave. Return True if there was something."""
        ready = self.board.ready() if self.board else ()
        for rank in self.workers.local_ranks(ready):
            self._shared.inbox.post(group.ReadyToLeave(rank, self._shared.clock.now()))
        return bool(ready)

    def tell_of_watchdog(self, name: str) -> None:
        if self._shared.settings.watchdogs.timer_file is not None:
            self._shared.observer.saw(WatchdogTold(name, {}, self._shared.clock.now()))

    # --- the standbys

    @property
    def are_settled(self) -> bool:
        """Return True if nothing is gained by waiting for standbys."""
        return self.standbys is None or self.standbys.are_settled

    def begin_standbys(self) -> bool:
        """Start the standbys; return True if nothing is gained by waiting for them."""
        if self.standbys:
            try:
                self.prepare()
                self._say(self.standbys.begin())
            except OSError:  # the first worker says what is missing
                return True
        return self.are_settled

    def hear_standby(self, pid: int) -> None:
        if self.standbys:
            self._say(self.standbys.heard(pid))
            self._peers.tell(STANDBYS, self.standbys.note)

    def _say(self, news: Sequence[StandbyNews]) -> None:
        for each in news:
            self._shared.observer.saw(each)


def _said(error: CannotStart | Shortage | OSError) -> str:
    return f"cannot start the workers: {reason(error)}" if isinstance(error, OSError) else str(error)
