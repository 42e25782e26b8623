"""The exhaustive enumerator over whole nodes: it visits every interleaving of a small world.

States that differ only in names are one, and so the search ends by itself, with or without faults. It goes breadth first, so
it knows a shortest history of each state. When all states are known it judges L1: from every state the goal can be reached
by moves that cost no fault, and without a late write.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator
from operator import or_
from typing import Generic, Protocol, TypeAlias

from attrs import define, field
from wholenode import Cost
from wholestate import AnyState, Move, Small

from elastic.core.rendezvous import RendezvousState, Violation

Order: TypeAlias = tuple[int, ...]
"""The slot that is now at each place."""


class World(Protocol[AnyState]):
    """A small world, as the enumerator asks it."""

    small: Small
    seen: Counter[str]
    """How often each thing that is worth having seen was seen."""

    def first(self) -> AnyState: ...

    def moves(self, state: AnyState) -> Iterator[Move[AnyState]]:
        """Yield every move out of the state. Raises Violation for a move that must not be possible."""

    def register(self, state: AnyState) -> RendezvousState | None: ...

    def is_over(self, state: AnyState, more: int) -> bool:
        """Return True if the job is closed, or fewer agents live than it needs even with so many `more`."""

    def rests(self, state: AnyState) -> bool:
        """Return True if nothing happens any more until workers succeed."""

    def can_start(self, state: AnyState) -> int:
        """Return how many agents can be started on slots where none runs."""


def as_it_is(state: AnyState) -> tuple[AnyState, Order | None]:
    """Return the state with its own names."""
    return state, None


Edges: TypeAlias = "tuple[array[int], array[int]]"
"""The numbers of the states that the moves begin in, and of those that they lead to."""


class Found(AssertionError):
    """A property is broken: its number, and the shortest history that leads there."""

    def __init__(self, number: str, story: str) -> None:
        super().__init__(story)
        self.number = number


def _edges() -> Edges:
    return array("i"), array("i")


@define
class Enumerator(Generic[AnyState]):
    """The search through one world, and all that it has found."""

    world: World[AnyState]
    canonical: Callable[[AnyState], tuple[AnyState, Order | None]] = as_it_is
    """Returns the one state that stands for all that differ only in names."""
    states: list[AnyState] = field(factory=list)
    number: dict[AnyState, int] = field(factory=dict)
    parent: array[int] = field(factory=lambda: array("i"))
    moves: int = 0
    free: Edges = field(factory=_edges)
    successes: Edges = field(factory=_edges)
    starts: Edges = field(factory=_edges)

    def explores(self, at_most: int = 10**7) -> None:
        """Visit every state. Raises Found, or OverflowError if there are too many."""
        ahead = deque([self._new(self.canonical(self.world.first())[0], -1)])
        while ahead:
            number = ahead.popleft()
            try:
                for move in self.world.moves(self.states[number]):
                    after, _ = self.canonical(move.after)
                    to = self.number.get(after)
                    if to is None:
                        to = self._new(after, number)
                        ahead.append(to)
                    self._moved(number, move, to)
            except Violation as violation:
                raise Found(violation.number, self.story(number, str(violation))) from violation
            if len(self.states) > at_most:
                raise OverflowError(f"more than {at_most} states")

    def _new(self, state: AnyState, parent: int) -> int:
        number = self.number[state] = len(self.states)
        self.states.append(state)
        self.parent.append(parent)
        return number

    def _moved(self, number: int, move: Move[AnyState], to: int) -> None:
        """Keep the move as a way to the goal, unless it is a fault or a late write."""
        self.moves += 1
        if to != number and not move.faults and move.cost is not Cost.LATE_WRITE:
            before, after = {Cost.SUCCESS: self.successes, Cost.RESTART: self.starts}.get(move.cost, self.free)
            before.append(number)
            after.append(to)

    # --- L1

    def judge_goals(self) -> None:
        """Judge L1. Raises Found.

        From every state the job can end. It can rest or end without the success of a worker. And where too few agents are
        left, it can end if agents are started again.
        """
        over = [self.world.is_over(state, 0) for state in self.states]
        self._judge("the end of the job", over, self.free, self.successes)
        rests = [self.world.rests(state) for state in self.states]
        self._judge("rest", list(map(or_, over, rests)), self.free)
        if self.world.small.restarts or self.world.small.newcomers:
            over = [self.world.is_over(state, self.world.can_start(state)) for state in self.states]
            self._judge("the end, with agents started again,", over, self.free, self.successes, self.starts)

    def _judge(self, goal: str, goals: list[bool], *edges: Edges) -> None:
        reached, into = bytearray(goals), _grouped(len(goals), *edges)
        ahead = [number for number, is_goal in enumerate(goals) if is_goal]
        while ahead:
            for before in into[ahead.pop()]:
                if not reached[before]:
                    reached[before] = 1
                    ahead.append(before)
        lost = reached.find(0)
        if lost >= 0:
            text = f"L1: from here {goal} cannot be reached (nor from {reached.count(0) - 1} other states)"
            raise Found("L1", self.story(lost, text))

    # --- stories

    def story(self, number: int, end: str) -> str:
        """Return the moves that led to the state, and then `end`, with the names that the nodes had at first."""
        path = [number]
        while self.parent[path[-1]] >= 0:
            path.append(self.parent[path[-1]])
        called, lines = list(range(self.world.small.nodes)), list[str]()
        for before, after in zip(path[:0:-1], path[-2::-1], strict=True):
            move, order = self._step(before, after)
            lines.append(self._said(f"{move.text} [{move.cost.value}]" if move.faults else move.text, called))
            if self.world.register(move.after) is not self.world.register(self.states[before]):
                lines.append(self._said(f"    {_told(self.world.register(move.after))}", called))
            called = [called[old] for old in order] if order else called
        return "\n".join((*lines, self._said(end, called)))

    def _step(self, before: int, after: int) -> tuple[Move[AnyState], Order | None]:
        for move in self.world.moves(self.states[before]):
            then, order = self.canonical(move.after)
            if then == self.states[after]:
                return move, order
        raise AssertionError("no move leads from the parent to the state")

    def _said(self, text: str, called: list[int]) -> str:
        def first(name: re.Match[str]) -> str:
            slot = chr(ord("a") + called[ord(name[1]) - ord("a")])
            return slot if name[2] == "1" else f"{slot}#{name[2]}"

        return re.sub(r"\b([a-z])#(\d+)", first, text)


def _told(register: RendezvousState | None) -> str:
    if register is None:
        return "no register"
    seats = " ".join(f"{node}:{seat.status.value}" for node, seat in register.seats.items())
    how = f"closed {register.closed.ending.value}" if register.closed else "complete" if register.complete else "open"
    return f"{how}, {register.failures} failures, target {register.target}: {seats}"


def _grouped(size: int, *edges: Edges) -> list[list[int]]:
    """Return for each state the states from which a move leads to it."""
    into: list[list[int]] = [[] for _ in range(size)]
    for sources, targets in edges:
        for source, target in zip(sources, targets, strict=True):
            into[target].append(source)
    return into
