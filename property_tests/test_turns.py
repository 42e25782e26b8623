"""Agents join, fail, succeed, leave and fall silent at any time, over a store that loses and delays writes.

The runs hold what must always hold and what must hold at last, and show what they must (docs/protocol.md#properties).
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wander import FATES, Wanderer

from elastic.core.world import Why


def wandered(wanderer: Wanderer, steps: int) -> Wanderer:
    """Make a run, then stop all faults: the world must come to rest. A failure is told with the run in words."""
    try:
        wanderer.runs(steps)
        wanderer.happened.append("no more faults")
        wanderer.agents.converges()
    except Exception as error:
        error.add_note("\n".join(wanderer.happened))
        raise
    return wanderer


@given(st.data(), st.integers(0, 40))
def test_agents_keep_the_rules_and_come_to_rest(data: st.DataObject, steps: int) -> None:
    wandered(Wanderer(lambda n: data.draw(st.integers(0, n - 1))), steps)


WANTED = [
    "joined",
    "complete at max",
    "quorum lost",
    "a spare",
    "a spare promoted",
    "a done node called back",
    "a done node dies",
    "refund",
    "refund over budget",
    "a death without refund",
    "the bump",
    "a newcomer behind a finishing round",
    "expected dropped as dead",
    "expected dropped as overdue",
    "a refused write",
    "a late write lands",
    *(fate.value for fate in FATES),
    *(f"end by {why.value}" for why in (Why.FAILED, Why.LOST, Why.LEFT, Why.UPSCALE)),
    *(f"complete by {how}" for how in ("last arrival", "last call", "a seat dropped")),
    *(f"closed {ending}" for ending in ("SUCCEEDED", "FAILED", "CANCELLED")),
    *(f"superseded {status}" for status in ("EXPECTED", "IN", "WAITING", "DONE")),
    "watch over",
    "end settled",
    "join fails (closed)",
    "join fails (superseded)",
    "join fails (timeout)",
    "leave fails (unconfirmed)",
]


@pytest.mark.long
def test_long_random_runs_keep_the_rules_and_show_every_situation_that_they_must() -> None:
    seen: Counter[str] = Counter()
    for seed in range(200):
        try:
            seen += wandered(Wanderer(Random(seed).randrange), 120).agents.seen
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    assert [what for what in WANTED if not seen[what]] == [], seen
