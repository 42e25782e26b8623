"""What one agent has been through, by its own clock: the part of the judge's memory by which its ends and wishes are judged.

It works out again, from the registers that an agent held and from what its group was told, what the agent's own client
concluded. So an agent that gives up, ends a round or quits without cause is judged by another rule than its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TypeAlias

from attrs import define, field

from ..group import Phase
from ..group.state import (
    Checked,
    Join,
    Noticed,
    Over,
    Ready,
    ReadyToLeave,
    Signalled,
    Start,
    StartAgain,
    Unstartable,
)
from ..group.state import Close as CloseJob
from ..group.state import Drain as DrainMe
from ..group.state import End as EndRound
from ..group.state import Leave as LeaveJob
from ..rendezvous import Held, RendezvousState, Status
from ..world import Node, Verdict, Why, WorldId
from .facts import Stepped

SLACK_S = 1e-6
"""Two sums of the same spans may differ by so much."""
NEVER = math.inf
Instance: TypeAlias = Callable[[RendezvousState], object]
"""Which instance of a fact holds in a register; None if none does."""


def has_lasted(for_s: float, span: float) -> bool:
    return for_s >= span - SLACK_S


@define
class Past:
    """What one agent has been through, by its own clock."""

    held: list[tuple[float, Held]] = field(factory=list)
    """What it held, and since when."""
    joins_since: float = NEVER
    woke_at: float = -NEVER
    worlds: set[WorldId] = field(factory=set)
    """The worlds that its group was told of."""
    refusals: set[Why] = field(factory=set)
    signals: list[int] = field(factory=list)
    unstartable: bool = False
    """It could not start its workers, and a restart cannot help."""
    unfit: bool = False
    """A check found it unfit, or it has failed too often."""
    is_checked: bool = False
    """A check found it fit, and no failure of its own has ended a round since."""
    asks_whose: bool = False
    """It has asked for the end of a round because of a failure, and was not told yet whose failure ended that."""
    gone: bool = False
    """It was told that the register knows that it leaves."""
    is_hurried: bool = False
    """A signal came while it left."""
    ready_at: float = NEVER
    done_at: float = NEVER
    leaves_since: float = NEVER
    drains: list[float] = field(factory=list)
    """When its group wanted to tell the register of each notice that is not told yet, the first one first."""
    closes_since: float = NEVER
    ended_at: float = NEVER
    gone_by: float = NEVER
    """By when it must be gone, by the notices that it was given."""
    noticed_at: float = NEVER
    """When it was given the first of these."""
    ready: set[int] = field(factory=set)
    """The workers of its world that said they are ready to leave, and were not started again since."""
    owes: WorldId | None = None
    """The world whose end its group last asked for, because of a failure."""

    def verdicts(self) -> set[Verdict]:
        """Return all verdicts that it has held."""
        states = (held.view.state for _, held in self.held)
        return {state.closed for state in states if state is not None and state.closed}

    @property
    def is_spare(self) -> bool:
        return bool(self.held) and is_spare(self.held[-1][1])

    def spare_until(self) -> float:
        """Return until when it held a register in which it is a spare."""
        later = NEVER
        for since, held in reversed(self.held):
            if is_spare(held):
                return later
            later = since
        return -NEVER

    def waited(self, at: float) -> float:
        """Return for how long it has waited for a world, awake and no spare."""
        return 0.0 if self.is_spare else self.awake(max(self.joins_since, self.spare_until()), at)

    def awake(self, since: float, at: float) -> float:
        """Return for how long it was awake since then."""
        return at - max(since, self.woke_at)

    def seen(self, fact: Instance, at: float) -> float:
        """Return for how long it has seen the instance of this fact that holds."""
        which, first = None, NEVER
        for since, held in reversed(self.held):
            now = fact(held.view.state) if held.view.state is not None else None
            if now is None or (which is not None and now != which):
                break
            which, first = now, since
        return self.awake(first, at)

    def knows(self, claim: Callable[[Held], bool], at: float) -> float:
        """Return for how long this has been true of what it holds."""
        first = NEVER
        for since, held in reversed(self.held):
            if not claim(held):
                break
            first = since
        return self.awake(first, at)

    def failures(self, me: Node) -> list[float]:
        """Return when its failures ended rounds, as far as the register charges it with them: a loss has explained no other
        ones."""
        charged = list[float]()
        for was, now, at in self._moves():
            ended = now.ended
            if ended is None or ended == was.ended or ended.by != me:
                continue
            if ended.why is Why.FAILED and _is_charged(now, me):
                charged.append(at)
            elif ended.why is not Why.FAILED and was.ended and was.ended.round == ended.round and _is_charged(was, me):
                del charged[-1:]
        return charged

    def asides(self, me: Node) -> int:
        """Return how often it has seen that it is set aside."""
        return sum(_is_aside(now, me) and not _is_aside(was, me) for was, now, _ in self._moves())

    def _moves(self) -> Iterator[tuple[RendezvousState, RendezvousState, float]]:
        """Yield two registers of one life that it held one after the other, and since when it held the second one."""
        for (_, was), (at, now) in pairwise(self.held):
            before, after = was.view.state, now.view.state
            if before and after and after.life == before.life and after.version > before.version:
                yield before, after, at

    # --- what happens

    def stepped(self, fact: Stepped) -> None:
        """Note what the group was told and wants."""
        event, at = fact.event, fact.at
        if isinstance(event, Ready):
            self.worlds.add(event.world.id)
            self.ready_at = at
        elif isinstance(event, Signalled):
            self.signals.append(event.signum)
            self.is_hurried |= fact.before.phase is Phase.LEAVING
        elif isinstance(event, Unstartable):
            self.unstartable |= not event.passes
        elif isinstance(event, Checked):
            self.unfit |= not event.is_fit
            self.is_checked |= event.is_fit
        elif isinstance(event, Over) and self.asks_whose:
            self.asks_whose = False
            self.is_checked &= event.by not in (None, fact.before.node)
        elif isinstance(event, Noticed):
            self.gone_by = min(self.gone_by, at + event.notice.deadline_s)
            self.noticed_at = min(self.noticed_at, at)
            self.unfit |= bool(event.unfit)
        elif isinstance(event, ReadyToLeave):
            self.ready.add(event.local_rank)
        if fact.after.phase is not fact.before.phase:
            self.done_at = at if fact.after.phase is Phase.BARRIER else self.done_at
            self.ended_at = at if fact.after.phase is Phase.ENDED else self.ended_at
        for command in fact.commands:
            if isinstance(command, Join):
                self.joins_since = at
            elif isinstance(command, LeaveJob):
                self.leaves_since = at
            elif isinstance(command, DrainMe):
                self.drains.append(at)
            elif isinstance(command, CloseJob):
                self.closes_since = at
            elif isinstance(command, Start):
                self.ready.clear()
            elif isinstance(command, StartAgain):
                self.ready.discard(command.local_rank)
            elif isinstance(command, EndRound) and fact.before.world is not None:
                self.owes = fact.before.world.id
                self.asks_whose = not command.is_open


def _is_charged(state: RendezvousState, node: Node) -> bool:
    """Return True if the register charges this node with the failure that ended the last round."""
    return node not in state.seats or state.seats[node].failing is not None


def _is_aside(state: RendezvousState, node: Node) -> bool:
    return node in state.seats and state.seats[node].status is Status.ASIDE


def is_spare(held: Held) -> bool:
    return held.view.state is not None and held.view.state.is_spare(held.who.node)
