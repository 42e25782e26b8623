"""The events and requests between a node's worker group and its rendezvous.

The two machines do not know each other. The agent, or the simulator, runs both and passes their words on by these functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import assert_never

from .group import state as group
from .rendezvous import Complete, Evict, Fail, Held, Over, Raise, RendezvousState, Settled, Told, handlers
from .rendezvous.actions import Drain
from .rendezvous.agenda import Request
from .rendezvous.apply import is_sooner
from .rendezvous.state import AWAY, Status, known_as
from .world import NAME_MAX, Ending, Generation, Life, Node, Notice, Profile, Verdict, Why, World, came_in

CAME_LATE = "the job had succeeded before this node came"


def heard(told: Told, now: float) -> group.Event | None:
    """Return the event of the group that follows from an answer; None for what the group already knows."""
    handler, answer = told.handler, told.answer
    if handler is handlers.drain:
        return None  # nothing has changed for this node's own part
    match answer:
        case World() as world:
            return group.Ready(world, now)
        case Over(round, ended):
            why, by = (ended.why, ended.by) if ended else (None, None)
            return group.Over(round, why, by, now, _generation(told.held))
        case Verdict() as verdict:
            return _closed(told.held, verdict, now)
        case Settled() if handler is handlers.end:
            return _ended(told.held, now)
        case Settled():
            return group.Gone(now) if handler in (handlers.leave, handlers.close) else None
        case Raise(Fail(Why.CLOSED, Verdict() as verdict)):
            return _closed(told.held, verdict, now)
        case Raise(Fail(Why.UNFIT), text) if handler is handlers.join:
            return group.Noticed(
                Notice(told.held.who.settings.leave_timeout, text[:NAME_MAX]), now, known=True, unfit=True
            )
        case Raise(failure, text):
            return group.Refused(failure.why, text, now)
        case other:
            assert_never(other)


def _closed(held: Held, verdict: Verdict, now: float) -> group.Event:
    """Return that the job has this verdict. It is no success of a node that came after it."""
    late = verdict.ending is Ending.SUCCEEDED and not _took_part(held)
    return group.Refused(Why.CLOSED, CAME_LATE, now) if late else group.Closed(verdict, now)


def _ended(held: Held, now: float) -> group.Event:
    """Return that the round is over which this node wanted to end, and by whose write, as far as the register tells."""
    state, mine = held.view.state, held.past.mine
    if state and state.closed:
        return group.Closed(state.closed, now)
    round, ended = mine.round if mine else 0, state.ended if state else None
    known = ended if ended and ended.round == round else None
    why, by = (known.why, known.by) if known else (None, None)
    return group.Over(round, why, by, now, _generation(held))


def _generation(held: Held) -> Generation | None:
    """Return the generation that this node's workers belong to if they live; None for a node that has lost its seat, or its
    place in the world that stands."""
    state = held.view.state
    has_place = state is not None and held.who.node in state.seats and not state.passes_over(held.who.node)
    return Generation(state.job, state.generation) if state and has_place else None


def workless(state: RendezvousState | None, world: World) -> tuple[Node, ...]:
    """Return the members of this world that have no work, and so stand still: they are done, gone, or reserves. When its
    round is over, all wait for the next one."""
    if state is None:
        return ()
    if state.world_id != world.id:
        return world.nodes
    return state.those(Status.DONE, Status.GONE, Status.RESERVE, Status.ABSENT)


def lost(before: RendezvousState, after: RendezvousState) -> frozenset[Node]:
    """Return the nodes that the register held and holds no longer because they were evicted. Who has left is none of them:
    its workers may still end in order. When several rounds have ended in between, not all may be known."""
    names = frozenset(after.ended.lost) if after.ended else frozenset[str]()
    gone = [node for node in before.seats if node not in after.seats]
    named = zip(gone, known_as(before, gone), strict=True)
    return frozenset(node for node, name in named if name in names or node.slot in names)


def still_lost(known: Mapping[Node, int], before: RendezvousState | None, after: RendezvousState) -> Mapping[Node, int]:
    """Return the nodes whose ranks are to be thrown out, each with the round that was over when it was lost: those known to
    be lost, and those lost since. A node that has a seat again, perhaps this one itself, is none of them."""
    if before and after.ended and (gone := lost(before, after)):
        known = {**known, **dict.fromkeys(sorted(gone), after.ended.round)}
    return {node: round for node, round in known.items() if node not in after.seats}


def lost_parties(known: Mapping[Node, int]) -> Mapping[str, int]:
    """Return the parties of these lost nodes' ranks, each with the last round in which its node may have come."""
    return {party_of(node): round for node, round in known.items()}


