"""The invariants of a state, and of a write.

Each has its number in docs/protocol.md, and the property tests use the same numbers. `verify` judges one state by itself.
`verify_step` judges two successive states: my own write before it is sent, and a state that I read exactly one version above
the one that I held. A violation is an exception with its number. A node that meets one writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from operator import attrgetter, lt

from ..values import evolve
from ..violation import Finding, check
from ..world import Ending, Node, Profile, Why
from .state import AWAY, BASE_MAX, MEMBERS, Ended, Limits, RendezvousState, Seat, Status, status_of

_slot = attrgetter("slot")


LEGAL = "legal"
"""In a state's memo: `verify` has judged this very object. It cannot change, so no other reader has to judge it again."""
LEGAL_AFTER = "legal after"
"""In a state's memo: the very object from which `verify_step` has judged the step to this one."""

MARKED = (Status.DONE, Status.GONE, Status.RESERVE, Status.ABSENT)


def verify(state: RendezvousState, known: RendezvousState | None = None) -> None:
    """Raise a Violation for the first invariant that this state breaks. Nodes that are the same, one by one, in a `known`
    state that was judged are not compared with each other again: of thousands that takes longest."""
    if LEGAL in state.memo:
        return
    check(_of_any(state, known if known is not None and LEGAL in known.memo else None))
    check(_of_complete(state) if state.complete else _of_open(state))
    state.memo[LEGAL] = True


def verify_step(before: RendezvousState, after: RendezvousState) -> None:
    """Raise a Violation for the first invariant that this write breaks. Both states must pass `verify`."""
    if after.memo.get(LEGAL_AFTER) is before:
        return
    check(_of_step(before, after))
    ended = after.ended if after.round > before.round else None
    check(_of_end(before, after, ended) if ended else _of_round(before, after))
    before.memo.pop(LEGAL_AFTER, None)  # or each state would keep all before it alive
    after.memo[LEGAL_AFTER] = before


def _of_any(state: RendezvousState, known: RendezvousState | None) -> Iterator[Finding]:
    orders = state.orders
    if not all(map(lt, orders, orders[1:])):
        yield "S5", f"orders are not unique and sorted: {orders}"
    drained = dict.fromkeys((*state.noticed, *state.those(Status.LEAVING)))
    unlike = [node for node in drained if _is_unlike_a_drain(state.seats[node], state.complete)]
    if unlike:
        yield (
            "V15",
            f"drained and still taken for a part of a round, or leaving without notice: {_names(tuple(unlike))}",
        )
    if vague := [node for node in state.those(Status.ASIDE) if not _is_failing(state.seats[node])]:
        yield "V17", f"set aside, and nothing says for how long: {_names(tuple(vague))}"
    if orders and orders[-1] >= state.next_order:
        yield "S5", f"order {orders[-1]} is not below the next one, {state.next_order}"
    present = state.present
    if (known is None or present != known.present) and len(set(map(_slot, present))) < len(present):
        yield "S8", f"two incarnations of one slot are seated: {[str(node) for node in state.seats]}"
    if len(state.base) > BASE_MAX:
        yield "R2", f"made from {len(state.base)} states, more than the {BASE_MAX} that count"
    if state.complete != (state.completed_in is not None):
        yield "R3", f"{'complete' if state.complete else 'open'}, but its world was completed in {state.completed_in}"
    if state.complete and state.provisional == (state.completed_in == state.life):
        how = "still" if state.provisional else "no longer"
        yield "R3", f"a world of {state.completed_in} stands, and this life {how} counts for what it was made from"
    if state.stale_before > state.version:
        yield "S7", f"proposals are void up to version {state.stale_before}, beyond this one, {state.version}"
    closed = state.closed
    succeeded = closed is not None and closed.ending is Ending.SUCCEEDED
    if succeeded and (not state.complete or state.census[Status.IN]):
        yield "S14", f"closed as succeeded while workers of {_names(state.participants)} still run"
    if succeeded and not state.finishing:
        yield "S14", "closed as succeeded though nobody has done anything"
    if state.generation > state.round:
        yield "V21", f"the generation of round {state.generation} is later than round {state.round}"
    if state.policy and not state.complete:
        yield "V13", "a policy of a world that does not stand"
    if (
        closed is not None
        and closed.why is Why.OPERATOR
        and (closed.ending is not Ending.CANCELLED or closed.by in state.seats)
    ):
        yield "V14", f"closed as {closed.ending.value} in an operator's name, by {closed.by}"
    gave_up = closed is not None and closed.why is Why.FRUITLESS
    limit = state.limits.give_up_after
    goes_round = 0 < limit <= len(state.fruitless) and state.failures <= state.limits.max_restarts
    if gave_up is not goes_round and (gave_up or closed is None):
        yield (
            "B6",
            f"{'closed' if gave_up else 'open'} with {len(state.fruitless)} fruitless rounds of {limit} in a row",
        )
    if state.fruitless:
        yield from _of_fruitless(state)
    if state.progressed and (state.fruitless or not limit):
        yield "B7", f"a round made progress, and {len(state.fruitless)} fruitless ones of {limit} count"
    excused = (Why.CANNOT_START, Why.FRUITLESS)
    failed = closed is not None and closed.ending is Ending.FAILED and closed.why not in excused
    if failed and (not state.over_budget or state.census[Status.EXPECTED]):
        budget = f"{state.failures} failures, {state.limits.max_restarts} restarts allowed"
        yield "B3", f"closed as failed within the budget or before everybody was back ({budget})"


