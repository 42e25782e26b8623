"""A program as users of nvidia-resiliency-ext write it, with the import changed: `changed.py WAY`.

Its callbacks and its rank assignment are classes of its own. In the first iteration the rank that WAY names fails or is
killed when the test says so, and the others wait; then all return.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import signal
import sys
import time
from typing import Any, Optional

import stage

import elastic.inprocess as inprocess
from elastic.inprocess.rank_assignment import Layer, LayerFlag, RankAssignment, RankAssignmentCtx, Tree

MINE = int(os.environ["RANK"])
WAY = sys.argv[1]
FIRST_GATE = 10
REPLACED = dataclasses.replace


class Told:
    def __call__(self, state: inprocess.FrozenState) -> inprocess.FrozenState:
        place = (state.rank, state.world_size, state.active_rank, state.iteration, state.mode.name)
        stage.tell(type(self).__name__, *place, type(state.fn_exception).__name__)
        return REPLACED(state, world_size=state.world_size + 10)


class Begins(Told, inprocess.initialize.Initialize):
    pass


class BeginsToo(Told, inprocess.initialize.Initialize):
    pass


class Tidies(Told, inprocess.finalize.Finalize):
    pass


class Backwards(RankAssignment):
    """The last rank becomes the first."""

    def __call__(self, ctx: RankAssignmentCtx) -> RankAssignmentCtx:
        assert ctx.state.rank is not None and not ctx.terminated_ranks
        ctx.state = REPLACED(ctx.state, rank=ctx.state.world_size - 1 - ctx.state.rank)
        return ctx


assign = inprocess.rank_assignment
WAYS: dict[str, Any] = {
    "backwards": inprocess.Compose(assign.ActivateAllRanks(), Backwards(), assign.ShiftRanks()),
    "pairs": inprocess.Compose(
        assign.ActivateAllRanks(),
        assign.FillGaps(),
        assign.FilterCountGroupedByKey(key_or_fn=lambda _: f"host {MINE // 2}", condition=lambda count: count == 2),
    ),
    "tree": Tree([Layer(max_ranks=2, key_or_fn="root", flag=LayerFlag.RESERVE)]),
}


def train(call_wrapper: Optional[inprocess.CallWrapper] = None) -> str:  # noqa: UP045 - as that package's users write it
    assert call_wrapper is not None
    stage.tell("in", call_wrapper.iteration, "of", os.environ["WORLD_SIZE"], "as", os.environ["RANK"])
    if call_wrapper.iteration == 0:
        with call_wrapper.disable_hang_protection():
            stage.wait_for_gate(FIRST_GATE)
        if WAY == "backwards" and MINE == 1:
            raise ValueError("boom")
        if WAY != "backwards" and MINE == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1_000)
    with call_wrapper.atomic():
        return f"{MINE} in {call_wrapper.iteration}"


callbacks: dict[str, Any] = {}
if WAY == "backwards":
    callbacks = {"initialize": inprocess.Compose(BeginsToo(), Begins()), "finalize": Tidies()}
wrapped = inprocess.Wrapper(
    **callbacks,
    abort=inprocess.Compose(inprocess.abort.AbortTransformerEngine(), inprocess.abort.AbortTorchDistributed()),
    health_check=inprocess.Compose(inprocess.health_check.FaultCounter(3), inprocess.health_check.CudaHealthCheck()),
    rank_assignment=WAYS[WAY],
    soft_timeout=datetime.timedelta(seconds=60),
    hard_timeout=datetime.timedelta(seconds=90),
)(train)
stage.tell("returned", wrapped())
