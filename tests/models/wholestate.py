"""The values that make up a state of a small world of whole nodes.

A state is a tuple of small numbers, and each number stands for a value in one of the world's tables. So millions of states
fit in memory, and two states are compared as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from attrs import define, field
from plainnode import Behind
from wholenode import Cost, Step

from elastic.core.group import Phase
from elastic.core.group import Settings as GroupSettings
from elastic.core.rendezvous import Limits, Settings, Write
from elastic.core.values import frozen
from elastic.core.world import Node

FREE = frozenset((Cost.FREE, Cost.SUCCESS))
LOSSES = frozenset((Cost.EMPTY, Cost.OLDER))
FAULTS = frozenset(Cost) - FREE - LOSSES - {Cost.SLEEP}
MAY_BE_FREE = frozenset((Cost.OVERDUE, Cost.SUSPECT))
ABSENT, CRASHED, ENDED = -1, -2, -3
"""Stand in for the number of a node that does not run."""

AnyState = TypeVar("AnyState", bound=Hashable)
Value = TypeVar("Value")


class State(NamedTuple):
    """A state of a small world. `register`, `late` and `places` hold numbers of values in the world's tables."""

    register: int
    faults: int
    """How many faults may still happen."""
    failed: bool
    """A worker has failed in the register's round."""
    late: int
    """The writes on their way."""
    places: tuple[int, ...]
    """One for each node."""


@frozen
class Small:
    """What a small world is made of, and what may happen in it. `faults` of these `kinds` may happen."""

    nodes: int
    limits: Limits
    faults: int = 0
    kinds: frozenset[Cost] = FAULTS
    restarts: int = 0
    """How many agents may be started again."""
    barrier: bool = False
    """The exit barrier has a deadline."""
    fence: bool = False
    """The agents run with --on-store-loss=stop."""
    losses: int = 0
    """How often the store may lose what it holds."""
    newcomers: int = 0
    """How many of the nodes start later."""

    @property
    def settings(self) -> Settings:
        return Settings(self.limits, barrier_timeout=5.0 if self.barrier else math.inf)

    @property
    def group(self) -> GroupSettings:
        return GroupSettings(fence=3.0 if self.fence else None)


@frozen
class Place:
    """A node, and what the world knows of it."""

    local: int
    """The number of the node's own state, or one of ABSENT, CRASHED and ENDED."""
    behind: Behind = Behind()
    succeeded: bool = False
    """Its workers have succeeded in the register's round."""
    left: bool = False
    """Its agent was told that it has left."""


@frozen
class Commit:
    """What a write makes of the register."""

    register: int
    ends: bool
    """It ends the round."""
    quorum: bool
    """The quorum is another one, or there is none any more."""
    seated: frozenset[Node]
    """The nodes that it gives a seat."""
    done: frozenset[Node]
    """The nodes that it marks as done."""
    charged: bool
    """It counts a failure."""


class LateWrite(NamedTuple):
    """A write on its way to the store."""

    writer: int
    """The index of the node that wrote it."""
    commit: int
    """The number of what it makes of the register."""


@frozen
class Effect:
    """What a step makes of the world: the node's next place, and whether its workers fail or start."""

    place: int
    fails: bool = False
    starts: bool = False


@frozen
class Known:
    """What follows from a place alone, whatever the other places are."""

    node: Node
    asks: Write | None
    said: str
    """The text of what it asks."""
    looks: bool
    """It may read the register now."""
    steps: tuple[tuple[Step, Effect], ...]
    """Its steps that may be free."""
    crashed: Effect
    phase: Phase
    ran: int | None
    """How many rounds ago the round of its running workers was; None: none run."""
    joins: bool


class Move(NamedTuple, Generic[AnyState]):
    """A move out of a state. `faults` is how many faults of the budget it takes."""

    text: str
    cost: Cost
    faults: int
    after: AnyState


@define
class Numbered(Generic[Value]):
    """Values, each with a number. Two values with the same key have one number."""

    key: Callable[[Value], Hashable]
    values: list[Value] = field(factory=list)
    numbers: dict[Hashable, int] = field(factory=dict)

    def number(self, value: Value) -> int:
        """Return the value's number. A new value gets the next one."""
        key = self.key(value)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.values)
            self.values.append(value)
        return number

    def __getitem__(self, number: int) -> Value:
        return self.values[number]


def itself(value: Hashable) -> Hashable:
    """Return the value: the key of values that are equal only when they are the same."""
    return value
