"""What came of one agent's part in a job, in one value: the agent returns it, the report tells it."""

from __future__ import annotations

from attrs import frozen

from ...core.group import Outcome
from ...core.ranks import Ranks
from ...core.rendezvous import RendezvousState
from ...core.world import Fault, Node
from .ends import WorkerEnd


@frozen
class Result:
    """How this agent's part ended, and what the job put on record: the same on every node that heard the verdict.

    `state` is the register as this node saw it last; `round`, `ranks` and `ends` are those of the last workers that it
    had.
    """

    node: Node
    outcome: Outcome
    faults: tuple[Fault, ...]
    state: RendezvousState | None
    round: int = 0
    ranks: Ranks = Ranks(0, 0, 0, "", 0, ())
    ends: tuple[WorkerEnd, ...] = ()
