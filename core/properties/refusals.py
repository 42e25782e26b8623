"""The laws of refusals, one for each reason: what shows that a refusal for it is wrong, and what shows that a node took a
seat in spite of it. The machine's own reasons stand in `rendezvous/refusals.py`; nothing here asks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..rendezvous import Arrive, Comparison, Held, RendezvousState, Status
from ..rendezvous.context import dead
from ..rendezvous.state import AWAY
from ..values import frozen
from ..world import Node, Why
from .facts import Decided, GaveUp, Operated
from .pasts import has_lasted
from .register_laws import beyond_a_loopback, is_beside_another_program

Complaint: TypeAlias = str | None
"""What is wrong; None if nothing is."""


@frozen
class RefusalLaw:
    """What is true of a refusal for one reason."""

    unjust: Callable[[GaveUp], Complaint] = lambda it: None
    """Judges a refusal of a node."""
    denied: Callable[[Operated], Complaint] = lambda it: None
    """Judges a refusal of an operator, which has no past."""
    ignored: Callable[[Held, Arrive, float], Complaint] = lambda held, edit, at: None
    """Judges a node without a seat that takes one at this time."""
    sight: str = ""
    """The state of interest that the simulator counts (`sim/sometimes.py`)."""


def unjust(it: GaveUp) -> Complaint:
    """Judge a refusal by the register and the settings."""
    rule = REFUSALS.get(it.why)
    return rule.unjust(it) if rule else None


def denied(it: Operated) -> Complaint:
    """Judge by the register why an operator is refused."""
    rule = REFUSALS.get(it.answer) if isinstance(it.answer, Why) else None
    return rule.denied(it) if rule else None


def ignored(it: Decided) -> list[str]:
    """Return what an arrival of a node that has no seat ignores."""
    state, edit = it.held.state, it.edit
    if not isinstance(edit, Arrive) or state is None or it.held.node in state.seats:
        return []
    return [told for rule in REFUSALS.values() if (told := rule.ignored(it.held, edit, it.at))]


# --- the job's verdict, and an operator's wishes


def _closed(it: GaveUp) -> Complaint:
    state = it.held.state
    return None if state and state.closed else f"{it.held.node} is refused as closed, but the job is not"


def _needed(it: GaveUp) -> Complaint:
    return f"{it.held.node} may not drain itself, as if an operator had asked"


def _not_needed(it: Operated) -> Complaint:
    is_just = it.state is None or it.names is None or is_needed(it.state, it.names)
    return None if is_just else f"an operator may not drain {it.names}, which the job does not need"


def _seated(it: Operated) -> Complaint:
    is_just = it.state is None or it.names is None or is_gone(it.state, it.names)
    return None if is_just else f"an operator is told that {it.names} is gone, which has a seat"


def _a_job(it: Operated) -> Complaint:
    return "an operator is told of no job, and there is one" if it.state is not None else None


def is_needed(state: RendezvousState, node: Node) -> bool:
    """Return True if the nodes of other slots that may be in the next world are too few."""
    out = (Status.GONE, Status.ABSENT, Status.LEAVING)
    seats = [(each, seat) for each, seat in state.seats.items() if each.slot != node.slot]
    return sum(not (seat.status in out or seat.notice) for _, seat in seats) < state.limits.min_nodes


def is_gone(state: RendezvousState, node: Node) -> bool:
    return node not in state.seats or state.seats[node].status in (Status.GONE, Status.ABSENT)


# --- another job


def _limits(it: GaveUp) -> Complaint:
    return None if _has_other_limits(it.held) else f"{it.held.node} is refused for its limits, which are the job's"


def _beside_other_limits(held: Held, edit: Arrive, at: float) -> Complaint:
    return f"{held.node} takes a seat in a job of other limits" if _has_other_limits(held) else None


def _has_other_limits(held: Held) -> bool:
    return held.state is not None and held.state.limits != held.settings.limits


def _program(it: GaveUp) -> Complaint:
    seats = it.held.state.seats.values() if it.held.state else ()
    is_alone = all(seat.profile.program in ("", it.held.profile.program) for seat in seats)
    return f"{it.held.node} is refused for its program, which is that of all" if is_alone else None


def _beside_a_program(held: Held, edit: Arrive, at: float) -> Complaint:
    assert held.state is not None
    asks = held.settings.same_program is not Comparison.NONE
    wrong = asks and is_beside_another_program(held.state, held.node, edit.profile)
    return f"{held.node} takes a seat beside another program" if wrong else None


def _arguments(it: GaveUp) -> Complaint:
    rivals = it.held.state and _rivals(it.held.state, it.held)
    return None if rivals else f"{it.held.node} is refused for its arguments, and no other job keeps it out"


def _beside_rivals(held: Held, edit: Arrive, at: float) -> Complaint:
    assert held.state is not None
    if rivals := _rivals(held.state, held) - dead(held, at):
        return f"{held.node} takes a seat that {min(rivals)} and its job have not for it, by its arguments"
    return None


def _rivals(state: RendezvousState, held: Held) -> set[Node]:
    """Return the nodes of its role whose job has no seat for this node: by its arguments, or since it may have one node.
    A node that had a place there, or whose slot has one, has no such rivals."""
    mine, me = held.profile, held.node
    is_of_one, is_full = state.limits.max_nodes == 1, state.complete and state.room <= len(state.wait_list)
    had_a_place = (
        held.returns or held.mine or held.spare_at is not None or me.slot in {node.slot for node in state.seats}
    )
    is_asked = mine.arguments and held.settings.same_program is Comparison.ARGUMENTS
    if not is_asked or had_a_place or not (is_of_one or is_full):
        return set()
    those = [(node, seat.profile) for node, seat in state.seats.items() if seat.status not in AWAY]
    alike = [(node, its.arguments) for node, its in those if its.role == mine.role]
    return {node for node, its in alike if is_of_one or (its and its != mine.arguments)}


# --- an address that leads each host to itself


def _loopback(it: GaveUp) -> Complaint:
    held, state = it.held, it.held.state
    apart = state and beyond_a_loopback(state, held.node, held.profile, held.settings.leased)
    return None if apart else f"{held.node} is refused for a loopback address, and there is none"


def _beside_a_loopback(held: Held, edit: Arrive, at: float) -> Complaint:
    assert held.state is not None
    if apart := beyond_a_loopback(held.state, held.node, edit.profile, held.settings.leased) - dead(held, at):
        return f"{held.node} takes a seat beside {min(apart)}, and one of them has a loopback address"
    return None


# --- a later start of the node's slot: only one that lives makes the node end


def _behind(it: GaveUp) -> Complaint:
    last, is_dead = _last_start(it.held)
    return _no_start(it, last) or (None if is_dead else f"{it.held.node} succeeds {last}, which may live")


def _superseded(it: GaveUp) -> Complaint:
    last, is_dead = _last_start(it.held)
    wrong = is_dead and it.held.mine is None
    return _no_start(it, last) or (
        f"{it.held.node} is refused as superseded by {last}, which is dead" if wrong else None
    )


def _no_start(it: GaveUp, last: Node | None) -> Complaint:
    return None if last else f"{it.held.node} is refused as superseded, but nobody has its slot"


def _last_start(held: Held) -> tuple[Node | None, bool]:
    """Return the latest start of this node's slot, if it is later, and whether it is dead."""
    seats, me = held.state.seats if held.state else {}, held.node
    last = max((each for each in seats if each.slot == me.slot and each.incarnation > me.incarnation), default=None)
    return last, last is not None and _is_dead(held, last, seats[last].status)


