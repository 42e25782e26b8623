"""saving.py FOLDER: count up to STEPS, with an asynchronous checkpoint of each step; the first world is broken while one is
written. ELASTIC_ROUND in the name keeps a save that comes late from being taken for one of the round that followed.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Future
from pathlib import Path

import stage
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save

STEPS, BREAK_AT = 4, 2
folder = Path(sys.argv[1])
dist.init_process_group("gloo")
weights = f"weights of {dist.get_rank()}"
state = {"step": torch.zeros(1), weights: torch.zeros(1000) + dist.get_rank()}


def whole() -> list[Path]:
    """Checkpoints that were finished, the latest last: .metadata is written when all ranks have written theirs."""
    return sorted(
        (path.parent for path in folder.glob("*/.metadata")), key=lambda path: int(path.name.partition("-")[0])
    )


if found := whole()[-1:]:
    load(state, checkpoint_id=found[0])
stage.tell("from step", int(state["step"]))
dist.barrier()
for step in range(int(state["step"]) + 1, STEPS + 1):
    state["step"] += 1
    state[weights] += 1
    saving = async_save(state, checkpoint_id=folder / f"{step}-{stage.round}")
    if step == BREAK_AT and stage.round == 0 and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    assert isinstance(saving, Future)
    saving.result()
stage.tell("to step", int(state["step"]), "weights", state[weights].unique().tolist())
dist.destroy_process_group()
