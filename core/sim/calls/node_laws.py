"""The laws that connect nodes with the ranks that call wrapped functions in their workers (N1 to N4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...inprocess import Phase as Of
from ...inprocess.words import Raised, Reason
from ...node import party_of
from ...properties.law import Answers, Law, by_number, law
from ...rendezvous import RendezvousState, Status
from ...rendezvous.state import Seat
from ...world import Node
from ..process import Process
from .call_world import Rank
from .call_world import World as Calls

TAKEN_AWAY = (Reason.SUPERSEDED, Reason.REFUSED, Reason.OTHER_POLICY)
"""No rank whose place is its own is told one of these."""
SEATED = (Of.JOINING, Of.STARTING, Of.RUNNING, Of.RESERVE, Of.RETURNED, Of.SHORT)
"""The phases of a rank that is in a world, or on its way into one."""
COMES = (Status.IN, Status.EXPECTED, Status.DONE, Status.RESERVE)
"""The statuses of a node whose ranks come, or have come."""


@law("an agent signals living ranks, or a call ends by itself")
def N1(stops: Process | None, because: Iterable[str], ends: Rank | None = None) -> Answers:
    """A node event stops no living wrapped process: an agent signals living ranks only if its node leaves, was told, has
    failed, fences itself or has lost its seat, or if their generation is over, and no call ends because its place was given
    to another.

    `because`: all that may have told the agent to stop its ranks.
    """
    if stops is not None and not any(because):
        world = stops.attempt.world
        where = f"round {world.round}" if world else "no round"
        yield f"{stops.name} stops its living ranks of {where} though it has its seat in their generation"
    outcome = ends.returned if ends else None
    if ends is not None and isinstance(outcome, Raised) and outcome.reason in TAKEN_AWAY:
        yield f"the call of {ends.node} ends: {outcome.reason.value}"


def may_stop(process: Process, now: float) -> Iterable[str]:
    """Yield what this node itself has to stop its ranks for: it goes, it was refused, it has failed, or it fences itself."""
    group = process.group
    if group.departure or group.deadline:
        yield "it leaves"
    if group.verdict or group.refused:
        yield "it was told"
    if group.failures.on_the_way or any(process.attempt.codes):
        yield "it has failed"
    if group.fence_at is not None and process.clock.shows(now) >= group.fence_at:
        yield "it fences itself"


@law("an agent throws a rank out of its register")
def N2(by: Process, rank: Rank, owner: Process, unseated: frozenset[Node]) -> Answers:
    """An agent throws a living rank out of its register only if the agent of that rank is dead, or its node has no seat
    since the rank began."""
    if rank.alive and owner.alive and owner.node not in unseated:
        yield f"{by.name} throws rank {rank.node} out, but {owner.name} lives and has kept its seat"


@law("all that ranks can do is done, and one lives whose node has a seat")
def N3(calls: Calls, seated: Iterable[Rank]) -> Answers:
    """When nothing moves, each living rank of a node that runs in the standing generation has a seat in the register of its
    generation."""
    register = calls.register
    for rank in seated:
        stays = rank.call.phase in SEATED and not (rank.call.leaving or rank.cut_off or rank.starved)
        if stays and not (register and register.closed) and not (register and rank.node in register.seats):
            yield f"{rank.node} is {rank.call.phase.value} and has no seat, though nothing moves"


@law("an agent completes the first round of its ranks")
def N4(by: Process, ranks: RendezvousState, nodes: RendezvousState) -> Answers:
    """An agent completes the first round of its ranks only when each node that is in the world or expected back, as far as
    this agent knows, has all its ranks in."""
    for node, seat in nodes.seats.items():
        came = sum(_is_of(each, node) for each in ranks.seats.values())
        if seat.status in COMES and came < seat.profile.local_world_size:
            yield f"{by.name} begins the first world of its ranks with {came} of {node}, which has a seat"


def _is_of(rank: Seat, node: Node) -> bool:
    """Return True if this seat is of a rank of this node that is in."""
    party = rank.profile.party
    return rank.status is Status.IN and party is not None and party.name == party_of(node)


LAWS: Mapping[str, Law] = by_number((N1, N2, N3, N4))
"""The laws that connect both, by number."""
