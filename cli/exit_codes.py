"""The outcome of an agent's part in a job -> the exit code of the command."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import assert_never

from ..core.group import Outcome, Stopped
from ..core.group.state import Drained, Refused, Unawaited
from ..core.world import Ending, Verdict, Why
from .mistakes import USAGE

SUCCEEDED = 0
FAILED = 1
RENDEZVOUS = 3
UNFIT = 4
DRAINED = 5
FRUITLESS = 6
SIGNALLED = 128


class Answer(Enum):
    """Says what a supervisor does when an agent has ended."""

    NOTHING = "nothing"
    END = "start nothing: a new start would end the same way"
    AGAIN = "start it again after a pause, longer each time"
    ELSEWHERE = "start one on another host"
    ASK = "start it again if nobody stopped it"


EXITS: Mapping[str, tuple[str, Answer]] = {
    f"{SUCCEEDED}": ("the job succeeded", Answer.NOTHING),
    f"{FAILED}": ("the job failed, or was cancelled", Answer.END),
    f"{USAGE}": ("a mistake in the command line", Answer.END),
    f"{RENDEZVOUS}": ("no seat in the job, or its store is gone", Answer.AGAIN),
    f"{UNFIT}": ("this node is unfit (check, failures, losses), or cannot start workers", Answer.ELSEWHERE),
    f"{DRAINED}": ("this node was drained", Answer.ELSEWHERE),
    f"{FRUITLESS}": ("the job made no progress", Answer.END),
    f"{SIGNALLED}+n": ("stopped by signal n", Answer.ASK),
}
"""Each exit code of `elastic launch`: what it says, and what its supervisor does. README, docs/operate.md and the help have
this table."""


def exit_code(outcome: Outcome, is_again: bool = False) -> int:
    """Return 0 for success, 1 for failure, 2 for usage, 3 for the rendezvous or its store, 4 for a node that stays
    out because its check found it unfit or it cannot start workers, 5 for a drained node that has left, 6 for a job
    that made no progress, 128+n for signal n. `is_again`: this node's last start took part in the job, and it counts if
    that has succeeded."""
    match outcome:
        case Verdict(Ending.SUCCEEDED):
            return SUCCEEDED
        case Verdict(why=Why.FRUITLESS):
            return FRUITLESS
        case Verdict():
            return FAILED
        case Refused(Why.CLOSED) if is_again:  # no other verdict refuses a node
            return SUCCEEDED
        case Refused(Why.LIMITS):
            return USAGE
        case Refused(Why.UNFIT):
            return UNFIT
        case Refused():
            return RENDEZVOUS
        case Unawaited():
            return SUCCEEDED
        case Drained():
            return DRAINED
        case Stopped(signum):
            return SIGNALLED + signum
        case other:
            assert_never(other)
