"""The faults of a simulated node and of the store. `kinds.Kind` describes each.

Most faults leave a mark on the process or on the store; the network and the workers obey that mark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from attrs import define

from ..group.state import SIGKILL
from ..properties.facts import Failed, Reaped
from ..world import Notice
from .agents import Agents
from .future import Future
from .kinds import Kind, Needs
from .links import Links
from .network import Network
from .process import TELLERS, Process, Thread
from .simulated_store import Store
from .story import Setting
from .witness import Witness


def means_something(kind: Kind, process: Process, setting: Setting) -> bool:
    """Return True if this operation has an effect on this process: workers that do not run, hang or are a reserve's neither
    fail nor succeed, links and checks that are not there do not break, and a world without notices gives none."""
    match kind.row.needs:
        case Needs.NOTHING:
            return True
        case Needs.LINKS:
            return setting.links > 0
        case Needs.CHECKS:
            return setting.checks > 0
        case Needs.NOTICES:
            return setting.notices > 0
        case Needs.WORKERS:
            return bool(process.workers)
        case Needs.WORK:
            return bool(process.workers) and not process.hung and not process.attempt.idle
        case other:
            assert_never(other)


@define
class Faults:
    future: Future
    store: Store
    network: Network
    witness: Witness
    agents: Agents
    links: Links
    fence: float
    """The age at which a heartbeat's acknowledgement ends workers; 0: never."""

    def befall(self, process: Process, kind: Kind, span: float) -> None:
        """Apply a fault to a node."""
        trouble = process.trouble
        trouble.lasts = True
        if kind.row.stays:
            trouble.stands(kind, span if kind.takes_span else 1.0)
        if does := ON_NODE.get(kind):
            does(self, process, span)

    def stalls(self, process: Process, thread: Thread, span: float) -> None:
        """Let a thread, or the whole process, stand still. Excuse the node of the fence if it may be told too late."""
        now, stalls = self.future.now, process.stalls
        stalls.stands(thread, now, now + span)
        if thread is Thread.LOOP:
            self.agents.loops.stands_still(process)
        if thread is Thread.HEART:
            return
        stood_until = stalls.until(*TELLERS)
        if stalls.unnoticed_since is not None or stood_until - stalls.late_since > self.fence:
            self.witness.judge.excused[process.node] = process.clock.shows(stood_until)

    def cuts(self, process: Process, out: float, into: float) -> None:
        """Lose for this long what the node sends, and what is sent to it; 0: nothing of that."""
        now, trouble = self.future.now, process.trouble
        trouble.cut_out_until = max(trouble.cut_out_until, now + out if out else 0.0)
        trouble.cut_in_until = max(trouble.cut_in_until, now + into if into else 0.0)

    def kills(self, process: Process, span: float) -> None:
        """Kill the agent. Its workers die with it, or so much later."""
        if process.workers and span:
            self.witness.seen("workers outlive their agent")
        process.alive = False
        if not span and self.agents.workers.raises:
            self.agents.workers.raises.closes(process)
        if not span:
            process.workers.clear()
            self.witness.judge.saw(Reaped(process.node))
        else:
            ends_at = self.future.now + span
            self.future.at(ends_at, self.links.dies, process)
            if process.clock.shows(ends_at) - process.heart.beaten_at > self.witness.setting.rendezvous.ttl:
                self.witness.judge.excused[process.node] = process.clock.shows(ends_at)  # nobody can stop them in time
        self.links.breaks(process)

    def kills_worker(self, process: Process) -> None:
        """Kill one of the workers. Its agent finds that it has failed."""
        rank, world = min(process.workers), process.attempt.world
        assert world is not None  # it has workers
        self.witness.blames.began(process.node, rank, world)
        self.witness.judge.saw(Failed(process.node, world.id))
        self.agents.workers.dies(process, rank, -SIGKILL, process.attempt.number)

    def befall_store(self, kind: Kind, span: float) -> None:
        """Apply a fault to the store."""
        ON_STORE[kind](self, span)

    def takes_away(self, span: float) -> None:
        now = self.future.now
        self.store.goes_away(now, now + span)
        self.network.breaks()
        self.witness.lost_worlds.is_away(now + span)

    def fills(self, span: float) -> None:
        self.store.full_until = max(self.store.full_until, self.future.now + span)
        self.witness.lost_worlds.is_away(self.future.now + span)

    def loses(self, back: float | None = None) -> None:
        """Let the store lose its memory, all of it or the last of it, and have it judged that a world that ran stands
        again."""
        now, store, witness = self.future.now, self.store, self.witness
        lost = store.register
        witness.lost_worlds.loses(lost, witness.living(), now)
        if store.refuses_writes(now):
            witness.lost_worlds.is_away(max(store.down_until, store.full_until))
        if back is None:
            store.empties()
        else:
            store.is_restored(now - back)
        copy = store.register
        if lost and copy and (copy.job != lost.job or copy.closed):
            witness.lost_worlds.drops()  # a world of another job, and the job's verdict, are not replaced
        witness.judge.register = store.register or witness.judge.register  # if none, the next one is known to follow it
        witness.judge.forgets()  # the store has forgotten that too, and what they had under way may land
        witness.counts["the store came back older" if store.register else "the store came back empty"] += 1
        for process in witness.living():
            witness.traffic.prompted(process, now)
        self.network.forgets()
        if self.agents.hangs:
            self.agents.hangs.forgets()
        self._stands()

    def _stands(self) -> None:
        """Judge the world that was lost, when it must stand again."""
        lost_worlds, now = self.witness.lost_worlds, self.future.now
        lost_worlds.stands(self.store.register, self.witness.living(), now)
        if lost_worlds.lost is not None:
            self.future.at(lost_worlds.lost.due_at, self._stands)