def _of_fruitless(state: RendezvousState) -> Iterator[Finding]:
    """Judge if writes can have left these ends of fruitless rounds."""
    rounds, limits = [ended.round for ended in state.fruitless], state.limits
    if len(rounds) > limits.give_up_after:
        yield "B7", f"fruitless rounds {rounds}, and the job ends after {limits.give_up_after}"
    if not all(map(lt, rounds, [*rounds[1:], state.round])):
        yield "B7", f"fruitless rounds {rounds}, and this is round {state.round}"
    for ended in state.fruitless:
        if ended.why is not Why.UPSCALE and ended.why not in _counting_ends(limits):
            yield "B7", f"a round is fruitless that ended because {ended.why.value}"


def _counting_ends(limits: Limits) -> Collection[Why]:
    """Return why a round ends that is a fruitless one whoever has come back."""
    return (Why.LOST, Why.FENCED, Why.FAILED) if limits.counts_failures else (Why.LOST, Why.FENCED)


def _is_unlike_a_drain(seat: Seat, complete: bool) -> bool:
    if seat.status is Status.LEAVING or seat.notice is None:
        return (seat.status is Status.LEAVING) is not (seat.notice is not None)
    return not complete or seat.status not in MEMBERS


def _is_failing(seat: Seat | None) -> bool:
    return seat is not None and seat.failing is not None and seat.failing.is_too_often


def _of_complete(state: RendezvousState) -> Iterator[Finding]:
    size = len(state.members)
    if not state.limits.min_nodes <= size <= state.limits.max_nodes:
        yield "S4", f"a world of {size} nodes, outside {state.limits.min_nodes} to {state.limits.max_nodes}"
    if size % state.limits.node_unit:
        yield "S22", f"a world of {size} nodes, which are no whole units of {state.limits.node_unit}"
    if state.limits.segment and (mixed := _of_mixed_segments(state)):
        yield "S23", f"{_names(mixed)} are no segment of one {state.limits.segment}"
    if state.census[Status.EXPECTED]:
        yield "V1", f"complete while {_names(state.expected)} are still expected"
    if state.failures > state.limits.max_restarts:
        yield "B1", f"complete after {state.failures} failures with {state.limits.max_restarts} restarts allowed"


