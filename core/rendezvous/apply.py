"""The effect of an edit on a state.

`apply` is total. Any edit on any legal state gives a legal state, or the same state if the edit has nothing to change there.
So an edit is safe to repeat. A change raises the version by one. Then `settle` draws the consequences that need no clock:
promotion, quorum, completion, and the verdicts that follow from the seats alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from ..values import evolve
from ..world import Ending, Node, Notice, Profile, Verdict, Why
from .actions import (
    Arrive,
    Close,
    Complete,
    Done,
    Drain,
    Edit,
    End,
    Evict,
    Leave,
    Overdue,
    Proceed,
    Proposal,
    Reserve,
    Together,
)
from .rank_order import in_rank_order
from .state import (
    AWAY,
    LOST_MAX,
    MEMBERS,
    STARTS_MAX,
    Ended,
    Failing,
    RendezvousState,
    Seat,
    Status,
    known_as,
    status_of,
)

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
        case End(round, why, failing):
            ends = state.complete and round == state.round and status_of(state, me) in MEMBERS
            if not ends:
                return state
            opened = _open_next(state, why, me, without=frozenset())
            return _told(opened, me, failing) if why is Why.FAILED else opened
        case Done() | Reserve():
            return _reseated(state, {me: edit}) if me in state.seats else state
        case Evict(dead):
            return _evict(state, dead, me, refund=True)
        case Complete(round):
            ready = state.quorate and not state.census[Status.EXPECTED] and not state.over_budget
            return _completed(state) if ready and not state.complete and round == state.round else state
        case Overdue(round):
            late = frozenset(state.expected)
            return _drop(state, late) if late and not state.complete and round == state.round else state
        case Proceed(round):
            proceeds = state.complete and round == state.round and status_of(state, me) in MEMBERS
            is_new = state.limits.give_up_after > 0 and not state.progressed
            return evolve(state, fruitless=(), progressed=True) if proceeds and is_new else state
        case Close(verdict):
            return evolve(state, closed=verdict)
        case Drain(node, notice):
            return _drained(state, node, notice)
        case Together(proposals):
            standing = {node: each.edit for node, each in proposals.items() if stands(state, node, each)}
            entering = {node: each for node, each in proposals.items() if _enters(state, each)}
            changed = _reseated(state, standing)
            return _entered(changed, entering, me) if entering else changed
        case other:
            assert_never(other)


def stands(state: RendezvousState, node: Node, proposal: Proposal) -> bool:
    """Return True if the proposal of a node with a seat still counts here. A node that has left is not brought back by what
    it proposed before. (Proposals that stand end nothing and evict nobody, so that each may be judged by the state before
    all of them; only the last one that was missing can complete a round, or close the job.)"""
    return proposal.era == state.era and node in state.seats and not proposal.enters


def _enters(state: RendezvousState, proposal: Proposal) -> bool:
    """Return True if a proposal to enter still counts here: in its era, while the round is open."""
    return proposal.enters and proposal.era == state.era and not state.complete


def _entered(state: RendezvousState, proposals: Mapping[Node, Proposal], me: Node) -> RendezvousState:
    """Return the state with seats for these nodes, in the order of their names. Its era is over, so no proposal seats a
    node twice.

    I have judged myself. Of the others those are passed over that a join of their own would not seat so: a node whose slot
    is taken, or that has a later incarnation here, or whose program is not that of its role, or that has, or finds, a
    loopback address on another host.
    """
    profiles = {node: each.edit.profile for node, each in proposals.items() if isinstance(each.edit, Arrive)}
    kin = frozenset(node for node in state.seats if node.slot == me.slot)
    own = profiles.pop(me, None)
    mine = own if all(node < me for node in kin) else None
    before = _evict(state, kin, me, refund=state.provisional) if mine else state
    seats, order = dict(before.seats), before.next_order
    slots = {node.slot for node in seats}
    company = _Company([*(seat.profile for seat in seats.values()), *([mine] if mine else [])])
    latest = {node.slot: node for node in sorted(profiles)} | ({me.slot: me} if mine else {})
    for node in sorted(latest.values()):
        its = mine if mine and node == me else profiles[node]
        if node != me and (node.slot in slots or not company.takes(its)):
            continue
        seats[node] = Seat(Status.WAITING, order, its)
        company.add(its)
        order += 1
    if order == before.next_order:
        return state
    return evolve(before, seats=seats, next_order=order, stale_before=state.version + 1)


class _Company:
    """Those that have a seat, as far as a node that comes must go with them."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._programs = set[tuple[str, str]]()
        self._hosts = set[str]()
        self._with_loopback = set[str]()
        for its in profiles:
            self.add(its)

    def add(self, its: Profile) -> None:
        self._hosts.add(its.host)
        if its.program:
            self._programs.add((its.role, its.program))
        if its.has_loopback:
            self._with_loopback.add(its.host)

    def takes(self, its: Profile) -> bool:
        """Return True if the program of its role is its own, and nobody's loopback address is between two hosts."""
        if its.program and any(role == its.role and program != its.program for role, program in self._programs):
            return False
        apart = self._hosts if its.has_loopback else self._with_loopback
        return apart <= {its.host}