def eviction(ranks: RendezvousState, parties: Mapping[str, int], awaited: Mapping[str, int]) -> Evict | Complete | None:
    """Return the edit that takes the ranks of these parties out of their register, or that completes its first round without
    those that had not come, once each of the `awaited` parties has all its ranks in. None if there is nothing to do now.

    Each party has the last round in which its node may have come: a node that has returned since, which an agent may not
    have heard of, has new ranks in a party of the same name.
    """
    seats = ((node, seat.profile.party) for node, seat in ranks.seats.items() if seat.status not in AWAY)
    named = ((node, parties.get(party.name)) for node, party in seats if party)
    dead = frozenset(node for node, last in named if last is not None and came_in(node.slot)[1] <= last)
    if dead and not ranks.closed:
        return Evict(dead)
    return Complete(ranks.round) if is_forming(ranks) and awaited and not _missing(ranks, awaited) else None


def _missing(ranks: RendezvousState, awaited: Mapping[str, int]) -> Counter[str]:
    """Return how many ranks of each awaited party are not in. A rank of another party stands in for none of them."""
    parties = (seat.profile.party for seat in ranks.seats.values() if seat.status is Status.IN)
    return Counter(awaited) - Counter(party.name for party in parties if party)


def is_forming(ranks: RendezvousState | None) -> bool:
    """Return True if the first round of these ranks may still wait for those of a lost node."""
    return ranks is None or (ranks.round == 0 and not ranks.complete and not ranks.closed)


def ranks_of(state: RendezvousState) -> Mapping[str, int]:
    """Return how many ranks each member of the world has, or of the last one each who may come back, by party."""
    seats = state.seats.items()
    return {party_of(node): seat.profile.local_world_size for node, seat in seats if seat.status in _RANKED}


def party_of(node: Node) -> str:
    """Return the name of the party of this node's ranks. The end of a long name counts: it has the incarnation."""
    return str(node)[-NAME_MAX:]


_RANKED = (Status.IN, Status.DONE, Status.RESERVE, Status.EXPECTED)


def _took_part(held: Held) -> bool:
    """Return True if this node had workers in the job, or a seat, or was a spare that lost its seat."""
    state = held.view.state
    seated = state is not None and held.who.node in state.seats
    return seated or bool(held.past.ran) or held.past.spare_at is not None


def had_a_seat(held: Held, state: RendezvousState | None) -> bool:
    """Return True if an earlier start of this node has a seat in this register, with the same program and arguments."""
    mine, seats = held.who.profile, state.seats.items() if state else ()
    return any(
        node.slot == held.who.node.slot
        and node < held.who.node
        and (its.role, its.program, its.content, its.arguments)
        == (mine.role, mine.program, mine.content, mine.arguments)
        for node, its in ((node, seat.profile) for node, seat in seats)
    )


def noticed(state: RendezvousState, mine: group.Group, now: float) -> group.Noticed | None:
    """Return the event of the group that follows from the register: this node has notice there that the group does not
    know, or must be gone sooner than it knows."""
    seat, known = state.seats.get(mine.node), mine.deadline.notice if mine.deadline else None
    if seat is None or seat.notice is None or is_sooner(known, seat.notice):
        return None
    return group.Noticed(seat.notice, now, known=True)


def requested(command: group.Command, profile: Profile | None = None, holds_back: bool = False) -> Request | None:
    """Return the request that follows from a command of the group; None for a command to another part. `profile` is what the
    node says of itself when it joins, if that is known yet. `holds_back`: it asks for no seat in a running job before it is
    `Prepared`."""
    match command:
        case group.Join(alive):
            return Request(handlers.join, profile=profile, holds_back=True if holds_back else None, alive=alive)
        case group.End(why, is_open):
            return Request(handlers.end, why, is_open=is_open)
        case group.MarkDone():
            return Request(handlers.done)
        case group.Leave():
            return Request(handlers.leave)
        case group.Drain(node, notice):
            return Request(handlers.drain, drain=Drain(node, notice))
        case group.Close(ending, why):
            return Request(handlers.close, why, ending)
        case _:
            return None


def follows(event: group.Event, after: group.Group, now: float) -> group.Event | None:
    """Return the event that must follow: when the last worker has exited, no worker lives any longer."""
    return group.Reaped(now) if isinstance(event, group.Exited) and not after.running else None


def asks_for_stacks(event: group.Event, before: group.Group, after: group.Group) -> bool:
    """Return True if people will want to know what this node's workers were doing: they are about to be stopped because a
    worker failed, here or elsewhere, or because a node was lost."""
    if before.phase is not group.Phase.RUNNING or after.phase is not group.Phase.STOPPING:
        return False
    match event:
        case group.Exited() | group.Raised():
            return True
        case group.Over(why=why):
            return why in (Why.FAILED, Why.LOST, Why.FENCED)
        case group.Closed(verdict):
            return verdict.ending is Ending.FAILED
        case _:
            return False


def acknowledged(named: Life | None, held: RendezvousState | None) -> bool:
    """Return True if the answer to a heartbeat counts: it names the life of the register that this node holds. In a store
    that began anew the heartbeat may be heard by nodes that do not know this one."""
    return held is not None and held.life == named


def farewell(outcome: group.Outcome) -> Request | None:
    """Return the last request of a node whose group has ended: a node that knows the verdict sees to it that the store
    does."""
    return Request(handlers.linger) if isinstance(outcome, Verdict) else None
