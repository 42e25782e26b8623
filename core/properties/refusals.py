"""The laws of refusals, one row for each reason: what must keep a node out that is refused for it, and no node that takes a
seat. The machine's own reasons stand in `rendezvous/refusals.py`; nothing here asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import TypeAlias

from ..rendezvous import Arrive, Comparison, Held, RendezvousState, Status
from ..rendezvous.context import dead
from ..rendezvous.state import AWAY
from ..values import frozen
from ..world import Node, Profile, Why
from .facts import Decided, GaveUp, Operated
from .pasts import has_lasted
from .register_laws import beyond_a_loopback, is_beside_another_program, units

Kept: TypeAlias = bool | Set[Node]
"""True if a node is kept out; or the nodes that keep it out. A dead one keeps nobody out who asks for a seat."""


@frozen
class RefusalLaw:
    """The law of one reason. Its texts say what a node does wrong that breaks it."""

    keeps: Callable[[Held, RendezvousState, Profile], Kept]
    """Returns what keeps a node out, by this register, that arrives with this profile."""
    unjust: str
    """Wrong with a refusal if nothing keeps the node out."""
    ignored: str = ""
    """Wrong with an arrival if something does."""


def unjust(it: GaveUp) -> Iterator[str]:
    """Judge a refusal by the register and the settings."""
    held, rule = it.held, REFUSALS.get(it.why)
    if rule and not (held.view.state and rule.keeps(held, held.view.state, held.who.profile)):
        yield f"{held.who.node} {rule.unjust}"


def ignored(it: Decided) -> Iterator[str]:
    """Judge an arrival of a node that has no seat."""
    held, edit, state = it.held, it.edit, it.held.view.state
    if not isinstance(edit, Arrive) or state is None or held.who.node in state.seats:
        return
    for rule in REFUSALS.values():
        kept = rule.ignored and rule.keeps(held, state, edit.profile)
        if kept - dead(held, it.at) if isinstance(kept, Set) else kept:
            yield f"{held.who.node} {rule.ignored}"


def denied(it: Operated) -> Iterator[str]:
    """Judge by the register why an operator is refused. It has no past."""
    if it.answer is Why.NO_JOB and it.state is not None:
        yield "an operator is told of no job, and there is one"
    if it.answer is Why.NEEDED and it.state and it.names and not is_needed(it.state, it.names):
        yield f"an operator may not drain {it.names}, which the job does not need"
    if it.answer is Why.NO_NODE and it.state and it.names and not is_gone(it.state, it.names):
        yield f"an operator is told that {it.names} is gone, which has a seat"


def is_needed(state: RendezvousState, node: Node) -> bool:
    """Return True if the nodes of other slots that may be in the next world are too few."""
    out = (Status.GONE, Status.ABSENT, Status.LEAVING)
    seats = [(each, seat) for each, seat in state.seats.items() if each.slot != node.slot]
    stay = [each for each, seat in seats if not (seat.status in out or seat.notice)]
    return sum(map(len, units(state, stay))) < state.limits.min_nodes


def is_gone(state: RendezvousState, node: Node) -> bool:
    return node not in state.seats or state.seats[node].status in (Status.GONE, Status.ABSENT)


def _strangers(held: Held, state: RendezvousState, profile: Profile) -> bool:
    asks = held.who.settings.same_program is not Comparison.NONE
    return asks and is_beside_another_program(state, held.who.node, profile)


def _rivals(held: Held, state: RendezvousState, profile: Profile) -> Set[Node]:
    """Return the nodes of its role whose job has no seat for this node: by its arguments, or since it may have one node.
    A node that had a place there, or whose slot has one, has no such rivals."""
    mine, me = held.who.profile, held.who.node
    is_of_one, is_full = state.limits.max_nodes == 1, state.complete and state.room <= len(state.wait_list)
    past, slots = held.past, {node.slot for node in state.seats}
    had_a_place = past.returns or past.mine or past.spare_at is not None or me.slot in slots
    is_asked = mine.arguments and held.who.settings.same_program is Comparison.ARGUMENTS
    if not is_asked or had_a_place or not (is_of_one or is_full):
        return set()
    those = [(node, seat.profile) for node, seat in state.seats.items() if seat.status not in AWAY]
    alike = [(node, its.arguments) for node, its in those if its.role == mine.role]
    return {node for node, its in alike if is_of_one or (its and its != mine.arguments)}


def _is_behind(held: Held, state: RendezvousState, profile: Profile) -> bool:
    """Return True if the latest start of this node's slot is later than this one, and dead."""
    last = _last_start(held.who.node, state)
    return last is not None and _is_dead(held, last, state.seats[last].status)


