"""The laws of a simulated world of calls, judged at each step. Each function raises Broken with its law's number.

`properties/call_laws` holds the laws that need only values; the traces of real ranks are held to them as well. I11 and I12
are the register's own invariant B2, which is judged at every write.
"""

from __future__ import annotations

from ...caller import Terms
from ...inprocess.words import Outcome, Raised, Reason, Returned, Run
from ...policies import place
from ...properties.call_laws import (
    ROUND_OF_USER,
    Broken,
    ended_by_active,
    holds_result,
    is_over,
    kept,
    once,
    returned,
    somebody,
    together,
    unseated_stay_away,
    waits,
)
from ...rendezvous import RendezvousState, Status
from ...rendezvous.state import AWAY
from ...world import Ending, Node, Why
from .call_world import At, Rank, World


def ordered(rank: Rank, run: Run) -> None:
    """Judge an order to the main thread to run user code."""
    if rank.abort_failed and run.span in ROUND_OF_USER:
        raise Broken("I23", f"{rank.node} begins {run.span.value} though its abort has failed")
    waits(rank.node, run, None if rank.main.at is At.WAITS else rank.main.at.value, aborts=rank.aborts)


def goes_on(world: World, rank: Rank, run: Run) -> None:
    """Judge that the rank tries again."""
    mark, often = rank.alike
    limit = world.calls.max_repeats
    if run.span in ROUND_OF_USER and limit is not None and often > limit + 1:
        raise Broken("I18", f"{rank.node} goes on after it failed {often} times {mark}, {limit} repetitions allowed")


def called(world: World, rank: Rank, round: int) -> None:
    """Judge a call of the function."""
    once(rank.node, rank.called_in, round)
    register = world.register
    here = register.members if register and register.round == round else ()
    for other in world.ranks:
        if other.alive and other.node in here and other.main.at is At.USER and other.main.span in ROUND_OF_USER:
            together(rank.node, round, other.node, other.page.armed_round)


def raised(world: World, rank: Rank) -> None:
    """Judge a raise of the signal's handler."""
    if rank.main.at is not At.USER or rank.page.depth:
        raise Broken("I5", f"{rank.node} is hit while {rank.main.at.value}, {rank.page.depth} sections deep")
    limited = rank.limited == rank.page.armed
    if not (
        limited or rank.call.leaving or rank.call.verdict or is_over(world.known, rank.node, rank.page.armed_round)
    ):
        raise Broken("I5", f"{rank.node} is hit though round {rank.page.armed_round} stands")


def aborted(rank: Rank) -> None:
    """Judge the start of abort."""
    if rank.page.depth and rank.main.at is At.USER:
        raise Broken("I6", f"abort of {rank.node} starts while it is in an atomic section")


def sheltered(rank: Rank) -> None:
    """Judge that the main thread has entered an atomic section."""
    if rank.aborts:
        raise Broken("I6", f"{rank.node} enters an atomic section while abort runs")


def finished(world: World, rank: Rank, outcome: Outcome) -> None:
    """Judge the end of the call."""
    if rank.main.at is not At.WAITS:
        raise Broken("I2", f"the call of {rank.node} is over while its main thread is: {rank.main.at.value}")
    if isinstance(outcome, Raised):
        _gave_up(world, rank, outcome.reason)
    returned(world.register, rank.node, outcome)


def _gave_up(world: World, rank: Rank, reason: Reason) -> None:
    mark, often = rank.alike
    if reason is Reason.CRASH_LOOP and not often > (world.calls.max_repeats or 0) + 1:
        raise Broken(
            "I18", f"{rank.node} gives up as one that fails again and again, but has failed {often} times {mark}"
        )


def wrote(world: World, before: RendezvousState | None, after: RendezvousState, waited: bool = False) -> None:
    """Judge a write of the register. `waited`: the writer has waited for as long as any timer lasts."""
    if after.complete and not after.ended and not (before and before.complete):
        _began(world, after, waited)
    if before and not waited and not after.closed:
        _kept_places(world, before, after)
    unseated_stay_away(world.unseated, after)
    if after.closed and after.closed.ending is Ending.SUCCEEDED and not (before and before.closed):
        _succeeded(world, after)
    if before and before.complete and after.round > before.round and after.ended and after.ended.why is not Why.UPSCALE:
        ended_by_active(before, after, _active(world.terms, before))


