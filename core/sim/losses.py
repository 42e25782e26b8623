"""What a store that loses its memory must not cost, judged by what all processes know together (R10, R11, R13 to R15).

A verdict that an awake node knows is not forgotten. A state that a node adopts from its own job forgets no failure. What a
node knows of its failures is on record again before the job fails. A node that slept has no say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable

from attrs import define, field

from ..group.state import RecordUnfit
from ..properties.facts import Wrote
from ..properties.law import Law, Strength
from ..rendezvous import Held, RendezvousState, Restore, Violation, Write
from ..world import Why
from .process import Process

KNOWN_BEATS = 4
"""A verdict counts once it has been known for this many heartbeat intervals."""

R10 = Law(
    "R10",
    "A node that adopts a register of its own job forgets no failure of a pinned life.",
    "a node takes over another life of its job, and knew of failures",
)
R11 = Law(
    "R11",
    "No node gives its job's verdict up, and no world completes while a node that is awake and in reach has known the "
    "verdict for 4 heartbeat intervals.",
    "a node that knows the verdict takes over another life, or a world of that job completes",
)
R13 = Law(
    "R13",
    "A node that is awake does not forget the job that the store has lost.",
    "a node is shown a store that has forgotten what it holds",
)
R14 = Law(
    "R14",
    "A sleeper decides nothing before it has read the register, and restores nothing from before its sleep that does "
    "not stand.",
    "a node that has slept decides",
)
R15 = Law(
    "R15",
    "When a job fails over its budget, the failures that its returned nodes know are on record; what the store refused "
    "in this life, and what a node knew before a sleep, is excused.",
    "a job fails, and a node that is back knows failures",
)


@define
class Losses:
    """How often a failure was forgiven, and who knows what."""

    interval: float = 1.0
    """From one heartbeat to the next."""
    refunds: Counter[str] = field(factory=Counter)
    strength: Strength = field(factory=Strength)

    def wrote(self, fact: Wrote, processes: Iterable[Process], now: float, records: Container[object] = ()) -> None:
        """Judge a write to a store that has these records. Raises Violation."""
        if isinstance(fact.edit, Restore):
            return
        before, after = fact.before, fact.after
        if after.closed and after.closed.why is Why.FAILED:
            processes = tuple(processes)
            for process in processes:
                if process.node in after.participants and process.group.settings.alone is None:
                    self._fails(process, after, records)
        if before is not None and after.failures < before.failures:
            self.refunds[after.job] += 1
        if fact.completes:
            for process in processes:
                if _knows(process, after.job):
                    self._completes(fact, process, now - KNOWN_BEATS * self.interval)

    def _completes(self, fact: Wrote, process: Process, since: float) -> None:
        """Judge R11: this process knows the verdict of the job whose world is complete now."""
        self.strength.armed["R11"] += 1
        if _could_tell(process, since):
            raise Violation("R11", f"round {fact.after.round} is complete, but {process.name} knows the verdict")
        self.strength.excused["R11"] += 1

    def _fails(self, process: Process, closed: RendezvousState, records: Container[object]) -> None:
        """Judge R15: this process, which is back, knows failures of the job that fails now."""
        told = (what for job, what in process.memory.records if job == closed.job)
        known = [
            what for what in told if not isinstance(what, RecordUnfit)
        ]  # a check may fail while the verdict is sent
        self.strength.armed["R15"] += len(known)
        for what in known:
            if (process.node, what) in records:
                continue
            if process.memory.refused.get(what) != closed.life:
                raise Violation(
                    "R15", f"job {closed.job} fails, and {process.name} knows a failure that is not on record"
                )
            self.strength.excused["R15"] += 1

    def changed(self, process: Process, before: Held) -> None:
        """Judge a change of what the process holds. Raises Violation."""
        held, now_held, armed = before.view.state, process.held.view.state, self.strength.armed
        if held is None or before.doubt.woke_at is not None:
            return
        if now_held is None:
            raise Violation("R13", f"{process.name} forgets job {held.job}, which the store has lost")
        if now_held.life == held.life:
            return
        armed["R13"] += 1
        armed["R11"] += held.closed is not None
        if held.closed and not now_held.closed and now_held.job == held.job:
            raise Violation("R11", f"{process.name} gives up the verdict of job {held.job}, which it knows")
        ours = now_held.job == held.job and not now_held.closed and not held.provisional
        if not (ours and held.failures):
            return
        armed["R10"] += 1
        if not _is_made_of(now_held, held):
            self.strength.excused["R10"] += 1
        elif now_held.failures + self.refunds[held.job] < held.failures:
            raise Violation(
                "R10", f"{process.name} takes over {now_held.failures} failures, and knew of {held.failures}"
            )

    def decides(self, process: Process, write: Write) -> None:
        """Judge R14 when a process decides to write. Raises Violation."""
        edit, stale = write.edit, process.memory.stale
        self.strength.armed["R14"] += process.memory.slept_at is not None or stale is not None
        if process.memory.slept_at is not None:
            raise Violation("R14", f"{process.name} has slept, and decides before it has looked")
        copied = process.held.found.state if process.held.found else None  # restored over itself, it is nobody's memory
        if (
            isinstance(edit, Restore)
            and stale is not None
            and edit.held is not copied
            and edit.held.token == stale.token
        ):
            raise Violation("R14", f"{process.name} restores what it held before it slept")


def _is_made_of(state: RendezvousState, held: RendezvousState) -> bool:
    """Return True if no world was completed in a life later than the held one by nodes that had forgotten."""
    return state.provisional and state.base[0][0] <= held.life.epoch


def slept(process: Process, now: float) -> None:
    """Note that a process stood still for more than a TTL, and knows it."""
    process.memory.slept_at, process.memory.stale = now, process.held.view.state
    process.memory.records.clear()


def looked(process: Process, state: RendezvousState | None, sent_at: float) -> None:
    """Note that a process is answered with this state."""
    if process.memory.slept_at is None or sent_at < process.memory.slept_at:
        return
    process.memory.slept_at, stale = None, process.memory.stale
    if stale is not None and state is not None and state.life == stale.life and state.version >= stale.version:
        process.memory.stale = None


def _knows(process: Process, job: str) -> bool:
    held = process.held
    return held.view.state is not None and held.view.state.closed is not None and held.view.state.job == job


def _could_tell(process: Process, since: float) -> bool:
    """Return True if a process that knows the verdict has known it since then, awake and within reach."""
    held = process.held
    known = held.view.held_at is not None and process.clock.true(held.view.held_at) < since
    return known and held.doubt.woke_at is None and process.is_well(since)
