"""Pauses between tries: each is twice the last, up to the longest."""

from __future__ import annotations

from elastic.core.backoff import pause_s


def test_pauses_double_up_to_the_longest() -> None:
    assert [pause_s(tries, 0.05, 1.0) for tries in range(1, 8)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_after_any_number_of_tries_there_is_a_pause() -> None:
    assert pause_s(10_000, 0.05, 1.0) == 1.0
