"""What a node remembers after an answer: the only maker of a new `Held`.

Every answer of a backend passes here before any handler sees it. A state is judged when it comes in: one that breaks an
invariant, or that no write can have made of the one I hold, becomes a `Trouble`, and so does a register that came back
empty, older or with another life. Nothing is written over what is not understood.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..evolving import evolve
from ..world import Life, Node, Profile, Why, WorldId
from .context import Fact, Held, Spans, Trouble, dead
from .sightings import observe, refreshed, signs_of_life
from .state import RendezvousState, Token
from .verify import Violation, verify, verify_step


def saw(held: Held, state: RendezvousState | None, sent_at: float, now: float) -> Held:
    """After an answer that shows this state (None: no register), to a request sent at that point of my clock."""
    if _is_lost(held):
        return held
    asked_since = held.held_at is None or sent_at >= held.held_at
    if held.state is not None and (state is None or state.life != held.state.life):
        return _troubled(held, Why.STORE_LOST, _lost(held.state, state)) if asked_since else held
    if state is None or (held.state is not None and state.version == held.state.version):
        return _at(_still(held, sent_at, now), now)
    if held.state is not None and state.version < held.state.version:
        return _troubled(held, Why.STORE_LOST, _lost(held.state, state)) if asked_since else held
    try:
        verify(state)
        if held.state is not None and state.version == held.state.version + 1:
            verify_step(held.state, state)
    except Violation as violation:
        return unreadable(held, str(violation))
    return _at(_moved(held, state, sent_at, now), now)


def unreadable(held: Held, text: str) -> Held:
    """After an answer that is no state, or one that no node may have written."""
    return _troubled(held, Why.ILLEGAL, text)


def _still(held: Held, sent_at: float, now: float) -> Held:
    """Nothing has changed; usually that was known."""
    if held.held_at is not None and held.unsure_at is None and held.trouble is None:
        return held
    first_at = now if held.held_at is None else held.held_at
    return evolve(held, unsure_at=_still_unsure(held, sent_at), held_at=first_at, trouble=None)


def _moved(held: Held, state: RendezvousState, sent_at: float, now: float) -> Held:
    landed = held.owed is not None and state.version > held.owed.version
    return evolve(
        held,
        state=state,
        held_at=now,
        sightings=refreshed(held.sightings, signs_of_life(held.state, state), now),
        owed=None if landed else held.owed,
        unsure_at=_still_unsure(held, sent_at),
        spare_at=now if _is_spare(held.node, held.state) or _is_spare(held.node, state) else held.spare_at,
        trouble=None,
    )


def _is_spare(node: Node, state: RendezvousState | None) -> bool:
    return state is not None and node in state.redundancy_list


def _still_unsure(held: Held, sent_at: float) -> float | None:
    return None if held.unsure_at is None or sent_at >= held.unsure_at else held.unsure_at


def _lost(held: RendezvousState, state: RendezvousState | None) -> str:
    if state is None:
        return f"the register came back empty (I hold version {held.version})"
    if state.life != held.life:
        return f"the register came back with another life, {state.life.nonce} (I hold {held.life.nonce})"
    return f"the register came back older: version {state.version} (I hold {held.version})"


def _is_lost(held: Held) -> bool:
    """Nothing heals a store that forgot: what it shows later may be what others began anew."""
    return held.trouble is not None and held.trouble.why is Why.STORE_LOST


def _troubled(held: Held, why: Why, text: str) -> Held:
    return held if _is_lost(held) else evolve(held, trouble=Trouble(why, text))


def unanswered(held: Held, based_on: Token | None, now: float) -> Held:
    """After a write whose outcome I do not know: it may have landed, may still land, or never. If it was to make the
    register out of nothing, the next such write begins another life: this one may yet land in a store that has forgotten."""
    if based_on is None:
        return evolve(held, owed=Token(held.nonce, 0), unsure_at=now, nonce=_another(held.nonce))
    return evolve(held, owed=based_on, unsure_at=now)


def _another(nonce: Life) -> Life:
    """A nonce that this node has not used."""
    drawn, _, count = nonce.nonce.partition("/")
    return Life(f"{drawn}/{int(count or 1) + 1}")


def silent(held: Held, now: float) -> Held:
    """After a question without an answer."""
    return held if held.silent_since is not None else evolve(held, silent_since=now)


def heard(held: Held, counters: Mapping[Node, int | None], sent_at: float, now: float) -> Held:
    """After an answered read of heartbeats."""
    afresh_after = 2 * held.settings.keep_alive_interval
    return _at(evolve(held, sightings=observe(held.sightings, counters, sent_at, now, afresh_after)), now)


def joined(held: Held, world: WorldId) -> Held:
    """After a join: the world that my workers will run in."""
    return evolve(held, mine=world)


def introduced(held: Held, profile: Profile) -> Held:
    """Before a join: what I say of myself this time (each round has an endpoint of its own)."""
    return evolve(held, profile=profile)


def _at(held: Held, now: float) -> Held:
    """With the spans of the facts that hold now: each from when I first saw it."""
    known = held.spans
    spans: Spans = {fact: _since(known, fact, which) or (which, now) for fact, which in _facts(held, now).items()}
    if held.silent_since is None and spans == known:
        return held
    return evolve(held, spans=spans, silent_since=None)


def _since(known: Spans, fact: Fact, which: object) -> tuple[object, float] | None:
    """The span of this very instance of the fact, if I had seen it before."""
    span = known.get(fact)
    return span if span is not None and span[0] == which else None


def _facts(held: Held, now: float) -> Mapping[Fact, object]:
    """The facts that hold now. The value names the instance: when it changes, the span starts again."""
    state = held.state
    if state is None or state.closed:
        return {}
    facts: dict[Fact, object] = {}
    if not state.complete:
        facts[Fact.OPEN] = state.round
        if state.quorum_at is not None:
            facts[Fact.QUORUM] = (state.round, state.quorum_at)
    elif state.wait_list:
        facts[Fact.NEWCOMER] = state.round
    if dead(held, now):
        facts[Fact.DEAD] = True
    return facts
