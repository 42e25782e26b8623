"""Decide whether a recorded history of one register can be told in one order: Wing and Gong's search, with Lowe's memory.

A history is a list of operations of clients that ask one question at a time. Each began at a time and ended at a time of one
clock. It is linearizable if there is an order of the operations in which each has its effect at once, its answer is right,
and no operation comes before one that had ended when it began. A write whose outcome nobody knows has no end: it takes
effect at any time after it began, or never.

A pushed answer promises less: it comes after those answers only that its own session had when it began. So it may be older
than what another session reads at that time, and it never goes back behind what its own session has seen.

The checker knows nothing of this package. A value is a name; each write of a history has a name of its own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import assert_never

from attrs import frozen

Value = str | None
"""What the register holds. None: nobody has written yet."""


@frozen
class Read:
    """The client was shown this value."""

    value: Value


@frozen
class Write:
    """A compare-and-set that landed, or (without an end) may have: the register held `expected`, and then `value`."""

    expected: Value
    value: Value


@frozen
class Refused:
    """A compare-and-set that changed nothing: the register did not hold `expected`, but `value`."""

    expected: Value
    value: Value


@frozen
class Loss:
    """The store lost its memory."""


Effect = Read | Write | Refused | Loss


@frozen
class Operation:
    """One operation, as its client saw it. `session` is the process whose clients share what they have seen."""

    client: str
    session: str
    effect: Effect
    began_at: int
    ended_at: int | None
    """None for a write of unknown outcome."""
    pushed: bool = False


@frozen
class Contradiction:
    """No order explains the history. The longest one that was tried leads to `value`, and none of `next` can follow."""

    explained: int
    value: Value
    next: tuple[Operation, ...]

    def __str__(self) -> str:
        lines = [f"{self.explained:,} operations end with {self.value}, and then none of these can come:"]
        return "\n".join([*lines, *(f"  {operation}" for operation in self.next)])


@frozen
class _Place:
    """How far an order has come: the operations told of each client, the doubtful writes told, and the value then."""

    told: tuple[int, ...]
    landed: frozenset[int]
    value: Value


def contradiction(history: Sequence[Operation]) -> Contradiction | None:
    """Return None if the history is linearizable, or else where the search ended. Raises ValueError for no history."""
    _refuse_nonsense(history)
    search = _search(history)
    pending = [search.settled(_Place((0,) * len(search.queues), frozenset(), None))]
    deepest, seen = pending[0], set(pending)
    while pending:
        place = pending.pop()
        if not search.heads(place):
            return None
        deepest = max(deepest, place, key=lambda each: sum(each.told))
        further = {search.settled(after): None for after in search.changes(place)}
        pending += [after for after in further if after not in seen]
        seen.update(further)
    return Contradiction(sum(deepest.told), deepest.value, tuple(search.heads(deepest).values()))


def _refuse_nonsense(history: Sequence[Operation]) -> None:
    writes = Counter(each.effect.value for each in history if isinstance(each.effect, Write))
    if twice := [value for value, count in writes.items() if count > 1 or value is None]:
        raise ValueError(f"each write of a history has a name of its own, not {twice[0]}")
    for each in history:
        if each.ended_at is None and not isinstance(each.effect, Write):
            raise ValueError(f"only a write has an unknown outcome, not {each}")


@frozen
class _Search:
    """The operations of a history."""

    queues: Sequence[Sequence[Operation]]
    """Those that ended, of each client in its order."""
    doubtful: Mapping[Value, Sequence[tuple[int, Operation]]]
    """The writes of unknown outcome, numbered, by the value that they expect."""

    def heads(self, place: _Place) -> dict[int, Operation]:
        """Return the next operation of each client that has one, by the client's number."""
        numbered = enumerate(zip(place.told, self.queues, strict=True))
        return {number: queue[told] for number, (told, queue) in numbered if told < len(queue)}

    def settled(self, place: _Place) -> _Place:
        """Tell all operations that can come next and change nothing. That is no choice: none could be in the way later."""
        told, value = list(place.told), place.value
        while True:
            heads = self.heads(_Place(tuple(told), place.landed, value))
            horizon = _Horizon.of(heads.values())
            free = [number for number, each in heads.items() if _shows(each.effect, value) and horizon.lets(each)]
            if not free:
                return _Place(tuple(told), place.landed, value)
            for number in free:
                told[number] += 1

    def changes(self, place: _Place) -> Iterator[_Place]:
        """Yield the place after each operation that can come next and changes the value. The likeliest are last."""
        heads = self.heads(place)
        horizon = _Horizon.of(heads.values())
        for number, each in self.doubtful.get(place.value, ()):
            if number not in place.landed and horizon.lets(each):
                yield _Place(place.told, place.landed | {number}, _left_by(each.effect))
        for number, each in heads.items():
            if _lands(each.effect, place.value) and horizon.lets(each):
                told = (*place.told[:number], place.told[number] + 1, *place.told[number + 1 :])
                yield _Place(told, place.landed, _left_by(each.effect))


def _search(history: Sequence[Operation]) -> _Search:
    queues: dict[str, list[Operation]] = defaultdict(list)
    doubtful: dict[Value, list[tuple[int, Operation]]] = defaultdict(list)
    for number, each in enumerate(sorted(history, key=lambda each: each.began_at)):
        if each.ended_at is not None:
            queues[each.client].append(each)
        elif isinstance(each.effect, Write):
            doubtful[each.effect.expected].append((number, each))
    for queue in queues.values():
        for one, other in pairwise(queue):
            if _end(one) >= other.began_at:
                raise ValueError(f"a client asks one question at a time, not {one} beside {other}")
    return _Search(list(queues.values()), doubtful)


@frozen
class _Horizon:
    """What can come next: what began before any of the operations that are not told yet had ended."""

    all: float
    sessions: Mapping[str, float]

    @classmethod
    def of(cls, heads: Iterable[Operation]) -> _Horizon:
        """Each client's next operation is the first of its own to end."""
        sessions: dict[str, float] = {}
        for each in heads:
            sessions[each.session] = min(_end(each), sessions.get(each.session, math.inf))
        return cls(min(sessions.values(), default=math.inf), sessions)

    def lets(self, operation: Operation) -> bool:
        return operation.began_at <= (self.sessions[operation.session] if operation.pushed else self.all)


def _end(operation: Operation) -> float:
    return math.inf if operation.ended_at is None else operation.ended_at


def _shows(effect: Effect, value: Value) -> bool:
    """Return True if the operation changes nothing, and its answer is right while the register holds `value`."""
    match effect:
        case Read():
            return effect.value == value
        case Refused():
            return effect.value == value != effect.expected
        case Write() | Loss():
            return False
        case other:
            assert_never(other)


def _lands(effect: Effect, value: Value) -> bool:
    """Return True if the operation may change the register while it holds `value`."""
    return isinstance(effect, Loss) or (isinstance(effect, Write) and effect.expected == value)


def _left_by(effect: Effect) -> Value:
    """Return what the register holds after a change."""
    return effect.value if isinstance(effect, Write) else None
