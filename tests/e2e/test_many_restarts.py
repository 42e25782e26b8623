"""Restarts one after the other in the same processes: none lost, none doubled, and nothing piles up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from launches import PROGRAMS, Launcher
from processes import held_by
from wrapped import needs_torch

from elastic.adapters.store.notes import FAULTS_MAX

ITERATIONS = int(os.environ.get("ELASTIC_RESTARTS", "200"))
GLOO_ITERATIONS = int(os.environ.get("ELASTIC_GLOO_RESTARTS", "60"))
"""Each takes 0.6 s. torch keeps some kB for each process group, so thousands grow by more than GROWTH."""
REPLAYED_MAX = 1_000
"""More are not taken again at the end: that takes 10 ms each."""
MOMENTARY = 4
"""Descriptors and threads that are there for a moment."""
GROWTH, SPAN = 0.01, 50
"""What is held may grow by this part at most, however many iterations come after the warm ones, and by less in proportion if
fewer than SPAN do."""
TRACED_KB = 512.0
"""Steps that a trace, a rank's or the agent's, has yet to write: beside other work that may be many."""
KEPT_KB, KEPT_AFTER = 1_024.0, 2_500
"""What the C library keeps of the memory that a monitor has freed: that much after so many iterations, and not more after
10,000. No object of Python's is behind it (tracemalloc); a rank gives it back before it is measured."""
RECORD_KB = 1.0
"""A failure on the job's record, which the agent keeps here."""


@pytest.mark.timeout(0)
def test_many_restarts_in_one_process_leave_nothing_behind(launch: Launcher) -> None:
    restarted(launch, ITERATIONS, records_each=1)


@needs_torch
@pytest.mark.long
@pytest.mark.timeout(0)
def test_restarts_of_a_gloo_call_leave_descriptors_threads_and_memory_as_they_were(launch: Launcher) -> None:
    """The connections of the other rank break when one fails, so both may record a failure."""
    restarted(launch, GLOO_ITERATIONS, "gloo", records_each=2)


def restarted(launch: Launcher, iterations: int, *how: str, records_each: int) -> None:
    program: tuple[str | Path, ...] = (PROGRAMS / "many_restarts.py", str(iterations), *how)
    traced = iterations <= REPLAYED_MAX
    running = launch("--restart-scope=rank", "--nproc-per-node=2", *program, traced=traced)
    words: list[str] = []
    agent = []
    while sum(" ended: " in each for each in words) < 2:
        words += (f"{each.rank} {each.words}" for each in running.hears(1))
        if words[-1].startswith("0 holds"):
            agent.append(held_by(running.pid))
    ended = running.ends()
    assert ended.code == 0
    assert f" · 0 restarts, {iterations} restarts of wrapped functions, " in ended.err
    growth = GROWTH * min(1.0, (iterations - iterations // 2) / SPAN)
    records = min(iterations * records_each, FAULTS_MAX)
    grew(f"agent, with {records} records", agent[0], agent[1], growth, records * RECORD_KB + TRACED_KB * traced)
    for rank in ("0", "1"):
        assert f"{rank} ended: in order True, {iterations // 2} of its own" in words
        warm, last = ([int(n) for n in each.split()[2:]] for each in words if each.startswith(f"{rank} holds"))
        grew(f"rank {rank}", (warm[0], warm[1], warm[2]), (last[0], last[1], last[2]), growth, TRACED_KB * traced)
        kept_kb = KEPT_KB * min(1.0, iterations / KEPT_AFTER)
        grew("its monitor", (warm[3], warm[4], warm[5]), (last[3], last[4], last[5]), growth, kept_kb)


def grew(
    who: str, then: tuple[int, int, int], now: tuple[int, int, int], growth: float, besides_kb: float = 0.0
) -> None:
    """By this part at most, `besides_kb` apart."""
    print(f"{who}: {then} -> {now} (descriptors, threads, kB), {now[2] / then[2] - 1:+.2%}")
    assert all(b <= a + MOMENTARY for a, b in zip(then[:2], now[:2], strict=True)), (who, then, now)
    assert now[2] <= then[2] * (1 + growth) + besides_kb, (who, then, now)
