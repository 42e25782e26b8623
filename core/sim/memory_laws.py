"""The law of what a node remembers (L19), judged at each step.

The judge works out by itself what an input makes of the memory. It takes as they are the register that is held after the
step, whether that replaces another life, and who is dead: other laws judge those. A step that takes two inputs is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from attrs import define, field

from ..properties.law import Law, Strength
from ..rendezvous import (
    Advance,
    Client,
    Counted,
    Heartbeats,
    Held,
    Input,
    Missed,
    NoState,
    Notice,
    Proposals,
    Pushed,
    RendezvousState,
    Settled,
    Shown,
    Silent,
    Standstill,
    Status,
    Token,
    Told,
    Unknown,
    Woke,
    Write,
)
from ..rendezvous.context import Fact, Trouble, dead
from ..rendezvous.handlers import done, reserve
from ..rendezvous.refusals import barring
from ..rendezvous.state import later_start
from ..violation import check
from ..world import Why, World

L19 = Law(
    "L19",
    "A node remembers what it has heard, and nothing else: since when it has seen each instance of a fact; since when the "
    "store is silent, and when it asked last in vain; its write whose outcome it does not know, until a later request shows "
    "it; in which worlds its workers ran, were done, stand still and are ahead; if it was a spare, was set aside, or has "
    "lost a seat; but another life ends all but what is its own, and a sleep each span.",
    "an input changes what a node remembers, or is to change it",
)
PLACES = {
    "state": "view.state",
    "spans": "view.spans",
    "silent_since": "contact.silent_since",
    "tried_at": "contact.tried_at",
    "unsure_at": "doubt.unsure_at",
    "woke_at": "doubt.woke_at",
    "held_at": "view.held_at",
    "asked_at": "contact.asked_at",
    "owed": "doubt.owed",
    "nonce": "who.nonce",
    "found": "found",
    "trouble": "trouble",
    "confirmed_at": "contact.confirmed_at",
    "spare_at": "past.spare_at",
    "returns": "past.returns",
    "asides": "past.asides",
    "still_since": "past.still_since",
    "mine": "past.mine",
    "ran": "past.ran",
    "done_in": "past.done_in",
    "reserve_in": "past.reserve_in",
    "advanced_in": "past.advanced_in",
}
"""What is judged, and where a memory has it."""
KNOWN = tuple(PLACES)
_known = attrgetter(*PLACES.values())
_pending = attrgetter("contact.silent_since", "doubt.unsure_at", "doubt.woke_at", "doubt.instead")
NONE = (None,) * 4
RARE = frozenset({Silent, NoState, Missed, Unknown, Standstill, Advance, Woke})
ANSWERS = frozenset({Counted, Proposals, Shown, Pushed})


@define
class Remembering:
    strength: Strength = field(factory=Strength)

    def takes(self, before: Client, fed: Input, client: Client, notices: Iterable[Notice], now: float) -> None:
        """Judge what a step makes of a node's memory. Raises Violation."""
        was, held, kind = before.held, client.held, type(fed)
        if isinstance(fed, Heartbeats):
            steady = (
                held.view.spans is was.view.spans and held.contact.silent_since is None and held.doubt.unsure_at is None
            )
            if (
                steady
                and held.view.state is was.view.state
                and held.view.state is not None
                and held.view.state.life == fed.life
            ):
                return  # by far the most
        elif kind not in RARE and (kind not in ANSWERS or _pending(held) == NONE) and _is_same(was, held):
            return
        if before.pushed is not None and client.pushed is None:
            return
        self.strength.armed["L19"] += 1
        due = dict(zip(KNOWN, _known(was), strict=True))
        if not (kind in (Pushed, Missed) and client.pushed is fed):
            due |= _heard(before, fed, held, now)
        for notice in notices:
            if isinstance(notice, Told):
                due |= _told(notice, due)
        known = dict(zip(KNOWN, _known(held), strict=True))
        wrong = [name for name, value in due.items() if value is not ... and known[name] != value]
        if wrong:
            which = ", ".join(f"{name}: {known[name]}, not {due[name]}" for name in wrong)
            check([("L19", f"{held.who.node} is fed {kind.__name__}, and remembers otherwise: {which}")])


