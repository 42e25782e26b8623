"""The faults in a world of calls, paid for from its budget; their ends; and limits that pass."""

from __future__ import annotations

from typing import Any

from ...inprocess.words import AbortEnded, Deadline, Elapsed, Event, How, Refused, StoreBack, StoreLost, Timer
from ...rendezvous import Evict, RendezvousState
from ...rendezvous.lives import outranks
from ...values import evolve
from ...violation import Violation
from ...world import Why
from . import driver_steps as driver
from . import laws
from . import main_thread_steps as main_thread
from .call_world import Hang, Note, Rank, Unheard, World, born, changed, posted, put
from .moves import Move
from .register import edited, given_up


def _paid(world: World) -> World:
    return evolve(world, budget=evolve(world.budget, faults=world.budget.faults - 1), clean=False)


def fault(world: World, move: Move, note: Note, **changes: Any) -> World:
    note(f"fault: {move.what}")
    return changed(_paid(world), move.rank, **changes)


def user_code_ends(world: World, move: Move, note: Note) -> World:
    if not isinstance(move.how, How):
        raise Violation("wiring", f"no way in which user code ends: {move}")
    note(f"fault: {move.how.value}")
    return main_thread.ends(_paid(world), move, note, move.how)


def fails(world: World, move: Move, note: Note) -> World:
    """User code fails; two failures of one move have the same mark."""
    note(f"fault: {move.what}")
    return main_thread.ends(_paid(world), move, note, How.FAILED, move.what)


def hangs(world: World, move: Move, note: Note, hang: Hang) -> World:
    return fault(world, move, note, main=evolve(world.ranks[move.rank].main, hang=hang))


def swallows(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    laws.I5.judge(world, rank)
    return fault(world, move, note, signalled=False, main=evolve(rank.main, hang=Hang.NO))


def is_told(world: World, move: Move, note: Note, event: Event) -> World:
    return posted(fault(world, move, note), move.rank, event)


def abort_fails(world: World, move: Move, note: Note) -> World:
    return posted(fault(world, move, note, aborts=False, abort_failed=True), move.rank, AbortEnded(failed=True))


def is_cut_off(world: World, move: Move, note: Note) -> World:
    return posted(fault(world, move, note, cut_off=True), move.rank, StoreLost())


def is_reached(world: World, move: Move, note: Note) -> World:
    return posted(changed(world, move.rank, cut_off=False), move.rank, StoreBack())


def _lost(world: World) -> World:
    return evolve(world, budget=evolve(world.budget, losses=world.budget.losses - 1), clean=False)


def is_unheard(world: World, move: Move, note: Note, how: Unheard) -> World:
    """The next write of this rank has no answer."""
    note(f"fault: {move.what}")
    return changed(_lost(world), move.rank, unheard=how)


def store_forgets(world: World, move: Move, note: Note) -> World:
    """The store forgets the register. Whoever had a seat there, has run a world, or remembers an older one, remembers it;
    unless what it remembers from before counts for more, because it was not written back yet."""
    note(f"fault: {move.what}")
    register = world.register
    if register is None:
        raise Violation("wiring", "the store has nothing to forget")
    ranks = (evolve(rank, remembers=register) if _holds(rank, register) else rank for rank in world.ranks)
    forgotten = world.forgotten if outranks(world.forgotten, register) else register
    return evolve(_lost(world), register=None, ranks=tuple(ranks), forgotten=forgotten)


def _holds(rank: Rank, register: RendezvousState) -> bool:
    """Return True if this rank holds the register that stands."""
    knows = rank.runs and (rank.node in register.seats or bool(rank.held.past.ran) or rank.remembers is not None)
    return knows and not outranks(rank.remembers, register)


def is_suspected(world: World, move: Move, note: Note) -> World:
    """Another rank declares this one dead."""
    other = next(rank for place, rank in enumerate(world.ranks) if place != move.rank and rank.runs)
    return edited(fault(world, move, note), Evict(frozenset((world.ranks[move.rank].node,))), other.node)


def starts_again(world: World, move: Move, note: Note) -> World:
    """The launcher starts the rank again, as the slot's next incarnation."""
    note("starts again")
    dead = world.ranks[move.rank]
    slot, incarnation = dead.node
    world = evolve(world, budget=evolve(world.budget, respawns=world.budget.respawns - 1))
    again = born(slot, incarnation + 1, dead.held.who.settings, world.terms, world.calls)
    return put(world, move.rank, driver.started(again))


def time_passes(world: World, move: Move, note: Note) -> World:
    rank, deadline = world.ranks[move.rank], move.how
    if not isinstance(deadline, Deadline):
        raise Violation("wiring", f"no deadline passes: {move}")
    note(f"timer: {deadline.timer.value}")
    limited = deadline.of if deadline.timer in (Timer.SOFT, Timer.LIMIT) else rank.limited
    world = changed(world, move.rank, passed=rank.passed | {deadline}, limited=limited)
    return driver.told(evolve(world, rings=world.rings + 1), move.rank, Elapsed(deadline), note)


def gives_up(world: World, move: Move, note: Note) -> World:
    """The driver gives up an operation that it must write and cannot."""
    note("the store is given up")
    world = put(world, move.rank, given_up(world.ranks[move.rank]))
    return posted(world, move.rank, Refused(Why.UNCONFIRMED))