ON_NODE: Mapping[Kind, Callable[[Faults, Process, float], object]] = {
    Kind.CRASH: Faults.kills,
    Kind.KILL: Faults.kills,
    Kind.PAUSE: lambda self, process, span: self.stalls(process, Thread.PROCESS, span),
    Kind.PAUSE_HEART: lambda self, process, span: self.stalls(process, Thread.HEART, span),
    Kind.PAUSE_LOOP: lambda self, process, span: self.stalls(process, Thread.LOOP, span),
    Kind.PAUSE_WAITER: lambda self, process, span: self.stalls(process, Thread.WAITER, span),
    Kind.CUT: lambda self, process, span: self.cuts(process, span, span),
    Kind.CUT_OUT: lambda self, process, span: self.cuts(process, span, 0.0),
    Kind.CUT_IN: lambda self, process, span: self.cuts(process, 0.0, span),
    Kind.UNLINK: lambda self, process, _: self.links.breaks_all(process),
    Kind.REFUSE: lambda self, process, span: self.links.refuses(process, span),
    Kind.MUTE: lambda self, process, span: self.links.is_mute(process, span),
    Kind.FAIL: lambda self, process, _: self.agents.workers.fail(process),
    Kind.KILL_WORKER: lambda self, process, _: self.kills_worker(process),
    Kind.SUCCEED: lambda self, process, _: self.agents.workers.succeed(process),
    Kind.HANG: lambda self, process, _: self.agents.stand_still(process),
    Kind.ADVANCE: lambda self, process, _: self.agents.advances(process),
    Kind.DRAIN: lambda self, process, _: self.agents.are_signalled(process, 15),
    Kind.FIND_UNFIT: lambda self, process, span: self.agents.are_noticed(process, Notice(span, "a check"), unfit=True),
}
"""What a fault does to a node, beside the mark that it may leave there."""
ON_STORE: Mapping[Kind, Callable[[Faults, float], None]] = {
    Kind.OUTAGE: Faults.takes_away,
    Kind.FULL: Faults.fills,
    Kind.EMPTY: lambda self, _: self.loses(),
    Kind.OLDER: Faults.loses,
}
"""What a fault does to the store."""
