"""What the states of a small world are made of whose store loses what it holds.

Nothing is renamed here: lives, versions and rounds are what states are ranked by, and with them every history comes to its
end, for each write, fault and loss is one more. Only what no rule reads is left out.
"""

from __future__ import annotations

from attrs import frozen
from plainnode import SOMEBODY, Local, tidy
from wholenode import Step

from elastic.core.evolving import evolve
from elastic.core.group import Group
from elastic.core.rendezvous import Held, RendezvousState, Write, linger
from elastic.core.rendezvous.agenda import Agenda
from elastic.core.rendezvous.context import Found
from elastic.core.world import Verdict, WorldId


@frozen
class Place:
    """A node as all see it. `knows`: what it saw last was of the store as it is now; `succeeded`: its workers have, in these
    worlds; `started`: in which they ever were; `job`: whose the last of these was."""

    local: int
    knows: bool = True
    succeeded: frozenset[WorldId] = frozenset()
    left: bool = False
    started: frozenset[WorldId] = frozenset()
    job: str = ""


@frozen
class Late:
    """A write on its way."""

    who: int
    write: int


@frozen
class Shown:
    """What the store holds, and whether it was written there."""

    register: int
    here: bool = True


@frozen
class All:
    """What concerns all nodes: the store and what it had been when it was copied, late writes, the worlds in which a worker
    failed, and the world that a loss must not end."""

    shown: Shown
    copy: int = 0
    faults: int = 0
    losses: int = 0
    late: tuple[Late, ...] = ()
    failed: frozenset[WorldId] = frozenset()
    kept: WorldId | None = None


@frozen
class Then:
    """Where a step leads."""

    step: Step
    after: Place
    failed: WorldId | None = None
    starts: bool = False


def canonical(state: RendezvousState) -> RendezvousState:
    """The register without what no rule can tell apart, by its own names."""
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
    spans = tuple((fact.value, span) for fact, span in sorted(held.spans.items(), key=lambda item: item[0].value))
    beats = tuple((node, seen.moved_at) for node, seen in held.sightings.of.items())
    found = held.found and (state_key(held.found.state), state_key(held.found.restore))
    unsure = held.held_at is None, held.owed, held.unsure_at, held.woke_at, held.confirmed_at
    worlds = held.mine, held.ran, held.done_in, local.started
    rest = held.nonce, local.agenda, local.group, sent and write_key(sent)
    return held.node, state_key(held.state), spans, beats, found, unsure, worlds, rest


def normal(held: Held, agenda: Agenda, group: Group) -> tuple[Held, Agenda, Group]:
    """Without what can make no difference any more."""
    held, agenda, group = tidy(held, agenda, group)
    found = held.found
    if found:
        found = Found(found.state and canonical(found.state), canonical(found.restore), 0.0)
    lingers = agenda.operation is not None and agenda.operation.handler is linger
    held = evolve(
        held,
        state=held.state and canonical(held.state),
        found=found,
        confirmed_at=held.confirmed_at if lingers else None,
    )
    return held, agenda, group
