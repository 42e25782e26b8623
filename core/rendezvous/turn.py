"""One step of an operation: the next ask of the backend.

A turn makes an edit into the state to write, judges this node's own write before it is sent, and cuts a wait into its parts:
the change of the register, and the next look at heartbeats. Only the client (`client.step`) calls `turn`.
"""

from __future__ import annotations

import math

from ..values import evolve, frozen
from ..violation import Finding, Violation
from ..world import Node, Why
from .actions import Arrive, Done, Edit, Fail, Finish, Outcome, Proposal, Sync, Together
from .apply import apply
from .context import Context, Found, Handler, Held, Operation, Trouble, context, stranded
from .explain import explain, named
from .handlers import join, watch
from .lives import Deed, Restore, restored, verify_restore
from .refusals import barring, words
from .state import RendezvousState, Seat, Status, Token, blank
from .verify import verify, verify_step

_WORKING = (Status.IN, Status.DONE, Status.GONE)
"""The members whose workers run, or have succeeded."""
RESTORE_JITTER_S = 0.02
"""The survivors of a lost store spread their offers to restore it over this span: one write does it."""


@frozen
class Write:
    """Set the register to `state` if `token` still names what it holds (None: if it holds nothing). `edit` made the state,
    for the programs that tell what happened."""

    state: RendezvousState
    token: Token | None
    edit: Deed


@frozen
class Wait:
    """Return when the register is no longer what `token` names, or at `until`; at once if that is past. If the client sets
    `arm`, the waiter does not wait yet and is to be given the token."""

    token: Token | None
    until: float
    arm: bool = False


@frozen
class Observe:
    """Read the heartbeat counters of these nodes."""

    nodes: tuple[Node, ...]


@frozen
class Propose:
    """Leave this proposal where other nodes find it, and say how many nodes have proposed the same."""

    proposal: Proposal


@frozen
class Gather:
    """Read what these nodes propose, and who proposes to enter in this era."""

    nodes: tuple[Node, ...]
    entering: Token | None = None


@frozen
class Return:
    """The operation is done."""

    outcome: Outcome


@frozen
class Raise:
    """The operation cannot be done."""

    failure: Fail
    text: str = ""
    broken: Finding | None = None
    """The property that the store's register breaks, or that what was to be written would break."""


Decision = Write | Wait | Observe | Propose | Gather | Return | Raise


def turn(operation: Operation, held: Held, now: float, decides: Handler | None = None) -> Decision:
    """Return the next ask. Total: a store's nonsense and a bug of this program both end as `Raise`, with nothing written.

    `decides` is asked in the place of the operation's handler, in a simulated world with handlers of its user's.
    """
    doubt = held.doubt
    unsure = held.view.held_at is None or doubt.unsure_at is not None or doubt.woke_at is not None
    if unsure and held.trouble:
        return _raise(held.trouble)
    ctx = context(operation, held, now)
    deadline = _deadline(operation, ctx)
    if (unsure and now >= deadline) or _given_up(operation, ctx, deadline):
        return _raise(held.trouble) if held.trouble else Raise(Fail(Why.UNCONFIRMED), _why_stranded(ctx))
    if unsure:
        return Wait(held.token, now)
    if isinstance(doubt.instead, Found):
        return _restore(ctx, doubt.instead)
    match (decides or operation.handler)(ctx, deadline):
        case Sync(until):
            return _wait(ctx, until)
        case Finish(outcome):
            return Return(outcome)
        case Fail() as failure:
            return Raise(failure, _explained(failure, ctx))
        case edit:
            return _raise(held.trouble) if held.trouble else _edit(ctx, edit, deadline)


def _deadline(operation: Operation, ctx: Context) -> float:
    """Return the operation's deadline. A spare has none; it starts afresh when there is room. A node that watches has one at
    the exit barrier only."""
    if operation.handler is watch and ctx.status is not Status.DONE:
        return math.inf
    if operation.handler is not join or ctx.held.past.spare_at is None:
        return operation.deadline
    return math.inf if ctx.spare else max(operation.deadline, ctx.held.past.spare_at + ctx.settings.join_timeout)


