"""The steps of a rank's main thread: it runs user code by the gate's words, and tells the driver how the code ended."""

from __future__ import annotations

from ...inprocess.words import AtomicLeft, How, Span, SpanEnded, ended_as
from ...values import evolve
from . import gate_words as gate
from . import laws
from .call_world import At, Hang, Main, Note, Rank, World, changed, posted
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
    rank = world.ranks[move.rank]
    main, how = rank.main, ended_as(rank.main.how or How.RETURNED, rank.page.hung)
    mark = main.mark if how is main.how else ""
    echoes, no_memory = is_echo(rank, mark) or None, laws.lacks_memory(mark) or None
    event = SpanEnded(main.token, how, mark, echoes, main.got_on or None, no_memory)
    return posted(world, move.rank, event, main=Main(token=main.token))


def is_echo(rank: Rank, mark: str) -> bool:
    """Return True if a failure with this mark only tells of another rank's: in one round of three."""
    return mark == "fails there" and (rank.call.round or 0) % 3 == 2


def enters(world: World, move: Move, note: Note) -> World:
    rank = world.ranks[move.rank]
    world = evolve(world, budget=evolve(world.budget, sections=world.budget.sections - 1))
    page = gate.entered(rank.page)
    if page is None:
        note("atomic refused")
        return ends(world, move, note, How.INJECTED)
    laws.I6.judge(rank, enters=True)
    return changed(world, move.rank, page=page, main=evolve(rank.main, got_on=True))


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
    laws.I5.judge(world, rank)
    if rank.main.hang is Hang.STUCK:
        return world
    note("injected by the monitor" if rank.page.want != rank.page.armed else "injected")
    return ends(world, move, note, How.INJECTED)


def hears_sigterm(rank: Rank) -> bool:
    """Return True if SIGTERM ends the code in which this main thread hangs. One that is stuck in a round with an odd number
    is in an import: no gate raises there, but the program's handler does. Any other is stuck for good."""
    return rank.main.at is At.USER and rank.main.hang is Hang.STUCK and rank.page.armed_round % 2 == 1


def terminated(world: World, place: int, note: Note) -> World:
    """The monitor of this rank has sent SIGTERM at a limit. A rank that leaves already keeps its reason."""
    rank = world.ranks[place]
    if not rank.call.leaving:
        world = changed(world, place, page=evolve(rank.page, hung=True))
    if not hears_sigterm(rank):
        return world
    note("a hung rank ends by SIGTERM")
    return changed(world, place, main=evolve(rank.main, at=At.OVER, how=How.EXITED, hang=Hang.NO))