def _with(seats: Seats, node: Node, status: Status) -> Seats:
    return {**seats, node: seats[node].become(status)}


def _arrive(state: RendezvousState, edit: Arrive, me: Node) -> RendezvousState:
    if me in state.seats:
        return _reseated(state, {me: edit})
    kin = [node for node in state.seats if node.slot == me.slot]
    if any(node.incarnation > me.incarnation for node in kin):
        return state
    if kin:
        state = _evict(state, frozenset(kin), me, refund=state.provisional)
    seated = {**state.seats, me: Seat(Status.WAITING, state.next_order, edit.profile)}
    return evolve(state, seats=seated, next_order=state.next_order + 1)


def _reseated(state: RendezvousState, edits: Mapping[Node, Arrive | Done | Reserve]) -> RendezvousState:
    """Return the state after these nodes, which have seats, have changed these. None of them changes another's. Those that
    were set aside wait behind all others: the members have come before them."""
    before = state.seats
    seats = {node: _seat_after(state, before[node], edit) for node, edit in edits.items()}
    if all(seat is before[node] for node, seat in seats.items()):
        return state
    after, order = {**before, **seats}, state.next_order
    for node, seat in seats.items():
        if before[node].status is Status.ASIDE and seat.status is Status.WAITING:
            after[node] = evolve(after.pop(node), order=order)
            order += 1
    return evolve(state, seats=after, next_order=order)


def _seat_after(state: RendezvousState, seat: Seat, edit: Arrive | Done | Reserve) -> Seat:
    """Return the seat of the node that made this edit: one that is expected back is in, one that was set aside waits. Nobody
    waits for the workers of one that is done or a reserve."""
    match edit:
        case Arrive(profile) if seat.status is Status.EXPECTED:
            return evolve(seat, status=Status.IN, profile=profile)
        case Arrive(profile) if seat.status is Status.ASIDE:
            return Seat(Status.WAITING, seat.order, profile)
        case Arrive():
            return seat
        case Done(round) | Reserve(round):
            runs = state.complete and round == state.round and seat.status is Status.IN
            return seat.become(Status.DONE if isinstance(edit, Done) else Status.RESERVE) if runs else seat
        case other:
            assert_never(other)


def _told(state: RendezvousState, me: Node, failing: Failing | None) -> RendezvousState:
    """Return the state with what I tell of my failures, if I come back. A failure that does not count against me drops what
    I told before: the next one that counts tells all."""
    seat = state.seats.get(me)
    if seat is None or seat.failing == failing:
        return state
    return evolve(state, seats={**state.seats, me: evolve(seat, failing=failing)})


_LEFT: Mapping[Status, Status] = {Status.DONE: Status.GONE, Status.RESERVE: Status.ABSENT}
"""The next status of a member that leaves without the end of the round."""


