"""The judge of how agents end, and of what made them write: what each has been through, by its own clock.

It works out again, from the registers that an agent held and from what its group was told, what the agent's own client
concluded. So an agent that gives up, ends a round or quits without cause is judged by another rule than its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from attrs import define, field

from ..group import Phase, Stopped
from ..group.state import (
    KILL_S,
    Check,
    Checked,
    Closed,
    Drained,
    Gone,
    Join,
    Noticed,
    Over,
    Ready,
    ReadyToLeave,
    Refused,
    Signalled,
    Unawaited,
    Unstartable,
)
from ..group.state import Close as CloseJob
from ..group.state import Drain as DrainMe
from ..group.state import End as EndRound
from ..group.state import Leave as LeaveJob
from ..rendezvous import Arrive, Close, Complete, Deed, Drain, End, Held, Leave, Overdue, RendezvousState, Status
from ..rendezvous.context import Handler
from ..rendezvous.handlers import close, drain, join, leave, linger, watch
from ..rendezvous.operations import LINGER_S
from ..rendezvous.verify import Finding
from ..world import Node, Profile, Verdict, Why, WorldId
from .facts import Began, Decided, GaveUp, Holds, Left, Noted, Slept, Stepped
from .predicates import is_beside_another_program
from .strength import Strength

SLACK_S = 1e-6
"""Two sums of the same spans may differ by so much."""
NEVER = math.inf

Failures: TypeAlias = Collection[tuple[Node, WorldId | None]]


Instance: TypeAlias = Callable[[RendezvousState], object]
"""Which instance of a fact holds in a register; None if none does."""


def _open(state: RendezvousState) -> object:
    return None if state.complete or state.closed else (state.life, state.round)


def _quorum(state: RendezvousState) -> object:
    forms = _open(state)
    return None if forms is None or state.quorum_at is None else (forms, state.quorum_at)


def _newcomer(state: RendezvousState) -> object:
    waits = state.complete and not state.closed and state.wait_list
    return (state.life, state.round, state.party_is_whole) if waits else None


def _aside(me: Node, state: RendezvousState) -> object:
    seat = state.seats.get(me)
    return (state.life, seat.order) if seat is not None and seat.status is Status.ASIDE else None


@define
class Past:
    """What one agent has been through, by its own clock."""

    held: list[tuple[float, Held]] = field(factory=list)
    """What it held, and since when."""
    joins_since: float = NEVER
    woke_at: float = -NEVER
    worlds: set[WorldId] = field(factory=set)
    """The worlds that its group was told of."""
    refusals: set[Why] = field(factory=set)
    signals: list[int] = field(factory=list)
    unstartable: bool = False
    unfit: bool = False
    """Its check found it unfit."""
    is_checked: bool = False
    """A check found it fit, and no failure of its own has ended a round since."""
    asks_whose: bool = False
    """It has asked for the end of a round because of a failure, and was not told yet whose failure ended that."""
    gone: bool = False
    """It was told that the register knows that it leaves."""
    is_hurried: bool = False
    """A signal came while it left."""
    ready_at: float = NEVER
    done_at: float = NEVER
    leaves_since: float = NEVER
    drains: list[float] = field(factory=list)
    """When its group wanted to tell the register of each notice that is not told yet, the first one first."""
    closes_since: float = NEVER
    ended_at: float = NEVER
    gone_by: float = NEVER
    """By when it must be gone, by the notices that it was given."""
    noticed_at: float = NEVER
    """When it was given the first of these."""
    ready: set[int] = field(factory=set)
    """The workers of its world that said they are ready to leave."""
    owes: WorldId | None = None
    """The world whose end its group last asked for, because of a failure."""

    def verdicts(self) -> set[Verdict]:
        """Return all verdicts that it has held."""
        states = (held.state for _, held in self.held)
        return {state.closed for state in states if state is not None and state.closed}

    @property
    def is_spare(self) -> bool:
        return bool(self.held) and _is_spare(self.held[-1][1])

    def spare_until(self) -> float:
        """Return until when it held a register in which it is a spare."""
        later = NEVER
        for since, held in reversed(self.held):
            if _is_spare(held):
                return later
            later = since
        return -NEVER

    def waited(self, at: float) -> float:
        """Return for how long it has waited for a world, awake and no spare."""
        return 0.0 if self.is_spare else self.awake(max(self.joins_since, self.spare_until()), at)

    def awake(self, since: float, at: float) -> float:
        """Return for how long it was awake since then."""
        return at - max(since, self.woke_at)

    def seen(self, fact: Instance, at: float) -> float:
        """Return for how long it has seen the instance of this fact that holds."""
        which, first = None, NEVER
        for since, held in reversed(self.held):
            now = fact(held.state) if held.state is not None else None
            if now is None or (which is not None and now != which):
                break
            which, first = now, since
        return self.awake(first, at)

    # --- what happens

    def stepped(self, fact: Stepped) -> None:
        """Note what the group was told and wants."""
        event, at = fact.event, fact.at
        if isinstance(event, Ready):
            self.worlds.add(event.world.id)
            self.ready_at = at
        elif isinstance(event, Signalled):
            self.signals.append(event.signum)
            self.is_hurried |= self.leaves_since < NEVER
        elif isinstance(event, Unstartable):
            self.unstartable = True
        elif isinstance(event, Checked):
            self.unfit |= not event.is_fit
            self.is_checked |= event.is_fit
        elif isinstance(event, Over) and self.asks_whose:
            self.asks_whose = False
            self.is_checked &= event.by not in (None, fact.before.node)
        elif isinstance(event, Noticed):
            self.gone_by = min(self.gone_by, at + event.notice.deadline_s)
            self.noticed_at = min(self.noticed_at, at)
        elif isinstance(event, ReadyToLeave):
            self.ready.add(event.local_rank)
        if fact.after.phase is not fact.before.phase:
            self.done_at = at if fact.after.phase is Phase.BARRIER else self.done_at
            self.ended_at = at if fact.after.phase is Phase.ENDED else self.ended_at
        for command in fact.commands:
            if isinstance(command, Join):
                self.joins_since = at
            elif isinstance(command, LeaveJob):
                self.leaves_since = at
            elif isinstance(command, DrainMe):
                self.drains.append(at)
            elif isinstance(command, CloseJob):
                self.closes_since = at
            elif isinstance(command, EndRound) and fact.before.world is not None:
                self.owes = fact.before.world.id
                self.asks_whose = True


@define
class Pasts:
    """The pasts of all agents."""

    of: dict[Node, Past] = field(factory=dict)

    def began(self, fact: Began) -> None:
        self.past(fact.node).joins_since = fact.at

    def holds(self, fact: Holds) -> None:
        self.past(fact.held.node).held.append((fact.at, fact.held))

    def slept(self, fact: Slept) -> None:
        self.past(fact.node).woke_at = fact.at

    def left(self, fact: Left) -> None:
        self.past(fact.node).gone = True

    def noted(self, fact: Noted) -> None:
        del self.past(fact.node).drains[:1]

    def stepped(self, fact: Stepped, stood_until: float, strength: Strength) -> Iterator[Finding]:
        """Note what the agent was told, and judge its end. It last stood still until `stood_until`."""
        past = self.past(fact.after.node)
        past.stepped(fact)
        if fact.before.settings.checks:
            yield from _of_check(past, fact)
        if fact.after.drained and not fact.before.drained and not _may_go(past, fact):
            yield "O7", f"{fact.after.node} leaves before its workers are ready, its time has come or its round is over"
        if fact.after.phase is Phase.ENDED and fact.before.phase is not Phase.ENDED:
            yield from _of_end(past, fact)
            if not isinstance(fact.after.outcome, Drained):
                return
            if stood_until > past.noticed_at:
                strength.excused["O8"] += 1
            elif fact.at > past.gone_by + SLACK_S:
                yield "O8", f"{fact.after.node} is gone {fact.at - past.gone_by:g} s after its deadline"

    def gave_up(self, fact: GaveUp) -> Iterator[Finding]:
        """Judge an operation that its node gives up."""
        past = self.past(fact.held.node)
        past.refusals.add(fact.why)
        yield from _of_refusal(past, fact)
        if fact.handler is drain:
            del past.drains[:1]

    def decided(self, fact: Decided, runs: bool, failed: Failures) -> Iterator[Finding]:
        """Judge what a node wants to write. `runs`: its workers run. `failed`: whose workers failed, and where."""
        yield from _of_decision(self.past(fact.held.node), fact, runs, failed)

    def forgets(self) -> int:
        """Let nobody owe a failure: a store has lost what it held, or got back something older, so a world may stand again
        that had failed. Return how many owed one."""
        owing = [past for past in self.of.values() if past.owes is not None]
        for past in owing:
            past.owes = None
        return len(owing)

    def past(self, node: Node) -> Past:
        known = self.of.get(node)
        if known is None:
            known = self.of[node] = Past()
        return known


def _is_spare(held: Held) -> bool:
    return held.state is not None and held.state.is_spare(held.node)


# --- what must hold


def _of_end(past: Past, fact: Stepped) -> Iterator[Finding]:
    after, node = fact.after, fact.after.node
    match after.outcome:
        case Verdict() as verdict:
            justified = verdict in past.verdicts()
        case Stopped(signum):
            justified = signum in past.signals
        case Drained():
            justified = past.gone_by < NEVER
        case Unawaited():
            justified = _has_lasted(past.awake(past.done_at, fact.at), after.settings.barrier_timeout)
        case Refused(why):
            held_back = fact.before.phase is Phase.HELD and why is Why.UNCONFIRMED
            late = held_back and _has_lasted(fact.at - past.ready_at, after.settings.start_timeout)
            unfit = past.unfit and why is Why.UNFIT
            justified = why in past.refusals or late or unfit
        case _:
            justified = False
    if not justified:
        yield "O1", f"{node} ends without cause: {after.outcome}"
    if fact.before.phase is not Phase.LEAVING:
        return
    knows = past.gone or past.verdicts() or past.refusals or isinstance(fact.event, Gone | Closed | Refused)
    waited = _has_lasted(fact.at - past.leaves_since, after.settings.leave_timeout) or fact.at >= past.gone_by
    if not (knows or waited or past.is_hurried):
        yield "O3", f"{node} ends before the register knows that it leaves"


def _of_check(past: Past, fact: Stepped) -> Iterator[Finding]:
    node, is_due = fact.after.node, past.asks_whose or not past.is_checked
    if is_due and any(isinstance(command, Join) for command in fact.commands):
        yield "G7", f"{node} joins, and no check has found it fit since a failure of its own"
    if not is_due and any(isinstance(command, Check) for command in fact.commands):
        yield "G7", f"{node} is checked again, and no failure of its own has ended a round"


def _may_go(past: Past, fact: Stepped) -> bool:
    """Return True if a drained node may leave now."""
    before = fact.before
    if before.phase not in (Phase.RUNNING, Phase.BARRIER) or isinstance(fact.event, Over):
        return True
    is_time = fact.at >= past.gone_by - before.settings.grace - KILL_S - SLACK_S
    return is_time or (bool(past.ready) and fact.after.running <= past.ready)


def _of_refusal(past: Past, fact: GaveUp) -> Iterator[Finding]:
    held, why, at = fact.held, fact.why, fact.at
    state, settings, me = held.state, held.settings, held.node
    silence = _silence(past, fact) if why is Why.UNCONFIRMED else 0.0
    if fact.handler is join and why in (Why.TIMEOUT, Why.UNCONFIRMED):
        waited = past.waited(at)
        if not _has_lasted(max(waited, silence), settings.join_timeout):
            what = "is a spare, and" if past.is_spare else f"has waited for {waited:g} s, awake and no spare, and"
            yield "L7", f"{me} {what} gives up"
    elif why is Why.UNCONFIRMED and fact.handler is watch and _runs(held):
        yield "O2", f"{me} stops its workers because the store is silent"
    elif why is Why.UNCONFIRMED:
        spans: Mapping[Handler, tuple[float, float]] = {
            leave: (past.leaves_since, settings.leave_timeout),
            close: (past.closes_since, settings.close_timeout),
            drain: (min(past.drains[:1], default=NEVER), settings.close_timeout),
            watch: (past.done_at, settings.barrier_timeout),
            linger: (past.ended_at, LINGER_S),
        }
        since, span = spans.get(fact.handler, (NEVER, 0.0))
        if not (_has_lasted(silence, settings.join_timeout) or _has_lasted(past.awake(since, at), span)):
            yield "O2", f"{me} gives {fact.handler.__name__} up too early"
    seats = state.seats if state else {}
    if why is Why.CLOSED and (state is None or not state.closed):
        yield "O2", f"{me} is refused as closed, but the job is not"
    if why is Why.LIMITS and (state is None or state.limits == settings.limits):
        yield "O2", f"{me} is refused for its limits, which are the job's"
    if why is Why.SUPERSEDED and not any(each.slot == me.slot and each.incarnation > me.incarnation for each in seats):
        yield "O2", f"{me} is refused as superseded, but nobody has its slot"
    if why is Why.NEEDED:
        yield "O2", f"{me} may not drain itself, as if an operator had asked"
    if why is Why.PROGRAM and all(seat.profile.program in ("", held.profile.program) for seat in seats.values()):
        yield "O2", f"{me} is refused for its program, which is that of all"


def _runs(held: Held) -> bool:
    seat = held.state.seats.get(held.node) if held.state else None
    return seat is not None and seat.status in (Status.IN, Status.RESERVE)


def of_operator(answer: Deed | Why, state: RendezvousState | None, insists: bool) -> Iterator[Finding]:
    """Judge what an operator wants to write, or why it is refused. It has no past."""
    if answer is Why.NO_JOB and state is not None:
        yield "O2", "an operator is told of no job, and there is one"
    if isinstance(answer, Drain) and not insists and state is not None:
        out = (Status.GONE, Status.ABSENT, Status.LEAVING)
        others = [node for node, seat in state.seats.items() if not (seat.status in out or seat.notice)]
        if len({*others} - {answer.node}) < state.limits.min_nodes:
            yield "O2", f"an operator drains {answer.node}, which the job needs, and does not insist"


def _silence(past: Past, fact: GaveUp) -> float:
    """Return for how long the store has been silent: 0 if it was not asked in the second half of that time."""
    silence = past.awake(fact.answered_at, fact.at)
    return silence if fact.tried_at >= fact.at - silence / 2 else 0.0


def _of_decision(past: Past, fact: Decided, runs: bool, failed: Failures) -> Iterator[Finding]:
    held, at = fact.held, fact.at
    me, state, settings = held.node, held.state, held.settings
    match fact.edit:
        case Overdue() if not _has_lasted(past.seen(_open, at), settings.overdue_timeout):
            yield (
                "O4",
                f"{me} waits no longer for the expected, {past.seen(_open, at):g} s after it saw the round",
            )
        case Complete() if not _has_lasted(past.seen(_quorum, at), _last_call(held)):
            yield "O4", f"{me} ends the last call {past.seen(_quorum, at):g} s after it saw the quorum"
        case End(_, Why.UPSCALE) if state is not None and _waits_for_drained(state):
            yield "O4", f"{me} ends the round for a newcomer, though a drained node is at work in it"
        case End(_, Why.UPSCALE) if not _has_lasted(past.seen(_newcomer, at), grows_after := _grows_after(held)):
            yield "O4", f"{me} ends the round for a newcomer that it has not seen for {grows_after:g} s"
        case End(_, Why.FENCED) if runs or not _was_told(past, state):
            yield "O6", f"{me} ends a round as fenced whose workers it runs, or that it was never told of"
        case End(_, Why.FAILED) if state is not None and (me, state.world_id) not in failed:
            yield "B5", f"{me} ends a round as failed, in which none of its workers failed"
        case Leave() if not _may_leave(past, held, at):
            yield "O5", f"{me} leaves, and nobody has asked it to"
        case Close(verdict) if verdict.why is Why.CANNOT_START and not past.unstartable:
            yield "O6", f"{me} closes the job because of a program that it could start"
        case Drain(node) if node != me:
            yield "O5", f"{me} gives another node notice, {node}"
        case Arrive() if state is not None and me not in state.seats and state.limits != settings.limits:
            yield "O2", f"{me} takes a seat in a job of other limits"
        case Arrive(its) if settings.same_program and state is not None and _is_strange(state, me, its):
            yield "O2", f"{me} takes a seat beside another program"
        case Arrive() if (cooldown_s := _cooldown(held)) and not _has_lasted(
            past.seen(partial(_aside, me), at), cooldown_s
        ):
            yield "O9", f"{me} comes back {past.seen(partial(_aside, me), at):g} s after it was set aside, too soon"
        case End(_, why) if why is not Why.FAILED and past.owes and state and past.owes == state.world_id:
            yield "B5", f"{me} does not charge the failure of its worker in round {state.round}"
        case _:
            pass


def _is_strange(state: RendezvousState, me: Node, profile: Profile) -> bool:
    """Return True if I have no seat, and others of my role run another program."""
    return me not in state.seats and is_beside_another_program(state, me, profile)


def _cooldown(held: Held) -> float:
    """Return for how long this node is set aside; 0 if it is not."""
    seat = held.state.seats.get(held.node) if held.state else None
    return seat.failing.cooldown_s if seat and seat.status is Status.ASIDE and seat.failing else 0.0


def _has_lasted(for_s: float, span: float) -> bool:
    return for_s >= span - SLACK_S


def _grows_after(held: Held) -> float:
    """Return how long a newcomer waits: for the rest of its party too, if that is not there."""
    whole = held.state is None or held.state.party_is_whole
    after = held.settings.upscale_after
    return after if whole else max(after, held.settings.party_timeout)


def _last_call(held: Held) -> float:
    first = held.settings.first_call_timeout
    is_first = held.state is not None and not held.state.ended
    return first if first is not None and is_first else held.settings.last_call_timeout


def _waits_for_drained(state: RendezvousState) -> bool:
    """Return True if a drained node will end the round itself, once its workers are ready."""
    return any(seat.status is Status.IN and seat.notice for seat in state.seats.values())


def _was_told(past: Past, state: RendezvousState | None) -> bool:
    """Return True if the agent was told of the world that stands, or of a later one of its life."""
    world = state.world_id if state else None
    return world is not None and any(each.life == world.life and each.round >= world.round for each in past.worlds)


def _may_leave(past: Past, held: Held, at: float) -> bool:
    """Return True if the agent was told to go, its join has had its time, or its exit barrier."""
    if past.leaves_since <= at or _has_lasted(past.waited(at), held.settings.join_timeout):
        return True
    seat = held.state.seats.get(held.node) if held.state else None
    done = seat is not None and seat.status is Status.DONE
    return done and _has_lasted(past.awake(past.done_at, at), held.settings.barrier_timeout)
