"""The laws of how agents end, and of what they write, wait for and give up (O, B5, L6, L7): each by the agent's own past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..group import Phase, Stopped
from ..group.state import KILL_S, Closed, Drained, Gone, Over, Refused, Unawaited
from ..rendezvous import (
    Arrive,
    Close,
    Complete,
    Deed,
    Drain,
    End,
    Evict,
    Held,
    Leave,
    Overdue,
    Proceed,
    RendezvousState,
    Status,
)
from ..rendezvous.context import GROWN_RUNS, Fact, Handler, dead, gone
from ..rendezvous.handlers import close, drain, join, leave, linger, watch
from ..rendezvous.operations import LINGER_S
from ..rendezvous.state import AWAY, COOLDOWN_MAX_S, Failing
from ..world import Node, Verdict, Why
from .facts import Decided, GaveUp, Operated, Stepped, WaitsForever
from .law import ARMED, EXCUSED, Answers, law
from .pasts import NEVER, SLACK_S, Past, has_lasted, is_spare
from .refusals import denied, ignored, is_gone, is_needed, unjust
from .register_laws import NOT_TAKEN, units

if TYPE_CHECKING:
    from .judge import Judge

# --- how an agent ends


@law("an agent ends", Phase.ENDED)
def O1(judge: Judge, it: Stepped) -> Answers:
    """An agent ends by a verdict that it has read, by a signal that it was sent, by its barrier time-out, by a refusal, or
    because its check found it unfit or it cannot start its workers."""
    yield ARMED
    after, past = it.after, judge.past(it.after.node)
    match after.outcome:
        case Verdict() as verdict:
            justified = verdict in past.verdicts()
        case Stopped(signum):
            justified = signum in past.signals
        case Drained():
            justified = past.gone_by < NEVER and not past.unfit
        case Unawaited():
            justified = has_lasted(past.awake(past.done_at, it.at), after.settings.barrier_timeout)
        case Refused(why):
            held_back = it.before.phase is Phase.HELD and why is Why.UNCONFIRMED
            late = held_back and has_lasted(it.at - past.ready_at, after.settings.start_timeout + after.settings.ttl)
            unfit = (past.unfit or past.unstartable) and why is Why.UNFIT
            justified = why in past.refusals or late or unfit
        case _:
            justified = False
    if not justified:
        yield f"{after.node} ends without cause: {after.outcome}"


@law("an agent ends that was told to go", Phase.ENDED)
def O3(judge: Judge, it: Stepped) -> Answers:
    """A node that was told to go ends when the register knows it, after `leave_timeout`, or at a signal that comes while it
    leaves."""
    if it.before.phase is not Phase.LEAVING:
        return
    yield ARMED
    past = judge.past(it.after.node)
    knows = past.gone or past.verdicts() or past.refusals or isinstance(it.event, Gone | Closed | Refused)
    waited = has_lasted(it.at - past.leaves_since, it.after.settings.leave_timeout) or it.at >= past.gone_by
    if not (knows or waited or past.is_hurried):
        yield f"{it.after.node} ends before the register knows that it leaves"


@law("a drained node begins to leave", Stepped)
def O7(judge: Judge, it: Stepped) -> Answers:
    """A drained node leaves its world only when all its workers that live are ready, at its deadline − `grace` − 1 s, or
    when its round is over."""
    if not it.after.is_drained or it.before.is_drained:
        return
    yield ARMED
    past, before = judge.past(it.after.node), it.before
    is_over = before.phase not in (Phase.RUNNING, Phase.BARRIER) or isinstance(it.event, Over)
    is_time = it.at >= past.gone_by - before.settings.grace - KILL_S - SLACK_S
    are_ready = bool(past.ready) and it.after.running <= past.ready
    if not (is_over or is_time or are_ready):
        yield f"{it.after.node} leaves before its workers are ready, its time has come or its round is over"


@law("a drained node ends", Phase.ENDED)
def O8(judge: Judge, it: Stepped) -> Answers:
    """A drained node is gone by its deadline, unless its agent stood still after it was given notice."""
    if not it.after.is_drained:
        return
    yield ARMED
    past, is_drained = judge.past(it.after.node), isinstance(it.after.outcome, Drained | Refused)
    if is_drained and judge.excused.get(it.after.node, -NEVER) > past.noticed_at:
        yield EXCUSED
    elif is_drained and it.at > past.gone_by + SLACK_S:
        yield f"{it.after.node} is gone {it.at - past.gone_by:g} s after its deadline"


# --- what an agent gives up


@law("a node waits without a deadline", WaitsForever, is_traced=False)
def L6(judge: Judge, it: WaitsForever) -> Answers:
    """Every wait has a deadline and a reason that can be shown: no node spins, and only a spare joins without a deadline,
    which is none while the nodes that wait make a unit with it, and nothing keeps them out."""
    yield ARMED
    if it.handler is join and not is_spare(it.held):
        yield f"{it.held.who.node} waits to join without end, and is no spare"
    if it.handler is join and it.held.view.state is not None and is_idle(it.held.view.state, it.held.who.node):
        yield f"{it.held.who.node} waits to join without end, though a unit of nodes is there"


def is_idle(state: RendezvousState, node: Node) -> bool:
    """Return True if this node waits with others that make a unit with it, and neither a drained node nor one that is done
    keeps them out."""
    if _waits_for_drained(state) or state.those(Status.DONE, Status.GONE):
        return False
    return any(node in unit for unit in _coming(state))


def _is_of_join(it: GaveUp) -> bool:
    return it.handler is join and it.why in (Why.TIMEOUT, Why.UNCONFIRMED)


@law("a join is given up", GaveUp)
def L7(judge: Judge, it: GaveUp) -> Answers:
    """A spare does not give up: a join times out only for a node that was awake, and no spare, for `join_timeout`."""
    if not _is_of_join(it):
        return
    yield ARMED
    past = judge.past(it.held.who.node)
    waited = past.waited(it.at)
    if not has_lasted(max(waited, _silence(past, it)), it.held.who.settings.join_timeout):
        what = "is a spare, and" if past.is_spare else f"has waited for {waited:g} s, awake and no spare, and"
        yield f"{it.held.who.node} {what} gives up"


@law("an operation is given up", GaveUp, Decided, Operated)
def O2(judge: Judge, it: GaveUp | Decided | Operated) -> Answers:
    """A refusal has its reason in the register or the settings, and what is UNCONFIRMED had its time or a silent store, for
    which no node that is IN or RESERVE stops its workers unless it is stranded; no node takes a seat beside another
    program, none is refused its own drain, and an operator is refused only what the register refuses."""
    if isinstance(it, Operated):
        yield from _of_operator(it)
    elif isinstance(it, Decided):
        yield from ignored(it)
    elif not _is_of_join(it):
        yield ARMED
        if it.why is Why.UNCONFIRMED:
            yield from _of_silence(judge.past(it.held.who.node), it)
        yield from unjust(it)


def _of_operator(it: Operated) -> Iterator[str]:
    """Judge what an operator wants to write, or why it is refused. It has no past."""
    yield from denied(it)
    state, answer = it.state, it.answer
    if state is None or not isinstance(answer, Drain):
        return
    node = answer.node
    if is_needed(state, node) and not it.insists:
        yield f"an operator drains {node}, which the job needs, and does not insist"
    if it.names not in (None, node):
        yield f"an operator drains {node}, and was to drain {it.names}"
    if is_gone(state, node):
        yield f"an operator drains {node}, which is gone"


def _stands_without(state: RendezvousState, node: Node) -> bool:
    """Return True if a world stands in which no worker of this node is awaited."""
    seat = state.seats.get(node)
    return state.complete and (seat is None or seat.status is not Status.IN)


def _of_silence(past: Past, it: GaveUp) -> Iterator[str]:
    """Judge an operation that is given up because the store is silent."""
    held, at, settings, silence = it.held, it.at, it.held.who.settings, _silence(past, it)
    if it.handler is watch and _runs(held):
        if not (_is_stranded(held, at) and has_lasted(silence, settings.join_timeout)):
            yield f"{held.who.node} stops its workers because the store is silent"
        return
    spans: Mapping[Handler, tuple[float, float]] = {
        leave: (past.leaves_since, settings.leave_timeout),
        close: (past.closes_since, settings.close_timeout),
        drain: (min(past.drains[:1], default=NEVER), settings.close_timeout),
        watch: (past.done_at, settings.barrier_timeout),
        linger: (past.ended_at, LINGER_S),
    }
    since, span = spans.get(it.handler, (NEVER, 0.0))
    if not (has_lasted(silence, settings.join_timeout) or has_lasted(past.awake(since, at), span)):
        yield f"{held.who.node} gives {it.handler.__name__} up too early"


def _is_stranded(held: Held, at: float) -> bool:
    """Return True if all others of the world are dead by the word of their links, and the workers here stand still."""
    seats = held.view.state.seats if held.view.state else {}
    others = {node for node, seat in seats.items() if seat.status in (Status.IN, Status.DONE, Status.RESERVE)}
    dead = {node for node, each in held.view.suspects.items() if each.is_gone}
    since = held.past.still_since
    stands = since is not None and has_lasted(at - since, held.who.settings.join_timeout)
    return stands and {held.who.node} < others and others - {held.who.node} <= dead


def _runs(held: Held) -> bool:
    seat = held.view.state.seats.get(held.who.node) if held.view.state else None
    return seat is not None and seat.status in (Status.IN, Status.RESERVE)


def _silence(past: Past, fact: GaveUp) -> float:
    """Return for how long the store has been silent: 0 if it was not asked in the second half of that time."""
    silence = past.awake(fact.answered_at, fact.at)
    return silence if fact.tried_at >= fact.at - silence / 2 else 0.0


# --- what an agent writes


def _open(state: RendezvousState) -> object:
    return None if state.complete or state.closed else (state.life, state.round)


def _quorum(state: RendezvousState) -> object:
    forms = _open(state)
    return None if forms is None or state.quorum_at is None else (forms, state.quorum_at)


def _newcomer(state: RendezvousState) -> object:
    waits = state.complete and not state.closed and state.wait_list
    return (state.life, state.round, state.party_is_whole) if waits else None


def _grown(state: RendezvousState) -> object:
    grew = state.complete and not state.closed and state.ended is not None and state.ended.why is Why.UPSCALE
    return (state.life, state.round) if grew else None


def _after_losses(state: RendezvousState) -> object:
    may_count = state.complete and not state.closed and state.limits.give_up_after and not state.progressed
    return (state.life, state.round) if may_count else None


def _has_advanced(held: Held) -> bool:
    """Return True if a worker of this node has passed all steps that were reached before its world, which stands."""
    state = held.view.state
    return held.past.advanced_in is not None and state is not None and held.past.advanced_in == state.world_id


def _aside(me: Node, state: RendezvousState) -> object:
    seat = state.seats.get(me)
    return (state.life, seat.order) if seat is not None and seat.status is Status.ASIDE else None


@law("a chore is done for which a span must be over", Decided)
def O4(judge: Judge, it: Decided) -> Answers:
    """Overdue, the last call, an upscale and progress by age come no earlier than their span after the node saw the fact, no
    upscale while a drained node is IN or for less than a unit, and the next upscale, unless it fills the job, no earlier
    than 4 `upscale_after` after the node saw the round of the last one, or half of `join_timeout` if that is shorter."""
    held, me, at, past = it.held, it.held.who.node, it.at, judge.past(it.held.who.node)
    match it.edit:
        case Overdue():
            yield ARMED
            if not has_lasted(seen := past.seen(_open, at), held.who.settings.overdue_timeout):
                yield f"{me} waits no longer for the expected, {seen:g} s after it saw the round"
        case Complete():
            yield ARMED
            if not has_lasted(seen := past.seen(_quorum, at), last_call(held)):
                yield f"{me} ends the last call {seen:g} s after it saw the quorum"
        case Proceed():
            yield ARMED
            is_old = has_lasted(seen := past.seen(_after_losses, at), held.who.settings.progress_after)
            if not (is_old or _has_advanced(held)):
                yield f"{me} says that a round makes progress, {seen:g} s after it saw it, and no worker of it has advanced"
        case End(_, Why.UPSCALE):
            yield ARMED
            if held.view.state is not None and _waits_for_drained(held.view.state):
                yield f"{me} ends the round for a newcomer, though a drained node is at work in it"
            if held.view.state is not None and not _coming(held.view.state):
                yield f"{me} ends the round for newcomers that make no unit"
            if not has_lasted(past.seen(_newcomer, at), grows_after := _grows_after(held)):
                yield f"{me} ends the round for a newcomer that it has not seen for {grows_after:g} s"
            if (stays := _stays(held)) and not has_lasted(past.seen(_grown, at), stays):
                yield f"{me} ends the round for a newcomer, and it began for another one less than {stays:g} s ago"
        case _:
            pass


def _grows_after(held: Held) -> float:
    """Return how long a newcomer waits: for the rest of its party too, if that is not there."""
    whole = held.view.state is None or held.view.state.party_is_whole
    after = held.who.settings.upscale_after
    return after if whole else max(after, held.who.settings.party_timeout)


def _stays(held: Held) -> float:
    """Return how long a round runs that began for a newcomer, before it ends for others that do not fill the job."""
    state = held.view.state
    if state is None or _grown(state) is None:
        return 0.0
    here = [seat for seat in state.seats.values() if seat.status not in (Status.LEAVING, Status.ASIDE)]
    is_full = len(here) >= state.limits.max_nodes
    return 0.0 if is_full else min(GROWN_RUNS * held.who.settings.upscale_after, held.who.settings.join_timeout / 2)


def last_call(held: Held) -> float:
    """Return for how long this node waits for more nodes, once there are enough."""
    first, state = held.who.settings.first_call_timeout, held.view.state
    is_first = state is not None and not state.ended
    return first if first is not None and is_first else held.who.settings.last_call_timeout


def _waits_for_drained(state: RendezvousState) -> bool:
    """Return True if a drained node will end the round itself, once its workers are ready."""
    return any(seat.status is Status.IN and seat.notice for seat in state.seats.values())


def _coming(state: RendezvousState) -> Sequence[Sequence[Node]]:
    """Return the whole units of the nodes that wait, for which there is room."""
    limits, taken = state.limits, sum(seat.status not in NOT_TAKEN for seat in state.seats.values())
    return units(state, state.those(Status.WAITING))[: max(limits.max_nodes - taken, 0) // limits.node_unit]


@law("a node that is not the coordinator does a chore", Decided)
def O17(judge: Judge, it: Decided) -> Answers:
    """A node leaves a chore that is due to the first seated node that is not dead, and does it itself only `patience`
    later, or twice that if it has left; but at once it evicts itself, and on evidence of a link all that are dead."""
    held, state, me = it.held, it.held.view.state, it.held.who.node
    over = _due_for(judge.past(me), held, it.edit, it.at)
    if (
        state is None
        or over is None
        or next((node for node in state.present if node not in dead(held, it.at)), me) == me
    ):
        return
    yield ARMED
    seat = state.seats.get(me)
    patience = held.who.settings.patience * (2 if seat is not None and seat.status in AWAY else 1)
    if seat is None or not has_lasted(over, patience):
        yield f"{me} does the coordinator's chore ({it.edit}), {over:g} s after it was due"


def _due_for(past: Past, held: Held, edit: Deed, at: float) -> float | None:
    """Return for how long this chore was due; None if it is none."""
    settings = held.who.settings
    match edit:
        case Overdue():
            return past.seen(_open, at) - settings.overdue_timeout
        case Complete():
            return past.seen(_quorum, at) - last_call(held)
        case Proceed():
            old = past.seen(_after_losses, at) - settings.progress_after
            return max(old, _seen_for(held, Fact.ADVANCE, at)) if _has_advanced(held) else old
        case End(_, Why.UPSCALE):
            grown = past.seen(_grown, at) - stays if (stays := _stays(held)) else NEVER
            return min(past.seen(_newcomer, at) - _grows_after(held), grown)
        case Evict(nodes) if held.who.node not in nodes and gone(held, at).isdisjoint(nodes):
            return _seen_for(held, Fact.DEAD, at)
        case _:
            return None


def _seen_for(held: Held, fact: Fact, at: float) -> float:
    """Return for how long this node has seen a fact that is not in the register, by its own memory."""
    span = held.view.spans.get(fact)
    return at - span[1] if span else -NEVER


@law("a node leaves", Decided)
def O5(judge: Judge, it: Decided) -> Answers:
    """A node leaves only when it was told to, after the time of its join or of its exit barrier, or because it cannot start
    its workers and the job need not end for it."""
    me = it.held.who.node
    if isinstance(it.edit, Leave | Drain):
        yield ARMED
    if isinstance(it.edit, Leave) and not _may_leave(judge.past(me), it.held, it.at):
        yield f"{me} leaves, and nobody has asked it to"
    if isinstance(it.edit, Drain) and it.edit.node != me:
        yield f"{me} gives another node notice, {it.edit.node}"


def _may_leave(past: Past, held: Held, at: float) -> bool:
    """Return True if the agent was told to go, its join has had its time, or its exit barrier."""
    if past.leaves_since <= at or has_lasted(past.waited(at), held.who.settings.join_timeout):
        return True
    state = held.view.state
    if past.unstartable and state and (_stands_without(state, held.who.node) or not is_needed(state, held.who.node)):
        return True
    seat = state.seats.get(held.who.node) if state else None
    done = seat is not None and seat.status is Status.DONE
    return done and has_lasted(past.awake(past.done_at, at), held.who.settings.barrier_timeout)


@law("a round is ended as fenced, or a job closed", Decided)
def O6(judge: Judge, it: Decided) -> Answers:
    """FENCED is written by a node that was told of the world and runs no workers, CANNOT_START by one that could not
    start and without which the others are too few, and a verdict names the round that its writer holds, and the writer."""
    me, past = it.held.who.node, judge.past(it.held.who.node)
    match it.edit:
        case End(_, Why.FENCED):
            yield ARMED
            if me in judge.running or not _was_told(past, it.held.view.state):
                yield f"{me} ends a round as fenced whose workers it runs, or that it was never told of"
        case Close(verdict):
            yield ARMED
            if (verdict.by, verdict.round) != (me, it.held.view.state.round if it.held.view.state else 0):
                yield f"{me} closes the job in the name of {verdict.by}, or of round {verdict.round}"
            if verdict.why is Why.CANNOT_START and not past.unstartable:
                yield f"{me} closes the job because of a program that it could start"
            state = it.held.view.state
            can_go_on = state is not None and (_stands_without(state, me) or not is_needed(state, me))
            if verdict.why is Why.CANNOT_START and can_go_on:
                yield f"{me} closes a job that has its minimum without it"
        case _:
            pass


def _was_told(past: Past, state: RendezvousState | None) -> bool:
    """Return True if the agent was told of the world that stands, or of a later one of its life."""
    world = state.world_id if state else None
    return world is not None and any(each.life == world.life and each.round >= world.round for each in past.worlds)


@law("a node that is set aside arrives", Decided)
def O9(judge: Judge, it: Decided) -> Answers:
    """A node that is ASIDE arrives no earlier than its cool-down after it saw that."""
    held = it.held
    seat = held.view.state.seats.get(held.who.node) if held.view.state else None
    if not isinstance(it.edit, Arrive) or seat is None or seat.status is not Status.ASIDE:
        return
    yield ARMED
    cooldown_s = seat.failing.cooldown_s if seat.failing else 0.0
    seen = judge.past(held.who.node).seen(partial(_aside, held.who.node), it.at)
    if cooldown_s and not has_lasted(seen, cooldown_s):
        yield f"{held.who.node} comes back {seen:g} s after it was set aside, too soon"


@law("a member of a round that may be fruitless ends it", Decided)
def O14(judge: Judge, it: Decided) -> Answers:
    """A member ends no round for a loss or a newcomer that it has seen for `progress_after`, or in which a worker of its own
    has advanced, and twice its patience more, before the register says that this round makes progress."""
    held, state, settings = it.held, it.held.view.state, it.held.who.settings
    if state is None or held.past.mine != state.world_id or not isinstance(it.edit, Evict | End):
        return
    if _after_losses(state) is None or (isinstance(it.edit, End) and it.edit.why is not Why.UPSCALE):
        return
    yield ARMED
    me, patience = held.who.node, 2 * settings.patience + SLACK_S
    seen = judge.past(me).seen(_after_losses, it.at)
    if seen > settings.progress_after + patience:
        yield f"{me} ends a round that is {seen:g} s old, and may still be a fruitless one"
    if (known := judge.past(me).knows(_has_advanced, it.at)) > patience:
        yield f"{me} ends a round in which a worker of it has advanced {known:g} s ago, and it may be a fruitless one"


@law("a node that counts its failures ends a round by one, or leaves for them", Decided, GaveUp)
def O15(judge: Judge, it: Decided | GaveUp) -> Answers:
    """A node that counts its failures tells with each, unless its cause is open, with how many the register charges it
    within the window, no more than the limit before this one; and at the limit for how long it is to be set aside: for the
    window, doubled for each time that it was; one that is to leave instead does not come back, and leaves once it alone
    is expected, or after `overdue_timeout`."""
    held, state = it.held, it.held.view.state
    limit = held.who.settings.max_node_failures
    seat = state.seats.get(held.who.node) if state is not None else None
    if limit is None or state is None or seat is None:
        return
    past = judge.past(held.who.node)
    times = past.failures(held.who.node)[-limit.failures :]
    is_over = len(times) == limit.failures and times[-1] - times[0] <= limit.within
    leaves = bool(limit.leaves) and is_over and not state.over_budget
    if isinstance(it, GaveUp):
        late = has_lasted(past.seen(_open, it.at), held.who.settings.overdue_timeout)
        if it.why is Why.UNFIT:
            yield ARMED
        if it.why is Why.UNFIT and not (leaves and (late or state.expected == (held.who.node,))):
            yield f"{held.who.node} leaves for its failures, at {times}, without a cause or too soon"
    elif isinstance(it.edit, Arrive) and seat.status is Status.EXPECTED and leaves:
        yield f"{held.who.node} comes back after its failures, at {times}, and is to leave"
    elif isinstance(it.edit, End) and it.edit.why is Why.FAILED:
        yield ARMED
        yield from _of_failing(past, held, it.edit.failing, [at for at in times if at >= it.at - limit.within])


def _of_failing(past: Past, held: Held, told: Failing | None, recent: Sequence[float]) -> Iterator[str]:
    """Judge what a node tells of its failures. `recent`: when those before the present one came, within the window."""
    limit, many = held.who.settings.max_node_failures, len(recent) + 1
    if (told is None) is past.asks_whose or limit is None:
        where = "here" if told is None else "open"
        yield f"{held.who.node} tells {told} of its failures, and the cause of this one is {where}"
    if told is None or limit is None:
        return
    is_aside = many >= limit.failures and not limit.leaves
    cooldown_s = min(limit.within * 2.0 ** past.asides(held.who.node), COOLDOWN_MAX_S) if is_aside else 0.0
    if (told.failures, told.cooldown_s) != (many, cooldown_s):
        yield f"{held.who.node} tells {told}, and has failed {many} times within {limit.within:g} s: {recent}"


@law("a failed round is ended, or one by a member that owes a failure", Decided)
def B5(judge: Judge, it: Decided) -> Answers:
    """Only a member whose worker failed in a round, or on the way into it, ends it as FAILED, and it ends it as nothing
    else unless a store forgot that."""
    me, state, owes = it.held.who.node, it.held.view.state, judge.past(it.held.who.node).owes
    if not isinstance(it.edit, End):
        return
    has_failed = it.edit.why is Why.FAILED
    if owes is not None or has_failed:
        yield ARMED
    if has_failed and state is not None and (me, state.world_id) not in judge.failures:
        yield f"{me} ends a round as failed, in which none of its workers failed"
    if not has_failed and owes and state and owes == state.world_id:
        yield f"{me} does not charge the failure of its worker in round {state.round}"