def _leave(state: RendezvousState, me: Node) -> RendezvousState:
    status = status_of(state, me)
    if status in AWAY:
        return state
    if any(node.slot == me.slot for node in state.lost_starts):
        state = evolve(state, lost_starts=tuple([node for node in state.lost_starts if node.slot != me.slot]))
    if status is None:
        return evolve(state, stale_before=state.version + 1)
    if status in _LEFT:
        return evolve(state, seats=_with(state.seats, me, _LEFT[status]))
    if status is Status.IN and state.complete:
        return _open_next(state, Why.LEFT, me, without=frozenset((me,)))
    return _drop(state, frozenset((me,)))


def _drained(state: RendezvousState, node: Node, notice: Notice) -> RendezvousState:
    """Return the state in which this node has notice. A member of a world stays one until the world ends. Any other node is
    on its way out at once, and nobody waits for it."""
    seat = state.seats.get(node)
    if seat is None or seat.status in AWAY or is_sooner(seat.notice, notice):
        return state
    stays = state.complete and seat.status in MEMBERS
    target = state.target if seat.status is not Status.EXPECTED else max(state.target - 1, 0)
    noted = evolve(seat, notice=notice, status=seat.status if stays else Status.LEAVING)
    return evolve(state, seats={**state.seats, node: noted}, target=target)


def is_sooner(before: Notice | None, notice: Notice) -> bool:
    """Return True if a node that has the first notice leaves no later than the other one asks."""
    return before is not None and before.deadline_s <= notice.deadline_s


def _evict(state: RendezvousState, dead: frozenset[Node], me: Node, refund: bool) -> RendezvousState:
    """Return the state without the dead nodes.

    A member that dies unnoticed makes the workers of its peers fail. So a charged failure is refunded if its true cause was
    the loss of an expected member, or of a drained one, unless that member had ended the round itself. The next incarnation
    of a node refunds only in a restored life: there the node may have died with the store that it served.
    """
    present = frozenset(node for node in state.seats if node in dead and status_of(state, node) not in AWAY)
    if not present:
        return state
    starts = sorted(node for node in present if not state.seats[node].notice)
    state = evolve(state, lost_starts=(*state.lost_starts, *starts)[-STARTS_MAX:])
    lost = known_as(state, [node for node in state.seats if node in present])
    if not state.complete:
        counts = _came_to_nothing(state, present)
        return _naming(_drop(_refunded(state, present) if refund else state, present), lost, counts)
    if any(status_of(state, node) is Status.IN for node in present):
        return _naming(_open_next(state, Why.LOST, me, without=present), lost)
    finished = {
        node: seat.become(_LEFT[seat.status]) if node in present else seat
        for node, seat in state.seats.items()
        if node not in present or seat.status in _LEFT
    }
    return evolve(state, seats=finished)


_MISSED = (Status.EXPECTED, Status.LEAVING)
"""Who was a member of the last world, and has not come back."""


def _refunded(state: RendezvousState, dead: frozenset[Node]) -> RendezvousState:
    ended = state.ended
    if ended is None or ended.why is not Why.FAILED:
        return state
    if not any(status_of(state, node) in _MISSED for node in dead - {ended.by}):
        return state
    counts = state.limits.give_up_after > 0 and not state.progressed
    lost = _recorded(state, evolve(ended, why=Why.LOST), counts)
    refunded = evolve(lost, failures=state.failures - 1)
    seat = state.seats.get(ended.by)
    if seat is None or seat.failing is None:
        return refunded
    return evolve(refunded, seats={**state.seats, ended.by: evolve(seat, failing=None)})


def _came_to_nothing(state: RendezvousState, dead: frozenset[Node]) -> bool:
    """Return True if the last round ended for newcomers, and one is lost in the open round that no notice drives out: that
    end counts, as a loss would. Else a node that dies each time that a round forms for it would stop the others for ever."""
    is_for_them = state.ended is not None and state.ended.why is Why.UPSCALE
    may_count = state.limits.give_up_after > 0 and not state.progressed
    return may_count and is_for_them and not all(state.seats[node].notice for node in dead)


