"""The sight of a simulated monitor process, and the moves by which it does what the core's own `monitoring` wants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ...inprocess.monitoring import Act, Kill, Quit, SayDead, SayEnd, SayLeave, Sight, Terminate, Want, bye
from ...inprocess.progress_limits import UNGUARDED, Marks, guarded, of_span
from ...inprocess.timers import Timers, unwind_at
from ...inprocess.words import GUARDED
from ...rendezvous.state import RendezvousState, shows_over
from .call_world import At, Rank, World
from .moves import Move, is_seated


def marks(rank: Rank, stamp: float) -> Marks | None:
    """Return the last progress and the limits of the driver's span; None before its user code has begun. After its end no
    limit holds, though the driver may hear of it later."""
    if rank.page.armed == rank.call.token:
        return Marks(stamp, guarded(rank.call.settings))
    return Marks(0.0, UNGUARDED) if rank.main.at is not At.ORDERED else None


def sight(world: World, place: int, stamp: float, timers: Timers, shown: RendezvousState | None) -> Sight:
    """Return what one look shows. `stamp` is the last mark of progress, `timers` are those of the driver, and `shown` is the
    last register that the monitor was shown: an empty store shows none."""
    rank = world.ranks[place]
    page, limits = rank.page, of_span(rank.call.settings, rank.main.span)
    return Sight(
        token=page.armed,
        round=page.armed_round,
        guarded=rank.main.span in GUARDED,
        active=rank.call.active,
        stamp=stamp,
        soft_s=limits.soft_s,
        hard_s=limits.hard_s,
        wanted=page.want == page.armed,
        leaving=rank.call.leaving is not None,
        replaced=rank.call.replaced,
        bye=bye(rank.call),
        unwind_at=unwind_at(timers),
        dead=not rank.alive,
        over=shows_over(shown, rank.node, page.armed_round),
        settled=not is_seated(world, rank) and world.forgotten is None,
    )


def moves_of(place: int, rank: Rank, acts: tuple[Act, ...]) -> Iterator[Move]:
    """Yield the moves that carry out what the monitor wants to do."""
    for act in acts:
        match act:
            case Want():
                first = rank.page.want_monitor != rank.page.armed
                yield Move("monitor wants" if first else "monitor signals again", place)
            case SayEnd(round):
                yield Move("monitor ends", place, round)
            case SayLeave():
                yield Move("monitor leaves", place)
            case Kill():
                yield Move("monitor kills", place)
            case Quit():
                yield Move("monitor quits", place)
            case Terminate():
                yield Move("monitor terminates", place)
            case SayDead():
                pass  # what the register is told then follows from the world
            case other:
                assert_never(other)
