"""Restarts one after the other in the same processes: none lost, none doubled, and nothing piles up."""

from __future__ import annotations

import os

import pytest
from launches import PROGRAMS, Launcher

ITERATIONS = int(os.environ.get("ELASTIC_RESTARTS", "200"))
REPLAYED_MAX = 1_000
"""More are not taken again at the end: that takes 10 ms each."""
MOMENTARY = 4
"""Descriptors and threads that are there for a moment."""
GROWTH = 0.01
"""Of what was held after a hundred iterations, at most, however many come after them."""


@pytest.mark.timeout(0)
def test_many_restarts_in_one_process_leave_nothing_behind(launch: Launcher) -> None:
    arguments = ("--restart-scope=rank", "--nproc-per-node=2", PROGRAMS / "many_restarts.py", str(ITERATIONS))
    running = launch(*arguments, traced=ITERATIONS <= REPLAYED_MAX)
    words: list[str] = []
    while sum(" ended: " in each for each in words) < 2:
        words += (f"{each.rank} {each.words}" for each in running.hears(1))
    assert running.ends().code == 0
    for rank in ("0", "1"):
        assert f"{rank} ended: in order True, {ITERATIONS // 2} of its own" in words
        warm, last = ([int(n) for n in each.split()[2:]] for each in words if each.startswith(f"{rank} holds"))
        for who, then, now in (("worker", warm[:3], last[:3]), ("monitor", warm[3:], last[3:])):
            print(f"rank {rank}, {who}: {then} -> {now}")
            assert all(b <= a + MOMENTARY for a, b in zip(then[:2], now[:2], strict=True)), (who, then, now)
            assert now[2] <= then[2] * (1 + GROWTH), (who, then, now)