def _is_superseded(held: Held, state: RendezvousState, profile: Profile) -> bool:
    """Return True if there is a later start. Only one that lives makes a node end whose workers have not run."""
    is_later = _last_start(held.who.node, state) is not None
    return is_later and (held.past.mine is not None or not _is_behind(held, state, profile))


def _fails_too_often(held: Held) -> bool:
    """Return True if a node that is to leave for its failures has ended enough rounds by them within its window."""
    limit, times = held.who.settings.max_node_failures, held.past.failed_at
    if limit is None or not limit.leaves:
        return False
    return any(sum(0 <= last - at <= limit.within for at in times) >= limit.failures for last in times[-1:])


def _was_lost_too_often(held: Held, state: RendezvousState) -> bool:
    """Return True if too many starts of this node's slot were lost, the one that it takes over among them."""
    limit, me = held.who.settings.max_node_failures, held.who.node
    if limit is None or not limit.leaves or held.past.mine is not None or me in state.seats:
        return False
    here = {node for node, seat in state.seats.items() if not seat.notice and seat.status not in AWAY}
    starts = {node for node in here.union(state.lost_starts) if node.slot == me.slot}
    ages = [me.incarnation - node.incarnation for node in sorted(starts) if node.incarnation < me.incarnation]
    return len([age for age in ages if age <= limit.within]) >= limit.failures


def _last_start(me: Node, state: RendezvousState) -> Node | None:
    later = (each for each in state.seats if each.slot == me.slot and each.incarnation > me.incarnation)
    return max(later, default=None)


def _is_dead(held: Held, node: Node, status: Status) -> bool:
    """Return True if this node has left, or had been silent for a TTL when its heartbeat was read last."""
    seen, read_at = held.view.sightings.of.get(node), held.view.sightings.read_at
    silence = read_at - seen.moved_at if seen and read_at is not None else 0.0
    return status in (Status.GONE, Status.ABSENT) or has_lasted(silence, held.who.settings.ttl)


REFUSALS: Mapping[Why, RefusalLaw] = {
    Why.CLOSED: RefusalLaw(
        lambda held, state, profile: state.closed is not None, "is refused as closed, but the job is not"
    ),
    Why.NEEDED: RefusalLaw(lambda held, state, profile: False, "may not drain itself, as if an operator had asked"),
    Why.LIMITS: RefusalLaw(
        lambda held, state, profile: state.limits != held.who.settings.limits,
        "is refused for its limits, which are the job's",
        "takes a seat in a job of other limits",
    ),
    Why.UNFIT: RefusalLaw(
        lambda held, state, profile: _fails_too_often(held) or _was_lost_too_often(held, state),
        "leaves as unfit, and neither failed nor was lost too often",
        "takes a seat, and is to leave",
    ),
    Why.BEHIND: RefusalLaw(_is_behind, "succeeds a later start that may live, or is not there"),
    Why.SUPERSEDED: RefusalLaw(_is_superseded, "is refused as superseded, but no later start of its slot lives"),
    Why.PROGRAM: RefusalLaw(
        _strangers, "is refused for its program, which is that of all", "takes a seat beside another program"
    ),
    Why.LOOPBACK: RefusalLaw(
        lambda held, state, profile: beyond_a_loopback(state, held.who.node, profile, held.who.settings.leased),
        "is refused for a loopback address, and there is none",
        "takes a seat beside another host, and one of the two has a loopback address",
    ),
    Why.ARGUMENTS: RefusalLaw(
        _rivals,
        "is refused for its arguments, and no other job keeps it out",
        "takes a seat that another job has not for it, by its arguments",
    ),
}
SIGHTS: Mapping[Why, str] = {
    Why.NO_NODE: "a drain refused: no such node",
    Why.NEEDED: "a drain refused: the job needs the node",
    Why.SUPERSEDED: "refused as superseded",
    Why.LIMITS: "refused for its limits",
    Why.PROGRAM: "refused for its program",
    Why.ARGUMENTS: "refused for its arguments",
    Why.LOOPBACK: "refused for a loopback address",
}
"""The refusals that the simulator counts as states of interest (`sim/sometimes.py`)."""
