"""The moves that are possible in a world of calls.

There are three kinds. With a prompt move a thread takes its next step. A fault, or an unusual choice, is paid for from a
budget. With a timed move something takes so long that a limit passes; it comes when nothing else can move.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...inprocess import deadlines
from ...inprocess.words import GUARDED, Deadline, How, Raised, Timer
from ...properties.call_laws import is_over
from ...rendezvous.state import AWAY
from ...values import frozen
from . import gate_words as gate
from .call_world import At, Hang, Rank, World
from .register import When, asked, declared

AGAIN_MAX = 2
"""How often a signal is sent again before the last limit passes."""


@frozen
class Move:
    what: str
    rank: int
    how: How | Deadline | int | float | None = None
    """How user code ends, the limit that passes, the round that the monitor ends, or the seconds of a pause."""

    def __str__(self) -> str:
        return f"{self.rank} {self.what}{_in_brackets(self.how)}"


def _in_brackets(how: How | Deadline | int | float | None) -> str:
    match how:
        case None:
            return ""
        case Deadline():
            return f" ({how.timer.value})"
        case How():
            return f" ({how.value})"
        case int():
            return f" (round {how})"
        case _:
            return f" ({how:g} s)"


def prompt(world: World) -> list[Move]:
    """Return the next steps of all threads."""
    return [move for place in range(len(world.ranks)) for move in prompt_of(world, place)]


def prompt_of(world: World, place: int) -> list[Move]:
    """Return the next steps of one rank's threads."""
    return [Move(what, place) for what in _prompt(world, world.ranks[place])]


def _prompt(world: World, rank: Rank) -> Iterator[str]:
    if rank.under_way is not None:
        yield "a late write arrives"
    if not rank.runs:
        if rank.monitor and _speaks(world, rank):
            yield "monitor speaks"
        return
    yield from _of_main(rank)
    if rank.starved:
        yield from _of_monitor(world, rank)
        return
    if rank.inbox:
        yield "driver hears"
    if not rank.cut_off and asked(world, rank):
        yield "driver asks"
    if rank.aborts and not rank.abort_hangs:
        yield "abort ends"
    if not rank.monitor:
        yield "monitor starts again"


def _of_main(rank: Rank) -> Iterator[str]:
    match rank.main.at:
        case At.ORDERED:
            yield "main thread arms"
        case At.USER if rank.main.hang is Hang.NO:
            yield "main thread leaves the section" if rank.page.depth else "main thread ends"
        case At.OVER:
            yield "main thread disarms"
        case At.DISARMED:
            yield "main thread tells"
        case _:
            pass
    if rank.signalled:
        yield "main thread is signalled"


def _of_monitor(world: World, rank: Rank) -> Iterator[str]:
    """Yield the monitor's moves while the driver is silent."""
    page = rank.page
    over = page.armed and is_over(world.register, rank.node, page.armed_round)
    if rank.monitor and over and page.want_monitor != page.armed and rank.main.span in GUARDED:
        yield "monitor wants"
    goes = rank.call.leaving and not rank.call.is_gone
    if rank.monitor and goes and is_seated(world, rank):
        yield "monitor leaves"


def is_seated(world: World, rank: Rank) -> bool:
    """Return True if the register counts on this rank."""
    register = world.register
    seat = register.seats.get(rank.node) if register and not register.closed else None
    return seat is not None and seat.status not in AWAY


def _speaks(world: World, rank: Rank) -> bool:
    """Return True if the monitor speaks: the rank is dead, or its call ended without the register's knowing."""
    gone = not rank.alive or isinstance(rank.returned, Raised)
    return gone and is_seated(world, rank) and declared(world, rank, waited=False) is not None


def faults(world: World) -> list[Move]:
    """Return the faults and choices that are possible now."""
    found = []
    for place, rank in enumerate(world.ranks):
        if world.budget.sections and _may_enter(rank):
            found.append(Move("main thread enters a section", place))
        if world.budget.respawns and not rank.alive:
            found.append(Move("starts again", place))
        if world.budget.faults:
            found += [Move(what, place, how) for what, how in _faults(world, rank) if _of_kind(world, what, how)]
        if world.budget.losses:
            found += [Move(what, place) for what in _losses(world, rank)]
    return found


LOSSES = ("the store forgets", "an answer is lost", "a write is late")
"""What a store may do to its ranks, where it is allowed to (`Budget.losses`)."""