def _of_mixed_segments(state: RendezvousState) -> tuple[Node, ...]:
    """Return the members with the ranks of the first segment that has no value of the label, or several."""
    members, unit, key = state.members, state.limits.node_unit, (state.limits.segment,)
    for start in range(0, len(members), unit):
        values = {state.seats[node].profile.groups(key) for node in members[start : start + unit]}
        if len(values) > 1 or ("",) in values:
            return members[start : start + unit]
    return ()


def _of_open(state: RendezvousState) -> Iterator[Finding]:
    seated, limits = state.census, state.limits
    if marked := state.those(*MARKED):
        yield "V2", f"done or reserve in a round that has not begun: {_names(marked)}"
    if seated[Status.IN] + seated[Status.EXPECTED] > limits.max_nodes and not limits.segment:
        yield "V3", f"{len(state.seats) - seated[Status.WAITING]} seats for at most {state.limits.max_nodes} nodes"
    if state.closed:
        return
    if seated[Status.ASIDE] and state.makes(Status.IN, Status.EXPECTED) < limits.min_nodes:
        yield "V18", f"{_names(state.those(Status.ASIDE))} are set aside, and the others are too few"
    if seated[Status.WAITING] and (state.room > 0 or limits.segment):
        yield "V4", f"{_names(state.those(Status.WAITING))} wait while there is room for {state.room}"
    if state.quorate != (state.quorum_at is not None):
        yield "V5", f"quorum since version {state.quorum_at} with {seated[Status.IN]} of {state.limits.min_nodes} nodes"
    if state.made == limits.max_nodes and not seated[Status.EXPECTED]:
        yield "V6", "everybody is in and nobody expected, but the round is not complete"


def _of_step(before: RendezvousState, after: RendezvousState) -> Iterator[Finding]:
    if (after.life, after.job, after.limits) != (before.life, before.job, before.limits):
        yield "S7", f"another life, job or limits in one chain of versions: {after.life}, {after.job}, {after.limits}"
    completed = after.complete and (not before.complete or after.round > before.round)
    if completed and _could_be_larger(after):
        size, over = len(after.members), after.census[Status.WAITING]
        yield "V22", f"complete with {size} nodes, and {over} wait that would make it larger"
    if after.base != (() if completed else before.base):
        yield "R2", f"the base went from {before.base} to {after.base}"
    if completed and after.completed_in != after.life:
        yield "R3", f"completed in {after.life}, but its world says {after.completed_in}"
    if after.version != before.version + 1:
        yield "S7", f"version {after.version} after {before.version}"
    if before.closed:
        yield "S10", "a write after the verdict"
    if after.round not in (before.round, before.round + 1) or (after.round > before.round and not before.complete):
        yield "S6", f"round {after.round} after round {before.round} ({'complete' if before.complete else 'open'})"
    if after.round > before.round and (after.ended is None or after.ended.round != before.round):
        yield "S6", f"round {before.round} is over, but no end of it is on record"
    freed = [node for node in before.noticed if _is_freed(before.seats[node], after.seats.get(node))]
    if freed:
        yield "V16", f"the notice of {_names(tuple(freed))} is taken back, or comes later"
    if before.census[Status.ASIDE] or after.census[Status.ASIDE]:
        yield from _of_aside(before, after)
    if after.next_order < before.next_order or after.stale_before < before.stale_before:
        yield "S5", "an order or a bound on proposals went backwards"


def _could_be_larger(state: RendezvousState) -> bool:
    return state.makes(*MEMBERS, Status.WAITING) > len(state.members)


def _is_freed(was: Seat, now: Seat | None) -> bool:
    """Return True if a drained node that keeps its seat has more time than before, or is on its way out no longer."""
    if now is None or was.notice is None:
        return False
    returns = was.status is Status.LEAVING and now.status is not Status.LEAVING
    return now.notice is None or now.notice.deadline_s > was.notice.deadline_s or returns


