"""The faults of a simulated node and of the store. `story.Kind` describes each.

Most faults leave a mark on the process or on the store; the network and the workers obey that mark.
"""

from __future__ import annotations

from typing import Never, assert_never, cast

from attrs import define

from ..properties.facts import Reaped
from .agents import Agents
from .future import Future
from .losses import KEPT_S
from .network import Network
from .process import Process
from .simulated_store import Store
from .story import Kind
from .witness import Witness

OF_STORE = (Kind.OUTAGE, Kind.EMPTY, Kind.OLDER)


def means_something(kind: Kind, process: Process) -> bool:
    """Return True if this operation has an effect on this process: workers that do not run, or hang, neither fail nor
    succeed."""
    if kind in (Kind.FAIL, Kind.SUCCEED):
        return bool(process.workers) and not process.hung
    return kind is not Kind.HANG or bool(process.workers)


@define
class Faults:
    future: Future
    store: Store
    network: Network
    witness: Witness
    agents: Agents

    def befall(self, process: Process, kind: Kind, span: float) -> None:
        """Apply a fault to a node."""
        now = self.future.now
        until = max(now + span, 0.0)
        match kind:
            case Kind.CRASH:
                self._crashes(process)
            case Kind.PAUSE:
                process.stopped_until = max(process.stopped_until, until)
                process.stopped_since = now if process.stopped_since is None else process.stopped_since
                self.witness.judge.excused.add(process.node)
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
                self.agents.workers.fail(process)
            case Kind.SUCCEED:
                self.agents.workers.succeed(process)
            case Kind.HANG:
                process.hung = True
            case Kind.UNSTARTABLE:
                process.unstartable = True
            case Kind.DRAIN:
                self.agents.are_signalled(process, 15)
            case other:
                assert_never(cast("Never", other))  # the others are not done to a node

    def _crashes(self, process: Process) -> None:
        process.alive = False
        process.workers.clear()
        self.witness.judge.saw(Reaped(process.node))

    def befall_store(self, kind: Kind, span: float) -> None:
        """Apply a fault to the store (one of OF_STORE)."""
        now, store, witness = self.future.now, self.store, self.witness
        if kind is Kind.OUTAGE:
            store.goes_away(now, now + span)
            self.network.breaks()
            return
        calm = store.down_until <= now - witness.losses.calm_s
        lost = store.register
        witness.losses.lost(lost, witness.living(), calm, now)
        self.future.at(now + KEPT_S, self._stands)
        if kind is Kind.EMPTY:
            store.empties()
        else:
            store.is_restored(now - span)
        if lost and store.register and store.register.job != lost.job:
            witness.losses.kept = None  # a world of another job is not replaced
        witness.judge.register = store.register
        witness.judge.left.clear()  # the store has forgotten that too, and what they had under way may land
        witness.counts["the store came back older" if store.register else "the store came back empty"] += 1
        self.network.forgets()

    def _stands(self) -> None:
        if self.store.down_until <= self.future.now:
            self.witness.losses.stands(self.store.register, self.witness.living())
