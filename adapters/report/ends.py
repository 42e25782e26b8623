"""How the workers of this node ended: what a report says of those that did not fail."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum

from attrs import frozen

from ...core.ranks import Ranks
from ..workers.worker_port import Exit


class How(Enum):
    """How a worker came to its end."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped by elastic"

    @property
    def torch_s(self) -> str:
        """The state in torch's events."""
        return "TERMINATED" if self is How.STOPPED else self.name


@frozen
class WorkerEnd:
    """The end of one of this node's workers. `exit_code` is subprocess's: negative for a signal."""

    round: int
    rank: int
    local_rank: int
    pid: int
    exit_code: int
    how: How


def worker_ends(
    round: int, ranks: Ranks, exits: Mapping[int, Exit], failed: Collection[int], stopped_at: float | None
) -> tuple[WorkerEnd, ...]:
    """Of one round, by local rank. `failed` are on record; `stopped_at` is when the others were told to end."""
    return tuple(
        WorkerEnd(
            round,
            ranks.workers[rank].rank,
            rank,
            ended.pid,
            ended.code,
            how_it_ended(ended.code, ended.died_at, rank in failed, stopped_at),
        )
        for rank, ended in sorted(exits.items())
    )


def how_it_ended(code: int, died_at: float, failed: bool, stopped_at: float | None) -> How:
    if failed:
        return How.FAILED
    stopped = code != 0 or (stopped_at is not None and died_at > stopped_at)
    return How.STOPPED if stopped else How.SUCCEEDED