def _naming(state: RendezvousState, lost: Sequence[str], counts: bool = False) -> RendezvousState:
    """Return the state with these names of lost nodes beside the end of the last round, which `counts` now if it did not."""
    ended = state.ended
    if ended is None:
        return state
    names = tuple(dict.fromkeys((*ended.lost, *lost)))
    counts = counts or any(each.round == ended.round for each in state.fruitless[-1:])
    return _recorded(state, evolve(ended, lost=names[-LOST_MAX:]), counts)


def _recorded(state: RendezvousState, ended: Ended, counts: bool) -> RendezvousState:
    """Return the state with this end of the last round, which `counts` among the fruitless ones or does not."""
    before = tuple([each for each in state.fruitless if each.round != ended.round])
    return evolve(state, ended=ended, fruitless=(*before, ended) if counts else before)


def _is_fruitless(state: RendezvousState, why: Why, without: frozenset[Node]) -> bool:
    """Return True if this end of the round counts: a loss, or a node that waits was lost in one of the rounds that do. The
    loss of drained nodes alone does not."""
    limits = state.limits
    if not limits.give_up_after or state.progressed:
        return False
    if why is Why.UPSCALE:
        return bool(state.losses) and not state.losses.keys().isdisjoint(known_as(state, state.wait_list))
    if why is Why.LOST and all(state.seats[node].notice for node in without):
        return False
    return why in (Why.LOST, Why.FENCED) or (why is Why.FAILED and limits.counts_failures)


def _drop(state: RendezvousState, nodes: frozenset[Node]) -> RendezvousState:
    """Return the state without these seats, and without the end of a round.

    The round no longer waits for those that it expected. (A restored round may expect more nodes than it waits for.)
    """
    expected = sum(status_of(state, node) is Status.EXPECTED for node in nodes)
    kept = {node: seat for node, seat in state.seats.items() if node not in nodes}
    return evolve(state, seats=kept, target=max(state.target - expected, 0))


_STAYS = (Status.WAITING, Status.ASIDE)
"""The seats that the end of a round does not change."""


def _open_next(state: RendezvousState, why: Why, me: Node, without: frozenset[Node]) -> RendezvousState:
    """Return the next round. Every member that can still come back is expected there, but for the drained."""
    seats = {}
    for node, seat in state.seats.items():
        if node in without or seat.status in AWAY:
            continue
        status = Status.LEAVING if seat.notice else Status.EXPECTED
        seats[node] = seat if seat.status in _STAYS else seat.become(status)
    return evolve(
        _recorded(state, Ended(state.round, why, me), _is_fruitless(state, why, without)),
        round=state.round + 1,
        complete=False,
        completed_in=None,
        generation=state.round + 1 if why is Why.FAILED else state.generation,
        policy="",
        seats=seats,
        target=sum(seat.status is Status.EXPECTED for seat in seats.values()),
        quorum_at=None,
        failures=state.failures + (why is Why.FAILED),
        stale_before=state.version + 1,
    )


def settle(state: RendezvousState, me: Node) -> RendezvousState:
    """Return the state with the consequences of an edit that need no clock, in their order of precedence."""
    if state.closed:
        return state
    if state.complete:
        return _succeeded(state, me)
    if state.gives_up and state.ended:
        return evolve(state, closed=Verdict(Ending.FAILED, state.ended.round, state.ended.by, Why.FRUITLESS))
    state = _quorum(_called_back(_promoted(_set_aside(state))))
    if state.census[Status.EXPECTED]:
        return state
    if state.over_budget and state.ended and state.census[Status.IN]:
        return evolve(state, closed=Verdict(Ending.FAILED, state.ended.round, state.ended.by, Why.FAILED))
    full = state.made == state.limits.max_nodes
    all_back = state.target > 0 and state.quorate and state.census[Status.IN] >= state.target
    as_large = state.ended is not None or state.made >= state.limits.whole(state.target)
    return _completed(state) if full or (all_back and as_large) else state


