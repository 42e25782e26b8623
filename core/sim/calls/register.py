"""The rendezvous of one rank in a world of calls: the core's own client, on a register that answers at once.

There are three times: now, late and too late. Late means that every timer of the rendezvous has passed since the state was
first seen, and that every dead node has been silent for a TTL. Too late means that a join's deadline has passed as well. A
rank does not remember the state: it is shown the register that stands before each step. A rank remembers only
what the store has forgotten.
"""

from __future__ import annotations

import math
from enum import Enum
from operator import is_

from ...caller import heard
from ...inprocess.words import Event
from ...rendezvous import (
    Agenda,
    Client,
    Decision,
    Doubt,
    Drawn,
    Edit,
    End,
    Evict,
    Gather,
    Held,
    Input,
    Operation,
    Passed,
    Proposal,
    Proposals,
    Propose,
    RendezvousState,
    Restore,
    Told,
    Write,
    apply,
    join,
    step,
    turn,
    verify,
    verify_restore,
    verify_step,
)
from ...rendezvous.actions import entrants
from ...rendezvous.context import NOBODY, Fact, Found, Proposed, context
from ...rendezvous.handlers import declare_dead
from ...rendezvous.memory import saw, unanswered
from ...rendezvous.sightings import Sighting, Sightings
from ...values import evolve, frozen
from ...world import Node
from .call_world import JITTER, Rank, Unheard, World
from .laws import I24, wrote

LONG_AGO = -1e6
DRAWN, PASSED = Drawn(JITTER), Passed()


@frozen
class Question:
    """The next question of a rank to the register, or what it is told; with its memory and its agenda then."""

    agenda: Agenda
    held: Held
    ask: Write | Propose | Told


class When(Enum):
    NOW = "now"
    LATE = "late"
    TOO_LATE = "too late"

    __hash__ = object.__hash__  # as for Status


def asked(world: World, rank: Rank, when: When = When.NOW) -> Question | None:
    """Return the next question; None if the rank only waits for a change."""
    if rank.agenda.operation is None and not rank.agenda.due:
        return None
    dead = NOBODY if when is When.NOW else _dead(world, rank)
    about = world.register, rank.agenda, rank.held, rank.remembers, world.proposals
    known = world.lately.get((rank.node, when))
    if known is None or known[1] != dead or not all(map(is_, known[0], about)):
        known = world.lately[rank.node, when] = about, dead, _asked(world, rank, when, dead)
    question: Question | None = known[2]
    return question


def _asked(world: World, rank: Rank, when: When, dead: frozenset[Node]) -> Question | None:
    late, too_late = when is not When.NOW, when is When.TOO_LATE
    client = Client(_seen(world, rank, late, dead), rank.agenda)
    this_turn = overdue if too_late else turn
    client, ask, notices = step(client, _next(rank), 0.0, this_turn)
    if isinstance(ask, Gather):
        asked = {node: each for node, each in world.proposals if node in ask.nodes}
        proposals = {**asked, **entrants(dict(world.proposals), ask.entering)}
        client, ask, notices = step(client, Proposals(proposals), 0.0, this_turn)
    if isinstance(ask, Propose):
        return Question(client.agenda, _kept(rank.held, client.held), ask)
    if isinstance(ask, Write):
        agenda, operation = client.agenda, client.agenda.operation
        if too_late and operation:
            agenda = evolve(agenda, operation=_overdue(operation))
        return Question(agenda, _kept(rank.held, client.held), ask)
    told = next((notice for notice in notices if isinstance(notice, Told)), None)
    return Question(client.agenda, _kept(rank.held, client.held), told) if told else None


def _next(rank: Rank) -> Input:
    return DRAWN if rank.agenda.due else PASSED


def overdue(operation: Operation, held: Held, now: float) -> Decision:
    """Turn as after a join's own deadline."""
    return turn(_overdue(operation), held, now)


def _overdue(operation: Operation) -> Operation:
    return evolve(operation, deadline=LONG_AGO) if operation.handler is join else operation


def _dead(world: World, rank: Rank) -> frozenset[Node]:
    """Return the nodes that have been silent for so long that they are dead for this rank."""
    living = {each.node for each in world.ranks if each.runs or each.monitor}
    present = world.register.present if world.register else ()
    dead = [node for node in present if node != rank.node and node not in living]
    return frozenset(sorted(dead)[:1] if rank.shown_part else dead)


def _seen(world: World, rank: Rank, late: bool, dead: frozenset[Node]) -> Held:
    register, me, at = world.register, rank.node, LONG_AGO if late else 0.0
    held = rank.held if rank.remembers is None else _shown(rank.held, rank.remembers, at)
    held = _shown(held, register, at)
    if register is None:
        return held
    view, mine = held.view, rank.held.view.proposed
    if mine and mine.proposal.era == register.era:  # it was made after what the rank remembers
        view = evolve(view, proposed=evolve(mine, at=LONG_AGO) if late else mine)
    sightings = {node: Sighting(0, -math.inf if node in dead else 0.0) for node in register.present if node != me}
    spans = {**view.spans, Fact.DEAD: (True, LONG_AGO)} if dead else view.spans
    return evolve(held, view=evolve(view, sightings=Sightings(sightings, 0.0), spans=spans))


def _shown(held: Held, register: RendezvousState | None, at: float) -> Held:
    return saw(held, register, 0.0, at)


def _knowing(held: Held, register: RendezvousState | None) -> Held:
    return evolve(held, view=evolve(held.view, state=register))


KEPT = ("mine", "ran", "done_in", "reserve_in")


