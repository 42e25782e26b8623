"""The values that make up a state of a small world whose store may lose what it holds.

Lives, versions and rounds keep their names here, because a loss is decided by comparing them. The search still ends: each
write, fault and loss makes a number larger, and their count is limited. The keys leave out only what no rule reads.
"""

from __future__ import annotations

from typing import NamedTuple

from plainnode import SOMEBODY, Local, tidy
from wholenode import Step
from worlds import but

from elastic.core.group import Group
from elastic.core.rendezvous import Held, RendezvousState, Write, linger
from elastic.core.rendezvous.agenda import Agenda
from elastic.core.rendezvous.context import Found
from elastic.core.values import evolve, frozen
from elastic.core.world import Verdict, WorldId


class State(NamedTuple):
    """A state of a small world, as numbers of values in the world's tables."""

    common: int
    """The number of what concerns all nodes."""
    places: tuple[int, ...]
    """One for each node."""


@frozen
class Place:
    """A node, and what the world knows of it."""

    local: int
    """The number of the node's own state, or one of ABSENT, CRASHED and ENDED."""
    knows: bool = True
    """It has read the store since the last loss."""
    succeeded: frozenset[WorldId] = frozenset()
    """The worlds in which its workers have succeeded."""
    left: bool = False
    """Its agent was told that it has left."""
    started: frozenset[WorldId] = frozenset()
    """The worlds in which its workers were started."""
    job: str = ""
    """The job of the last of these worlds."""


class LateWrite(NamedTuple):
    """A write on its way to the store."""

    writer: int
    """The index of the node that wrote it."""
    write: int


@frozen
class Shown:
    """What the store holds. `here` is False for a copy: the register was written in another store."""

    register: int
    here: bool = True


@frozen
class Common:
    """What concerns all nodes."""

    shown: Shown
    copy: int = 0
    """The register that the store was copied at; 0: it was not copied."""
    faults: int = 0
    """How many faults may still happen."""
    losses: int = 0
    """How many losses may still happen."""
    late: tuple[LateWrite, ...] = ()
    failed: frozenset[WorldId] = frozenset()
    """The worlds in which a worker failed."""
    kept: WorldId | None = None
    """The world that was well when the store was lost, which nobody may stop (R12)."""


@frozen
class Effect:
    """What a step makes of the world: the node's next place, the world in which its workers fail, whether they start."""

    step: Step
    after: Place
    failed: WorldId | None = None
    starts: bool = False


def canonical(state: RendezvousState) -> RendezvousState:
    """Return the register without what no rule reads: who closed it and in which round."""
    closed = state.closed and Verdict(state.closed.ending, 0, SOMEBODY, state.closed.why)
    return evolve(state, closed=closed)


def state_key(state: RendezvousState | None) -> object:
    if state is None:
        return None
    which = state.life, state.version, state.job, state.base, state.round, state.completed_in
    seats = tuple((node, seat.status, seat.order) for node, seat in state.seats.items())
    rest = state.next_order, state.stale_before, state.failures, state.ended, state.closed
    return *which, seats, state.target, state.quorum_at, *rest


def write_key(write: Write) -> object:
    return state_key(write.state), write.token, type(write.edit)


def local_key(local: Local) -> object:
    held, sent = local.held, local.ask if local.sent and isinstance(local.ask, Write) else None
    spans = tuple((fact.value, span) for fact, span in sorted(held.view.spans.items(), key=lambda item: item[0].value))
    beats = tuple((node, seen.moved_at) for node, seen in held.view.sightings.of.items())
    found = held.found and (state_key(held.found.state), state_key(held.found.restore))
    unsure = (
        held.view.held_at is None,
        held.doubt.owed,
        held.doubt.unsure_at,
        held.doubt.woke_at,
        held.contact.confirmed_at,
    )
    worlds = held.past.mine, held.past.ran, held.past.done_in, local.started
    rest = held.who.nonce, local.agenda, local.group, sent and write_key(sent)
    return held.who.node, state_key(held.view.state), spans, beats, found, unsure, worlds, rest


def normal(held: Held, agenda: Agenda, group: Group) -> tuple[Held, Agenda, Group]:
    """Return a node's memory, agenda and group without what no rule reads any more."""
    held, agenda, group = tidy(held, agenda, group)
    found = held.found
    if found:
        found = Found(found.state and canonical(found.state), canonical(found.restore), 0.0)
    lingers = agenda.operation is not None and agenda.operation.handler is linger
    held = but(
        held,
        state=held.view.state and canonical(held.view.state),
        instead=found or held.doubt.instead,
        confirmed_at=held.contact.confirmed_at if lingers else None,
    )
    return held, agenda, group
