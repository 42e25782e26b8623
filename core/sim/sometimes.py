"""What a run may show, by name. A run that never shows one of these proves nothing about it (docs/protocol.md#sometimes).

This file only counts; nothing is judged here. `SOMETIMES` is what the standard run must show at least once. `writes` counts
what a landed write shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..group import Group, Phase
from ..group.state import Alone, Beaten, Cause, Checked, Elapsed, Event, Exited, Gone, Over, Ready, ReadyToLeave
from ..properties.group_laws import fences
from ..properties.refusals import SIGHTS
from ..rendezvous import (
    Complete,
    Deed,
    End,
    Evict,
    Held,
    Leave,
    Linked,
    Overdue,
    Raise,
    RendezvousState,
    Restore,
    Together,
    Write,
    join,
)
from ..rendezvous import Outcome as Answer
from ..rendezvous.context import Fact, Handler, Operation, context
from ..rendezvous.links import Event as LinkEvent
from ..rendezvous.links import Refused, Says
from ..world import Node, Why
from .process import Process

SOMETIMES = (
    "complete by last arrival",
    "complete by last call",
    "complete at max",
    "complete at the first target",
    "quorum lost",
    "quorum regained",
    "a spare",
    "a spare promoted",
    "a participant over the last unit",
    "end by failed",
    "end by lost",
    "end by left",
    "end by upscale",
    "end by fenced",
    "two ends for one round",
    "a refused write",
    "a reply lost after commit",
    "a late write lands",
    "a write lands after its node re-read",
    "the bump",
    "refund",
    "refund over budget",
    "closed FAILED at the last return",
    "closed FAILED, cannot start",
    "a start fails, and may not fail again",
    "closed FAILED: no progress",
    "a round ends for the return of a lost node",
    "fruitless rounds count no longer",
    "closed SUCCEEDED",
    "closed CANCELLED",
    "a done node called back",
    "barrier time-out",
    "a done node dies",
    "a newcomer behind a finishing round",
    "EXPECTED dropped as dead",
    "EXPECTED dropped as overdue",
    "an evicted live node returns",
    "superseded IN",
    "superseded EXPECTED",
    "superseded WAITING",
    "sightings started afresh",
    "self-fencing",
    "start held back for a fresh heartbeat",
    "joined again, long unheard",
    "a heart goes on, and its node was evicted",
    "a loop goes on, and hears what it has missed",
    "a stale push",
    "patience over",
    "coordinator silent, everybody reads all",
    "join time-out",
    "a late agent told the verdict",
    "refused as superseded",
    "a clock is behind: the successor of a dead start",
    "refused for its limits",
    "refused for its program",
    "refused for its arguments",
    "refused for a loopback address",
    "refused for its format",
    "workers outlive their agent",
    "an errand fails",
    "a write that finds no space",
    "a request comes twice",
    "the store came back empty",
    "the store came back older",
    "restored by a survivor",
    "restored over a forming job",
    "restored over an older fork",
    "restored over an older copy",
    "two offers at once",
    "a new job at an empty store, while survivors live",
    "restored while provisional",
    "another job is there: adopted",
    "a world goes on across a loss",
    "two worlds of one job in two lives",
    "a verdict restored",
    "who knows the verdict lingers",
    "a sleeper wakes into another life",
    "start held back because the answer names another life",
    "a batch of more than one",
    "a batch completes the round",
    "a batch closes the job",
    "a stale proposal ignored",
    "written for those whose last is late or gone",
    "several enter in one write",
    "who enters together completes the round",
    "a proposal to enter passed over",
    "a bump voids a proposal to enter",
    "suspected, and answers",
    "evidence: refused twice",
    "evidence: another incarnation answers",
    "evidence that does not count",
    "evicted on evidence, and lives",
    "a drained node goes when its workers are ready",
    "a drained node goes at its time",
    "a drained node goes because its round is over",
    "a drain refused: the job needs the node",
    "a drain refused: no such node",
    "an operator drains a dead node",
    "a failing node is set aside",
    "a failing node stays: the job needs it",
    "a node that is set aside returns",
    "a node that is set aside is called back",
    "a reserve",
    "a reserve goes, and its round goes on",
    "a reserve called back",
    "a newcomer without its party",
    "a newcomer that waited for its party in vain",
    "a round that began for a newcomer ends for the next ones",
    "an unfit node leaves",
    "a node finds before it joins that it cannot start workers",
    "the job goes on without a node that cannot start workers",
    "checked again after a failure of its own",
    "not checked after another node's failure",
    "a check that hangs",
    "a check that says nothing",
    "workers live through a change of nodes",
    "a worker stays missing by its exit code",
    "a worker ends the job for all",
    "a worker hears that the job is over",
    "nobody tells of an end that a worker heard of",
    "a worker cancels the job",
    "workers killed after another time than the grace",
    "held back until its standbys were ready",
    "a newcomer is shown a copy",
    "a node suspects a hang",
    "a suspected hang moves again",
    "a hang that not all nodes suspect",
    "stacks are put on record before workers are stopped",
    "a hang is reported",
    "a hung worker is blamed",
    "stacks are put on record again",
)

Counts = Counter[str]


def changed(counts: Counts, process: Process, before: Held) -> None:
    """Count what a change of the held state shows."""
    held, state = before.view.state, process.held.view.state
    if held is None or state is None or state.life == held.life:
        return
    if before.doubt.woke_at is not None:
        counts["a sleeper wakes into another life"] += 1
    elif state.job != held.job:
        counts["another job is there: adopted"] += 1
    elif state.world_id is not None and state.world_id == before.past.mine and process.workers:
        counts["a world goes on across a loss"] += 1


def wanted(counts: Counts, process: Process, edit: Deed, now: float) -> None:
    """Count what it shows that a node wants to write this."""
    held, state = process.held, process.held.view.state
    if isinstance(edit, Restore) and process.agent.outcome is not None:
        counts["who knows the verdict lingers"] += 1
    proposed = held.view.proposed
    if isinstance(edit, Leave) and context(Operation(join, now, now), held, now).entering is not None:
        counts["a bump voids a proposal to enter"] += 1
    if isinstance(edit, End) and edit.why is Why.UPSCALE and state is not None and not state.party_is_whole:
        counts["a newcomer that waited for its party in vain"] += 1
    if isinstance(edit, End) and edit.why is Why.UPSCALE and state is not None:
        counts["a round that began for a newcomer ends for the next ones"] += Fact.GROWN in held.view.spans
    if isinstance(edit, Together) and proposed is not None and now >= proposed.at + held.who.settings.patience:
        counts["written for those whose last is late or gone"] += 1
    chore = isinstance(edit, Evict | Complete | Overdue) or (isinstance(edit, End) and edit.why is Why.UPSCALE)
    if chore and state is not None and _coordinator(held, now) != held.who.node:
        counts["patience over"] += 1


def holds_back(held: Held) -> bool:
    """Return True if a node whose join holds back has no seat, and a world runs without it."""
    return held.view.state is not None and held.view.state.complete and held.who.node not in held.view.state.seats


def _coordinator(held: Held, now: float) -> Node | None:
    return context(Operation(join, now, now), held, now).coordinator


def unacknowledged(counts: Counts, process: Process) -> None:
    if process.group.phase is Phase.HELD:
        counts["start held back because the answer names another life"] += 1


def looked_at_all(counts: Counts, held: Held, now: float) -> None:
    seats = held.view.state.seats if held.view.state else {}
    if next(iter(seats), None) != held.who.node and _coordinator(held, now) != held.who.node:
        counts["coordinator silent, everybody reads all"] += 1


def afresh(counts: Counts, held: Held, sent_at: float) -> None:
    read_at, asked_at = held.view.sightings.read_at, held.contact.asked_at
    if read_at is not None and sent_at - max(read_at, asked_at) > 2 * held.who.settings.keep_alive_interval:
        counts["sightings started afresh"] += 1


def refused(counts: Counts, write: Write, stands: RendezvousState | None) -> None:
    counts["a refused write"] += 1
    if isinstance(write.edit, Restore):
        counts["two offers at once"] += 1
    if isinstance(write.edit, End) and stands is not None and stands.round > write.edit.round:
        counts["two ends for one round"] += 1


def told(counts: Counts, process: Process, handler: Handler, answer: Answer | Raise) -> None:
    if not isinstance(answer, Raise):
        return
    why = answer.failure.why
    if why is Why.TIMEOUT:
        counts["join time-out"] += 1
    elif why is Why.CLOSED and handler is join and process.main.worlds == 0:
        counts["a late agent told the verdict"] += 1
    elif why in SIGHTS:
        counts[SIGHTS[why]] += 1


GOES: Mapping[type[Event], str] = {
    ReadyToLeave: "when its workers are ready",
    Elapsed: "at its time",
    Over: "because its round is over",
}


def stepped(counts: Counts, causes: Counts, before: Group, event: Event, after: Group) -> None:
    if after.is_drained and not before.is_drained and type(event) in GOES:
        counts[f"a drained node goes {GOES[type(event)]}"] += 1
    if before.settings.checks:
        _checked(counts, before, event, after)
    if alone := before.settings.alone:
        _alone(counts, alone, before, event, after)
    if _is_killed(before, event, after) and before.settings.shutdown_timeout != before.settings.grace:
        counts["workers killed after another time than the grace"] += 1
    if before.phase is Phase.MOVING and isinstance(event, Ready) and after.phase is Phase.RUNNING:
        counts["workers live through a change of nodes"] += 1
    if isinstance(event, Gone) and before.departure and before.departure.until is None:
        counts["the job goes on without a node that cannot start workers"] += 1
    if fences(before, event, after):
        counts["self-fencing"] += 1
        causes["fencings"] += 1
    elif before.phase is Phase.HELD and isinstance(event, Beaten) and after.phase is Phase.JOINING:
        counts["joined again, long unheard"] += 1
        causes["fencings"] += 1
    elif before.phase is Phase.HELD and isinstance(event, Beaten) and after.phase is Phase.HELD:
        counts["start held back for a fresh heartbeat"] += 1


def _alone(counts: Counts, alone: Alone, before: Group, event: Event, after: Group) -> None:
    """Count what a step shows of workers that restart alone."""
    if isinstance(event, Elapsed) and before.heard_by is not None and event.at >= before.heard_by:
        ends = after.phase is not before.phase or after.course.heard_at is None
        counts["nobody tells of an end that a worker heard of"] += ends
    if not isinstance(event, Exited) or before.phase not in (Phase.RUNNING, Phase.MOVING):
        return
    code, is_last = event.code, not (after.running or before.course.succeeded)
    counts["a worker stays missing by its exit code"] += code in alone.final and after.phase is before.phase
    counts["a worker ends the job for all"] += code in alone.job_over
    counts["a worker hears that the job is over"] += after.course.heard_at is not before.course.heard_at
    counts["a worker cancels the job"] += code in alone.cancelled and is_last and before.phase is Phase.RUNNING


def _is_killed(before: Group, event: Event, after: Group) -> bool:
    """Return True if the agent was signalled, and its workers have had the time that they have then."""
    leaves = before.phase is Phase.LEAVING and not before.is_drained and isinstance(event, Elapsed)
    return leaves and bool(before.running) and before.stop.kill_at is not None and after.stop.kill_at is None


def _checked(counts: Counts, before: Group, event: Event, after: Group) -> None:
    """Count what a step shows of a group that has a check."""
    if isinstance(event, Checked):
        counts["an unfit node leaves"] += not event.is_fit and after.phase is Phase.LEAVING
    elif before.failures.cause in (Cause.UNKNOWN, Cause.HERE) and after.failures.cause is Cause.ELSEWHERE:
        own = after.phase is Phase.CHECKING
        counts["checked again after a failure of its own"] += own
        counts["not checked after another node's failure"] += not own and isinstance(event, Over)


def linked(counts: Counts, held: Held, told: Linked, event: LinkEvent) -> None:
    """Count what a link has told a node that holds this."""
    if told.says is Says.ANSWERS:
        counts["suspected, and answers"] += 1
    elif told.says is Says.GONE:
        by = "refused twice" if isinstance(event, Refused) else "another incarnation answers"
        counts[f"evidence: {by}"] += 1
        counts["evidence that does not count"] += told.node not in held.view.suspects
