"""What must hold in a world of calls: I1 to I18, but for what the register's own invariants say already at every write (I11
and I12 are its B2). Each raises Broken with its number. What the traces of real ranks tell is held to the same facts
(`judging`).
"""

from __future__ import annotations

from ...caller import Terms
from ...inprocess import Call
from ...inprocess.words import Outcome, Raised, Reason, Returned, Run, Span
from ...policies import place
from ...rendezvous import RendezvousState, Status
from ...rendezvous.state import AWAY
from ...world import Ending, Node, Why
from .ranks import At, Broken, Rank, World

ROUND_OF_USER = (Span.INITIALIZE, Span.FUNCTION)


def ordered(rank: Rank, run: Run) -> None:
    """M is told to run user code."""
    waits(rank.node, run, None if rank.main.at is At.WAITS else rank.main.at.value, aborts=rank.aborts)


def waits(node: Node, run: Run, busy: str | None, *, aborts: bool) -> None:
    """Who is told to run user code does nothing else (`busy`)."""
    if busy is not None:
        raise Broken("I2", f"{node} is ordered to {run.span.value} while its main thread is: {busy}")
    if aborts and run.span in ROUND_OF_USER:
        raise Broken("I3", f"{node} begins {run.span.value} while abort runs")


def goes_on(world: World, rank: Rank, run: Run) -> None:
    """The rank is given another try."""
    mark, often = rank.alike
    limit = world.calls.max_repeats
    if run.span in ROUND_OF_USER and limit is not None and often > limit + 1:
        raise Broken("I18", f"{rank.node} goes on after it failed {often} times {mark}, {limit} repetitions allowed")


def called(world: World, rank: Rank, round: int) -> None:
    """The function is called."""
    once(rank.node, rank.called_in, round)
    register = world.register
    here = register.members if register and register.round == round else ()
    for other in world.ranks:
        if other.alive and other.node in here and other.main.at is At.USER and other.main.span in ROUND_OF_USER:
            together(rank.node, round, other.node, other.page.armed_round)


def once(node: Node, called_in: int, round: int) -> None:
    """The function is called in later and later rounds."""
    if called_in >= round:
        raise Broken("I1", f"{node} is called in round {round} after round {called_in}")


def together(node: Node, round: int, other: Node, in_round: int) -> None:
    """No member of the world that the function is called in is in user code of an older one."""
    if in_round < round:
        raise Broken("I4", f"{node} is called in round {round}, {other} is in round {in_round}")


def raised(world: World, rank: Rank) -> None:
    """The handler raises in M."""
    if rank.main.at is not At.USER or rank.page.depth:
        raise Broken("I5", f"{rank.node} is hit while {rank.main.at.value}, {rank.page.depth} sections deep")
    limited = rank.limited == rank.page.armed
    if not (
        limited or rank.call.leaving or rank.call.verdict or is_over(world.register, rank.node, rank.page.armed_round)
    ):
        raise Broken("I5", f"{rank.node} is hit though round {rank.page.armed_round} stands")


def is_over(register: RendezvousState | None, node: Node, round: int) -> bool:
    """For this member."""
    if register is None or register.closed:
        return register is not None
    return register.round != round or not register.complete or node not in register.seats


def aborted(rank: Rank) -> None:
    """abort starts."""
    if rank.page.depth and rank.main.at is At.USER:
        raise Broken("I6", f"abort of {rank.node} starts while it is in an atomic section")


def sheltered(rank: Rank) -> None:
    """M has entered an atomic section."""
    if rank.aborts:
        raise Broken("I6", f"{rank.node} enters an atomic section while abort runs")


def finished(world: World, rank: Rank, outcome: Outcome) -> None:
    """The call is over."""
    if isinstance(outcome, Raised):
        _gave_up(world, rank, outcome.reason)
    returned(world.register, rank.node, outcome)


def returned(register: RendezvousState | None, node: Node, outcome: Outcome) -> None:
    """A value counts by the verdict on its very round."""
    if not isinstance(outcome, Returned):
        return
    closed = register.closed if register else None
    if register is None or closed is None or closed.ending is not Ending.SUCCEEDED:
        raise Broken("I7", f"{node} returns, but the job has not succeeded")
    if outcome.round is not None and not (_is_done(register, node) and outcome.round == closed.round):
        raise Broken("I7", f"{node} returns what it had in round {outcome.round}")


