"""Small registers for tests: nodes are letters, and a register is made by the edits that make real ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from elastic.core.rendezvous import (
    Action,
    Arrive,
    Complete,
    Contact,
    Doubt,
    Edit,
    End,
    Failing,
    Held,
    Limits,
    Operation,
    Past,
    RendezvousState,
    Settings,
    Status,
    View,
    Who,
    apply,
    blank,
    joined,
    saw,
    verify,
    verify_step,
)
from elastic.core.rendezvous import heard as answered_with
from elastic.core.rendezvous.context import Handler, context
from elastic.core.values import evolve, fields
from elastic.core.world import Endpoint, Life, Node, Profile, Why

LIFE = Life("life")
PARTS: Mapping[str, type[Any]] = {"who": Who, "view": View, "contact": Contact, "past": Past, "doubt": Doubt}
PART_OF = {field.name: part for part, kind in PARTS.items() for field in fields(kind)}
"""A field of a node's memory -> the part that has it."""


def node(name: str) -> Node:
    """Return the node of this name: `a` is the first incarnation of slot a, `a#2` its second."""
    slot, _, incarnation = name.partition("#")
    return Node(slot, int(incarnation or 1))


def name(who: Node) -> str:
    return who.slot if who.incarnation == 1 else str(who)


def nodes(names: str) -> frozenset[Node]:
    return frozenset(map(node, names.split()))


def profile(of: str, port: int = 29_500) -> Profile:
    return Profile(Endpoint(f"{node(of).slot}.example", port), host=node(of).slot)


def anew(text: str) -> str:
    """Return the same text as another object, as from the store. Python keeps one object for each text of a program."""
    return "".join([*text])


def register(size: str = "1:2", restarts: int = 0, segment: str = "") -> RendezvousState:
    """Before its first write; `size` as in --nnodes."""
    least, *rest = map(int, size.split(":"))
    most, unit = [*(rest or [least]), 1][:2]
    return blank(LIFE, Limits(least, most, restarts, node_unit=unit, segment=segment))


def edited(state: RendezvousState, who: str, edit: Edit) -> RendezvousState:
    """Return the state after an edit. Raises Violation if the state or the step to it is illegal."""
    after = apply(state, edit, node(who))
    if after is not state:
        verify(after)
        verify_step(state, after)
    return after


RACKS = {**dict.fromkeys("abc", "r1"), **dict.fromkeys("def", "r2"), **dict.fromkeys("gh", "r3")}
"""The rack of each node, where worlds have segments; other nodes have no such label."""


def racked(who: str, **labels: str) -> Profile:
    """Return what this node says of itself, with its rack."""
    rack = {"rack": RACKS[node(who).slot]} if node(who).slot in RACKS else {}
    return evolve(profile(who), labels=tuple(sorted({**rack, **labels}.items())))


def come(state: RendezvousState, names: str) -> RendezvousState:
    """Return the state after these nodes of racks have arrived, one after the other."""
    for who in names:
        state = edited(state, who, Arrive(racked(who)))
    return state


def arrived(state: RendezvousState, names: str) -> RendezvousState:
    """Return the state after these nodes have arrived, one after the other."""
    for who in names.split():
        state = edited(state, who, Arrive(profile(who)))
    return state


def running(names: str = "a b", size: str = "", restarts: int = 0) -> RendezvousState:
    """Return a complete round 0 of these nodes. A last call completes it if they are fewer than the maximum."""
    state = arrived(register(size or str(len(names.split())), restarts), names)
    return edited(state, names.split()[0], Complete(0))


def with_one_aside(failures: int = 2, cooldown_s: float = 600.0) -> RendezvousState:
    """Return a complete round 1 of a and c; b was set aside, because it had failed so often."""
    failed = edited(running("a b c", "1:3", 5), "b", End(0, Why.FAILED, Failing(failures, cooldown_s)))
    return arrived(failed, "a b c")


def circling(names: str = "a b", size: str = "1:3", give_up: int = 3, failures: bool = False) -> RendezvousState:
    """Return a complete round of these nodes, in a job that gives up after this number of fruitless ones."""
    least, most = map(int, size.split(":"))
    limits = Limits(least, most, 5, give_up_after=give_up, counts_failures=failures)
    return returned(evolve(register(size), limits=limits), names)


def returned(state: RendezvousState, names: str) -> RendezvousState:
    """Return the state once these nodes have arrived, and its round is complete."""
    state = arrived(state, names)
    return state if state.complete else edited(state, "a", Complete(state.round))


def circles(rounds: int, give_up: int = 3) -> RendezvousState:
    """Return the state after so many rounds in which b was lost, and started again at once: a verdict, or a complete one."""
    state = circling(give_up=give_up)
    for again in range(2, rounds + 2):
        state = arrived(state, f"b#{again}")
        state = state if state.closed else returned(state, "a")
    return state


def seats(state: RendezvousState) -> Mapping[str, str]:
    """Return the status of each seat by the node's name, in the order of the seats."""
    return {name(who): seat.status.value for who, seat in state.seats.items()}


def reseated(state: RendezvousState, **statuses: Status) -> RendezvousState:
    """Return a state that no edit makes: these seats have another status."""
    changed = {node(who): evolve(state.seats[node(who)], status=status) for who, status in statuses.items()}
    return evolve(state, seats={**state.seats, **changed})


def holding(
    who: str, state: RendezvousState | None, settings: Settings | None = None, at: float = 0.0, ran: int | None = None
) -> Held:
    """Return what a node holds that has read this state. `ran` is the round in which its workers last ran."""
    limits = state.limits if state else Limits(1, 2)
    fresh = Held(Who(node(who), profile(who), settings or Settings(limits=limits), LIFE))
    mine = None if ran is None or state is None else state.world.id._replace(round=ran)
    held = saw(fresh, state, at, at)
    return joined(held, mine) if mine else held


def but(held: Held, **changes: Any) -> Held:
    """Return this memory with other values of these fields, whichever part of it has them."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        parts.setdefault(PART_OF[name], {})[name] = value
    return evolve(held, **{part: evolve(getattr(held, part), **new) for part, new in parts.items()})


def heard(held: Held, counters: Mapping[Node, int | None], sent_at: float, now: float, life: Life = LIFE) -> Held:
    """Return what the node holds after it has read these heartbeats beside the register that it holds."""
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
    """Return the handler's decision."""
    return handler(context(operation(handler, deadline=deadline, why=why), held, now), deadline)