def _completed(state: RendezvousState) -> RendezvousState:
    """Return the state with a complete world. From now on this life counts by itself.

    The participants' seats change places with one another, so that they stand in the order of the ranks. So the next world
    begins with the order of this one. Those that are in no whole unit of it wait, behind all members.
    """
    members, over = in_rank_order(state)
    line = (*members, *over)
    if line == state.participants and not over:
        return evolve(state, complete=True, progressed=False, completed_in=state.life, base=())
    orders = {node: state.seats[old].order for node, old in zip(line, state.participants, strict=True)}
    waiting = {node: seat.become(Status.WAITING) if node in over else seat for node, seat in state.seats.items()}
    dealt = [(node, evolve(seat, order=orders.get(node, seat.order))) for node, seat in waiting.items()]
    seats = dict(sorted(dealt, key=lambda each: each[1].order))
    return evolve(state, complete=True, completed_in=state.life, base=(), progressed=False, seats=seats)


def _succeeded(state: RendezvousState, me: Node) -> RendezvousState:
    if state.census[Status.IN] or not state.finishing:
        return state
    return evolve(state, closed=Verdict(Ending.SUCCEEDED, state.round, me, Why.DONE))


def _set_aside(state: RendezvousState) -> RendezvousState:
    """Return the state in which the node that ended the last round is set aside, if its failures are too many.

    It is judged when everybody is back: before that, a death that is found may be the true cause. It stays if the others
    would be too few without it, or if this failure ends the job. Its place goes to a spare, and a proposal of before brings
    it back no longer.
    """
    ended = state.ended
    if ended is None or ended.why is not Why.FAILED or state.over_budget or state.census[Status.EXPECTED]:
        return state
    seat = state.seats.get(ended.by)
    if seat is None or seat.status is not Status.IN or seat.failing is None or not seat.failing.is_too_often:
        return state
    others = [node for node in state.those(Status.IN, Status.WAITING) if node != ended.by]
    if len(state.fit(others)) < state.limits.min_nodes:
        return state
    seats = {node: other for node, other in state.seats.items() if node != ended.by}
    seats[ended.by] = evolve(seat, status=Status.ASIDE, order=state.next_order)
    target = state.target - (state.target > 1)
    return evolve(state, seats=seats, next_order=state.next_order + 1, target=target, stale_before=state.version)


def _called_back(state: RendezvousState) -> RendezvousState:
    """Return the state in which nodes that were set aside are expected back, if the others are too few: the first ones that
    make the minimum with them, or all if even they do not."""
    if not state.census[Status.ASIDE]:
        return state
    called = state.those(Status.ASIDE)
    here = state.those(Status.IN, Status.EXPECTED)
    for node in reversed(called):
        fewer = tuple([each for each in called if each != node])
        if len(state.fit((*here, *fewer))) >= state.limits.min_nodes:
            called = fewer
    if not called:
        return state
    seats = {
        node: Seat(Status.EXPECTED, seat.order, seat.profile) if node in called else seat
        for node, seat in state.seats.items()
    }
    return evolve(state, seats=seats, target=state.target + len(called))


def _promoted(state: RendezvousState) -> RendezvousState:
    if not state.census[Status.WAITING]:
        return state
    waiting = state.those(Status.WAITING)
    lucky = frozenset(waiting if state.limits.segment else waiting[: max(state.room, 0)])
    if not lucky:
        return state
    seats = {node: seat.become(Status.IN) if node in lucky else seat for node, seat in state.seats.items()}
    return evolve(state, seats=seats)


def _quorum(state: RendezvousState) -> RendezvousState:
    if state.quorate == (state.quorum_at is not None):
        return state
    return evolve(state, quorum_at=state.version if state.quorate else None)
