"""The steps of a rank's monitor process: it speaks for a rank that is dead, and for a driver that is silent."""

from __future__ import annotations

from ...evolving import evolve
from ...rendezvous import End, Evict, Leave
from ...world import Why
from .call_world import Note, World, changed
from .moves import Move
from .register import edited


def speaks(world: World, move: Move, note: Note) -> World:
    note("monitor speaks for a dead rank")
    rank = world.ranks[move.rank]
    return edited(world, Evict(frozenset((rank.node,))), rank.node)


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
    return edited(world, End(rank.page.armed_round, Why.FAILED), rank.node)


def kills(world: World, move: Move, note: Note) -> World:
    return changed(world, move.rank, alive=False)
