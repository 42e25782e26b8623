"""The rendezvous of one rank in a world of calls: the core's own `agenda` and `turn`, on a register that answers at once.

There are three times: now, late and too late. Late means that every timer of the rendezvous has passed since the state was
first seen, and that every dead node has been silent for a TTL. Too late means that a join's deadline has passed as well.
"""

from __future__ import annotations

import math
from enum import Enum
from operator import is_

from attrs import frozen

from ...caller import heard
from ...evolving import evolve
from ...inprocess.words import Event
from ...rendezvous import Edit, Held, Raise, RendezvousState, Return, Write, apply, join, saw, turn, verify, verify_step
from ...rendezvous.agenda import Agenda, answered, begun
from ...rendezvous.context import Fact
from ...rendezvous.sightings import Sighting, Sightings
from ...world import Node
from .call_world import JITTER, Rank, World
from .laws import wrote

LONG_AGO = -1e6


@frozen
class Question:
    """The next question of a rank to the register."""

    agenda: Agenda
    held: Held
    ask: Write | Return | Raise


class When(Enum):
    NOW = "now"
    LATE = "late"
    TOO_LATE = "too late"


def asked(world: World, rank: Rank, when: When = When.NOW) -> Question | None:
    """Return the next question; None if the rank only waits for a change."""
    if when is not When.NOW:
        return _asked(world, rank, when)
    about = world.register, rank.agenda, rank.held
    known = world.lately.get(rank.node)
    if known is None or not all(map(is_, known[0], about)):
        known = world.lately[rank.node] = about, _asked(world, rank, when)
    question: Question | None = known[1]
    return question


def _asked(world: World, rank: Rank, when: When) -> Question | None:
    agenda, held = rank.agenda, rank.held
    if agenda.due:
        agenda, held, _ = begun(agenda, held, 0.0, JITTER)
    if agenda.operation is None:
        return None
    if when is When.TOO_LATE and agenda.operation.handler is join:
        agenda = evolve(agenda, operation=evolve(agenda.operation, deadline=LONG_AGO))
    ask = turn(agenda.operation, _seen(world, held, rank.node, when is not When.NOW), 0.0) if agenda.operation else None
    return Question(agenda, held, ask) if isinstance(ask, Write | Return | Raise) else None


def _seen(world: World, held: Held, me: Node, late: bool) -> Held:
    register = world.register
    held = saw(held, register, 0.0, LONG_AGO if late else 0.0)
    if register is None:
        return held
    silent = frozenset(rank.node for rank in world.ranks if not (rank.alive or rank.monitor)) if late else frozenset()
    known = {rank.node for rank in world.ranks}
    dead = (
        {node for node in register.present if node != me and (node in silent or node not in known)} if late else set()
    )
    sightings = {node: Sighting(0, -math.inf if node in dead else 0.0) for node in register.present if node != me}
    spans = {**held.spans, Fact.DEAD: (True, LONG_AGO)} if dead else held.spans
    return evolve(held, sightings=Sightings(sightings, 0.0), spans=spans)


def answer(world: World, rank: Rank, question: Question, when: When) -> tuple[World, Rank, Event | None]:
    """Return the world and the rank after the register's answer, and the event that the call hears."""
    agenda, held, ask = question.agenda, question.held, question.ask
    if isinstance(ask, Write):
        return written(world, ask.state, waited=when is not When.NOW), evolve(rank, agenda=agenda, held=held), None
    outcome = ask.outcome if isinstance(ask, Return) else ask
    handler = agenda.operation.handler if agenda.operation else None
    agenda, held = answered(agenda, held, outcome)
    seen = evolve(held, state=world.register)
    event = heard(handler, outcome, world.terms, seen) if handler else None
    return world, evolve(rank, agenda=agenda, held=held), event


def edited(world: World, edit: Edit, by: Node) -> World:
    """Return the world after a monitor process has written this edit."""
    before = world.register
    after = apply(before, edit, by) if before else None
    if before is None or after is None or after is before:
        return world
    verify(after)
    verify_step(before, after)
    return written(world, after)


def written(world: World, after: RendezvousState, waited: bool = False) -> World:
    """`waited`: whoever writes has waited for as long as any span lasts."""
    before = world.register
    wrote(world, before, after, waited)
    left = frozenset(before.seats.keys() - after.seats.keys()) if before else frozenset[Node]()
    gone = frozenset(rank.node for rank in world.ranks if rank.call.leaving and rank.node in left)
    return evolve(world, register=after, unseated=world.unseated | gone)
