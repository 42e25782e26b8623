"""What a store that loses its memory must not cost, judged by what all processes know together.

While all nodes are well, no worker is stopped. A verdict that an awake node knows is not forgotten. A state that a node
adopts from its own job forgets no failure. A node that slept has no say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from attrs import define, field

from ..group import Phase
from ..properties.facts import Wrote
from ..rendezvous import Held, RendezvousState, Restore, Violation, Write
from ..world import Why, WorldId
from .process import Process

KEPT_S = 3.0
"""After so many seconds the register must again hold the world that ran."""
KNOWN_S = 4.0
"""A verdict counts once it has been known for so many seconds."""


@define
class Losses:
    """The world that a loss must not end, and how often a failure was forgiven."""

    calm_s: float
    """A process is well if nothing was done to it for so many seconds."""
    kept: WorldId | None = None
    refunds: Counter[str] = field(factory=Counter)

    def lost(self, register: RendezvousState | None, processes: Iterable[Process], calm: bool, now: float) -> None:
        """Note that the store has lost this register. `calm`: the store had not been away for long."""
        self.kept = None
        if register is None or register.world_id is None or register.closed or not calm:
            return
        processes = tuple(processes)
        if any(each.held.state is not None and each.held.state.job != register.job for each in processes):
            return  # somebody of another job may know more
        members = {process.node: process for process in processes if process.node in register.members}
        if len(members) == len(register.members) and all(self._runs(each, register, now) for each in members.values()):
            self.kept = register.world_id

    def _runs(self, process: Process, register: RendezvousState, now: float) -> bool:
        here = process.ran is not None and process.ran.id == register.world_id and bool(process.workers)
        knows = process.held.state is register and process.held.found is None
        return here and knows and process.group.phase is Phase.RUNNING and process.is_well(now - self.calm_s)

    def stands(self, register: RendezvousState | None, processes: Iterable[Process]) -> None:
        """Judge R12, a while after the loss. Raises Violation."""
        kept, self.kept = self.kept, None
        if kept is None:
            return
        if register is None or register.world_id != kept:
            raise Violation("R12", f"all were well when the store lost round {kept.round}, but it does not stand again")
        for process in processes:
            if process.node in register.participants and process.group.phase is not Phase.RUNNING:
                raise Violation("R12", f"all were well when the store lost round {kept.round}; {process.name} stopped")

    def wrote(self, fact: Wrote, processes: Iterable[Process], now: float) -> None:
        """Judge a write. Raises Violation."""
        if isinstance(fact.edit, Restore):
            return
        before, after = fact.before, fact.after
        kept = self.kept
        ends = before is not None and before.world_id == kept and after.world_id != kept
        if kept and ends and after.ended and after.ended.why is Why.FENCED:
            raise Violation("R12", f"all were well when the store lost round {kept.round}; {fact.node} fled from it")
        if before is None or ends:
            self.kept = None  # somebody began a job at the empty store, or the round was ended for another reason
        if before is not None and after.failures < before.failures:
            self.refunds[after.job] += 1
        if fact.completes:
            for process in processes:
                if _knows_verdict(process, after.job, now - KNOWN_S):
                    raise Violation("R11", f"round {after.round} is complete, but {process.name} knows the verdict")

    def changed(self, process: Process, before: Held) -> None:
        """Judge a change of what the process holds. Raises Violation."""
        held, now_held = before.state, process.held.state
        if held is None or before.woke_at is not None:
            return
        if now_held is None:
            raise Violation("R13", f"{process.name} forgets job {held.job}, which the store has lost")
        if now_held.life == held.life:
            return
        if held.closed and not now_held.closed and now_held.job == held.job:
            raise Violation("R11", f"{process.name} gives up the verdict of job {held.job}, which it knows")
        ours = now_held.job == held.job and not now_held.closed and not held.provisional
        if ours and _is_made_of(now_held, held) and now_held.failures + self.refunds[held.job] < held.failures:
            raise Violation(
                "R10", f"{process.name} takes over {now_held.failures} failures, and knew of {held.failures}"
            )


def _is_made_of(state: RendezvousState, held: RendezvousState) -> bool:
    """Return True if no world was completed in a life later than the held one by nodes that had forgotten."""
    return state.provisional and state.base[0][0] <= held.life.epoch


def slept(process: Process, now: float) -> None:
    """Note that a process stood still for more than a TTL, and knows it."""
    process.slept_at, process.stale = now, process.held.state


def looked(process: Process, state: RendezvousState | None, sent_at: float) -> None:
    """Note that a process is answered with this state."""
    if process.slept_at is None or sent_at < process.slept_at:
        return
    process.slept_at, stale = None, process.stale
    if stale is not None and state is not None and state.life == stale.life and state.version >= stale.version:
        process.stale = None


def decides(process: Process, write: Write) -> None:
    """Judge R14 when a process decides to write. Raises Violation."""
    edit, stale = write.edit, process.stale
    if process.slept_at is not None:
        raise Violation("R14", f"{process.name} has slept, and decides before it has looked")
    copied = process.held.found.state if process.held.found else None  # restored over itself, it is nobody's memory
    if isinstance(edit, Restore) and stale is not None and edit.held is not copied and edit.held.token == stale.token:
        raise Violation("R14", f"{process.name} restores what it held before it slept")


def _knows_verdict(process: Process, job: str, since: float) -> bool:
    held = process.held
    if held.state is None or held.state.closed is None or held.state.job != job or held.held_at is None:
        return False
    return process.true(held.held_at) < since and held.woke_at is None and process.is_well(since)