def _losses(world: World, rank: Rank) -> Iterator[str]:
    if rank is world.ranks[0] and world.register is not None and not world.register.closed:
        yield "the store forgets"
    if rank.runs and rank.unheard is None and rank.under_way is None:
        yield from ("an answer is lost", "a write is late")


def _of_kind(world: World, what: str, how: How | None) -> bool:
    return not world.kinds or what in world.kinds or (how is not None and how.value in world.kinds)


FAULTS = (
    *("user code ends", "fails here", "fails there", "hangs", "is stuck", "swallows", "dies", "is lost"),
    *("is told to stop", "is interrupted"),
    *("abort hangs", "abort fails", "is shown part", "starves", "is cut off", "monitor dies", "is suspected"),
    "stands still",
)
"""All kinds of faults. `stands still` comes only where steps take time."""
ENDS = (How.FAILED, How.EXITED, How.INTERRUPTED, How.GAVE_UP)
HOWS = tuple(each.value for each in ENDS)
"""The ways in which user code ends, each a kind by itself too."""


def _may_enter(rank: Rank) -> bool:
    main = rank.main
    return rank.runs and main.at is At.USER and main.hang is Hang.NO and main.span in GUARDED and not rank.page.depth


def _faults(world: World, rank: Rank) -> Iterator[tuple[str, How | None]]:
    if not rank.runs:
        return
    main = rank.main
    if main.at is At.USER and main.hang is Hang.NO:
        for how in ENDS:
            yield "user code ends", how
        yield from (("hangs", None), ("is stuck", None))
        if main.span in GUARDED:
            yield from (("fails here", None), ("fails there", None))
    if rank.signalled and gate.raises(rank.page, main.at is At.USER):
        yield "swallows", None
    yield from (("dies", None), ("is lost", None), ("is told to stop", None))
    if main.at is not At.USER:
        yield "is interrupted", None
    if rank.aborts and not rank.abort_hangs:
        yield "abort hangs", None
        yield "abort fails", None
    if not rank.shown_part:
        yield "is shown part", None
    if not rank.starved:
        yield "starves", None
    if not rank.cut_off:
        yield "is cut off", None
    if rank.monitor:
        yield "monitor dies", None
    if is_seated(world, rank) and any(other.runs for other in world.ranks if other is not rank):
        yield "is suspected", None


def timed(world: World) -> list[Move]:
    """Return the moves that happen when no other does."""
    return [move for place in range(len(world.ranks)) for move in timed_of(world, place)]


def timed_of(world: World, place: int) -> list[Move]:
    """Return those of one rank."""
    rank, found = world.ranks[place], list[Move]()
    if not rank.runs:
        if rank.monitor and not rank.alive and is_seated(world, rank) and declared(world, rank, waited=True):
            found.append(Move("monitor waits no longer", place))
        return found
    if rank.starved:
        return [Move("has time again", place), *(Move(what, place) for what in _late_monitor(world, rank))]
    due = [each for each in deadlines(rank.call) if each not in rank.passed and not _too_often(each)]
    marked = [each for each in due if each.timer is Timer.MOVING]  # with a mark, which user code leaves or does not
    found += (Move("time passes", place, each) for each in marked)
    if due := [each for each in due if each not in marked]:
        found.append(Move("time passes", place, min(due, key=lambda each: each.after_s)))
    if rank.cut_off:
        found.append(Move("is reached again", place))
        if rank.agenda.operation or rank.agenda.queue:
            found.append(Move("gives the store up", place))
    elif asked(world, rank, When.LATE):
        found.append(Move("driver asks late", place))
    elif asked(world, rank, When.TOO_LATE):
        found.append(Move("driver is too late", place))
    return found


def _too_often(deadline: Deadline) -> bool:
    return deadline.timer is Timer.AGAIN and deadline.tries >= AGAIN_MAX


def _late_monitor(world: World, rank: Rank) -> Iterator[str]:
    if not rank.monitor or rank.main.at is not At.USER or rank.main.hang is Hang.NO:
        return
    if gate.wanted(rank.page) and not rank.signalled and rank.main.hang is Hang.YES and not rank.page.depth:
        yield "monitor signals again"
    if rank.main.span in GUARDED and not is_over(world.register, rank.node, rank.page.armed_round):
        yield "monitor ends"
    yield "monitor kills"
