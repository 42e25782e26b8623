"""Take most of the GPU's memory and tell it. Before round LAST it is killed when the test says so; then it succeeds."""

from __future__ import annotations

import os
import signal
import sys

import stage
import torch

LAST = int(sys.argv[1])
SHARE = 0.6
"""Two such workers do not fit."""

taken = torch.ones(int(SHARE * torch.cuda.mem_get_info()[1]), dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
stage.tell("of", os.environ["WORLD_SIZE"])
stage.wait_for_gate(stage.round)
if stage.round < LAST:
    os.kill(os.getpid(), signal.SIGKILL)
