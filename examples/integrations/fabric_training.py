"""Lightning's Fabric under `elastic launch`, with a world that may have another size in each round.

    elastic launch --nnodes=1:2 --nproc-per-node=2 --max-restarts=3 ... fabric_training.py DIRECTORY [STEPS]

`ElasticEnvironment` goes into Lightning's Trainer as well: `Trainer(plugins=[environment], devices=environment.devices,
num_nodes=environment.nodes)`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

import elastic

ROWS = 4
"""The rows of a batch."""


class ElasticEnvironment(TorchElasticEnvironment):
    """Lightning finds torchrun's variables by itself, but not how many nodes and workers this round has."""

    @property
    def nodes(self) -> int:
        """The nodes of this round: between MIN and MAX of --nnodes."""
        return int(os.environ["GROUP_WORLD_SIZE"])

    @property
    def devices(self) -> int:
        """The workers of this node."""
        return int(os.environ["LOCAL_WORLD_SIZE"])


def main(directory: Path, steps: int = 6) -> None:
    environment = ElasticEnvironment()
    fabric = Fabric(
        accelerator="auto",
        plugins=[environment],
        devices=environment.devices,
        num_nodes=environment.nodes,
        strategy="ddp",
    )
    fabric.launch()  # starts nothing: the launcher has
    fabric.seed_everything(7)
    model = torch.nn.Linear(1, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    saved = directory / "fabric.ckpt"
    state = {"model": model, "optimizer": optimizer, "step": 0}
    if saved.exists():
        fabric.load(saved, state)
    me, weight = f"rank {fabric.global_rank} of {fabric.world_size}", next(model.parameters())
    print(f"{me} begins after step {state['step']} with weight {weight.item():.6f}", flush=True)
    batch = torch.full((ROWS, 1), 1 / (1 + fabric.global_rank), device=fabric.device)  # each rank has data of its own
    rest = range(state["step"] + 1, steps + 1)
    for step in rest:
        optimizer.zero_grad()
        fabric.backward(model(batch).square().mean())
        optimizer.step()
        elastic.progress(step)
        fabric.save(directory / "fabric.draft", {**state, "step": step})
        if fabric.is_global_zero:
            (directory / "fabric.draft").rename(saved)  # whole, or not there
        fabric.barrier()
        elastic.saved(step)
    rows = fabric.all_reduce(torch.tensor(ROWS * len(rest), device=fabric.device), reduce_op="sum")
    print(f"{me} has done {steps} steps, now on {rows} rows, with weight {weight.item():.6f}", flush=True)
    del model, optimizer, state, weight  # before the group: with a gloo group the interpreter may abort as it ends
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
