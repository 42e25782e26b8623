"""reduce.py ROUNDS: a real process group in every round, which one of the workers then breaks, in ROUNDS rounds.

It does so when all have told: one that has the sum too may not have come to it yet, and is stopped because of the first.
"""

from __future__ import annotations

import os
import signal
import sys

import quick_torch  # noqa: F401
import stage
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
stage.tell("sum", int(total), "at", os.environ["MASTER_PORT"])
rounds = int(sys.argv[1])
if stage.round < rounds:
    dist.barrier()
    if stage.rank == stage.round % 2:
        os.kill(os.getpid(), signal.SIGKILL if stage.round else signal.SIGTERM)
    dist.all_reduce(total)
    stage.wait_for_signal()
dist.destroy_process_group()
