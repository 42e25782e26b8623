"""The checker of recorded histories, on histories that are known to be right, and on some that are known to be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, combinations, permutations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from linearizability import Contradiction, Effect, Loss, Operation, Read, Refused, Value, Write, contradiction


def asked(client: str, began_at: int, ended_at: int | None, effect: Effect, pushed: bool = False) -> Operation:
    """An operation of this client. The session is the client's first letter."""
    return Operation(client, client[0], effect, began_at, ended_at, pushed)


FIRST = asked("a", 0, 1, Write(None, "v1"))
NEXT = asked("a", 2, 3, Write("v1", "v2"))
SLOW = asked("a", 2, 9, Write("v1", "v2"))
UNKNOWN = asked("a", 2, None, Write("v1", "v2"))

RIGHT = {
    "nothing": [],
    "one after the other": [FIRST, asked("b", 2, 3, Read("v1"))],
    "a read beside a write shows what was": [FIRST, SLOW, asked("b", 4, 5, Read("v1"))],
    "a read beside a write shows what comes": [FIRST, SLOW, asked("b", 4, 5, Read("v2"))],
    "the loser is shown the winner": [FIRST, NEXT, asked("b", 2, 4, Refused("v1", "v2"))],
    "a doubtful write never landed": [FIRST, UNKNOWN, asked("b", 8, 9, Read("v1"))],
    "a doubtful write landed late": [FIRST, UNKNOWN, asked("b", 8, 9, Read("v1")), asked("b", 10, 11, Read("v2"))],
    "another write came before a doubtful one": [FIRST, UNKNOWN, asked("b", 3, 4, Write("v1", "v3"))],
    "a late push": [FIRST, NEXT, asked("b", 4, 5, Read("v1"), pushed=True)],
    "a late push, after another session's read": [
        *(FIRST, NEXT, asked("c", 4, 5, Read("v2"))),
        asked("b", 6, 7, Read("v1"), pushed=True),
    ],
    "a loss": [FIRST, asked("store", 2, 5, Loss()), asked("b", 4, 5, Read("v1")), asked("b", 6, 7, Read(None))],
    "a register after a loss": [FIRST, asked("store", 2, 3, Loss()), asked("b", 4, 5, Write(None, "v2"))],
}

