"""A training on gloo in two ranks that resumes from a checkpoint: `resuming.py FOLDER`.

In each of the launcher's first rounds rank 1 stays at a step, and rank 0 waits for it in gloo. The mean gradient of a step
is its number + 0.5, so the last weight tells whether each step was done once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import averaging
import stage
import torch
from torch import distributed, nn

FOLDER = Path(sys.argv[1])
STEPS, STAYS_AT = 8, {0: 3, 1: 6}


def save(model: nn.Linear, done: int) -> None:
    """Replace the checkpoint in one step."""
    torch.save({"done": done, "weight": model.weight.detach()}, FOLDER / "draft")
    os.replace(FOLDER / "draft", FOLDER / "checkpoint")


torch.set_num_threads(1)
distributed.init_process_group("gloo")
model, done = nn.Linear(1, 1, bias=False), torch.zeros(1)
nn.init.zeros_(model.weight)
if (FOLDER / "checkpoint").exists():
    saved = torch.load(FOLDER / "checkpoint", weights_only=True)
    model.weight.data, done = saved["weight"], torch.tensor([float(saved["done"])])
stage.tell("from", int(done))
for step in range(int(done), STEPS):
    if stage.rank == 1 and step == STAYS_AT.get(stage.round):
        stage.tell("stays at", step)
        stage.wait_for_signal()
    averaging.step(model, float(stage.rank + step))
    if stage.rank == 0:
        save(model, step + 1)
stage.tell("ends with", float(model.weight.detach()))
distributed.destroy_process_group()
