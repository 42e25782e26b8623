"""The reasons for which a register has no seat for a node that asks for one.

`REFUSALS` has a row for each, in the order in which they are asked: when it holds, and its words for people. The law
of each stands in `properties/refusals.py`. A node that another one keeps out is refused only once that one is known to live
(`Context.lives_at`); until then it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..values import fields, frozen
from ..world import Node, Profile, Why
from .actions import Fail
from .context import Context, Fact, Held
from .settings import Comparison
from .state import AWAY, Limits, RendezvousState


@frozen
class Refusal:
    """A reason why there is no seat for this node, as long as it has none."""

    why: Why
    holds: Callable[[Context, RendezvousState], bool]
    text: Callable[[Context, RendezvousState], str]
    """Says it in words. It is asked only if the reason holds."""


def refused(ctx: Context, state: RendezvousState) -> Fail | None:
    """Return the reason why there is no seat for me in this register, if there is one."""
    return next((Fail(each.why) for each in REFUSALS if each.holds(ctx, state)), None)


def words(why: Why, ctx: Context) -> str:
    """Return the words of a refusal for this reason; nothing if it does not hold."""
    state = ctx.state
    told = (each.text(ctx, state) for each in REFUSALS if each.why is why and state and each.holds(ctx, state))
    return next(told, "")


# --- a later start of this node's slot


def _is_superseded(ctx: Context, state: RendezvousState) -> bool:
    return ctx.later is not None and ctx.now >= ctx.later_lives_at


def _is_behind(ctx: Context, state: RendezvousState) -> bool:
    later = ctx.later
    return later is not None and (later in ctx.dead or state.seats[later].status in AWAY)


# --- another job


def _other_limits(ctx: Context, state: RendezvousState) -> str:
    its, mine = state.limits, ctx.settings.limits
    differ = [each.name for each in fields(Limits) if getattr(its, each.name) != getattr(mine, each.name)]
    unspelled = differ if _spelled(its) == _spelled(mine) else []
    return f"the job runs with {_spelled(its, unspelled)}, this agent was given {_spelled(mine, unspelled)}"


def _spelled(limits: Limits, names: Iterable[str] = ()) -> str:
    """Return the limits as options, and those of these names as they are: no option spells what differs in them."""
    more = [f"{name}={getattr(limits, name)}" for name in names]
    return " ".join(filter(None, (limits.option, f"--max-restarts={limits.max_restarts}", limits.agreed, *more)))


def _stranger(ctx: Context, state: RendezvousState) -> tuple[Node, Profile] | None:
    """Return a node of my role that runs a program of another name; None if there is none, or if that is allowed."""
    mine = ctx.held.who.profile
    if ctx.settings.same_program is Comparison.NONE or not mine.program:
        return None
    others = ((node, seat.profile) for node, seat in state.seats.items() if seat.status not in AWAY)
    return next(((node, its) for node, its in others if node.slot != ctx.me.slot and _differ(mine, its)), None)


def _differ(mine: Profile, its: Profile) -> bool:
    return its.role == mine.role and its.program not in ("", mine.program)


def _another_program(ctx: Context, state: RendezvousState) -> str:
    found = _stranger(ctx, state)
    assert found is not None
    return f"{found[0]} runs {found[1].program}, this node was given {ctx.held.who.profile.program}"


# --- nodes that bar this one


def barring(held: Held) -> Mapping[Node, Why]:
    """Return the nodes of other slots that keep this node from a seat, if they live, each with the reason; none while it has
    one.

    A loopback address leads each host to itself, so the workers of two hosts do not meet where one of them has it. (Two that
    have it, and have found one TCPStore, are on one host, whatever its containers call it. An etcd has members on many.)

    And where nobody has named the job, one that has no seat for a newcomer with other arguments is another job, and so is
    one that may have one node. That bars no node which had a place in it, or whose slot has one.
    """
    who, state = held.who, held.view.state
    mine, settings = who.profile, who.settings
    if state is None or who.node in state.seats:
        return {}
    bars = settings.same_program is Comparison.ARGUMENTS and bool(mine.arguments) and not _had_a_place(held, state)
    is_of_one, is_full = state.limits.max_nodes == 1, state.complete and state.fills_up
    bars = bars and (is_of_one or is_full)
    if not (bars or mine.has_loopback or state.with_loopback):
        return {}
    found = dict[Node, Why]()
    for node, seat in state.seats.items():
        its = seat.profile
        if node.slot == who.node.slot or seat.status in AWAY:
            continue
        many = its.has_loopback + mine.has_loopback
        if its.host != mine.host and (many == 1 or (many == 2 and settings.leased)):
            found[node] = Why.LOOPBACK
        elif bars and its.role == mine.role and (is_of_one or its.arguments not in ("", mine.arguments)):
            found[node] = Why.ARGUMENTS
    return found


def barred_by(ctx: Context) -> Mapping[Node, Why]:
    """Return those of them that may live."""
    return {node: why for node, why in barring(ctx.held).items() if node not in ctx.dead}


def _had_a_place(held: Held, state: RendezvousState) -> bool:
    """Return True if this node was a member or a spare of this job, or an agent of its slot is."""
    was = held.past.returns or held.past.mine is not None or held.past.spare_at is not None
    return was or any(node.slot == held.who.node.slot for node in state.seats)


def _is_barred(why: Why) -> Callable[[Context, RendezvousState], bool]:
    return lambda ctx, state: _first_reason(ctx) is why and ctx.now >= ctx.lives_at(Fact.BARRED)


def _first_reason(ctx: Context) -> Why | None:
    return next(iter(barred_by(ctx).values()), None)


def _loopback(ctx: Context, state: RendezvousState) -> str:
    other, its, mine = _barrier(ctx, state)
    named = f"{other} on {its.host} has the address {its.endpoint.address}"
    return f"{named}, this node on {mine.host} has {mine.endpoint.address}"


def _other_arguments(ctx: Context, state: RendezvousState) -> str:
    other, its, _ = _barrier(ctx, state)
    if state.limits.max_nodes == 1:
        return f"{other} runs {its.program} in a job of one node"
    return f"{other} runs {its.program} with other arguments, and its job is complete"


def _barrier(ctx: Context, state: RendezvousState) -> tuple[Node, Profile, Profile]:
    """Return who keeps me out, what it says of itself, and what I say."""
    other = next(iter(barred_by(ctx)))
    return other, state.seats[other].profile, ctx.held.who.profile


# --- this node itself


def _often(ctx: Context, state: RendezvousState) -> str:
    limit = ctx.settings.max_node_failures
    assert limit is not None
    if ctx.fails_too_often:
        return f"it was the first cause of {limit.failures} failures within {limit.within:g} s"
    return f"it was lost and started again {limit.failures} times within {limit.within:g} s"


REFUSALS = (
    Refusal(Why.LIMITS, lambda ctx, state: state.limits != ctx.settings.limits, _other_limits),
    Refusal(Why.UNFIT, lambda ctx, state: ctx.fails_too_often or ctx.was_lost_too_often, _often),
    Refusal(
        Why.BEHIND,
        _is_behind,
        lambda ctx, state: f"the last start of {ctx.me.slot} is dead, and was later than this one by its clock",
    ),
    Refusal(Why.SUPERSEDED, _is_superseded, lambda ctx, state: f"a later start of {ctx.me.slot} has taken its seat"),
    Refusal(Why.PROGRAM, lambda ctx, state: _stranger(ctx, state) is not None, _another_program),
    Refusal(Why.LOOPBACK, _is_barred(Why.LOOPBACK), _loopback),
    Refusal(Why.ARGUMENTS, _is_barred(Why.ARGUMENTS), _other_arguments),
)
