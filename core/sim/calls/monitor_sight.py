"""The sight of a simulated monitor process, and the moves by which it does what the core's own `monitoring` wants."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import assert_never

from ...inprocess.monitoring import Act, Bye, Kill, Quit, SayDead, SayEnd, SayLeave, Sight, Terminate, Want
from ...inprocess.progress_limits import UNGUARDED, Marks, guarded
from ...inprocess.timers import Timers
from ...inprocess.words import Timer
from ...rendezvous.state import RendezvousState, shows_over
from .call_world import At, Rank, World
from .moves import GUARDED, Move, is_seated


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
    page, settings, is_guarded = rank.page, rank.call.settings, rank.main.span in GUARDED
    limits = guarded(settings)
    callback_s = settings.callback_timeout + settings.unwind_timeout
    began = [(each, at) for each, at in timers.began_at.items() if each.timer is Timer.UNWIND and at < math.inf]
    return Sight(
        token=page.armed,
        round=page.armed_round,
        guarded=is_guarded,
        active=rank.call.active,
        stamp=stamp,
        soft_s=limits.soft_s if is_guarded else math.inf,
        hard_s=limits.hard_s if is_guarded else callback_s,
        wanted=page.want == page.armed,
        leaving=rank.call.leaving is not None,
        replaced=rank.call.replaced,
        bye=_bye(rank),
        unwind_at=min((at + each.after_s for each, at in began), default=math.inf),
        dead=not rank.alive,
        over=shows_over(shown, rank.node, page.armed_round),
        settled=not is_seated(world, rank) and world.forgotten is None,
    )


def _bye(rank: Rank) -> Bye:
    if rank.returned is None:
        return Bye.NOT_YET
    if rank.call.left or rank.call.verdict:
        return Bye.SETTLED
    return Bye.REPLACED if rank.call.replaced else Bye.UNSETTLED


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
