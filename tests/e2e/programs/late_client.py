"""Rank 0 ends first. The others wait for the gate, make one more group, open a late client of MASTER_PORT, and tell.

late_client.py ROUNDS: in so many rounds before, all ranks meet, and rank 1 fails."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import stage
import torch.distributed as dist

PATIENCE = timedelta(seconds=60)

dist.init_process_group("gloo", timeout=PATIENCE)
dist.barrier()
stage.tell("meets at", os.environ["MASTER_PORT"], os.environ["TORCHELASTIC_USE_AGENT_STORE"])
if stage.round < int(sys.argv[1]):
    dist.barrier()
    sys.exit(1 if stage.rank else stage.wait_for_signal())
if stage.rank == 0:
    dist.destroy_process_group()
    sys.exit(0)
stage.wait_for_gate()
dist.new_group([stage.rank], timeout=PATIENCE, use_local_synchronization=True)
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(*where, is_master=False, timeout=PATIENCE)  # type: ignore[attr-defined]
store.set("key", "value")
stage.tell("late:", store.get("key").decode())
