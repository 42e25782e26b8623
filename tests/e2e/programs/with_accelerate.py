"""A script for `accelerate launch`: told what Accelerator makes of the environment, and a sum over all workers."""

from __future__ import annotations

import stage
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
place = f"{accelerator.process_index}/{accelerator.num_processes} local {accelerator.local_process_index}"
total = accelerator.reduce(torch.tensor([float(accelerator.process_index + 1)]))
stage.tell(place, accelerator.distributed_type.name, "sum", int(total))
accelerator.end_training()
