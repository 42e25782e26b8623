"""How often each law of calls was armed: how often what it speaks of was there, so that a breach would have been seen.

Nothing is judged here. `properties/strength` does the same for runs of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...inprocess import Call, Phase
from ...inprocess.words import How, Raised, Reason, Returned, Span
from ...properties.call_laws import ROUND_OF_USER, is_done
from ...properties.strength import Strength
from ...rendezvous import RendezvousState
from ...world import Ending, Why
from .call_world import At, Rank, World
from .laws import can_restore, excuses, is_kept, is_spoken_for, missing, was_lost
from .moves import Move

LAWS: Mapping[str, str] = {
    "I1": "the function is called",
    "I2": "the main thread gets an order",
    "I3": "initialize or the function is ordered",
    "I4": "the function is called while another member is in user code",
    "I5": "an injection lands",
    "I6": "abort or an atomic section begins",
    "I7": "a call returns",
    "I8": "a job is closed as succeeded",
    "I9": "a run is over whose job succeeded, and a rank that was done lives",
    "I10": "a round ends, and not for a newcomer",
    "I13": "a write after a rank has left, or a rank is gone when a run is over",
    "I14": "the first world begins with fewer ranks than the launcher started",
    "I15": "a run in which nothing went wrong is over",
    "I16": "a run is over",
    "I17": "a run begins",
    "I18": "a rank that has failed tries again, or gives up",
    "I19": "a write while a killed rank's place is kept for its replacement",
    "I20": "a limit passes in a run whose steps take time",
    "I21": "a limit passes in a run whose steps take time",
    "I22": "a monitor acts in a run whose steps take time",
    "I23": "the main thread gets an order after an abort has failed",
    "I24": "a write while the store has forgotten a world, and a rank remembers it",
    "C1": "a call makes a step",
    "C2": "a call holds a result",
    "C3": "a call makes a step",
    "C4": "a call leaves",
    "C5": "a call makes a step",
    "C6": "the main thread gets an order",
    "C7": "abort begins",
    "C8": "a step gives two or more commands that have an order",
    "C9": "a call makes a step that leaves already",
    "C10": "a call that remembers a failure makes a step",
}
"""Number → when that law is armed."""


def counts_step(strength: Strength, before: World, move: Move, after: World) -> None:
    """Count the laws that this step arms, and those that it excuses."""
    was, now = before.ranks[move.rank], after.ranks[move.rank]
    strength.arms(_by_rank(after, was, now, move))
    if now.call is not was.call:
        strength.arms(_by_call(was, now))
    register = after.register
    if register is not None and register is not before.register:
        strength.arms(_by_write(before, before.register, register))
        if before.forgotten is not None and before.forgotten.complete and any(map(can_restore, before.ranks)):
            strength.armed["I24"] += 1
        if _begins_small(before.register, register):
            waited = "late" in move.what or was_lost(register)
            strength.excused["I14"] += excuses(missing(before, register), waited)


def counts_end(strength: Strength, world: World) -> None:
    """Count the laws that the end of a run arms."""
    strength.arms(_by_end(world))


def _by_rank(after: World, was: Rank, now: Rank, move: Move) -> Iterator[str]:
    main = now.main
    if main.at is At.ORDERED and was.main.token != main.token:
        yield "I2"
        yield "C6"
        if now.abort_failed:
            yield "I23"
        if main.span in ROUND_OF_USER:
            yield "I3"
            if now.alike[1] and after.calls.max_repeats is not None:
                yield "I18"
    if main.at is At.USER and was.main.at is At.ORDERED and main.span is Span.FUNCTION:
        yield "I1"
        others = (rank for rank in after.ranks if rank is not now and rank.alive)
        if any(rank.main.at is At.USER and rank.main.span in ROUND_OF_USER for rank in others):
            yield "I4"
    if move.what == "swallows" or (move.what == "main thread is signalled" and main.how is How.INJECTED):
        yield "I5"
    if now.page.depth > was.page.depth:
        yield "I6"
    if now.aborts and not was.aborts:
        yield "I6"
        yield "C7"
    if was.returned is None and isinstance(now.returned, Returned):
        yield "I7"
    if was.returned is None and isinstance(now.returned, Raised) and now.returned.reason is Reason.CRASH_LOOP:
        yield "I18"


def _by_call(was: Rank, now: Rank) -> Iterator[str]:
    before, after = was.call, now.call
    yield "C1"
    yield "C3"
    yield "C5"
    if after.result is not None:
        yield "C2"
    if after.phase is Phase.LEAVING or after.left:
        yield "C4"
    if before.leaving is not None:
        yield "C9"
    if after.mark is not None:
        yield "C10"
    if _ordered(was, now, before, after) > 1:
        yield "C8"


def _ordered(was: Rank, now: Rank, before: Call, after: Call) -> int:
    """Return how many commands of one step had to come in their order."""
    ended = now.agenda is not was.agenda and after.faults > before.faults
    wanted = now.page.want != was.page.want
    return ended + wanted + (now.aborts and not was.aborts) + (after.token != before.token)


def _by_write(world: World, before: RendezvousState | None, after: RendezvousState) -> Iterator[str]:
    if before and after.round > before.round and after.ended and after.ended.why is not Why.UPSCALE:
        yield "I10"
    if world.unseated:
        yield "I13"
    if _begins_small(before, after):
        yield "I14"
    if after.closed and after.closed.ending is Ending.SUCCEEDED and not (before and before.closed):
        yield "I8"
    if before and any(is_kept(before, rank) for rank in world.ranks):
        yield "I19"


def _begins_small(before: RendezvousState | None, after: RendezvousState) -> bool:
    begins = after.complete and not after.ended and not (before and before.complete)
    return begins and len(after.members) < after.target


def _by_end(world: World) -> Iterator[str]:
    yield "I16"
    if world.clean:
        yield "I15"
    if any(map(is_spoken_for, world.ranks)):
        yield "I13"
    register = world.register
    succeeded = register and register.closed and register.closed.ending is Ending.SUCCEEDED
    if register and succeeded and any(rank.alive and is_done(register, rank.node) for rank in world.ranks):
        yield "I9"
