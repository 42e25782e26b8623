"""What the states of a small world of whole nodes are made of, and a number for each such value.

A state is a tuple of small numbers: the register, the faults left, whether a worker of the standing round has failed, the
late writes on their way, and one place per node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from attrs import define, field, frozen
from plainnode import Behind
from wholenode import Cost, Step

from elastic.core.group import Phase
from elastic.core.group import Settings as GroupSettings
from elastic.core.rendezvous import Limits, Settings, Write
from elastic.core.world import Node

FREE = frozenset((Cost.FREE, Cost.SUCCESS))
LOSSES = frozenset((Cost.EMPTY, Cost.OLDER))
FAULTS = frozenset(Cost) - FREE - LOSSES - {Cost.SLEEP}
MAY_BE_FREE = frozenset((Cost.OVERDUE, Cost.SUSPECT))
ABSENT, CRASHED, ENDED = -1, -2, -3
FIRST = 4
"""Where the places begin in a state."""

State = tuple[int, ...]
Value = TypeVar("Value")


@frozen
class Small:
    """A small world: how many nodes it has, the job's limits, how many faults of which kinds may happen, and how many agents
    may be started again."""

    nodes: int
    limits: Limits
    faults: int = 0
    kinds: frozenset[Cost] = FAULTS
    restarts: int = 0
    barrier: bool = False
    """The exit barrier has a deadline."""
    fence: bool = False
    """The agents run with --on-store-loss=stop."""
    losses: int = 0
    """How often the store may lose what it holds."""
    newcomers: int = 0
    """How many of the nodes come later."""

    @property
    def settings(self) -> Settings:
        return Settings(self.limits, barrier_timeout=5.0 if self.barrier else math.inf)

    @property
    def group(self) -> GroupSettings:
        return GroupSettings(fence=3.0 if self.fence else None)


@frozen
class Place:
    """A node as all see it. `succeeded`: its workers have, in the register's round; `left`: it was told that it has left."""

    local: int
    behind: Behind = Behind()
    succeeded: bool = False
    left: bool = False


@frozen
class Commit:
    """What a write makes of the register. `quorum`: it is another one, or none any more."""

    register: int
    ends: bool
    quorum: bool
    seated: frozenset[Node]
    done: frozenset[Node]
    charged: bool


@frozen
class Then:
    """Where a step leads: the node's next place, and what the others have to do with it."""

    place: int
    fails: bool = False
    starts: bool = False


@frozen
class Known:
    """What is to be known of a place, whoever is at the others."""

    node: Node
    asks: Write | None
    said: str
    """What it asks, in words."""
    looks: bool
    steps: tuple[tuple[Step, Then], ...]
    """Those that may be free."""
    crashed: Then
    phase: Phase
    ran: int | None
    """How many rounds before the register's the one is in which its workers live."""
    joins: bool


class Move(NamedTuple):
    """`faults`: what it costs of the budget."""

    text: str
    cost: Cost
    faults: int
    after: State


@define
class Store(Generic[Value]):
    """One number for each value, by what can be told apart of it."""

    key: Callable[[Value], Hashable]
    values: list[Value] = field(factory=list)
    numbers: dict[Hashable, int] = field(factory=dict)

    def number(self, value: Value) -> int:
        key = self.key(value)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.values)
            self.values.append(value)
        return number

    def __getitem__(self, number: int) -> Value:
        return self.values[number]


def itself(value: Hashable) -> Hashable:
    return value