def _kept(before: Held, after: Held) -> Held:
    """Return what a rank remembers of a step: what it has done, and not what it was shown."""
    who, owed, past = after.who, after.doubt.owed, after.past
    changes = {name: new for name in KEPT if (new := getattr(past, name)) is not getattr(before.past, name)}
    if who == before.who and owed is before.doubt.owed and not changes:
        return before
    return evolve(before, who=who, past=evolve(before.past, **changes), doubt=evolve(before.doubt, owed=owed))


def answer(world: World, rank: Rank, question: Question, when: When) -> tuple[World, Rank, Event | None]:
    """Return the world and the rank after the register's answer, and the event that the call hears."""
    held, ask = question.held, question.ask
    rank = evolve(rank, agenda=question.agenda, held=held, shown_part=rank.shown_part and when is When.NOW)
    if isinstance(ask, Write):
        if rank.unheard is not None:
            return _unheard(world, rank, ask, when)
        return landed(world, ask, waited=when is not When.NOW), _began(rank, ask), None
    if isinstance(ask, Propose):
        return _put_down(world, rank, ask.proposal)
    return world, rank, heard(ask.handler, ask.answer, world.terms, _knowing(held, world.register))


def _began(rank: Rank, write: Write) -> Rank:
    """Return the rank after it was shown what it wrote. One that has begun a life begins another one with the next nonce."""
    begun = write.state.life.nonce == rank.held.who.nonce.nonce
    return evolve(rank, held=_kept(rank.held, _shown(rank.held, write.state, 0.0))) if begun else rank


def _put_down(world: World, rank: Rank, proposal: Proposal) -> tuple[World, Rank, None]:
    """Return the world and the rank after its proposal was put down. Those of an era that is over are forgotten."""
    standing = {node: each for node, each in world.proposals if each.era == proposal.era}
    standing[rank.node] = proposal
    count = sum(each.like == proposal.like for each in standing.values())
    held = evolve(rank.held, view=evolve(rank.held.view, proposed=Proposed(proposal, 0.0, count)))
    return evolve(world, proposals=tuple(standing.items())), evolve(rank, held=held), None


def _unheard(world: World, rank: Rank, ask: Write, when: When) -> tuple[World, Rank, None]:
    """Return the world and the rank after a write whose outcome it does not know. It looks before it decides again."""
    lost = rank.unheard is Unheard.LOST
    found = Found(world.register, ask.edit.held, 0.0) if isinstance(ask.edit, Restore) else None
    held = unanswered(evolve(rank.held, doubt=evolve(rank.held.doubt, instead=found)), ask.token, 0.0)
    held = evolve(held, doubt=Doubt(held.doubt.owed))
    rank = evolve(rank, held=held, unheard=None, under_way=None if lost else (ask, when is not When.NOW))
    return landed(world, ask, waited=when is not When.NOW) if lost else world, rank, None


def lands(world: World, write: Write) -> bool:
    """Return True if this write finds the register that it names."""
    return write.token == (world.register.token if world.register else None)


def landed(world: World, write: Write, waited: bool = False) -> World:
    """Return the world after this write has landed."""
    deed, after = write.edit, write.state
    if not isinstance(deed, Restore):
        return written(world, after, waited)
    verify_restore(deed, world.register, after)
    unseated = world.unseated.difference(after.seats)  # a restore that comes late, and is older, may seat them again
    return evolve(world, register=after, forgotten=None, unseated=unseated)


def given_up(rank: Rank) -> Rank:
    """Return the rank after it gave up what was under way, or due: the store has not answered for this long."""
    silent = evolve(rank.held.contact, silent_since=LONG_AGO, tried_at=0.0)
    client = Client(evolve(rank.held, contact=silent), rank.agenda)
    client, _, _ = step(client, _next(rank), 0.0)
    return evolve(rank, agenda=client.agenda, held=_kept(rank.held, client.held))


def declared(world: World, rank: Rank, waited: bool) -> Edit | None:
    """Return what the monitor of a dead rank writes next; None if it waits for a replacement. Nobody replaces a rank that
    leaves for good."""
    kept = not rank.alive and (rank.call.replaced or not rank.call.leaving)
    settings = rank.held.who.settings if kept else evolve(rank.held.who.settings, replace_timeout=0.0)
    held = evolve(_knowing(rank.held, world.register), who=evolve(rank.held.who, settings=settings))
    operation = Operation(declare_dead, LONG_AGO if waited else 0.0, math.inf)
    action = declare_dead(context(operation, held, 0.0), math.inf)
    return action if isinstance(action, End | Evict) else None


def edited(world: World, edit: Edit, by: Node, waited: bool = False) -> World:
    """Return the world after a monitor process has written this edit."""
    before = world.register
    after = apply(before, edit, by) if before else None
    if before is None or after is None or after is before:
        return world
    verify(after)
    verify_step(before, after)
    return written(world, after, waited)


def written(world: World, after: RendezvousState, waited: bool = False) -> World:
    """Return the world after a write. `waited`: the writer has waited for as long as any span lasts."""
    before = world.register
    wrote(world, before, after, waited)
    forgotten = world.forgotten
    if forgotten is not None and after.complete and not (before and before.complete):
        I24.judge(world, forgotten, after, waited)
        forgotten = None
    left = frozenset(before.seats.keys() - after.seats.keys()) if before else frozenset[Node]()
    gone = frozenset(rank.node for rank in world.ranks if rank.call.leaving and rank.node in left)
    return evolve(world, register=after, unseated=world.unseated | gone, forgotten=forgotten)
