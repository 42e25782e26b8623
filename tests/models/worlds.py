"""Small registers for tests: nodes are letters, and a register is made by the edits that make real ones."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve

from elastic.core.rendezvous import (
    Action,
    Arrive,
    Complete,
    Edit,
    Held,
    Limits,
    Operation,
    RendezvousState,
    Settings,
    Status,
    apply,
    blank,
    joined,
    saw,
    verify,
    verify_step,
)
from elastic.core.rendezvous import heard as answered_with
from elastic.core.rendezvous.context import Handler, context
from elastic.core.world import Endpoint, Life, Node, Profile, Why

LIFE = Life("life")


def node(name: str) -> Node:
    """`a` is the first incarnation of slot a, `a#2` its second."""
    slot, _, incarnation = name.partition("#")
    return Node(slot, int(incarnation or 1))


def name(who: Node) -> str:
    return who.slot if who.incarnation == 1 else str(who)


def nodes(names: str) -> frozenset[Node]:
    return frozenset(map(node, names.split()))


def profile(of: str, port: int = 29_500) -> Profile:
    return Profile(Endpoint(f"{node(of).slot}.example", port), host=node(of).slot)


def register(size: str = "1:2", restarts: int = 0) -> RendezvousState:
    """Before its first write; `size` as in --nnodes."""
    least, _, most = size.partition(":")
    return blank(LIFE, Limits(int(least), int(most or least), restarts))


def edited(state: RendezvousState, who: str, edit: Edit) -> RendezvousState:
    """The state after a legal edit; it and the step to it verify."""
    after = apply(state, edit, node(who))
    if after is not state:
        verify(after)
        verify_step(state, after)
    return after


def arrived(state: RendezvousState, names: str) -> RendezvousState:
    for who in names.split():
        state = edited(state, who, Arrive(profile(who)))
    return state


def running(names: str = "a b", size: str = "", restarts: int = 0) -> RendezvousState:
    """A complete round 0 of these nodes, by a last call if they are fewer than the maximum."""
    state = arrived(register(size or str(len(names.split())), restarts), names)
    return edited(state, names.split()[0], Complete(0))


def seats(state: RendezvousState) -> Mapping[str, str]:
    """Name -> status, in the order of arrival."""
    return {name(who): seat.status.value for who, seat in state.seats.items()}


def reseated(state: RendezvousState, **statuses: Status) -> RendezvousState:
    """A state that no edit makes: some seats are given another status."""
    changed = {node(who): evolve(state.seats[node(who)], status=status) for who, status in statuses.items()}
    return evolve(state, seats={**state.seats, **changed})


def holding(
    who: str, state: RendezvousState | None, settings: Settings | None = None, at: float = 0.0, ran: int | None = None
) -> Held:
    """A node that has read this state at this time; `ran`: the round that its workers last ran in."""
    limits = state.limits if state else Limits(1, 2)
    fresh = Held(node(who), profile(who), settings or Settings(limits=limits), LIFE)
    mine = None if ran is None or state is None else state.world.id._replace(round=ran)
    held = saw(fresh, state, at, at)
    return joined(held, mine) if mine else held


def heard(held: Held, counters: Mapping[Node, int | None], sent_at: float, now: float, life: Life = LIFE) -> Held:
    """After a read of heartbeats beside the register that is held."""
    return answered_with(held, counters, sent_at, now, life)


def operation(
    handler: Handler,
    since: float = 0.0,
    deadline: float = math.inf,
    jitter: float = 0.0,
    why: Why = Why.ASKED,
) -> Operation:
    return Operation(handler, since, deadline, jitter, why)


def action(handler: Handler, held: Held, now: float = 0.0, deadline: float = math.inf, why: Why = Why.ASKED) -> Action:
    """What a handler answers."""
    return handler(context(operation(handler, deadline=deadline, why=why), held, now), deadline)
