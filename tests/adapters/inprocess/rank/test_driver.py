"""What the driver of a call says of another rank's failure at its end."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from elastic.adapters.inprocess.rank.driver import NO_MORE, Driver
from elastic.core.inprocess.words import Reason
from elastic.core.world import Ending, Fault, Node, Verdict, Why

ME, CLOSER, OTHER = (Node(slot, 1) for slot in "012")


def fault(of: Node, message: str) -> Fault:
    return Fault(of, 0, int(of.slot), 0, 7, 1, 1.0, 3, message=message)


def told(*faults: Fault) -> str:
    verdict = Verdict(Ending.LIMIT, 0, CLOSER, Why.ASKED)
    driver: Any = SimpleNamespace(_call=SimpleNamespace(verdict=verdict), _faults=lambda: faults, _me=ME)
    return Driver._others_fault(cast(Driver, driver), Reason.JOB_LIMIT)


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        ([fault(CLOSER, "boom\nat line 3"), fault(OTHER, "an echo")], "rank 1: boom"),
        ([fault(CLOSER, NO_MORE), fault(OTHER, "out of memory")], "rank 2: out of memory"),
        ([fault(ME, "mine")], ""),
    ],
    ids=["the one that closed the job", "the last on record", "none but its own"],
)
def test_the_failure_that_ended_the_job_is_that_of_the_rank_that_closed_it(faults: Sequence[Fault], text: str) -> None:
    assert told(*faults) == text