WRONG = {
    "a stale read": [FIRST, NEXT, asked("b", 4, 5, Read("v1"))],
    "a lost write": [FIRST, NEXT, asked("b", 4, 5, Read("v1")), asked("b", 6, 7, Write("v1", "v3"))],
    "two winners of one compare-and-set": [FIRST, NEXT, asked("b", 2, 3, Write("v1", "v3"))],
    "two winners, one of them seen of a doubtful write": [
        *(FIRST, UNKNOWN, asked("b", 3, 4, Write("v1", "v3"))),
        asked("c", 5, 6, Read("v2")),
    ],
    "two first writes": [FIRST, asked("b", 0, 1, Write(None, "v2"))],
    "a read that goes backward": [FIRST, SLOW, asked("b", 3, 4, Read("v2")), asked("c", 5, 6, Read("v1"))],
    "a read of what comes later": [FIRST, asked("b", 2, 3, Read("v2")), asked("a", 4, 5, Write("v1", "v2"))],
    "a read of a doubtful write before it began": [FIRST, asked("b", 0, 1, Read("v2")), UNKNOWN],
    "a doubtful write that is undone": [FIRST, UNKNOWN, asked("b", 4, 5, Read("v2")), asked("b", 6, 7, Read("v1"))],
    "a read of what nobody wrote": [FIRST, asked("b", 2, 3, Read("v7"))],
    "a refusal of what was right": [FIRST, asked("b", 2, 3, Refused("v1", "v1"))],
    "a refusal that shows what was": [FIRST, NEXT, asked("b", 4, 5, Refused("v0", "v1"))],
    "a push that goes back behind its session": [
        *(FIRST, NEXT, asked("b1", 4, 5, Read("v2"))),
        asked("b2", 6, 7, Read("v1"), pushed=True),
    ],
    "a push that goes back behind its session's own write": [FIRST, NEXT, asked("a", 4, 5, Read("v1"), pushed=True)],
    "a push of what comes later": [
        FIRST,
        asked("b", 2, 3, Read("v2"), pushed=True),
        evolve(NEXT, began_at=4, ended_at=5),
    ],
    "a loss that nobody told of": [FIRST, asked("b", 2, 3, Read(None))],
    "a value that outlives a loss": [FIRST, asked("store", 2, 3, Loss()), asked("b", 4, 5, Read("v1"))],
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_history_that_is_right_is_accepted(name: str) -> None:
    assert contradiction(RIGHT[name]) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_history_that_is_wrong_is_refused(name: str) -> None:
    assert contradiction(WRONG[name])


def test_a_refusal_says_how_far_an_order_comes_and_what_cannot_follow() -> None:
    stale = asked("b", 4, 5, Read("v1"))
    found = contradiction([FIRST, NEXT, stale])
    assert found == Contradiction(2, "v2", (stale,))
    assert str(stale) in str(found)


@pytest.mark.parametrize(
    ("history", "complaint"),
    [
        ([asked("a", 0, 5, Read(None)), asked("a", 4, 6, Read(None))], "one question at a time"),
        ([FIRST, asked("b", 0, 1, Write("v0", "v1"))], "a name of its own, not v1"),
        ([asked("a", 0, None, Read(None))], "only a write has an unknown outcome"),
    ],
)
def test_what_is_no_history_is_named(history: list[Operation], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        contradiction(history)


# --- against every order that there is


def explained(history: list[Operation]) -> bool:
    """Try all orders of the operations that ended and of each choice of the doubtful writes."""
    ended = [each for each in history if each.ended_at is not None]
    doubtful = [each for each in history if each.ended_at is None]
    chosen = chain.from_iterable(combinations(doubtful, count) for count in range(len(doubtful) + 1))
    return any(is_right(order) for those in chosen for order in permutations([*ended, *those]))


def is_right(order: tuple[Operation, ...]) -> bool:
    value: Value = None
    for place, each in enumerate(order):
        if any(precedes(later, each) for later in order[place + 1 :]):
            return False
        match each.effect:
            case Read(shown) if shown == value:
                pass
            case Refused(expected, shown) if shown == value != expected:
                pass
            case Write(expected, written) if expected == value:
                value = written
            case Loss():
                value = None
            case _:
                return False
    return True


def precedes(one: Operation, other: Operation) -> bool:
    knows = not other.pushed or one.session == other.session
    return knows and (math.inf if one.ended_at is None else one.ended_at) < other.began_at


@st.composite
def small_histories(draw: st.DrawFn) -> list[Operation]:
    """Any few operations: right or wrong. Half of the values are what the register would hold without overlaps."""
    history: list[Operation] = []
    held: Value = None
    fresh = iter(["v1", "v2", "v3"])
    free_at = {"a1": 0, "a2": 0, "b": 0}
    for _ in range(draw(st.integers(1, 6))):
        client = draw(st.sampled_from(sorted(free_at)))
        began_at = free_at[client] + draw(st.integers(0, 3))
        ended_at = began_at + draw(st.integers(0, 4))
        shown, expected = (draw(st.sampled_from([held, held, held, None, "v1", "v2", "v3"])) for _ in range(2))
        match draw(st.sampled_from(["read", "push", "refused", "loss", "write", "write", "doubtful"])):
            case "write" | "doubtful" as kind if name := next(fresh, None):
                effect, held = Write(expected, name), name
                history.append(asked(client, began_at, None if kind == "doubtful" else ended_at, effect))
            case "refused":
                history.append(asked(client, began_at, ended_at, Refused(expected, shown)))
            case "loss":
                held = None
                history.append(asked(client, began_at, ended_at, Loss()))
            case kind:
                history.append(asked(client, began_at, ended_at, Read(shown), kind == "push"))
        free_at[client] = ended_at + 1
    return history


@given(small_histories())
def test_the_search_finds_what_a_trial_of_all_orders_finds(history: list[Operation]) -> None:
    assert (contradiction(history) is None) == explained(history)


# --- long histories


@st.composite
def right_histories(draw: st.DrawFn) -> list[Operation]:
    """A run in one order, in which each operation's interval was stretched around its point, over those of others."""
    clients = [*"abcd"[: draw(st.integers(1, 4))]]
    kinds = draw(st.lists(st.sampled_from(["read", "write", "refused", "landed", "lost", "push"]), max_size=40))
    told = [(10 * point, draw(st.sampled_from(clients)), kind) for point, kind in enumerate(kinds, 1)]
    return [*_stretched(draw, told)]


def _stretched(draw: st.DrawFn, told: list[tuple[int, str, str]]) -> Iterator[Operation]:
    value: Value = None
    free_at = dict.fromkeys("abcd", 0)
    for place, (point, client, kind) in enumerate(told):
        until = next((later for later, other, _ in told[place + 1 :] if other == client), 1_000)
        began_at = draw(st.integers(free_at[client], point))
        ended_at = draw(st.integers(point, until - 1))
        written = f"v{point}"
        match kind:
            case "read":
                yield asked(client, began_at, ended_at, Read(value))
            case "push":  # each client is a session of its own here
                yield asked(client, draw(st.integers(began_at, ended_at)), ended_at, Read(value), pushed=True)
            case "refused":
                yield asked(client, began_at, ended_at, Refused("v7", value))
            case "lost":
                yield asked(client, began_at, None, Write(draw(st.sampled_from([value, "v7"])), written))
            case "landed":
                yield asked(client, draw(st.integers(0, point)), None, Write(value, written))
                value = written
            case _:
                yield asked(client, began_at, ended_at, Write(value, written))
                value = written
        free_at[client] = ended_at + 1


@given(right_histories())
def test_an_order_whose_intervals_were_stretched_is_found_again(history: list[Operation]) -> None:
    assert contradiction(history) is None


@given(right_histories(), st.data())
def test_one_wrong_answer_at_the_end_of_a_long_history_is_found(history: list[Operation], data: st.DataObject) -> None:
    known = [each for each in history if isinstance(each.effect, Write) and each.ended_at is not None]
    landed = data.draw(st.sampled_from([FIRST, *known]))
    assert isinstance(landed.effect, Write)
    before, client = landed.effect.expected, landed.client
    wrong = {
        "a stale read": asked("z", 2_000, 2_001, Read(before)),
        "a stale refusal": asked("z", 2_000, 2_001, Refused("v7", before)),
        "another winner": asked("z", 2_000, 2_001, Write(before, "x")),
        "a push behind its session's own write": asked(client, 2_000, 2_001, Read(before), pushed=True),
    }
    begun = history if landed in history else [FIRST]
    assert contradiction([*begun, wrong[data.draw(st.sampled_from(sorted(wrong)))]])
