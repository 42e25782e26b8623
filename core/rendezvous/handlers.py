"""The decisions of each operation: `(ctx, deadline) -> Action`.

A handler is a list of questions, one per line, each with its answer. The order is the priority, and the last line is the
default. Handlers are pure and total. They know no store, and fail only by `Fail`.
"""

from __future__ import annotations

import math

from ..world import Verdict, Why
from .actions import (
    Action,
    Arrive,
    Close,
    Complete,
    Done,
    Drain,
    Edit,
    End,
    Evict,
    Fail,
    Finish,
    Leave,
    Over,
    Overdue,
    Proceed,
    Reserve,
    Settled,
    Sync,
)
from .apply import is_sooner
from .context import GROWN_RUNS, Context, Fact, gone
from .refusals import barred_by, refused
from .state import AWAY, Status

END_JITTER = 0.0002
"""Seconds per other member over which the members spread their writes when a round fails."""


def join(ctx: Context, deadline: float) -> Action:
    """Get into the next world. My workers are reaped, or live on in the generation that stands."""
    state = ctx.state
    if state is not None and state.closed:
        return Fail(Why.CLOSED, state.closed)
    if ctx.left_behind:
        return _over(ctx)
    if state is None:
        return _too_late(ctx) if ctx.now >= deadline else Arrive(ctx.profile)
    if ctx.seat is None and (refusal := refused(ctx, state)):
        return refusal
    if ctx.status is Status.LEAVING:
        return Leave() if ctx.now >= deadline else Sync(deadline)
    if state.complete and ctx.status is Status.IN and not ctx.held.is_behind(state.world.id):
        return Finish(state.world)
    if state.complete and ctx.status in (Status.IN, Status.DONE, Status.RESERVE) and ctx.operation.alive:
        return Finish(state.world)
    if state.complete and ctx.status in (Status.IN, Status.DONE, Status.RESERVE):
        return End(state.round, Why.FENCED)
    if ctx.now >= deadline and not ctx.spare:
        return _too_late(ctx)
    if ctx.later:
        return Sync(min(deadline, ctx.later_lives_at))
    if barred_by(ctx):
        return Sync(min(deadline, ctx.lives_at(Fact.BARRED)))
    if chore := _evict(ctx):
        return chore
    if ctx.seat is None and state.complete and ctx.operation.holds_back:
        return Sync(deadline)
    if ctx.status is Status.EXPECTED and ctx.fails_too_often and not state.over_budget:
        return _goes(ctx, deadline)
    if ctx.status is Status.ASIDE and ctx.now < ctx.returns_at:
        return Sync(ctx.returns_at)
    if ctx.seat is None or ctx.status in (Status.EXPECTED, Status.ASIDE):
        return Arrive(ctx.profile)
    if ctx.now >= (overdue := _overdue_at(ctx)):
        return Overdue(state.round)
    if ctx.now >= (last_call := _last_call_at(ctx)):
        return Complete(state.round)
    return Sync(min(deadline, overdue, last_call))


def _goes(ctx: Context, deadline: float) -> Action:
    """Give up my seat as unfit, because of my failures, once everybody else is back: until then a death that is found may be
    the true cause of the last one."""
    settings = ctx.settings
    late = ctx.due(Fact.OPEN, settings.overdue_timeout)
    is_last = ctx.state is not None and ctx.state.expected == (ctx.me,)
    return Fail(Why.UNFIT) if is_last or ctx.now >= late else Sync(min(deadline, late))


def watch(ctx: Context, deadline: float) -> Action:
    """Wait until my world or the job is over, while my workers run or I stand at the exit barrier."""
    state = ctx.state
    if state is not None and state.closed:
        return Finish(state.closed)
    if state is None or not ctx.in_my_world:
        return _over(ctx)
    if ctx.status is Status.IN and ctx.held.past.done_in == state.world_id:
        return Done(state.round)
    if ctx.status is Status.IN and ctx.held.past.reserve_in == state.world_id:
        return Reserve(state.round)
    old, ahead = ctx.due(Fact.FRUITLESS, ctx.settings.progress_after), ctx.due(Fact.ADVANCE, 0.0)
    if ctx.now >= (proceeds := min(old, ahead)):
        return Proceed(state.round)
    if chore := _evict(ctx):
        return chore
    barrier = deadline if ctx.status is Status.DONE else math.inf
    if ctx.now >= barrier:
        return Leave()
    if ctx.now >= (upscale := _upscale_at(ctx)):
        return End(state.round, Why.UPSCALE)
    return Sync(min(barrier, upscale, proceeds))