def completed_over(world: World, forgotten: RendezvousState, after: RendezvousState, waited: bool) -> None:
    """Judge a world that is complete while the store has forgotten another one."""
    if not waited and forgotten.complete and (able := [rank.node for rank in world.ranks if can_restore(rank)]):
        names = ", ".join(map(str, able))
        raise Broken("I24", f"round {after.round} is complete, but {names} knew of round {forgotten.round}")


def can_restore(rank: Rank) -> bool:
    """Return True if this rank remembers what the store has forgotten, and can write it."""
    return rank.runs and rank.remembers is not None and not (rank.cut_off or rank.starved)


def _kept_places(world: World, before: RendezvousState, after: RendezvousState) -> None:
    slots = {node.slot for node in after.seats}
    for rank in world.ranks:
        if is_kept(before, rank) and rank.node.slot not in slots:
            raise Broken("I19", f"{rank.node} loses its place, though its replacement has time")


def is_kept(register: RendezvousState, rank: Rank) -> bool:
    """Return True if this rank was killed, and its place is to be kept for its replacement."""
    seat = register.seats.get(rank.node)
    killed = rank.monitor and not rank.alive and not rank.call.leaving and rank.held.settings.replace_timeout > 0
    if not killed or seat is None:
        return False
    return seat.status is Status.EXPECTED or (seat.status is Status.IN and register.complete)


def _began(world: World, after: RendezvousState, waited: bool) -> None:
    absent = missing(world, after)
    if not world.moving and len(after.members) < len(world.ranks) and not excuses(absent, waited or was_lost(after)):
        names = ", ".join(str(rank.node) for rank in absent)
        raise Broken("I14", f"the first world has begun without {names}, who are on their way")


def missing(world: World, register: RendezvousState) -> list[Rank]:
    """Return the ranks without a seat."""
    return [rank for rank in world.ranks if rank.node not in register.seats]


def was_lost(register: RendezvousState) -> bool:
    """Return True if the store had lost this register before. Who is not back in time is waited for no longer."""
    return register.life.epoch > 1


def excuses(missing: list[Rank], waited: bool) -> bool:
    """Return True if the first world may begin without these ranks."""
    return waited or any(not rank.runs or rank.call.leaving or rank.node.incarnation > 1 for rank in missing)


def _succeeded(world: World, after: RendezvousState) -> None:
    active = _active(world.terms, after)
    somebody(active)
    for rank in world.ranks:
        if rank.alive and rank.node in active and rank.returned != Returned(after.round):
            holds_result(rank.node, after.round, rank.call)


def _active(terms: Terms, register: RendezvousState) -> frozenset[Node]:
    places = place(terms.policy, register.world).places
    return frozenset(node for node, each in places.items() if each.active)


def ended(world: World) -> None:
    """Judge a world in which nothing moves any longer."""
    waiting = [rank for rank in world.ranks if rank.runs]
    if waiting:
        facts = ", ".join(f"{rank.node} is {rank.call.phase.value}, {rank.main.at.value}" for rank in waiting)
        raise Broken("I16", f"nothing moves, but {facts}")
    for rank in world.ranks:
        _gone(world, rank)
    closed = world.register.closed if world.register else None
    if world.clean and not (closed and closed.ending is Ending.SUCCEEDED and world.rings == 0):
        raise Broken("I15", f"nothing went wrong, but {closed or 'no verdict'} after {world.rings} timers")
    if world.clean and (sad := [str(rank.node) for rank in world.ranks if isinstance(rank.returned, Raised)]):
        raise Broken("I15", f"nothing went wrong, but the calls of {', '.join(sad)} raise")


def _gone(world: World, rank: Rank) -> None:
    register = world.register
    seat = register.seats.get(rank.node) if register else None
    if register is None or seat is None:
        return
    if is_spoken_for(rank) and not register.closed and seat.status not in AWAY:
        raise Broken("I13", f"{rank.node} is gone, but its seat is not")
    if rank.alive:
        kept(register, rank.node, rank.returned)


def is_spoken_for(rank: Rank) -> bool:
    """Return True if the rank is gone, and its monitor lives to say so."""
    return rank.monitor and (not rank.alive or isinstance(rank.returned, Raised))
