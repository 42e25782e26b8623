"""The effect of an edit on a state.

`apply` is total. Any edit on any legal state gives a legal state, or the same state if the edit has nothing to change there.
So an edit is safe to repeat. A change raises the version by one. Then `settle` draws the consequences that need no clock:
promotion, quorum, completion, and the verdicts that follow from the seats alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import assert_never

from ..evolving import evolve
from ..world import Ending, Node, Verdict, Why
from .actions import Arrive, Close, Complete, Done, Edit, End, Evict, Leave, Overdue, Proposal, Reserve, Together
from .state import AWAY, MEMBERS, Ended, RendezvousState, Seat, Status

Seats = Mapping[Node, Seat]


def apply(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    """Return the state after node `me` made this edit: the same object if nothing changes, as in a closed job."""
    if state.closed:
        return state
    changed = _change(state, edit, me)
    return state if changed is state else settle(evolve(changed, version=state.version + 1), me)


def _change(state: RendezvousState, edit: Edit, me: Node) -> RendezvousState:
    match edit:
        case Arrive():
            return _arrive(state, edit, me)
        case Leave():
            return _leave(state, me)
        case End(round, why):
            ends = state.complete and round == state.round and _status(state, me) in MEMBERS
            return _open_next(state, why, me, without=frozenset()) if ends else state
        case Done(round):
            return _marked(state, round, me, Status.DONE)
        case Reserve(round):
            return _marked(state, round, me, Status.RESERVE)
        case Evict(dead):
            return _evict(state, dead, me, refund=True)
        case Complete(round):
            ready = state.quorate and not state.census[Status.EXPECTED] and not state.over_budget
            return _completed(state) if ready and not state.complete and round == state.round else state
        case Overdue(round):
            late = frozenset(state.expected)
            return _drop(state, late) if late and not state.complete and round == state.round else state
        case Close(verdict):
            return evolve(state, closed=verdict)
        case Together(proposals):
            standing = [(node, proposal.edit) for node, proposal in proposals.items() if stands(state, node, proposal)]
            return reduce(lambda so_far, each: _change(so_far, each[1], each[0]), standing, state)
        case other:
            assert_never(other)


def stands(state: RendezvousState, node: Node, proposal: Proposal) -> bool:
    """Return True if a proposal still counts here. That of a node without a seat never does: a node that has left is not
    brought back by what it proposed before. (Proposals that stand end nothing and evict nobody, so that each may be judged
    by the state before all of them; only the last one that was missing can complete a round, or close the job.)"""
    return proposal.era == state.era and node in state.seats


def _status(state: RendezvousState, node: Node) -> Status | None:
    seat = state.seats.get(node)
    return seat.status if seat else None


def _with(seats: Seats, node: Node, status: Status) -> Seats:
    return {**seats, node: seats[node].become(status)}


def _arrive(state: RendezvousState, edit: Arrive, me: Node) -> RendezvousState:
    seat = state.seats.get(me)
    if seat:
        back = evolve(seat, status=Status.IN, profile=edit.profile)
        return evolve(state, seats={**state.seats, me: back}) if seat.status is Status.EXPECTED else state
    kin = [node for node in state.seats if node.slot == me.slot]
    if any(node.incarnation > me.incarnation for node in kin):
        return state
    if kin:
        state = _evict(state, frozenset(kin), me, refund=False)
    seated = {**state.seats, me: Seat(Status.WAITING, state.next_order, edit.profile)}
    return evolve(state, seats=seated, next_order=state.next_order + 1)


_LEFT: Mapping[Status, Status] = {Status.DONE: Status.GONE, Status.RESERVE: Status.ABSENT}
"""The next status of a member that leaves without the end of the round."""


def _marked(state: RendezvousState, round: int, me: Node, status: Status) -> RendezvousState:
    """Return the state with my seat marked DONE or RESERVE. Nobody waits for my workers then."""
    runs = state.complete and round == state.round and _status(state, me) is Status.IN
    return evolve(state, seats=_with(state.seats, me, status)) if runs else state


def _leave(state: RendezvousState, me: Node) -> RendezvousState:
    status = _status(state, me)
    if status in AWAY:
        return state
    if status is None:
        return evolve(state, stale_before=state.version + 1)
    if status in _LEFT:
        return evolve(state, seats=_with(state.seats, me, _LEFT[status]))
    if status is Status.IN and state.complete:
        return _open_next(state, Why.LEFT, me, without=frozenset((me,)))
    return _drop(state, frozenset((me,)))


def _evict(state: RendezvousState, dead: frozenset[Node], me: Node, refund: bool) -> RendezvousState:
    """Return the state without the dead nodes.

    A member that dies unnoticed makes the workers of its peers fail. So a charged failure is refunded if its true cause was
    the loss of an expected member, unless that member had ended the round itself.
    """
    present = frozenset(node for node in state.seats if node in dead and _status(state, node) not in AWAY)
    if not present:
        return state
    if not state.complete:
        return _drop(_refunded(state, present) if refund else state, present)
    if any(_status(state, node) is Status.IN for node in present):
        return _open_next(state, Why.LOST, me, without=present)
    finished = {
        node: seat.become(_LEFT[seat.status]) if node in present else seat
        for node, seat in state.seats.items()
        if node not in present or seat.status in _LEFT
    }
    return evolve(state, seats=finished)


def _refunded(state: RendezvousState, dead: frozenset[Node]) -> RendezvousState:
    ended = state.ended
    if ended is None or ended.why is not Why.FAILED:
        return state
    if not any(_status(state, node) is Status.EXPECTED for node in dead - {ended.by}):
        return state
    return evolve(state, failures=state.failures - 1, ended=evolve(ended, why=Why.LOST))


def _drop(state: RendezvousState, nodes: frozenset[Node]) -> RendezvousState:
    """Return the state without these seats, and without the end of a round.

    The round no longer waits for those that it expected. (A restored round may expect more nodes than it waits for.)
    """
    expected = sum(_status(state, node) is Status.EXPECTED for node in nodes)
    kept = {node: seat for node, seat in state.seats.items() if node not in nodes}
    return evolve(state, seats=kept, target=max(state.target - expected, 0))


def _open_next(state: RendezvousState, why: Why, me: Node, without: frozenset[Node]) -> RendezvousState:
    """Return the next round. Every member that can still come back is expected there."""
    seats = {}
    for node, seat in state.seats.items():
        if node in without or seat.status in AWAY:
            continue
        seats[node] = seat if seat.status is Status.WAITING else seat.become(Status.EXPECTED)
    return evolve(
        state,
        round=state.round + 1,
        complete=False,
        completed_in=None,
        policy="",
        seats=seats,
        target=sum(seat.status is Status.EXPECTED for seat in seats.values()),
        quorum_at=None,
        failures=state.failures + (why is Why.FAILED),
        ended=Ended(state.round, why, me),
        stale_before=state.version + 1,
    )


def settle(state: RendezvousState, me: Node) -> RendezvousState:
    """Return the state with the consequences of an edit that need no clock, in their order of precedence."""
    if state.closed:
        return state
    if state.complete:
        return _succeeded(state, me)
    state = _quorum(_promoted(state))
    if state.census[Status.EXPECTED]:
        return state
    if state.over_budget and state.ended and state.census[Status.IN]:
        return evolve(state, closed=Verdict(Ending.FAILED, state.ended.round, state.ended.by, Why.FAILED))
    full = state.census[Status.IN] == state.limits.max_nodes
    all_back = state.target > 0 and state.quorate and state.census[Status.IN] >= state.target
    return _completed(state) if full or all_back else state


def _completed(state: RendezvousState) -> RendezvousState:
    """Return the state with a complete world. From now on this life counts by itself."""
    return evolve(state, complete=True, completed_in=state.life, base=())


def _succeeded(state: RendezvousState, me: Node) -> RendezvousState:
    if state.census[Status.IN] or not state.finishing:
        return state
    return evolve(state, closed=Verdict(Ending.SUCCEEDED, state.round, me, Why.DONE))


def _promoted(state: RendezvousState) -> RendezvousState:
    if not state.census[Status.WAITING]:
        return state
    lucky = frozenset(state.those(Status.WAITING)[: max(state.room, 0)])
    if not lucky:
        return state
    seats = {node: seat.become(Status.IN) if node in lucky else seat for node, seat in state.seats.items()}
    return evolve(state, seats=seats)


def _quorum(state: RendezvousState) -> RendezvousState:
    if state.quorate == (state.quorum_at is not None):
        return state
    return evolve(state, quorum_at=state.version if state.quorate else None)