def _of_aside(before: RendezvousState, after: RendezvousState) -> Iterator[Finding]:
    """Judge how nodes are set aside, and how they come back."""
    was, now = before.those(Status.ASIDE), after.those(Status.ASIDE)
    for node in now:
        if node not in was and not _may_be_set_aside(before, after, node):
            yield "V19", f"{node} is set aside without a cause, too soon, or though the job needs it"
    called = [node for node in was if node in after.seats and after.seats[node].status is Status.EXPECTED]
    here = after.those(Status.IN, Status.EXPECTED) if called else ()
    if any(len(after.fit([each for each in here if each != node])) >= after.limits.min_nodes for node in called):
        yield "V20", f"{_names(tuple(called))} are called back, and the others suffice"
    if any(seat.failing for node in was if node not in now and (seat := after.seats.get(node)) and not seat.notice):
        yield "V20", "who is set aside no longer is still charged with its failures"


def _may_be_set_aside(before: RendezvousState, after: RendezvousState, node: Node) -> bool:
    """Return True if this node has failed too often, everybody is back and nobody's loss explains that, and the others
    suffice."""
    ended = after.ended
    is_cause = ended is not None and ended.by == node and ended.why is Why.FAILED
    is_open = not before.complete and not after.census[Status.EXPECTED] and not after.over_budget
    return is_cause and is_open and after.quorate and _is_failing(before.seats.get(node))


def _of_round(before: RendezvousState, after: RendezvousState) -> Iterator[Finding]:
    """Judge a step within one round."""
    if after.generation != before.generation:
        yield "V21", f"generation {before.generation} became {after.generation} within round {after.round}"
    if before.complete and before.policy != after.policy:
        yield "V13", f"the policy of round {before.round} changed from {before.policy!r} to {after.policy!r}"
    if before.complete and (before.world_id != after.world_id or _line(before) != _line(after)):
        yield (
            "S1",
            f"the world of round {before.round} changed from {_names(before.members)} to {_names(after.members)}",
        )
    if before.quorum_at is not None and after.quorum_at not in (None, before.quorum_at):
        yield "V11", f"the quorum moved from version {before.quorum_at} to {after.quorum_at}"
    is_as_before = after.failures == before.failures and after.ended == before.ended
    is_refund = not is_as_before and _is_refund(before, after)
    yield from _of_progress(before, after, is_refund)
    if not (is_as_before or is_refund):
        yield "B2", f"{before.failures} failures became {after.failures} within round {after.round}"


def _of_progress(before: RendezvousState, after: RendezvousState, is_refund: bool) -> Iterator[Finding]:
    """Judge which rounds count as fruitless after a step within one round."""
    completes = after.complete and not before.complete
    proceeds = before.complete and after.progressed and not before.progressed
    if after.progressed is not (proceeds or (before.progressed and not completes)):
        yield "B7", f"progress of round {before.round} that nobody made, or that is taken back"
    fruitless = () if proceeds else _with_refunded(before, after) if is_refund else before.fruitless
    if after.fruitless != fruitless and not _may_come_to_nothing(before, after):
        yield "B7", f"{len(before.fruitless)} fruitless rounds became {len(after.fruitless)} within a round"


def _may_come_to_nothing(before: RendezvousState, after: RendezvousState) -> bool:
    """Return True if the last round ended for newcomers, and counts now because one of them is lost in the open round."""
    ended = after.ended
    if before.complete or before.progressed or ended is None or not before.limits.give_up_after:
        return False
    counts = ended.why is Why.UPSCALE and after.fruitless == (*before.fruitless, ended)
    return counts and len(_gone(before, after)) > 0


def _with_refunded(before: RendezvousState, after: RendezvousState) -> tuple[Ended, ...]:
    """Return the fruitless rounds, the last round among them, whose failure a loss has explained."""
    ended = after.ended
    if ended is None or before.progressed or not before.limits.give_up_after:
        return before.fruitless
    return (*(each for each in before.fruitless if each.round < ended.round), ended)


