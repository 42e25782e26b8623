"""How often each law was armed: how often what it speaks of was there, so that a breach would have been seen.

A law that was never armed proves nothing. `excused` counts how often one was armed and asked nothing all the same, for a
reason that its sentence names. Nothing is judged here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field

from ..group import Phase
from ..group.state import Check, Join, MarkDone, Over, Ready, Record, Signal, Signalled, Start
from ..rendezvous import (
    Arrive,
    Close,
    Complete,
    Deed,
    Drain,
    End,
    Leave,
    Overdue,
    RendezvousState,
    Restore,
    Status,
    Together,
    blank,
    join,
)
from ..world import Ending, Why
from .facts import GaveUp, Started, Stepped, Wrote

LAWS: Mapping[str, str] = {
    "S1": "a write leaves a complete round complete",
    "S2": "workers start in a world in which others have started",
    "S3": "the first workers of a world start",
    "S4": "a write leaves a complete round",
    "S5": "a write leaves two seats or more",
    "S6": "a round ends",
    "S7": "a write",
    "S8": "a node arrives whose slot has another seat",
    "S9": "workers start in a later world of a job than another's",
    "S9 strong": "the same with the fence on, and the other is no member",
    "S10": "a write leaves a verdict",
    "S14": "a job is closed as succeeded",
    "S14b": "a seat becomes DONE, or RESERVE",
    "S15": "a node is told that it has left",
    "S17": "workers start",
    "S18": "two worlds of one job run at once, completed in two lives, and a node runs one that does not stand",
    "S19": "a batch seats a node",
    "S20": "a world of several nodes is completed",
    "V1": "a write leaves a complete round",
    "V2": "a write leaves an open round",
    "V3": "a write leaves an open round",
    "V4": "a write leaves an open round in which somebody waits",
    "V5": "a write leaves an open round",
    "V6": "a round completes without a last call",
    "V7": "a round ends, or one that was expected is dropped",
    "V8": "a round ends as lost or left",
    "V9": "a round ends for a newcomer",
    "V10": "a round ends",
    "V11": "a write in an open round that has its quorum",
    "V12": "a round ends by a member",
    "V13": "a world with the digest of a policy stands",
    "V14": "an operator closes a job",
    "V15": "a seat has a notice",
    "V16": "a write follows a state in which a seat has a notice",
    "V17": "a write leaves a node that is set aside",
    "V18": "a write leaves an open round in which a node is set aside",
    "V19": "a node is set aside",
    "V20": "a node is set aside no longer",
    "V21": "a round ends",
    "B1": "a write leaves an open round over the budget",
    "B2": "a round ends, or a failure is refunded",
    "B3": "a job is closed as failed, over its budget",
    "B4": "a write leaves failures",
    "B5": "a failed round is ended, or one by a member that owes a failure",
    "R2": "a write of a life in which no world was complete before",
    "R3": "a write leaves a complete round",
    "R4": "a restore over another register",
    "R5": "a restore of a verdict, or over one",
    "R6": "a restore over the register of another job",
    "R7": "a restore",
    "R8": "a write into a store that is a copy",
    "R9": "a life begins",
    "R10": "a node takes over another life of its job, and knew of failures",
    "R11": "a node that knows the verdict takes over another life, or a world of that job completes",
    "R12": "the store loses a complete round",
    "R13": "a node is shown a store that has forgotten what it holds",
    "R14": "a node that has slept decides",
    "L2": "the world is healed",
    "L3": "somebody is evicted for its silence",
    "L4": "a run is over in which a round ended for this reason",
    "L6": "a node waits without a deadline",
    "L7": "a join is given up",
    "L8": "somebody is evicted on the evidence of a link",
    "L9": "a world does not rest, and all faults are over",
    "L10": "a seated node is dead",
    "L11": "a node is shown a round",
    "O1": "an agent ends",
    "O2": "an operation is given up",
    "O3": "an agent ends that was told to go",
    "O4": "a chore is done for which a span must be over",
    "O5": "a node leaves",
    "O6": "a round is ended as fenced, or a job closed as one that cannot start",
    "O7": "a drained node begins to leave",
    "O8": "a drained node ends",
    "O9": "a node that is set aside arrives",
    "O10": "a world runs without a node until its standbys are ready",
    "G1": "a group moves",
    "G2": "a group joins",
    "G3": "workers are signalled",
    "G4": "a failure is recorded, or a success marked",
    "G5": "a group has ended",
    "G6": "a group stops, leaves or is signalled",
    "G7": "a group with a check joins, or is checked again",
    "G8": "a round ends, or begins, around workers that restart alone",
    "F1": "workers start with the fence on",
}
"""Number → when that law is armed."""
ELSEWHERE = frozenset(
    {"R10", "R11", "R12", "R13", "R14", "L2", "L3", "L4", "L6", "L8", "L9", "L10", "L11", "O10", "S9 strong", "S18"}
)
"""The laws that only the simulator judges: they need one clock for all, or what no trace tells."""


@define
class Strength:
    """How often each law was armed, and how often excused."""

    armed: Counter[str] = field(factory=Counter)
    excused: Counter[str] = field(factory=Counter)

    def arms(self, laws: Iterable[str]) -> None:
        """Count that these laws are armed. (`Counter.update` takes longer to ask what it is given than to count it.)"""
        armed = self.armed
        for number in laws:
            armed[number] += 1


def by_write(fact: Wrote) -> Iterator[str]:
    """Yield the laws that this write arms, but for those that need a memory."""
    edit, after = fact.edit, fact.after
    if isinstance(edit, Restore):
        yield from _by_restore(fact, edit)
        return
    before = fact.before or blank(after.life, after.limits, after.target)
    yield "S7"
    if len(after.seats) > 1:
        yield "S5"
    if after.provisional or before.provisional:
        yield "R2"
    if after.failures:
        yield "B4"
    if before.policy or after.policy:
        yield "V13"
    if any(seat.notice for seat in after.seats.values()):
        yield "V15"
    if any(seat.notice for seat in before.seats.values()):
        yield "V16"
    if before.census[Status.ASIDE] or after.census[Status.ASIDE]:
        yield from _by_aside(before, after)
    if isinstance(edit, Arrive) and any(kin.slot == fact.node.slot and kin != fact.node for kin in before.seats):
        yield "S8"
    if isinstance(edit, Together) and any(node not in before.seats for node in after.seats):
        yield "S19"
    yield from _by_complete(before, after) if after.complete else _by_open(before, after)
    if fact.completes and not isinstance(edit, Complete):
        yield "V6"
    if fact.completes and len(after.members) > 1:
        yield "S20"
    if after.round > before.round:
        yield from _by_end(after)
    elif after.failures != before.failures:
        yield "B2"
    if after.round == before.round and any(node not in after.seats for node in before.expected):
        yield "V7"
    if closed := after.closed:
        yield "S10"
        if closed.ending is Ending.SUCCEEDED:
            yield "S14"
        elif closed.ending is Ending.FAILED and closed.why is not Why.CANNOT_START:
            yield "B3"
        if closed.why is Why.OPERATOR:
            yield "V14"


def _by_aside(before: RendezvousState, after: RendezvousState) -> Iterator[str]:
    was, now = before.those(Status.ASIDE), after.those(Status.ASIDE)
    if now:
        yield "V17"
        if not after.complete:
            yield "V18"
    if any(node not in was for node in now):
        yield "V19"
    if any(node not in now for node in was):
        yield "V20"


def _by_restore(fact: Wrote, edit: Restore) -> Iterator[str]:
    found, held = fact.before, edit.held
    yield "S7"
    yield "R2"
    yield "R7"
    if found is not None:
        yield "R4"
        if found.job != held.job:
            yield "R6"
    if held.closed or (found is not None and found.closed):
        yield "R5"


def _by_complete(before: RendezvousState, after: RendezvousState) -> Iterator[str]:
    yield "S4"
    yield "V1"
    yield "R3"
    if before.complete and before.round == after.round:
        yield "S1"


def _by_open(before: RendezvousState, after: RendezvousState) -> Iterator[str]:
    yield "V2"
    yield "V3"
    yield "V5"
    if after.census[Status.WAITING]:
        yield "V4"
    if before.quorum_at is not None and after.round == before.round:
        yield "V11"
    if after.over_budget:
        yield "B1"


def _by_end(after: RendezvousState) -> Iterator[str]:
    yield "S6"
    yield "V7"
    yield "V10"
    yield "V21"
    yield "B2"
    why = after.ended.why if after.ended else None
    if why in (Why.LOST, Why.LEFT):
        yield "V8"
    if why is Why.UPSCALE:
        yield "V9"
    if why in (Why.FAILED, Why.UPSCALE, Why.FENCED):
        yield "V12"


def by_start(fact: Started, is_known: bool) -> Iterator[str]:
    """Yield the laws that a start of workers arms. `is_known`: workers of this world have started before."""
    yield "S17"
    yield "S2" if is_known else "S3"


def by_step(fact: Stepped) -> Iterator[str]:
    """Yield the laws that a step of a worker group arms."""
    before, after, kinds = fact.before, fact.after, {type(command) for command in fact.commands}
    phase, moves = after.phase, after.phase is not before.phase
    if moves or Start in kinds:
        yield "G1"
    if Start in kinds and after.fence_at is not None:
        yield "F1"
    if Join in kinds:
        yield "G2"
    if kinds & {Join, Check} and before.settings.checks:
        yield "G7"
    if before.settings.alone is not None and isinstance(fact.event, Over | Ready):
        yield "G8"
    if Signal in kinds:
        yield "G3"
    if Record in kinds or MarkDone in kinds:
        yield "G4"
    if phase in (Phase.STOPPING, Phase.LEAVING) or isinstance(fact.event, Signalled):
        yield "G6"
    if after.drained and not before.drained:
        yield "O7"
    if phase is Phase.ENDED:
        yield "G5"
        if moves and after.drained:
            yield "O8"
        if moves:
            yield "O1"
        if before.phase is Phase.LEAVING:
            yield "O3"


def by_refusal(fact: GaveUp) -> Iterator[str]:
    """Yield the laws that an operation arms which is given up."""
    yield "L7" if fact.handler is join and fact.why in (Why.TIMEOUT, Why.UNCONFIRMED) else "O2"


def by_decision(edit: Deed, owes: bool, is_aside: bool) -> Iterator[str]:
    """Yield the laws that a decision to write arms. `owes`: its node has a failure to charge. `is_aside`: it is set
    aside."""
    match edit:
        case Overdue() | Complete() | End(_, Why.UPSCALE):
            yield "O4"
        case Leave() | Drain():
            yield "O5"
        case End(_, Why.FENCED):
            yield "O6"
        case Close(verdict) if verdict.why is Why.CANNOT_START:
            yield "O6"
        case Arrive() if is_aside:
            yield "O9"
        case _:
            pass
    if isinstance(edit, End) and (owes or edit.why is Why.FAILED):
        yield "B5"
