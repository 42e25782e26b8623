"""The law of what an agent keeps in mind beside its group (L18): judged by what it hears, step by step."""

from __future__ import annotations

from operator import attrgetter

from ..agent import (
    FOLLOW_LINKS,
    FOLLOW_WORKERS,
    Acknowledged,
    Agent,
    Effect,
    Event,
    FollowLinks,
    FollowWorkers,
    Rest,
    Settled,
    Stands,
    Stepped,
)
from ..group import Phase
from ..group.state import Closed, Gone, Move, Signalled, Start, StartAgain
from ..properties.law import Law, Strength
from ..rendezvous import Seen, StoreBack, StoreSilent, Told, linger
from ..violation import check
from ..world import Verdict

L18 = Law(
    "L18",
    "An agent knows what it heard last: the register, the last one with a complete round, since when the store is silent, "
    "its workers' world, the round whose hang is on record, if its standbys are settled, and if it is known to leave; until "
    "it ends it takes each acknowledgement of the life of its register, and no other; its links follow each register, they "
    "and its looks at workers each silence and what ends it, these looks a worker that starts again meanwhile, and its "
    "standbys each phase and such a start; and after a verdict it lingers until that operation is over, or a signal comes.",
    "an agent hears what changes what it knows, or what its parts follow",
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
