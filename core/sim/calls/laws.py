"""The laws of a simulated world of calls, and where each step and the end of a run ask them. These raise Violation.

`properties/call_laws` holds the laws that need only values; the traces of real ranks are held to them as well. I11 and I12
are the register's own invariant B2, which is judged at every write. `inprocess/verify` judges the laws of one call (C).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...caller import Terms
from ...inprocess import Call, Phase
from ...inprocess.exits import REPLACED
from ...inprocess.settings import NO_MEMORY_MAX
from ...inprocess.words import Outcome, Raised, Reason, Returned, Run
from ...policies import place
from ...properties.call_laws import I1, I2, I3, I4, I7, I8, I9, I10, I13, ROUND_OF_USER, has_succeeded, is_over
from ...properties.law import Answers, Law, law
from ...rendezvous import RendezvousState, Status
from ...world import Node, Why
from .call_world import At, Rank, World

C1 = Law(
    "C1",
    "In each phase the main thread runs only a user span of that phase, or waits.",
    "a call makes a step",
    (Call,),
    holds=lambda it: True,
)
C2 = Law(
    "C2",
    "A value is held only by an active rank, of its present round, after the function returned, and never becomes "
    "another.",
    "a call holds a result",
    (Call,),
    holds=lambda it: it.now.call.result is not None,
)
C3 = Law("C3", "A call has an outcome exactly in ENDED.", "a call makes a step", (Call,), holds=lambda it: True)
C4 = Law(
    "C4",
    "A call is in LEAVING, or known to have left, only with a reason.",
    "a call leaves",
    (Call,),
    holds=lambda it: it.now.call.phase is Phase.LEAVING or it.now.call.left,
)
C5 = Law(
    "C5",
    "Every phase has a timer but JOINING, RESERVE and ENDED.",
    "a call makes a step",
    (Call,),
    holds=lambda it: True,
)
C6 = Law(
    "C6",
    "One step gives the main thread at most one order, and each order has the next token.",
    "the main thread gets an order",
    holds=lambda it: it.orders,
)
C7 = Law("C7", "Abort begins at most once in a round.", "abort begins", holds=lambda it: it.aborts)
C8 = Law(
    "C8",
    "In one step `End`, `Want`, `Abort`, `Inject` and `Run` come in this order.",
    "a step gives two or more commands that have an order",
    (Call,),
    holds=lambda it: it.ordered > 1,
)
C9 = Law(
    "C9",
    "The first reason for leaving stands, and a call that has asked to close the job ends by an exception only with "
    "the verdict, by a refusal, or when its time is over.",
    "a call makes a step that leaves already",
    (Call,),
    holds=lambda it: it.was.call.leaving is not None,
)
C10 = Law(
    "C10",
    "Repetitions are counted only of a known failure, and a call with too many of them, or with too many failures "
    "before any progress, leaves.",
    "a call that remembers a failure makes a step",
    (Call,),
    holds=lambda it: it.now.call.mark is not None,
)
I17 = Law("I17", "Every run of a world of calls ends within 5,000 steps.", "a run begins")


# --- steps of a rank


def ordered(rank: Rank, run: Run) -> None:
    """Judge an order to the main thread to run user code."""
    I23.judge(rank, run)
    I2.judge(rank.node, f"is ordered to {run.span.value}", None if rank.main.at is At.WAITS else rank.main.at.value)
    I3.judge(rank.node, run, rank.aborts)


@law("the main thread gets an order after an abort has failed", holds=lambda it: it.orders and it.now.abort_failed)
def I23(rank: Rank, run: Run) -> Answers:
    """A process whose abort has failed begins no further round."""
    if rank.abort_failed and run.span in ROUND_OF_USER:
        yield f"{rank.node} begins {run.span.value} though its abort has failed"


def called(world: World, rank: Rank, round: int) -> None:
    """Judge a call of the function."""
    I1.judge(rank.node, rank.called_in, round)
    register = world.register
    here = register.members if register and register.round == round else ()
    for other in world.ranks:
        if other.alive and other.node in here and other.main.at is At.USER and other.main.span in ROUND_OF_USER:
            I4.judge(rank.node, round, other.node, other.page.armed_round)


@law("an injection lands", holds=lambda it: it.injects)
def I5(world: World, rank: Rank) -> Answers:
    """An injection hits user code outside of atomic sections only, and only if its round is over, the rank goes, or a limit
    passed."""
    if rank.main.at is not At.USER or rank.page.depth:
        yield f"{rank.node} is hit while {rank.main.at.value}, {rank.page.depth} sections deep"
    goes = rank.limited == rank.page.armed or rank.call.leaving or rank.call.verdict
    if not (goes or is_over(world.known, rank.node, rank.page.armed_round)):
        yield f"{rank.node} is hit though round {rank.page.armed_round} stands"


@law("abort or an atomic section begins", holds=lambda it: it.enters + it.aborts)
def I6(rank: Rank, enters: bool) -> Answers:
    """Abort begins outside of atomic sections only, and no atomic section begins while abort runs."""
    if enters and rank.aborts:
        yield f"{rank.node} enters an atomic section while abort runs"
    if not enters and rank.page.depth and rank.main.at is At.USER:
        yield f"abort of {rank.node} starts while it is in an atomic section"


@law(
    "a rank that has failed tries again, or gives up",
    holds=lambda it: it.gives_up + (it.orders_user_code and it.repeats),
)
def I18(world: World, rank: Rank, does: Run | Reason) -> Answers:
    """A call ends as a crash loop exactly when the same failure of this rank repeats more often than `max_repeats`, and
    leaves for a fresh process only when that, before any section, or a hang has come `fresh_after` times in a row."""
    mark, often, barren = rank.alike
    limit, fresh_after = world.calls.max_repeats, _fresh_after(world, mark)
    again = isinstance(does, Run) and does.span in ROUND_OF_USER
    if again and limit is not None and often > limit + 1:
        yield f"{rank.node} goes on after it failed {often} times {mark}, {limit} repetitions allowed"
    if again and fresh_after is not None and barren >= fresh_after:
        yield f"{rank.node} goes on after it failed {barren} times {mark} before any progress"
    if does is Reason.STUCK and barren < (fresh_after or 0):
        yield f"{rank.node} gives its place up, but has failed {barren} times {mark} before any progress"
    if does is Reason.CRASH_LOOP and not often > (limit or 0) + 1:
        yield f"{rank.node} gives up as one that fails again and again, but has failed {often} times {mark}"


def lacks_memory(mark: str) -> bool:
    """Return True if a failure with this mark is a lack of memory."""
    return mark == "fails here"


def _fresh_after(world: World, mark: str) -> int | None:
    """Return how often a failure with this mark may come before any progress."""
    limit = world.calls.fresh_after
    return min(limit, NO_MEMORY_MAX) if limit is not None and lacks_memory(mark) else limit


def finished(world: World, rank: Rank, outcome: Outcome) -> None:
    """Judge the end of the call."""
    I2.judge(rank.node, "hears that its call is over", None if rank.main.at is At.WAITS else rank.main.at.value)
    if isinstance(outcome, Raised):
        I18.judge(world, rank, outcome.reason)
        I25.judge(rank, outcome.reason)
    I7.judge(world.register, rank.node, outcome)


@law(
    "the call of a rank ends to which its monitor has sent SIGTERM",
    holds=lambda it: it.raises and is_ended_at_a_limit(it.now),
)
def I25(rank: Rank, reason: Reason) -> Answers:
    """A rank that its monitor has ended at a limit never leaves as by its own will."""
    if reason is Reason.EXITED and is_ended_at_a_limit(rank):
        yield f"{rank.node} is ended by its monitor, and leaves as by its own will: {reason.value}"


def is_ended_at_a_limit(rank: Rank) -> bool:
    """Return True if the monitor of this rank has sent SIGTERM, and the job goes on."""
    return rank.page.hung and not rank.call.verdict


# --- writes of the register


def wrote(world: World, before: RendezvousState | None, after: RendezvousState, waited: bool = False) -> None:
    """Judge a write of the register. `waited`: the writer has waited for as long as any timer lasts."""
    I14.judge(world, before, after, waited)
    if before and not waited and not after.closed:
        I19.judge(world, before, after)
    I13.judge(after, world.unseated)
    if has_succeeded(after) and not (before and before.closed):
        active = _active(world.terms, after)
        stay = [rank for rank in world.ranks if rank.alive and rank.returned != Returned(after.round)]
        I8.judge(after.round, not active, [(rank.node, rank.call) for rank in stay if rank.node in active])
    if before and before.complete and after.round > before.round and after.ended and after.ended.why is not Why.UPSCALE:
        I10.judge(before, after, _active(world.terms, before))


def _active(terms: Terms, register: RendezvousState) -> frozenset[Node]:
    places = place(terms.policy, register.world).places
    return frozenset(node for node, each in places.items() if each.active)


@law(
    "a write while the store has forgotten a world, and a rank remembers it",
    RendezvousState,
    holds=lambda it: it.forgot,
)
def I24(world: World, forgotten: RendezvousState, after: RendezvousState, waited: bool) -> Answers:
    """A world that the store has forgotten stands again before another one is complete, if a rank that knew it can write,
    and no span has passed."""
    if not waited and forgotten.complete and (able := [rank.node for rank in world.ranks if can_restore(rank)]):
        names = ", ".join(map(str, able))
        yield f"round {after.round} is complete, but {names} knew of round {forgotten.round}"


def can_restore(rank: Rank) -> bool:
    """Return True if this rank remembers what the store has forgotten, and can write it."""
    return rank.runs and rank.remembers is not None and not (rank.cut_off or rank.starved)


@law("a write while a killed rank's place is kept for its replacement", RendezvousState, holds=lambda it: it.keeps)
def I19(world: World, before: RendezvousState, after: RendezvousState) -> Answers:
    """A rank that was killed, or left to be replaced, and may be replaced keeps its place until its next incarnation takes
    it, or its time is over."""
    slots = {node.slot for node in after.seats}
    for rank in world.ranks:
        if is_kept(before, rank) and rank.node.slot not in slots:
            yield f"{rank.node} loses its place, though its replacement has time"


def is_kept(register: RendezvousState, rank: Rank) -> bool:
    """Return True if this rank was killed, or has left to be replaced, and its place is to be kept for its replacement."""
    seat = register.seats.get(rank.node)
    goes = rank.call.leaving is not None and not (rank.call.replaced and rank.call.leaving in REPLACED)
    waits = rank.monitor and not rank.alive and not goes and rank.held.who.settings.replace_timeout > 0
    if not waits or seat is None:
        return False
    return seat.status is Status.EXPECTED or (seat.status is Status.IN and register.complete)


@law(
    "the first world begins with fewer ranks than the launcher started",
    RendezvousState,
    holds=lambda it: it.begins_small,
)
def I14(world: World, before: RendezvousState | None, after: RendezvousState, waited: bool) -> Answers:
    """The first world has fewer ranks than the launcher started only if a rank died, left or was waited for in vain."""
    if not begins(before, after) or world.moving or len(after.members) >= len(world.ranks):
        return
    absent = missing(world, after)
    if not excuses(absent, waited or was_lost(after)):
        names = ", ".join(str(rank.node) for rank in absent)
        yield f"the first world has begun without {names}, who are on their way"


def begins(before: RendezvousState | None, after: RendezvousState) -> bool:
    """Return True if this write completes the first world."""
    return after.complete and not after.ended and not (before and before.complete)


def missing(world: World, register: RendezvousState) -> list[Rank]:
    """Return the ranks without a seat."""
    return [rank for rank in world.ranks if rank.node not in register.seats]


def was_lost(register: RendezvousState) -> bool:
    """Return True if the store had lost this register before. Who is not back in time is waited for no longer."""
    return register.life.epoch > 1


def excuses(missing: Iterable[Rank], waited: bool) -> bool:
    """Return True if the first world may begin without these ranks."""
    return waited or any(not rank.runs or rank.call.leaving or rank.node.incarnation > 1 for rank in missing)


# --- the end of a run


def ended(world: World) -> None:
    """Judge a world in which nothing moves any longer."""
    I16.judge(world)
    for rank in world.ranks:
        if world.register is not None and rank.node in world.register.seats:
            I13.judge(world.register, frozenset(), rank.node if rank.is_spoken_for else None)
            if rank.alive:
                I9.judge(world.register, rank.node, rank.returned)
    I15.judge(world)


@law("a run is over", ends=lambda world: True)
def I16(world: World) -> Answers:
    """From every world of calls an end can be reached: where nothing can move, every call is over."""
    if waiting := [rank for rank in world.ranks if rank.runs]:
        facts = ", ".join(f"{rank.node} is {rank.call.phase.value}, {rank.main.at.value}" for rank in waiting)
        yield f"nothing moves, but {facts}"


@law("a run in which nothing went wrong is over", ends=lambda world: world.clean)
def I15(world: World) -> Answers:
    """A job in which nothing goes wrong SUCCEEDS, no call raises, and no timer passes."""
    closed = world.register.closed if world.register else None
    if world.clean and not (has_succeeded(world.register) and world.rings == 0):
        yield f"nothing went wrong, but {closed or 'no verdict'} after {world.rings} timers"
    if world.clean and (sad := [str(rank.node) for rank in world.ranks if isinstance(rank.returned, Raised)]):
        yield f"nothing went wrong, but the calls of {', '.join(sad)} raise"