def _given_up(operation: Operation, ctx: Context, deadline: float) -> bool:
    """Return True if the store has not answered for as long as a join may take, or until the operation's deadline. A node
    that watches goes on watching: neither running workers nor a reserve are stopped for that, unless all other members are
    dead and the workers stand still. A silence counts only if I asked in its second half: my loop may have stood still, and
    the store may be back."""
    silent_since = ctx.held.contact.silent_since
    if silent_since is None or (_runs(operation, ctx) and not stranded(ctx.held, ctx.now)):
        return False
    silence = ctx.now - silent_since
    lasts = silence >= ctx.settings.join_timeout and ctx.held.contact.tried_at >= ctx.now - silence / 2
    return lasts or ctx.now >= deadline


def _runs(operation: Operation, ctx: Context) -> bool:
    return operation.handler is watch and ctx.status in (Status.IN, Status.RESERVE)


def _why_stranded(ctx: Context) -> str:
    """Return why this node stops its workers, if it does; else nothing."""
    state, others = ctx.state, stranded(ctx.held, ctx.now)
    if state is None or not others or not _runs(ctx.operation, ctx):
        return ""
    still_s = ctx.now - (ctx.held.past.still_since or ctx.now)
    dead = f"the other nodes of round {state.round} are dead ({named(state, others)})"
    return f"{dead}, and no worker here has made progress for {still_s:.0f} s"


def _wait(ctx: Context, until: float) -> Decision:
    """Wait for the register; read heartbeats first if that is due. Where nobody is watched, a silent store is asked whether
    it answers again."""
    watched = _watched(ctx)
    if not watched:
        return Wait(ctx.held.token, until if ctx.held.contact.silent_since is None else ctx.now)
    sightings = ctx.held.view.sightings
    read_at = sightings.read_at
    asked_all = not [node for node in watched if node not in sightings.of]
    look_at = read_at + ctx.settings.keep_alive_interval if asked_all and read_at is not None else ctx.now
    return Observe(watched) if ctx.now >= look_at else Wait(ctx.held.token, min(until, look_at))


def _watched(ctx: Context) -> tuple[Node, ...]:
    """Return the nodes whose heartbeats this node reads. The coordinator reads all, the others read the coordinator's, and
    those of the nodes that they suspect, or that had no heartbeat when they read last. When the coordinator is silent for
    half a TTL, or somebody is dead, the stand-ins read all, and the others read the stand-ins' too: all nodes that read all
    would keep a store busy for minutes."""
    state, me = ctx.state, ctx.me
    if state is None or state.closed or ctx.seat is None:
        return (ctx.later,) if ctx.later else tuple(barring(ctx.held))
    first = ctx.coordinator
    is_well = first is not None and not _is_silent(ctx, first) and not ctx.dead
    if first is not None and first != me and is_well:
        unheard = [node for node, seen in ctx.held.view.sightings.of.items() if seen.counter is None]
        besides = {*ctx.held.view.suspects, *unheard} - {first, me}
        return (first, *[node for node in state.present if node in besides]) if besides else (first,)
    stand_ins = state.stand_ins
    if first == me or me in stand_ins or all(_is_silent(ctx, node) for node in stand_ins):
        return tuple([node for node in state.present if node != me])
    those = {state.first, first, *stand_ins, *ctx.held.view.suspects, *ctx.dead} - {me}
    return tuple([node for node in state.present if node in those])


def _is_silent(ctx: Context, node: Node) -> bool:
    return ctx.held.view.sightings.silence(node) >= ctx.settings.ttl / 2


