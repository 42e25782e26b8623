"""The laws of calls that need no more than values: I1 to I13, as far as a trace tells.

A simulated world of calls is held to them and to more (`sim/calls/laws`); the traces of real ranks are held to them by
`replay/call_judge`. I11 and I12 are the register's own invariant, B2. `holds` says which steps of a simulated world arm a
law, and `ends` which ends of one (`sim/calls/call_strength`).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..inprocess import Call
from ..inprocess.words import Outcome, Returned, Run, Span
from ..rendezvous import RendezvousState, Status
from ..rendezvous.state import AWAY, status_of
from ..world import Ending, Node
from .law import Answers, law

ROUND_OF_USER = (Span.INITIALIZE, Span.FUNCTION)


@law("the function is called", holds=lambda it: it.calls)
def I1(node: Node, called_in: int, round: int) -> Answers:
    """A rank calls the function in later and later rounds only."""
    if called_in >= round:
        yield f"{node} is called in round {round} after round {called_in}"


@law("the main thread gets an order", holds=lambda it: it.orders)
def I2(node: Node, does: str, busy: str | None) -> Answers:
    """The main thread gets an order, or hears that the call is over, only while it waits."""
    if busy is not None:
        yield f"{node} {does} while its main thread is: {busy}"


@law("initialize or the function is ordered", holds=lambda it: it.orders_user_code)
def I3(node: Node, run: Run, aborts: bool) -> Answers:
    """Initialize and the function begin only when no abort runs."""
    if aborts and run.span in ROUND_OF_USER:
        yield f"{node} begins {run.span.value} while abort runs"


@law("the function is called while another member is in user code", holds=lambda it: it.calls and it.beside_user_code)
def I4(node: Node, round: int, other: Node, in_round: int) -> Answers:
    """When the function is called in a round, no member of that world is in user code of an older one."""
    if in_round < round:
        yield f"{node} is called in round {round}, {other} is in round {in_round}"


def is_over(register: RendezvousState | None, node: Node, round: int) -> bool:
    """Return True if this round is over for this member, by this register."""
    if register is None or register.closed:
        return register is not None
    return register.round != round or not register.complete or node not in register.seats


def has_succeeded(register: RendezvousState | None) -> bool:
    return register is not None and register.closed is not None and register.closed.ending is Ending.SUCCEEDED


def is_done(register: RendezvousState, node: Node) -> bool:
    """Return True if this node's seat is DONE or GONE."""
    return status_of(register, node) in (Status.DONE, Status.GONE)


@law("a call returns", holds=lambda it: it.returns)
def I7(register: RendezvousState | None, node: Node, outcome: Outcome) -> Answers:
    """A call returns only if the job SUCCEEDED, and a value only if it is of the closed round and the rank's seat is DONE
    or GONE."""
    if not isinstance(outcome, Returned):
        return
    closed = register.closed if register else None
    if register is None or closed is None or closed.ending is not Ending.SUCCEEDED:
        yield f"{node} returns, but the job has not succeeded"
    elif outcome.round is not None and not (is_done(register, node) and outcome.round == closed.round):
        yield f"{node} returns what it had in round {outcome.round}"


@law("a job is closed as succeeded", RendezvousState, holds=lambda it: it.succeeds)
def I8(round: int, nobody: bool, active: Iterable[tuple[Node, Call]]) -> Answers:
    """A job is closed SUCCEEDED only with an active rank, and each active rank that lives holds its value of that round or
    leaves."""
    if nobody:
        yield "closed as succeeded though nobody was active"
    for node, call in active:
        if call.result != round and not call.leaving:
            yield f"closed as succeeded, but {node} holds no result of round {round}"


@law(
    "a run is over whose job succeeded, and a rank that was done lives",
    ends=lambda world: any(each.alive and _was_done(world.register, each.node) for each in world.ranks),
)
def I9(register: RendezvousState | None, node: Node, outcome: Outcome | None) -> Answers:
    """A rank that was done when the job SUCCEEDED returns its value, not None."""
    if _was_done(register, node) and outcome == Returned(None):
        yield f"{node} was done, but returned no value"


def _was_done(register: RendezvousState | None, node: Node) -> bool:
    """Return True if the job has succeeded, and this node was done then."""
    return register is not None and has_succeeded(register) and is_done(register, node)


@law("a round ends, and not for a newcomer", RendezvousState, holds=lambda it: it.ends_round)
def I10(before: RendezvousState, after: RendezvousState, active: frozenset[Node]) -> Answers:
    """A round ends by or with an active rank, by a rank not yet marked as reserve, or for a newcomer."""
    by = after.ended.by if after.ended else None
    cause = {by, *(node for node in before.seats if node not in after.seats)}
    unmarked = {node for node, seat in before.seats.items() if seat.status is Status.IN}
    if not cause & (active | unmarked):
        yield f"round {before.round} is ended by {by} without anybody who was active"


@law(
    "a write after a rank has left, or a rank is gone when a run is over",
    RendezvousState,
    holds=lambda it: bool(it.before.unseated),
    ends=lambda world: any(each.is_spoken_for for each in world.ranks),
)
def I13(after: RendezvousState, unseated: frozenset[Node], gone: Node | None = None) -> Answers:
    """A rank that left is never seated again, and the seat of a rank that is gone goes too."""
    if seated := unseated & after.seats.keys():
        yield f"{', '.join(map(str, sorted(seated)))} left and is seated again"
    if gone is not None and not after.closed and status_of(after, gone) not in (None, *AWAY):
        yield f"{gone} is gone, but its seat is not"
