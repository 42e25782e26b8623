"""The law of whose heartbeats a node reads (O18): who watches whom, and who stands in for a coordinator that is silent."""

from __future__ import annotations

from collections.abc import Collection

from ..properties.law import Law, Strength
from ..rendezvous import Held, Observe, RendezvousState
from ..rendezvous.context import dead
from ..violation import check
from ..world import Node

O18 = Law(
    "O18",
    "The coordinator, which is the first node with a seat that is not dead, reads the heartbeats of all others; while it is "
    "silent for half a TTL, or somebody is dead, the stand-ins read all, too, and so does each node if these are silent; "
    "any other node reads those of the coordinator, of the stand-ins then, of whom it suspects, and of those that had none.",
    "a node with a seat reads heartbeats",
)


def listens(strength: Strength, held: Held, question: Observe, now: float) -> None:
    """Judge whose heartbeats a node reads. Raises Violation."""
    state, me, reads = held.view.state, held.who.node, question.nodes
    if state is None or state.closed or me not in state.seats:
        return
    strength.armed["O18"] += 1
    first = state.first
    if reads == state.present[1:] if me == first else len(reads) == 1 and reads[0] is first and _hears_all(held):
        return  # by far the most
    whom = _whom(held, state, [node for node in state.present if node != me], dead(held, now))
    if len(reads) != len(whom) or not set(reads).issuperset(whom):
        names = ", ".join(map(str, reads))
        check([("O18", f"{me} reads the heartbeats of {names}, not of {', '.join(map(str, whom))}")])


def _hears_all(held: Held) -> bool:
    """Return True if this node suspects nobody, and has heard whom it watches within half a TTL before it last asked."""
    seen = held.view.sightings
    is_silent = seen.read_at is not None and seen.read_at - seen.oldest >= held.who.settings.ttl / 2
    return not (held.view.suspects or is_silent) and None not in [each.counter for each in seen.of.values()]


def _whom(held: Held, state: RendezvousState, others: list[Node], dead: frozenset[Node]) -> Collection[Node]:
    """Return whose heartbeats this node is to read."""
    me, sightings = held.who.node, held.view.sightings
    first = next((node for node in state.present if node not in dead), None)
    if first is None or first == me:
        return others
    if not dead and not _is_silent(held, first):
        unheard = {node for node, seen in sightings.of.items() if seen.counter is None}
        return {first, *({*held.view.suspects, *unheard}.intersection(others))}
    if me in state.stand_ins or all(_is_silent(held, node) for node in state.stand_ins):
        return others
    return {first, state.present[0], *state.stand_ins, *held.view.suspects, *dead}.intersection(others)


def _is_silent(held: Held, node: Node) -> bool:
    """Return True if this node was silent for half a TTL when the other one last asked."""
    seen, read_at = held.view.sightings.of.get(node), held.view.sightings.read_at
    return seen is not None and read_at is not None and read_at - seen.moved_at >= held.who.settings.ttl / 2
