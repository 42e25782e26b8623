"""A rank's failure records, whatever its code raised and its environment says; and what it runs as each span."""

from __future__ import annotations

import pytest
from worlds import node

from elastic.adapters.clock import SystemClock
from elastic.adapters.inprocess.rank.callbacks import Callbacks
from elastic.adapters.inprocess.rank.task import Task
from elastic.core.caller import Terms
from elastic.core.inprocess.words import Span
from elastic.core.policies import shift
from elastic.core.world import Endpoint, Profile

SaysNumber = type("SaysNumber", (Exception,), {"__str__": lambda self: 5})


class SaysNothing(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def task_with(callbacks: Callbacks) -> Task:
    given = callbacks, Terms(shift()), Profile(Endpoint("localhost", 1)), (0, 1), 1.0, "here", SystemClock()
    return Task(lambda: None, *given, lambda state, world: ())


@pytest.fixture
def task() -> Task:
    return task_with(Callbacks())


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("nan"), "ValueError: nan"),
        (ValueError(), "ValueError"),
        (SaysNumber("x"), "SaysNumber: SaysNumber('x')"),
        (SaysNothing("x"), "SaysNothing"),
    ],
)
def test_a_failure_record_says_an_error_as_well_as_the_error_lets_it(task: Task, error: Exception, text: str) -> None:
    assert task.fault(node("a"), 0, error, "").message == text


@pytest.mark.parametrize(("given", "number"), [("3", 3), ("-1", 0), ("", 0), ("abc", 0), (None, 0)])
def test_a_local_rank_that_is_no_number_counts_as_0(
    task: Task, monkeypatch: pytest.MonkeyPatch, given: str | None, number: int
) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if given is not None:
        monkeypatch.setenv("LOCAL_RANK", given)
    assert task.fault(node("a"), 0, None, "over").local_rank == number


def test_a_function_that_is_called_back_is_known_by_where_it_was_and_an_error_by_where_it_was_raised(
    task: Task,
) -> None:
    called_back = task.fault(node("a"), 0, None, "no progress", "train.py:88 in step")
    assert (called_back.message, called_back.where) == ("no progress", "train.py:88 in step")
    try:
        raise ValueError("boom")
    except ValueError as error:
        raised = task.fault(node("a"), 0, error, "no progress", "train.py:88 in step")
    assert raised.where.startswith("test_task.py:")


@pytest.mark.parametrize(
    ("span", "names"),
    [
        (Span.INITIALIZE, ["initialize", "health_check"]),
        (Span.FINALIZE, ["finalize"]),
        (Span.CHECK, ["health_check"]),
        (Span.COMPLETE, ["completion"]),
        (Span.TERMINATE, ["terminate"]),
    ],
)
def test_a_span_runs_what_the_user_gave_for_it_and_is_none_without(task: Task, span: Span, names: list[str]) -> None:
    called = list[str]()
    each = {name: lambda _, name=name: called.append(name) for name in names}
    code = task_with(Callbacks(**each)).code(span)
    assert code is not None
    code()
    assert called == names
    assert task.code(span) is None
