"""A script for `fabric run`: Fabric must find that a launcher has started it, and start nothing itself."""

from __future__ import annotations

import os

import stage
import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

assert TorchElasticEnvironment.detect()
fabric = Fabric(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), num_nodes=1, strategy="ddp")
fabric.launch()
total = fabric.all_reduce(torch.tensor([fabric.global_rank + 1.0]), reduce_op="sum")
assert isinstance(total, torch.Tensor)
stage.tell(f"{fabric.global_rank}/{fabric.world_size} local {fabric.local_rank}", "sum", int(total))
torch.distributed.destroy_process_group()
