"""Accelerate under `elastic launch` in the place of `accelerate launch`. A script need not change. This one also says which
steps are done and saved.

elastic launch --nproc-per-node=2 --max-restarts=3 accelerate_training.py DIRECTORY [STEPS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

import elastic

ROWS = 4
"""The rows of a batch."""


def main(directory: Path, steps: int = 6) -> None:
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    set_seed(7)
    model = torch.nn.Linear(1, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    saved = max(directory.glob("step-*"), key=lambda each: int(each.name[5:]), default=None)
    if saved:
        accelerator.load_state(str(saved))
    done = int(saved.name[5:]) if saved else 0
    accelerator.wait_for_everyone()  # all have chosen, before one saves
    me, weight = f"rank {accelerator.process_index} of {accelerator.num_processes}", next(model.parameters())
    print(f"{me} begins after step {done} with weight {weight.item():.6f}", flush=True)
    batch = torch.full(
        (ROWS, 1), 1 / (1 + accelerator.process_index), device=accelerator.device
    )  # each rank has its own
    rest = range(done + 1, steps + 1)
    for step in rest:
        optimizer.zero_grad()
        accelerator.backward(model(batch).square().mean())
        optimizer.step()
        elastic.progress(step)
        if step % 3 == 0:
            accelerator.save_state(str(directory / f"draft-{step}"))
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                (directory / f"draft-{step}").rename(directory / f"step-{step}")  # whole, or not there
            accelerator.wait_for_everyone()
            elastic.saved(step)
    rows = accelerator.reduce(torch.tensor(ROWS * len(rest), device=accelerator.device), "sum").item()
    print(f"{me} has done {steps} steps, now on {rows} rows, with weight {weight.item():.6f}", flush=True)
    del weight
    model, optimizer = accelerator.free_memory(
        model, optimizer
    )  # before the group: a gloo group that a model drops may wait for ever
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
