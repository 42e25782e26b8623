"""A group of NCCL with one rank: `trains.py LAST`. It fails after its step in each round before LAST, then succeeds.

Tells how much of the GPU's memory is free before its own first use of it, in MiB.
"""

from __future__ import annotations

import os
import sys

import stage
import torch
import torch.distributed as dist

LAST = int(sys.argv[1])
MANY = 2**20

free, _ = torch.cuda.mem_get_info(0)
torch.cuda.set_device(0)
dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
ones = torch.ones(MANY, device="cuda")
dist.all_reduce(ones)
assert int(ones.sum().item()) == MANY
stage.tell("of", os.environ["WORLD_SIZE"], "free", free >> 20)
stage.wait_for_gate(stage.round)
if stage.round < LAST:
    raise ValueError(f"round {stage.round} fails, as it should")
dist.destroy_process_group()
