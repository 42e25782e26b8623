"""A wrapped function with a group of NCCL of one rank: `called_again.py LAST`. It fails in each iteration before LAST.

Tells what is held in iteration WARM and in the last one: descriptors, threads and kilobytes of this process, and MiB of the
GPU. Each iteration must find no group of the one before, as its abort has destroyed it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys

import stage
import torch
import torch.distributed as dist
from processes import held_by

from elastic.inprocess import CallWrapper, NvmlHealthCheck, Wrapper
from elastic.inprocess.compose import Compose
from elastic.inprocess.health_check import CudaHealthCheck

LAST = int(sys.argv[1])
WARM = min(20, LAST // 2)
MANY = 2**20
trim = ctypes.CDLL(None).malloc_trim


def look() -> None:
    gc.collect()
    torch.cuda.empty_cache()
    trim(0)
    free, total = torch.cuda.mem_get_info(0)
    stage.tell("holds", *held_by(os.getpid()), (total - free) >> 20)


@Wrapper(health_check=Compose(CudaHealthCheck(), NvmlHealthCheck()), completion_timeout=300.0, fresh_after=None)
def train(call: CallWrapper) -> None:
    assert not dist.is_initialized()
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    ones = torch.ones(MANY, device="cuda")
    dist.all_reduce(ones)
    assert int(ones.sum().item()) == MANY
    del ones
    with call.atomic():
        if call.iteration in (WARM, LAST):
            look()
    if call.iteration < LAST:
        raise ValueError(f"iteration {call.iteration} fails, as it should")
    dist.destroy_process_group()


train()
stage.tell("ended")