def end(ctx: Context, deadline: float) -> Action:
    """End the round, because my workers failed or cannot start."""
    state = ctx.state
    if state is None or state.closed or not ctx.in_my_world:
        return Finish(Settled())
    if ctx.now >= deadline:
        return Fail(Why.UNCONFIRMED)
    spread = ctx.operation.since + ctx.operation.jitter * END_JITTER * (len(state.members) - 1)
    counts = ctx.operation.why is Why.FAILED and not ctx.operation.is_open
    failing = ctx.failing if counts else None
    return End(state.round, ctx.operation.why, failing) if ctx.now >= spread else Sync(spread)


def done(ctx: Context, deadline: float) -> Action:
    """Mark my seat DONE, because all my workers have succeeded."""
    state = ctx.state
    if state is not None and state.closed:
        return Finish(state.closed)
    if state is None or not ctx.in_my_world:
        return _over(ctx)
    if ctx.status in (Status.DONE, Status.GONE):
        return Finish(Settled())
    return Done(state.round)


def reserve(ctx: Context, deadline: float) -> Action:
    """Mark my seat RESERVE, because I am not active in this world."""
    state = ctx.state
    if state is not None and state.closed:
        return Finish(state.closed)
    if state is None or not ctx.in_my_world:
        return _over(ctx)
    return Reserve(state.round) if ctx.status is Status.IN else Finish(Settled())


def leave(ctx: Context, deadline: float) -> Action:
    """Leave, by a signal or a drain. No write of mine may land afterwards."""
    if ctx.state is not None and ctx.state.closed:
        return Finish(ctx.state.closed)
    if not _can_leave(ctx):
        return Finish(Settled())
    return Fail(Why.UNCONFIRMED) if ctx.now >= deadline else Leave()


def declare_dead(ctx: Context, deadline: float) -> Action:
    """Take the seat of a dead process away. Its monitor runs this, so that nobody waits for a TTL of silence.

    A member whose process can be replaced ends the round first, and is expected back for a while. The slot's next
    incarnation takes the seat, and the next world is as large as the last.
    """
    state = ctx.state
    if state is None or state.closed or ctx.seat is None or ctx.status in AWAY:
        return Finish(Settled())
    kept_until = ctx.operation.since + ctx.settings.replace_timeout
    if ctx.now < kept_until and state.complete and ctx.status is Status.IN:
        return End(state.round, Why.FAILED)
    if ctx.now < kept_until and ctx.status is Status.EXPECTED:
        return Sync(kept_until)
    return Evict(frozenset((ctx.me,)))


def close(ctx: Context, deadline: float) -> Action:
    """End the job for all nodes. An operator ends no job that is not there: a verdict would bar the id for the next one. A
    node that cannot start its workers ends no job that has its minimum without it."""
    state = ctx.state
    if state is not None and state.closed:
        return Finish(state.closed)
    if state is None and ctx.operation.why is Why.OPERATOR:
        return Fail(Why.NO_JOB)
    if ctx.operation.why is Why.CANNOT_START and (instead := _stays_out(ctx, deadline)):
        return instead
    if ctx.now >= deadline:
        return Fail(Why.UNCONFIRMED)
    return Close(Verdict(ctx.operation.ending, state.round if state else 0, ctx.me, ctx.operation.why))