def _edit(ctx: Context, edit: Edit, deadline: float) -> Decision:
    """Write the edit; or, where many nodes have the same to write, propose it. The last of them writes for all. If that node
    is gone, the first node that loses its patience writes."""
    state, proposed = ctx.state, ctx.held.view.proposed
    if isinstance(edit, Arrive) and ctx.seat is None:
        return _enter(ctx, edit, deadline)
    if state is None or not isinstance(edit, Arrive | Done) or ctx.crowd <= ctx.settings.helping_above:
        return _write(ctx, edit)
    proposal = Proposal(state.era, edit)
    if proposed is None or proposed.proposal != proposal:
        return Propose(proposal)
    awaited = sum(state.census[status] for status in _WORKING) if state.complete else state.target
    is_last = proposed.count >= awaited
    if not is_last and ctx.now < (until := proposed.at + ctx.patience_of_many):
        return _wait(ctx, min(until, deadline))
    if proposed.others is None:
        return Gather(ctx.alike)
    return _write(ctx, Together({**proposed.others, ctx.me: proposal}))


def _enter(ctx: Context, edit: Arrive, deadline: float) -> Decision:
    """Write the arrival of a node without a seat; or, where many may be about to enter, propose it. The node whose proposal
    completes the round, or its minimum, writes for all, and so does the first that loses its patience. Who has proposed in
    this era writes its proposal, and no arrival beside it: that would leave a proposal behind which still counts."""
    state, mine = ctx.state, ctx.entering
    if state is None or (mine is None and not ctx.enters_with_many):
        return _write(ctx, edit)
    proposal = Proposal(state.era, edit, enters=True)
    if mine is None or mine.proposal != proposal or not mine.count:
        return Propose(proposal)
    lacking = state.limits.min_nodes - state.census[Status.IN]
    is_last = mine.count >= ctx.entrants or mine.count >= lacking > 0
    if not is_last and ctx.now < (until := mine.at + ctx.patience_to_enter(mine.count)):
        return _wait(ctx, min(until, deadline))
    return Gather((), state.era) if mine.others is None else _write(ctx, Together({**mine.others, ctx.me: proposal}))


def _write(ctx: Context, edit: Edit) -> Decision:
    before = ctx.state or blank(ctx.held.who.nonce, ctx.settings.limits, ctx.settings.first_target)
    after = _signed(before, apply(before, edit, ctx.me), ctx)
    try:
        verify(after, before)
        verify_step(before, after)
    except Violation as violation:
        return _not_written(edit, ctx, violation)
    return Write(after, ctx.held.token, edit)


def _signed(before: RendezvousState, after: RendezvousState, ctx: Context) -> RendezvousState:
    """Return the state with what this node's rank policy makes of the world, if this write completes it."""
    policy = ctx.held.who.policy
    completed = after.complete and (not before.complete or after.round > before.round)
    return evolve(after, policy=policy(after.world)) if policy and completed else after


def _restore(ctx: Context, found: Found) -> Decision:
    """Write back the register that counts, before anything else; the first survivor does it."""
    token = found.state.token if found.state else None
    at = found.at + ctx.operation.jitter * RESTORE_JITTER_S
    if ctx.now < at:
        return Wait(token, at)
    deed = Restore(found.restore, ctx.held.who.nonce.nonce)
    try:
        after = restored(deed, found.state)
        verify_restore(deed, found.state, after)
    except (Violation, ValueError) as violation:  # who forges a register may choose the last epoch that there is
        return _not_written(deed, ctx, violation)
    return Write(after, token, deed)


def _not_written(deed: Deed, ctx: Context, error: Violation | ValueError) -> Raise:
    broken = error.finding if isinstance(error, Violation) else None
    return Raise(Fail(Why.ILLEGAL), f"not written: {deed} of {ctx.me} breaks {error}", broken)


def _raise(trouble: Trouble) -> Raise:
    return Raise(Fail(trouble.why), trouble.text, trouble.broken)


def _explained(failure: Fail, ctx: Context) -> str:
    state = ctx.state
    if told := words(failure.why, ctx):
        return told
    if failure.why is Why.TIMEOUT and state is not None and ctx.seat is None and not state.complete:
        seat = Seat(Status.IN, state.next_order, ctx.profile)  # I have given it up, but I did come
        return explain(evolve(state, seats={**state.seats, ctx.me: seat}), ctx.me)
    return explain(state, ctx.me)
