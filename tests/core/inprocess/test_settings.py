"""Settings that cannot work together are refused with both values. Every reason has an exit code."""

from __future__ import annotations

import math
from typing import Any

import pytest

from elastic.core.inprocess import Settings
from elastic.core.inprocess.exits import EXIT_CODES, FINAL
from elastic.core.inprocess.settings import RELATIONS
from elastic.core.inprocess.words import Reason


@pytest.mark.parametrize(("less", "more"), RELATIONS)
def test_a_relation_that_is_broken_names_both_values(less: str, more: str) -> None:
    bound = getattr(Settings(), more)
    with pytest.raises(ValueError, match=r"must be below") as refused:
        Settings(**{less: bound})
    assert f"({bound:g} s)" in str(refused.value)


def test_the_message_names_both_settings() -> None:
    with pytest.raises(ValueError, match=r"^soft_timeout \(95 s\) must be below hard_timeout \(90 s\)$"):
        Settings(soft_timeout=95.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"soft_timeout": 0.0}, "soft_timeout: a span above 0 seconds, not 0.0"),
        ({"hard_timeout": math.inf}, "hard_timeout: a span above 0 seconds, not inf"),
        ({"last_call_wait": -1.0}, "last_call_wait: a span of 0 or more seconds, not -1.0"),
        ({"max_iterations": 0}, "max_iterations: at least 1, or None for no limit, not 0"),
        ({"max_faults": -1}, "max_faults: at least 0, or None for no limit, not -1"),
        ({"max_repeats": -1}, "max_repeats: at least 0, or None for no limit, not -1"),
        ({"repeat_window": 0.0}, "repeat_window: a span above 0 seconds, not 0.0"),
    ],
)
def test_a_bad_value_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        Settings(**given)
    assert str(refused.value) == message


def test_no_limit_is_a_limit() -> None:
    assert Settings(max_iterations=None, max_faults=3).max_faults == 3


def test_every_reason_has_an_exit_code() -> None:
    assert set(EXIT_CODES) == set(Reason)
    assert EXIT_CODES[Reason.JOB_LIMIT] in FINAL
    assert EXIT_CODES[Reason.ABORT_HUNG] not in FINAL and EXIT_CODES[Reason.ABORT_FAILED] not in FINAL
