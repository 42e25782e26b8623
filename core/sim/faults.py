"""The faults of a simulated node and of the store. `story.Kind` describes each.

Most faults leave a mark on the process or on the store; the network and the workers obey that mark.
"""

from __future__ import annotations

from typing import Never, assert_never, cast

from attrs import define

from ..properties.facts import Reaped
from .agents import Agents
from .future import Future
from .links import OF_LINKS, Links
from .network import Network
from .process import Process
from .simulated_store import Store
from .story import Kind, Setting
from .witness import Witness

OF_STORE = (Kind.OUTAGE, Kind.FULL, Kind.EMPTY, Kind.OLDER)
OF_CHECKS = (Kind.UNFIT, Kind.HANG_CHECK, Kind.BREAK_CHECK)


def means_something(kind: Kind, process: Process, setting: Setting) -> bool:
    """Return True if this operation has an effect on this process: workers that do not run, hang or are a reserve's neither
    fail nor succeed, and links and checks that are not there do not break."""
    if kind in OF_LINKS:
        return setting.links > 0
    if kind in OF_CHECKS:
        return setting.checks > 0
    if kind in (Kind.FAIL, Kind.SUCCEED):
        return bool(process.workers) and not process.hung and not process.idle
    return kind is not Kind.HANG or bool(process.workers)


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
        now = self.future.now
        until = max(now + span, 0.0)
        process.faulty = True
        match kind:
            case Kind.CRASH | Kind.KILL:
                if process.workers and span:
                    self.witness.seen("workers outlive their agent")
                self._is_killed(process, span)
            case Kind.UNLINK | Kind.REFUSE | Kind.MUTE:
                self.links.befall(process, kind, span)
            case Kind.PAUSE:
                process.stopped_until = max(process.stopped_until, until)
                process.stopped_since = now if process.stopped_since is None else process.stopped_since
                self._is_told_late(process, until)
            case Kind.PAUSE_HEART:
                process.heart_until = max(process.heart_until, until)
            case Kind.PAUSE_LOOP:
                process.loop_until = max(process.loop_until, until)
                self.agents.loops.will_go_on(process)
                self._is_told_late(process, until)
            case Kind.PAUSE_WAITER:
                process.waiter_until = max(process.waiter_until, until)
                self._is_told_late(process, until)
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
            case Kind.TWICE:
                process.twice = span
            case Kind.GAP:
                process.gap = True
            case Kind.FAIL:
                self.agents.workers.fail(process)
            case Kind.SUCCEED:
                self.agents.workers.succeed(process)
            case Kind.HANG:
                process.hung = True
            case Kind.UNSTARTABLE:
                process.unstartable = True
            case Kind.UNFIT:
                process.unfit = True
            case Kind.HANG_CHECK:
                process.check_hangs = True
            case Kind.BREAK_CHECK:
                process.check_breaks = True
            case Kind.DRAIN:
                self.agents.are_signalled(process, 15)
            case other:
                assert_never(cast("Never", other))  # the others are not done to a node

    def _is_told_late(self, process: Process, until: float) -> None:
        """Excuse this node of the fence, if what it is told may be older than that when it comes."""
        if process.stood_until < self.future.now:
            process.stood_since = self.future.now
        process.stood_until = max(process.stood_until, until)
        if process.stopped_since is not None or process.stood_until - process.stood_since > self.fence:
            self.witness.judge.excused[process.node] = process.clock(process.stood_until)

    def _is_killed(self, process: Process, span: float) -> None:
        """Kill the agent. Its workers die with it, or so much later."""
        process.alive = False
        if not span:
            process.workers.clear()
            self.witness.judge.saw(Reaped(process.node))
        else:
            ends_at = self.future.now + span
            self.future.at(ends_at, self.links.dies, process)
            if process.clock(ends_at) - process.beaten_at > self.witness.setting.rendezvous.ttl:
                self.witness.judge.excused[process.node] = process.clock(ends_at)  # nobody can stop them in time
        self.links.breaks(process)

    def befall_store(self, kind: Kind, span: float) -> None:
        """Apply a fault to the store (one of OF_STORE)."""
        now, store, witness = self.future.now, self.store, self.witness
        if kind is Kind.OUTAGE:
            store.goes_away(now, now + span)
            self.network.breaks()
        elif kind is Kind.FULL:
            store.full_until = max(store.full_until, now + span)
        else:
            self._loses(kind, span)
            return
        witness.lost_worlds.is_away(now + span)

    def _loses(self, kind: Kind, span: float) -> None:
        """Let the store lose its memory, and have it judged that a world that ran stands again."""
        now, store, witness = self.future.now, self.store, self.witness
        lost = store.register
        witness.lost_worlds.loses(lost, witness.living(), now)
        if store.refuses_writes(now):
            witness.lost_worlds.is_away(max(store.down_until, store.full_until))
        if kind is Kind.EMPTY:
            store.empties()
        else:
            store.is_restored(now - span)
        copy = store.register
        if lost and copy and (copy.job != lost.job or copy.closed):
            witness.lost_worlds.drops()  # a world of another job, and the job's verdict, are not replaced
        witness.judge.register = store.register or witness.judge.register  # if none, the next one is known to follow it
        witness.judge.forgets()  # the store has forgotten that too, and what they had under way may land
        witness.counts["the store came back older" if store.register else "the store came back empty"] += 1
        for process in witness.living():
            witness.traffic.prompted(process, now)
        self.network.forgets()
        self._stands()

    def _stands(self) -> None:
        """Judge the world that was lost, when it must stand again."""
        lost_worlds, now = self.witness.lost_worlds, self.future.now
        lost_worlds.stands(self.store.register, self.witness.living(), now)
        if lost_worlds.lost is not None:
            self.future.at(lost_worlds.lost.due_at, self._stands)
