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
CACHES_KB = 4_096
"""What may fill up once, like the codec's cache of seats."""
A_RESTART_KB = 0.5
"""What a restart may leave behind for ever: a rank remembers the rounds that it was in."""


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
        for who in ("holds", "monitor holds"):
            warm, last = ([int(n) for n in each.split()[-3:]] for each in words if each.startswith(f"{rank} {who}"))
            assert all(now <= then + MOMENTARY for now, then in zip(last[:2], warm[:2], strict=True)), (who, warm, last)
            assert last[2] <= warm[2] + CACHES_KB + A_RESTART_KB * ITERATIONS, (who, warm, last)
            print(rank, who, warm, last)
