"""The facts of a run by which properties are judged: one value for each, in the order in which they happened.

The simulator tells all of them, a merged trace of real agents most of them.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from attrs import field

from ..group import Group
from ..group.state import Command, Event
from ..rendezvous import Deed, Held, RendezvousState, Restore, blank
from ..rendezvous.context import Handler
from ..values import frozen
from ..world import Node, Why, World, WorldId


@frozen
class Wrote:
    """A write of `node` landed: `edit` made `after` of `before` (None: there was no register). `here` is True if `before`
    was written in the store that took the write, and False if that store is a copy of another."""

    node: Node
    before: RendezvousState | None
    edit: Deed
    after: RendezvousState
    here: bool = True
    was: RendezvousState = field(init=False, repr=False, eq=False)
    """The register before this edit: a blank one if there was none."""

    @was.default
    def _was(self) -> RendezvousState:
        return self.before or blank(self.after.life, self.after.limits, self.after.target)

    @property
    def restores(self) -> bool:
        """Return True if this is no edit, but a restore."""
        return isinstance(self.edit, Restore)

    @property
    def completes(self) -> bool:
        """Return True if this write completes a new world."""
        before, after = self.before, self.after
        if self.restores:
            return False
        return after.complete and (before is None or not before.complete or after.round > before.round)


@frozen
class Started:
    """The workers of `node` in this world were started."""

    node: Node
    world: World


@frozen
class Moved:
    """The workers of `node` that live are those of this world from now on."""

    node: Node
    world: World


@frozen
class Failed:
    """A worker of `node` failed by itself, or could not be started."""

    node: Node
    world: WorldId


@frozen
class Succeeded:
    """All workers of `node` have succeeded."""

    node: Node
    world: WorldId


@frozen
class Reaped:
    """No worker of `node` lives."""

    node: Node


@frozen
class Left:
    """`node` was told that the register knows that it leaves."""

    node: Node


@frozen
class Noted:
    """A notice that `node` wanted to tell the register needs to be told no longer."""

    node: Node


@frozen
class Stepped:
    """A worker group took a step."""

    before: Group
    event: Event
    after: Group
    commands: tuple[Command, ...]
    at: float
    kinds: frozenset[type[Command]] = field(init=False, repr=False, eq=False)
    """The types of the commands."""

    @kinds.default
    def _kinds(self) -> frozenset[type[Command]]:
        return frozenset(map(type, self.commands))

    @property
    def moves(self) -> bool:
        """Return True if the group changes its phase."""
        return self.after.phase is not self.before.phase

    def __str__(self) -> str:
        return f"{self.before.phase.name} + {self.event} -> {self.after.phase.name}: {self.commands}"


@frozen
class Holds:
    """An agent holds another register now, by its own clock."""

    held: Held
    at: float


@frozen
class Began:
    """The agent `node` began, and joins."""

    node: Node
    at: float


@frozen
class Decided:
    """An agent wants to write this, by what it holds."""

    held: Held
    edit: Deed
    at: float


@frozen
class GaveUp:
    """An operation of an agent cannot be done. The store had last answered at `answered_at` (-inf: never). The last
    question that it left unanswered was asked at `tried_at`."""

    held: Held
    handler: Handler
    why: Why
    at: float
    answered_at: float
    tried_at: float = math.inf


@frozen
class Operated:
    """An operator wants to write this, by this register, or is refused. `insists`: it asks with --force. `names`: the node
    that it was asked to drain."""

    answer: Deed | Why
    state: RendezvousState | None
    insists: bool
    names: Node | None = None


@frozen
class Slept:
    """`node` stood still for longer than a TTL, and woke at this time on its clock."""

    node: Node
    at: float


@frozen
class WaitsForever:
    """A node waits for the register to change, without a deadline."""

    held: Held
    handler: Handler


Judged: TypeAlias = (
    Wrote
    | Started
    | Moved
    | Failed
    | Succeeded
    | Reaped
    | Left
    | Noted
    | Stepped
    | Began
    | Slept
    | Decided
    | GaveUp
    | Operated
    | WaitsForever
)
"""The facts that may break a property by themselves."""
Fact: TypeAlias = Judged | Holds
