"""The laws of what an agent keeps in mind beside its group (L18), and of what it makes of questions and answers (O20).

They are judged by what it hears, step by step. An agent is a value, so the judge also asks it what nobody asks it in this
run: what it would answer to people and to its hang watch.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from .. import rendezvous
from ..agent import (
    FOLLOW_LINKS,
    FOLLOW_WORKERS,
    Acknowledged,
    Agent,
    Effect,
    Event,
    FollowLinks,
    FollowWorkers,
    Hung,
    Queried,
    Reply,
    Report,
    Rest,
    Settled,
    Stands,
    Stepped,
    awaited,
    is_hurried,
    step,
)
from ..group import Phase, Stopped
from ..group.state import Closed, Gone, Move, Noticed, Over, Ready, Refused, Signalled, Start, StartAgain
from ..properties.law import Law, Strength
from ..rendezvous import Fail, Held, Raise, RendezvousState, Seen, StoreBack, StoreSilent, Told, linger
from ..rendezvous.handlers import close, drain, end, join, leave
from ..violation import Finding, check
from ..world import Ending, Generation, Verdict, Why, World

L18 = Law(
    "L18",
    "An agent knows what it heard last: the register, the last one with a complete round, since when the store is silent, "
    "its workers' world, the round whose hang is on record, if its standbys are settled, and if it is known to leave; until "
    "it ends it takes each acknowledgement of the life of its register, and no other; its links follow each register, they "
    "and its looks at workers each silence and what ends it, these looks a worker that starts again meanwhile, and its "
    "standbys each phase and such a start; and after a verdict it lingers until that operation is over, or a signal comes.",
    "an agent hears what changes what it knows, or what its parts follow",
)
O20 = Law(
    "O20",
    "An agent tells its group what its rendezvous answers, and a notice of the register that the group does not know or "
    "that is sooner; it answers a query of the round that it was shown, once, and no other; it reports a hang of workers "
    "that run, and no other; at the end of a failed job it waits for the stacks of those who ran workers and are present, "
    "and for no store that it has given up, or that does not know that it was told to stop.",
    "an operation of an agent is over, it is shown a round or a notice, or its group moves",
)
KNOWN = ("state", "complete", "silent_since", "world", "suspected", "are_settled", "is_known_to_leave", "lingers")
_known = attrgetter(*KNOWN)
FOLLOWING = frozenset({FollowLinks, FollowWorkers, Rest})
"""These effects tell other parts of the node what to do."""


def hears(strength: Strength, before: Agent, event: Event, after: Agent, effects: tuple[Effect, ...]) -> None:
    """Judge what an agent makes of an event. Raises Violation."""
    if type(event) is Acknowledged:  # by far the most
        state = before.state
        counts = state is not None and (state.life is event.life or state.life == event.life)
        if bool(effects) is not (counts and before.group.phase is not Phase.ENDED):
            check([("L18", f"{before.group.node} takes the acknowledgement of {event.life}, or leaves its own one")])
        if len(effects) < 2 and after.group.phase is before.group.phase and _known(after) == _known(before):
            return
    if type(event) is Seen and after.group is before.group and len(effects) == 1 and effects[0] is FOLLOW_LINKS:
        complete = event.state if event.state.complete else before.complete
        if _known(after) == (event.state, complete, *_known(before)[2:]):  # by far the most of the others
            strength.armed["L18"] += 1
            return
    due, follows = _due(before, event, after, effects)
    if follows or due != _known(before):
        strength.armed["L18"] += 1
    known = _known(after)
    if known != due:
        wrong = ", ".join(name for name, one, other in zip(KNOWN, known, due, strict=True) if one != other)
        check([("L18", f"{before.group.node} hears {type(event).__name__}, and knows otherwise: {wrong}")])
    if [each for each in effects if type(each) in FOLLOWING] != follows:
        check([("L18", f"{before.group.node} hears {type(event).__name__}, and lets {effects} follow, not {follows}")])


def _due(
    before: Agent, event: Event, after: Agent, effects: tuple[Effect, ...]
) -> tuple[tuple[object, ...], list[Effect]]:
    """Return what the agent is to know after this event, and what its other parts are to do."""
    state, complete, silent_since, suspected = before.state, before.complete, before.silent_since, before.suspected
    world, are_settled, lingers, is_known = before.world, before.are_settled, before.lingers, before.is_known_to_leave
    follows, is_again = list[Effect](), False
    for each in effects:
        if isinstance(each, Stepped):
            is_known = is_known or isinstance(each.event, (Gone, Closed))
        elif isinstance(each, (Start, Move)):
            world = each.world
        elif isinstance(each, StartAgain):
            suspected, is_again = None, True
            follows += [] if silent_since is None else [FOLLOW_WORKERS]
    if is_again or after.group.phase is not before.group.phase:
        follows.append(Rest(bool(after.group.running)))
    match event:
        case Seen():
            state, complete = event.state, event.state if event.state.complete else complete
            follows.append(FOLLOW_LINKS)
        case StoreSilent() | StoreBack():
            silent_since = event.at if isinstance(event, StoreSilent) else None
            follows += [FOLLOW_LINKS, FOLLOW_WORKERS]
        case Settled():
            are_settled = event.are_settled
        case Stands() if before.group.phase is Phase.RUNNING and world and world.round == event.round:
            suspected = event.round if event.seen else None
        case Told() | Signalled():
            lingers = lingers and isinstance(event, Told) and event.handler is not linger
        case _:
            pass
    if before.outcome is None:
        lingers = isinstance(after.outcome, Verdict)
    return (state, complete, silent_since, world, suspected, are_settled, is_known, lingers), follows


# --- what it makes of questions and answers


def answers(strength: Strength, before: Agent, event: Event, after: Agent, effects: tuple[Effect, ...]) -> None:
    """Judge what an agent tells its group, and what it would answer now. Raises Violation."""
    if type(event) is Told:
        strength.armed["O20"] += 1
        check(_of_told(before, event, effects))
    elif type(event) is Seen:
        was, notice = before.state, _notice(before, event.state)
        is_new = was is None or was.round != event.state.round
        if is_new or notice:
            strength.armed["O20"] += 1
            heard = [each.event for each in effects if isinstance(each, Stepped)]
            known = [each.notice for each in heard if isinstance(each, Noticed) and each.known]
            if known != notice and before.group.phase is not Phase.ENDED:
                check([("O20", f"{before.group.node} is shown the notices {notice}, and tells its group of {known}")])
        if is_new:
            check(_of_queries(after, event.state.round))
    if after.group.phase is not before.group.phase:
        strength.armed["O20"] += 1
        check(_of_hangs(after))
        if after.group.phase is Phase.ENDED:
            check(_of_the_end(after))


def _notice(before: Agent, state: RendezvousState) -> list[object]:
    """Return the notice of the register that the group is to hear, if there is one."""
    seat, known = state.seats.get(before.group.node), before.group.deadline
    if seat is None or seat.notice is None:
        return []
    return [] if known is not None and known.notice.deadline_s <= seat.notice.deadline_s else [seat.notice]


def _of_told(before: Agent, told: Told, effects: tuple[Effect, ...]) -> Iterator[Finding]:
    heard = [each.event for each in effects if isinstance(each, Stepped)]
    due = _event_of(told)
    if before.group.phase is Phase.ENDED or told.handler is linger:
        due = None
    if (said := _said(heard[0]) if heard else None) != due:
        yield (
            "O20",
            f"{before.group.node} is told {told.answer} of a {told.handler.__name__}: its group hears {said}, not {due}",
        )


def _said(event: object) -> tuple[object, ...] | None:
    """Return what an event says, without its time and its words."""
    match event:
        case Ready(world):
            return Ready, world
        case Over(round, why, by, _, generation):
            return Over, round, why, by, generation
        case Closed(verdict):
            return Closed, verdict
        case Refused(why):
            return Refused, why
        case Noticed(unfit=True, known=True):
            return Noticed, True
        case _:
            return (type(event),)


def _event_of(told: Told) -> tuple[object, ...] | None:
    """Return what the group is to hear of this answer; None: nothing."""
    held, answer, handler = told.held, told.answer, told.handler
    match answer:
        case _ if handler is drain:
            return None
        case World():
            return Ready, answer
        case rendezvous.Over(round, ended):
            return Over, round, ended.why if ended else None, ended.by if ended else None, _generation(held)
        case Verdict() | Raise(Fail(Why.CLOSED, Verdict())):
            verdict = answer.failure.verdict if isinstance(answer, Raise) else answer
            assert verdict is not None
            return _closed(held, verdict)
        case rendezvous.Settled() if handler is end:
            if held.view.state is not None and held.view.state.closed:
                return Closed, held.view.state.closed
            round, ended = (
                held.past.mine.round if held.past.mine else 0,
                held.view.state.ended if held.view.state else None,
            )
            its = ended if ended is not None and ended.round == round else None
            return Over, round, its.why if its else None, its.by if its else None, _generation(held)
        case rendezvous.Settled():
            return (Gone,) if handler in (leave, close) else None
        case Raise(Fail(Why.UNFIT)) if handler is join:
            return Noticed, True
        case _:
            assert isinstance(answer, Raise)
            return Refused, answer.failure.why


def _closed(held: Held, verdict: Verdict) -> tuple[object, ...]:
    """Return what the group hears of a verdict: a success is none of a node that had neither workers nor a place."""
    has_part = (
        held.past.spare_at is not None
        or held.past.ran
        or (held.view.state is not None and held.who.node in held.view.state.seats)
    )
    return (Closed, verdict) if has_part or verdict.ending is not Ending.SUCCEEDED else (Refused, Why.CLOSED)


def _generation(held: Held) -> Generation | None:
    """Return the generation of the register, for a node that has a seat and does not wait beside a world."""
    state = held.view.state
    if state is None or held.who.node not in state.seats or state.passes_over(held.who.node):
        return None
    return Generation(state.job, state.generation)


def _of_queries(agent: Agent, round: int) -> Iterator[Finding]:
    """Yield what is wrong with the answers to queries that somebody might ask now."""
    for asked in (round - 1, round, round + 1):
        once, effects = step(agent, Queried("of the judge", asked, None), 0.0)
        replies = [each for each in effects if isinstance(each, Reply)]
        if len(replies) != (asked == round) or len(effects) != len(replies):
            yield (
                "O20",
                f"{agent.group.node} knows round {round}, and answers {len(replies)} times to a query of {asked}",
            )
        if any(step(once, Queried("of the judge", asked, None), 0.0)[1]):
            yield "O20", f"{agent.group.node} answers a query twice"


def _of_hangs(agent: Agent) -> Iterator[Finding]:
    """Yield what is wrong with the word of a hang watch, if it came now."""
    if agent.world is None:
        return
    for round in (agent.world.round, agent.world.round + 1):
        runs = agent.group.phase is Phase.RUNNING and round == agent.world.round
        reports = [each for each in step(agent, Hung(round, None), 0.0)[1] if isinstance(each, Report)]
        if len(reports) != runs or bool(step(agent, Stands(round, (None,)), 0.0)[1]) is not runs:
            yield "O20", f"{agent.group.node} is {agent.group.phase.value}, and hears of a hang of round {round}"


def _of_the_end(agent: Agent) -> Iterator[Finding]:
    node, outcome, state, complete = agent.group.node, agent.outcome, agent.state, agent.complete
    those: tuple[object, ...] = ()
    if isinstance(outcome, Verdict) and outcome.ending is Ending.FAILED and state is not None and complete is not None:
        those = tuple(each for each in complete.participants if each in state.present)
    if awaited(agent) != those:
        yield "O20", f"{node} waits for the stacks of {awaited(agent)}, not of {those}"
    gave_up = isinstance(outcome, Refused) and outcome.why is Why.UNCONFIRMED
    if is_hurried(agent) is not (gave_up or (isinstance(outcome, Stopped) and not agent.is_known_to_leave)):
        yield "O20", f"{node} ends by {outcome}, and waits for the store, or does not"
