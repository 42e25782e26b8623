"""What a store that loses its memory must not cost: judged by what all processes know, which none of them does.

Nobody's workers are stopped when all are well; a verdict that somebody awake knows is not forgotten; what a node takes over
of its own job forgets no failure; who has slept has no say.
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
"""After so long the world that ran must stand in the register again."""
KNOWN_S = 4.0
"""For so long a verdict must be known to count."""


@define
class Losses:
    """The world that a loss must not end, and how often a failure was forgiven."""

    calm_s: float
    """For so long nothing must have been done to a process that is to be called well."""
    kept: WorldId | None = None
    refunds: Counter[str] = field(factory=Counter)

    def lost(self, register: RendezvousState | None, processes: Iterable[Process], calm: bool, now: float) -> None:
        """The store, which held this, has lost it. `calm`: it had not been away for long."""
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
        """R12, a while after the loss. Raises Violation."""
        kept, self.kept = self.kept, None
        if kept is None:
            return
        if register is None or register.world_id != kept:
            raise Violation("R12", f"all were well when the store lost round {kept.round}, but it does not stand again")
        for process in processes:
            if process.node in register.participants and process.group.phase is not Phase.RUNNING:
                raise Violation("R12", f"all were well when the store lost round {kept.round}; {process.name} stopped")

    def wrote(self, fact: Wrote, processes: Iterable[Process], now: float) -> None:
        """Raises Violation."""
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
        """What the process holds has changed. Raises Violation."""
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
    """No world was completed in a life that is later than the one that is held, by those who had forgotten."""
    return state.provisional and state.base[0][0] <= held.life.epoch


def slept(process: Process, now: float) -> None:
    """It has stood still for more than a TTL, and knows it."""
    process.slept_at, process.stale = now, process.held.state


def looked(process: Process, state: RendezvousState | None, sent_at: float) -> None:
    """It is answered with this state."""
    if process.slept_at is None or sent_at < process.slept_at:
        return
    process.slept_at, stale = None, process.stale
    if stale is not None and state is not None and state.life == stale.life and state.version >= stale.version:
        process.stale = None


def decides(process: Process, write: Write) -> None:
    """R14. Raises Violation."""
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
