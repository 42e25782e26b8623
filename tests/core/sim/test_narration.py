"""The words in which a simulated world tells how an agent ended, and what an operator wrote."""

from __future__ import annotations

import pytest
from worlds import node

from elastic.core.group import Outcome, Stopped
from elastic.core.group.state import Refused, Unawaited
from elastic.core.rendezvous import Drain, Reserve
from elastic.core.sim.narration import outcome, verb
from elastic.core.world import Ending, Notice, Verdict, Why


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (Verdict(Ending.SUCCEEDED, 0, node("a"), Why.DONE), "succeeded"),
        (Refused(Why.TIMEOUT, "", 1.0), "refused (timeout)"),
        (Unawaited(), "waits no longer"),
        (Stopped(15), "stopped by signal 15"),
    ],
)
def test_each_outcome_of_an_agent_has_its_words(how: Outcome, words: str) -> None:
    assert outcome(how) == words


def test_an_edit_has_its_words() -> None:
    assert verb(Drain(node("a"), Notice(30.0, "maintenance"))) == "gives a 30 s notice"
    assert verb(Reserve(2)) == "is a reserve in round 2"