def kept(register: RendezvousState | None, node: Node, outcome: Outcome | None) -> None:
    """Who was done when the job succeeded has its value."""
    succeeded = register and register.closed and register.closed.ending is Ending.SUCCEEDED
    if register and succeeded and _is_done(register, node) and outcome == Returned(None):
        raise Broken("I9", f"{node} was done, but returned no value")


def _is_done(register: RendezvousState, node: Node) -> bool:
    seat = register.seats.get(node)
    return seat is not None and seat.status in (Status.DONE, Status.GONE)


def _gave_up(world: World, rank: Rank, reason: Reason) -> None:
    mark, often = rank.alike
    if reason is Reason.CRASH_LOOP and not often > (world.calls.max_repeats or 0) + 1:
        raise Broken(
            "I18", f"{rank.node} gives up as one that fails again and again, but has failed {often} times {mark}"
        )


def wrote(world: World, before: RendezvousState | None, after: RendezvousState, waited: bool = False) -> None:
    """The register has changed. `waited`: its writer has waited for as long as any span lasts."""
    if after.complete and not after.ended and not (before and before.complete):
        _began(world, after, waited)
    unseated_stay_away(world.unseated, after)
    if after.closed and after.closed.ending is Ending.SUCCEEDED and not (before and before.closed):
        _succeeded(world, after)
    if before and after.round > before.round and after.ended and after.ended.why is not Why.UPSCALE:
        ended_by_active(before, after, _active(world.terms, before))


def unseated_stay_away(unseated: frozenset[Node], after: RendezvousState) -> None:
    if seated := unseated & after.seats.keys():
        raise Broken("I13", f"{', '.join(map(str, sorted(seated)))} left and is seated again")


def _began(world: World, after: RendezvousState, waited: bool) -> None:
    missing = [rank for rank in world.ranks if rank.node not in after.seats]
    excused = waited or any(not rank.runs or rank.call.leaving or rank.node.incarnation > 1 for rank in missing)
    if len(after.members) < after.limits.max_nodes and not excused:
        names = ", ".join(str(rank.node) for rank in missing)
        raise Broken("I14", f"the first world has begun without {names}, who are on their way")


def _succeeded(world: World, after: RendezvousState) -> None:
    active = _active(world.terms, after)
    somebody(active)
    for rank in world.ranks:
        if rank.alive and rank.node in active and rank.returned != Returned(after.round):
            holds_result(rank.node, after.round, rank.call)


def somebody(active: frozenset[Node]) -> None:
    if not active:
        raise Broken("I8", "closed as succeeded though nobody was active")


def holds_result(node: Node, round: int, call: Call) -> None:
    """Who was active when the job succeeded, and stays."""
    if call.result != round and not call.leaving:
        raise Broken("I8", f"closed as succeeded, but {node} holds no result of round {round}")


def ended_by_active(before: RendezvousState, after: RendezvousState, active: frozenset[Node]) -> None:
    """Or with one, or by one that has not said yet that it is a reserve."""
    by = after.ended.by if after.ended else None
    cause = {by, *(node for node in before.seats if node not in after.seats)}
    unmarked = {node for node, seat in before.seats.items() if seat.status is Status.IN}
    if not cause & (active | unmarked):
        raise Broken("I10", f"round {before.round} is ended by {by} without anybody who was active")


def _active(terms: Terms, register: RendezvousState) -> frozenset[Node]:
    places = place(terms.policy, register.world).places
    return frozenset(node for node, each in places.items() if each.active)


def ended(world: World) -> None:
    """Nothing moves any longer."""
    waiting = [rank for rank in world.ranks if rank.runs]
    if waiting:
        facts = ", ".join(f"{rank.node} is {rank.call.phase.value}, {rank.main.at.value}" for rank in waiting)
        raise Broken("I16", f"nothing moves, but {facts}")
    for rank in world.ranks:
        _gone(world, rank)
    closed = world.register.closed if world.register else None
    if world.clean and not (closed and closed.ending is Ending.SUCCEEDED and world.rings == 0):
        raise Broken("I15", f"nothing went wrong, but {closed or 'no verdict'} after {world.rings} timers")


def _gone(world: World, rank: Rank) -> None:
    register = world.register
    seat = register.seats.get(rank.node) if register else None
    if register is None or seat is None:
        return
    spoken_for = rank.monitor and (not rank.alive or isinstance(rank.returned, Raised))
    if spoken_for and not register.closed and seat.status not in AWAY:
        raise Broken("I13", f"{rank.node} is gone, but its seat is not")
    if rank.alive:
        kept(register, rank.node, rank.returned)
