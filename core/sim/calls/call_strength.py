"""How often each law of calls was armed: how often what it speaks of was there, so that a breach would have been seen.

Nothing is judged here. Each law says of a `Transition`, or of the end of a run, if it arms it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...inprocess import Call
from ...inprocess.words import How, Raised, Reason, Returned, Span
from ...properties import call_laws
from ...properties.call_laws import ROUND_OF_USER, has_succeeded
from ...properties.law import Law, Strength, by_number, laws_of
from ...rendezvous import RendezvousState
from ...values import frozen
from ...world import Why
from . import laws, time_laws
from .call_world import At, Rank, World
from .laws import begins, can_restore, excuses, is_kept, missing, was_lost
from .moves import Move

GAVE_UP = (Reason.CRASH_LOOP, Reason.STUCK)
"""The reasons of a rank that the same failure ends."""
_ALL = laws_of(call_laws, laws, time_laws)
LAWS: Mapping[str, Law] = by_number(_ALL)
"""The laws that runs of calls are held to, by number."""
BY_STEP = {
    kind: tuple((each.number, each.holds) for each in _ALL if each.holds and (each.facts or (Rank,)) == (kind,))
    for kind in (Rank, Call, RendezvousState)
}
"""What arms the laws by each step of a rank, by one that changes its call, and by a write of the register."""
BY_END = tuple((each.number, each.ends) for each in _ALL if each.ends)


@frozen
class Transition:
    """A step of a world, as the laws see it that it may arm."""

    before: World
    move: Move
    after: World
    was: Rank
    now: Rank

    # --- what the rank does

    @property
    def orders(self) -> bool:
        """Return True if the main thread gets an order."""
        return self.now.main.at is At.ORDERED and self.was.main.token != self.now.main.token

    @property
    def orders_user_code(self) -> bool:
        return self.orders and self.now.main.span in ROUND_OF_USER

    @property
    def repeats(self) -> bool:
        """Return True if this rank has failed before, and may not do so for ever."""
        calls = self.after.calls
        return any(self.now.alike[1:]) and (calls.max_repeats, calls.fresh_after) != (None, None)

    @property
    def calls(self) -> bool:
        """Return True if the function is called."""
        main = self.now.main
        return main.at is At.USER and self.was.main.at is At.ORDERED and main.span is Span.FUNCTION

    @property
    def beside_user_code(self) -> bool:
        others = (rank for rank in self.after.ranks if rank is not self.now and rank.alive)
        return any(rank.main.at is At.USER and rank.main.span in ROUND_OF_USER for rank in others)

    @property
    def injects(self) -> bool:
        is_hit = self.move.what == "main thread is signalled" and self.now.main.how is How.INJECTED
        return self.move.what == "swallows" or is_hit

    @property
    def enters(self) -> bool:
        """Return True if an atomic section begins."""
        return self.now.page.depth > self.was.page.depth

    @property
    def aborts(self) -> bool:
        return self.now.aborts and not self.was.aborts

    @property
    def returns(self) -> bool:
        return self.was.returned is None and isinstance(self.now.returned, Returned)

    @property
    def raises(self) -> bool:
        return self.was.returned is None and isinstance(self.now.returned, Raised)

    @property
    def gives_up(self) -> bool:
        return self.raises and isinstance(self.now.returned, Raised) and self.now.returned.reason in GAVE_UP

    @property
    def ordered(self) -> int:
        """Return how many commands of one step had to come in their order."""
        was, now = self.was, self.now
        ended = now.agenda is not was.agenda and now.call.faults > was.call.faults
        return ended + (now.page.want != was.page.want) + self.aborts + (now.call.token != was.call.token)

    # --- what becomes of the register, where it was written

    @property
    def register(self) -> RendezvousState:
        """The register that was written."""
        assert self.after.register is not None
        return self.after.register

    @property
    def ends_round(self) -> bool:
        was, now = self.before.register, self.register
        ends = was is not None and now.round > was.round
        return ends and now.ended is not None and now.ended.why is not Why.UPSCALE

    @property
    def succeeds(self) -> bool:
        was = self.before.register
        return has_succeeded(self.register) and not (was and was.closed)

    @property
    def keeps(self) -> bool:
        """Return True if the place of a rank is kept for its replacement."""
        was = self.before.register
        return was is not None and any(is_kept(was, rank) for rank in self.before.ranks)

    @property
    def forgot(self) -> bool:
        """Return True if the store has forgotten a world that a rank remembers."""
        lost = self.before.forgotten
        return lost is not None and lost.complete and any(map(can_restore, self.before.ranks))

    @property
    def begins_small(self) -> bool:
        """Return True if the first world begins, and is smaller than the launcher has started ranks for."""
        now = self.register
        return begins(self.before.register, now) and len(now.members) < now.target


def counts_step(strength: Strength, before: World, move: Move, after: World) -> None:
    """Count the laws that this step arms, and those that it excuses."""
    it = Transition(before, move, after, before.ranks[move.rank], after.ranks[move.rank])
    writes = after.register is not None and after.register is not before.register
    for kind in (Rank, *((Call,) if it.now.call is not it.was.call else ()), *((RendezvousState,) if writes else ())):
        for number, holds in BY_STEP[kind]:
            if times := holds(it):
                strength.armed[number] += times
    if writes and it.begins_small:
        waited = "late" in move.what or was_lost(it.register)
        strength.excused["I14"] += excuses(missing(before, it.register), waited)


def counts_end(strength: Strength, world: World) -> None:
    """Count the laws that the end of a run arms."""
    strength.arms(number for number, ends in BY_END if ends(world))