def _is_refund(before: RendezvousState, after: RendezvousState) -> bool:
    if before.ended is None or after.ended is None or before.complete:
        return False
    replaced = set() if before.provisional else {node.slot for node in after.seats}
    missed = before.those(Status.EXPECTED, Status.LEAVING)
    lost = [node for node in missed if node != before.ended.by and node.slot not in replaced]
    charged, forgiven = before.ended, after.ended
    return (
        bool(lost)
        and charged.why is Why.FAILED
        and forgiven == evolve(charged, why=Why.LOST)
        and after.failures == before.failures - 1
    )


def _of_end(before: RendezvousState, after: RendezvousState, ended: Ended) -> Iterator[Finding]:
    """Judge a step from one round to the next."""
    if after.generation != (after.round if ended.why is Why.FAILED else before.generation):
        yield "V21", f"generation {before.generation} became {after.generation} by an end because {ended.why.value}"
    if after.failures != before.failures + (ended.why is Why.FAILED):
        yield "B2", f"{before.failures} failures became {after.failures} by an end because {ended.why.value}"
    if after.progressed is not (before.progressed and not after.complete):
        yield "B7", f"the end of round {before.round} makes progress, or takes it back"
    gone = _gone(before, after)
    counts, may = _counting(before, ended, gone), after.fruitless == (*before.fruitless, ended)
    if not (may if counts else after.fruitless == before.fruitless or (may and counts is None)):
        fruitless = f"{len(before.fruitless)} fruitless rounds became {len(after.fruitless)}"
        yield "B7", f"{fruitless} by an end because {ended.why.value}"
    rest = after.those(*_NOT_EXPECTED)
    if wrong := [node for node in rest if _comes_back(before.seats.get(node))]:
        yield "V10", f"{_names(tuple(wrong))} are not expected back although their round ended"
    stay = [node for node in (*before.noticed, *gone) if before.seats[node].status in MEMBERS]
    called = [node for node in before.those(Status.ASIDE) if status_of(after, node) is Status.EXPECTED]
    can = len(before.members) - len(set(stay)) + len(called)
    if after.target != can:
        yield "V7", f"the next round waits for {after.target} nodes, {can} can come back"
    if ended.why is Why.LOST and not any(before.seats[node].status is Status.IN for node in gone):
        yield "V8", "the round ended as lost, but nobody whose workers ran is gone"
    if ended.why is Why.UPSCALE and before.finishing:
        yield "V9", "a newcomer ended a round in which somebody is done"
    if ended.why in (Why.FAILED, Why.UPSCALE, Why.FENCED) and status_of(before, ended.by) not in MEMBERS:
        yield "V12", f"{ended.by} ended a round ({ended.why.value}) of which it is no member"


def _counting(before: RendezvousState, ended: Ended, gone: Collection[Node]) -> bool | None:
    """Return True if this end makes its round a fruitless one; None: that depends on who has come back."""
    limits = before.limits
    if before.progressed:
        return False
    if ended.why is Why.UPSCALE and limits.give_up_after and before.fruitless:
        return None
    lost = [seat for node in gone if (seat := before.seats[node]).status not in AWAY]
    if ended.why is Why.LOST and all(seat.notice for seat in lost):
        return False
    return limits.give_up_after > 0 and ended.why in _counting_ends(limits)


_NOT_EXPECTED = tuple(status for status in Status if status is not Status.EXPECTED)


def _comes_back(was: Seat | None) -> bool:
    """Return True if a node that had this seat in a round is expected back after its end."""
    return was is not None and was.status in MEMBERS and was.notice is None


def _gone(before: RendezvousState, after: RendezvousState) -> Collection[Node]:
    """Return the nodes that have lost their seats."""
    if before.nodes == after.nodes:
        return ()
    return [node for node in before.nodes if node not in after.seats]


def _line(state: RendezvousState) -> tuple[tuple[Node, ...], tuple[Profile, ...]]:
    return state.members, state.member_profiles


def _names(nodes: tuple[Node, ...]) -> str:
    return ", ".join(str(node) for node in nodes) or "nobody"
