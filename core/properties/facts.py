"""The facts of a run by which properties are judged: one value for each, in the order in which they happened.

The simulator tells all of them, a merged trace of real agents most of them.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from attrs import frozen

from ..group import Group
from ..group.state import Command, Event
from ..rendezvous import Deed, Held, RendezvousState, Restore
from ..rendezvous.context import Handler
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

    @property
    def completes(self) -> bool:
        """Return True if this write completes a new world."""
        before, after = self.before, self.after
        if isinstance(self.edit, Restore):
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
    | WaitsForever
)
"""The facts that may break a property by themselves."""
Fact: TypeAlias = Judged | Holds