def _is_dead(held: Held, node: Node, status: Status) -> bool:
    """Return True if this node has left, or had been silent for a TTL when its heartbeat was read last."""
    seen, read_at = held.sightings.of.get(node), held.sightings.read_at
    silence = read_at - seen.moved_at if seen and read_at is not None else 0.0
    return status in (Status.GONE, Status.ABSENT) or has_lasted(silence, held.settings.ttl)


REFUSALS: Mapping[Why, RefusalLaw] = {
    Why.CLOSED: RefusalLaw(_closed),
    Why.NO_JOB: RefusalLaw(denied=_a_job),
    Why.NO_NODE: RefusalLaw(denied=_seated, sight="a drain refused: no such node"),
    Why.NEEDED: RefusalLaw(_needed, _not_needed, sight="a drain refused: the job needs the node"),
    Why.LIMITS: RefusalLaw(_limits, ignored=_beside_other_limits, sight="refused for its limits"),
    Why.BEHIND: RefusalLaw(_behind),
    Why.SUPERSEDED: RefusalLaw(_superseded, sight="refused as superseded"),
    Why.PROGRAM: RefusalLaw(_program, ignored=_beside_a_program, sight="refused for its program"),
    Why.LOOPBACK: RefusalLaw(_loopback, ignored=_beside_a_loopback, sight="refused for a loopback address"),
    Why.ARGUMENTS: RefusalLaw(_arguments, ignored=_beside_rivals, sight="refused for its arguments"),
}
