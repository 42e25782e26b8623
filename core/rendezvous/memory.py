"""A node's memory after each answer. Only this module makes a new `Held`.

Every answer of a backend comes here before a handler sees it. A state is judged when it comes in. A state that breaks an
invariant, or that no write can have made from the one that I hold, becomes a `Trouble`. A register may also come back empty,
older or with another life. Then I adopt it; or, if what I hold counts more, it becomes `Found`, and must be restored first.
A node writes nothing over a state that it does not understand.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ..values import evolve
from ..violation import Finding, Violation
from ..world import Life, Node, Profile, Why, WorldId
from .actions import Proposal
from .context import Doubt, Fact, Found, Held, Proposed, Spans, Suspect, Trouble, View, dead
from .links import Says
from .lives import outranks
from .refusals import barring
from .sightings import Sighting, Sightings, observe, refreshed, signs_of_life
from .state import RendezvousState, Status, Token, later_start
from .verify import verify, verify_step


def saw(held: Held, state: RendezvousState | None, sent_at: float, now: float, here: bool = True) -> Held:
    """Return my memory after an answer that shows this state (None: no register).

    `sent_at` is when I sent the request. `here` is True if the state was written in the store that answered, and False if
    that store is a copy of another one.
    """
    if state is not None and state.life.nonce == held.who.nonce.nonce:
        held = _renamed(held)  # it has begun this life, whatever else the answer is worth
    mine, held_at, woke_at = held.view.state, held.view.held_at, held.doubt.woke_at
    if woke_at is not None:
        return _unsilenced(held) if sent_at < woke_at else _awake(held, state, sent_at, now, here)
    if mine is not None and not _goes_on(mine, state):
        asked_since = held_at is None or sent_at >= held_at
        return _changed(held, state, sent_at, now, here) if asked_since else _unsilenced(held)
    if not here and state is not None:
        return _changed(held, state, sent_at, now, here)
    if state is None or (mine is not None and state.version == mine.version):
        return _at(_still(held, sent_at, now), now)
    try:
        verify(state, mine)
        if mine is not None and state.version == mine.version + 1:
            verify_step(mine, state)
    except Violation as violation:
        return unreadable(held, str(violation), now, sent_at, violation.finding)
    return _at(_moved(held, state, sent_at, now), now)


def _unsilenced(held: Held) -> Held:
    """Return my memory after an answer that is too old to tell me anything, except that the store is there."""
    return held if held.contact.silent_since is None else evolve(held, contact=evolve(held.contact, silent_since=None))


def _goes_on(mine: RendezvousState, state: RendezvousState | None) -> bool:
    return state is not None and state.life == mine.life and state.version >= mine.version


def _awake(held: Held, state: RendezvousState | None, sent_at: float, now: float, here: bool) -> Held:
    """Return my memory after the first answer since I woke. What I hold counts only if the answer goes on from it."""
    if held.view.state is not None and not _goes_on(held.view.state, state):
        held = _adopted(held, None, sent_at, now)
    return saw(evolve(held, doubt=evolve(held.doubt, woke_at=None)), state, sent_at, now, here)


def _changed(held: Held, state: RendezvousState | None, sent_at: float, now: float, here: bool) -> Held:
    """Return my memory after an answer that does not follow from what I hold. Only the better one of the two is kept."""
    try:
        if state is not None:
            verify(state)
    except Violation as violation:
        return unreadable(held, str(violation), now, sent_at, violation.finding)
    better = held.view.state if outranks(held.view.state, state) else state
    if better is None or (better is state and here):
        return _at(_adopted(held, state, sent_at, now), now)
    known = held.found is not None and held.found.state == state
    instead = held.found if known else Found(state, better, now)
    return evolve(
        _unsilenced(held),
        view=_answered(held.view, now),
        doubt=evolve(held.doubt, unsure_at=_still_unsure(held, sent_at), instead=instead),
    )


def _answered(view: View, now: float) -> View:
    """Return what I have seen after an answer that shows nothing new: I have held it since the first one."""
    return evolve(view, held_at=now) if view.held_at is None else view


def _adopted(held: Held, state: RendezvousState | None, sent_at: float, now: float) -> Held:
    """Return my memory in another life. Nothing from the old one counts, except for the worlds that my workers ran in, and
    when I was a spare last: no spare is restored."""
    return evolve(
        held,
        view=View(state, now),
        contact=evolve(held.contact, confirmed_at=_confirmed_at(held, state, sent_at), silent_since=None),
        past=evolve(held.past, returns=_returns(held, state), spare_at=_spare_at(held, state, now)),
        doubt=Doubt(),
    )


def woke(held: Held, now: float) -> Held:
    """Return my memory after my loop stood still for more than a TTL. Others may have gone on, or begun anew.

    All spans begin anew, that of a silent store too: those whom I wait for may have slept as well. What I could not read may
    have been put right.
    """
    return evolve(
        _unsilenced(held),
        view=evolve(held.view, suspects={}, spans={}),
        past=evolve(held.past, still_since=None),
        doubt=evolve(held.doubt, woke_at=now, instead=held.found),
    )


def unreadable(held: Held, text: str, now: float, sent_at: float = -math.inf, broken: Finding | None = None) -> Held:
    """Return my memory after an answer that is not a legal state. Nothing is restored over that. A store that shows nothing
    else is as good as silent."""
    return _troubled(held, Trouble(Why.ILLEGAL, text, broken), now, sent_at)


def unserved(held: Held, text: str, now: float, sent_at: float) -> Held:
    """Return my memory after the word that this node cannot serve its store, which has never answered."""
    return _troubled(held, Trouble(Why.UNSERVED, text), now, sent_at)


def _troubled(held: Held, trouble: Trouble, now: float, sent_at: float) -> Held:
    """Return my memory after an answer by which nobody may act. One from before my sleep is no more than silence: what it
    could not show may have been put right."""
    held, woke_at = silent(held, now, sent_at), held.doubt.woke_at
    if woke_at is not None and sent_at < woke_at:
        return held
    return evolve(held, doubt=evolve(held.doubt, instead=trouble))


def _still(held: Held, sent_at: float, now: float) -> Held:
    """Return my memory after an answer with the state that I hold: the same object where nothing else has changed."""
    view, contact, doubt = held.view, held.contact, held.doubt
    confirmed_at, asked_at = _confirmed_at(held, view.state, sent_at), _asked_at(held, sent_at)
    known = view.held_at is not None and doubt.unsure_at is None and doubt.instead is None
    if known and confirmed_at == contact.confirmed_at and asked_at == contact.asked_at:
        return held
    return evolve(
        held,
        view=_answered(view, now),
        contact=evolve(contact, asked_at=asked_at, confirmed_at=confirmed_at),
        doubt=doubt if known else Doubt(doubt.owed, _still_unsure(held, sent_at)),
    )


def _moved(held: Held, state: RendezvousState, sent_at: float, now: float) -> Held:
    view, contact, past, owed = held.view, held.contact, held.past, held.doubt.owed
    landed = owed is not None and state.version > owed.version
    alive = signs_of_life(view.state, state, _judged_by_life(view))
    return evolve(
        held,
        view=evolve(
            view,
            state=state,
            held_at=now,
            sightings=_with_later(held, state, refreshed(view.sightings, alive, now), now),
            suspects=_suspects(view, state, alive) if view.suspects else view.suspects,
            proposed=_still_proposed(view.proposed),
        ),
        contact=evolve(contact, asked_at=_asked_at(held, sent_at), confirmed_at=_confirmed_at(held, state, sent_at)),
        past=evolve(
            past,
            failed_at=_failed_at(held, state, now),
            asides=past.asides + _is_set_aside(held, state),
            returns=_returns(held, state),
            spare_at=_spare_at(held, state, now),
        ),
        doubt=Doubt(None if landed else owed, _still_unsure(held, sent_at)),
    )


def _with_later(held: Held, state: RendezvousState, sightings: Sightings, now: float) -> Sightings:
    """Return the sightings, with that of a later start of my slot that has come since: it lives."""
    before = held.view.state
    if before is None or held.who.node in state.seats:
        return sightings
    later = later_start(state, held.who.node)
    if later is None or later in before.seats:
        return sightings
    return evolve(sightings, of={**sightings.of, later: Sighting(None, now, vouched=True)})


def _asked_at(held: Held, sent_at: float) -> float:
    """Return when I sent the last request of those that were answered without a gap since I read heartbeats, after an answer
    to the one that I sent at this time."""
    read_at, asked_at = held.view.sightings.read_at, held.contact.asked_at
    last = asked_at if read_at is None else max(read_at, asked_at)
    follows = last < sent_at <= last + 2 * held.who.settings.keep_alive_interval
    return sent_at if follows else asked_at


def _judged_by_life(view: View) -> tuple[Node, ...]:
    """Return the nodes whose heartbeats I want to read; some may be there twice."""
    return *view.sightings.of, *view.sightings.aside, *view.suspects


def _failed_at(held: Held, state: RendezvousState, now: float) -> tuple[float, ...]:
    """Return when my last failures ended rounds. A failure that the loss of a node explains counts no longer."""
    me, limit, failed_at = held.who.node, held.who.settings.max_node_failures, held.past.failed_at
    before, ended = held.view.state, state.ended
    was = before.ended if before else None
    if limit is None or ended is None or ended == was or ended.by != me:
        return failed_at
    if ended.why is Why.FAILED:
        return (*failed_at, now)[-limit.failures :] if _counts(state, me) else failed_at
    refunded = was is not None and was.round == ended.round and before and _counts(before, me)
    return failed_at[:-1] if refunded else failed_at


def _counts(state: RendezvousState, node: Node) -> bool:
    """Return False if the last failure of this node does not count against it: the register shows that it told nothing."""
    seat = state.seats.get(node)
    return seat is None or seat.failing is not None


def _is_set_aside(held: Held, state: RendezvousState) -> bool:
    """Return True if this state is the first that I see in which my node is set aside."""
    before, me = held.view.state, held.who.node
    was, seat = before.seats.get(me) if before else None, state.seats.get(me)
    is_aside = seat is not None and seat.status is Status.ASIDE
    return is_aside and (was is None or was.status is not Status.ASIDE)


def _suspects(view: View, state: RendezvousState, alive: Collection[Node]) -> Mapping[Node, Suspect]:
    """Return whom I still suspect: who has a seat, and has not changed it."""
    return {node: each for node, each in view.suspects.items() if node in state.seats and node not in alive}


def _returns(held: Held, state: RendezvousState | None) -> bool:
    """Return True if I have links, and have lost a seat, or may have: a write with an unknown outcome may have given me
    one."""
    if not held.who.profile.link_port:
        return False
    before, me = held.view.state, held.who.node
    had = held.doubt.owed is not None or (before is not None and me in before.seats)
    return held.past.returns or (had and (state is None or me not in state.seats))


def _still_proposed(proposed: Proposed | None) -> Proposed | None:
    """Its era says how long it stands; what others propose is read again before anything is written."""
    return evolve(proposed, others=None) if proposed is not None else None


def _spare_at(held: Held, state: RendezvousState | None, now: float) -> float | None:
    before, me = held.view.state, held.who.node
    was = before is not None and before.is_spare(me)
    return now if was or (state is not None and state.is_spare(me)) else held.past.spare_at


def _still_unsure(held: Held, sent_at: float) -> float | None:
    unsure_at = held.doubt.unsure_at
    return None if unsure_at is None or sent_at >= unsure_at else unsure_at


def _confirmed_at(held: Held, state: RendezvousState | None, sent_at: float) -> float | None:
    return sent_at if state is not None and state.closed else held.contact.confirmed_at


def unanswered(held: Held, based_on: Token | None, now: float) -> Held:
    """Return my memory after a write with an unknown outcome: it may have landed, may still land, or never.

    If the write was meant to begin a life, my next such write begins another life. The first one may still land in a store
    that has lost its memory.
    """
    if held.found is not None:
        return _renamed(evolve(held, doubt=evolve(held.doubt, unsure_at=now)))
    if based_on is None:
        return _renamed(evolve(held, doubt=evolve(held.doubt, owed=Token(held.who.nonce, 0), unsure_at=now)))
    return evolve(held, doubt=evolve(held.doubt, owed=based_on, unsure_at=now))


def _renamed(held: Held) -> Held:
    """Return my memory with a nonce that this node has not used."""
    drawn, _, count = held.who.nonce.nonce.partition("/")
    return evolve(held, who=evolve(held.who, nonce=Life(f"{drawn}/{int(count or 1) + 1}")))


def silent(held: Held, now: float, sent_at: float = -math.inf) -> Held:
    """Return my memory after a request without an answer, sent at `sent_at` (-inf: the waiter's, sent long ago)."""
    contact = held.contact
    since = now if contact.silent_since is None else contact.silent_since
    return evolve(held, contact=evolve(contact, silent_since=since, tried_at=max(contact.tried_at, sent_at)))


def heard(held: Held, counters: Mapping[Node, int | None], sent_at: float, now: float, named: Life | None) -> Held:
    """Return my memory after an answered read of heartbeats, which names this life.

    Heartbeats of another life tell nothing. Then I must read the register.
    """
    view, settings = held.view, held.who.settings
    if view.state is not None and view.state.life != named:
        return evolve(_unsilenced(held), doubt=evolve(held.doubt, unsure_at=now))
    afresh_after = 2 * settings.keep_alive_interval
    asked_at = held.contact.asked_at
    seen = observe(view.sightings, counters, sent_at, now, afresh_after, settings.ttl, settings.leased, asked_at)
    suspects = _unheard(view.suspects, counters, sent_at) if view.suspects else view.suspects
    return _at(evolve(held, view=evolve(view, sightings=seen, suspects=suspects)), now)


def _unheard(
    suspects: Mapping[Node, Suspect], counters: Mapping[Node, int | None], sent_at: float
) -> Mapping[Node, Suspect]:
    """Return whom I still suspect. The first read since a link ended may show a heartbeat from before; the next ones show
    if the node lives."""
    still = {}
    for node, suspect in suspects.items():
        if node not in counters or sent_at < suspect.since:
            still[node] = suspect
        elif not suspect.read:
            still[node] = evolve(suspect, counter=counters[node], read=True)
        elif counters[node] in (None, suspect.counter):
            still[node] = suspect
    return still


def told_by_link(held: Held, node: Node, says: Says, beaten_at: float | None, now: float) -> Held:
    """Return my memory after a link has told this of its node. My last acknowledged heartbeat was sent at `beaten_at`.

    Evidence without suspicion says nothing: the node has shown a sign of life since its link ended. A port that refuses
    while the store is silent evicts nobody.
    """
    suspects = dict(held.view.suspects)
    was = suspects.get(node)
    if says is Says.SUSPECT:
        suspects[node] = Suspect(now)
    elif says is Says.ANSWERS:
        suspects.pop(node, None)
    elif says is Says.REFUSES and held.contact.silent_since is not None:
        suspects[node] = evolve(was or Suspect(now), is_gone=True)
    elif says is Says.GONE and was is not None:
        suspects[node] = evolve(was, beaten_at=was.beaten_at if beaten_at is None else beaten_at, is_gone=True)
    return evolve(held, view=evolve(held.view, suspects=suspects))


def stands_still(held: Held, since: float | None) -> Held:
    """Return my memory after a look at my workers: none has made progress since then (None: one has)."""
    return evolve(held, past=evolve(held.past, still_since=since))


def advanced(held: Held, round: int, now: float) -> Held:
    """Return my memory after a worker of mine has passed all steps that were reached before, if it is one of my world."""
    mine, advanced_in = held.past.mine, held.past.advanced_in
    advanced_in = mine if mine is not None and mine.round == round else advanced_in
    return evolve(_at(evolve(held, past=evolve(held.past, advanced_in=advanced_in)), now), contact=held.contact)


def proposed(held: Held, proposal: Proposal, count: int, sent_at: float, now: float) -> Held:
    """Return my memory after this proposal of mine was put down, as one of this many of its kind."""
    return _at(_proposes(_asked(held, sent_at), Proposed(proposal, now, count)), now)


def unproposed(held: Held, proposal: Proposal, now: float) -> Held:
    """Return my memory after the store has not answered to this proposal: it may stand there, or may yet come there."""
    return _proposes(held, Proposed(proposal, now, 0))


def gathered(held: Held, proposals: Mapping[Node, Proposal], sent_at: float, now: float) -> Held:
    """Return my memory after a read of what these nodes propose."""
    mine = held.view.proposed
    return _at(_proposes(_asked(held, sent_at), mine and evolve(mine, others=proposals)), now)


def _proposes(held: Held, mine: Proposed | None) -> Held:
    return evolve(held, view=evolve(held.view, proposed=mine))


def _asked(held: Held, sent_at: float) -> Held:
    """Return my memory after an answer that shows no register, to the request that I sent at this time."""
    return evolve(held, contact=evolve(held.contact, asked_at=_asked_at(held, sent_at)))


def joined(held: Held, world: WorldId) -> Held:
    """Return my memory after a join, with the world that my workers will run in."""
    ran = frozenset(each for each in held.past.ran if each.life != world.life)
    return evolve(held, past=evolve(held.past, mine=world, ran=ran | {world}, still_since=None))


def marked(held: Held) -> Held:
    """Return my memory after the register showed that my workers have all succeeded, since a store may forget it."""
    return evolve(held, past=evolve(held.past, done_in=held.past.mine))


def reserved(held: Held) -> Held:
    """Return my memory after the register showed that this node is a reserve."""
    return evolve(held, past=evolve(held.past, reserve_in=held.past.mine))


def introduced(held: Held, profile: Profile) -> Held:
    """Return my memory before a join, with the profile of this time: each round has an endpoint of its own."""
    return evolve(held, who=evolve(held.who, profile=profile))


def _at(held: Held, now: float) -> Held:
    """Return my memory with the spans of the facts that hold now, each from when I first saw it."""
    held, known = _unsilenced(held), held.view.spans
    spans: Spans = {fact: _since(known, fact, which) or (which, now) for fact, which in _facts(held, now).items()}
    return held if spans == known else evolve(held, view=evolve(held.view, spans=spans))


def _since(known: Spans, fact: Fact, which: object) -> tuple[object, float] | None:
    """Return the span of this very instance of the fact, if I have seen it before."""
    span = known.get(fact)
    return span if span is not None and span[0] == which else None


def _facts(held: Held, now: float) -> Mapping[Fact, object]:
    """Return the facts that hold now. The value names the instance: when it changes, the span starts again."""
    state, me, advanced_in = held.view.state, held.who.node, held.past.advanced_in
    if state is None or state.closed:
        return {}
    facts: dict[Fact, object] = {}
    if not state.complete:
        facts[Fact.OPEN] = state.round
        if state.quorum_at is not None:
            facts[Fact.QUORUM] = (state.round, state.quorum_at)
    else:
        if state.wait_list:
            facts[Fact.NEWCOMER if state.party_is_whole else Fact.PART] = state.round
        if state.ended is not None and state.ended.why is Why.UPSCALE:
            facts[Fact.GROWN] = state.round
        if state.limits.give_up_after and not state.progressed:
            facts[Fact.FRUITLESS] = state.round
            if advanced_in is not None and advanced_in == state.world_id:
                facts[Fact.ADVANCE] = state.round
    if dead(held, now):
        facts[Fact.DEAD] = True
    if me not in state.seats and (later := later_start(state, me)) in held.view.sightings.of:
        facts[Fact.LATER] = later
    if barring(held):
        facts[Fact.BARRED] = True
    if state.census[Status.ASIDE] and (seat := state.seats.get(me)) and seat.status is Status.ASIDE:
        facts[Fact.ASIDE] = seat.order
    return facts
