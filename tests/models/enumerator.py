"""The exhaustive enumerator over whole nodes: every interleaving of a small world, and what can be reached from each state.

States that differ in names only are one, and what is left is finite: the search ends by itself, with or without faults, and
knows the shortest history of each state. L1 is asked when all are known: from every state the goal can be reached by moves
that cost no fault, and without the help of a late write.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator
from operator import or_
from typing import Protocol, TypeAlias

from attrs import define, field
from wholenode import Cost
from wholestate import Move, Small, State

from elastic.core.rendezvous import RendezvousState, Violation

Order: TypeAlias = tuple[int, ...]
"""Which slot is now at each place."""


class World(Protocol):
    small: Small
    seen: Counter[str]
    """What is worth having seen, and how often it was."""

    def first(self) -> State: ...

    def moves(self, state: State) -> Iterator[Move]:
        """Raises Violation, by a move that must not be."""

    def register(self, state: State) -> RendezvousState | None: ...

    def is_over(self, state: State, more: int) -> bool:
        """The job has come to its end, or fewer live than it needs, with so many more."""

    def rests(self, state: State) -> bool:
        """Nothing is left to be done before workers succeed."""

    def can_start(self, state: State) -> int:
        """How many agents can be started where none is."""


def as_it_is(state: State) -> tuple[State, Order | None]:
    return state, None


Edges: TypeAlias = "tuple[array[int], array[int]]"
"""From which state, to which."""


class Found(AssertionError):
    """What must not be, by its number, with the shortest history that leads there."""

    def __init__(self, number: str, story: str) -> None:
        super().__init__(story)
        self.number = number


def _edges() -> Edges:
    return array("i"), array("i")


@define
class Enumerator:
    world: World
    plain: Callable[[State], tuple[State, Order | None]] = as_it_is
    """The one state of those that differ in names only."""
    states: list[State] = field(factory=list)
    number: dict[State, int] = field(factory=dict)
    parent: array[int] = field(factory=lambda: array("i"))
    moves: int = 0
    free: Edges = field(factory=_edges)
    successes: Edges = field(factory=_edges)
    starts: Edges = field(factory=_edges)

    def explores(self, at_most: int = 10**7) -> None:
        """All of it. Raises Found, or OverflowError."""
        ahead = deque([self._new(self.plain(self.world.first())[0], -1)])
        while ahead:
            number = ahead.popleft()
            try:
                for move in self.world.moves(self.states[number]):
                    after, _ = self.plain(move.after)
                    to = self.number.get(after)
                    if to is None:
                        to = self._new(after, number)
                        ahead.append(to)
                    self._moved(number, move, to)
            except Violation as violation:
                raise Found(violation.number, self.story(number, str(violation))) from violation
            if len(self.states) > at_most:
                raise OverflowError(f"more than {at_most} states")

    def _new(self, state: State, parent: int) -> int:
        number = self.number[state] = len(self.states)
        self.states.append(state)
        self.parent.append(parent)
        return number

    def _moved(self, number: int, move: Move, to: int) -> None:
        """A late write is no help, and no fault is."""
        self.moves += 1
        if to != number and not move.faults and move.cost is not Cost.LATE_WRITE:
            before, after = {Cost.SUCCESS: self.successes, Cost.RESTART: self.starts}.get(move.cost, self.free)
            before.append(number)
            after.append(to)

    # --- L1

    def judge_goals(self) -> None:
        """From every state the job can come to its end; to rest before that, though no worker succeeds; and to its end with
        agents that are started again, where there are too few. Raises Found."""
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
        """How the state came to be, and what is wrong there, with the names that the nodes had at first."""
        path = [number]
        while self.parent[path[-1]] >= 0:
            path.append(self.parent[path[-1]])
        called, lines = list(range(self.world.small.nodes)), list[str]()
        for before, after in zip(path[:0:-1], path[-2::-1], strict=True):
            move, order = self._step(before, after)
            lines.append(self._said(f"{move.text} [{move.cost.value}]" if move.faults else move.text, called))
            if move.after[0] != self.states[before][0]:
                lines.append(self._said(f"    {_told(self.world.register(move.after))}", called))
            called = [called[old] for old in order] if order else called
        return "\n".join((*lines, self._said(end, called)))

    def _step(self, before: int, after: int) -> tuple[Move, tuple[int, ...] | None]:
        for move in self.world.moves(self.states[before]):
            then, order = self.plain(move.after)
            if then == self.states[after]:
                return move, order
        raise AssertionError("a state without its parent")

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
    """From where each state can be reached."""
    into: list[list[int]] = [[] for _ in range(size)]
    for sources, targets in edges:
        for source, target in zip(sources, targets, strict=True):
            into[target].append(source)
    return into
