"""The laws of calls that need no more than values: I1 to I13, as far as a trace tells. Each raises Broken with its number.

A simulated world of calls is held to them and to more (`sim/calls/laws`); the traces of real ranks are held to them by
`replay/call_judge`. I11 and I12 are the register's own invariant, B2.
"""

from __future__ import annotations

from ..inprocess import Call
from ..inprocess.words import Outcome, Returned, Run, Span
from ..rendezvous import RendezvousState, Status
from ..world import Ending, Node

ROUND_OF_USER = (Span.INITIALIZE, Span.FUNCTION)


class Broken(Exception):
    """A step broke a law; `number` names the law."""

    def __init__(self, number: str, fact: str) -> None:
        super().__init__(f"{number}: {fact}")
        self.number = number


def waits(node: Node, run: Run, busy: str | None, *, aborts: bool) -> None:
    """I2 and I3: a main thread that is told to run user code does nothing else (`busy` says what it does). Raises Broken."""
    if busy is not None:
        raise Broken("I2", f"{node} is ordered to {run.span.value} while its main thread is: {busy}")
    if aborts and run.span in ROUND_OF_USER:
        raise Broken("I3", f"{node} begins {run.span.value} while abort runs")


def once(node: Node, called_in: int, round: int) -> None:
    """I1: a rank calls the function in later and later rounds only. Raises Broken."""
    if called_in >= round:
        raise Broken("I1", f"{node} is called in round {round} after round {called_in}")


def together(node: Node, round: int, other: Node, in_round: int) -> None:
    """I4: no member of the world that calls the function is in user code of an older round. Raises Broken."""
    if in_round < round:
        raise Broken("I4", f"{node} is called in round {round}, {other} is in round {in_round}")


def is_over(register: RendezvousState | None, node: Node, round: int) -> bool:
    """Return True if this round is over for this member, by this register."""
    if register is None or register.closed:
        return register is not None
    return register.round != round or not register.complete or node not in register.seats


def returned(register: RendezvousState | None, node: Node, outcome: Outcome) -> None:
    """I7: a value is returned only under the verdict on its very round. Raises Broken."""
    if not isinstance(outcome, Returned):
        return
    closed = register.closed if register else None
    if register is None or closed is None or closed.ending is not Ending.SUCCEEDED:
        raise Broken("I7", f"{node} returns, but the job has not succeeded")
    if outcome.round is not None and not (is_done(register, node) and outcome.round == closed.round):
        raise Broken("I7", f"{node} returns what it had in round {outcome.round}")


def kept(register: RendezvousState | None, node: Node, outcome: Outcome | None) -> None:
    """I9: a rank that was done when the job succeeded returns its value. Raises Broken."""
    succeeded = register and register.closed and register.closed.ending is Ending.SUCCEEDED
    if register and succeeded and is_done(register, node) and outcome == Returned(None):
        raise Broken("I9", f"{node} was done, but returned no value")


def is_done(register: RendezvousState, node: Node) -> bool:
    """Return True if this node's seat is DONE or GONE."""
    seat = register.seats.get(node)
    return seat is not None and seat.status in (Status.DONE, Status.GONE)


def unseated_stay_away(unseated: frozenset[Node], after: RendezvousState) -> None:
    if seated := unseated & after.seats.keys():
        raise Broken("I13", f"{', '.join(map(str, sorted(seated)))} left and is seated again")


def somebody(active: frozenset[Node]) -> None:
    if not active:
        raise Broken("I8", "closed as succeeded though nobody was active")


def holds_result(node: Node, round: int, call: Call) -> None:
    """I8: a rank that was active when the job succeeded, and stays, holds its result. Raises Broken."""
    if call.result != round and not call.leaving:
        raise Broken("I8", f"closed as succeeded, but {node} holds no result of round {round}")


def ended_by_active(before: RendezvousState, after: RendezvousState, active: frozenset[Node]) -> None:
    """I10: a round is ended by an active rank, with one, or by a rank that has not yet marked itself a reserve. Raises
    Broken."""
    by = after.ended.by if after.ended else None
    cause = {by, *(node for node in before.seats if node not in after.seats)}
    unmarked = {node for node, seat in before.seats.items() if seat.status is Status.IN}
    if not cause & (active | unmarked):
        raise Broken("I10", f"round {before.round} is ended by {by} without anybody who was active")
