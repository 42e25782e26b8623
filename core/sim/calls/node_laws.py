"""The laws that connect nodes with the ranks that call wrapped functions in their workers (N1 to N4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...group import Phase
from ...inprocess import Phase as Of
from ...inprocess.words import Raised, Reason
from ...node import party_of
from ...properties.call_laws import Broken
from ...rendezvous import RendezvousState, Status
from ...rendezvous.state import Seat
from ...world import Node
from ..process import Process
from .call_world import Rank
from .call_world import World as Calls

LAWS: Mapping[str, str] = {
    "N1": "an agent signals living ranks, or a call ends by itself",
    "N2": "an agent throws a rank out of its register",
    "N3": "all that ranks can do is done, and one lives whose node has a seat",
    "N4": "an agent completes the first round of its ranks",
}
"""Number → when that law is armed."""
TAKEN_AWAY = (Reason.SUPERSEDED, Reason.REFUSED, Reason.OTHER_POLICY)
"""No rank whose place is its own is told one of these."""
SEATED = (Of.JOINING, Of.STARTING, Of.RUNNING, Of.RESERVE, Of.RETURNED, Of.SHORT)
"""The phases of a rank that is in a world, or on its way into one."""
COMES = (Status.IN, Status.EXPECTED, Status.DONE, Status.RESERVE)
"""The statuses of a node whose ranks come, or have come."""


def stopped(process: Process, because: Iterable[str]) -> None:
    """Judge that the agent of this process stops its ranks. `because`: all that may have told it to."""
    if not any(because):
        world = process.ran
        where = f"round {world.round}" if world else "no round"
        raise Broken(
            "N1", f"{process.name} stops its living ranks of {where} though it has its seat in their generation"
        )


def may_stop(process: Process, now: float) -> Iterable[str]:
    """Yield what this node itself has to stop its ranks for: it goes, it was refused, it has failed, or it fences itself."""
    group = process.group
    if group.phase is Phase.LEAVING or group.notice or group.signum is not None:
        yield "it leaves"
    if group.verdict or group.refused:
        yield "it was told"
    if group.failed or any(process.codes):
        yield "it has failed"
    if group.fence_at is not None and process.clock(now) >= group.fence_at:
        yield "it fences itself"


def ended(rank: Rank) -> None:
    """Judge how a call has ended."""
    outcome = rank.returned
    if isinstance(outcome, Raised) and outcome.reason in TAKEN_AWAY:
        raise Broken("N1", f"the call of {rank.node} ends: {outcome.reason.value}")


def thrown_out(by: Process, rank: Rank, owner: Process, unseated: frozenset[Node]) -> None:
    """Judge that an agent takes this rank out of its register."""
    if rank.alive and owner.alive and owner.node not in unseated:
        raise Broken("N2", f"{by.name} throws rank {rank.node} out, but {owner.name} lives and has kept its seat")


def completed(by: Process, ranks: RendezvousState, nodes: RendezvousState) -> None:
    """Judge that an agent completes the first round of these ranks, with the register of the nodes as it holds it."""
    for node, seat in nodes.seats.items():
        came = sum(_is_of(each, node) for each in ranks.seats.values())
        if seat.status in COMES and came < seat.profile.local_world_size:
            raise Broken("N4", f"{by.name} begins the first world of its ranks with {came} of {node}, which has a seat")


def _is_of(rank: Seat, node: Node) -> bool:
    """Return True if this seat is of a rank of this node that is in."""
    party = rank.profile.party
    return rank.status is Status.IN and party is not None and party.name == party_of(node)


def at_rest(calls: Calls, seated: Iterable[Rank]) -> None:
    """Judge ranks of seated nodes when nothing moves: each has a seat in its register, or is on its way out."""
    register = calls.register
    for rank in seated:
        if (
            rank.call.phase not in SEATED
            or rank.call.leaving
            or rank.cut_off
            or rank.starved
            or (register and register.closed)
        ):
            continue
        seat = register.seats.get(rank.node) if register else None
        if seat is None:
            raise Broken("N3", f"{rank.node} is {rank.call.phase.value} and has no seat, though nothing moves")
