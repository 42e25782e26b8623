"""Accelerate under `elastic launch` in the place of `accelerate launch`: the script changes nothing.

elastic launch --nproc-per-node=2 --max-restarts=3 accelerate_training.py DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

STEPS = 6


def main(directory: Path) -> None:
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    set_seed(7)
    model = torch.nn.Linear(1, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    saved = max(directory.glob("step-*"), key=lambda each: int(each.name[5:]), default=None)
    if saved:
        accelerator.load_state(str(saved))
    done = int(saved.name[5:]) if saved else 0
    accelerator.wait_for_everyone()  # all have chosen, before one saves
    print(f"rank {accelerator.process_index} of {accelerator.num_processes} begins after step {done}", flush=True)
    for step in range(done + 1, STEPS + 1):
        optimizer.zero_grad()
        accelerator.backward(model(torch.ones(4, 1, device=accelerator.device)).square().mean())
        optimizer.step()
        if step % 3 == 0:
            accelerator.save_state(str(directory / f"draft-{step}"))
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                (directory / f"draft-{step}").rename(directory / f"step-{step}")  # whole, or not there
            accelerator.wait_for_everyone()
    print(f"rank {accelerator.process_index} of {accelerator.num_processes} has done {STEPS} steps", flush=True)
    model, optimizer = accelerator.free_memory(
        model, optimizer
    )  # before the group: a gloo group that a model drops may wait for ever
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
