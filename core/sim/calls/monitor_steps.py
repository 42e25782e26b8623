"""The steps of a rank's monitor process: it speaks for a rank that is dead, and for a driver that is silent."""

from __future__ import annotations

from ...rendezvous import End, Leave
from ...values import evolve
from ...violation import Violation
from ...world import Why
from .call_world import Note, World, changed
from .main_thread_steps import terminated
from .moves import Move
from .register import declared, edited


def speaks(world: World, move: Move, note: Note, waited: bool = False) -> World:
    """Take the next step of `declare_dead`. `waited`: the time for a replacement is over."""
    rank = world.ranks[move.rank]
    edit = declared(world, rank, waited)
    if edit is None:
        raise Violation("wiring", f"nothing to say for a dead rank: {move}")
    note("no replacement came" if waited else "monitor speaks for a dead rank")
    note("a dead rank's seat is kept" if isinstance(edit, End) else "a dead rank's seat is given up")
    return edited(world, edit, rank.node, waited)


def wants(world: World, move: Move, note: Note) -> World:
    note("monitor injects")
    page = world.ranks[move.rank].page
    return changed(world, move.rank, page=evolve(page, want_monitor=page.armed), signalled=True)


def leaves(world: World, move: Move, note: Note) -> World:
    note("monitor leaves for the driver")
    return edited(world, Leave(), world.ranks[move.rank].node)


def ends(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    if not rank.call.active:
        note("monitor leaves for the driver")
        return edited(world, Leave(), rank.node)
    note("monitor ends for the driver")
    round = move.how if isinstance(move.how, int) else rank.page.armed_round
    return edited(world, End(round, Why.FAILED), rank.node)


def kills(world: World, move: Move, note: Note) -> World:
    return changed(world, move.rank, alive=False)


def terminates(world: World, move: Move, note: Note) -> World:
    """Send SIGTERM."""
    note("monitor terminates")
    return terminated(world, move.rank, note)
