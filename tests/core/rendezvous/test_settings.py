"""Settings refuse values that cannot work when they are made."""

from __future__ import annotations

import math

import pytest

from elastic.core.rendezvous import Comparison, Limits, Settings
from elastic.core.rendezvous.settings import Settings as Spans

SPANS = [
    "join_timeout",
    "close_timeout",
    "keep_alive_interval",
    "leave_timeout",
    "overdue_timeout",
    "patience",
    "party_timeout",
]
OR_ZERO = ["last_call_timeout", "first_call_timeout", "upscale_after"]


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_a_span_is_above_zero_and_finite(span: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{span}: a span above 0 seconds, not {value}"):
        Spans(**{span: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("span", OR_ZERO)
def test_a_span_that_may_be_zero_is_not_negative(span: str) -> None:
    assert getattr(Spans(**{span: 0.0}), span) == 0  # type: ignore[arg-type]
    for value in (-0.1, math.inf, math.nan):
        with pytest.raises(ValueError, match=f"{span}: a span of 0 or more seconds"):
            Spans(**{span: value})  # type: ignore[arg-type]


def test_the_exit_barrier_may_be_waited_at_for_ever_but_not_for_no_time() -> None:
    assert Settings().barrier_timeout == math.inf
    assert Settings(barrier_timeout=0.1).barrier_timeout == 0.1
    for value in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="barrier_timeout: a span above 0 seconds, or inf"):
            Settings(barrier_timeout=value)


def test_one_late_heartbeat_is_no_death() -> None:
    assert Settings(keep_alive_max_attempt=2).ttl == 2
    with pytest.raises(ValueError, match="keep_alive_max_attempt: at least 2"):
        Settings(keep_alive_max_attempt=1)


def test_a_single_node_is_not_helped() -> None:
    assert Settings(helping_above=1).helping_above == 1
    assert Settings(patience=0.3).helping_patience == 0.3
    with pytest.raises(ValueError, match="helping_above: at least 1"):
        Settings(helping_above=0)


def test_the_first_round_waits_for_no_more_nodes_than_may_come() -> None:
    limits = Limits(1, 3)
    assert Settings(limits, first_target=3).first_target == 3
    for target in (-1, 4):
        with pytest.raises(ValueError, match=f"first_target: 0 to 3 .max_nodes., not {target}"):
            Settings(limits, first_target=target)


def test_the_ttl_is_so_many_heartbeats() -> None:
    assert Settings(keep_alive_interval=0.5, keep_alive_max_attempt=4).ttl == 2.0


def test_the_defaults_are_the_protocols() -> None:
    settings = Settings()
    assert (settings.join_timeout, settings.last_call_timeout, settings.upscale_after) == (600, 5, 1)
    assert (settings.leave_timeout, settings.close_timeout, settings.patience) == (5, 5, 0.6)
    assert (settings.overdue_timeout, settings.ttl, settings.keep_alive_interval) == (45, 5, 1)
    assert (settings.party_timeout, settings.barrier_timeout, settings.replace_timeout) == (10, math.inf, 0)
    assert (settings.helping_above, settings.first_target, settings.first_call_timeout) == (8, 0, None)
    assert (settings.same_program, settings.max_node_failures, settings.leased) == (Comparison.NAME, None, False)
