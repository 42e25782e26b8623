"""Rank 0 ends first. The others wait for the gate, make one more group, open a late client of MASTER_PORT, and tell."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import quick_torch  # noqa: F401
import stage
import torch.distributed as dist

PATIENCE = timedelta(seconds=60)

dist.init_process_group("gloo", timeout=PATIENCE)
dist.barrier()
stage.tell("meets at", os.environ["MASTER_PORT"], os.environ["TORCHELASTIC_USE_AGENT_STORE"])
if stage.rank == 0:
    dist.destroy_process_group()
    sys.exit(0)
stage.wait_for_gate()
dist.new_group([stage.rank], timeout=PATIENCE, use_local_synchronization=True)
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(*where, is_master=False, timeout=PATIENCE)  # type: ignore[attr-defined]
store.set("key", "value")
stage.tell("late:", store.get("key").decode())
