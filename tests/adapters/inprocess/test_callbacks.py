"""Callbacks that many wrappers use."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from elastic.adapters.inprocess.callbacks import Compose, FaultCounter, RetryController, State, TooManyFaults
from elastic.adapters.inprocess.outcomes import RestartAbort

STATE = State(0, 4, 0, 3, 0, 4, iteration=2)
FAULTY = evolve(STATE, fault=ValueError("nan"))


def test_composed_callbacks_are_called_from_the_last_to_the_first_and_hand_on_what_they_return() -> None:
    told: list[tuple[str, object]] = []

    def first(state: object) -> None:
        told.append(("first", state))

    def last(state: object) -> str:
        told.append(("last", state))
        return "changed"

    assert Compose(first, last)(STATE) == "changed"
    assert told == [("last", STATE), ("first", "changed")]


def test_each_of_several_aborts_runs_even_if_another_fails() -> None:
    called: list[str] = []

    def fails(state: State) -> None:
        called.append("fails")
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        Compose(lambda state: called.append("runs"), fails).each(STATE)
    assert called == ["fails", "runs"]


def test_what_cannot_be_called_is_not_composed() -> None:
    with pytest.raises(TypeError, match="Compose: 3 cannot be called"):
        Compose(print, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"max_iterations": 2}, "iteration 2: at most 2"),
        ({"min_world_size": 5}, "4 ranks: at least 5"),
        ({"min_active_world_size": 4}, "3 active ranks: at least 4"),
    ],
)
def test_the_job_is_given_up_at_its_limits(limits: dict[str, Any], text: str) -> None:
    with pytest.raises(RestartAbort, match=text):
        RetryController(**limits)(STATE)


def test_within_its_limits_the_job_goes_on() -> None:
    RetryController(max_iterations=3, min_world_size=4, min_active_world_size=3)(STATE)
    RetryController()(STATE)


def test_a_rank_that_has_failed_too_often_is_unhealthy() -> None:
    check = FaultCounter(1)
    check(FAULTY)
    check(STATE)
    with pytest.raises(TooManyFaults, match="rank 0: 2 faults of its own, at most 1"):
        check(FAULTY)
