"""The agenda of a node at the register: its requests, one after the other.

The agent's requests stand in a queue. Each is carried out until the register has answered. A node whose workers run, or that
stands at the exit barrier, watches when the queue is empty; a watch gives way to any request. A leave voids the requests
before it, except a close and errands (work of the shell that has to be done in its turn). A close voids a join: it may wait
for long, and no node joins a job that it ends. A refusal voids a join too: the node is out, and would be seated again.
"""

from __future__ import annotations

from attrs import frozen

from ..world import Ending, Profile, Why, World
from .actions import Outcome, Settled
from .context import Handler, Held, Operation
from .handlers import close, done, join, leave, reserve, watch
from .memory import introduced, joined, marked, reserved
from .operations import operation
from .turn import Raise


@frozen
class Request:
    """An operation that the agent wants carried out. `profile` is what this node says of itself from now on."""

    handler: Handler
    why: Why = Why.ASKED
    ending: Ending = Ending.CANCELLED
    profile: Profile | None = None


@frozen
class Errand:
    """Work that the shell does in its turn, and that no register knows of."""

    what: object


@frozen
class Agenda:
    queue: tuple[Request | Errand, ...] = ()
    operation: Operation | None = None
    """The operation that is under way."""
    watching: bool = False
    """A world runs here: with nothing else to do, the node watches it."""

    @property
    def due(self) -> bool:
        """Return True if no operation is under way, and one is to begin."""
        return self.operation is None and (bool(self.queue) or self.watching)


def submitted(agenda: Agenda, item: Request | Errand) -> Agenda:
    """Return the agenda after the agent has submitted this."""
    queue, under_way = agenda.queue, agenda.operation
    if under_way and under_way.handler is watch:
        under_way = None
    if isinstance(item, Request) and item.handler is leave:
        queue = tuple(each for each in queue if isinstance(each, Errand) or each.handler is close)
        under_way = under_way if under_way and under_way.handler in (leave, close) else None
    if isinstance(item, Request) and item.handler is close:
        queue = _without_join(queue)
        under_way = None if under_way and under_way.handler is join else under_way
    return Agenda((*queue, item), under_way, agenda.watching)


def _without_join(queue: tuple[Request | Errand, ...]) -> tuple[Request | Errand, ...]:
    return tuple(each for each in queue if isinstance(each, Errand) or each.handler is not join)


def begun(agenda: Agenda, held: Held, now: float, jitter: float) -> tuple[Agenda, Held, Errand | None]:
    """Begin what is due. Return the agenda with its operation under way, the memory, and the errand if it is one. `jitter`
    in [0, 1) is the shell's draw."""
    if not agenda.queue:
        return Agenda((), operation(watch, held.settings, now, jitter), agenda.watching), held, None
    first, *rest = agenda.queue
    if isinstance(first, Errand):
        return Agenda(tuple(rest), agenda.operation, agenda.watching), held, first
    if first.profile:
        held = introduced(held, first.profile)
    under_way = operation(first.handler, held.settings, now, jitter, first.why, first.ending)
    return Agenda(tuple(rest), under_way, agenda.watching), held, None


def answered(agenda: Agenda, held: Held, answer: Outcome | Raise) -> tuple[Agenda, Held]:
    """Return the agenda and the memory after the end of an operation: a node that is in a world, or done with it,
    watches."""
    handler = agenda.operation.handler if agenda.operation and isinstance(answer, Settled) else None
    if handler is done:
        held = marked(held)
    if handler is reserve:
        held = reserved(held)
    if isinstance(answer, World):
        held = joined(held, answer.id)
    queue = _without_join(agenda.queue) if isinstance(answer, Raise) else agenda.queue
    return Agenda(queue, watching=handler in (done, reserve) or isinstance(answer, World)), held