def _stays_out(ctx: Context, deadline: float) -> Action | None:
    """Return what a node does that cannot start its workers and need not end the job; None: the others are too few.

    Where the number of nodes is open, others may come to a round that forms: it has its last call first.
    """
    state, limits = ctx.state, ctx.settings.limits
    if ctx.later or (ctx.seat is None and ctx.held.past.mine is not None):
        return Finish(Settled())  # a later start of my slot is there, or my seat is gone, and the others go on
    if state is not None and ctx.seat is None and (refusal := refused(ctx, state)):
        return refusal
    runs = state is not None and state.complete and ctx.status is not Status.IN
    if state is not None and (runs or not state.needs(ctx.me)):
        return Leave() if _can_leave(ctx) else Finish(Settled())
    others_may_come = limits.min_nodes < limits.max_nodes and not (state is not None and state.complete)
    until = min(ctx.operation.since + ctx.last_call, deadline)
    return Sync(until) if others_may_come and ctx.now < until else None


def drain(ctx: Context, deadline: float) -> Action:
    """Give a node notice. An operator who does not insist is refused if the others would be too few. A node knows best
    itself when it must be gone."""
    state, wanted = ctx.state, ctx.operation.drain
    if state is None or wanted is None:
        return Fail(Why.NO_JOB)
    if state.closed:
        return Finish(state.closed)
    seat = state.seats.get(wanted.node)
    if seat is None or seat.status in AWAY:
        return Fail(Why.NO_NODE)
    if is_sooner(seat.notice, wanted.notice):
        return Finish(Settled())
    if wanted.node != ctx.me and not ctx.operation.forced and state.needs(wanted.node):
        return Fail(Why.NEEDED)
    return Fail(Why.UNCONFIRMED) if ctx.now >= deadline else Drain(wanted.node, wanted.notice)


def linger(ctx: Context, deadline: float) -> Action:
    """Wait until I have seen that the store holds the verdict that I know, so that no node begins the job again."""
    state, confirmed_at = ctx.state, ctx.held.contact.confirmed_at
    if state is None or not state.closed or (confirmed_at is not None and confirmed_at >= ctx.operation.since):
        return Finish(Settled())
    return Fail(Why.UNCONFIRMED) if ctx.now >= deadline else Sync(ctx.now)


def _over(ctx: Context) -> Finish:
    mine, state = ctx.held.past.mine, ctx.state
    return Finish(Over(mine.round if mine else 0, state.ended if state else None))


def _too_late(ctx: Context) -> Action:
    return Leave() if _can_leave(ctx) else Fail(Why.TIMEOUT)


def _can_leave(ctx: Context) -> bool:
    is_known = ctx.state is not None and any(
        node.slot == ctx.me.slot and node < ctx.me for node in ctx.state.lost_starts
    )
    return ctx.status not in AWAY and (is_known or (ctx.owed or ctx.entering is not None or ctx.seat is not None))


def _evict(ctx: Context) -> Edit | None:
    """Evict the dead, if it is my turn. Of evidence few nodes know, so none of them leaves that to another."""
    if not ctx.dead:
        return None
    return Evict(ctx.dead) if gone(ctx.held, ctx.now) or ctx.now >= ctx.due(Fact.DEAD, 0.0) else None


def _overdue_at(ctx: Context) -> float:
    waits = ctx.status in (Status.IN, Status.WAITING)
    missing = waits and ctx.state is not None and ctx.state.expected
    return ctx.due(Fact.OPEN, ctx.settings.overdue_timeout) if missing else math.inf


def _last_call_at(ctx: Context) -> float:
    state = ctx.state
    if state is None or ctx.status is not Status.IN or state.expected:
        return math.inf
    return ctx.due(Fact.QUORUM, ctx.last_call)


def _upscale_at(ctx: Context) -> float:
    """Return when I must end the round for a newcomer. A newcomer waits for the rest of its party, but not for ever.

    If newcomers come one by one, the first one interrupts the job, and the next ones interrupt it together: the round of
    the first one runs for a while, but no newcomer gives up for that. Newcomers that fill the job wait for no others.
    """
    after, alone_after = ctx.settings.upscale_after, max(ctx.settings.upscale_after, ctx.settings.party_timeout)
    newcomer = min(ctx.due(Fact.NEWCOMER, after), ctx.due(Fact.PART, alone_after))
    if Fact.GROWN not in ctx.held.view.spans or (ctx.state is not None and ctx.state.fills_up):
        return newcomer
    return max(newcomer, ctx.due(Fact.GROWN, min(GROWN_RUNS * after, ctx.settings.join_timeout / 2)))
