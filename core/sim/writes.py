"""What a landed write shows, by name: those of `sometimes` that the register before and after it can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..properties.facts import Wrote
from ..rendezvous import (
    Arrive,
    Complete,
    Drain,
    Edit,
    End,
    Evict,
    Leave,
    Overdue,
    Proceed,
    RendezvousState,
    Restore,
    Status,
    Together,
    blank,
)
from ..rendezvous.actions import entrants
from ..rendezvous.state import status_of
from ..world import Ending, Node, Verdict, Why
from .process import Process
from .sometimes import Counts

EXPECTED, IN, WAITING, DONE, GONE, RESERVE, ABSENT, _, ASIDE = Status


def shown(counts: Counts, nodes: Mapping[Node, Process], fact: Wrote) -> None:
    """Count what a landed write shows. `nodes` are all processes that were ever started."""
    edit, after = fact.edit, fact.after
    before = fact.before or blank(after.life, after.limits, after.target)
    if isinstance(edit, Restore):
        counts.update(_restored(fact, edit))
        return
    if fact.before is None and any(each.alive and each.main.worlds for each in nodes.values()):
        counts["a new job at an empty store, while survivors live"] += 1
    for what in (*_rounds(before, edit, fact.completes, after), *_seats(before, edit, fact.node, after)):
        counts[what] += 1
    if isinstance(edit, Together):
        counts.update(_together(before, edit, fact.completes, after))
    if isinstance(edit, Evict | Overdue):
        for node in before.seats:
            if node not in after.seats:
                nodes[node].main.evicted = True
    if isinstance(edit, Drain) and edit.node in nodes and not nodes[edit.node].alive:
        counts["an operator drains a dead node"] += 1
    if isinstance(edit, Arrive) and nodes[fact.node].main.evicted and fact.node not in before.seats:
        counts["an evicted live node returns"] += 1


def _restored(fact: Wrote, edit: Restore) -> Iterator[str]:
    found = fact.before
    if found is None:
        yield "restored by a survivor"
    elif not fact.here:
        yield "restored over an older copy"
    else:
        yield "restored over an older fork" if found.job == edit.held.job else "restored over a forming job"
    if edit.held.provisional:
        yield "restored while provisional"
    if edit.held.closed:
        yield "a verdict restored"


def _together(before: RendezvousState, edit: Together, completes: bool, after: RendezvousState) -> Iterator[str]:
    changed = [node for node in edit.proposals if after.seats.get(node) is not before.seats.get(node)]
    if entering := entrants(edit.proposals, before.era):
        yield from _enters(changed, len(entering), completes)
    elif len(changed) > 1:
        yield "a batch of more than one"
        if completes:
            yield "a batch completes the round"
        if after.closed:
            yield "a batch closes the job"
    if any(proposal.era != before.era for proposal in edit.proposals.values()):
        yield "a stale proposal ignored"


def _enters(changed: list[Node], entering: int, completes: bool) -> Iterator[str]:
    if len(changed) > 1:
        yield "several enter in one write"
        if completes:
            yield "who enters together completes the round"
    if len(changed) < entering:
        yield "a proposal to enter passed over"


def _rounds(before: RendezvousState, edit: Edit, completes: bool, after: RendezvousState) -> Iterator[str]:
    if completes:
        how = {Complete: "last call", Arrive: "last arrival", Together: "last arrival"}
        yield f"complete by {how.get(type(edit), 'a dropped seat')}"
        yield "rounds completed"
        if after.census[IN] == after.limits.max_nodes:
            yield "complete at max"
        elif before.ended is None and after.census[IN] == before.target:
            yield "complete at the first target"
    if before.round == after.round and not after.complete:
        if before.quorum_at is not None and after.quorum_at is None:
            yield "quorum lost"
        if before.quorum_at is None and after.quorum_at is not None and before.version > 0 and before.ended:
            yield "quorum regained"
    if after.closed:
        yield from _closed(after.closed, edit)
    if after.round > before.round and after.ended:
        yield f"end by {after.ended.why.value}"
        if after.ended.why is Why.UPSCALE and len(after.fruitless) > len(before.fruitless):
            yield "a round ends for the return of a lost node"
        if before.census[DONE]:
            yield "a done node called back"
        if before.census[RESERVE]:
            yield "a reserve called back"
    if after.round == before.round and after.failures < before.failures:
        yield "refund over budget" if before.over_budget else "refund"


def _closed(closed: Verdict, edit: Edit) -> Iterator[str]:
    if closed.ending is Ending.FAILED and closed.why is Why.CANNOT_START:
        yield "closed FAILED, cannot start"
    elif closed.why is Why.FRUITLESS:
        yield "closed FAILED: no progress"
    elif closed.ending is Ending.FAILED:
        returns = isinstance(edit, Arrive | Together)
        yield "closed FAILED at the last return" if returns else "closed FAILED by a dropped seat"
    else:
        yield f"closed {closed.ending.name}"


def _seats(before: RendezvousState, edit: Edit, me: Node, after: RendezvousState) -> Iterator[str]:
    match edit:
        case Arrive():
            if before.finishing and before.complete and me not in before.seats:
                yield "a newcomer behind a finishing round"
            for old in before.seats:
                if old.slot == me.slot and old.incarnation < me.incarnation:
                    yield f"superseded {before.seats[old].status.name}"
        case Evict():
            if before.complete and after.round == before.round and before.census[DONE] and after.census[GONE]:
                yield "a done node dies"
            if any(seat.status is EXPECTED and node not in after.seats for node, seat in before.seats.items()):
                yield "EXPECTED dropped as dead"
        case Proceed() if before.fruitless:
            yield "fruitless rounds count no longer"
        case Overdue():
            yield "EXPECTED dropped as overdue"
        case Leave():
            if me not in before.seats:
                yield "the bump"
            elif before.seats[me].status is DONE:
                yield "barrier time-out"
        case _:
            pass
    yield from _asides(before, me, after)
    if before.census[IN] and after.complete and any(_is_in(before, node) for node in after.those(WAITING)):
        yield "a participant over the last unit"
    waited = before.those(WAITING) if before.census[WAITING] else ()
    if any(node in after.seats and after.seats[node].status is IN for node in waited):
        yield "a spare promoted"
    if isinstance(edit, Arrive | End) and after.redundancy_list:
        yield "a spare"
    if isinstance(edit, Arrive) and after.complete and after.wait_list and not after.party_is_whole:
        yield "a newcomer without its party"
    if after.round == before.round and after.census[ABSENT] > before.census[ABSENT]:
        yield "a reserve goes, and its round goes on"
    if after.census[RESERVE] > before.census[RESERVE]:
        yield "a reserve"


def _is_in(state: RendezvousState, node: Node) -> bool:
    return status_of(state, node) in (IN, EXPECTED)


def _asides(before: RendezvousState, me: Node, after: RendezvousState) -> Iterator[str]:
    was, now, ended = before.those(ASIDE), after.those(ASIDE), after.ended
    if any(node not in was for node in now):
        yield "a failing node is set aside"
    if me in was and me in after.seats and after.seats[me].status in (WAITING, IN):
        yield "a node that is set aside returns"
    if any(node in after.expected for node in was):
        yield "a node that is set aside is called back"
    cause = after.seats.get(ended.by) if ended and ended.why is Why.FAILED else None
    is_new = after.complete and not before.complete
    if is_new and cause and cause.status is IN and cause.failing and cause.failing.is_too_often:
        yield "a failing node stays: the job needs it"
