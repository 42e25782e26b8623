"""The agenda of a node at the register: its requests, one after the other.

The agent's requests stand in a queue. Each is carried out until the register has answered. A node whose workers run, or that
stands at the exit barrier, watches when the queue is empty; a watch gives way to any request. A leave voids the requests
before it, except a close and errands (work of the shell that has to be done in its turn). A close voids a join: it may wait
for long, and no node joins a job that it ends. A refusal voids a join too: the node is out, and would be seated again.
"""

from __future__ import annotations

from ..values import evolve, frozen
from ..world import Ending, Generation, Profile, Why, World
from .actions import Drain, Outcome, Settled
from .context import Handler, Held, Operation, Who
from .errands import NONE, Errand, Errands
from .handlers import close, done, drain, join, leave, reserve, watch
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
    holds_back: bool | None = None
    """True: a join that asks for no seat while a world runs without this node, until it is `Prepared`. Else None, which a
    trace leaves out."""
    drain: Drain | None = None
    """The edit that a `drain` wants."""
    forced: bool | None = None
    """True: it is wanted also where the others would be too few. Else None."""
    alive: Generation | None = None
    """The generation of the workers that run on while this node joins; None: none live."""
    is_open: bool | None = None
    """True: an `end` for a failure whose origin is open, so it does not count against this node. Else None."""


@frozen
class Prepared:
    """This node's workers can start at once from now on: no join of it holds back any longer."""


@frozen
class Agenda:
    queue: tuple[Request | Errand, ...] = ()
    operation: Operation | None = None
    """The operation that is under way."""
    watching: bool = False
    """A world runs here: with nothing else to do, the node watches it."""
    errands: Errands = NONE
    """The errands that were asked for: a store may not have taken them, or may forget them."""

    @property
    def due(self) -> bool:
        """Return True if no operation is under way, and one is to begin."""
        return self.operation is None and (bool(self.queue) or self.watching)


def submitted(agenda: Agenda, item: Request | Errand | Prepared) -> Agenda:
    """Return the agenda after the agent has submitted this."""
    queue, under_way = agenda.queue, agenda.operation
    if isinstance(item, Prepared):
        queue = tuple(evolve(each, holds_back=None) if isinstance(each, Request) else each for each in queue)
        under_way = evolve(under_way, holds_back=False) if under_way else None
        return Agenda(queue, under_way, agenda.watching, agenda.errands)
    if under_way and under_way.handler is watch:
        under_way = None
    if isinstance(item, Request) and item.handler is leave:
        queue = tuple(each for each in queue if isinstance(each, Errand) or each.handler is close)
        under_way = under_way if under_way and under_way.handler in (leave, close) else None
    if isinstance(item, Request) and item.handler is close:
        queue = _without_join(queue)
        under_way = None if under_way and under_way.handler is join else under_way
    return Agenda((*queue, item), under_way, agenda.watching, agenda.errands)


def _without_join(queue: tuple[Request | Errand, ...]) -> tuple[Request | Errand, ...]:
    return tuple(each for each in queue if isinstance(each, Errand) or each.handler is not join)


def begun(agenda: Agenda, held: Held, now: float, jitter: float) -> tuple[Agenda, Held, Errand | None]:
    """Begin what is due. Return the agenda with its operation under way, the memory, and the errand if it is one. `jitter`
    in [0, 1) is the shell's draw. Raises TypeError if the memory was not made of a `Who`: a check of each new memory
    would cost each step."""
    if type(held.who) is not Who:
        raise TypeError(f"a memory begins with Held(Who(node, profile, settings, nonce)), and here who is {held.who!r}")
    if not agenda.queue:
        under_way = operation(watch, held.who.settings, now, jitter)
        return Agenda((), under_way, agenda.watching, agenda.errands), held, None
    first, *rest = agenda.queue
    if isinstance(first, Errand):
        return Agenda(tuple(rest), agenda.operation, agenda.watching, agenda.errands), held, first
    if first.profile:
        held = introduced(held, first.profile)
    under_way = operation(
        first.handler,
        held.who.settings,
        now,
        jitter,
        first.why,
        first.ending,
        bool(first.holds_back),
        first.drain,
        bool(first.forced),
        first.alive,
        bool(first.is_open),
    )
    return Agenda(tuple(rest), under_way, agenda.watching, agenda.errands), held, None


def resumed(agenda: Agenda, now: float) -> Agenda:
    """Return the agenda after a sleep: the operation that is under way has its whole time again. What it waits for could not
    come to a node that slept, and may have slept too."""
    under_way = agenda.operation
    if under_way is None:
        return agenda
    again = evolve(under_way, since=now, deadline=now + (under_way.deadline - under_way.since))
    return evolve(agenda, operation=again)


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
    watches = handler in (done, reserve) or isinstance(answer, World)
    if agenda.operation is not None and agenda.operation.handler is drain:
        queue, watches = agenda.queue, agenda.watching  # nothing has changed for this node's own part
    return Agenda(queue, None, watches, agenda.errands), held