def _is_same(was: Held, held: Held) -> bool:
    return held is was or _known(held) == _known(was)


def _told(told: Told, due: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the end of an operation makes of the memory."""
    match told.answer:
        case World(id=id):
            ran = due["ran"] if due["ran"] is ... else {each for each in due["ran"] if each.life != id.life} | {id}
            return {"mine": id, "still_since": None, "ran": ran}
        case Settled() if told.handler is done:
            return {"done_in": due["mine"]}
        case Settled() if told.handler is reserve:
            return {"reserve_in": due["mine"]}
        case _:
            return {}


def _heard(before: Client, fed: Input, held: Held, now: float) -> dict[str, Any]:
    """Return what this input makes of the memory, as far as it changes. `...`: anything may be there."""
    was, sent_at = before.held, fed.sent_at if isinstance(fed, Pushed) else before.asked_at
    since = now if was.contact.silent_since is None else was.contact.silent_since
    tried_at = max(was.contact.tried_at, -math.inf if isinstance(fed, Missed) else sent_at)
    woke_at = was.doubt.woke_at
    if isinstance(fed, Missed) and woke_at is not None and before.out is not None:
        return {}
    is_from_before_sleep = woke_at is not None and (isinstance(fed, Missed) or sent_at < woke_at)
    match fed.why if isinstance(fed, Missed) else fed:
        case Woke():
            return {"woke_at": now, "spans": {}, "silent_since": None, "still_since": None, "trouble": None}
        case Standstill(since=still_since):
            return {"still_since": still_since}
        case Advance(round):
            ahead = (
                was.past.mine if was.past.mine is not None and was.past.mine.round == round else was.past.advanced_in
            )
            return {"advanced_in": ahead, "spans": _spans(was, held, now)}
        case Silent():
            return {"silent_since": since, "tried_at": tried_at}
        case NoState() if is_from_before_sleep:
            return {"silent_since": since, "tried_at": tried_at}
        case NoState(_, unserved):
            why = Why.UNSERVED if unserved else Why.ILLEGAL
            trouble = held.trouble if held.trouble is not None and held.trouble.why is why else Trouble(why, "")
            return {"silent_since": since, "tried_at": tried_at, "found": None, "trouble": trouble}
        case Unknown():
            return {"unsure_at": now, **_owed(before)}
        case Heartbeats(_, life) if was.view.state is not None and was.view.state.life != life:
            return {"unsure_at": now, "silent_since": None}
        case Heartbeats():
            return {"silent_since": None, "spans": _spans(was, held, now)}
        case Counted() | Proposals():
            return {"silent_since": None, "spans": _spans(was, held, now), "asked_at": _asked_at(was, sent_at)}
        case Shown() | Pushed() as shown:
            return _shown(was, shown, sent_at, held, now)
        case _:
            return {}


def _owed(before: Client) -> dict[str, Any]:
    """Return what a write with an unknown outcome makes of the memory."""
    was, written = before.held, before.out.token if isinstance(before.out, Write) else None
    begins = was.found is not None or written is None
    owed = was.doubt.owed if was.found is not None else written or Token(was.who.nonce, 0)
    return {"owed": owed, "nonce": ... if begins else was.who.nonce}


def _shown(was: Held, fed: Shown | Pushed, sent_at: float, held: Held, now: float) -> dict[str, Any]:
    """Return what a register that is shown makes of the memory."""
    state, mine, slept = fed.state, was.view.state, was.doubt.woke_at is not None
    goes_on = mine is None or (state is not None and state.life == mine.life and state.version >= mine.version)
    begun = {"nonce": ...} if state is not None and state.life.nonce == was.who.nonce.nonce else {}
    asked_before = was.doubt.woke_at if slept else None if goes_on else was.view.held_at
    if asked_before is not None and sent_at < asked_before:
        return {"silent_since": None, **begun}
    if slept and not goes_on:
        return dict.fromkeys(KNOWN, ...) | {"woke_at": None}
    due: dict[str, Any] = {"woke_at": None, **begun}
    if held.trouble is not None:
        since = now if was.contact.silent_since is None else was.contact.silent_since
        return due | {
            "silent_since": since,
            "tried_at": max(was.contact.tried_at, sent_at),
            "found": None,
            "trouble": ...,
        }
    is_sure = was.doubt.unsure_at is None or sent_at >= was.doubt.unsure_at
    due |= {"silent_since": None, "trouble": None, "unsure_at": None if is_sure else was.doubt.unsure_at}
    held_at = now if was.view.held_at is None else was.view.held_at
    if held.found is not None and held.found.state == state:
        known = was.found is not None and was.found.state == state
        return due | {"found": was.found if known else held.found, "held_at": held_at}
    due |= {"found": None, "confirmed_at": sent_at if state is not None and state.closed else was.contact.confirmed_at}
    due |= {"spans": _spans(was if goes_on else None, held, now)}
    due |= {"asked_at": _asked_at(was, sent_at)} if goes_on else {"unsure_at": None, "owed": None}
    if state is None or (mine is not None and goes_on and state.version == mine.version):
        return due | {"held_at": held_at}
    is_known_spare = any(each is not None and each.is_spare(was.who.node) for each in (mine, state))
    due |= {"state": state, "held_at": now, "spare_at": now if is_known_spare else was.past.spare_at}
    had = was.doubt.owed is not None or (mine is not None and was.who.node in mine.seats)
    due |= {"returns": was.past.returns or (was.who.profile.link_port > 0 and had and was.who.node not in state.seats)}
    if not goes_on:
        return due
    landed = was.doubt.owed is not None and state.version > was.doubt.owed.version
    is_new_aside = _is_aside(was, state) and not _is_aside(was, mine)
    return due | {"owed": None if landed else was.doubt.owed, "asides": was.past.asides + is_new_aside}


def _asked_at(was: Held, sent_at: float) -> float:
    read_at = was.view.sightings.read_at
    last = was.contact.asked_at if read_at is None else max(read_at, was.contact.asked_at)
    return sent_at if last < sent_at <= last + 2 * was.who.settings.keep_alive_interval else was.contact.asked_at


def _is_aside(held: Held, state: RendezvousState | None) -> bool:
    seat = state.seats.get(held.who.node) if state is not None else None
    return seat is not None and seat.status is Status.ASIDE


def _spans(was: Held | None, held: Held, now: float) -> dict[Fact, tuple[object, float]]:
    """Return the spans of the facts that hold now. One begins when its instance is first seen."""
    before = _instances(was, now) if was is not None else {}
    due = {}
    for fact, which in _instances(held, now).items():
        known = was.view.spans.get(fact) if was is not None else None
        goes_on = known is not None and (which is None or before.get(fact) == which)
        its = held.view.spans.get(fact)
        due[fact] = (its[0] if its else None, known[1] if goes_on and known else now)
    return due


def _instances(held: Held, now: float) -> dict[Fact, object]:
    """Return the facts that hold, each with what tells one instance of it from another; None: nothing does."""
    state, me, found = held.view.state, held.who.node, dict[Fact, object]()
    if state is None or state.closed:
        return {}
    round = state.life, state.round
    if not state.complete:
        found[Fact.OPEN] = round
        if state.quorum_at is not None:
            found[Fact.QUORUM] = (*round, state.quorum_at)
    if state.complete and state.wait_list:
        found[Fact.NEWCOMER if state.party_is_whole else Fact.PART] = round
    if state.complete and state.ended is not None and state.ended.why is Why.UPSCALE:
        found[Fact.GROWN] = round
    if state.complete and state.limits.give_up_after > 0 and not state.progressed:
        found[Fact.FRUITLESS] = round
        if held.past.advanced_in is not None and held.past.advanced_in == state.world_id:
            found[Fact.ADVANCE] = round
    if dead(held, now):
        found[Fact.DEAD] = None
    if me not in state.seats:
        if (later := later_start(state, me)) is not None and later in held.view.sightings.of:
            found[Fact.LATER] = later
        if barring(held):
            found[Fact.BARRED] = None
    elif state.seats[me].status is Status.ASIDE:
        found[Fact.ASIDE] = state.life, state.seats[me].order
    return found
