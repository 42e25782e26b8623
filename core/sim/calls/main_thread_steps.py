"""The steps of a rank's main thread: it runs user code by the gate's words, and tells the driver how the code ended."""

from __future__ import annotations

from ...evolving import evolve
from ...inprocess.words import AtomicLeft, How, Span, SpanEnded
from . import gate_words as gate
from . import laws
from .call_world import At, Hang, Main, Note, World, changed, posted
from .moves import Move


def arms(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    main, round = rank.main, rank.call.round if rank.call.round is not None else -1
    page = gate.armed(rank.page, main.token, round)
    if main.span is not Span.FUNCTION:
        return changed(world, move.rank, page=page, main=evolve(main, at=At.USER))
    if not gate.wanted(page):
        laws.called(world, rank, round)
    if rank.called_in >= 0:
        note("the function is called again")
    return changed(world, move.rank, page=page, main=evolve(main, at=At.USER), called_in=round)


def ends(world: World, move: Move, note: Note, how: How = How.RETURNED, mark: str = "") -> World:
    rank = world.ranks[move.rank]
    return changed(world, move.rank, main=evolve(rank.main, at=At.OVER, how=how, mark=mark, hang=Hang.NO))


def disarms(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    return changed(world, move.rank, page=gate.disarmed(rank.page), main=evolve(rank.main, at=At.DISARMED))


def tells(world: World, move: Move, note: Note) -> World:
    main = world.ranks[move.rank].main
    event = SpanEnded(main.token, main.how or How.RETURNED, main.mark)
    return posted(world, move.rank, event, main=Main(token=main.token))


def enters(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    world = evolve(world, budget=evolve(world.budget, sections=world.budget.sections - 1))
    page = gate.entered(rank.page)
    if page is None:
        note("atomic refused")
        return ends(world, move, note, How.INJECTED)
    laws.sheltered(rank)
    return changed(world, move.rank, page=page)


def leaves_section(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    page = gate.left(rank.page)
    world = posted(world, move.rank, AtomicLeft(page.armed), page=page)
    if page.depth or not gate.wanted(page):
        return world
    note("raised at the end of atomic")
    return ends(world, move, note, How.INJECTED)


def is_signalled(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    world = changed(world, move.rank, signalled=False)
    if not gate.raises(rank.page, rank.main.at is At.USER):
        where = "atomic" if rank.page.depth else rank.main.at.value
        note(f"declined in: {where}")
        return world
    laws.raised(world, rank)
    if rank.main.hang is Hang.STUCK:
        return world
    note("injected by the monitor" if rank.page.want != rank.page.armed else "injected")
    return ends(world, move, note, How.INJECTED)
